//! The contracts as Rust types, generated from the committed artifacts: `PayChannels`, the test token, and what the node asks
//! contracts of others.
//!
//! The generated code is large and has nothing of the protocol in it, so an edit of the protocol does not compile it again.

// Generated code documents itself by the contracts' sources.
#![allow(missing_debug_implementations, unreachable_pub, clippy::all, clippy::pedantic)]

use alloy::sol;

sol!(
    #[sol(all_derives)]
    PayChannels,
    "../../protocol/contracts/PayChannels.json"
);
sol!(
    #[sol(all_derives)]
    TestUsdc,
    "../../protocol/contracts/TestUsdc.json"
);

sol! {
    /// The message that EIP-3009 has the payer sign.
    #[derive(Debug)]
    struct ReceiveWithAuthorization {
        address from;
        address to;
        uint256 value;
        uint256 validAfter;
        uint256 validBefore;
        bytes32 nonce;
    }

    /// The other one, of a transfer that anybody may bring.
    #[derive(Debug)]
    struct TransferWithAuthorization {
        address from;
        address to;
        uint256 value;
        uint256 validAfter;
        uint256 validBefore;
        bytes32 nonce;
    }
}

sol! {
    /// The part that all tokens with EIP-3009 have in common. USDC has a second form of the call, for signatures of accounts with code.
    #[derive(Debug)]
    interface Eip3009 {
        event Transfer(address indexed from, address indexed to, uint256 value);
        event AuthorizationUsed(address indexed authorizer, bytes32 indexed nonce);
        event AuthorizationCanceled(address indexed authorizer, bytes32 indexed nonce);
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
        ) external;
    }
}

sol! {
    /// The contract that tells what layer 1 charges an OP-stack chain.
    #[derive(Debug)]
    interface GasPriceOracle {
        function getL1Fee(bytes data) external view returns (uint256);
    }
}

sol! {
    /// Many reads in one (github.com/mds1/multicall3).
    #[derive(Debug)]
    interface Multicall3 {
        struct Call3 { address target; bool allowFailure; bytes callData; }
        struct Result { bool success; bytes returnData; }
        function aggregate3(Call3[] calls) external payable returns (Result[] returnData);
    }
}
