// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

import {PayChannels} from "shipped/PayChannels.sol";

/// What parties sign, written from the documentation of the messages and not with the contract's own code.
library Words {
    function digest(bytes32 domain, bytes memory struct_) internal pure returns (bytes32) {
        return keccak256(bytes.concat(hex"1901", domain, keccak256(struct_)));
    }

    function separator(address channels) internal view returns (bytes32) {
        return keccak256(
            abi.encode(
                keccak256(
                    "EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)"
                ),
                keccak256("Farthing PayChannels"),
                keccak256("1"),
                block.chainid,
                channels
            )
        );
    }

    function id(address channels, PayChannels.Channel memory terms) internal view returns (bytes32) {
        bytes32 hash = keccak256(
            "Channel(address payer,address payee,address token,address signer,uint40 closeDelay,bytes32 salt)"
        );
        return digest(separator(channels), abi.encode(hash, terms));
    }

    function voucher(address channels, bytes32 id_, uint128 cumulative) internal view returns (bytes32) {
        bytes32 hash = keccak256("Voucher(bytes32 channelId,uint128 cumulative)");
        return digest(separator(channels), abi.encode(hash, id_, cumulative));
    }

    function close(
        address channels,
        bytes32 id_,
        uint128 amount,
        uint128 deposited,
        uint24 round,
        uint40 deadline
    ) internal view returns (bytes32) {
        bytes32 hash = keccak256(
            "Close(bytes32 channelId,uint128 amount,uint128 deposited,uint24 round,uint40 deadline)"
        );
        return digest(separator(channels), abi.encode(hash, id_, amount, deposited, round, deadline));
    }

    function requestClose(address channels, bytes32 id_, uint24 round, uint40 deadline)
        internal
        view
        returns (bytes32)
    {
        bytes32 hash = keccak256("RequestClose(bytes32 channelId,uint24 round,uint40 deadline)");
        return digest(separator(channels), abi.encode(hash, id_, round, deadline));
    }
}
