//! Limits of what this node spends: per call, per secret and day, per node and day.
//!
//! Pure. A price is reserved before anything is promised and settled when the call ends, so concurrent calls
//! cannot pass a limit together (invariant C2). A call whose end is unknown stays reserved.

use std::collections::{BTreeSet, HashMap};

use farthing_protocol::{Address, ServiceId, Usdc};

use super::rest_sum::RestSum;

/// Ways to have back what lies in channels.
const OF_OWNER_BACK: &str =
    "wait until the owner claims its earnings, close the channel with `farthing channel close`";
const OF_ANY_BACK: &str = "close a channel with `farthing channel close`";

/// Caps set by the user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpendingCaps {
    pub price_max: Usdc,
    pub per_day: Usdc,
    pub per_secret_day: Usdc,
}

/// The rights of the holder of one consumer secret, within what the node may.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Grant {
    /// Name of the secret; budgets and history count by it.
    pub name: String,
    /// The most one call may cost.
    pub price_max: Option<Usdc>,
    /// The most in a day (UTC).
    pub per_day: Option<Usdc>,
    /// Only these services; all when `None`.
    pub services: Option<BTreeSet<ServiceId>>,
    /// The time when the secret was created, in seconds since the Unix epoch: another one had its name before.
    pub since_secs: u64,
}

impl Grant {
    /// A secret without limits of its own.
    pub fn unlimited(name: &str) -> Self {
        Self { name: name.to_owned(), ..Self::default() }
    }

    pub fn covers(&self, service: ServiceId) -> bool {
        self.services.as_ref().is_none_or(|services| services.contains(&service))
    }
}

impl SpendingCaps {
    /// The most that one call with this secret may cost.
    pub fn price_max_of(&self, grant: &Grant) -> Usdc {
        grant.price_max.map_or(self.price_max, |own| own.min(self.price_max))
    }

    /// The most that may be spent with this secret in a day.
    pub fn per_secret_day_of(&self, grant: &Grant) -> Usdc {
        grant.per_day.map_or(self.per_secret_day, |own| own.min(self.per_secret_day))
    }
}

/// A cap that a call would pass.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OverLimit {
    #[error("this call costs {price} USDC and your limit per call is {price_max} USDC")]
    Price { price: Usdc, price_max: Usdc },
    #[error("this call costs {price} USDC and the secret `{secret}` may pay {price_max} USDC for one")]
    SecretPrice { secret: String, price: Usdc, price_max: Usdc },
    #[error("{spent} of {per_day} USDC are spent today and this call costs {price} USDC")]
    Day { spent: Usdc, per_day: Usdc, price: Usdc },
    #[error("this secret has spent {spent} of its {per_day} USDC today and this call costs {price} USDC")]
    SecretDay { spent: Usdc, per_day: Usdc, price: Usdc },
    #[error(
        "the secret `{secret}` has spent {spent} of its own {per_day} USDC today and this call costs {price} USDC"
    )]
    SecretBudget { secret: String, spent: Usdc, per_day: Usdc, price: Usdc },
    #[error(
        "a deposit of {deposit} USDC into the channel with {owner} is needed, but it may hold at most {per_owner} \
         USDC: {resting}; {}",
        .resting.ways(OF_OWNER_BACK, "spending.at_rest_per_owner")
    )]
    RestOfOwner { owner: Address, resting: RestSum, per_owner: Usdc, deposit: Usdc },
    #[error(
        "a deposit of {deposit} USDC is needed, but all channels of this node together may hold at most {in_all} USDC: \
         {resting}; {}",
        .resting.ways(OF_ANY_BACK, "spending.at_rest_max")
    )]
    Rest { resting: RestSum, in_all: Usdc, deposit: Usdc },
    #[error(
        "the channel with {owner} was emptied and filled too often, and each time costs gas; a call fills it again in \
         {hours} h, or do it now with `farthing channel open`"
    )]
    Refilled { owner: Address, hours: u64 },
    #[error(
        "the owner {owner} closed the channel although this node did not ask for it. Calls fill such a channel only \
         once a day, because each time costs gas; a call fills it again in {hours} h, or do it now with `farthing \
         channel open`"
    )]
    ClosedUnasked { owner: Address, hours: u64 },
}

