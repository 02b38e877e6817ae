//! What the directory promises of a network of thousands, held on each build: two thousand nodes, of which three in ten are of
//! each adversary. `make simulate` holds ten thousand to the same.

use farthing_simulation::{Adversary, Found, Plan, run};

const PLAN: Plan =
    Plan { nodes: 2000, lookups: 600, seed: 1, adversary: Adversary::Nobody, reconciled: false };

fn holds(adversary: Adversary) {
    let plan = Plan { adversary, ..PLAN };
    assert_eq!(plan.missed(&run(&plan)), None);
}

#[test]
fn all_there() {
    holds(Adversary::Nobody);
}

#[test]
fn three_in_ten_are_gone() {
    holds(Adversary::Gone);
}

#[test]
fn three_in_ten_are_silent() {
    holds(Adversary::Silent);
}

#[test]
fn three_in_ten_give_old_records() {
    holds(Adversary::Old);
}

#[test]
fn three_in_ten_invent_peers() {
    holds(Adversary::Inventing);
}

#[test]
fn three_in_ten_collude() {
    holds(Adversary::Colluding);
}

/// What no search survives is held by records that come by reconciliation: they are told before anybody is asked.
#[test]
fn what_no_search_survives_is_held_by_records_that_are_known() {
    for adversary in [Adversary::Ground, Adversary::First] {
        let found = |reconciled| run(&Plan { adversary, reconciled, ..PLAN });
        let (without, with) = (found(false), found(true));
        assert!(without.found_percent < 50.0, "then the directory is better than is said of it: {without:?}");
        assert!(with.found_percent > 99.9 && with.p99_ms == 0, "{with:?}");
    }
}

#[test]
fn a_seed_gives_the_same_network_again_and_another_one_another() {
    let of = |seed| {
        let found = run(&Plan { nodes: 300, lookups: 100, seed, ..PLAN });
        Found { took_secs: 0.0, ..found }
    };
    let (first, again, other) = (of(1), of(1), of(2));
    assert_eq!(format!("{first:?}"), format!("{again:?}"));
    assert_ne!(format!("{first:?}"), format!("{other:?}"));
}
