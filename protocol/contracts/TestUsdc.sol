// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

/// How an account with code answers for a signature (ERC-1271).
interface IAccount {
    function isValidSignature(bytes32 digest, bytes calldata signature) external view returns (bytes4);
}

/// @title A token with the surface of USDC, for local chains only.
///
/// EIP-20 with 6 decimals, EIP-2612 permit, EIP-3009 authorizations in both flavours, pause, blacklist,
/// and the ERC-1271 branch for accounts with code. One address, the minter, holds every role that USDC
/// spreads over several, and mints without an allowance. Written from the EIPs for Farthing's tests.
contract TestUsdc {
    string public name;
    string public version;
    string public constant symbol = "USDC";
    string public constant currency = "USD";
    uint8 public constant decimals = 6;

    bytes32 public constant PERMIT_TYPEHASH =
        keccak256("Permit(address owner,address spender,uint256 value,uint256 nonce,uint256 deadline)");
    bytes32 public constant TRANSFER_WITH_AUTHORIZATION_TYPEHASH = keccak256(
        "TransferWithAuthorization(address from,address to,uint256 value,uint256 validAfter,uint256 validBefore,bytes32 nonce)"
    );
    bytes32 public constant RECEIVE_WITH_AUTHORIZATION_TYPEHASH = keccak256(
        "ReceiveWithAuthorization(address from,address to,uint256 value,uint256 validAfter,uint256 validBefore,bytes32 nonce)"
    );
    bytes32 public constant CANCEL_AUTHORIZATION_TYPEHASH =
        keccak256("CancelAuthorization(address authorizer,bytes32 nonce)");
    bytes32 private constant DOMAIN_TYPEHASH =
        keccak256("EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)");
    uint256 private constant S_MAX = 0x7FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF5D576E7357A4501DDFE92F46681B20A0;

    address public immutable minter;
    bytes32 private immutable _nameHash;
    bytes32 private immutable _versionHash;

    /// Balance and blacklist share a slot, as in USDC, so that a transfer costs about the same.
    struct Account {
        uint248 balance;
        bool blacklisted;
    }

    bool public paused;
    uint256 public totalSupply;
    mapping(address => Account) private _accounts;
    mapping(address => mapping(address => uint256)) public allowance;
    mapping(address => uint256) public nonces;
    mapping(address authorizer => mapping(bytes32 nonce => bool)) public authorizationState;

    event Transfer(address indexed from, address indexed to, uint256 value);
    event Approval(address indexed owner, address indexed spender, uint256 value);
    event AuthorizationUsed(address indexed authorizer, bytes32 indexed nonce);
    event AuthorizationCanceled(address indexed authorizer, bytes32 indexed nonce);
    event Mint(address indexed minter, address indexed to, uint256 amount);
    event Burn(address indexed burner, uint256 amount);
    event Pause();
    event Unpause();
    event Blacklisted(address indexed account);
    event UnBlacklisted(address indexed account);

    error NotMinter();
    error IsPaused();
    error AccountBlacklisted(address account);
    error ZeroAddress();
    error InsufficientBalance();
    error SupplyTooLarge();
    error InsufficientAllowance();
    error AuthorizationNotYetValid();
    error AuthorizationExpired();
    error AuthorizationUsedOrCanceled();
    error CallerNotRecipient();
    error PermitExpired();
    error InvalidSignature();

    modifier onlyMinter() {
        if (msg.sender != minter) revert NotMinter();
        _;
    }

    modifier whenNotPaused() {
        if (paused) revert IsPaused();
        _;
    }

    modifier notBlacklisted(address account) {
        if (_accounts[account].blacklisted) revert AccountBlacklisted(account);
        _;
    }

    /// `name_` and `version_` are also those of the EIP-712 domain ("USDC" or "USD Coin", and "2").
    constructor(string memory name_, string memory version_, address minter_) {
        if (minter_ == address(0)) revert ZeroAddress();
        (name, version, minter) = (name_, version_, minter_);
        (_nameHash, _versionHash) = (keccak256(bytes(name_)), keccak256(bytes(version_)));
    }

    function DOMAIN_SEPARATOR() public view returns (bytes32) {
        return keccak256(abi.encode(DOMAIN_TYPEHASH, _nameHash, _versionHash, block.chainid, address(this)));
    }

    // ----------------------------------------------------------------- EIP-20

    /// The parameter goes without a name, as in the getter of a public mapping: bindings depend on it.
    function balanceOf(address) external view returns (uint256) {
        return _accounts[abi.decode(msg.data[4:], (address))].balance;
    }

    function isBlacklisted(address account) external view returns (bool) {
        return _accounts[account].blacklisted;
    }

    function transfer(address to, uint256 value) external whenNotPaused returns (bool) {
        _transfer(msg.sender, to, value);
        return true;
    }

    function approve(address spender, uint256 value) external whenNotPaused returns (bool) {
        _approve(msg.sender, spender, value);
        return true;
    }

    function increaseAllowance(address spender, uint256 increment) external whenNotPaused returns (bool) {
        _approve(msg.sender, spender, allowance[msg.sender][spender] + increment);
        return true;
    }

    function decreaseAllowance(address spender, uint256 decrement) external whenNotPaused returns (bool) {
        uint256 allowed = allowance[msg.sender][spender];
        if (allowed < decrement) revert InsufficientAllowance();
        _approve(msg.sender, spender, allowed - decrement);
        return true;
    }

    function transferFrom(address from, address to, uint256 value)
        external
        whenNotPaused
        notBlacklisted(msg.sender)
        returns (bool)
    {
        uint256 allowed = allowance[from][msg.sender];
        if (allowed < value) revert InsufficientAllowance();
        allowance[from][msg.sender] = allowed - value;
        _transfer(from, to, value);
        return true;
    }

    // --------------------------------------------------------------- EIP-2612

    function permit(address owner, address spender, uint256 value, uint256 deadline, uint8 v, bytes32 r, bytes32 s)
        external
    {
        permit(owner, spender, value, deadline, abi.encodePacked(r, s, v));
    }

    function permit(address owner, address spender, uint256 value, uint256 deadline, bytes memory signature)
        public
        whenNotPaused
    {
        if (block.timestamp > deadline) revert PermitExpired();
        bytes32 hash = keccak256(abi.encode(PERMIT_TYPEHASH, owner, spender, value, nonces[owner]++, deadline));
        _requireSigned(owner, hash, signature);
        _approve(owner, spender, value);
    }

    // --------------------------------------------------------------- EIP-3009

    function transferWithAuthorization(
        address from,
        address to,
        uint256 value,
        uint256 validAfter,
        uint256 validBefore,
        bytes32 nonce,
        uint8 v,
        bytes32 r,
        bytes32 s
    ) external {
        transferWithAuthorization(from, to, value, validAfter, validBefore, nonce, abi.encodePacked(r, s, v));
    }

    function transferWithAuthorization(
        address from,
        address to,
        uint256 value,
        uint256 validAfter,
        uint256 validBefore,
        bytes32 nonce,
        bytes memory signature
    ) public whenNotPaused {
        _useAuthorization(
            from,
            nonce,
            validAfter,
            validBefore,
            keccak256(
                abi.encode(
                    TRANSFER_WITH_AUTHORIZATION_TYPEHASH, from, to, value, validAfter, validBefore, nonce
                )
            ),
            signature
        );
        _transfer(from, to, value);
    }

    function receiveWithAuthorization(
        address from,
        address to,
        uint256 value,
        uint256 validAfter,
        uint256 validBefore,
        bytes32 nonce,
        uint8 v,
        bytes32 r,
        bytes32 s
    ) external {
        receiveWithAuthorization(from, to, value, validAfter, validBefore, nonce, abi.encodePacked(r, s, v));
    }

    /// Only the recipient may submit it, so that a contract sees its own deposit arrive.
    function receiveWithAuthorization(
        address from,
        address to,
        uint256 value,
        uint256 validAfter,
        uint256 validBefore,
        bytes32 nonce,
        bytes memory signature
    ) public whenNotPaused {
        if (msg.sender != to) revert CallerNotRecipient();
        _useAuthorization(
            from,
            nonce,
            validAfter,
            validBefore,
            keccak256(
                abi.encode(RECEIVE_WITH_AUTHORIZATION_TYPEHASH, from, to, value, validAfter, validBefore, nonce)
            ),
            signature
        );
        _transfer(from, to, value);
    }

    function cancelAuthorization(address authorizer, bytes32 nonce, uint8 v, bytes32 r, bytes32 s) external {
        cancelAuthorization(authorizer, nonce, abi.encodePacked(r, s, v));
    }

    function cancelAuthorization(address authorizer, bytes32 nonce, bytes memory signature)
        public
        whenNotPaused
    {
        if (authorizationState[authorizer][nonce]) revert AuthorizationUsedOrCanceled();
        _requireSigned(
            authorizer, keccak256(abi.encode(CANCEL_AUTHORIZATION_TYPEHASH, authorizer, nonce)), signature
        );
        authorizationState[authorizer][nonce] = true;
        emit AuthorizationCanceled(authorizer, nonce);
    }

    // ------------------------------------------------------------------ roles

    function mint(address to, uint256 amount)
        external
        onlyMinter
        whenNotPaused
        notBlacklisted(to)
        returns (bool)
    {
        if (to == address(0)) revert ZeroAddress();
        totalSupply += amount;
        if (totalSupply > type(uint248).max) revert SupplyTooLarge();
        _accounts[to].balance += uint248(amount);
        emit Mint(msg.sender, to, amount);
        emit Transfer(address(0), to, amount);
        return true;
    }

    function burn(uint256 amount) external onlyMinter whenNotPaused {
        if (_accounts[msg.sender].balance < amount) revert InsufficientBalance();
        _accounts[msg.sender].balance -= uint248(amount);
        totalSupply -= amount;
        emit Burn(msg.sender, amount);
        emit Transfer(msg.sender, address(0), amount);
    }

    function pause() external onlyMinter {
        paused = true;
        emit Pause();
    }

    function unpause() external onlyMinter {
        paused = false;
        emit Unpause();
    }

    function blacklist(address account) external onlyMinter {
        _accounts[account].blacklisted = true;
        emit Blacklisted(account);
    }

    function unBlacklist(address account) external onlyMinter {
        _accounts[account].blacklisted = false;
        emit UnBlacklisted(account);
    }

    // ---------------------------------------------------------------- helpers

    function _transfer(address from, address to, uint256 value) private notBlacklisted(from) notBlacklisted(to) {
        if (to == address(0)) revert ZeroAddress();
        uint248 balance = _accounts[from].balance;
        if (balance < value) revert InsufficientBalance();
        _accounts[from].balance = balance - uint248(value);
        _accounts[to].balance += uint248(value);
        emit Transfer(from, to, value);
    }

    function _approve(address owner, address spender, uint256 value)
        private
        notBlacklisted(owner)
        notBlacklisted(spender)
    {
        if (owner == address(0) || spender == address(0)) revert ZeroAddress();
        allowance[owner][spender] = value;
        emit Approval(owner, spender, value);
    }

    function _useAuthorization(
        address from,
        bytes32 nonce,
        uint256 validAfter,
        uint256 validBefore,
        bytes32 hash,
        bytes memory signature
    ) private {
        if (block.timestamp <= validAfter) revert AuthorizationNotYetValid();
        if (block.timestamp >= validBefore) revert AuthorizationExpired();
        mapping(bytes32 => bool) storage used = authorizationState[from];
        if (used[nonce]) revert AuthorizationUsedOrCanceled();
        _requireSigned(from, hash, signature);
        used[nonce] = true;
        emit AuthorizationUsed(from, nonce);
    }

    /// An account with code, also one delegated by EIP-7702, answers for itself; a plain one by its key.
    function _requireSigned(address account, bytes32 structHash, bytes memory signature) private view {
        bytes32 digest = keccak256(abi.encodePacked("\x19\x01", DOMAIN_SEPARATOR(), structHash));
        bool valid = account.code.length == 0
            ? _recover(digest, signature) == account && account != address(0)
            : _accountAccepts(account, digest, signature);
        if (!valid) revert InvalidSignature();
    }

    function _recover(bytes32 digest, bytes memory signature) private pure returns (address) {
        if (signature.length != 65) return address(0);
        bytes32 r;
        bytes32 s;
        uint8 v;
        assembly ("memory-safe") {
            r := mload(add(signature, 0x20))
            s := mload(add(signature, 0x40))
            v := byte(0, mload(add(signature, 0x60)))
        }
        return uint256(s) > S_MAX ? address(0) : ecrecover(digest, v, r, s);
    }

    function _accountAccepts(address account, bytes32 digest, bytes memory signature)
        private
        view
        returns (bool)
    {
        (bool ok, bytes memory answer) =
            account.staticcall(abi.encodeCall(IAccount.isValidSignature, (digest, signature)));
        return ok && answer.length >= 32
            && abi.decode(answer, (bytes32)) == bytes32(IAccount.isValidSignature.selector);
    }
}
