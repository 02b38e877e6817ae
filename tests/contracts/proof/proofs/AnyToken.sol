// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

/// @title A token of which halmos chooses everything: balances, and who is barred.
contract AnyToken {
    mapping(address account => uint256) public balanceOf;
    mapping(address account => bool) public isBarred;

    function transfer(address to, uint256 value) external returns (bool) {
        return _move(msg.sender, to, value);
    }

    function transferFrom(address from, address to, uint256 value) external returns (bool) {
        return _move(from, to, value);
    }

    function receiveWithAuthorization(
        address from,
        address to,
        uint256 value,
        uint256,
        uint256,
        bytes32,
        bytes calldata
    ) external {
        require(_move(from, to, value));
    }

    function _move(address from, address to, uint256 value) private returns (bool) {
        if (isBarred[from] || isBarred[to]) return false;
        balanceOf[from] -= value;
        balanceOf[to] += value;
        return true;
    }
}