impl OverLimit {
    /// The step to take next, for people. What else makes room in channels depends on them, so the text of the error says it.
    pub const fn next_step(&self) -> &'static str {
        match self {
            Self::Price { .. } => "Raise `spending.price_max` with `farthing spending limits --per-call`.",
            Self::SecretPrice { .. } => {
                "Raise the limit of the secret with `farthing secret limit --per-call`."
            }
            Self::Day { .. } => {
                "Raise `spending.per_day` with `farthing spending limits --per-day`, or wait until midnight UTC."
            }
            Self::SecretDay { .. } => {
                "Raise `spending.per_secret_day` with `farthing spending limits --per-secret-day`, or wait until \
                 midnight UTC."
            }
            Self::SecretBudget { .. } => {
                "Raise the limit of the secret with `farthing secret limit --per-day`, or wait until midnight UTC."
            }
            Self::RestOfOwner { .. } => {
                "Raise `spending.at_rest_per_owner` and restart the node, or make room in the channel; `farthing spending \
                 show` shows the limits."
            }
            Self::Rest { .. } => {
                "Raise `spending.at_rest_max` and restart the node, or make room in channels; `farthing spending show` \
                 shows the limits."
            }
            Self::Refilled { .. } | Self::ClosedUnasked { .. } => {
                "No setting raises this limit: fill the channel now with `farthing channel open`, or wait."
            }
        }
    }
}

/// So many days are in memory: a clock that is set, or two tasks around midnight, come back to a day that was counted.
const DAYS_MAX: usize = 3;

/// Spent and reserved amounts of the days that were counted last.
#[derive(Clone, Debug, Default)]
pub struct Spending {
    /// The one that was begun last stands last.
    days: Vec<Day>,
}

#[derive(Clone, Debug, Default)]
struct Day {
    day: u32,
    total: Usdc,
    by_secret: HashMap<String, Usdc>,
}

impl Spending {
    /// Tells whether `day` is counted. Another begins with [`Spending::begin`], from what the ledger holds of it.
    pub fn counts(&self, day: u32) -> bool {
        self.day(day).is_some()
    }

    /// Continues a day from its charges and open promises.
    pub fn begin(&mut self, day: u32, by_secret: impl IntoIterator<Item = (String, Usdc)>) {
        self.days.retain(|known| known.day != day);
        if self.days.len() >= DAYS_MAX {
            self.days.remove(0);
        }
        let mut begun = Day { day, ..Day::default() };
        for (secret, amount) in by_secret {
            begun.add(&secret, amount);
        }
        self.days.push(begun);
    }

    /// Counts `price` against every cap, or leaves everything as it was.
    pub fn reserve(
        &mut self,
        limits: &SpendingCaps,
        day: u32,
        grant: &Grant,
        price: Usdc,
    ) -> Result<(), OverLimit> {
        self.check(limits, day, grant, price)?;
        if !self.counts(day) {
            self.begin(day, []);
        }
        self.rehold(day, &grant.name, price);
        Ok(())
    }

    /// Checks that `price` could be reserved now.
    pub fn check(
        &self,
        limits: &SpendingCaps,
        day: u32,
        grant: &Grant,
        price: Usdc,
    ) -> Result<(), OverLimit> {
        let secret = || grant.name.clone();
        if price > limits.price_max {
            return Err(OverLimit::Price { price, price_max: limits.price_max });
        }
        if let Some(price_max) = grant.price_max.filter(|own| price > *own) {
            return Err(OverLimit::SecretPrice { secret: secret(), price, price_max });
        }
        let spent = self.total(day);
        if spent.saturating_add(price) > limits.per_day {
            return Err(OverLimit::Day { spent, per_day: limits.per_day, price });
        }
        let spent = self.total_of(day, &grant.name);
        let total = spent.saturating_add(price);
        if let Some(per_day) = grant.per_day.filter(|own| total > *own) {
            return Err(OverLimit::SecretBudget { secret: secret(), spent, per_day, price });
        }
        if total > limits.per_secret_day {
            return Err(OverLimit::SecretDay { spent, per_day: limits.per_secret_day, price });
        }
        Ok(())
    }

    /// Counts what was promised or charged already, whatever the limits say. A day that is not counted learns of it from
    /// the ledger when it begins.
    pub fn rehold(&mut self, day: u32, secret: &str, price: Usdc) {
        if let Some(day) = self.day_mut(day) {
            day.add(secret, price);
        }
    }

