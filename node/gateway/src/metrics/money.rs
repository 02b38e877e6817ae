//! Money in `/metrics`: the wallet's, and that of the channels of both sides, as the books have it now.

use std::fmt;

use farthing_node::status::Readiness;
use farthing_protocol::Usdc;
use farthing_shared::call_ends::{usdc, usdc_unit};
use prometheus_client::encoding::DescriptorEncoder;

use super::{halves, one};

const WEI_PER_ETH: f64 = 1e18;

/// Sums over the channels of one side.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    channels: u64,
    deposited: Usdc,
    spent: Usdc,
    claimed: Usdc,
    reserved: Usdc,
}

impl Sums {
    /// Counts one more channel.
    fn with(self, [deposited, spent, claimed, reserved]: [Usdc; 4]) -> Self {
        Self {
            channels: self.channels + 1,
            deposited: self.deposited.saturating_add(deposited),
            spent: self.spent.saturating_add(spent),
            claimed: self.claimed.saturating_add(claimed),
            reserved: self.reserved.saturating_add(reserved),
        }
    }
}

pub(super) fn encode(node: &Readiness, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
    let unit = usdc_unit();
    if let Some(held) = *node.chain.balances().borrow() {
        let help = "In the wallet, as the chain last showed it";
        one(encoder, "farthing_wallet", help, Some(&unit), usdc(held.usdc.micros()))?;
        let help = "ETH for gas in the wallet, as the chain last showed it";
        one(encoder, "farthing_wallet_eth", help, None, held.eth_wei as f64 / WEI_PER_ETH)?;
    }
    let paying = node.channels.all().into_iter().fold(Sums::default(), |sums, channel| {
        let state = channel.state;
        sums.with([state.deposited, state.acknowledged, channel.claimed, state.in_flight])
    });
    let paid = node.book.all().into_iter().fold(Sums::default(), |sums, (_, channel)| {
        let state = channel.state;
        sums.with([state.deposited, state.spent, state.claimed, state.reserved])
    });
    let sides = [paying, paid];
    halves(encoder, "farthing_channels", "Channels that are counted", None, sides.map(|sums| sums.channels))?;
    let help = "Deposited into these channels since they were opened";
    let of = |part: fn(&Sums) -> Usdc| [usdc(part(&paying).micros()), usdc(part(&paid).micros())];
    halves(encoder, "farthing_channel_deposited", help, Some(&unit), of(|sums| sums.deposited))?;
    let help = "Charged on these channels since they were opened";
    halves(encoder, "farthing_channel_spent", help, Some(&unit), of(|sums| sums.spent))?;
    let help = "Paid out of these channels on chain since they were opened";
    halves(encoder, "farthing_channel_claimed", help, Some(&unit), of(|sums| sums.claimed))?;
    let help = "Prices of calls on these channels that are under way or undecided";
    halves(encoder, "farthing_channel_reserved", help, Some(&unit), of(|sums| sums.reserved))
}
