//! Gas for payers without ETH: what they have signed is brought to the chain at this node's cost, within careful limits.
//!
//! In order: it must be the asking payer's own channel with this owner, and the sum worth many times the gas; one address range
//! may ask so often in an hour; what this node has earned there is claimed before a withdrawal; the transaction is tried without
//! being sent, and what it would cost is judged once more and taken from a daily budget; only then it is sent. What it did cost
//! is known afterwards. A transaction that fails in its block costs this node its gas and the payer nothing: the budget is what
//! bounds that.
//!
//! Invariant: no transaction is sent for another wallet whose cost the day's budget does not cover.

use std::{collections::HashMap, net::IpAddr, time::Duration};

use farthing_bounds::{LineLimiter, wait_secs};
use farthing_chain::{ChainError, ChainKind, SponsorTrial, TransactionPurpose, TxReport};
use farthing_ledger::{Ledger, LedgerError, Position, Transaction, Window};
use farthing_protocol::{
    Address, ChannelConfig, Usdc,
    sponsor::{NotSponsored, SponsorAsked, SponsorReply},
};
use farthing_shared::{
    chain_view,
    gas::{TransactionCost, check_worth, micros_of},
};
use parking_lot::Mutex;
use tokio::{sync::Semaphore, time::Instant};

use crate::Owner;

const HOUR: Duration = Duration::from_secs(3_600);
const DAY: Duration = Duration::from_secs(24 * 3_600);
/// Origins remembered at once; when all are of the last hour, a new one waits.
const ORIGINS_MAX: usize = 4_096;
/// Errands at work at once: each takes a turn of this wallet's writer.
const AT_ONCE: usize = 2;
/// About what a deposit takes (measured, `docs/contracts.md`): who offers less than that pays for needs no trial.
const USUAL_GAS: u64 = 100_000;
/// A payer waits no longer for a block.
const MINED_WITHIN: Duration = Duration::from_secs(20);
/// A claim that a pending withdrawal calls for is in a block within this time, as a rule.
const CLAIMED_WITHIN: Duration = Duration::from_secs(10);
/// The wallet keeps ETH for so many transactions of this size: it has to claim what was earned.
const KEPT_TRANSACTIONS: u128 = 3;
/// Transactions of the last day that are looked at for what was spent before a restart.
const LOOKED_AT_MAX: usize = 4_096;

/// Lines about refused questions, which anybody can ask for nothing.
static REFUSED_TOLD: LineLimiter = LineLimiter::new(30);

/// The limits within which this node pays gas for others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SponsorRules {
    pub is_on: bool,
    /// The sum is worth at least so many times the gas.
    pub gas_factor: u64,
    /// Gas in all, in a day.
    pub gas_per_day: Usdc,
    /// Errands of one origin in an hour.
    pub per_hour: u32,
}

impl Default for SponsorRules {
    fn default() -> Self {
        Self { is_on: true, gas_factor: 20, gas_per_day: Usdc::from_micros(500_000), per_hour: 12 }
    }
}

/// The origin that errands are counted by: an address range, or the wallet where one address may stand for many.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrandOrigin {
    Range(IpAddr),
    Wallet(Address),
}

/// The gas that this node has paid for others lately, within its rules.
#[derive(Debug)]
pub struct Sponsor {
    rules: SponsorRules,
    day: Mutex<SpentGas>,
    asked: Mutex<HashMap<ErrandOrigin, AskedLately>>,
    at_work: Semaphore,
}

#[derive(Clone, Copy, Debug)]
struct SpentGas {
    since: Instant,
    sum: Usdc,
    /// For transactions that have not ended: a new day does not free it.
    reserved: Usdc,
}

#[derive(Clone, Copy, Debug)]
struct AskedLately {
    since: Instant,
    times: u32,
}