    /// Ends a reservation of `price` made on `day`: only `charged` stays counted.
    pub fn settle(&mut self, day: u32, secret: &str, price: Usdc, charged: Usdc) {
        let Some(day) = self.day_mut(day) else { return };
        let unspent = price.saturating_sub(charged);
        day.total = day.total.saturating_sub(unspent);
        if let Some(spent) = day.by_secret.get_mut(secret) {
            *spent = spent.saturating_sub(unspent);
        }
    }

    /// Spent and reserved on `day`.
    pub fn total(&self, day: u32) -> Usdc {
        self.day(day).map(|day| day.total).unwrap_or_default()
    }

    /// As [`Spending::total`], with one secret.
    pub fn total_of(&self, day: u32, secret: &str) -> Usdc {
        self.day(day).and_then(|day| day.by_secret.get(secret)).copied().unwrap_or_default()
    }

    fn day(&self, day: u32) -> Option<&Day> {
        self.days.iter().find(|known| known.day == day)
    }

    fn day_mut(&mut self, day: u32) -> Option<&mut Day> {
        self.days.iter_mut().find(|known| known.day == day)
    }
}

impl Day {
    fn add(&mut self, secret: &str, amount: Usdc) {
        self.total = self.total.saturating_add(amount);
        let spent = self.by_secret.entry(secret.to_owned()).or_default();
        *spent = spent.saturating_add(amount);
    }
}

