//! The channel contract on the node's chain, as `farthing contract` shows it.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{AddressText, EthText};

words! {
    /// The code at the address of the channel contract.
    ContractState {
        Deployed = "deployed",
        Missing = "missing",
        /// Of another contract, which is never used.
        Foreign = "foreign",
    }
}

/// `farthing contract show`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ContractShown {
    pub chain: String,
    pub chain_id: u64,
    /// `mainnet`, `testnet` or `local`
    pub kind: String,
    pub contract: AddressText,
    pub state: ContractState,
    /// keccak-256 of the code that belongs there, `0x…`
    pub code_hash: String,
    /// Of the code that is there; `null` where there is none.
    pub code_hash_found: Option<String>,
    /// USDC's address.
    pub token: AddressText,
}

/// The cost of `farthing contract deploy` at the gas price of now; nothing where the contract is there already.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DeploymentCost {
    pub gas: u64,
    pub cost: EthText,
    /// ETH that the wallet has to hold, because gas may become dearer until the transaction is mined.
    pub needed: EthText,
    /// ETH of the wallet.
    pub held: EthText,
}

/// `farthing contract deploy`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Deployed {
    pub contract: AddressText,
    /// Hash of the transaction, `0x…`; `null` where the contract was there already, and nothing was sent.
    pub transaction: Option<String>,
    pub block: Option<u64>,
    pub paid: EthText,
}
