// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

import {PayChannels} from "shipped/PayChannels.sol";
import {vm} from "../shared/Cheats.sol";

/// @title What the proofs read is what ships.
contract Code {
    function test_the_code_is_the_code_that_ships() public {
        string memory artifact = vm.readFile("../../../protocol/contracts/PayChannels.json");
        bytes memory code = vm.parseJsonBytes(artifact, ".deployedBytecode");
        require(keccak256(address(new PayChannels()).code) == keccak256(code), "the artifact has other code");
    }
}
