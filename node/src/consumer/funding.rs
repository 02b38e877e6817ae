//! Opening and topping up channels: one at a time per owner, as much as the policy says, within the limits of money
//! at rest, and on no terms beyond the user's bounds.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    ops::Deref,
    sync::Arc,
    time::Duration,
};

use farthing_chain::ChainHandle;
use farthing_ledger::{Ledger, LedgerError};
use farthing_network::NetworkHandle;
use farthing_os::{clock, killpoint};
use farthing_protocol::{
    Address, ChannelConfig, ChannelId, Listing, Usdc,
    listing::{Accept, SCHEME_CHANNEL},
};
use farthing_shared::{chain_view, keyed_mutex::KeyedMutex, tasks::Tasks};
use farthing_wallet::Signer;
use parking_lot::Mutex;
use tokio::time::{Instant, timeout};

use super::{
    AwaitedClose, AwaitedDeposit, BuyError,
    channels::{PayerChannel, PayerChannels},
    close_promises::ClosePromises,
    deposits::{DepositPolicy, WantedDeposit},
    refills::{EmptiedRound, Refills},
    rest::{AtRest, COUNTED_FOR, ChannelSum, PlacedDeposits, RestLimits, RestingPlace},
    spending::OverLimit,
    terms::{Bounds, Unfit, offered},
};
use crate::escrows::Escrows;

/// The longest that a confirmed deposit may be on its way from the chain's view into the books.
const DEPOSIT_WAIT_MAX: Duration = Duration::from_secs(30);

mod closes;
mod pledges;
mod shown_again;
mod sponsored;
mod wallet;

pub use closes::{ClosedUnasked, SignedRequest};
pub use pledges::SetAside;
use sponsored::{NotMade, SaidLately};

/// Puts money into channels. A cheap handle.
#[derive(Clone, Debug)]
pub struct Funding(Arc<FundingInner>);

#[derive(Debug)]
struct FundingInner {
    parts: FundingParts,
    bounds: Bounds,
    at_rest: AtRest,
    placed: PlacedDeposits,
    one_at_a_time: KeyedMutex<Address>,
    /// The deposit that is being made into the channel with each owner.
    being_made: Mutex<HashMap<Address, Usdc>>,
    refills: Refills,
    promised: ClosePromises,
    /// Channels of which the answer to a request to close seems to be lost.
    lost_answers: Mutex<BTreeSet<ChannelId>>,
    /// Channels whose signed close is on its way to the chain.
    being_closed: Mutex<BTreeSet<ChannelId>>,
    /// The times at which emptied channels of owners were read again.
    read_again: Mutex<HashMap<Address, Instant>>,
    said_lately: SaidLately,
    pledges: Mutex<pledges::Pledges>,
}

/// The parts that funding works with.
#[derive(Debug)]
pub struct FundingParts {
    pub wallet: Address,
    pub signer: Signer,
    /// `None` on no network: then no owner is asked to pay gas.
    pub network: Option<NetworkHandle>,
    pub chain: ChainHandle,
    pub ledger: Ledger,
    pub channels: Arc<PayerChannels>,
    pub escrows: Escrows,
    pub policy: DepositPolicy,
    pub close_delay_max_secs: u64,
    pub rest_limits: RestLimits,
    pub tasks: Tasks,
}

impl Deref for FundingInner {
    type Target = FundingParts;

    fn deref(&self) -> &FundingParts {
        &self.parts
    }
}

impl FundingInner {
    /// Tells of a deposit until the guard is dropped.
    fn begin(&self, owner: Address, amount: Usdc) -> BeingMade<'_> {
        self.being_made.lock().insert(owner, amount);
        BeingMade { funding: self, owner }
    }
}

/// A deposit that is being made. Dropped, it no longer is.
struct BeingMade<'f> {
    funding: &'f FundingInner,
    owner: Address,
}

impl Drop for BeingMade<'_> {
    fn drop(&mut self) {
        self.funding.being_made.lock().remove(&self.owner);
    }
}

