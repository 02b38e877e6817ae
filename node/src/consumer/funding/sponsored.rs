//! Deposits, requests to close and withdrawals of a wallet without ETH: the owner of the channel is asked to pay the gas.
//!
//! In order, for a deposit: the authorization of its decision is signed and stored, then the owner is asked to bring it, and
//! then the chain alone says whether it was brought. An owner that takes it and does nothing, or names a transaction that the
//! chain does not have, changes nothing: the same bytes are sent again, and if ETH has arrived meanwhile, this wallet makes
//! the deposit with the same authorization itself.
//!
//! Invariant: while an authorization for a channel can be used and the token has not taken it, no other one is signed for
//! the same round of that channel.

use std::{collections::HashMap, time::Duration};

use bytes::Bytes;
use farthing_chain::{ChainError, ChainKind, TxHash};
use farthing_ledger::{LedgerError, Namespace};
use farthing_network::CallFailure;
use farthing_os::{clock, killpoint};
use farthing_protocol::{
    Address, CallMessage, CallReply, ChannelConfig, ChannelId, Hash, RefusalCode, SignedDeposit, Usdc,
    record::FLAG_SPONSORS,
    sponsor::{NotSponsored, SponsorAsked, SponsorReply},
    wire,
};
use farthing_shared::chain_view::{self, REORGANISED_SECS_MAX};
use minicbor::{Decode, Encode};
use parking_lot::Mutex;
use tokio::time::{Instant, sleep};

use super::{
    Funding, SignedRequest,
    wallet::{is_unsent, is_unsigned},
};
use crate::consumer::{BuyError, PendingDeposit, channels::PayerChannel};

/// An owner answers when the transaction is in a block, or after twenty seconds.
const ANSWERED_WITHIN: Duration = Duration::from_secs(30);
/// The time in which the chain has to show what an owner says it has brought, within the time of a call.
const SHOWN_WITHIN: Duration = Duration::from_secs(20);
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// The time after which an owner is asked again that has refused without naming one, that pays for nobody, whose program is too
/// old for the question, that was not reached, or that has a deposit and has not brought it.
const AGAIN_AFTER: Duration = Duration::from_secs(60);
const OFF_AGAIN_AFTER: Duration = Duration::from_secs(600);
const OLD_AGAIN_AFTER: Duration = Duration::from_secs(3_600);
const UNREACHED_AGAIN_AFTER: Duration = Duration::from_secs(5);
const PENDING_AGAIN_AFTER: Duration = Duration::from_secs(20);
/// More refusals are not remembered: the owner says it again.
const REMEMBERED_MAX: usize = 1_024;
/// Of an owner's words, so much is passed on.
const WORDS_CHARS_MAX: usize = 200;

/// The kinds of what an owner is asked to bring.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum ErrandKind {
    Deposit,
    RequestClose,
    Withdraw,
}

/// The refusals that owners gave lately, and the deposits that they have and did not bring.
#[derive(Debug, Default)]
pub(super) struct SaidLately(Mutex<HashMap<(Address, ErrandKind), NotNow>>);

#[derive(Clone, Debug)]
struct NotNow {
    why: String,
    until: Instant,
    /// The deposit that the owner has, while it is not known what becomes of it.
    pending: Option<SignedDeposit>,
}

/// The result of asking an owner. Only the chain shows whether it is true.
#[derive(Debug)]
enum Told {
    Brought(Option<Hash>),
    Refused(String),
    /// No answer came, and the owner may have the question.
    Nothing(String),
}

/// The reason that a deposit was not made.
#[derive(Debug)]
pub(super) enum NotMade {
    Chain(ChainError),
    /// Nothing was signed for it now.
    Before(BuyError),
    /// The owner has its authorization, and says that it does not bring it.
    Refused(BuyError),
    /// The owner may bring it yet.
    Pending(BuyError),
}

impl NotMade {
    pub(super) const fn is_unsigned(&self) -> bool {
        match self {
            Self::Chain(error) => is_unsigned(error),
            Self::Before(_) => true,
            Self::Refused(_) | Self::Pending(_) => false,
        }
    }

    pub(super) const fn is_unsent(&self) -> bool {
        match self {
            Self::Chain(error) => is_unsent(error),
            Self::Before(_) | Self::Refused(_) => true,
            Self::Pending(_) => false,
        }
    }
}

