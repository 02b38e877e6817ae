//! Errors of a chain, in words that say what to do next.

use farthing_values::{Address, Usdc};

use crate::journal::{JournalError, TxHash};

/// The reason that an operation on the chain did not happen. Nothing was paid unless the text says so.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChainError {
    /// No endpoint answered.
    #[error("no endpoint of {chain} answers: {reason}")]
    Unreachable { chain: String, reason: String },
    /// The chain is not what the settings say; nothing is signed for it.
    #[error("{chain} cannot be used: {reason}")]
    Refused { chain: String, reason: String },
    #[error("there is no PayChannels contract at {contract} on {chain}; deploy it first")]
    ContractMissing { chain: String, contract: Address },
    /// Without it the contract cannot get the address that it has everywhere.
    #[error("{chain} does not have the deployer {deployer}, which gives the contract its address")]
    DeployerMissing { chain: String, deployer: Address },
    #[error(
        "send at least {} ETH on {chain} to {wallet}: the transaction may cost {} ETH and the wallet has {}",
        eth(need_wei.saturating_sub(*have_wei)), eth(*need_wei), eth(*have_wei)
    )]
    InsufficientEth { chain: String, wallet: Address, need_wei: u128, have_wei: u128 },
    #[error(
        "send at least {} USDC on {chain} to {wallet}: {need} USDC are needed and the wallet has {have}",
        need.saturating_sub(*have)
    )]
    InsufficientUsdc { chain: String, wallet: Address, need: Usdc, have: Usdc },
    #[error(
        "gas on {chain} costs {gas_price_wei} wei, above the {cap_wei} wei that your node pays there at most; wait until \
         gas is cheaper, because no setting changes this limit"
    )]
    GasTooDear { chain: String, gas_price_wei: u128, cap_wei: u128 },
    /// The chain executes the transaction to a revert in simulation, and it was not sent.
    #[error("{what} would fail on chain: {reason}")]
    Reverted { what: &'static str, reason: String },
    /// The transaction is in a block, and has cost gas for nothing.
    #[error("{what} has failed on chain: {reason}")]
    Failed { what: &'static str, reason: String },
    /// Another transaction of the same key took the nonce, and the chain's state shows that this one was not mined.
    #[error(
        "another transaction of this wallet replaced {what} (nonce {nonce}); does another program use the key? The \
         chain does not show that it was made"
    )]
    Replaced { what: &'static str, nonce: u64 },
    /// The nonce of a transfer is used, and no receipt of it is found. Nothing else would show whether it was mined.
    #[error(
        "{what} may have been made: its nonce {nonce} is used, but no endpoint has shown a receipt of {}. Look for it \
         in a block explorer before you send again; if it is not there, another program with this wallet's key used \
         the nonce",
        listed(hashes)
    )]
    Unaccounted { what: &'static str, nonce: u64, hashes: Vec<TxHash> },
    /// The receipt of a transfer says that it failed, and the endpoint that it would succeed. One of both is wrong.
    #[error(
        "{what} may have been made: an endpoint says both that it failed on chain and that it would succeed ({}). Look \
         for it in a block explorer before you send again",
        listed(hashes)
    )]
    Contradicted { what: &'static str, hashes: Vec<TxHash> },
    /// A transfer or a deposit that was signed, and whose end nobody was here to see. What the journal holds is pursued,
    /// after a restart too.
    #[error("{what} may have been made or may still be made: {}", of_forms(hashes))]
    UnderWay { what: &'static str, hashes: Vec<TxHash> },
    #[error("{0}")]
    Invalid(String),
    #[error(transparent)]
    Journal(#[from] JournalError),
    #[error(
        "other transactions of this wallet are waiting ({waiting}); nothing was sent; try again when they are done"
    )]
    Busy { waiting: usize },
    #[error("the chain connection has been shut down")]
    Stopped,
}

impl ChainError {
    /// Returns whether a transfer that ended like this may have been made all the same, or may be yet: sending again
    /// before it was looked for may pay twice. A commit that failed may be found after a restart.
    pub const fn may_have_been_made(&self) -> bool {
        matches!(
            self,
            Self::UnderWay { .. }
                | Self::Contradicted { .. }
                | Self::Unaccounted { .. }
                | Self::Replaced { .. }
                | Self::Journal(JournalError::Failed(_))
        )
    }

    pub const fn next_step(&self) -> &'static str {
        match self {
            _ if self.may_have_been_made() => {
                "When it is made, `farthing wallet history` and a block explorer show it. Look there before you send \
                 again: a second transfer costs money again."
            }
            Self::Invalid(_) => "Correct the named value. Nothing was sent.",
            Self::ContractMissing { .. } => {
                "Deploy it with `farthing contract deploy`, which shows the cost first."
            }
            Self::DeployerMissing { .. } => {
                "Nothing was sent. Use another chain, or ask the chain's operator to add the deployer."
            }
            Self::Unreachable { .. } => {
                "Check the connection, or set another endpoint with `farthing chain set`. `farthing doctor` checks \
                 both."
            }
            Self::Stopped => "Repeat it when the node runs again.",
            _ => "`farthing doctor` checks wallet and chain.",
        }
    }
}

fn of_forms(hashes: &[TxHash]) -> String {
    if hashes.is_empty() {
        return "it waits for the transaction before it".to_owned();
    }
    format!("this node continues with its transaction {}, also after a restart", listed(hashes))
}

fn listed(hashes: &[TxHash]) -> String {
    hashes.iter().map(TxHash::to_string).collect::<Vec<_>>().join(" or ")
}

/// Wei as decimal ETH, without trailing zeros: `0.0002`.
pub fn eth(wei: u128) -> String {
    const WEI_PER_ETH: u128 = 1_000_000_000_000_000_000;
    let fraction = format!("{:018}", wei % WEI_PER_ETH);
    let fraction = fraction.trim_end_matches('0');
    if fraction.is_empty() {
        format!("{}", wei / WEI_PER_ETH)
    } else {
        format!("{}.{fraction}", wei / WEI_PER_ETH)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_poor_wallet_is_told_what_to_send_where() {
        let wallet = Address::from_bytes([0x11; 20]);
        let error = ChainError::InsufficientUsdc {
            chain: "base".into(),
            wallet,
            need: Usdc::from_micros(500_000),
            have: Usdc::from_micros(20_000),
        };
        assert_eq!(
            error.to_string(),
            format!(
                "send at least 0.48 USDC on base to {wallet}: 0.50 USDC are needed and the wallet has 0.02"
            )
        );
        let error = ChainError::InsufficientEth {
            chain: "base".into(),
            wallet,
            need_wei: 200_000_000_000_000,
            have_wei: 0,
        };
        assert!(error.to_string().starts_with("send at least 0.0002 ETH on base to 0x1111"), "{error}");
    }

    #[test]
    fn wei_read_as_eth() {
        for (wei, text) in [
            (0, "0"),
            (1, "0.000000000000000001"),
            (1_000_000_000_000_000_000, "1"),
            (1_500_000_000_000_000_000, "1.5"),
        ] {
            assert_eq!(eth(wei), text);
        }
    }
}
