//! Fees to offer for gas, as pure arithmetic (EIP-1559).

use crate::spec::ChainSpec;

/// Fees of one transaction, in wei per unit of gas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fees {
    pub max_wei: u128,
    pub tip_wei: u128,
}

/// The tips of a kind of chain, in wei per unit of gas.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tips {
    /// Gets a transaction mined while blocks are not full.
    pub usual_wei: u128,
    /// Gets one mined while they are: nothing but an endpoint's word asks for more.
    most_wei: u128,
}

impl Tips {
    /// Layer 2s take any tip, Ethereum's builders a gwei, and three when they are busy.
    pub(crate) const fn of(is_l2: bool) -> Self {
        match is_l2 {
            true => Self { usual_wei: 1_000_000, most_wei: 10_000_000 },
            false => Self { usual_wei: 1_000_000_000, most_wei: 3_000_000_000 },
        }
    }
}

/// A transaction that is not mined raises its tip up to so many times what a first one may have: enough for six steps.
const RAISED_TIP_FACTOR: u128 = 2;

/// A tip is paid as it is offered, and what to offer is one endpoint's word; of the base fee the chain takes its own,
/// whatever an endpoint says. So no tip is offered beyond twice the base fee, or beyond the usual one where that is more;
/// and none beyond the most, or a tenth of the cap.
pub(crate) fn tip_max(base_fee_wei: u128, tips: Tips, cap_wei: u128) -> u128 {
    base_fee_wei.saturating_mul(2).max(tips.usual_wei).min(tips.most_wei).min(cap_wei / 10)
}

/// Computes the bid of a transaction of this chain now, at the tip that an endpoint tells: for the writer, which sends
/// it, and for whoever asks beforehand whether a wallet pays for it. `None` when gas costs more than the cap.
pub(crate) fn bid(spec: &ChainSpec, base_fee_wei: u128, tip_wei: Option<u128>) -> Option<Fees> {
    suggest(base_fee_wei, tip_wei, Tips::of(spec.is_l2), spec.gas_price_cap_wei)
}

/// Besides a fifth, the margin over an estimate: a balance that is emptied before the transaction is mined
/// makes writing to it cost 22,100 (EIP-2929) where 5,000 were counted. What is not used is not paid.
const FRESH_SLOT_GAS: u64 = 25_000;

/// The limit that a transaction is sent with which takes so much gas; the wallet has to hold what all of it may cost.
pub const fn gas_limit(gas: u64) -> u64 {
    gas.saturating_add(gas / 5).saturating_add(FRESH_SLOT_GAS)
}

/// Twice the base fee covers six full blocks in a row. `None` when even the next block costs more than the cap.
pub(crate) fn suggest(base_fee_wei: u128, tip_wei: Option<u128>, tips: Tips, cap_wei: u128) -> Option<Fees> {
    let tip_max_wei = tip_max(base_fee_wei, tips, cap_wei);
    let tip_wei = tip_wei.unwrap_or(tips.usual_wei).min(tip_max_wei);
    let least = base_fee_wei.saturating_add(tip_wei);
    let max_wei = base_fee_wei.saturating_mul(2).saturating_add(tip_wei).min(cap_wei);
    (least <= cap_wei).then_some(Fees { max_wei, tip_wei })
}

