//! Alerts about what needs a person: each with its cause and what to do about it.
//!
//! [`current`] is pure: from what is known of money, chain and network it says what is amiss. [`Alerts`] looks at the
//! node for it, remembers since when each holds, and keeps the levels that the user set. [`watch`] tells a webhook.

use std::{collections::BTreeMap, path::PathBuf, sync::Arc, time::Duration};

use farthing_catalog::Failing;
use farthing_config::FlagRule;
use farthing_ledger::{Ledger, LedgerError};
use farthing_owner::{
    Owner,
    book::Book,
    health::{Health, HealthProblem},
    terms::Terms,
    upstream::UpstreamOptions,
};
use farthing_protocol::{Address, ChannelId, Usdc};
use farthing_shared::{
    chain_view::{self, STALE_NEXT, Stale},
    disk::{LOW, LOW_NEXT, Space},
};
use parking_lot::Mutex;

use crate::{
    approvals::Approvals,
    backup::{Automatic, automatic::BackupFailure},
    consumer::{
        Consumer,
        channels::{PayerChannel, PayerChannels},
        conduct::ServiceConduct,
        funding::{ClosedUnasked, Funding},
        rules::SpendingStop,
    },
    status::{ClockOff, NotReadyPart, Readiness},
};

mod asking;
mod catalog;
mod closed;
mod door;
mod elsewhere;
mod left;
mod levels;
mod lost;
mod signature;
mod silent;
mod unread;
mod wallet;
mod watch;
mod webhook;

pub use catalog::catalog_alert;
pub use elsewhere::MoneyElsewhere;
pub use left::MoneyLeft;
pub use levels::{Levels, LevelsError};
pub use signature::WebhookSecret;
pub use webhook::{Delivery, WebhookAddress, WebhookError};

use asking::AskingAgents;
use door::DoorFacts;
use farthing_control::types::{
    Alert, AlertKind,
    AlertSeverity::{Error, Warning},
};
use farthing_os::clock;
use levels::LevelsStore;
use lost::{EarningsLost, SalesLost};
use silent::{SilentOwner, silent_owners};
use unread::UnreadEvents;

/// A day's budget that is used up to this part is told before it stops the calls.
const BUDGET_PERCENT: u128 = 80;
/// More would not be read.
const ALERTS_MAX: usize = 64;

/// The effect of a copied data folder, which ends in money signed for twice.
pub const TWIN: &str =
    "another node uses this wallet's key, so other nodes cannot reach either of them reliably";
pub const TWIN_NEXT: &str = "stop one of the two; never run a copy of a data folder while the original runs";

/// A channel on which this node pays.
#[derive(Clone, Copy, Debug)]
struct Paying {
    id: ChannelId,
    owner: Address,
    available: Usdc,
    stopped: bool,
    closing: bool,
}

/// Claims that the contract refuses.
#[derive(Clone, Debug, PartialEq, Eq)]
struct RefusedClaims {
    channels: usize,
    amount: Usdc,
    /// Of one of them.
    reason: String,
}

/// A service that is flagged, with the name that this node knows for it.
#[derive(Clone, Debug)]
struct FlaggedService {
    conduct: ServiceConduct,
    name: Option<String>,
}

