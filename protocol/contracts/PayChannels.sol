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
/// end the payee *closes*, or the payer *requests the close* and *withdraws* after the channel's delay.
///
/// Nobody owns this contract: no fee, no pause, no upgrade, no constructor argument and no immutable, so
/// address and runtime code are the same on every chain and a node can compare the code hash.
///
/// Per channel `deposited` and `claimed` are running totals; what the channel still holds is their
/// difference. `claimed` never decreases: closing and withdrawing lower `deposited` to `claimed`, so a
/// voucher is worth its value once, also when the same channel is filled again.
///
/// Invariants (proved by `tests/tests/contracts/invariants.rs`):
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

    /// One storage slot. 2^104 units are 2e25 USDC, so the narrow totals bound nothing real.
    struct State {
        uint104 deposited;
        uint104 claimed;
        uint40 closeAt; // 0, or the second from which the payer may withdraw
    }

    /// Every deposit repeats the terms, so that either side can rebuild its channels from logs alone.
    event Deposited(
        bytes32 indexed channelId,
        address indexed payer,
        address indexed payee,
        address token,
        address signer,
        uint40 closeDelay,
        bytes32 salt,
        uint128 amount,
        uint128 deposited
    );
    event Claimed(
        bytes32 indexed channelId, address indexed payer, address indexed payee, uint128 amount, uint128 claimed
    );
    event CloseRequested(
        bytes32 indexed channelId, address indexed payer, address indexed payee, uint40 closeAt
    );
    event Closed(bytes32 indexed channelId, address indexed payer, address indexed payee, uint128 refund);
    event Withdrawn(bytes32 indexed channelId, address indexed payer, address indexed payee, uint128 refund);
    /// The payee closed but the token refused the refund. The payer may withdraw it from now on.
    event RefundKept(bytes32 indexed channelId, address indexed payer, address indexed payee, uint128 refund);

    error NotPayer();
    error NotPayee();
    error NotPayerOrSigner();
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
        bytes4 refusal;
        (, paid, refusal) = _settle(claim_, DOMAIN_SEPARATOR());
        if (paid == 0) _revertWith(refusal);
        _pay(claim_.channel.token, paid);
    }

    /// Claims on many channels of one token with one transfer. A row that cannot pay (drained, stale,
    /// badly signed, of another payee or token) is skipped and emits nothing. It never reverts the
    /// others, so no payer can block the payee's income from the rest.
    function claimMany(address token, Claim[] calldata claims) external exclusive returns (uint256 paid) {
        bytes32 separator = DOMAIN_SEPARATOR();
        for (uint256 i; i < claims.length; ++i) {
            if (claims[i].channel.token != token) continue;
            (, uint128 rowPaid,) = _settle(claims[i], separator);
            paid += rowPaid;
        }
        if (paid != 0) _pay(token, paid);
    }

    // ------------------------------------------------------------------ close

    /// Final claim and immediate refund of the rest to the payer. Payee only. A claim that adds nothing
    /// (amount at most what is claimed, for example 0) needs no signature. When the token refuses the
    /// refund, say because the payer is blacklisted, the payee is paid all the same and the rest stays
    /// withdrawable at once.
    function close(Claim calldata claim_) external exclusive returns (uint128 paid, uint128 refund) {
        Channel calldata channel = claim_.channel;
        bytes4 refusal;
        bytes32 id;
        (id, paid, refusal) = _settle(claim_, DOMAIN_SEPARATOR());
        if (paid == 0 && refusal != NothingToClaim.selector) _revertWith(refusal);

        State memory state_ = _states[id];
        refund = state_.deposited - state_.claimed;
        if (paid == 0 && refund == 0 && state_.closeAt == 0) revert NotOpen();
        _states[id] = State(state_.claimed, state_.claimed, 0);

        if (paid != 0) _pay(channel.token, paid);
        if (refund == 0 || _call(channel.token, abi.encodeCall(IToken.transfer, (channel.payer, refund)))) {
            emit Closed(id, channel.payer, channel.payee, refund);
        } else {
            _states[id] = State(state_.deposited, state_.claimed, uint40(block.timestamp));
            emit RefundKept(id, channel.payer, channel.payee, refund);
            refund = 0;
        }
    }

    /// Starts the channel's delay, in which the payee may still claim. Payer or signer. It cannot be
    /// repeated, so the date neither moves nor restarts.
    function requestClose(Channel calldata channel) external exclusive returns (uint40 closeAt) {
        if (msg.sender != channel.payer && msg.sender != channel.signer) revert NotPayerOrSigner();
        bytes32 id = channelId(channel);
        State storage state_ = _states[id];
        if (state_.deposited == state_.claimed) revert NotOpen();
        if (state_.closeAt != 0) revert CloseAlreadyRequested();
        closeAt = uint40(block.timestamp) + channel.closeDelay;
        state_.closeAt = closeAt;
        emit CloseRequested(id, channel.payer, channel.payee, closeAt);
    }

    /// Refunds what is left to the payer once the delay is over, and ends the pending close. Payer or
    /// signer; the money goes to the payer in either case.
    function withdraw(Channel calldata channel) external exclusive returns (uint128 refund) {
        if (msg.sender != channel.payer && msg.sender != channel.signer) revert NotPayerOrSigner();
        bytes32 id = channelId(channel);
        State memory state_ = _states[id];
        if (state_.closeAt == 0) revert NotOpen();
        if (block.timestamp < state_.closeAt) revert TooEarly();
        refund = state_.deposited - state_.claimed;
        _states[id] = State(state_.claimed, state_.claimed, 0);
        emit Withdrawn(id, channel.payer, channel.payee, refund);
        if (refund != 0 && !_call(channel.token, abi.encodeCall(IToken.transfer, (channel.payer, refund)))) {
            revert TransferFailed();
        }
    }

    // ------------------------------------------------------------------ views

    /// The EIP-712 digest of the terms: it binds the chain and this contract, and so does every voucher.
    function channelId(Channel calldata channel) public view returns (bytes32) {
        return _channelId(channel, DOMAIN_SEPARATOR());
    }

    /// Running totals, and the second from which the payer may withdraw (0: no close is pending). A
    /// payee must not give new value on a channel whose `closeAt` is not 0.
    function state(bytes32 id) external view returns (uint128 deposited, uint128 claimed, uint40 closeAt) {
        State memory state_ = _states[id];
        return (state_.deposited, state_.claimed, state_.closeAt);
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
        if (deposited > type(uint104).max) revert DepositTooLarge();
        state_.deposited = uint104(deposited);
        emit Deposited(
            id,
            channel.payer,
            channel.payee,
            channel.token,
            channel.signer,
            channel.closeDelay,
            channel.salt,
            uint128(received),
            uint128(deposited)
        );
    }

    /// Books one claim and returns what is now owed to the payee, or 0 and the reason. The cheap checks
    /// stand first. Moves no token.
    function _settle(Claim calldata claim_, bytes32 separator)
        private
        returns (bytes32 id, uint128 paid, bytes4 refusal)
    {
        Channel calldata channel = claim_.channel;
        if (msg.sender != channel.payee) return (id, 0, NotPayee.selector);
        if (claim_.amount > claim_.cumulative) return (id, 0, AmountAboveVoucher.selector);

        id = _channelId(channel, separator);
        State storage state_ = _states[id];
        (uint104 deposited, uint104 claimed) = (state_.deposited, state_.claimed);
        uint104 target = claim_.amount < deposited ? uint104(claim_.amount) : deposited;
        if (target <= claimed) return (id, 0, NothingToClaim.selector);
        if (!_isSigned(claim_, id, separator)) return (id, 0, BadSignature.selector);

        state_.claimed = target;
        paid = target - claimed;
        emit Claimed(id, channel.payer, channel.payee, paid, target);
    }

    /// Plain ecrecover against the channel's fixed signer. The signer's code is never asked: an account
    /// that delegates later (EIP-7702) cannot void a voucher its key has signed.
    function _isSigned(Claim calldata claim_, bytes32 id, bytes32 separator) private pure returns (bool) {
        uint256 s = uint256(claim_.vs) & (type(uint256).max >> 1);
        if (s > S_MAX) return false;
        uint8 v = 27 + uint8(uint256(claim_.vs) >> 255);
        bytes32 digest = _digest(separator, keccak256(abi.encode(VOUCHER_TYPEHASH, id, claim_.cumulative)));
        address recovered = ecrecover(digest, v, claim_.r, bytes32(s));
        return recovered != address(0) && recovered == claim_.channel.signer;
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

    /// Pays the caller, who is the payee of every row that led here.
    function _pay(address token, uint256 amount) private {
        if (!_call(token, abi.encodeCall(IToken.transfer, (msg.sender, amount)))) revert TransferFailed();
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
