// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

import {PayChannels} from "shipped/PayChannels.sol";
import {vm} from "../shared/Cheats.sol";
import {Words} from "../shared/Words.sol";
import {Any} from "./Any.sol";

/// @title What holds of every call, whatever its arguments, its caller and the state before it.
///
/// Batches are in `Batches.t.sol`.
contract Proofs is Any {
    // -------------------------------------------------------------------- claim

    function check_a_claim_pays_what_is_due_and_no_more(
        PayChannels.Claim memory claim_,
        address caller,
        uint40 time
    ) public {
        Before memory before = _before(claim_.channel);
        _at(time);
        (bool ok, bytes memory answer) = _call(caller, abi.encodeCall(PayChannels.claim, (claim_)));
        if (!ok) return _unchanged(before);
        uint128 due = _due(before.state, claim_, _isSigned(claim_, before.id));
        State memory state = _holds(before);
        assert(caller == claim_.channel.payee);
        assert(due != 0 && abi.decode(answer, (uint128)) == due);
        assert(due <= claim_.cumulative && due <= before.state.deposited);
        assert(state.claimed == before.state.claimed + due);
        assert(state.deposited == before.state.deposited);
        assert(state.closeAt == before.state.closeAt && state.round == before.state.round);
        assert(token.balanceOf(claim_.channel.payee) == before.payee + due);
        assert(token.balanceOf(claim_.channel.payer) == before.payer);
    }

    /// At any time: also in the last second of a delay, and after it.
    function check_a_good_claim_is_paid(PayChannels.Claim memory claim_, uint40 time) public {
        Before memory before = _before(claim_.channel);
        _honest(claim_.channel);
        _at(time);
        vm.assume(_due(before.state, claim_, _isSigned(claim_, before.id)) != 0);
        (bool ok,) = _call(claim_.channel.payee, abi.encodeCall(PayChannels.claim, (claim_)));
        assert(ok);
    }

    function check_a_badly_signed_claim_changes_nothing(PayChannels.Claim memory claim_, address caller)
        public
    {
        Before memory before = _before(claim_.channel);
        vm.assume(!_isSigned(claim_, before.id));
        PayChannels.Claim[] memory claims = new PayChannels.Claim[](1);
        claims[0] = claim_;
        (bool ok,) = _call(caller, abi.encodeCall(PayChannels.claim, (claim_)));
        assert(!ok);
        _call(caller, abi.encodeCall(PayChannels.claimMany, (address(token), claims)));
        _unchanged(before);
        (ok,) = _call(caller, abi.encodeCall(PayChannels.close, (claim_)));
        // Without a signature a payee may only give up: everything goes back to the payer.
        if (ok) assert(_state(before.id).claimed == before.state.claimed);
    }

    // Two claims in either order end in the same state. Two calls in one proof are too much for the solvers, so three
    // proofs say it together: what a claim adds is exactly what is due (above, in any state, so also in the one that
    // an earlier claim left); what is due leads to the best claim so far; and the best of two does not depend on
    // their order.

    function check_what_is_due_leads_to_the_best_claim_so_far(
        State memory state,
        PayChannels.Claim memory claim_,
        bool isSigned
    ) public pure {
        unchecked {
            assert(state.claimed + _due(state, claim_, isSigned) == _best(state, claim_, isSigned));
        }
    }

    function check_the_best_of_two_claims_is_the_same_in_either_order(
        State memory state,
        PayChannels.Claim memory one,
        PayChannels.Claim memory other,
        bool isOneSigned,
        bool isOtherSigned
    ) public pure {
        State memory first = State(
            state.deposited, _best(state, one, isOneSigned), state.closeAt, state.round
        );
        State memory second =
            State(state.deposited, _best(state, other, isOtherSigned), state.closeAt, state.round);
        assert(_best(first, other, isOtherSigned) == _best(second, one, isOneSigned));
    }

    /// The claimed sum after a claim.
    function _best(State memory state, PayChannels.Claim memory claim_, bool isSigned)
        private
        pure
        returns (uint128)
    {
        if (!isSigned || claim_.amount > claim_.cumulative) return state.claimed;
        uint128 target = claim_.amount < state.deposited ? claim_.amount : state.deposited;
        return target > state.claimed ? target : state.claimed;
    }

    // ------------------------------------------------------------------ deposit

    function check_a_top_up_lowers_nothing(
        PayChannels.Channel memory channel,
        uint128 amount,
        address caller,
        uint40 time
    ) public {
        Before memory before = _before(channel);
        _at(time);
        (bool ok,) = _call(caller, abi.encodeCall(PayChannels.deposit, (channel, amount)));
        if (!ok) return _unchanged(before);
        assert(caller == channel.payer);
        _toppedUp(before, channel, amount);
    }

    /// Brought by anyone. Whether it is the payer's word is for the token to say.
    function check_an_authorized_top_up_lowers_nothing(
        PayChannels.Channel memory channel,
        uint128 amount,
        address caller,
        uint40 time
    ) public {
        Before memory before = _before(channel);
        _at(time);
        bytes memory data =
            abi.encodeCall(PayChannels.depositWithAuthorization, (channel, amount, 0, time, bytes32(0), ""));
        (bool ok,) = _call(caller, data);
        if (!ok) return _unchanged(before);
        _toppedUp(before, channel, amount);
    }

    function _toppedUp(Before memory before, PayChannels.Channel memory channel, uint128 amount)
        private
        view
    {
        State memory state = _holds(before);
        unchecked {
            assert(token.balanceOf(channel.payer) + amount == before.payer);
            assert(amount != 0 && state.deposited == uint256(before.state.deposited) + amount);
        }
        assert(state.claimed == before.state.claimed);
        assert(state.closeAt == before.state.closeAt && state.round == before.state.round);
        assert(channel.closeDelay >= 1 hours && channel.closeDelay <= 30 days);
        assert(channel.payer != address(0) && channel.payee != address(0) && channel.signer != address(0));
    }

    // -------------------------------------------------------------------- close

    function check_a_close_is_for_the_payee_and_refunds_the_payer(
        PayChannels.Claim memory claim_,
        address caller,
        uint40 time
    ) public {
        Before memory before = _before(claim_.channel);
        _at(time);
        (bool ok, bytes memory answer) = _call(caller, abi.encodeCall(PayChannels.close, (claim_)));
        if (!ok) return _unchanged(before);
        assert(caller == claim_.channel.payee);
        _closed(before, claim_, answer, time);
    }

    function check_a_signed_close_is_the_payees_word_on_this_deposit_and_round(
        PayChannels.Claim memory claim_,
        PayChannels.Consent memory consent,
        address caller,
        uint40 time
    ) public {
        Before memory before = _before(claim_.channel);
        _at(time);
        (bool ok, bytes memory answer) =
            _call(caller, abi.encodeCall(PayChannels.closeBySignature, (claim_, consent)));
        if (!ok) return _unchanged(before);
        bytes32 digest = Words.close(
            address(channels),
            before.id,
            claim_.amount,
            before.state.deposited,
            before.state.round,
            consent.deadline
        );
        address signer = _recovered(digest, consent.r, consent.vs);
        assert(signer == claim_.channel.payee && signer != address(0) && time <= consent.deadline);
        assert(before.state.claimed <= claim_.amount);
        _closed(before, claim_, answer, time);
    }

    function _closed(Before memory before, PayChannels.Claim memory claim_, bytes memory answer, uint40 time)
        private
        view
    {
        (uint128 paid, uint128 refund) = abi.decode(answer, (uint128, uint128));
        // Balances are compared with the answer, and the answer with what is due at the very end: a solver that knows
        // what is due spends its time on this sum.
        unchecked {
            assert(token.balanceOf(claim_.channel.payee) == before.payee + paid);
            assert(token.balanceOf(claim_.channel.payer) == before.payer + refund);
        }
        State memory state = _holds(before);
        if (state.closeAt == 0) {
            assert(state.deposited == state.claimed);
            unchecked {
                assert(state.round == uint24(before.state.round + 1));
            }
            assert(refund == before.state.deposited - state.claimed);
        } else {
            // The token refused the refund: all of it may be withdrawn at once.
            assert(refund == 0 && state.deposited == before.state.deposited && state.closeAt == time);
            assert(state.round == before.state.round);
        }
        assert(state.claimed == before.state.claimed + paid);
        assert(paid == _due(before.state, claim_, _isSigned(claim_, before.id)));
    }

    function check_a_close_is_requested_by_payer_or_signer(
        PayChannels.Channel memory channel,
        address caller,
        uint40 time
    ) public {
        Before memory before = _before(channel);
        _at(time);
        vm.assume(channel.closeDelay <= 30 days);
        (bool ok,) = _call(caller, abi.encodeCall(PayChannels.requestClose, (channel)));
        bool isTheirs = caller == channel.payer || caller == channel.signer;
        assert(!ok || isTheirs);
        if (ok) return _requested(before, channel, time);
        _unchanged(before);
        assert(!isTheirs || before.state.closeAt != 0 || before.state.deposited == before.state.claimed);
    }

    function check_a_close_is_requested_by_the_word_of_payer_or_signer(
        PayChannels.Channel memory channel,
        PayChannels.Consent memory consent,
        address caller,
        uint40 time
    ) public {
        Before memory before = _before(channel);
        _at(time);
        (bool ok,) = _call(caller, abi.encodeCall(PayChannels.requestCloseBySignature, (channel, consent)));
        if (!ok) return _unchanged(before);
        bytes32 digest =
            Words.requestClose(address(channels), before.id, before.state.round, consent.deadline);
        address signer = _recovered(digest, consent.r, consent.vs);
        assert(signer != address(0) && (signer == channel.payer || signer == channel.signer));
        assert(time <= consent.deadline);
        _requested(before, channel, time);
    }

    function _requested(Before memory before, PayChannels.Channel memory channel, uint40 time) private view {
        State memory state = _holds(before);
        assert(before.state.closeAt == 0 && state.closeAt == uint256(time) + channel.closeDelay);
        assert(state.deposited == before.state.deposited && state.claimed == before.state.claimed);
        assert(state.round == before.state.round);
        assert(token.balanceOf(address(channels)) == before.escrow);
    }

    // ----------------------------------------------------------------- withdraw

    function check_a_withdrawal_after_the_delay_sends_the_rest_to_the_payer(
        PayChannels.Channel memory channel,
        address caller,
        uint40 time
    ) public {
        Before memory before = _before(channel);
        _at(time);
        (bool ok, bytes memory answer) = _call(caller, abi.encodeCall(PayChannels.withdraw, (channel)));
        if (!ok) return _unchanged(before);
        assert(before.state.closeAt != 0 && time >= before.state.closeAt);
        State memory state = _holds(before);
        uint128 rest = before.state.deposited - before.state.claimed;
        assert(abi.decode(answer, (uint128)) == rest);
        assert(
            state.claimed == before.state.claimed && state.deposited == state.claimed && state.closeAt == 0
        );
        unchecked {
            assert(state.round == uint24(before.state.round + 1));
            assert(token.balanceOf(channel.payer) == before.payer + rest);
        }
        assert(token.balanceOf(channel.payee) == before.payee);
    }

    function check_nobody_can_stop_a_withdrawal(
        PayChannels.Channel memory channel,
        address caller,
        uint40 time
    ) public {
        Before memory before = _before(channel);
        _honest(channel);
        _at(time);
        vm.assume(before.state.closeAt != 0 && time >= before.state.closeAt);
        (bool ok,) = _call(caller, abi.encodeCall(PayChannels.withdraw, (channel)));
        assert(ok);
    }
}