impl Funding {
    /// Goes on with the deposits of the last day. Those that have lapsed are dropped from the ledger.
    pub async fn restore(parts: FundingParts) -> Result<Self, LedgerError> {
        let at_rest = AtRest::new(parts.channels.clone(), parts.rest_limits);
        let (placed, now_secs) = (PlacedDeposits::new(parts.ledger.clone()), clock::now_secs());
        // No chain is asked what became of those elsewhere: they stay, and are told, until the settings are set back.
        let (stored, elsewhere) = (placed.all()?, placed.elsewhere(parts.escrows.configured)?);
        for (at, deposit) in &stored {
            at_rest.restore(*at, deposit, now_secs);
        }
        let here = stored.iter().filter(|(at, _)| !elsewhere.contains(&at.channel));
        let lapsed = here.filter(|(_, deposit)| deposit.lapses_secs <= now_secs);
        for at in lapsed.map(|(at, _)| *at).collect::<HashSet<_>>() {
            if let Err(error) = placed.put(at, || at_rest.placed(at, now_secs)).await {
                tracing::warn!(owner = %at.owner, %error, "expired deposits could not be removed from the ledger");
            }
        }
        for deposit in parts.chain.deposits_under_way_at_start() {
            let at = RestingPlace { owner: deposit.config.payee, channel: deposit.channel };
            let until = Instant::now() + COUNTED_FOR;
            at_rest.restore_under_way(at, deposit.deposited, deposit.total, until);
        }
        let bounds = Bounds {
            deposit_max: parts.policy.deposit_max,
            close_delay_max_secs: parts.close_delay_max_secs,
        };
        let (one_at_a_time, being_made, lost_answers, being_closed, read_again) = Default::default();
        let (said_lately, pledges) = Default::default();
        let (refills, promised) =
            (Refills::new(parts.ledger.clone()), ClosePromises::restore(parts.ledger.clone())?);
        let inner = FundingInner {
            parts,
            bounds,
            at_rest,
            placed,
            one_at_a_time,
            being_made,
            refills,
            promised,
            lost_answers,
            being_closed,
            read_again,
            said_lately,
            pledges,
        };
        Ok(Self(Arc::new(inner)))
    }

    /// The terms that this node puts money aside on.
    pub fn bounds(&self) -> Bounds {
        self.0.bounds
    }

    /// Returns the money that lies in channels, with its limits.
    pub fn at_rest(&self) -> &AtRest {
        &self.0.at_rest
    }

    /// The closes that owners have promised.
    pub fn promised(&self) -> &ClosePromises {
        &self.0.promised
    }

    /// Opens the channel with the owner, or tops it up, so that it can carry a call at `price`. Waits for the
    /// chain's confirmation. Callers that need the same channel wait for one transaction together.
    ///
    /// # Errors
    /// [`BuyError`] saying what is missing, and nothing was deposited then.
    pub async fn ensure(&self, accept: &Accept, price: Usdc) -> Result<(), BuyError> {
        let turn = self.turn(accept.pay_to).await;
        let config = self.to_fill(accept);
        let channel = self.0.channels.get(config.id(&self.0.chain.domain()));
        if channel.as_ref().is_some_and(|channel| channel.state.available() >= price) {
            return Ok(());
        }
        self.check_served(accept)?;
        self.check_terms(accept)?;
        self.check_ready()?;
        let balance = self.balance()?;
        let sized = self.0.policy.size(channel.as_ref(), price, accept.min_deposit, balance.usdc);
        let mut wanted = sized.map_err(|need| self.missing(accept.pay_to, balance, need))?;
        self.check_gas(accept.pay_to, balance, wanted.amount)?;
        wanted = self.sized_for_gas(wanted, balance);
        let is_open = channel.is_some_and(|channel| channel.holds_deposit());
        wanted.is_refill = !is_open && !self.emptied(accept.pay_to).is_empty();
        let made = self.deposit(accept, config, wanted).await;
        // Other callers are refused meanwhile, and do not wait for each other.
        drop(turn);
        // Nothing is missing where an endpoint only said for a while that the channel is empty.
        let is_over_limit = matches!(made, Err(BuyError::OverLimit(_)));
        if is_over_limit && self.is_shown_again(accept.pay_to).await { Ok(()) } else { made }
    }

