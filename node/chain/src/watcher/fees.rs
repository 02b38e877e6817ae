//! The price of gas, now and before: the median of samples taken every ten minutes over seven days, and what a layer 1
//! charges for a claim's data.

use std::{collections::VecDeque, time::Duration};

use alloy::{
    primitives::{B256, Bytes, keccak256},
    sol_types::SolCall as _,
};
use farthing_values::Address;
use tokio::time::Instant;

use crate::{
    contracts::{Channel, Claim, PayChannels, to_eth},
    reader::Reader,
    rpc::RpcError,
    views::L1Fee,
};

const SAMPLE_EVERY: Duration = Duration::from_secs(600);
/// Seven days of samples.
const SAMPLES_MAX: usize = 7 * 24 * 6;
/// Claims whose price tells what one row costs.
const ROWS: usize = 10;
/// One endpoint's word on the layer 1 fee is worth so many times what the transaction's gas costs at most: a higher one
/// would put off claims until they are lost.
const L1_FACTOR_MAX: u128 = 10;
/// Gas of a claim's base and of each row, for that comparison.
const GAS_BASE: u128 = 65_000;
const GAS_ROW: u128 = 19_000;

/// Reads what layer 1 charges for claims now, as far as that is believed; nothing where there is no layer 1.
pub(super) async fn l1(reader: &Reader, base_fee_wei: u128, tip_wei: u128) -> Result<L1Fee, RpcError> {
    if !reader.spec.is_l2 {
        return Ok(L1Fee::default());
    }
    let [one, many] = reader.l1_fees_wei([claim_data(1), claim_data(1 + ROWS)]).await?;
    Ok(believed(one, many, base_fee_wei.saturating_add(tip_wei)))
}

/// The fees of a claim with one row and of one with [`ROWS`] more, as base and row.
fn believed(one_wei: u128, many_wei: u128, gas_price_wei: u128) -> L1Fee {
    let cap = |gas: u128| gas.saturating_mul(gas_price_wei).saturating_mul(L1_FACTOR_MAX);
    let row_wei = many_wei.saturating_sub(one_wei) / ROWS as u128;
    let base_wei = one_wei.saturating_sub(row_wei);
    L1Fee { base_wei: base_wei.min(cap(GAS_BASE)), row_wei: row_wei.min(cap(GAS_ROW)) }
}

/// The data of a claim with so many rows, no more regular than real ones: layer 1 charges for what is compressed.
fn claim_data(rows: usize) -> Bytes {
    let word = |row: usize, part: u8| keccak256([row.to_be_bytes().as_slice(), &[part]].concat());
    let address = |word: B256| to_eth(Address::from_bytes(word[12..].try_into().unwrap_or_default()));
    let payee = address(word(usize::MAX, 0));
    let claim = |row: usize| Claim {
        channel: Channel {
            payer: address(word(row, 0)),
            payee,
            token: payee,
            signer: address(word(row, 0)),
            closeDelay: 86_400_u64.try_into().unwrap_or_default(),
            salt: word(row, 1),
        },
        cumulative: 1_000_000,
        amount: 999_999,
        r: word(row, 2),
        vs: word(row, 3),
    };
    PayChannels::claimManyCall { token: payee, claims: (0..rows).map(claim).collect() }.abi_encode().into()
}

#[derive(Debug, Default)]
pub(super) struct FeeHistory {
    samples: VecDeque<u128>,
    sampled_at: Option<Instant>,
}

impl FeeHistory {
    /// The median with this one.
    pub(super) fn observe(&mut self, base_fee_wei: u128, now: Instant) -> u128 {
        if self.sampled_at.is_none_or(|at| now.saturating_duration_since(at) >= SAMPLE_EVERY) {
            if self.samples.len() == SAMPLES_MAX {
                self.samples.pop_front();
            }
            self.samples.push_back(base_fee_wei);
            self.sampled_at = Some(now);
        }
        self.median()
    }

    fn median(&self) -> u128 {
        let mut sorted: Vec<u128> = self.samples.iter().copied().collect();
        sorted.sort_unstable();
        sorted.get(sorted.len() / 2).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_word_on_the_layer_1_fee_is_worth_ten_times_the_gas_at_most() {
        // 200 for the base and 30 a row.
        assert_eq!(believed(230, 530, 1_000), L1Fee { base_wei: 200, row_wei: 30 });
        assert_eq!(believed(0, 0, 1_000), L1Fee::default(), "no layer 1");
        let (base_wei, row_wei) = (650_000_000, 190_000_000);
        assert_eq!(believed(u128::MAX / 2, u128::MAX, 1_000), L1Fee { base_wei, row_wei });
        assert_eq!(believed(u128::MAX, 0, 1_000), L1Fee { base_wei, row_wei: 0 }, "nonsense");
    }

    #[test]
    fn the_median_ignores_a_short_spike_and_forgets_after_seven_days() {
        let start = Instant::now();
        let mut history = FeeHistory::default();
        let at = |n: u64| start + SAMPLE_EVERY * u32::try_from(n).unwrap();
        for n in 0..20 {
            history.observe(100, at(n));
        }
        assert_eq!(history.observe(9_000, at(20)), 100);
        for n in 21..2_000 {
            history.observe(300, at(n));
        }
        assert_eq!(history.samples.len(), SAMPLES_MAX);
        assert_eq!(history.median(), 300);
    }

    #[test]
    fn blocks_between_two_samples_do_not_crowd_out_the_past() {
        let start = Instant::now();
        let mut history = FeeHistory::default();
        history.observe(100, start);
        assert_eq!(history.observe(500, start + SAMPLE_EVERY - Duration::from_millis(1)), 100);
        assert_eq!(history.samples.len(), 1);
    }
}