/// Tells whether a newer version replaces the one in use without asking, by what the order costs in each; `None` where
/// it does not fit. A dearer one does so only within the price that the caller named: to all others the owner's
/// refusal says it first.
pub fn is_welcome(used: Option<Usdc>, newer: Option<Usdc>, max_price: Option<Usdc>) -> bool {
    newer.is_some_and(|newer| max_price.or(used).is_none_or(|most| newer <= most))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::consumer::channels::tests::usdc;

    const LIMITS: SpendingCaps =
        SpendingCaps { price_max: usdc(10), per_day: usdc(30), per_secret_day: usdc(20) };

    fn secret(name: &str) -> Grant {
        Grant::unlimited(name)
    }

    #[test]
    fn each_cap_holds_below_at_and_above() {
        let mut spending = Spending::default();
        assert!(spending.reserve(&LIMITS, 1, &secret("a"), usdc(11)).is_err());
        assert!(spending.reserve(&LIMITS, 1, &secret("a"), usdc(10)).is_ok());
        assert!(spending.reserve(&LIMITS, 1, &secret("a"), usdc(10)).is_ok());
        assert!(matches!(
            spending.reserve(&LIMITS, 1, &secret("a"), usdc(1)),
            Err(OverLimit::SecretDay { .. })
        ));
        assert!(spending.reserve(&LIMITS, 1, &secret("b"), usdc(9)).is_ok());
        assert!(spending.reserve(&LIMITS, 1, &secret("b"), usdc(1)).is_ok());
        assert!(matches!(spending.reserve(&LIMITS, 1, &secret("b"), usdc(1)), Err(OverLimit::Day { .. })));
    }

    #[test]
    fn a_secrets_own_caps_hold_within_the_nodes() {
        let mut spending = Spending::default();
        let capped = Grant { price_max: Some(usdc(4)), per_day: Some(usdc(7)), ..secret("a") };
        let refused =
            |spending: &mut Spending, price| spending.reserve(&LIMITS, 1, &capped, usdc(price)).unwrap_err();
        assert!(matches!(refused(&mut spending, 5), OverLimit::SecretPrice { .. }));
        assert!(matches!(refused(&mut spending, 11), OverLimit::Price { .. }), "the node's cap stands above");
        assert!(spending.reserve(&LIMITS, 1, &capped, usdc(4)).is_ok());
        assert!(spending.reserve(&LIMITS, 1, &capped, usdc(3)).is_ok());
        assert!(matches!(refused(&mut spending, 1), OverLimit::SecretBudget { .. }));
        assert_eq!((spending.total_of(1, "a"), spending.total_of(1, "b")), (usdc(7), usdc(0)));
        let generous = Grant { price_max: Some(usdc(100)), per_day: Some(usdc(100)), ..secret("b") };
        assert_eq!((LIMITS.price_max_of(&generous), LIMITS.price_max_of(&capped)), (usdc(10), usdc(4)));
        assert!(spending.reserve(&LIMITS, 1, &generous, usdc(10)).is_ok());
        assert!(spending.reserve(&LIMITS, 1, &generous, usdc(10)).is_ok());
        let over = spending.reserve(&LIMITS, 1, &generous, usdc(1)).unwrap_err();
        assert!(matches!(over, OverLimit::SecretDay { .. }), "a generous grant does not lift the node's cap");
    }

    #[test]
    fn a_secret_covers_the_services_it_was_made_for() {
        let [one, two] = [1, 2].map(|n| ServiceId::from_bytes([n; 16]));
        assert!(secret("a").covers(one), "all unless some are named");
        let scoped = Grant { services: Some([one].into()), ..secret("a") };
        assert!(scoped.covers(one) && !scoped.covers(two));
        let nothing = Grant { services: Some(BTreeSet::new()), ..secret("a") };
        assert!(!nothing.covers(one));
    }

    #[test]
    fn what_was_not_charged_can_be_spent_again() {
        let mut spending = Spending::default();
        spending.reserve(&LIMITS, 1, &secret("a"), usdc(10)).unwrap();
        spending.settle(1, "a", usdc(10), usdc(4));
        assert_eq!(spending.total(1), usdc(4));
        spending.settle(0, "a", usdc(10), usdc(0));
        assert_eq!(spending.total(1), usdc(4), "yesterday's calls do not change today");
    }

    #[test]
    fn a_new_day_starts_at_nothing_and_a_day_that_comes_back_where_it_was() {
        let mut spending = Spending::default();
        spending.begin(1, [("a".to_owned(), usdc(20))]);
        assert!(spending.reserve(&LIMITS, 1, &secret("a"), usdc(1)).is_err());
        assert!(spending.check(&LIMITS, 1, &secret("a"), usdc(1)).is_err());
        assert!(spending.check(&LIMITS, 2, &secret("a"), usdc(1)).is_ok());
        assert!(spending.reserve(&LIMITS, 2, &secret("a"), usdc(1)).is_ok());
        assert_eq!((spending.total(1), spending.total(2)), (usdc(20), usdc(1)));
        assert!(spending.reserve(&LIMITS, 1, &secret("a"), usdc(1)).is_err(), "the clock was set back");
    }

    #[test]
    fn a_day_that_is_not_in_memory_any_more_has_to_be_begun_again() {
        let mut spending = Spending::default();
        for day in 1..=4 {
            spending.begin(day, [("a".to_owned(), usdc(u64::from(day)))]);
        }
        assert_eq!([1, 2, 3, 4].map(|day| spending.counts(day)), [false, true, true, true]);
        spending.begin(2, [("a".to_owned(), usdc(9))]);
        assert_eq!((spending.total(2), spending.total(3)), (usdc(9), usdc(3)), "begun anew, not added to");
    }

    #[test]
    fn a_limit_of_money_in_channels_says_which_setting_raises_it() {
        let (owner, resting, deposit) = (Address::ZERO, RestSum::default(), usdc(1));
        let of_owner = OverLimit::RestOfOwner { owner, resting, per_owner: usdc(1), deposit };
        let in_all = OverLimit::Rest { resting, in_all: usdc(1), deposit };
        assert!(of_owner.next_step().starts_with("Raise `spending.at_rest_per_owner` and restart the node"));
        assert!(in_all.next_step().starts_with("Raise `spending.at_rest_max` and restart the node"));
    }

    #[test]
    fn a_newer_price_is_taken_silently_up_to_what_the_caller_agreed_to() {
        let usdc = |micros: Option<u64>| micros.map(Usdc::from_micros);
        for (used, newer, max_price, welcome) in [
            (Some(5), Some(4), None, true),
            (Some(5), Some(5), None, true),
            (Some(5), Some(6), None, false),
            (Some(5), Some(6), Some(7), true),
            (Some(5), Some(7), Some(7), true),
            (Some(5), Some(8), Some(7), false),
            (Some(5), Some(4), Some(3), false),
            // An operation that only one of the two versions has.
            (None, Some(9), None, true),
            (None, Some(9), Some(8), false),
            (Some(5), None, Some(7), false),
            (None, None, None, false),
        ] {
            let taken = is_welcome(usdc(used), usdc(newer), usdc(max_price));
            assert_eq!(taken, welcome, "{used:?} {newer:?} {max_price:?}");
        }
    }
}
