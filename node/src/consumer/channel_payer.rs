//! Paying for calls from the channel with their owner.
//!
//! In order: the books of the channel are compared, what the owner counts beyond them is explained, and headroom is
//! reserved; a channel that holds too little is filled, once its owner is there; the voucher is signed over what was
//! reserved. Nothing is promised to anyone here.

use std::sync::Arc;

use farthing_network::{NetworkHandle, NotStarted};
use farthing_os::clock;
use farthing_protocol::{Refusal, RefusalCode, Usdc, Voucher, call::Payment, listing::Accept};
use farthing_shared::tasks::Tasks;
use farthing_wallet::Signer;
use tokio::time::{Instant, timeout};

use super::{
    BuyError,
    accounts::Accounts,
    channels::{PayerChannels, Reservation, Shortage},
    funding::Funding,
    prepared::Headroom,
    reconcile::Reconciler,
    rules::Rules,
};

/// The most times that a call finds its channel's headroom used up, and waits for more.
const RESERVE_TRIES_MAX: usize = 10;

/// The payer of calls, from channels; it shares its parts with the consumer.
#[derive(Debug)]
pub(super) struct ChannelPayer {
    pub signer: Signer,
    pub network: NetworkHandle,
    pub channels: Arc<PayerChannels>,
    pub funding: Funding,
    pub rules: Rules,
    pub accounts: Arc<Accounts>,
    pub books: Reconciler,
    pub tasks: Tasks,
    /// The most that may be undecided with one owner, but for dear calls.
    pub undecided_max: Usdc,
}

impl ChannelPayer {
    /// Headroom on the channel with the owner, opening or topping it up when needed. A deposit is bound for the
    /// channel's delay, so it is made only when the service is for sale, its owner is there, and tells how calls ended.
    pub(super) async fn reserve(
        &self,
        accept: &Accept,
        price: Usdc,
        paused: bool,
        deadline: Instant,
    ) -> Result<Headroom, BuyError> {
        let (owner, started) = (accept.pay_to, Instant::now());
        self.funding.check_served(accept)?;
        let may_fill = || self.accounts.undecided().check_deposit(owner, price, self.undecided_max);
        // A deposit of before a crash may turn out to be used up, and other callers may use up this one's.
        for _ in 0..RESERVE_TRIES_MAX {
            // Each time: what the channel holds may have been another wallet folder's, of which nothing is known here.
            if let Some(channel) = self.channels.in_use(owner) {
                let compared = self.books.compare_books_for_a_call(owner, channel.id, deadline).await;
                compared.map_err(BuyError::before_promise)?;
            }
            if !self.channels.unexplained(owner).is_zero() {
                self.books.heal_for_a_call(owner, deadline).await?;
            }
            match self.channels.reserve(owner, price, clock::now_secs()) {
                Ok(reservation) => {
                    let headroom = Headroom::new(Arc::clone(&self.channels), reservation);
                    if may_fill().is_ok() {
                        let network = self.network.clone();
                        let there = async move { network.connect(owner).await.is_ok() };
                        self.funding.top_up_when_low(accept, price, there);
                    }
                    return Ok(headroom);
                }
                Err(Shortage::Closing) => return Err(BuyError::ChannelClosing),
                Err(Shortage::Distrusted) => return Err(BuyError::OwnerDistrusted),
                Err(Shortage::NotOpen | Shortage::Low { .. }) if paused => {
                    let why = "the owner has paused the service";
                    return Err(BuyError::Refused(Refusal::new(RefusalCode::ServicePaused, why)));
                }
                Err(Shortage::NotOpen | Shortage::Low { .. }) => {
                    may_fill()?;
                    let left = deadline.saturating_duration_since(Instant::now());
                    let there = timeout(left, self.network.connect(owner)).await;
                    let there = there.unwrap_or(Err(NotStarted::Deadline));
                    there.map_err(|reason| BuyError::OwnerUnreachable(reason.into()))?;
                    // A deposit goes on when its first caller has no more time.
                    let (funding, accept) = (self.funding.clone(), accept.clone());
                    let funded = self.tasks.spawn(async move { funding.ensure(&accept, price).await });
                    match timeout(deadline.saturating_duration_since(Instant::now()), funded).await {
                        Ok(Ok(funded)) => funded?,
                        Ok(Err(_)) => return Err(BuyError::Failed),
                        Err(_) => return Err(BuyError::TimeUp(self.funding.awaited(owner, started))),
                    }
                }
            }
        }
        let available = self.channels.in_use(owner).map_or(Usdc::ZERO, |channel| channel.state.available());
        Err(BuyError::ChannelLow { owner, available, price })
    }

    /// A signed voucher over what was reserved.
    pub(super) fn pay(&self, reservation: &Reservation) -> Result<Payment, BuyError> {
        // Spending may have been stopped while the channel was being opened.
        if let Some(stopped) = self.rules.stopped() {
            return Err(BuyError::SpendingStopped(stopped));
        }
        let &Reservation { channel, cumulative, deposited, .. } = reservation;
        let signature = self.signer.sign_voucher(&Voucher { channel, cumulative }, deposited)?;
        Ok(Payment::Channel { channel, cumulative, signature: Some(signature), receipted: None })
    }
}
