//! The on-chain side of calls: what the chain confirms comes in, claims and closes go out. None of it is on the path
//! of a call.
//!
//! Four tasks, so that none waits for what another waits for: [`intake`] brings the chain's views into the books;
//! [`payee`] claims and closes what this node is paid with; [`payer`] withdraws and holds owners to their word, and
//! apart from that asks owners to close what is unused. What to claim is decided in [`worth`].
//! [`contract`] holds the books against the contract, for an audit.

use std::{sync::Arc, time::Duration};

use farthing_chain::{ChainError, ChainHandle, TxReport};
use farthing_control::counted;
use farthing_ledger::{Ledger, LedgerError, SettlementState};
use farthing_network::NetworkHandle;
use farthing_owner::{book::Book, terms::Terms};
use farthing_protocol::{Address, ChannelId, Usdc};
use farthing_wallet::{PolicyError, Signer};
use tokio::{
    sync::{mpsc, oneshot},
    time::Instant,
};
use tokio_util::sync::CancellationToken;

use crate::consumer::{
    accounts::Accounts,
    channels::PayerChannels,
    funding::{Funding, SignedRequest},
};

pub mod contract;
mod intake;
mod payee;
mod payer;
pub mod policy;
mod shown;
pub mod worth;

use intake::ChainIntake;
use payee::Payee;
pub use payer::Closed;
use payer::Payer;
use policy::Policy;

/// Settlements among which the last claim is looked for: those that tell what the chain did are not claims.
const LAST_CLAIM_LOOK_BACK: usize = 64;

/// The result of a claim.
#[derive(Clone, Debug, Default)]
pub struct Claimed {
    pub amount: Usdc,
    pub paid: Vec<ChannelId>,
    pub transactions: Vec<TxReport>,
    /// Channels whose claims the contract refused, and why.
    pub refused: Vec<(ChannelId, String)>,
    /// Channels whose claims were mined, and which the chain does not show as paid.
    pub unshown: Vec<ChannelId>,
}

/// The reason that a settlement failed; it is tried again by itself.
#[derive(Debug, thiserror::Error)]
pub enum SettlementError {
    #[error(transparent)]
    Chain(#[from] ChainError),
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    #[error(transparent)]
    Policy(#[from] PolicyError),
    #[error("the contract refuses all claims ({}): {reason}", counted(*.channels, "channel"))]
    Refused { channels: usize, reason: String },
    #[error("there is no channel {0}")]
    NoSuchChannel(ChannelId),
    #[error("the channel {0} is not open: it is empty, or the chain has the request to close it")]
    NotOpen(ChannelId),
    #[error("the owner {owner} does not close the channel yet: {why}; the chain was not asked")]
    OwnerBusy { owner: Address, why: String },
    #[error(
        "the owner {owner} signed the close of the channel, but this node could not send it to the chain: {why}"
    )]
    NotBrought { owner: Address, why: Box<ChainError> },
    #[error("the wallet has too little ETH for gas, and the owner {owner} does not pay it: {why}")]
    NotSponsored { owner: Address, why: String },
    #[error("the node is shutting down")]
    ShuttingDown,
    #[error(
        "the node is stopping before the chain has shown the result; the command may have been carried out or may \
         still be"
    )]
    LetGo,
}

impl SettlementError {
    pub const fn next_step(&self) -> &'static str {
        match self {
            Self::Chain(error) => error.next_step(),
            Self::Ledger(error) => error.next_step(),
            Self::Policy(_) => "`farthing audit` checks the books.",
            Self::Refused { .. } => {
                "The node tries again automatically; `farthing alert list` shows what it still serves."
            }
            Self::NoSuchChannel(_) => "`farthing channel list` shows them.",
            Self::NotOpen(_) => "`farthing channel list` shows its state.",
            Self::OwnerBusy { .. } => {
                "Repeat it in two minutes. With `--force` you do not wait for the owner: the chain gives the rest back \
                 after the channel's delay, usually a day."
            }
            Self::NotBrought { .. } => {
                "The channel is closing, and the owner serves nothing on it. Your node tries again automatically, and asks \
                 the owner again, which closes the channel itself once gas is cheap enough for it. To try it now, send \
                 the wallet a little ETH if it has none (`farthing doctor` checks wallet and chain), and repeat the \
                 command. `--force` closes the channel on the chain instead, which takes the channel's delay, usually a day."
            }
            Self::NotSponsored { .. } => {
                "Send a little ETH to the wallet, or repeat it later: the owner is asked again. Nothing was sent. If the \
                 channel is open, anybody with ETH can send the request that `farthing channel close ID --signed` prints."
            }
            Self::ShuttingDown => "Repeat it when the node runs again.",
            Self::LetGo => {
                "Start the node: it continues with what it has sent. Check `farthing wallet history` and `farthing \
                 channel list` before you repeat it."
            }
        }
    }
}

/// Requests of the user.
#[derive(Debug)]
enum SettlementRequest {
    Claim(oneshot::Sender<Result<Claimed, SettlementError>>),
    Close(ChannelId, oneshot::Sender<Result<(), SettlementError>>),
}

