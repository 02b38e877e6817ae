// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

import {PayChannels} from "shipped/PayChannels.sol";
import {TestUsdc} from "shipped/TestUsdc.sol";
import {HostileToken} from "fixtures/HostileToken.sol";
import {vm} from "../shared/Cheats.sol";
import {Checks} from "./Checks.sol";

/// @title The steps of a history.
///
/// Each step draws what it needs from `dice`, says by the ledger whether the contract must accept, makes the
/// call, and books what was answered. A refusal or an acceptance that the ledger does not expect reverts, which
/// ends the history as a failure.
contract Handler is Checks {
    /// A signed close or request, with what it was signed for.
    struct Word {
        uint256 channel;
        PayChannels.Claim claim_;
        uint128 deposited;
        uint24 round;
        uint40 deadline;
        bytes data;
    }

    /// How often the steps of a history did what they are there for.
    struct Counts {
        uint256 fills;
        uint256 claims;
        uint256 lastSecondClaims;
        uint256 rows;
        uint256 closes;
        uint256 signedCloses;
        uint256 keptRefunds;
        uint256 requests;
        uint256 signedRequests;
        uint256 withdrawals;
        uint256 refused;
        uint256 oldWordsRefused;
        uint256 reentries;
    }

    uint256 public steps;
    Counts internal counts_;
    /// The time is kept here: block values that a cheatcode sets may not outlive a step.
    uint256 internal now_ = 1_800_000_000;
    bytes32 private _dice;
    uint256 private _authorizations;
    Word[] private _closes;
    Word[] private _requests;

    modifier step(uint256 dice) {
        ++steps;
        _dice = keccak256(abi.encode(dice, steps));
        _waitUntil(now_ + 1 + _below(15 minutes));
        _remember();
        _;
    }

    function counts() external view returns (Counts memory) {
        return counts_;
    }

    // ------------------------------------------------------------------ deposit

    function fill(uint256 dice) external step(dice) {
        uint256 c = _below(CHANNELS);
        uint128 amount = uint128(_below(4_000));
        _fill(c, amount, terms[c].payer, abi.encodeCall(PayChannels.deposit, (terms[c], amount)));
    }

    function fillSigned(uint256 dice) external step(dice) {
        uint256 c = _below(CHANNELS);
        uint128 amount = uint128(_below(4_000));
        bytes memory data = _authorization(c, amount, bytes32(++_authorizations));
        if (_fill(c, amount, stranger, data) && tokenOf[c] <= BARRING) {
            // The same words again are worth nothing.
            _refused(c, stranger, data);
        }
    }

    function _fill(uint256 c, uint128 amount, address caller, bytes memory data) private returns (bool fits) {
        uint256 token = tokenOf[c];
        fits = amount > _fee(token) && _canMove(token, terms[c].payer, escrow, amount);
        bytes memory answer = _expect(c, caller, data, fits);
        if (!fits) return false;
        require(abi.decode(answer, (bytes32)) == ids[c], "a deposit went to another channel");
        _moved(token, terms[c].payer, escrow, amount);
        ghosts[c].received += amount - uint128(_fee(token));
        ++counts_.fills;
    }

    // -------------------------------------------------------------------- claim

    function claim(uint256 dice) external step(dice) {
        _claim(_filled());
    }

    /// A payee may claim until a withdrawal has happened: in the last second of the delay, and after it.
    function claimAtTheEnd(uint256 dice) external step(dice) {
        uint256 c = _pending();
        uint256 closeAt = ghosts[c].closeAt;
        if (closeAt != 0) _waitUntil(closeAt - 1);
        if (_claim(c) && now_ + 1 == closeAt) ++counts_.lastSecondClaims;
    }

    function _claim(uint256 c) private returns (bool fits) {
        PayChannels.Claim memory claim_ = _anyClaim(c);
        uint128 due = claim_.amount <= claim_.cumulative ? _due(c, claim_.amount) : 0;
        address payee = terms[c].payee;
        fits = due != 0 && _canMove(tokenOf[c], escrow, payee, due);
        bytes memory data = abi.encodeCall(PayChannels.claim, (claim_));
        bytes memory answer = _expect(c, payee, data, fits);
        if (!fits) return false;
        require(abi.decode(answer, (uint128)) == due, "a claim paid something else than what is due");
        _paid(c, due);
        ++counts_.claims;
        // Nobody is paid twice for one voucher.
        _refused(c, payee, data);
    }

    /// Rows of all channels of a token, one of them twice, and one of another token. Forged rows, foreign
    /// rows and rows that cannot pay stop none of the others.
    function claimMany(uint256 dice) external step(dice) {
        uint256 c = _below(CHANNELS);
        uint256 token = tokenOf[c];
        address payee = terms[c].payee;
        PayChannels.Claim[] memory claims = new PayChannels.Claim[](6);
        uint128[] memory dues = new uint128[](6);
        uint256[6] memory rows = [0, 0, 0, 0, c, (c + PER_TOKEN) % CHANNELS];
        uint128[CHANNELS] memory owed;
        uint128 total;
        for (uint256 i; i < 6; ++i) {
            if (i < PER_TOKEN) rows[i] = token * PER_TOKEN + i;
            uint256 row = rows[i];
            claims[i] = _anyClaim(row);
            bool forged = _below(6) == 0;
            if (forged) claims[i].vs = claims[i].r;
            bool isOwn = tokenOf[row] == token && terms[row].payee == payee;
            if (forged || !isOwn || claims[i].amount > claims[i].cumulative) continue;
            uint128 due = _due(row, claims[i].amount);
            dues[i] = due > owed[row] ? due - owed[row] : 0;
            owed[row] += dues[i];
            total += dues[i];
        }
        bool fits = total == 0 || _canMove(token, escrow, payee, total);
        bytes memory data = abi.encodeCall(PayChannels.claimMany, (terms[c].token, claims));
        bytes memory answer = _expect(c, payee, data, fits);
        if (!fits || total == 0) return;
        require(abi.decode(answer, (uint256)) == total, "a batch paid something else than what is due");
        _moved(token, escrow, payee, total);
        for (uint256 i; i < 6; ++i) {
            ghosts[rows[i]].paid += dues[i];
            if (dues[i] != 0) ++counts_.rows;
        }
    }

    // -------------------------------------------------------------------- close

    function close(uint256 dice) external step(dice) {
        uint256 c = _filled();
        PayChannels.Claim memory claim_ = _anyClaim(c);
        if (_close(c, claim_, terms[c].payee, abi.encodeCall(PayChannels.close, (claim_)), true)) {
            ++counts_.closes;
        }
    }

    /// Of a payer that may not be paid: the payee is, and the rest waits.
    function closeOfBarred(uint256 dice) external step(dice) {
        uint256 c = BARRING * PER_TOKEN + _below(PER_TOKEN);
        address payer = terms[c].payer;
        if (barred != payer) _bar(payer);
        PayChannels.Claim memory claim_ = _anyClaim(c);
        _close(c, claim_, terms[c].payee, abi.encodeCall(PayChannels.close, (claim_)), true);
        if (_below(2) == 0) _bar(address(0));
    }

    /// The payee's word on the channel as it is, or an old one, brought by anyone.
    function closeBySignature(uint256 dice) external step(dice) {
        bool isOld = _closes.length != 0 && _below(3) == 0;
        if (!isOld) _signClose(_filled());
        Word memory word = _closes[isOld ? _below(_closes.length) : _closes.length - 1];
        uint256 c = word.channel;
        bool isCurrent = word.deadline >= now_ && word.deposited == _deposited(c)
            && word.round == ghosts[c].round && ghosts[c].paid <= word.claim_.amount;
        bool closed = _close(c, word.claim_, _anyone(c), word.data, isCurrent);
        if (closed) ++counts_.signedCloses;
        else if (isOld) ++counts_.oldWordsRefused;
    }

    function _signClose(uint256 c) private {
        PayChannels.Claim memory claim_ = _anyClaim(c);
        uint256 key = keys[terms[c].payee];
        // The token has no key; whoever signs for it does so in vain.
        uint40 deadline = key == 0 ? 0 : uint40(now_ + _below(6 hours));
        PayChannels.Consent memory consent =
            _closeWord(key == 0 ? keys[stranger] : key, c, claim_.amount, deadline);
        bytes memory data = abi.encodeCall(PayChannels.closeBySignature, (claim_, consent));
        _closes.push(Word(c, claim_, _deposited(c), ghosts[c].round, deadline, data));
    }

    function _close(
        uint256 c,
        PayChannels.Claim memory claim_,
        address caller,
        bytes memory data,
        bool isAllowed
    ) private returns (bool closed) {
        (uint256 token, address payer) = (tokenOf[c], terms[c].payer);
        uint128 paid = _due(c, claim_.amount);
        uint128 refund = _deposited(c) - ghosts[c].paid - paid;
        bool fits = isAllowed && claim_.amount <= claim_.cumulative
            && (paid != 0 || refund != 0 || ghosts[c].closeAt != 0)
            && (paid == 0 || _canMove(token, escrow, terms[c].payee, paid));
        bytes memory answer = _expect(c, caller, data, fits);
        if (!fits) return false;
        if (paid != 0) _paid(c, paid);
        closed = refund == 0 || _canMove(token, escrow, payer, refund);
        (uint128 paid_, uint128 refund_) = abi.decode(answer, (uint128, uint128));
        require(paid_ == paid && refund_ == (closed ? refund : 0), "a close paid something else");
        if (closed) {
            _emptied(c, refund);
        } else {
            ghosts[c].closeAt = uint40(now_);
            ++counts_.keptRefunds;
        }
    }

    function requestClose(uint256 dice) external step(dice) {
        uint256 c = _filled();
        address caller = _below(2) == 0 ? terms[c].payer : terms[c].signer;
        if (_request(c, caller, abi.encodeCall(PayChannels.requestClose, (terms[c])), true)) {
            ++counts_.requests;
        }
    }

    function requestCloseBySignature(uint256 dice) external step(dice) {
        bool isOld = _requests.length != 0 && _below(2) == 0;
        if (!isOld) _signRequest(_filled());
        Word memory word = _requests[isOld ? _below(_requests.length) : _requests.length - 1];
        uint256 c = word.channel;
        bool requested =
            _request(c, _anyone(c), word.data, word.deadline >= now_ && word.round == ghosts[c].round);
        if (requested) ++counts_.signedRequests;
        else if (isOld) ++counts_.oldWordsRefused;
    }

    function _signRequest(uint256 c) private {
        uint256 key = keys[_below(2) == 0 ? terms[c].payer : terms[c].signer];
        if (key == 0) key = keys[terms[c].signer];
        uint40 deadline = uint40(now_ + _below(1 days));
        bytes memory data =
            abi.encodeCall(PayChannels.requestCloseBySignature, (terms[c], _requestWord(key, c, deadline)));
        PayChannels.Claim memory none;
        _requests.push(Word(c, none, 0, ghosts[c].round, deadline, data));
    }

    function _request(uint256 c, address caller, bytes memory data, bool isAllowed)
        private
        returns (bool fits)
    {
        fits = isAllowed && _deposited(c) != ghosts[c].paid && ghosts[c].closeAt == 0;
        bytes memory answer = _expect(c, caller, data, fits);
        if (!fits) return false;
        uint40 closeAt = uint40(now_) + terms[c].closeDelay;
        require(abi.decode(answer, (uint40)) == closeAt, "a close is pending for another time than its delay");
        ghosts[c].closeAt = closeAt;
    }

    /// Mostly waits for the end of a pending delay, to the very second or one second short of it.
    function withdraw(uint256 dice) external step(dice) {
        uint256 c = _below(6) == 0 ? _below(CHANNELS) : _pending();
        uint256 closeAt = ghosts[c].closeAt;
        if (closeAt != 0) _waitUntil(closeAt - (_below(4) == 0 ? 1 : 0));
        uint128 refund = _deposited(c) - ghosts[c].paid;
        bool fits = closeAt != 0 && now_ >= closeAt
            && (refund == 0 || _canMove(tokenOf[c], escrow, terms[c].payer, refund));
        bytes memory answer = _expect(c, _anyone(c), abi.encodeCall(PayChannels.withdraw, (terms[c])), fits);
        if (!fits) return;
        require(abi.decode(answer, (uint128)) == refund, "a withdrawal paid something else than the rest");
        _emptied(c, refund);
        if (refund != 0) ++counts_.withdrawals;
    }

    // ------------------------------------------------------------------- others

    function bar(uint256 dice) external step(dice) {
        _bar(barred == address(0) ? accounts[_below(5)] : address(0));
    }

    /// Money that came in by no deposit belongs to nobody.
    function give(uint256 dice) external step(dice) {
        uint256 token = _below(TOKENS);
        if (!_canMove(token, stranger, escrow, 5)) return;
        HostileToken(tokens[REENTERING]).setHook(address(0), "");
        vm.prank(stranger);
        HostileToken(tokens[token]).transfer(escrow, 5);
        _moved(token, stranger, escrow, 5);
        gifts[token] += 5 - _fee(token);
    }

    /// What must be refused in every state.
    function attack(uint256 dice) external step(dice) {
        uint256 c = _below(CHANNELS);
        PayChannels.Channel memory channel = terms[c];
        PayChannels.Claim memory claim_ = _anyClaim(c);
        PayChannels.Claim memory forged = _voucherBy(keys[stranger], c, type(uint128).max, type(uint128).max);
        // Signed by the right key for another channel, or for less.
        PayChannels.Claim memory foreign = _voucher((c + 1) % CHANNELS, 4_000, 4_000);
        foreign.channel = channel;
        PayChannels.Claim memory raised = _voucher(c, claim_.cumulative, claim_.cumulative);
        raised.cumulative += 1;
        raised.amount += 1;
        uint256 kind = _below(10);
        if (kind == 0) return _refused(c, stranger, abi.encodeCall(PayChannels.claim, (claim_)));
        if (kind == 1) return _refused(c, channel.payer, abi.encodeCall(PayChannels.close, (claim_)));
        if (kind == 2) {
            PayChannels.Consent memory consent = _closeWord(keys[stranger], c, claim_.amount, NEVER);
            bytes memory data = abi.encodeCall(PayChannels.closeBySignature, (claim_, consent));
            return _refused(c, channel.payer, data);
        }
        if (kind == 3) {
            return _refused(c, channel.payee, abi.encodeCall(PayChannels.requestClose, (channel)));
        }
        if (kind == 4) {
            PayChannels.Consent memory consent = _requestWord(keys[accounts[3]], c, NEVER);
            bytes memory data = abi.encodeCall(PayChannels.requestCloseBySignature, (channel, consent));
            return _refused(c, channel.payee, data);
        }
        if (kind == 5) return _refused(c, stranger, abi.encodeCall(PayChannels.deposit, (channel, 10)));
        if (kind == 6) {
            channel.closeDelay = 1 hours - 1;
            return _refused(c, channel.payer, abi.encodeCall(PayChannels.deposit, (channel, 10)));
        }
        if (kind == 7) return _refused(c, channel.payee, abi.encodeCall(PayChannels.claim, (foreign)));
        if (kind == 8) return _refused(c, channel.payee, abi.encodeCall(PayChannels.claim, (raised)));
        _refused(c, channel.payee, abi.encodeCall(PayChannels.claim, (forged)));
    }

    // ------------------------------------------------------------------ helpers

    function _below(uint256 bound) private returns (uint256) {
        _dice = keccak256(abi.encode(_dice));
        return uint256(_dice) % bound;
    }

    function _waitUntil(uint256 time) private {
        if (time > now_) now_ = time;
        vm.warp(now_);
    }

    /// A channel with a pending close, or any if there is none.
    function _pending() private returns (uint256) {
        uint256 first = _below(CHANNELS);
        for (uint256 i; i < CHANNELS; ++i) {
            uint256 c = (first + i) % CHANNELS;
            if (ghosts[c].closeAt != 0) return c;
        }
        return first;
    }

    /// Mostly a channel that still holds something.
    function _filled() private returns (uint256) {
        uint256 first = _below(CHANNELS);
        if (_below(4) == 0) return first;
        for (uint256 i; i < CHANNELS; ++i) {
            uint256 c = (first + i) % CHANNELS;
            if (_deposited(c) > ghosts[c].paid) return c;
        }
        return first;
    }

    function _anyone(uint256 c) private returns (address) {
        address[4] memory all = [terms[c].payer, terms[c].payee, terms[c].signer, stranger];
        return all[_below(4)];
    }

    /// A voucher that the signer really signed: usually a new one, sometimes one for less than before, sometimes
    /// one far above the deposit. One in twelve payees asks for more than was signed.
    function _anyClaim(uint256 c) private returns (PayChannels.Claim memory) {
        uint256 kind = _below(10);
        uint256 cumulative = kind == 0
            ? _below(ghosts[c].highestSigned + 1)
            : (kind == 1 ? _deposited(c) : ghosts[c].paid) + _below(600);
        kind = _below(12);
        uint256 less = kind < 4 ? _below(300) : 0;
        uint256 amount = kind == 0 ? cumulative + 1 : cumulative > less ? cumulative - less : 0;
        return _voucher(c, uint128(cumulative), uint128(amount));
    }

    function _paid(uint256 c, uint128 amount) private {
        _moved(tokenOf[c], escrow, terms[c].payee, amount);
        ghosts[c].paid += amount;
    }

    function _emptied(uint256 c, uint128 refund) private {
        if (refund != 0) _moved(tokenOf[c], escrow, terms[c].payer, refund);
        ghosts[c].refunded += refund;
        ghosts[c].closeAt = 0;
        ++ghosts[c].round;
    }

    function _bar(address account) private {
        TestUsdc usdc = TestUsdc(tokens[BARRING]);
        if (barred != address(0)) usdc.unBlacklist(barred);
        if (account != address(0)) usdc.blacklist(account);
        barred = account;
    }

    function _refused(uint256 c, address caller, bytes memory data) private {
        _expect(c, caller, data, false);
    }

    function _expect(uint256 c, address caller, bytes memory data, bool fits) private returns (bytes memory) {
        HostileToken token = HostileToken(tokens[REENTERING]);
        uint256 before = token.hookCalls();
        if (tokenOf[c] == REENTERING) token.setHook(escrow, _reentry(c));
        vm.prank(caller);
        (bool ok, bytes memory answer) = escrow.call(data);
        if (token.hookCalls() != before) {
            ++counts_.reentries;
            require(!token.hookSucceeded(), "a transfer entered the contract again");
        }
        if (!ok) ++counts_.refused;
        require(ok || !fits, "the contract refused what it must accept");
        require(!ok || fits, "the contract accepted what it must refuse");
        return answer;
    }

    /// A call that the token makes while it moves money, and that would be right at another time.
    function _reentry(uint256 c) private returns (bytes memory) {
        uint256 own = REENTERING * PER_TOKEN + 3; // the token is its payee
        uint256 kind = _below(6);
        PayChannels.Claim memory claim_ = _voucher(own, _deposited(own), _deposited(own));
        if (kind == 0) return abi.encodeCall(PayChannels.claim, (claim_));
        if (kind == 1) return abi.encodeCall(PayChannels.close, (claim_));
        if (kind == 2) return abi.encodeCall(PayChannels.withdraw, (terms[c]));
        if (kind == 3) return abi.encodeCall(PayChannels.deposit, (terms[REENTERING * PER_TOKEN + 2], 7));
        if (kind == 4) return _authorization(c, 7, bytes32(c));
        PayChannels.Claim[] memory claims = new PayChannels.Claim[](1);
        claims[0] = claim_;
        return abi.encodeCall(PayChannels.claimMany, (claim_.channel.token, claims));
    }
}
