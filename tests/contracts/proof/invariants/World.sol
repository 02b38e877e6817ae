// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

import {PayChannels} from "shipped/PayChannels.sol";
import {TestUsdc} from "shipped/TestUsdc.sol";
import {HostileToken} from "fixtures/HostileToken.sol";
import {vm} from "../shared/Cheats.sol";
import {Words} from "../shared/Words.sol";

/// @title The contract with four tokens and sixteen channels, and a ledger of our own beside it.
///
/// The ledger is written from what the parties did and were told. The contract's storage is never copied into
/// it, so that the invariants compare two accounts of the same history.
abstract contract World {
    /// What the ledger knows of a channel.
    struct Ghost {
        uint128 received; // what deposits brought, less what the token kept
        uint128 paid; // to the payee
        uint128 refunded; // to the payer
        uint128 highestSigned; // by the channel's signer
        uint40 closeAt;
        uint24 round;
    }

    struct State {
        uint128 deposited;
        uint128 claimed;
        uint40 closeAt;
        uint24 round;
    }

    uint256 internal constant TOKENS = 4;
    uint256 internal constant PER_TOKEN = 4;
    uint256 internal constant CHANNELS = TOKENS * PER_TOKEN;
    uint256 internal constant ACCOUNTS = 10;
    // The tokens by their place.
    uint256 internal constant PLAIN = 0;
    uint256 internal constant BARRING = 1;
    uint256 internal constant WITH_FEE = 2;
    uint256 internal constant REENTERING = 3;
    uint256 internal constant FEE = 3;
    uint128 internal constant WEALTH = 1_000_000;
    uint40 internal constant NEVER = type(uint40).max;

    /// The contract.
    address internal immutable escrow;
    address[TOKENS] internal tokens;
    address[ACCOUNTS] internal accounts;
    address internal stranger;
    mapping(address account => uint256) internal keys;

    PayChannels.Channel[CHANNELS] internal terms;
    bytes32[CHANNELS] internal ids;
    uint256[CHANNELS] internal tokenOf;

    Ghost[CHANNELS] internal ghosts;
    mapping(uint256 token => mapping(address account => uint256)) internal balances;
    uint256[TOKENS] internal minted;
    uint256[TOKENS] internal kept;
    uint256[TOKENS] internal gifts;
    /// Who may neither send nor receive the token that bars.
    address internal barred;

    constructor() {
        escrow = _deployed("../../../protocol/contracts/PayChannels.json");
        tokens[PLAIN] = address(new TestUsdc("USDC", "2", address(this)));
        tokens[BARRING] = address(new TestUsdc("USDC", "2", address(this)));
        tokens[WITH_FEE] = address(new HostileToken());
        tokens[REENTERING] = address(new HostileToken());
        HostileToken(tokens[WITH_FEE]).setFee(FEE);
        stranger = _account("stranger");
        accounts = [
            _account("payer 0"),
            _account("payer 1"),
            _account("payer 2"),
            _account("payee 0"),
            _account("payee 1"),
            _account("signer 0"),
            _account("signer 1"),
            stranger,
            tokens[REENTERING],
            escrow
        ];
        for (uint256 token; token < TOKENS; ++token) {
            _fund(token);
            _open(token);
        }
    }

    // -------------------------------------------------------------------- chain

    function _state(uint256 c) internal view returns (State memory state) {
        (state.deposited, state.claimed, state.closeAt, state.round) = PayChannels(escrow).state(ids[c]);
    }

    function _balance(uint256 token, address account) internal view returns (uint256) {
        return TestUsdc(tokens[token]).balanceOf(account);
    }

    // ------------------------------------------------------------------- ledger

    /// What the ledger says the channel holds.
    function _deposited(uint256 c) internal view returns (uint128) {
        return ghosts[c].received - ghosts[c].refunded;
    }

    /// What a well-signed claim adds.
    function _due(uint256 c, uint128 amount) internal view returns (uint128) {
        uint128 target = amount < _deposited(c) ? amount : _deposited(c);
        return target > ghosts[c].paid ? target - ghosts[c].paid : 0;
    }

    function _fee(uint256 token) internal pure returns (uint256) {
        return token == WITH_FEE ? FEE : 0;
    }

    function _canMove(uint256 token, address from, address to, uint256 amount) internal view returns (bool) {
        bool isBarred = token == BARRING && barred != address(0) && (barred == from || barred == to);
        return !isBarred && amount >= _fee(token) && amount <= balances[token][from];
    }

    function _moved(uint256 token, address from, address to, uint256 amount) internal {
        balances[token][from] -= amount;
        balances[token][to] += amount - _fee(token);
        kept[token] += _fee(token);
    }

    // ------------------------------------------------------------------ setting

    /// What ships, not what another compilation makes of its source.
    function _deployed(string memory artifact) private returns (address account) {
        bytes memory code = vm.parseJsonBytes(vm.readFile(artifact), ".bytecode");
        assembly ("memory-safe") {
            account := create(0, add(code, 0x20), mload(code))
        }
        require(account != address(0), "the artifact does not deploy");
    }

    function _account(string memory name) private returns (address account) {
        uint256 key = uint256(keccak256(bytes(name)));
        account = vm.addr(key);
        keys[account] = key;
    }

    function _fund(uint256 token) private {
        for (uint256 i; i < ACCOUNTS - 1; ++i) {
            HostileToken(tokens[token]).mint(accounts[i], WEALTH);
            balances[token][accounts[i]] = WEALTH;
            minted[token] += WEALTH;
            if (token > BARRING) continue;
            vm.prank(accounts[i]);
            TestUsdc(tokens[token]).approve(escrow, type(uint256).max);
        }
    }

    /// Payers, payees and signers meet in every way; the token that enters again is a payer and a payee itself.
    function _open(uint256 token) private {
        address self = tokens[REENTERING];
        bool enters = token == REENTERING;
        _channel(token, 0, accounts[0], accounts[3], accounts[0], 1 hours);
        _channel(token, 1, accounts[0], accounts[4], accounts[5], 1 days);
        _channel(token, 2, enters ? self : accounts[1], accounts[3], accounts[5], 30 days);
        _channel(token, 3, accounts[2], enters ? self : accounts[4], accounts[6], 1 hours);
    }

    function _channel(
        uint256 token,
        uint256 place,
        address payer,
        address payee,
        address signer,
        uint40 delay
    ) private {
        uint256 c = token * PER_TOKEN + place;
        PayChannels.Channel memory channel =
            PayChannels.Channel(payer, payee, tokens[token], signer, delay, bytes32(c));
        terms[c] = channel;
        ids[c] = Words.id(escrow, channel);
        tokenOf[c] = token;
        require(
            ids[c] == PayChannels(escrow).channelId(channel),
            "the contract's id is not the digest of the terms"
        );
    }

    // ------------------------------------------------------------------- words

    function _compact(uint256 key, bytes32 digest) internal pure returns (bytes32 r, bytes32 vs) {
        uint8 v;
        bytes32 s;
        (v, r, s) = vm.sign(key, digest);
        vs = bytes32(uint256(s) | (uint256(v - 27) << 255));
    }

    /// A voucher that the signer of the channel signs, with the part that the payee claims.
    function _voucher(uint256 c, uint128 cumulative, uint128 amount)
        internal
        returns (PayChannels.Claim memory)
    {
        if (cumulative > ghosts[c].highestSigned) ghosts[c].highestSigned = cumulative;
        return _voucherBy(keys[terms[c].signer], c, cumulative, amount);
    }

    function _voucherBy(uint256 key, uint256 c, uint128 cumulative, uint128 amount)
        internal
        view
        returns (PayChannels.Claim memory)
    {
        (bytes32 r, bytes32 vs) = _compact(key, Words.voucher(escrow, ids[c], cumulative));
        return PayChannels.Claim(terms[c], cumulative, amount, r, vs);
    }

    function _closeWord(uint256 key, uint256 c, uint128 amount, uint40 deadline)
        internal
        view
        returns (PayChannels.Consent memory)
    {
        bytes32 digest = Words.close(escrow, ids[c], amount, _deposited(c), ghosts[c].round, deadline);
        (bytes32 r, bytes32 vs) = _compact(key, digest);
        return PayChannels.Consent(deadline, r, vs);
    }

    function _requestWord(uint256 key, uint256 c, uint40 deadline)
        internal
        view
        returns (PayChannels.Consent memory)
    {
        (bytes32 r, bytes32 vs) = _compact(key, Words.requestClose(escrow, ids[c], ghosts[c].round, deadline));
        return PayChannels.Consent(deadline, r, vs);
    }

    /// The payer's deposit by authorization. The hostile tokens ask for no signature.
    function _authorization(uint256 c, uint128 amount, bytes32 salt) internal view returns (bytes memory) {
        bytes memory signature;
        if (tokenOf[c] <= BARRING) {
            TestUsdc token = TestUsdc(terms[c].token);
            bytes memory message = abi.encode(
                token.RECEIVE_WITH_AUTHORIZATION_TYPEHASH(),
                terms[c].payer,
                escrow,
                uint256(amount),
                uint256(0),
                uint256(NEVER),
                keccak256(abi.encode(ids[c], salt))
            );
            signature = _plain(keys[terms[c].payer], Words.digest(token.DOMAIN_SEPARATOR(), message));
        }
        return
            abi.encodeCall(
                PayChannels.depositWithAuthorization, (terms[c], amount, 0, NEVER, salt, signature)
            );
    }

    function _plain(uint256 key, bytes32 digest) private pure returns (bytes memory) {
        (uint8 v, bytes32 r, bytes32 s) = vm.sign(key, digest);
        return abi.encodePacked(r, s, v);
    }
}
