//! Transfers from the node's wallet to an address, as the user orders them.
//!
//! The chain's adapter checks the wallet's balance, journals a transfer before it sends it, and sends one at a time. What is
//! promised to x402 servers stays in the wallet, whatever the user orders. This
//! module decides what its end means for the user: whether the money may have left, and what to do before a second order.

use farthing_chain::{ChainError, ChainHandle, TxReport};
use farthing_control::types::{Eth, SendAmount, Text};
use farthing_protocol::Address;

use crate::consumer::funding::{Funding, SetAside};

/// A transfer whose success the chain has not shown.
#[derive(Debug, thiserror::Error)]
pub enum TransferError {
    /// The money may have left the wallet, or may leave it yet. A second order may pay twice.
    #[error(transparent)]
    MayHaveBeenMade(ChainError),
    /// The money is in the wallet and stays there.
    #[error(transparent)]
    NotMade(ChainError),
    /// Nothing was sent: the money is promised.
    #[error(transparent)]
    SetAside(#[from] SetAside),
}

impl From<ChainError> for TransferError {
    fn from(error: ChainError) -> Self {
        if error.may_have_been_made() { Self::MayHaveBeenMade(error) } else { Self::NotMade(error) }
    }
}

impl TransferError {
    pub fn next_step(&self) -> String {
        match self {
            // A chain that does not answer is noticed while it is only asked: what is signed is pursued for as long as
            // it takes.
            Self::NotMade(error @ (ChainError::Unreachable { .. } | ChainError::Stopped)) => {
                format!("Nothing was sent. {}", error.next_step())
            }
            Self::SetAside(_) => "Nothing was sent. Send less, or repeat it when the payments have ended: `farthing calls` shows \
                                  them."
                .to_owned(),
            Self::NotMade(error) | Self::MayHaveBeenMade(error) => error.next_step().to_owned(),
        }
    }
}

/// Sends money from the wallet. An order that is repeated is a second transfer.
///
/// # Errors
/// [`TransferError`], which tells whether the money may have left the wallet.
pub async fn send(
    chain: &ChainHandle,
    funding: &Funding,
    to: Address,
    amount: SendAmount,
) -> Result<TxReport, TransferError> {
    match amount {
        SendAmount::Usdc(Text(amount)) => {
            let aside = funding.set_aside(amount)?;
            let sent = chain.send_usdc(to, amount).await?;
            aside.paid(amount, sent.block);
            Ok(sent)
        }
        SendAmount::Eth(Text(Eth { wei })) => Ok(chain.send_eth(to, wei).await?),
    }
}

#[cfg(test)]
mod tests {
    use farthing_chain::{JournalError, TxHash};

    use super::*;

    const UNSENT: &str = "Nothing was sent. ";

    #[test]
    fn money_that_may_have_left_is_looked_for_before_it_is_sent_again() {
        let (what, nonce, hashes) = ("the transfer", 7, vec![TxHash([1; 32])]);
        let unstored = JournalError::Failed("no space".to_owned());
        for error in [
            ChainError::UnderWay { what, hashes: hashes.clone() },
            ChainError::UnderWay { what, hashes: Vec::new() },
            ChainError::Unaccounted { what, nonce, hashes: hashes.clone() },
            ChainError::Contradicted { what, hashes },
            ChainError::Replaced { what, nonce },
            ChainError::Journal(unstored),
        ] {
            let (said, error) = (error.to_string(), TransferError::from(error));
            assert!(matches!(error, TransferError::MayHaveBeenMade(_)), "{error:?}");
            assert_eq!(error.to_string(), said);
            let next = error.next_step();
            assert!(next.contains("a second transfer costs money again"), "{next}");
            assert!(!next.contains(UNSENT), "{next}");
        }
    }

    #[test]
    fn a_chain_that_does_not_answer_has_got_nothing_and_that_is_said_first() {
        let (chain, reason) = ("base".to_owned(), "timed out".to_owned());
        let next = TransferError::from(ChainError::Unreachable { chain, reason }).next_step();
        assert!(
            next.starts_with("Nothing was sent. Check the connection, or set another endpoint"),
            "{next}"
        );
        let next = TransferError::from(ChainError::Stopped).next_step();
        assert_eq!(next, "Nothing was sent. Repeat it when the node runs again.");
    }

    #[test]
    fn money_that_cannot_leave_stays_and_the_chains_words_say_what_to_do() {
        let wallet = Address::from_bytes([1; 20]);
        let poor = ChainError::InsufficientEth { chain: "base".to_owned(), wallet, need_wei: 2, have_wei: 1 };
        let invalid = ChainError::Invalid("a transfer of nothing".to_owned());
        for error in [poor, invalid, ChainError::Busy { waiting: 1 }] {
            let (said, next) = (error.to_string(), error.next_step());
            let error = TransferError::from(error);
            assert!(matches!(error, TransferError::NotMade(_)), "{error:?}");
            assert_eq!((error.to_string(), error.next_step()), (said, next.to_owned()));
        }
    }
}