impl From<NotMade> for BuyError {
    fn from(error: NotMade) -> Self {
        match error {
            NotMade::Chain(error) => error.into(),
            NotMade::Before(error) | NotMade::Refused(error) | NotMade::Pending(error) => error,
        }
    }
}

/// An authorization that was signed for an owner to bring, with the decision that it is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
struct StoredDeposit {
    #[n(0)]
    signed: SignedDeposit,
    #[n(1)]
    round: u32,
    #[n(2)]
    deposited: Usdc,
}

impl Funding {
    /// Makes a deposit, at this wallet's cost or, without ETH, at the owner's. Returns whether a transaction made it: the chain may
    /// hold as much already.
    pub(super) async fn make(
        &self,
        config: ChannelConfig,
        decided: (u32, Usdc),
        amount: Usdc,
    ) -> Result<bool, NotMade> {
        let chain = &self.0.chain;
        let earlier = self.earlier(config, decided).await?;
        if !self.lacks_eth() {
            let made = match &earlier {
                Some(signed) => chain.deposit_signed(signed, decided).await,
                None => chain.deposit_onto(config, decided, amount).await,
            };
            return made.map(|report| report.tx_hash.is_some()).map_err(NotMade::Chain);
        }
        // It may have been brought after all.
        if earlier.is_some() && chain.is_deposit_taken(config, decided).await.unwrap_or_default() {
            return Ok(true);
        }
        let owner = config.payee;
        if let Some(not_now) = self.not_now(owner, ErrandKind::Deposit) {
            return Err(NotMade::Before(match not_now.pending {
                Some(signed) => pending(&signed, not_now.why),
                None => self.unfunded(owner, amount).map_err(NotMade::Before)?,
            }));
        }
        let signed = match earlier {
            Some(signed) => signed,
            None => self.sign(config, decided, amount).await.map_err(NotMade::Before)?,
        };
        let (named, why) = match self.ask(owner, SponsorAsked::Deposit(signed)).await {
            Told::Brought(named) => (named, None),
            Told::Nothing(why) => (None, Some(why)),
            Told::Refused(_) => {
                return Err(NotMade::Refused(self.unfunded(owner, amount).map_err(NotMade::Refused)?));
            }
        };
        if self.is_taken_soon(config, decided).await {
            return Ok(true);
        }
        let why = match (named, why) {
            (Some(hash), _) => self.what_became_of(TxHash(hash)).await,
            (None, Some(why)) => format!("the owner did not answer ({why})"),
            (None, None) => "the owner says that it was made before".to_owned(),
        };
        let not_now =
            NotNow { why: why.clone(), until: Instant::now() + PENDING_AGAIN_AFTER, pending: Some(signed) };
        self.0.said_lately.put((owner, ErrandKind::Deposit), not_now);
        Err(NotMade::Pending(pending(&signed, why)))
    }

    /// Asks the owner of a channel to bring this wallet's request to close it. Returns when the chain shows it.
    ///
    /// # Errors
    /// The reason in words.
    pub async fn request_close_sponsored(&self, channel: &PayerChannel) -> Result<(), String> {
        self.check_errand(channel, ErrandKind::RequestClose)?;
        let signed = self.sign_request(channel).await.map_err(|error| error.to_string())?;
        let SignedRequest { config, request, signature } = signed;
        self.errand(channel.id, SponsorAsked::RequestClose(config, request, signature)).await
    }

    /// Asks the owner of a channel to bring the rest of it back to this wallet, after its delay. Returns when the chain shows it.
    ///
    /// # Errors
    /// The reason in words.
    pub async fn withdraw_sponsored(&self, channel: &PayerChannel) -> Result<(), String> {
        self.check_errand(channel, ErrandKind::Withdraw)?;
        self.errand(channel.id, SponsorAsked::Withdraw(channel.config)).await
    }

    /// The reason for which an owner did not pay the gas of a deposit lately; `None` if it may do so now.
    pub(super) fn not_sponsored(&self, owner: Address) -> Option<String> {
        self.refused_lately(owner, ErrandKind::Deposit)
    }