impl Sponsor {
    /// Begins with what the ledger says was paid for others in the last day, so that a restart frees nothing.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub fn restore(
        rules: SponsorRules,
        ledger: &Ledger,
        own: Address,
        now_secs: u64,
    ) -> Result<Self, LedgerError> {
        let window = Window {
            before: Position::start_of(u64::MAX),
            from_secs: now_secs.saturating_sub(DAY.as_secs()),
            limit: LOOKED_AT_MAX,
            scan_max: LOOKED_AT_MAX,
        };
        let paid = ledger.transactions_in(&window, |transaction| is_for_another(transaction, own))?.rows;
        let fee = |transaction: &Transaction| micros_of(u128::from_be_bytes(transaction.fee_wei));
        let sum = paid.iter().fold(Usdc::ZERO, |sum, (_, paid)| sum.saturating_add(fee(paid)));
        Ok(Self::new(rules, sum))
    }

    fn new(rules: SponsorRules, sum: Usdc) -> Self {
        let day = Mutex::new(SpentGas { since: Instant::now(), sum, reserved: Usdc::ZERO });
        Self { rules, day, asked: Mutex::default(), at_work: Semaphore::new(AT_ONCE) }
    }

    /// Counts an errand of this origin.
    fn count(&self, origin: ErrandOrigin, now: Instant) -> Result<(), SponsorReply> {
        let mut asked = self.asked.lock();
        let is_over = |lately: &AskedLately| now.saturating_duration_since(lately.since) >= HOUR;
        if asked.len() >= ORIGINS_MAX {
            asked.retain(|_, lately| !is_over(lately));
        }
        if asked.len() >= ORIGINS_MAX && !asked.contains_key(&origin) {
            return Err(too_many("too many buyers ask this owner to pay their gas", HOUR));
        }
        let fresh = AskedLately { since: now, times: 0 };
        let lately = asked.entry(origin).or_insert(fresh);
        if is_over(lately) {
            *lately = fresh;
        }
        if lately.times >= self.rules.per_hour {
            let wait = HOUR.saturating_sub(now.saturating_duration_since(lately.since));
            let detail = format!("this owner pays gas {} times an hour for one address", self.rules.per_hour);
            return Err(too_many(&detail, wait));
        }
        lately.times += 1;
        Ok(())
    }

    fn check_worth(&self, sum: Usdc, gas: Usdc) -> Result<(), SponsorReply> {
        let factor = self.rules.gas_factor;
        check_worth(sum, gas, factor).map_err(|least| {
            let detail = format!(
                "{sum} USDC are less than {factor} times the gas of {gas} USDC; this owner pays it for {least} USDC \
                 or more"
            );
            SponsorReply::refused(NotSponsored::TooSmall, detail, None)
        })
    }

    /// Takes `most` from the day's budget.
    fn reserve(&self, most: Usdc, now: Instant) -> Result<(), SponsorReply> {
        let mut day = self.day.lock();
        if now.saturating_duration_since(day.since) >= DAY {
            (day.since, day.sum) = (now, Usdc::ZERO);
        }
        let reserved = day.reserved.saturating_add(most);
        if day.sum.saturating_add(reserved) > self.rules.gas_per_day {
            let wait = DAY.saturating_sub(now.saturating_duration_since(day.since));
            let detail = format!(
                "the gas of {most} USDC is more than what is left of the {} USDC that this owner pays for others in a \
                 day",
                self.rules.gas_per_day
            );
            return Err(SponsorReply::refused(NotSponsored::DayIsSpent, detail, Some(wait_secs(wait))));
        }
        day.reserved = reserved;
        Ok(())
    }

    /// Replaces what was reserved by what was paid.
    fn settle(&self, reserved: Usdc, paid: Usdc) {
        let mut day = self.day.lock();
        day.reserved = day.reserved.saturating_sub(reserved);
        day.sum = day.sum.saturating_add(paid);
    }
}

/// A reply for the log.
fn in_words(reply: &SponsorReply) -> String {
    match reply {
        SponsorReply::Sent { transaction } => format!("sent 0x{}", hex::encode(transaction)),
        SponsorReply::Done => "done".to_owned(),
        SponsorReply::Refused { why, detail, .. } => format!("refused ({why:?}): {detail}"),
    }
}

impl Owner {
    /// Answers a payer that asks this node to bring something to the chain.
    pub(super) async fn sponsor(
        &self,
        payer: Address,
        range: Option<IpAddr>,
        asked: SponsorAsked,
    ) -> SponsorReply {
        let sponsored = self.sponsored(payer, range, asked).await;
        let left_out = match sponsored {
            Ok(_) => Some(0),
            Err(_) => REFUSED_TOLD.admits(Instant::now().into_std()),
        };
        let reply = sponsored.unwrap_or_else(|refused| refused);
        if let Some(left_out) = left_out {
            let reply = in_words(&reply);
            tracing::info!(%payer, reply, left_out, "a payer asked this node to pay its gas");
        }
        reply
    }

