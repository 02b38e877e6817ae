//! The settings of both halves. When to claim is decided in [`super::worth`].

use farthing_protocol::Usdc;

/// Settings of both halves; amounts and times as in the configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Claim as soon as this much is unclaimed and it is this many times the gas.
    pub claim_min: Usdc,
    pub claim_gas_factor: u64,
    /// Claim anyway when the oldest unclaimed charge is this old and worth this many times the gas.
    pub claim_age_secs: u64,
    pub claim_age_gas_factor: u64,
    /// The same when so much of a deposit is used.
    pub claim_deposit_percent: u64,
    /// Wait while gas costs more than this many times its median.
    pub gas_price_factor_max: u64,
    /// Close a channel unused for this long; without the owner's answer for this long, alone.
    pub idle_close_secs: u64,
    pub close_answer_secs: u64,
    /// The time for which an owner's word to close is trusted before this node asks the chain.
    pub close_promise_secs: u64,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            claim_min: Usdc::from_micros(250_000),
            claim_gas_factor: 50,
            claim_age_secs: 24 * 3600,
            claim_age_gas_factor: 5,
            claim_deposit_percent: 90,
            gas_price_factor_max: 5,
            idle_close_secs: 7 * 24 * 3600,
            close_answer_secs: 24 * 3600,
            close_promise_secs: 3600,
        }
    }
}