    /// Returns the deposit that a call at `price` makes first, or for which the wallet lacks the money; `None` where the channel
    /// carries the call, or what the wallet has is not known.
    pub fn deposit_before(&self, accept: &Accept, price: Usdc) -> Option<Usdc> {
        let channel = self.0.channels.get(self.to_fill(accept).id(&self.0.chain.domain()));
        if channel.as_ref().is_some_and(|channel| channel.state.available() >= price) {
            return None;
        }
        let balance = self.balance().ok()?.usdc;
        match self.0.policy.size(channel.as_ref(), price, accept.min_deposit, balance) {
            Ok(wanted) => Some(wanted.amount),
            Err(lacking) => Some(lacking),
        }
    }

    /// Returns the deposit into the channel with an owner that whoever waits `since` then has waited for.
    pub fn awaited(&self, owner: Address, since: Instant) -> Option<AwaitedDeposit> {
        if let Some(amount) = self.0.being_made.lock().get(&owner) {
            return Some(AwaitedDeposit::UnderWay(*amount));
        }
        let channel = self.0.channels.in_use(owner)?;
        let is_made = channel.filled_at.is_some_and(|at| at >= since);
        is_made.then_some(AwaitedDeposit::Made(channel.last_deposit))
    }

    /// Checks that the owner serves calls on the channel in use, or on the one that would be filled: it can be withdrawn from no
    /// sooner than the owner lists now, and no close of it is awaited.
    ///
    /// # Errors
    /// [`BuyError::DelayTooShort`] or [`BuyError::CloseAwaited`], which say what to do.
    pub fn check_served(&self, accept: &Accept) -> Result<(), BuyError> {
        let (owner, asks_secs) = (accept.pay_to, accept.close_delay_secs);
        let config = self.to_fill(accept);
        let id = config.id(&self.0.chain.domain());
        if let Some(close) = self.awaited_close(id) {
            return Err(BuyError::CloseAwaited { owner, channel: id, close });
        }
        match config.close_delay_secs {
            has_secs if has_secs < asks_secs => {
                Err(BuyError::DelayTooShort { channel: id, has_secs, asks_secs })
            }
            _ => Ok(()),
        }
    }

    /// The close of a channel for which a call has to wait.
    pub fn awaited_close(&self, id: ChannelId) -> Option<AwaitedClose> {
        let (round, kind) = (self.booked_round(id), self.0.chain.spec().kind);
        let being_closed = || self.0.being_closed.lock().contains(&id).then_some(AwaitedClose::Soon);
        self.0.promised.awaited(id, round, clock::now_secs(), kind).or_else(being_closed)
    }

    /// Lists the channels with an owner that were emptied, on these terms or on others: filling one anew costs its payer
    /// gas, whoever emptied it.
    fn emptied(&self, owner: Address) -> Vec<PayerChannel> {
        let mut channels = self.0.channels.all();
        channels.retain(|channel| channel.config.payee == owner && !channel.holds_deposit());
        channels
    }

    fn check_refill(&self, owner: Address, emptied: &[EmptiedRound]) -> Result<(), BuyError> {
        let hours = self.0.refills.wait_secs(owner, emptied, clock::now_secs())?.div_ceil(3_600);
        match hours {
            0 => Ok(()),
            _ if self.0.refills.is_unasked(owner, emptied)? => {
                Err(OverLimit::ClosedUnasked { owner, hours }.into())
            }
            _ => Err(OverLimit::Refilled { owner, hours }.into()),
        }
    }

    /// Starts a top-up in the background when the channel runs low, and its owner is `there`. None is made where the answer to a
    /// request to close may be lost: the owner may have signed a close, which it would make void.
    pub fn top_up_when_low(
        &self,
        accept: &Accept,
        price: Usdc,
        there: impl Future<Output = bool> + Send + 'static,
    ) {
        let Some(channel) = self.0.channels.in_use(accept.pay_to) else { return };
        let Ok(balance) = self.balance() else { return };
        let available = channel.state.available();
        let wanted = self.0.policy.top_up(price, available, channel.last_deposit, balance.usdc);
        let Some(amount) = wanted.filter(|_| self.has_gas(accept.pay_to, balance)) else { return };
        let Some(turn) = self.try_turn(accept.pay_to) else { return };
        let (funding, accept) = (self.clone(), accept.clone());
        let wanted =
            WantedDeposit { deposited: channel.state.deposited, least: price, amount, is_refill: false };
        let wanted = self.sized_for_gas(wanted, balance);
        self.0.tasks.spawn(async move {
            if there.await
                && funding.with_lost_answer(channel.id).is_none()
                && let Err(error) = funding.deposit(&accept, channel.config, wanted).await
            {
                tracing::warn!(owner = %accept.pay_to, %error, "the channel was not topped up");
            }
            drop(turn);
        });
    }