#[derive(Debug)]
pub struct SettlementParts {
    pub signer: Signer,
    pub chain: ChainHandle,
    pub ledger: Ledger,
    pub network: NetworkHandle,
    pub book: Book,
    pub channels: Arc<PayerChannels>,
    pub funding: Funding,
    pub accounts: Arc<Accounts>,
    pub policy: Policy,
    pub terms: Terms,
    pub interval: Duration,
    pub closes: mpsc::Receiver<ChannelId>,
    pub stopping: CancellationToken,
}

/// A handle to the settlement tasks.
#[derive(Clone, Debug)]
pub struct Settlement {
    requests: mpsc::Sender<SettlementRequest>,
    payer: Payer,
    intake: ChainIntake,
}

impl Settlement {
    /// The handle and the work behind it.
    pub fn new(parts: SettlementParts) -> Result<(Self, impl Future<Output = ()>), LedgerError> {
        let SettlementParts {
            signer,
            chain,
            ledger,
            network,
            book,
            channels,
            funding,
            accounts,
            policy,
            terms,
            interval,
            closes,
            stopping,
        } = parts;
        let wallet = signer.address();
        let (requests, receiver) = mpsc::channel(8);
        let known = accounts.clone();
        let intake = ChainIntake::new(wallet, chain.clone(), ledger.clone(), book.clone(), known, terms);
        let (closing, ordered, kept) = Default::default();
        let is_of_a_claim = |state| !matches!(state, SettlementState::Lost | SettlementState::Returned);
        let last = ledger.settlements(LAST_CLAIM_LOOK_BACK)?.into_iter().find(|one| is_of_a_claim(one.state));
        let is_probe_due = last.is_some_and(|last| last.state == SettlementState::Failed);
        let payee = Payee {
            chain: chain.clone(),
            ledger: ledger.clone(),
            book,
            intake: intake.clone(),
            policy,
            closing,
            ordered,
            kept,
            retry_refused: Instant::now(),
            is_probe_due,
            unshown: Default::default(),
        };
        let asked_secs = Arc::default();
        let payer = Payer { chain, network, signer, ledger, channels, funding, accounts, policy, asked_secs };
        let handle = Self { requests, payer: payer.clone(), intake: intake.clone() };
        let work = async move {
            let all = async {
                tokio::join!(
                    intake.follow(),
                    payee.run(receiver, closes, interval),
                    payer.clone().follow(interval),
                    payer.ask(interval),
                )
            };
            stopping.run_until_cancelled(all).await;
        };
        Ok((handle, work))
    }

    /// Claims everything that is unclaimed, now.
    ///
    /// # Errors
    /// [`SettlementError`]; what was not claimed stays claimable.
    pub async fn claim(&self) -> Result<Claimed, SettlementError> {
        let (answer, result) = oneshot::channel();
        self.ask(SettlementRequest::Claim(answer), result).await
    }

    /// Closes a channel this node is paid on: final claim, and the rest goes back to the payer.
    ///
    /// # Errors
    /// [`SettlementError`]; it is tried again by itself.
    pub async fn close_as_payee(&self, channel: ChannelId) -> Result<(), SettlementError> {
        let (answer, result) = oneshot::channel();
        self.ask(SettlementRequest::Close(channel, answer), result).await
    }

    /// Gets the rest of a deposit back: cooperatively when the owner answers, else, or with `force`, by starting
    /// the delay on chain.
    ///
    /// # Errors
    /// [`SettlementError`] when neither way works.
    pub async fn close_as_payer(&self, channel: ChannelId, force: bool) -> Result<Closed, SettlementError> {
        self.until_let_go(self.payer.close(channel, force)).await
    }

    /// Signs the request to close a channel that this node pays on, for anybody to send to the contract. Nothing is sent.
    ///
    /// # Errors
    /// [`SettlementError`]; nothing is signed then.
    pub async fn sign_request(&self, channel: ChannelId) -> Result<SignedRequest, SettlementError> {
        self.payer.sign_request(channel).await
    }

    async fn ask<T>(
        &self,
        request: SettlementRequest,
        result: oneshot::Receiver<Result<T, SettlementError>>,
    ) -> Result<T, SettlementError> {
        let answered = async {
            self.requests.send(request).await.map_err(|_| SettlementError::ShuttingDown)?;
            result.await.map_err(|_| SettlementError::ShuttingDown)?
        };
        self.until_let_go(answered).await
    }

    /// Waits for what was asked for until the node stops. Whoever asked is told, and the rest is as after a crash: a transaction
    /// that was signed stays in the journal, and a claim that was begun in the ledger.
    async fn until_let_go<T>(
        &self,
        asked: impl Future<Output = Result<T, SettlementError>>,
    ) -> Result<T, SettlementError> {
        tokio::select! {
            biased;
            answered = asked => answered,
            () = self.payer.chain.until_let_go() => Err(SettlementError::LetGo),
        }
    }

    /// Until when the owner's word to close a channel, by a promise or a signed close, is trusted while the chain does not show it.
    pub fn promised_until(&self, channel: ChannelId) -> Option<u64> {
        self.payer.promised_until(channel)
    }
}
