// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

import {vm} from "../shared/Cheats.sol";
import {Handler} from "./Handler.sol";

/// @title What holds after every step of every history.
contract Invariants {
    /// As many as foundry.toml says: shorter histories come up when forge shortens one that failed.
    uint256 private constant STEPS = 1_000;

    Handler private handler;

    function setUp() public {
        handler = new Handler();
    }

    function targetContracts() public view returns (address[] memory targets) {
        targets = new address[](1);
        targets[0] = address(handler);
    }

    function invariant_money_and_channels() public view {
        handler.check();
    }

    /// Enough of everything to mean something; a third or less of what most histories have.
    function afterInvariant() public view {
        if (handler.steps() < STEPS) return;
        Handler.Counts memory counts = handler.counts();
        require(counts.fills >= 45, "too few deposits");
        require(counts.claims >= 20, "too few claims");
        require(counts.lastSecondClaims >= 1, "no claim in the last second of a delay");
        require(counts.rows >= 4, "too few rows of batches");
        require(counts.closes >= 12, "too few closes");
        require(counts.signedCloses >= 5, "too few signed closes");
        require(counts.keptRefunds >= 1, "no refund that the token refused");
        require(counts.requests >= 8, "too few requests to close");
        require(counts.signedRequests >= 3, "too few signed requests to close");
        require(counts.withdrawals >= 5, "too few withdrawals");
        require(counts.refused >= 150, "too few refusals");
        require(counts.oldWordsRefused >= 10, "too few old words");
        require(counts.reentries >= 20, "too few calls from within a transfer");
    }

    function test_histories_are_as_long_as_their_counts_are_for() public view {
        string memory settings = vm.readFile("./foundry.toml");
        require(vm.parseTomlUint(settings, ".profile.default.invariant.depth") == STEPS, "another depth");
    }
}