    async fn sponsored(
        &self,
        payer: Address,
        range: Option<IpAddr>,
        asked: SponsorAsked,
    ) -> Result<SponsorReply, SponsorReply> {
        let (chain, sponsor) = (&self.0.chain, &self.0.sponsor);
        if !sponsor.rules.is_on {
            let detail = "this owner pays no gas for buyers (settlement.sponsor)";
            return Err(SponsorReply::refused(NotSponsored::Off, detail, None));
        }
        let sum = self.at_stake(payer, &asked)?;
        let fee = *chain.base_fee().borrow();
        let fee = fee.filter(|_| chain_view::is_fresh(chain));
        let fee = fee.ok_or_else(|| unable("the owner's node does not see the chain now"))?;
        // Gas has no price on a chain of one's own.
        let is_free = chain.spec().kind == ChainKind::Local;
        let cost = |gas| {
            let cost = TransactionCost::of(&fee, gas);
            if is_free {
                TransactionCost { most_wei: cost.most_wei, ..TransactionCost::default() }
            } else {
                cost
            }
        };
        sponsor.check_worth(sum, cost(USUAL_GAS).likely)?;
        if let SponsorAsked::Withdraw(config) = &asked {
            check_claimed(self.unclaimed_on(config), cost(USUAL_GAS).likely)?;
        }
        let origin = range.map_or(ErrandOrigin::Wallet(payer), ErrandOrigin::Range);
        sponsor.count(origin, Instant::now())?;
        let at_work = sponsor.at_work.try_acquire();
        let _at_work = at_work
            .map_err(|_| too_many("this owner is already sending other buyers' transactions", HOUR / 720))?;
        let cost = match chain.try_sponsored(&asked).await.map_err(|error| not_brought(&error))? {
            SponsorTrial::Takes { gas } => cost(gas),
            SponsorTrial::Fails(reason) => return Err(would_fail(&reason)),
        };
        sponsor.check_worth(sum, cost.likely)?;
        let has_wei = chain.balances().borrow().map_or(0, |balances| balances.eth_wei);
        let keeps_enough = has_wei >= cost.most_wei.saturating_mul(KEPT_TRANSACTIONS);
        // A claim of many channels takes more than these transactions.
        if !keeps_enough || self.0.x402.check_claims().is_err() {
            return Err(unable("the owner's wallet needs its ETH for its own transactions"));
        }
        sponsor.reserve(cost.most, Instant::now())?;
        self.bring(asked, cost.most, is_free).await
    }

    /// Sends what was tried, and what was reserved for.
    async fn bring(
        &self,
        asked: SponsorAsked,
        reserved: Usdc,
        is_free: bool,
    ) -> Result<SponsorReply, SponsorReply> {
        let sponsor = &self.0.sponsor;
        match self.0.chain.sponsor(asked, MINED_WITHIN).await {
            Ok(TxReport { tx_hash: Some(hash), fee_wei, .. }) => {
                let paid = if is_free { Usdc::ZERO } else { micros_of(fee_wei) };
                sponsor.settle(reserved, paid);
                Ok(SponsorReply::Sent { transaction: hash.0 })
            }
            Ok(_) => {
                sponsor.settle(reserved, Usdc::ZERO);
                Ok(SponsorReply::Done)
            }
            // It may be in a block yet, so it stays paid for.
            Err(ChainError::UnderWay { hashes, .. }) if !hashes.is_empty() => {
                sponsor.settle(reserved, reserved);
                let hash = hashes.last().map_or([0; 32], |hash| hash.0);
                Ok(SponsorReply::Sent { transaction: hash })
            }
            Err(error) => {
                sponsor.settle(reserved, if may_have_cost(&error) { reserved } else { Usdc::ZERO });
                Err(not_brought(&error))
            }
        }
    }

