//! The deployment of the channel contract to this node's chain, and its cost before.

use farthing_chain::{ChainError, ChainHandle, ChainKind, DeploymentCost, TxReport};
use farthing_shared::chain_view;

/// The reason that the contract was not deployed, or its cost is not known.
#[derive(Debug, thiserror::Error)]
pub enum DeploymentError {
    /// The wallet lacks ETH, which costs nothing on this chain.
    #[error("{why}")]
    TestEthMissing { why: ChainError, faucets: &'static str },
    #[error(transparent)]
    Chain(ChainError),
}

impl DeploymentError {
    /// Of what the adapter says on a chain of a kind: a testnet's ETH comes from a faucet.
    fn of(error: ChainError, kind: ChainKind) -> Self {
        match (error, chain_view::faucets(kind)) {
            (why @ ChainError::InsufficientEth { .. }, Some(faucets)) => {
                Self::TestEthMissing { why, faucets }
            }
            (error, _) => Self::Chain(error),
        }
    }

    pub const fn next_step(&self) -> &'static str {
        match self {
            &Self::TestEthMissing { faucets, .. } => faucets,
            Self::Chain(error) => error.next_step(),
        }
    }
}

/// Computes the cost of [`deploy`]. Nothing is sent.
///
/// # Errors
/// [`DeploymentError`]: the reason that it could not be deployed now.
pub async fn cost(chain: &ChainHandle) -> Result<DeploymentCost, DeploymentError> {
    chain.deployment_cost().await.map_err(|error| DeploymentError::of(error, chain.spec().kind))
}

/// Deploys the contract at the wallet's cost. It may be ordered again: where the contract is there, nothing is sent.
pub async fn deploy(chain: &ChainHandle) -> Result<TxReport, DeploymentError> {
    chain.deploy_contract().await.map_err(|error| DeploymentError::of(error, chain.spec().kind))
}

#[cfg(test)]
mod tests {
    use farthing_protocol::Address;

    use super::*;

    fn poor() -> ChainError {
        let (chain, wallet) = ("base".to_owned(), Address::from_bytes([1; 20]));
        ChainError::InsufficientEth { chain, wallet, need_wei: 2, have_wei: 1 }
    }

    #[test]
    fn a_wallet_without_eth_on_a_testnet_is_told_where_that_comes_from() {
        let error = DeploymentError::of(poor(), ChainKind::Testnet);
        assert_eq!(error.to_string(), poor().to_string());
        assert!(error.next_step().contains("a faucet"), "{}", error.next_step());
        for kind in [ChainKind::Mainnet, ChainKind::Local] {
            let error = DeploymentError::of(poor(), kind);
            assert!(matches!(error, DeploymentError::Chain(_)), "{error:?}");
            assert_eq!(error.next_step(), poor().next_step(), "nobody gives away ETH there");
        }
    }

    #[test]
    fn what_is_no_lack_of_eth_is_told_in_the_chains_own_words() {
        let stopped = ChainError::Stopped;
        let error = DeploymentError::of(stopped.clone(), ChainKind::Testnet);
        assert_eq!((error.to_string(), error.next_step()), (stopped.to_string(), stopped.next_step()));
    }
}