    /// Deposits a chosen amount: `farthing channel open`.
    ///
    /// # Errors
    /// [`BuyError`]; nothing was deposited then.
    pub async fn deposit_now(&self, accept: &Accept, amount: Usdc) -> Result<(), BuyError> {
        let _turn = self.turn(accept.pay_to).await;
        self.check_ready()?;
        self.check_gas(accept.pay_to, self.balance()?, amount)?;
        let config = self.to_fill(accept);
        let channel = self.0.channels.get(config.id(&self.0.chain.domain()));
        if let Some(channel) = channel.as_ref().filter(|channel| channel.holds_something()) {
            // It would lie there until the delay is over, and pay for nothing.
            if channel.close_at_secs.is_some() {
                return Err(BuyError::ChannelClosing);
            }
            if channel.state.stopped {
                return Err(BuyError::OwnerDistrusted);
            }
        }
        let deposited = channel.map_or(Usdc::ZERO, |channel| channel.state.deposited);
        self.deposit(accept, config, WantedDeposit { deposited, least: amount, amount, is_refill: false })
            .await
    }

    /// The first of the owner's ways of payment that this node has.
    ///
    /// # Errors
    /// [`BuyError::NoCommonScheme`].
    pub fn choose<'a>(&self, accepts: &'a [Accept], owner: Address) -> Result<&'a Accept, BuyError> {
        let spec = self.0.chain.spec();
        let usable = |accept: &&Accept| {
            accept.scheme == SCHEME_CHANNEL
                && accept.chain_id == spec.chain_id
                && accept.asset == spec.token
                && accept.contract == spec.contract
                && accept.pay_to == owner
        };
        let fits = |accept: &&Accept| usable(accept) && self.0.bounds.check(accept).is_ok();
        let chosen = accepts.iter().find(fits).or_else(|| accepts.iter().find(usable));
        chosen.ok_or_else(|| BuyError::NoCommonScheme {
            offered: accepts.iter().map(|accept| offered(accept, spec)).collect::<Vec<_>>().join(", "),
            chain: spec.chain_id.to_string(),
        })
    }

    /// Explains why this node would not buy a service, by what its listing says alone.
    #[must_use]
    pub fn why_not(&self, listing: &Listing) -> Option<String> {
        if listing.price.is_zero() {
            return None;
        }
        let accept = self.choose(&listing.accepts, listing.owner);
        let fits = accept.and_then(|accept| Ok(self.check_terms(accept)?));
        fits.err().map(|error| error.to_string())
    }

    /// Checks what the owner asks for, before any money moves: of the channel in use, or of a new one.
    pub fn check_terms(&self, accept: &Accept) -> Result<(), Unfit> {
        match self.open(accept.pay_to) {
            Some(channel) => self.0.bounds.check_delay(channel.config.close_delay_secs),
            None => self.0.bounds.check(accept),
        }
    }

    fn open(&self, owner: Address) -> Option<PayerChannel> {
        self.0.channels.in_use(owner).filter(PayerChannel::holds_deposit)
    }

    /// The channel that a deposit goes into: an open one is filled on, whatever the owner's newest terms are.
    fn to_fill(&self, accept: &Accept) -> ChannelConfig {
        self.open(accept.pay_to).map_or_else(|| self.terms(accept), |channel| channel.config)
    }

    /// Adds to the deposit on which the amount was decided. The books may lag behind the chain, above all after a
    /// crash; what the chain holds more by then counts towards the amount.
    async fn deposit(
        &self,
        accept: &Accept,
        config: ChannelConfig,
        wanted: WantedDeposit,
    ) -> Result<(), BuyError> {
        let (owner, deposited) = (accept.pay_to, wanted.deposited);
        // A close may have been asked for while this deposit waited for its turn.
        self.check_served(accept)?;
        self.check_terms(accept)?;
        let emptied: Vec<EmptiedRound> =
            self.emptied(owner).iter().map(|channel| (channel.id, channel.round)).collect();
        let at = RestingPlace { owner, channel: config.id(&self.0.chain.domain()) };
        let round = self.round(at.channel);
        let held = ChannelSum { round, deposited };
        // From here on no x402 server is promised the same money.
        let _being_made = self.0.begin(owner, wanted.amount);
        let wanted = self.beside_pledges(owner, wanted)?;
        let amount = self.0.at_rest.take(at, held, wanted.least, wanted.amount)?;
        // After the limits of money at rest, which hold for a deposit by hand as well: it is advised only where it is made.
        if wanted.is_refill
            && let Err(refused) = self.check_refill(owner, &emptied)
        {
            self.0.at_rest.give_up(at, held);
            return Err(refused);
        }
        // Whatever comes of it, a restart does not forget it.
        let placed = || self.0.at_rest.placed(at, clock::now_secs());
        if let Err(error) = self.0.placed.put_of(at, config, placed).await {
            self.0.at_rest.give_up(at, held);
            return Err(error.into());
        }
        self.0.being_made.lock().insert(owner, amount);
        tracing::info!(%owner, %amount, "depositing into the channel");
        killpoint::reached("funding.before_deposit");
        let made = self.make(config, (round, deposited), amount).await;
        let (is_filled, is_by_hand) = (!made.as_ref().is_err_and(NotMade::is_unsent), !wanted.is_refill);
        if is_filled
            && !emptied.is_empty()
            && let Err(error) = self.0.refills.note(owner, &emptied, is_by_hand, clock::now_secs()).await
        {
            tracing::warn!(%owner, %error, "the filling of an emptied channel could not be stored");
        }
        // Without a transaction the chain was only said to hold as much already.
        if made.as_ref().is_ok_and(|has_transaction| *has_transaction) {
            self.0.at_rest.made(at, held);
        }
        if made.as_ref().is_err_and(NotMade::is_unsigned) {
            self.0.at_rest.give_up(at, held);
        } else {
            // Whatever is said of it: an endpoint has seen its authorization, and may bring it.
            self.0.at_rest.keep(at, held, Instant::now() + COUNTED_FOR);
        }
        self.store_again(at).await;
        made?;
        killpoint::reached("funding.after_deposit");
        // Settlement brings it into ledger and memory; a caller that waits for its first call waits for that, not only
        // for the transaction.
        let arrived = self.0.channels.until(at.channel, |channel| channel.state.deposited > deposited);
        let is_booked = timeout(DEPOSIT_WAIT_MAX, arrived).await.is_ok();
        // Nobody lies on a chain of one's own.
        if is_booked && chain_view::believed_after(self.0.chain.spec().kind).is_zero() {
            self.0.at_rest.settle(at, held);
            self.store_again(at).await;
        }
        Ok(())
    }

    /// Counts how often a channel was emptied, as the chain shows it or, before that is read, as the books have it.
    fn round(&self, id: ChannelId) -> u32 {
        self.0.chain.channel(&id).map_or_else(|| self.booked_round(id), |view| view.round)
    }

    fn booked_round(&self, id: ChannelId) -> u32 {
        self.0.channels.get(id).map_or(0, |channel| channel.round)
    }

    /// Stores what became of a deposit. It counts longer after a restart where that fails.
    async fn store_again(&self, at: RestingPlace) {
        let placed = || self.0.at_rest.placed(at, clock::now_secs());
        if let Err(error) = self.0.placed.put(at, placed).await {
            tracing::warn!(owner = %at.owner, %error, "the result of a deposit could not be stored");
        }
    }

    /// The one channel with an owner: what is claimed stays counted over closing and reopening, so the same
    /// channel serves again, and a node that lost its ledger finds it.
    fn terms(&self, accept: &Accept) -> ChannelConfig {
        ChannelConfig {
            payer: self.0.wallet,
            payee: accept.pay_to,
            token: accept.asset,
            signer: self.0.wallet,
            close_delay_secs: accept.close_delay_secs,
            salt: [0; 32],
        }
    }
}

#[cfg(test)]
mod tests;
