// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

import {PayChannels} from "shipped/PayChannels.sol";
import {svm, vm} from "../shared/Cheats.sol";
import {Words} from "../shared/Words.sol";
import {AnyToken} from "./AnyToken.sol";

/// @title The contract in any state, at any time, with any token.
///
/// Halmos chooses the whole storage, so that a proof about one call is a proof about that call after every
/// history. What it may not choose is what the proofs themselves keep up: M2 and M3 hold before the call.
///
/// A revert of a proof's own code would drop that case unseen: nothing here may revert, what holds is asserted.
abstract contract Any {
    struct State {
        uint128 deposited;
        uint128 claimed;
        uint40 closeAt;
        uint24 round;
    }

    /// A channel before a call, beside any other one.
    struct Before {
        bytes32 id;
        State state;
        bytes32 otherId;
        State other;
        uint256 escrow;
        uint256 payer;
        uint256 payee;
    }

    /// Half the order of secp256k1.
    uint256 private constant S_MAX = 0x7FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF5D576E7357A4501DDFE92F46681B20A0;

    PayChannels internal channels;
    AnyToken internal token;

    function setUp() public {
        channels = new PayChannels();
        token = new AnyToken();
        svm.enableSymbolicStorage(address(channels));
        svm.enableSymbolicStorage(address(token));
    }

    /// Any channel of the token, between parties that are neither each other nor the contract.
    function _before(PayChannels.Channel memory channel) internal returns (Before memory before) {
        channel.token = address(token);
        vm.assume(channel.payer != address(channels) && channel.payee != address(channels));
        vm.assume(channel.payer != channel.payee);
        before.id = Words.id(address(channels), channel);
        before.state = _state(before.id);
        before.otherId = svm.createBytes32("other channel");
        vm.assume(before.otherId != before.id);
        before.other = _state(before.otherId);
        before.escrow = token.balanceOf(address(channels));
        before.payer = token.balanceOf(channel.payer);
        before.payee = token.balanceOf(channel.payee);
        vm.assume(before.state.claimed <= before.state.deposited);
        vm.assume(before.state.deposited - before.state.claimed <= before.escrow);
        // No token has so many units.
        vm.assume(before.escrow < 2 ** 128 && before.payer < 2 ** 128 && before.payee < 2 ** 128);
    }

    function _state(bytes32 id) internal view returns (State memory state) {
        (state.deposited, state.claimed, state.closeAt, state.round) = channels.state(id);
    }

    /// M2 and M3 after a call that changed one channel: what the escrow lost or won is what the channel did, no
    /// other channel knows of it, and the claimed sum did not go down.
    function _holds(Before memory before) internal view returns (State memory state) {
        // First, because it needs no sums: what is asserted is known from there on, and a solver that knows sums spends
        // its time on them.
        assert(_isSame(before.other, _state(before.otherId)));
        state = _state(before.id);
        uint256 escrow = token.balanceOf(address(channels));
        assert(state.claimed >= before.state.claimed);
        assert(state.claimed <= state.deposited);
        unchecked {
            // escrow - owed == escrow before - owed before, without differences, which solvers find harder.
            uint256 now_ = escrow + before.state.deposited + state.claimed;
            assert(now_ == before.escrow + state.deposited + before.state.claimed);
        }
    }

    function _isSame(State memory one, State memory other) internal pure returns (bool) {
        return _word(one) == _word(other);
    }

    function _word(State memory state) internal pure returns (uint256) {
        return uint256(state.deposited) | (uint256(state.claimed) << 96) | (uint256(state.closeAt) << 192)
            | (uint256(state.round) << 232);
    }

    function _unchanged(Before memory before) internal view {
        assert(_isSame(before.state, _state(before.id)));
        assert(token.balanceOf(address(channels)) == before.escrow);
    }

    /// The channel after good claims of which the best is of this amount: all of it is claimed, or the whole deposit.
    function _claimed(Before memory before, uint128 amount) internal view returns (State memory state) {
        state = _state(before.id);
        assert(state.deposited == before.state.deposited);
        assert(state.closeAt == before.state.closeAt && state.round == before.state.round);
        if (amount < state.deposited) assert(state.claimed == amount);
        else assert(state.claimed == state.deposited);
    }

    /// The token bars none of them.
    function _honest(PayChannels.Channel memory channel) internal view {
        vm.assume(!token.isBarred(address(channels)));
        vm.assume(!token.isBarred(channel.payer) && !token.isBarred(channel.payee));
    }

    function _at(uint40 time) internal {
        // A date, to which a delay can be added.
        vm.assume(time > 0 && time < 2 ** 39);
        vm.warp(time);
    }

    function _call(address caller, bytes memory data) internal returns (bool ok, bytes memory answer) {
        vm.prank(caller);
        return address(channels).call(data);
    }

    function _recovered(bytes32 digest, bytes32 r, bytes32 vs) internal pure returns (address) {
        uint256 s = uint256(vs) & (type(uint256).max >> 1);
        return ecrecover(digest, uint8(27 + (uint256(vs) >> 255)), r, bytes32(s));
    }

    // Without branches, because each doubles the cases that halmos has to tell apart.

    function _isSigned(PayChannels.Claim memory claim_, bytes32 id) internal view returns (bool isSigned) {
        bytes32 digest = Words.voucher(address(channels), id, claim_.cumulative);
        address recovered = _recovered(digest, claim_.r, claim_.vs);
        (address signer, bytes32 vs) = (claim_.channel.signer, claim_.vs);
        assembly ("memory-safe") {
            let isLow := iszero(gt(shr(1, shl(1, vs)), S_MAX))
            isSigned := and(and(isLow, iszero(iszero(recovered))), eq(recovered, signer))
        }
    }

    /// Whether a claim adds something, in this state.
    function _isGood(State memory state, PayChannels.Claim memory claim_, bool isSigned)
        internal
        pure
        returns (bool isGood)
    {
        (uint256 amount, uint256 cumulative) = (claim_.amount, claim_.cumulative);
        (uint256 deposited, uint256 claimed) = (state.deposited, state.claimed);
        assembly ("memory-safe") {
            let adds := and(gt(amount, claimed), gt(deposited, claimed))
            isGood := and(and(isSigned, iszero(gt(amount, cumulative))), adds)
        }
    }

    /// What a claim adds: the smallest of voucher, what was charged and deposited, less what was claimed.
    function _due(State memory state, PayChannels.Claim memory claim_, bool isSigned)
        internal
        pure
        returns (uint128 due)
    {
        (uint256 amount, uint256 cumulative) = (claim_.amount, claim_.cumulative);
        (uint256 deposited, uint256 claimed) = (state.deposited, state.claimed);
        assembly ("memory-safe") {
            let target := xor(deposited, and(xor(deposited, amount), sub(0, lt(amount, deposited))))
            let counts := and(and(isSigned, iszero(gt(amount, cumulative))), gt(target, claimed))
            due := and(sub(target, claimed), sub(0, counts))
        }
    }
}