/// The fees that replace a transaction with `old` ones: an eighth more on both, where nodes ask for a tenth,
/// and not below what the chain now asks. `None` when that exceeds the cap, or the tip what the chain's base fee allows
/// for: an endpoint that withholds transactions must not make them dearer and dearer. Then the old one keeps waiting.
pub(crate) fn replacement(old: Fees, now: Fees, tip_max_wei: u128, cap_wei: u128) -> Option<Fees> {
    let raised = |wei: u128| wei.saturating_add(wei / 8).saturating_add(1);
    let fees =
        Fees { max_wei: raised(old.max_wei).max(now.max_wei), tip_wei: raised(old.tip_wei).max(now.tip_wei) };
    let is_fair = fees.tip_wei <= tip_max_wei.saturating_mul(RAISED_TIP_FACTOR);
    (fees.max_wei <= cap_wei && is_fair).then_some(fees)
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn tips(usual_wei: u128) -> Tips {
        Tips { usual_wei, most_wei: u128::MAX }
    }

    #[test]
    fn fees_follow_the_chain_up_to_the_cap() {
        assert_eq!(suggest(100, Some(7), tips(1), 1_000), Some(Fees { max_wei: 207, tip_wei: 7 }));
        assert_eq!(suggest(600, Some(7), tips(1), 1_000), Some(Fees { max_wei: 1_000, tip_wei: 7 }));
        assert_eq!(suggest(993, Some(7), tips(1), 1_000), Some(Fees { max_wei: 1_000, tip_wei: 7 }));
        assert_eq!(suggest(994, Some(7), tips(1), 1_000), None);
        assert_eq!(suggest(u128::MAX, None, tips(1), 1_000), None);
    }

    #[test]
    fn a_lying_tip_is_bounded_by_the_base_fee_the_usual_tip_and_the_cap() {
        let tip = |base_fee_wei, usual| {
            suggest(base_fee_wei, Some(u128::MAX), tips(usual), 1_000_000).map(|fees| fees.tip_wei)
        };
        assert_eq!(tip(1_000, 10), Some(2_000));
        assert_eq!(tip(0, 10), Some(10));
        assert_eq!(tip(0, u128::MAX), Some(100_000));
        assert_eq!(tip(400_000, 10), Some(100_000));
        // An honest one below that is paid as it is, and a missing one is the usual.
        assert_eq!(suggest(1_000, Some(1), tips(10), 1_000_000).map(|fees| fees.tip_wei), Some(1));
        assert_eq!(suggest(1_000, None, tips(10), 1_000_000).map(|fees| fees.tip_wei), Some(10));
        // A base fee of the same mouth raises it to the most and no further.
        for (is_l2, most_wei) in [(true, 10_000_000), (false, 3_000_000_000)] {
            let lie = suggest(20_000_000_000, Some(u128::MAX), Tips::of(is_l2), u128::MAX);
            assert_eq!(lie.map(|fees| fees.tip_wei), Some(most_wei));
        }
    }

    #[test]
    fn a_replacement_pays_at_least_a_tenth_more_on_both() {
        for old in [Fees { max_wei: 1, tip_wei: 0 }, Fees { max_wei: 1_000, tip_wei: 10 }] {
            let new = replacement(old, old, 10, u128::MAX).unwrap();
            assert!(new.max_wei * 10 >= old.max_wei * 11 && new.max_wei > old.max_wei);
            assert!(new.tip_wei * 10 >= old.tip_wei * 11 && new.tip_wei > old.tip_wei);
            assert!(new.tip_wei <= new.max_wei);
        }
        let max_wei = |max_wei| {
            let old = Fees { max_wei, tip_wei: 1 };
            replacement(old, old, 10, 1_000).map(|fees| fees.max_wei)
        };
        assert_eq!((max_wei(889), max_wei(888)), (None, Some(1_000)));
    }

    #[test]
    fn a_transaction_that_is_withheld_raises_its_tip_no_further_than_the_base_fee_allows_for() {
        const CAP: u128 = 200_000_000_000;
        for (base_fee_wei, least_steps) in [(0, 6), (1_000_000_000, 6), (10_000_000_000, 6)] {
            let first = suggest(base_fee_wei, Some(u128::MAX), Tips::of(false), CAP).unwrap();
            let bound = tip_max(base_fee_wei, Tips::of(false), CAP);
            assert_eq!(first.tip_wei, bound, "the endpoint lies as far as it can");
            let (mut fees, mut steps) = (first, 0);
            while let Some(raised) = replacement(fees, first, bound, CAP) {
                (fees, steps) = (raised, steps + 1);
            }
            assert!((first.tip_wei..=2 * bound).contains(&fees.tip_wei), "{base_fee_wei}: {fees:?}");
            assert!((1..=least_steps).contains(&steps), "{base_fee_wei}: {steps}");
            // The base fee has risen beyond what was offered: then it goes on.
            let now = suggest(2 * base_fee_wei + 1_000_000_000, None, Tips::of(false), CAP).unwrap();
            let bound = tip_max(2 * base_fee_wei + 1_000_000_000, Tips::of(false), CAP);
            assert!(base_fee_wei == 10_000_000_000 || replacement(fees, now, bound, CAP).is_some());
        }
    }
}