    /// The same of any errand. A node of before says nothing in its record, and would take the question for a malformed one.
    fn refused_lately(&self, owner: Address, kind: ErrandKind) -> Option<String> {
        let Some(network) = &self.0.network else {
            return Some("this node is on no network".to_owned());
        };
        if network.flags_of(owner).is_some_and(|flags| flags & FLAG_SPONSORS == 0) {
            return Some("its node does not offer that".to_owned());
        }
        self.not_now(owner, kind).filter(|not_now| not_now.pending.is_none()).map(|not_now| not_now.why)
    }

    /// Tells whether an owner that this node pays, or wanted to pay, does not pay the gas of a deposit: this wallet needs ETH.
    pub fn needs_eth(&self) -> bool {
        let mut paid = self.0.channels.all().into_iter().filter(PayerChannel::holds_deposit);
        let refuses = |channel: PayerChannel| self.not_sponsored(channel.config.payee).is_some();
        self.0.said_lately.has_refused(ErrandKind::Deposit) || paid.any(refuses)
    }

    fn not_now(&self, owner: Address, kind: ErrandKind) -> Option<NotNow> {
        self.0.said_lately.get((owner, kind))
    }

    fn unfunded(&self, owner: Address, amount: Usdc) -> Result<BuyError, BuyError> {
        let balance = self.balance()?;
        Ok(self.missing(owner, balance, amount.min(balance.usdc)))
    }

    /// The authorization of this decision that is stored, if it can still be used.
    ///
    /// # Errors
    /// Where one of another decision in the same round can.
    async fn earlier(
        &self,
        config: ChannelConfig,
        decided: (u32, Usdc),
    ) -> Result<Option<SignedDeposit>, NotMade> {
        let id = config.id(&self.0.chain.domain());
        let stored = self.stored(id).map_err(|error| NotMade::Before(error.into()))?;
        let Some(StoredDeposit { signed, round, deposited }) = stored else { return Ok(None) };
        if self.has_lapsed(&signed) || round != decided.0 {
            return Ok(None);
        }
        if deposited == decided.1 {
            return Ok(Some(signed));
        }
        match self.0.chain.is_deposit_taken(config, (round, deposited)).await {
            Ok(true) => Ok(None),
            Ok(false) => Err(NotMade::Before(pending(&signed, "it is of an earlier decision".to_owned()))),
            Err(error) => Err(NotMade::Before(error.into())),
        }
    }

    fn has_lapsed(&self, signed: &SignedDeposit) -> bool {
        signed.deposit.valid_before_secs.saturating_add(REORGANISED_SECS_MAX) < self.time_secs()
    }

    /// The deposit that this owner may bring yet, and the time for which it can; `None` if there is none, or it cannot be read.
    pub(super) fn signed_for(&self, owner: Address) -> Option<(Usdc, u64)> {
        let signed = self.signed_to_bring().ok()?;
        let deposit = signed.into_iter().map(|signed| signed.deposit).find(|it| it.config.payee == owner)?;
        Some((deposit.amount, deposit.valid_before_secs.saturating_sub(self.time_secs())))
    }

    /// The deposits that owners may bring yet, as far as the books show. What one was signed for is in the
    /// wallet, and no other payment may count on it.
    pub(super) fn signed_to_bring(&self) -> Result<Vec<SignedDeposit>, LedgerError> {
        let mut deposits = Vec::new();
        for (key, bytes) in self.0.ledger.list(Namespace::SignedDeposits)? {
            let Ok(StoredDeposit { signed, round, deposited }) = minicbor::decode(&bytes) else { continue };
            let id = signed.deposit.config.id(&self.0.chain.domain());
            // One of another contract takes nothing here.
            if key != id.as_bytes()[..] || self.has_lapsed(&signed) {
                continue;
            }
            let shown = self.0.channels.get(id);
            let shown = shown.map_or((0, Usdc::ZERO), |channel| (channel.round, channel.state.deposited));
            if shown <= (round, deposited) {
                deposits.push(signed);
            }
        }
        Ok(deposits)
    }

    fn stored(&self, channel: ChannelId) -> Result<Option<StoredDeposit>, LedgerError> {
        let bytes = self.0.ledger.get(Namespace::SignedDeposits, channel.as_bytes())?;
        // What this program did not write it does not use, and signs nothing that the token would take as well.
        Ok(bytes.and_then(|bytes| minicbor::decode(&bytes).ok()))
    }

