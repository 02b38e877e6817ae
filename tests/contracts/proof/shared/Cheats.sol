// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

/// What the proofs use of the cheatcodes of forge; halmos knows those that its proofs call.
interface Vm {
    function addr(uint256 key) external pure returns (address);
    function assume(bool condition) external pure;
    function etch(address account, bytes calldata code) external;
    function parseJsonBytes(string calldata json, string calldata path) external pure returns (bytes memory);
    function parseTomlUint(string calldata toml, string calldata path) external pure returns (uint256);
    function prank(address sender) external;
    function readFile(string calldata path) external view returns (string memory);
    function sign(uint256 key, bytes32 digest) external pure returns (uint8 v, bytes32 r, bytes32 s);
    function warp(uint256 time) external;
}

/// What they use of halmos.
interface Svm {
    function createAddress(string calldata name) external returns (address);
    function createBytes32(string calldata name) external returns (bytes32);
    function createUint(uint256 bits, string calldata name) external returns (uint256);
    function enableSymbolicStorage(address account) external;
}

Vm constant vm = Vm(0x7109709ECfa91a80626fF3989D68f67F5b1DD12D);
Svm constant svm = Svm(0xF3993A62377BCd56AE39D773740A5390411E8BC9);
