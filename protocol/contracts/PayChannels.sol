// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

/// What this contract needs of an EIP-3009 token such as USDC.
interface IToken {
    function balanceOf(address account) external view returns (uint256);
    function transfer(address to, uint256 value) external returns (bool);
    function transferFrom(address from, address to, uint256 value) external returns (bool);
    function receiveWithAuthorization(
        address from,
        address to,
        uint256 value,
        uint256 validAfter,
        uint256 validBefore,
        bytes32 nonce,
        bytes calldata signature
    ) external;
}

/// @title One-way payment channels with cumulative vouchers.
///
/// In the order things happen: the payer *deposits*; off the chain its signer hands the payee vouchers,
/// each worth the whole sum so far; the payee *claims* what it charged, many channels at a time; in the
/// end the payee *closes*, or the payer *requests the close* and after the channel's delay the rest is
/// *withdrawn* to it. Close and request may also be signed, and relayed by anyone who pays for the gas.
///
/// Nobody owns this contract: no fee, no pause, no upgrade, no constructor argument and no immutable, so
/// address and runtime code are the same on every chain and a node can compare the code hash.
///
/// Per channel `deposited` and `claimed` are running totals; what the channel still holds is their
/// difference. `claimed` never decreases: closing and withdrawing lower `deposited` to `claimed`, so a
/// voucher is worth its value once, also when the same channel is filled again. `round` counts how often
/// the channel was emptied; a signed close or request names it, so it ends with the round it was made for.
///
/// Invariants (proved by `tests/contracts/tests/contracts/invariants.rs`):
///  M1  tokens only move: balances plus escrow are constant;
///  M2  escrow >= sum of (deposited - claimed) over all channels of a token;
///  M3  claimed <= highest signed, claimed <= deposited, claimed never decreases.
contract PayChannels {
    /// The terms of a channel. They never change: other terms are another channel.
    struct Channel {
        address payer; // deposits, and receives every refund
        address payee; // the only one who claims and closes
        address token;
        address signer; // signs the vouchers; a plain key, often the payer's own
        uint40 closeDelay; // seconds the payee has to claim after the payer asks to close
        bytes32 salt; // tells apart channels with equal terms
    }

    /// A voucher with the part of it that the payee claims.
    struct Claim {
        Channel channel;
        uint128 cumulative; // what the signer signed: everything promised on the channel so far
        uint128 amount; // what the payee charged so far, at most `cumulative`
        bytes32 r; // the voucher's signature in the compact form of EIP-2098
        bytes32 vs;
    }

    /// A word of the payee, or of payer or signer, that anyone may bring.
    struct Consent {
        uint40 deadline; // the last second in which it counts
        bytes32 r; // its signature in the compact form of EIP-2098
        bytes32 vs;
    }

    /// One storage slot. 2^96 units are 7e22 USDC, so the narrow totals bound nothing real.
    struct State {
        uint96 deposited;
        uint96 claimed;
        uint40 closeAt; // 0, or the second from which the rest may be withdrawn
        uint24 round; // how often the channel was emptied
    }

    /// Every deposit repeats the terms, so that either side can rebuild its channels from logs alone.
    /// Payer, payee and token are the topics of all events: whoever asks for its own channels in the token
    /// it trusts is not sent what others emit with a token of theirs.
    event Deposited(
        address indexed payer,
        address indexed payee,
        address indexed token,
        bytes32 channelId,
        address signer,
        uint40 closeDelay,
        bytes32 salt,
        uint128 amount,
        uint128 deposited
    );
    event Claimed(
        address indexed payer,
        address indexed payee,
        address indexed token,
        bytes32 channelId,
        uint128 amount,
        uint128 claimed
    );
    event CloseRequested(
        address indexed payer,
        address indexed payee,
        address indexed token,
        bytes32 channelId,
        uint40 closeAt
    );
    event Closed(
        address indexed payer,
        address indexed payee,
        address indexed token,
        bytes32 channelId,
        uint128 refund
    );
    event Withdrawn(
        address indexed payer,
        address indexed payee,
        address indexed token,
        bytes32 channelId,
        uint128 refund
    );
    /// The payee closed but the token refused the refund. It may be withdrawn from now on.
    event RefundKept(
        address indexed payer,
        address indexed payee,
        address indexed token,
        bytes32 channelId,
        uint128 refund
    );

    error NotPayer();
    error NotPayee();
    error NotPayerOrSigner();
    error Expired();
    error Outdated();
    error BadConsent();
    error BadTerms();
    error NothingReceived();
    error DepositTooLarge();
    error AmountAboveVoucher();
    error NothingToClaim();
    error BadSignature();
    error NotOpen();
    error CloseAlreadyRequested();
    error TooEarly();
    error TransferFailed();
    error Reentered();

    bytes32 private constant DOMAIN_TYPEHASH =
        keccak256("EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)");
    bytes32 private constant NAME_HASH = keccak256("Farthing PayChannels");
    bytes32 private constant VERSION_HASH = keccak256("1");
    bytes32 private constant CHANNEL_TYPEHASH = keccak256(
        "Channel(address payer,address payee,address token,address signer,uint40 closeDelay,bytes32 salt)"
    );
    bytes32 private constant VOUCHER_TYPEHASH = keccak256("Voucher(bytes32 channelId,uint128 cumulative)");
    bytes32 private constant CLOSE_TYPEHASH = keccak256(
        "Close(bytes32 channelId,uint128 amount,uint128 deposited,uint24 round,uint40 deadline)"
    );
    bytes32 private constant REQUEST_CLOSE_TYPEHASH =
        keccak256("RequestClose(bytes32 channelId,uint24 round,uint40 deadline)");

    /// Long enough for a payee that was offline to claim, short enough not to hold the payer hostage.
    uint40 public constant CLOSE_DELAY_MIN = 1 hours;
    uint40 public constant CLOSE_DELAY_MAX = 30 days;

    /// Half the order of secp256k1: a larger `s` is the malleable twin of a valid signature.
    uint256 private constant S_MAX = 0x7FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF5D576E7357A4501DDFE92F46681B20A0;

    mapping(bytes32 channelId => State) private _states;
    uint256 private transient _entered; // 0 or 1; a whole word, because a narrower one costs a read per write

    /// Deposits are counted by balance difference, so no other entry may run while a token is called.
    modifier exclusive() {
        if (_entered != 0) revert Reentered();
        _entered = 1;
        _;
        _entered = 0;
    }

    // ---------------------------------------------------------------- deposit

    /// Opens the channel or adds to it, from the payer's allowance. Payer only.
    function deposit(Channel calldata channel, uint128 amount) external exclusive returns (bytes32 id) {
        if (msg.sender != channel.payer) revert NotPayer();
        id = _openableId(channel);
        uint256 before = _balance(channel.token);
        if (!_call(channel.token, abi.encodeCall(IToken.transferFrom, (channel.payer, address(this), amount)))) {
            revert TransferFailed();
        }
        _credit(channel, id, before);
    }

    /// Opens the channel or adds to it with the payer's EIP-3009 ReceiveWithAuthorization, whose nonce
    /// must be `keccak256(abi.encode(channelId, authSalt))`. Anyone may relay it: the nonce binds the
    /// money to this channel, and a pending close stays exactly as it is.
    function depositWithAuthorization(
        Channel calldata channel,
        uint128 amount,
        uint256 validAfter,
        uint256 validBefore,
        bytes32 authSalt,
        bytes calldata signature
    ) external exclusive returns (bytes32 id) {
        id = _openableId(channel);
        uint256 before = _balance(channel.token);
        IToken(channel.token).receiveWithAuthorization(
            channel.payer,
            address(this),
            amount,
            validAfter,
            validBefore,
            keccak256(abi.encode(id, authSalt)),
            signature
        );
        _credit(channel, id, before);
    }

    // ------------------------------------------------------------------ claim

    /// Pays the payee up to `claim_.amount`, clamped to the deposit. Payee only.
    function claim(Claim calldata claim_) external exclusive returns (uint128 paid) {
        if (msg.sender != claim_.channel.payee) revert NotPayee();
        bytes4 refusal;
        (, paid, refusal) = _settle(claim_, DOMAIN_SEPARATOR());
        if (paid == 0) _revertWith(refusal);
        _pay(claim_.channel.token, msg.sender, paid);
    }

    /// Claims on many channels of one token with one transfer. A row that cannot pay (drained, stale,
    /// badly signed, of another payee or token) is skipped and emits nothing. It never reverts the
    /// others, so no payer can block the payee's income from the rest.
    function claimMany(address token, Claim[] calldata claims) external exclusive returns (uint256 paid) {
        bytes32 separator = DOMAIN_SEPARATOR();
        for (uint256 i; i < claims.length; ++i) {
            Channel calldata channel = claims[i].channel;
            if (channel.token != token || channel.payee != msg.sender) continue;
            (, uint128 rowPaid,) = _settle(claims[i], separator);
            paid += rowPaid;
        }
        if (paid != 0) _pay(token, msg.sender, paid);
    }

    // ------------------------------------------------------------------ close

    /// Final claim and immediate refund of the rest to the payer. Payee only. A claim that adds nothing
    /// (amount at most what is claimed, for example 0) needs no signature. When the token refuses the
    /// refund, say because the payer is blacklisted, the payee is paid all the same and the rest stays
    /// withdrawable at once.
    function close(Claim calldata claim_) external exclusive returns (uint128 paid, uint128 refund) {
        if (msg.sender != claim_.channel.payee) revert NotPayee();
        return _close(claim_, DOMAIN_SEPARATOR());
    }

    /// The same by the payee's signature, brought by anyone. The payee signs the total it ends with,
    /// `claim_.amount`, and the deposit it saw. Its word is void once the channel was topped up, emptied,
    /// or claimed beyond that total: nothing the payee earned later goes back to the payer.
    function closeBySignature(Claim calldata claim_, Consent calldata consent)
        external
        exclusive
        returns (uint128 paid, uint128 refund)
    {
        bytes32 separator = DOMAIN_SEPARATOR();
        bytes32 id = _channelId(claim_.channel, separator);
        State memory state_ = _states[id];
        if (state_.claimed > claim_.amount) revert Outdated();
        bytes32 structHash = keccak256(
            abi.encode(CLOSE_TYPEHASH, id, claim_.amount, state_.deposited, state_.round, consent.deadline)
        );
        address signer = _consenter(structHash, separator, consent);
        if (signer != claim_.channel.payee) revert BadConsent();
        return _close(claim_, separator);
    }

    /// Starts the channel's delay, in which the payee may still claim. Payer or signer. It cannot be
    /// repeated, so the date neither moves nor restarts.
    function requestClose(Channel calldata channel) external exclusive returns (uint40 closeAt) {
        if (msg.sender != channel.payer && msg.sender != channel.signer) revert NotPayerOrSigner();
        return _requestClose(channel, channelId(channel));
    }

    /// The same by the signature of payer or signer, brought by anyone. It counts in one round only: brought
    /// again after the channel was emptied and filled anew, it is refused.
    function requestCloseBySignature(Channel calldata channel, Consent calldata consent)
        external
        exclusive
        returns (uint40 closeAt)
    {
        bytes32 separator = DOMAIN_SEPARATOR();
        bytes32 id = _channelId(channel, separator);
        bytes32 structHash =
            keccak256(abi.encode(REQUEST_CLOSE_TYPEHASH, id, _states[id].round, consent.deadline));
        address signer = _consenter(structHash, separator, consent);
        if (signer != channel.payer && signer != channel.signer) revert BadConsent();
        return _requestClose(channel, id);
    }

    /// Refunds what is left to the payer once the delay is over, and ends the pending close. Anyone may: the
    /// money goes to the payer.
    function withdraw(Channel calldata channel) external exclusive returns (uint128 refund) {
        bytes32 id = channelId(channel);
        State memory state_ = _states[id];
        if (state_.closeAt == 0) revert NotOpen();
        if (block.timestamp < state_.closeAt) revert TooEarly();
        refund = state_.deposited - state_.claimed;
        _states[id] = _emptied(state_);
        emit Withdrawn(channel.payer, channel.payee, channel.token, id, refund);
        if (refund != 0) _pay(channel.token, channel.payer, refund);
    }

    // ------------------------------------------------------------------ views

    /// The EIP-712 digest of the terms: it binds the chain and this contract, and so does every voucher.
    function channelId(Channel calldata channel) public view returns (bytes32) {
        return _channelId(channel, DOMAIN_SEPARATOR());
    }

    /// Running totals, the second from which the rest may be withdrawn (0: no close is pending), and how
    /// often the channel was emptied. A payee must not give new value on a channel whose `closeAt` is not 0.
    function state(bytes32 id)
        external
        view
        returns (uint128 deposited, uint128 claimed, uint40 closeAt, uint24 round)
    {
        State memory state_ = _states[id];
        return (state_.deposited, state_.claimed, state_.closeAt, state_.round);
    }

    /// Computed at every use: a cached one would be an immutable and make the code differ by chain.
    function DOMAIN_SEPARATOR() public view returns (bytes32) {
        return keccak256(abi.encode(DOMAIN_TYPEHASH, NAME_HASH, VERSION_HASH, block.chainid, address(this)));
    }

    // ---------------------------------------------------------------- helpers

    /// The id of a channel that may be filled. Terms are checked here alone: without a deposit nothing
    /// else has an effect. A zero signer would match a failed ecrecover.
    function _openableId(Channel calldata channel) private view returns (bytes32) {
        if (
            channel.payer == address(0) || channel.payee == address(0) || channel.signer == address(0)
                || channel.closeDelay < CLOSE_DELAY_MIN || channel.closeDelay > CLOSE_DELAY_MAX
        ) revert BadTerms();
        return channelId(channel);
    }

    /// Counts what arrived, not what was announced: a token may keep a fee.
    function _credit(Channel calldata channel, bytes32 id, uint256 before) private {
        uint256 received = _balance(channel.token) - before;
        if (received == 0) revert NothingReceived();
        State storage state_ = _states[id];
        uint256 deposited = state_.deposited + received;
        if (deposited > type(uint96).max) revert DepositTooLarge();
        state_.deposited = uint96(deposited);
        emit Deposited(
            channel.payer,
            channel.payee,
            channel.token,
            id,
            channel.signer,
            channel.closeDelay,
            channel.salt,
            uint128(received),
            uint128(deposited)
        );
    }

    /// Books one claim that the payee wants and returns what is now owed to it, or 0 and the reason. The
    /// cheap checks stand first. Moves no token.
    function _settle(Claim calldata claim_, bytes32 separator)
        private
        returns (bytes32 id, uint128 paid, bytes4 refusal)
    {
        Channel calldata channel = claim_.channel;
        if (claim_.amount > claim_.cumulative) return (id, 0, AmountAboveVoucher.selector);

        id = _channelId(channel, separator);
        State storage state_ = _states[id];
        (uint96 deposited, uint96 claimed) = (state_.deposited, state_.claimed);
        uint96 target = claim_.amount < deposited ? uint96(claim_.amount) : deposited;
        if (target <= claimed) return (id, 0, NothingToClaim.selector);
        if (!_isSigned(claim_, id, separator)) return (id, 0, BadSignature.selector);

        state_.claimed = target;
        paid = target - claimed;
        emit Claimed(channel.payer, channel.payee, channel.token, id, paid, target);
    }

    function _close(Claim calldata claim_, bytes32 separator) private returns (uint128 paid, uint128 refund) {
        Channel calldata channel = claim_.channel;
        bytes4 refusal;
        bytes32 id;
        (id, paid, refusal) = _settle(claim_, separator);
        if (paid == 0 && refusal != NothingToClaim.selector) _revertWith(refusal);

        State memory state_ = _states[id];
        refund = state_.deposited - state_.claimed;
        if (paid == 0 && refund == 0 && state_.closeAt == 0) revert NotOpen();
        _states[id] = _emptied(state_);

        if (paid != 0) _pay(channel.token, channel.payee, paid);
        if (refund == 0 || _transfer(channel.token, channel.payer, refund)) {
            emit Closed(channel.payer, channel.payee, channel.token, id, refund);
        } else {
            state_.closeAt = uint40(block.timestamp);
            _states[id] = state_;
            emit RefundKept(channel.payer, channel.payee, channel.token, id, refund);
            refund = 0;
        }
    }

    function _requestClose(Channel calldata channel, bytes32 id) private returns (uint40 closeAt) {
        State storage state_ = _states[id];
        if (state_.deposited == state_.claimed) revert NotOpen();
        if (state_.closeAt != 0) revert CloseAlreadyRequested();
        closeAt = uint40(block.timestamp) + channel.closeDelay;
        state_.closeAt = closeAt;
        emit CloseRequested(channel.payer, channel.payee, channel.token, id, closeAt);
    }

    /// The state that starts the next round. The count may wrap: whoever wants an old signature to count again
    /// would have to empty the channel 2^24 times before its deadline.
    function _emptied(State memory state_) private pure returns (State memory) {
        unchecked {
            return State(state_.claimed, state_.claimed, 0, state_.round + 1);
        }
    }

    /// Who signed a consent that has not expired.
    function _consenter(bytes32 structHash, bytes32 separator, Consent calldata consent)
        private
        view
        returns (address signer)
    {
        if (block.timestamp > consent.deadline) revert Expired();
        signer = _recover(_digest(separator, structHash), consent.r, consent.vs);
        if (signer == address(0)) revert BadConsent();
    }

    function _isSigned(Claim calldata claim_, bytes32 id, bytes32 separator) private pure returns (bool) {
        bytes32 digest = _digest(separator, keccak256(abi.encode(VOUCHER_TYPEHASH, id, claim_.cumulative)));
        address recovered = _recover(digest, claim_.r, claim_.vs);
        return recovered != address(0) && recovered == claim_.channel.signer;
    }

    /// Plain ecrecover, zero when it fails. The code of an account is never asked: one that delegates later
    /// (EIP-7702) cannot void what its key has signed.
    function _recover(bytes32 digest, bytes32 r, bytes32 vs) private pure returns (address) {
        uint256 s = uint256(vs) & (type(uint256).max >> 1);
        if (s > S_MAX) return address(0);
        return ecrecover(digest, 27 + uint8(uint256(vs) >> 255), r, bytes32(s));
    }

    function _channelId(Channel calldata channel, bytes32 separator) private pure returns (bytes32) {
        return _digest(separator, keccak256(abi.encode(CHANNEL_TYPEHASH, channel)));
    }

    function _digest(bytes32 separator, bytes32 structHash) private pure returns (bytes32) {
        return keccak256(abi.encodePacked("\x19\x01", separator, structHash));
    }

    function _balance(address token) private view returns (uint256) {
        return IToken(token).balanceOf(address(this));
    }

    function _pay(address token, address to, uint256 amount) private {
        if (!_transfer(token, to, amount)) revert TransferFailed();
    }

    function _transfer(address token, address to, uint256 amount) private returns (bool) {
        return _call(token, abi.encodeCall(IToken.transfer, (to, amount)));
    }

    /// Calls a token that may return true, or nothing as some old ones do.
    function _call(address token, bytes memory data) private returns (bool) {
        (bool ok, bytes memory answer) = token.call(data);
        return ok && (answer.length == 0 || (answer.length >= 32 && abi.decode(answer, (uint256)) == 1));
    }

    function _revertWith(bytes4 selector) private pure {
        assembly ("memory-safe") {
            mstore(0, selector)
            revert(0, 4)
        }
    }
}