/// The facts about the node that alerts come from.
#[derive(Clone, Debug, Default)]
struct NodeFacts {
    /// The reasons that it cannot buy and sell.
    waiting_for: Vec<NotReadyPart>,
    /// The chain shows nothing new.
    stale: Option<Stale>,
    clock_off: Option<ClockOff>,
    is_twin_there: bool,
    stopped: Option<SpendingStop>,
    spent_today: Usdc,
    per_day: Usdc,
    /// `None` while the chain was never reached.
    usdc: Option<Usdc>,
    wei: Option<u128>,
    /// As far as is known, owners pay the gas of this node's deposits.
    is_gas_paid: bool,
    paying: Vec<Paying>,
    silent: Vec<SilentOwner>,
    /// Earned and to be claimed.
    unclaimed: Usdc,
    /// The transaction that the wallet has under way, and for how long.
    under_way: Option<(&'static str, Duration)>,
    /// The part of `unclaimed` that the wallet's ETH does not bring to the chain.
    unaffordable: Usdc,
    /// Claims that the contract refuses.
    refused: Option<RefusedClaims>,
    /// The most that is served and cannot be claimed.
    without_gas_max: Usdc,
    /// Events of the chain that could not be read.
    unread: UnreadEvents,
    /// Of the owner's services.
    ailing: Vec<HealthProblem>,
    /// Of services that this node pays, but for those that its user buys all the same.
    flagged: Vec<FlaggedService>,
    /// The reason that there is no backup of today.
    backup: Option<BackupFailure>,
    /// The space where the data folder lies.
    disk: Option<Space>,
    /// The part of the catalog that cannot be written.
    catalog: Option<Failing>,
    /// Owners whose returned deposits take room among the money at rest.
    closed_unasked: Vec<ClosedUnasked>,
    /// Money on channels that the settings do not reach.
    elsewhere: Vec<MoneyElsewhere>,
    /// Money of nodes that a restored backup replaced.
    left: Vec<MoneyLeft>,
    /// Withdrawn by payers before it was claimed.
    lost: Option<EarningsLost>,
    /// Taken back by the chain after the answers had left.
    sales_lost: Option<SalesLost>,
    door: DoorFacts,
    asking: Option<AskingAgents>,
}

/// Lists what is amiss, in a fixed order; the time is filled in by [`Alerts`].
fn current(facts: &NodeFacts, levels: &Levels) -> Vec<Alert> {
    let mut alerts = of_the_machine(facts);
    alerts.extend(facts.elsewhere.iter().map(elsewhere::alert));
    alerts.extend(facts.left.iter().map(left::alert));
    alerts.extend(facts.lost.as_ref().map(lost::alert));
    alerts.extend(facts.sales_lost.as_ref().map(lost::sales_alert));
    alerts.extend(facts.stopped.map(stopped));
    alerts.extend(facts.asking.as_ref().map(asking::alert));
    alerts.extend(wallet::alerts(facts, levels));
    alerts.extend(budget(facts));
    alerts.extend(facts.paying.iter().filter_map(|channel| of_a_channel(channel, levels)));
    alerts.extend(facts.silent.iter().filter_map(silent::alert));
    // A chain that shows nothing at all is told of above.
    alerts.extend(unread::alert(&facts.unread).filter(|_| facts.stale.is_none()));
    alerts.extend(door::alerts(&facts.door));
    alerts.extend(facts.ailing.iter().map(ailing));
    alerts.extend(facts.flagged.iter().filter_map(flagged));
    alerts.extend(facts.backup.as_ref().map(no_backup));
    // Owners cost nothing: they come last, and displace no other alert.
    alerts.extend(facts.closed_unasked.iter().map(closed::alert));
    alerts.truncate(ALERTS_MAX);
    alerts
}

/// Of this machine and what it reaches.
fn of_the_machine(facts: &NodeFacts) -> Vec<Alert> {
    let mut alerts = Vec::new();
    for NotReadyPart { part, cause } in &facts.waiting_for {
        let action = "`farthing doctor` shows what to do";
        alerts.push(Alert::new(AlertKind::NotReady, Error, cause, action).about(part));
    }
    // One that is too old keeps the node from selling, which is told above.
    if let Some(stale) = facts.stale.as_ref().filter(|stale| !stale.is_too_old()) {
        alerts.push(Alert::new(AlertKind::ChainStale, Warning, stale.to_string(), STALE_NEXT));
    }
    if let Some(space) = facts.disk.filter(Space::is_little) {
        let severity = if space.is_low() { Error } else { Warning };
        let cause = format!("{space} free on the disk with the data folder: {LOW}");
        alerts.push(Alert::new(AlertKind::DiskLow, severity, cause, LOW_NEXT));
    }
    alerts.extend(facts.catalog.map(catalog_alert));
    if let Some(off) = &facts.clock_off {
        let severity = if off.is_bad() { Error } else { Warning };
        let action = "set this machine's clock and keep it correct with NTP: other nodes refuse messages with a wrong \
                      time";
        alerts.push(Alert::new(AlertKind::ClockOff, severity, off.to_string(), action));
    }
    if facts.is_twin_there {
        alerts.push(Alert::new(AlertKind::WalletTwice, Error, TWIN, TWIN_NEXT));
    }
    alerts
}

fn stopped(stopped: SpendingStop) -> Alert {
    let (cause, action) = match stopped {
        SpendingStop::ByConfiguration => (
            "`spending.enabled` is false, so this node buys no calls".to_owned(),
            "set it to true and restart the node",
        ),
        SpendingStop::Since(secs) => (
            format!("all spending was stopped on {}, so this node buys no calls", clock::date(secs)),
            "allow it again with `farthing spending resume`",
        ),
    };
    Alert::new(AlertKind::SpendingStopped, Warning, cause, action)
}

fn budget(facts: &NodeFacts) -> Option<Alert> {
    let (spent, per_day) = (u128::from(facts.spent_today.micros()), u128::from(facts.per_day.micros()));
    if per_day == 0 || spent * 100 < per_day * BUDGET_PERCENT {
        return None;
    }
    let cause = format!("{} of {} USDC are spent today", facts.spent_today, facts.per_day);
    let action = "raise the limit with `farthing spending limits --per-day`, or wait until midnight UTC";
    Some(Alert::new(AlertKind::BudgetLow, Warning, cause, action))
}

/// Of a channel on which this node pays.
fn of_a_channel(channel: &Paying, levels: &Levels) -> Option<Alert> {
    let owner = channel.owner;
    if channel.stopped {
        let cause = format!(
            "the receipts of the owner {owner} do not match what it or the chain's endpoint says, so this node buys \
             nothing more from it"
        );
        let action = "compare both ledgers with `farthing audit --with`; another node with this wallet can be the \
                      cause. Take the deposit back with `farthing channel close`; to buy from the owner again after \
                      that, use `farthing channel resume`";
        return Some(Alert::new(AlertKind::ChannelStopped, Error, cause, action).about(&channel.id));
    }
    if channel.closing || channel.available >= levels.channel_below {
        return None;
    }
    let cause = format!("the channel with the owner {owner} has {} USDC left", channel.available);
    let action = "the next call tops it up; make sure that the wallet has USDC, and ETH if the owner does not pay \
                  the gas";
    Some(Alert::new(AlertKind::ChannelLow, Warning, cause, action).about(&channel.id))
}

fn ailing(ailing: &HealthProblem) -> Alert {
    let HealthProblem { kind, service, cause, action } = ailing;
    Alert::new(*kind, Warning, cause, action).about(service)
}

fn no_backup(failing: &BackupFailure) -> Alert {
    let cause =
        format!("the daily backup has failed since {}: {}", clock::date(failing.since_secs), failing.cause);
    let action = "solve the problem, then run `farthing backup auto now`";
    Alert::new(AlertKind::BackupFailed, Warning, cause, action)
}

fn flagged(FlaggedService { conduct: known, name }: &FlaggedService) -> Option<Alert> {
    let flag = known.flag.as_ref().filter(|_| known.own_rule != Some(FlagRule::Warn))?;
    let action = match known.rule {
        FlagRule::Warn => {
            "find another service; to refuse its calls use `farthing spending flagged SERVICE --rule stop`, to end \
             this alert use `--rule warn`"
        }
        FlagRule::Stop => {
            "find another service; this node tries this one now and then. To buy it anyway use `farthing spending \
             flagged SERVICE --rule warn`"
        }
    };
    let service = known.service;
    let named = name.as_ref().map_or_else(|| service.to_string(), |name| format!("“{name}” ({service})"));
    let cause = format!("the service {named}, which you buy, is flagged: {flag}");
    Some(Alert::new(AlertKind::ServiceFlagged, Warning, cause, action).about(&known.service))
}

fn refused(book: &Book) -> Option<RefusedClaims> {
    let refused = book.claims().refused;
    let (_, reason) = refused.first_key_value()?;
    let due = refused.keys().filter_map(|id| book.get(*id)).map(|channel| channel.state.unclaimed());
    let amount = due.fold(Usdc::ZERO, Usdc::saturating_add);
    Some(RefusedClaims { channels: refused.len(), amount, reason: reason.clone() })
}

/// The identity of an alert, over time.
type Key = (AlertKind, String);

fn key(alert: &Alert) -> Key {
    (alert.kind, alert.subject.clone())
}

/// Fills in since when each alert stands; one that was dated ahead, before the clock was set back, stands since now.
fn date(alerts: &mut [Alert], since: &mut BTreeMap<Key, u64>, now_secs: u64) {
    let mut still = BTreeMap::new();
    for alert in alerts {
        alert.since_secs = since.get(&key(alert)).map_or(now_secs, |secs| now_secs.min(*secs));
        still.insert(key(alert), alert.since_secs);
    }
    *since = still;
}

#[derive(Clone, Debug)]
pub struct AlertsParts {
    pub wallet: Address,
    pub network_name: String,
    pub ledger: Ledger,
    pub readiness: Readiness,
    pub consumer: Consumer,
    pub funding: Funding,
    pub channels: Arc<PayerChannels>,
    pub book: Book,
    pub terms: Terms,
    /// `None` without a port for x402 clients.
    pub owner: Option<Owner>,
    pub approvals: Approvals,
    /// As read at the start: nothing moves these two while this node runs.
    pub elsewhere: Vec<MoneyElsewhere>,
    pub left: Vec<MoneyLeft>,
    pub backups: Automatic,
    pub health: Health,
    pub data_dir: PathBuf,
    /// Options for webhooks, which may connect to the same addresses as upstreams.
    pub upstream: UpstreamOptions,
}

/// The alerts of a node. A cheap handle.
#[derive(Clone, Debug)]
pub struct Alerts(Arc<AlertsInner>);

#[derive(Debug)]
struct AlertsInner {
    parts: AlertsParts,
    levels: LevelsStore,
    since: Mutex<BTreeMap<Key, u64>>,
    delivery: Mutex<Delivery>,
}

impl Alerts {
    /// Continues with the levels that were set before the last stop, and logs the money that this node does not reach.
    pub fn restore(parts: AlertsParts) -> Result<Self, LedgerError> {
        let levels = LevelsStore::restore(parts.ledger.clone())?;
        let elsewhere = parts.elsewhere.iter().map(elsewhere::alert);
        let replaced = left::still(&parts.left, &parts.data_dir, &parts.book);
        for Alert { cause, action, .. } in elsewhere.chain(replaced.iter().map(left::alert)) {
            tracing::warn!("{cause}; {action}");
        }
        Ok(Self(Arc::new(AlertsInner { parts, levels, since: Mutex::default(), delivery: Mutex::default() })))
    }

