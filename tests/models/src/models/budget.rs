//! Memory for bodies: `node/bounds/src/budget.rs`.

use real_std::sync::Arc;

use super::any;
use crate::bounds::budget::{ByteBudget, HeldBytes, SharedBudget};

fn within(budgets: &[ByteBudget]) {
    for budget in budgets {
        assert!(budget.held() <= budget.bytes_max(), "{budget:?}");
    }
}

/// Whatever is taken, grown, cut and dropped at the same time: no part holds more than its bound, and all comes back.
pub fn no_bound_is_passed_and_everything_comes_back() {
    let whole = ByteBudget::new(10);
    let part = whole.part(6);
    let budgets = [whole.clone(), part.clone(), part.part(4)];
    let threads: Vec<_> = (0..3)
        .map(|own| {
            let budgets = budgets.clone();
            shuttle::thread::spawn(move || {
                let mut held = budgets[own].nothing();
                for _ in 0..2 {
                    let _ = held.grow(1 + any(6));
                    within(&budgets);
                    if any(2) == 0 {
                        held.keep(any(4));
                    }
                    within(&budgets);
                }
                drop(held);
                if let Some(body) = budgets[own].take(2).map(|held| held.attach(vec![1; 2].into())) {
                    let slice = body.slice(1..);
                    drop((body, slice));
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().expect("it is within"));
    assert!(budgets.iter().all(|budget| budget.held() == 0), "{budgets:?}");
    assert!(whole.take(10).is_some(), "all of it is free");
}

/// Two that fill their shares at the same time leave as much as one of them holds: the next one finds room.
pub fn nobody_holds_more_than_it_leaves_free() {
    let whole = ByteBudget::new(64);
    let shared = Arc::new(SharedBudget::new(whole.clone()));
    let threads: Vec<_> = (0..2)
        .map(|key| {
            let shared = Arc::clone(&shared);
            shuttle::thread::spawn(move || shared.of(key).take(20 + any(12)))
        })
        .collect();
    let held: Vec<HeldBytes> =
        threads.into_iter().filter_map(|thread| thread.join().expect("it takes what it may")).collect();
    let free = whole.bytes_max() - whole.held();
    // Whoever was the last to take something left as much.
    let least = held.iter().map(HeldBytes::bytes).min().unwrap_or_default();
    assert!(least <= free, "{held:?} are held, and {free} are free");
    drop(held);
    assert_eq!(whole.held(), 0);
}