    /// The sum of the payer's that an errand moves into its channel with this owner, or back to it.
    fn at_stake(&self, payer: Address, asked: &SponsorAsked) -> Result<Usdc, SponsorReply> {
        let (chain, config) = (&self.0.chain, asked.config());
        let is_theirs = config.payer == payer && config.signer == payer;
        if !is_theirs || config.payee != self.0.signer.address() || config.token != chain.spec().token {
            return Err(other_channel("this owner pays gas only for channels that you have with it"));
        }
        let id = config.id(&chain.domain());
        let view = chain.channel(&id);
        match asked {
            SponsorAsked::Deposit(_) if view.is_some_and(|view| view.close_at_secs.is_some()) => {
                Err(other_channel("a close of the channel is pending, so the deposit would pay for no call"))
            }
            SponsorAsked::Deposit(signed) => {
                let amount = signed.deposit.amount;
                let deposited = view.map_or(Usdc::ZERO, |view| view.deposited).saturating_add(amount);
                let is_served = self.0.terms.check(config, deposited);
                is_served.map_err(|refusal| other_channel(&refusal.detail)).map(|()| amount)
            }
            SponsorAsked::RequestClose(_, request, signature) => {
                // Before the signature, which takes a while to verify: only a deposit makes a channel known.
                let left = self.left_on(config)?;
                let is_signed = request.verify(&chain.domain(), *signature, payer).is_ok();
                if request.channel != id || !is_signed {
                    return Err(other_channel("you have not signed this request for this channel"));
                }
                Ok(left)
            }
            SponsorAsked::Withdraw(_) => self.left_on(config),
        }
    }

    /// The sum that this owner has earned on a channel, and that a withdrawal of its payer takes out of reach.
    fn unclaimed_on(&self, config: &ChannelConfig) -> Usdc {
        let id = config.id(&self.0.chain.domain());
        self.0.book.get(id).map_or(Usdc::ZERO, |entry| entry.state.unclaimed())
    }

    /// The rest of a channel that goes back to its payer: what is neither paid out nor earned.
    fn left_on(&self, config: &ChannelConfig) -> Result<Usdc, SponsorReply> {
        let id = config.id(&self.0.chain.domain());
        let view = self.0.chain.channel(&id);
        let view = view.ok_or_else(|| other_channel("this owner does not know the channel"))?;
        let spent = self.0.book.get(id).map_or(Usdc::ZERO, |entry| entry.state.spent);
        Ok(view.deposited.saturating_sub(spent.max(view.claimed)))
    }
}

/// Tells whether a transaction of the history was paid for somebody else. A payer's withdrawal is from a channel with this wallet.
fn is_for_another(transaction: &Transaction, own: Address) -> bool {
    let is = |purpose: TransactionPurpose| transaction.purpose == purpose.words();
    is(TransactionPurpose::SponsoredDeposit)
        || is(TransactionPurpose::SponsoredRequest)
        || is(TransactionPurpose::Withdrawal) && transaction.peer == Some(own)
}

/// Tells whether a transaction that came to this end may have cost gas.
const fn may_have_cost(error: &ChainError) -> bool {
    !matches!(
        error,
        ChainError::Reverted { .. }
            | ChainError::GasTooDear { .. }
            | ChainError::InsufficientEth { .. }
            | ChainError::Unreachable { .. }
            | ChainError::Refused { .. }
            | ChainError::ContractMissing { .. }
            | ChainError::Busy { .. }
            | ChainError::Invalid(_)
    )
}

/// Refuses a withdrawal that comes before a claim of what this node has earned. A sum below its gas is not claimed at all.
fn check_claimed(unclaimed: Usdc, gas: Usdc) -> Result<(), SponsorReply> {
    if unclaimed <= gas {
        return Ok(());
    }
    let detail = format!("this owner first claims the {unclaimed} USDC that it has earned on this channel");
    Err(SponsorReply::refused(NotSponsored::Unable, detail, Some(CLAIMED_WITHIN.as_secs())))
}

fn too_many(detail: &str, wait: Duration) -> SponsorReply {
    SponsorReply::refused(NotSponsored::TooMany, detail, Some(wait_secs(wait).max(1)))
}

fn other_channel(detail: &str) -> SponsorReply {
    SponsorReply::refused(NotSponsored::OtherChannel, detail, None)
}

fn unable(detail: &str) -> SponsorReply {
    SponsorReply::refused(NotSponsored::Unable, detail, Some(60))
}

fn would_fail(reason: &str) -> SponsorReply {
    SponsorReply::refused(NotSponsored::WouldFail, format!("the chain would refuse it: {reason}"), None)
}

fn not_brought(error: &ChainError) -> SponsorReply {
    match error {
        ChainError::Reverted { reason, .. } | ChainError::Failed { reason, .. } => would_fail(reason),
        ChainError::Busy { .. } => too_many("other transactions of this owner are waiting", HOUR / 60),
        error => {
            tracing::warn!(%error, "a payer's transaction was not brought");
            unable("the owner's node cannot send it to the chain now")
        }
    }
}

#[cfg(test)]
mod tests;