    /// Lists what is amiss now.
    pub fn look(&self) -> Vec<Alert> {
        let mut alerts = current(&self.facts(), &self.0.levels.get());
        date(&mut alerts, &mut self.0.since.lock(), clock::now_secs());
        alerts
    }

    /// The levels in force.
    pub fn levels(&self) -> Levels {
        self.0.levels.get()
    }

    /// Sets levels and webhook, at once and over restarts.
    ///
    /// # Errors
    /// [`LevelsError`]; nothing is changed then.
    pub async fn set(&self, edit: impl FnOnce(&mut Levels)) -> Result<(), LevelsError> {
        let told = || self.levels().webhook.map(|webhook| webhook.expose().to_owned());
        let former = told();
        self.0.levels.set(&self.0.parts.upstream, edit).await?;
        if told() != former {
            // How it went with another one says nothing about this one.
            *self.0.delivery.lock() = Delivery::default();
        }
        Ok(())
    }

    /// Creates the secret that signs what the webhook is told, in place of the one of before.
    ///
    /// # Errors
    /// [`LevelsError`]; the one of before holds then.
    pub async fn renew_secret(&self) -> Result<WebhookSecret, LevelsError> {
        let secret = WebhookSecret::generate().map_err(LevelsError::NoRandomness)?;
        let kept = secret.clone();
        self.set(|levels| levels.secret = Some(kept)).await?;
        Ok(secret)
    }