    /// Signs the authorization of a decision, and stores it before anybody has it.
    async fn sign(
        &self,
        config: ChannelConfig,
        (round, deposited): (u32, Usdc),
        amount: Usdc,
    ) -> Result<SignedDeposit, BuyError> {
        let chain = &self.0.chain;
        let deposit = chain.deposit_to_sign(config, (round, deposited), amount).await?;
        let token = chain.token_domain().await?;
        let signed = self.0.signer.sign_deposit(deposit, &token, chain.spec().contract)?;
        let key = config.id(&chain.domain()).as_bytes().to_vec();
        let stored = wire::encode(&StoredDeposit { signed, round, deposited });
        self.0.ledger.put(Namespace::SignedDeposits, key, stored).await?;
        killpoint::reached("funding.after_sign");
        Ok(signed)
    }

    /// The time by which an authorization lapses. An endpoint that is ahead of the clock does not end one sooner.
    pub(super) fn time_secs(&self) -> u64 {
        let (now_secs, block_secs) = (clock::now_secs(), chain_view::time_secs(&self.0.chain));
        match self.0.chain.spec().kind {
            ChainKind::Local => block_secs.unwrap_or(now_secs),
            ChainKind::Mainnet | ChainKind::Testnet => block_secs.map_or(now_secs, |secs| secs.min(now_secs)),
        }
    }

    /// Waits until the token has taken the authorization of a decision; not for long.
    async fn is_taken_soon(&self, config: ChannelConfig, decided: (u32, Usdc)) -> bool {
        let (chain, until) = (&self.0.chain, Instant::now() + SHOWN_WITHIN);
        while !chain.is_deposit_taken(config, decided).await.unwrap_or_default() {
            if Instant::now() >= until {
                return false;
            }
            sleep(LOOK_EVERY).await;
        }
        // It fails only when the chain is shut down.
        let _ = chain.reread(config.id(&chain.domain())).await;
        true
    }

    async fn what_became_of(&self, transaction: TxHash) -> String {
        match self.0.chain.landed(transaction).await {
            Ok(None) => format!("no endpoint has the transaction {transaction} that the owner named"),
            Ok(Some(landed)) if !landed.succeeded => {
                format!("the transaction {transaction} that the owner named has failed")
            }
            Ok(Some(_)) => format!("the transaction {transaction} that the owner named does not make it"),
            Err(_) => format!("the transaction {transaction} that the owner named is not known yet"),
        }
    }

    fn check_errand(&self, channel: &PayerChannel, kind: ErrandKind) -> Result<(), String> {
        if channel.is_elsewhere {
            return Err(
                "the channel is of another chain, contract or token than the settings name".to_owned()
            );
        }
        self.refused_lately(channel.config.payee, kind).map_or(Ok(()), Err)
    }

    /// Asks for what is about a channel that the chain shows, and waits until the chain shows it done: the channel closes, or is
    /// empty.
    async fn errand(&self, id: ChannelId, asked: SponsorAsked) -> Result<(), String> {
        let (chain, withdraws) = (&self.0.chain, matches!(asked, SponsorAsked::Withdraw(_)));
        let (owner, kind) = (asked.config().payee, kind_of(&asked));
        let named = match self.ask(owner, asked).await {
            Told::Brought(named) => named,
            Told::Refused(why) | Told::Nothing(why) => return Err(why),
        };
        let until = Instant::now() + SHOWN_WITHIN;
        loop {
            let view = chain.channel(&id);
            let is_empty = view.is_some_and(|view| view.deposited <= view.claimed);
            if is_empty || !withdraws && view.is_some_and(|view| view.close_at_secs.is_some()) {
                return Ok(());
            }
            if Instant::now() >= until {
                let why = match named {
                    Some(hash) => self.what_became_of(TxHash(hash)).await,
                    None => "the chain does not show it yet".to_owned(),
                };
                // What it says may be untrue: each look takes a question to the chain.
                let not_now = NotNow { why: why.clone(), until: Instant::now() + AGAIN_AFTER, pending: None };
                self.0.said_lately.put((owner, kind), not_now);
                return Err(why);
            }
            let _ = chain.reread(id).await;
            sleep(LOOK_EVERY).await;
        }
    }

