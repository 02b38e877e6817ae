// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

import {PayChannels} from "shipped/PayChannels.sol";
import {vm} from "../shared/Cheats.sol";
import {Words} from "../shared/Words.sol";
import {Any} from "./Any.sol";

/// @title What holds of batches of two rows, whatever the rows, their order, the caller and the state before.
///
/// Names that begin with `open_` are rules without a proof. `open_a_batch_pays_what_its_rows_claim` ran for seven
/// minutes on a busy machine: 344 cases are proven, the others had no answer within 40 seconds or were not reached,
/// and none had a counterexample. The others were not tried in this form.
///
/// A row beside a good one is of another payee or token, above its voucher, stale, badly signed, or good. Each of the
/// first four kinds is a rule of its own: there, only the good row moves money, as in a single claim, and the solvers
/// have one sum to find and not two. Only of a second good row the rules for any row say more.
contract Batches is Any {
    // ------------------------------------------------- a row that adds nothing

    function open_a_row_of_another_payee_or_token_stops_nothing(
        PayChannels.Claim memory good,
        PayChannels.Claim memory any,
        bool isFirst
    ) public {
        Before memory before = _before(good.channel);
        vm.assume(any.channel.payee != good.channel.payee || any.channel.token != address(token));
        _onlyTheGoodOneIsPaid(before, good, any, isFirst);
    }

    /// Of the same channel, or of another one.
    function open_a_row_above_its_voucher_stops_nothing(
        PayChannels.Claim memory good,
        PayChannels.Claim memory any,
        bool isFirst
    ) public {
        Before memory before = _before(good.channel);
        vm.assume(any.amount > any.cumulative);
        _onlyTheGoodOneIsPaid(before, good, any, isFirst);
    }

    /// Of the same channel, or of another one.
    function open_a_badly_signed_row_stops_nothing(
        PayChannels.Claim memory good,
        PayChannels.Claim memory any,
        bool isFirst
    ) public {
        Before memory before = _before(good.channel);
        vm.assume(!_isSigned(any, Words.id(address(channels), any.channel)));
        _onlyTheGoodOneIsPaid(before, good, any, isFirst);
    }

    /// Of the same channel, or of another one. The good one claims more than it.
    function open_a_stale_row_stops_nothing(
        PayChannels.Claim memory good,
        PayChannels.Claim memory any,
        bool isFirst
    ) public {
        Before memory before = _before(good.channel);
        State memory anyState = _state(Words.id(address(channels), any.channel));
        vm.assume(any.amount <= anyState.claimed || anyState.deposited <= anyState.claimed);
        _onlyTheGoodOneIsPaid(before, good, any, isFirst);
    }

    function _onlyTheGoodOneIsPaid(
        Before memory before,
        PayChannels.Claim memory good,
        PayChannels.Claim memory any,
        bool isFirst
    ) private {
        uint256 paid = _claims(before, good, any, isFirst);
        State memory state = _claimed(before, good.amount);
        assert(_isSame(before.other, _state(before.otherId)));
        unchecked {
            assert(paid + before.state.claimed == state.claimed);
        }
    }

    // ------------------------------------------------------------ any other row

    /// Badly signed, stale or better: a second row of the same channel.
    function open_a_row_never_stops_another_of_its_channel(
        PayChannels.Claim memory good,
        PayChannels.Claim memory any,
        bool isFirst
    ) public {
        Before memory before = _before(good.channel);
        any.channel = good.channel;
        uint256 paid = _claims(before, good, any, isFirst);
        State memory state = _state(before.id);
        assert(paid >= state.claimed - before.state.claimed);
        if (good.amount < before.state.deposited) assert(state.claimed >= good.amount);
        else assert(state.claimed == before.state.deposited);
    }

    /// A row of any other channel: badly signed, stale, of another payee or token, or good.
    function open_a_row_never_stops_another_of_another_channel(
        PayChannels.Claim memory good,
        PayChannels.Claim memory any,
        bool isFirst
    ) public {
        Before memory before = _before(good.channel);
        bytes32 anyId = Words.id(address(channels), any.channel);
        vm.assume(anyId != before.id);
        State memory anyState = _state(anyId);
        vm.assume(anyState.claimed <= anyState.deposited);
        if (any.channel.token == address(token)) {
            unchecked {
                // M2 with both channels.
                uint256 owed = uint256(before.state.deposited) - before.state.claimed;
                vm.assume(owed + anyState.deposited - anyState.claimed <= before.escrow);
            }
        }
        uint256 paid = _claims(before, good, any, isFirst);
        State memory state = _claimed(before, good.amount);
        assert(paid >= state.claimed - before.state.claimed);
    }

    function _claims(
        Before memory before,
        PayChannels.Claim memory good,
        PayChannels.Claim memory any,
        bool isFirst
    ) private returns (uint256) {
        _honest(good.channel);
        vm.assume(_isGood(before.state, good, _isSigned(good, before.id)));
        PayChannels.Claim[] memory claims = new PayChannels.Claim[](2);
        (claims[0], claims[1]) = isFirst ? (good, any) : (any, good);
        (bool ok, bytes memory answer) =
            _call(good.channel.payee, abi.encodeCall(PayChannels.claimMany, (address(token), claims)));
        assert(ok);
        return abi.decode(answer, (uint256));
    }

    function open_a_batch_pays_what_its_rows_claim(
        PayChannels.Claim memory one,
        PayChannels.Claim memory other,
        address caller
    ) public {
        Before memory before = _before(one.channel);
        bytes32 otherId = Words.id(address(channels), other.channel);
        State memory otherBefore = _state(otherId);
        vm.assume(otherId != before.id && before.otherId != otherId);
        vm.assume(otherBefore.claimed <= otherBefore.deposited);
        (bool ok, uint256 paid) = _rows(before, one, other, caller);
        if (!ok) return;
        uint96 claimed = _onlyClaimed(before.id, before.state, one.channel, caller);
        uint96 otherClaimed = _onlyClaimed(otherId, otherBefore, other.channel, caller);
        _pays(before, caller, paid);
        unchecked {
            assert(paid == uint256(claimed) + otherClaimed);
        }
    }

    function open_a_batch_pays_what_its_rows_of_one_channel_claim(
        PayChannels.Claim memory one,
        PayChannels.Claim memory other,
        address caller
    ) public {
        Before memory before = _before(one.channel);
        other.channel = one.channel;
        (bool ok, uint256 paid) = _rows(before, one, other, caller);
        if (!ok) return;
        uint96 claimed = _onlyClaimed(before.id, before.state, one.channel, caller);
        _pays(before, caller, paid);
        assert(paid == claimed);
    }

    function _rows(
        Before memory before,
        PayChannels.Claim memory one,
        PayChannels.Claim memory other,
        address caller
    ) private returns (bool ok, uint256 paid) {
        PayChannels.Claim[] memory claims = new PayChannels.Claim[](2);
        (claims[0], claims[1]) = (one, other);
        bytes memory answer;
        (ok, answer) = _call(caller, abi.encodeCall(PayChannels.claimMany, (address(token), claims)));
        assert(_isSame(before.other, _state(before.otherId)));
        if (ok) paid = abi.decode(answer, (uint256));
        else _unchanged(before);
    }

    /// Of a channel in a batch, only the claimed sum goes up, within the deposit, and for the payee alone.
    function _onlyClaimed(bytes32 id, State memory before, PayChannels.Channel memory channel, address caller)
        private
        view
        returns (uint96 claimed)
    {
        State memory state = _state(id);
        if (caller != channel.payee || channel.token != address(token)) assert(_isSame(state, before));
        assert(state.deposited == before.deposited);
        assert(state.closeAt == before.closeAt && state.round == before.round);
        assert(state.claimed <= state.deposited);
        assert(state.claimed >= before.claimed);
        unchecked {
            // Both are below 2^96, and the second is not above the first.
            claimed = uint96(state.claimed) - uint96(before.claimed);
        }
    }

    /// All of it comes out of the escrow, unless the contract itself is the payee.
    function _pays(Before memory before, address caller, uint256 paid) private view {
        if (caller == address(channels)) return;
        unchecked {
            assert(token.balanceOf(address(channels)) == before.escrow - paid);
        }
    }
}