    /// Returns how the last deliveries to the webhook went.
    pub fn delivery(&self) -> Delivery {
        self.0.delivery.lock().clone()
    }

    fn flagged(&self) -> Vec<FlaggedService> {
        let parts = &self.0.parts;
        let named = |conduct: ServiceConduct| {
            let name = parts.readiness.catalog.name(conduct.service);
            FlaggedService { conduct, name }
        };
        parts.consumer.conduct().all().into_iter().map(named).collect()
    }

    fn facts(&self) -> NodeFacts {
        let parts = &self.0.parts;
        let balances = *parts.readiness.chain.balances().borrow();
        // Each is read and let go before the next one: whoever looks twice at once waits for a writer that waits for the first look.
        let is_twin_there = parts.readiness.network.status().borrow().duplicate_identity;
        let unread = UnreadEvents::of(&parts.readiness.chain.logs().borrow());
        let paid_on = parts.book.all();
        let unclaimed = paid_on.iter().map(|(_, channel)| channel.state.unclaimed()).collect::<Vec<_>>();
        let gas = chain_view::gas(&parts.readiness.chain, 1);
        let is_worth_gas = |amount| gas.as_ref().is_none_or(|gas| gas.is_paid_by(amount));
        // Whoever emptied a channel that was stopped for it is not bought from any more.
        let counts = |channel: &PayerChannel| channel.holds_deposit() || channel.state.stopped;
        let channels = parts.channels.all();
        let silent = silent_owners(&parts.consumer.undecided(), &channels, clock::now_secs());
        let channels = channels.into_iter().filter(counts);
        NodeFacts {
            waiting_for: parts.readiness.waiting_for(),
            stale: chain_view::stale(&parts.readiness.chain),
            clock_off: parts.readiness.clock_off(),
            is_twin_there,
            stopped: parts.consumer.rules().stopped(),
            spent_today: parts.consumer.spent_today(),
            per_day: parts.consumer.rules().limits().per_day,
            usdc: balances.map(|balances| balances.usdc),
            wei: balances.map(|balances| balances.eth_wei),
            is_gas_paid: !parts.funding.needs_eth(),
            paying: channels
                .map(|channel| Paying {
                    id: channel.id,
                    owner: channel.config.payee,
                    available: channel.state.available(),
                    stopped: channel.state.stopped,
                    closing: channel.close_at_secs.is_some(),
                })
                .collect(),
            silent,
            under_way: parts.readiness.chain.under_way().map(|tx| (tx.what, tx.since.elapsed())),
            unread,
            door: parts.owner.as_ref().map(DoorFacts::of).unwrap_or_default(),
            asking: AskingAgents::of(&parts.approvals.all()),
            ailing: parts.health.ailing(),
            flagged: self.flagged(),
            backup: parts.backups.failing(),
            disk: Space::of(&parts.data_dir),
            catalog: parts.readiness.catalog.storage().failing,
            closed_unasked: closed::of(&parts.funding),
            elsewhere: parts.elsewhere.clone(),
            left: left::still(&parts.left, &parts.data_dir, &parts.book),
            sales_lost: lost::sales(&parts.ledger, clock::now_secs()),
            lost: lost::lately(&parts.ledger, &paid_on, clock::now_secs(), is_worth_gas),
            unaffordable: chain_view::means(&parts.readiness.chain).left_behind(unclaimed.iter().copied()),
            refused: refused(&parts.book),
            without_gas_max: parts.terms.without_gas_max,
            unclaimed: unclaimed.into_iter().fold(Usdc::ZERO, Usdc::saturating_add),
        }
    }
}

#[cfg(test)]
mod tests;