    async fn ask(&self, owner: Address, asked: SponsorAsked) -> Told {
        let kind = kind_of(&asked);
        let Some(network) = &self.0.network else {
            return Told::Refused("this node is on no network".to_owned());
        };
        let question = CallMessage::Sponsor(asked);
        let (why, wait) = match network.call(owner, question, Bytes::new(), ANSWERED_WITHIN).await {
            Ok((CallReply::Sponsor(SponsorReply::Sent { transaction }), ..)) => {
                return Told::Brought(Some(transaction));
            }
            Ok((CallReply::Sponsor(SponsorReply::Done), ..)) => return Told::Brought(None),
            Ok((CallReply::Sponsor(SponsorReply::Refused { why, detail, retry_after_secs }), ..)) => {
                (words(&detail), wait_after(why, retry_after_secs))
            }
            Ok((CallReply::Refused(refusal), ..)) if refusal.code == RefusalCode::Malformed => {
                ("the program of its node is older and does not support this".to_owned(), OLD_AGAIN_AFTER)
            }
            Ok((CallReply::Refused(refusal), ..)) => (words(&refusal.detail), UNREACHED_AGAIN_AFTER),
            Ok(_) => ("its node answered another question".to_owned(), AGAIN_AFTER),
            Err(CallFailure::NeverStarted(reason)) => (reason.to_string(), UNREACHED_AGAIN_AFTER),
            Err(CallFailure::Unknown(reason)) => return Told::Nothing(reason.to_string()),
        };
        tracing::info!(%owner, ?kind, why, "an owner does not pay the gas");
        let not_now = NotNow { why: why.clone(), until: Instant::now() + wait, pending: None };
        self.0.said_lately.put((owner, kind), not_now);
        Told::Refused(why)
    }
}

impl SaidLately {
    fn get(&self, key: (Address, ErrandKind)) -> Option<NotNow> {
        let said = self.0.lock();
        said.get(&key).filter(|not_now| Instant::now() < not_now.until).cloned()
    }

    fn put(&self, key: (Address, ErrandKind), not_now: NotNow) {
        let mut said = self.0.lock();
        if said.len() >= REMEMBERED_MAX {
            said.retain(|_, earlier| Instant::now() < earlier.until);
        }
        if said.len() < REMEMBERED_MAX || said.contains_key(&key) {
            said.insert(key, not_now);
        }
    }

    fn has_refused(&self, kind: ErrandKind) -> bool {
        let said = self.0.lock();
        let is_refusal = |not_now: &NotNow| not_now.pending.is_none() && Instant::now() < not_now.until;
        said.iter().any(|((_, of), not_now)| *of == kind && is_refusal(not_now))
    }
}

const fn kind_of(asked: &SponsorAsked) -> ErrandKind {
    match asked {
        SponsorAsked::Deposit(_) => ErrandKind::Deposit,
        SponsorAsked::RequestClose(..) => ErrandKind::RequestClose,
        SponsorAsked::Withdraw(_) => ErrandKind::Withdraw,
    }
}

/// An owner may name a time, but none that keeps this node from asking for a day.
fn wait_after(why: NotSponsored, retry_after_secs: Option<u64>) -> Duration {
    let wait = match (why, retry_after_secs) {
        (NotSponsored::Off, None) => OFF_AGAIN_AFTER,
        (_, None) => AGAIN_AFTER,
        (_, Some(secs)) => Duration::from_secs(secs),
    };
    wait.clamp(UNREACHED_AGAIN_AFTER, OLD_AGAIN_AFTER)
}

/// A stranger's words, for people: one line of them.
fn words(detail: &str) -> String {
    let words: String = detail.chars().filter(|c| !c.is_control()).take(WORDS_CHARS_MAX).collect();
    if words.is_empty() { "the owner gives no reason".to_owned() } else { words }
}

fn pending(signed: &SignedDeposit, why: String) -> BuyError {
    let deposit = &signed.deposit;
    let left_secs = deposit.valid_before_secs.saturating_sub(clock::now_secs());
    let (owner, amount) = (deposit.config.payee, deposit.amount);
    BuyError::DepositPending(PendingDeposit { owner, amount, left_secs, why })
}

#[cfg(test)]
mod tests;
