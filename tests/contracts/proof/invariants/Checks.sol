// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

import {World} from "./World.sol";

/// @title What holds after every step of every history.
///
/// The checks stand beside the ledger, not in the test, because a test would read it with a call for each word.
abstract contract Checks is World {
    uint128[CHANNELS] private _claimedBefore;

    function check() external view {
        State[CHANNELS] memory states;
        for (uint256 c; c < CHANNELS; ++c) {
            states[c] = _state(c);
            _claimsStayWithinVoucherAndDeposit(c, states[c]);
            _channelIsWhatItsPartiesDid(c, states[c]);
        }
        for (uint256 token; token < TOKENS; ++token) {
            _tokensOnlyMove(token);
            _escrowHoldsWhatChannelsHold(token, states);
        }
    }

    /// M1, and that money went where the ledger says: to the payee of a claim, to the payer of a refund.
    function _tokensOnlyMove(uint256 token) private view {
        uint256 total = kept[token];
        for (uint256 i; i < ACCOUNTS; ++i) {
            uint256 balance = _balance(token, accounts[i]);
            total += balance;
            require(balance == balances[token][accounts[i]], "money went to another account");
        }
        require(total == minted[token], "M1: balances and escrow are not what was minted");
    }

    function _escrowHoldsWhatChannelsHold(uint256 token, State[CHANNELS] memory states) private view {
        uint256 owed;
        for (uint256 c = token * PER_TOKEN; c < (token + 1) * PER_TOKEN; ++c) {
            owed += states[c].deposited - states[c].claimed;
        }
        uint256 held = _balance(token, escrow);
        require(held >= owed, "M2: the escrow holds less than its channels");
        require(held == owed + gifts[token], "money is stuck in the escrow");
    }

    function _claimsStayWithinVoucherAndDeposit(uint256 c, State memory state) private view {
        require(state.claimed <= state.deposited, "M3: claimed more than was deposited");
        require(state.claimed <= ghosts[c].highestSigned, "M3: claimed more than was signed");
        require(state.claimed >= _claimedBefore[c], "M3: claimed went down");
    }

    function _channelIsWhatItsPartiesDid(uint256 c, State memory state) private view {
        require(state.deposited == _deposited(c), "the deposit is not what came in and was not refunded");
        require(state.claimed == ghosts[c].paid, "claimed is not what the payee was paid");
        require(state.closeAt == ghosts[c].closeAt, "the time of a pending close is another");
        require(state.round == ghosts[c].round, "the round is another");
    }

    /// Keeps what the next check compares with.
    function _remember() internal {
        for (uint256 c; c < CHANNELS; ++c) {
            _claimedBefore[c] = _state(c).claimed;
        }
    }
}
