//! When a flag is raised and lifted, below, at and above each bound, and that it holds for any sequence.

use proptest::prelude::*;

use super::*;

const NOW: u64 = 1_000_000;
const TRIAL: u64 = 600;

/// `g`, `f` and `b`, one a second.
fn after(came: &str) -> ConductWindow {
    let mut window = ConductWindow::default();
    noted(&mut window, came, false);
    window
}

fn noted(window: &mut ConductWindow, came: &str, is_trial: bool) {
    for came in came.chars() {
        let came = match came {
            'g' => CallEnd::Good,
            'f' => CallEnd::Failed,
            _ => CallEnd::Broke,
        };
        window.note(came, "why", is_trial, NOW);
    }
}

#[test]
fn a_share_of_bad_calls_flags_a_service_and_names_the_larger_part() {
    for (came, flag) in [
        ("", ""),
        ("bbb", ""),
        ("bbbb", "breaks 0 4 4"),
        ("ggggggggggggbbb", ""),
        ("ggggggggggggbbbb", "breaks 0 4 16"),
        ("gggggggggggggbbbb", ""),
        ("fffff", ""),
        ("ffffff", "fails 6 0 6"),
        ("gggggffffff", "fails 6 0 11"),
        ("ggggggffffff", "fails 6 0 12"),
        ("gggggggffffff", ""),
        ("fffbbb", "breaks 3 3 6"),
        ("ffffbb", "fails 4 2 6"),
        // The oldest do not count any more.
        ("ffffffffffffgggggggggggggggggggggggg", ""),
    ] {
        let told = match after(came).flag(NOW) {
            None => String::new(),
            Some(Flag::Breaks(Figures { failed, broke, of, .. })) => format!("breaks {failed} {broke} {of}"),
            Some(Flag::Fails(Figures { failed, broke, of, .. })) => format!("fails {failed} {broke} {of}"),
        };
        assert_eq!(told, flag, "{came}");
    }
}

#[test]
fn a_flag_says_in_words_what_came_of_the_calls() {
    let words = |came: &str| after(came).flag(NOW).unwrap().to_string();
    assert_eq!(words("gffffff"), "of its last 7 paid calls 6 failed; the last one: why");
    assert_eq!(
        words("ffbbbb"),
        "of its last 6 paid calls 2 failed and 4 broke its own description; the last one: why"
    );
}

#[test]
fn a_flag_is_lifted_by_good_calls_in_a_row_and_by_a_week_and_by_nothing_else() {
    let flagged = after("ffffff");
    for (came, lifted) in [("ggggggg", false), ("gggggggg", true), ("gggfggggg", false), ("gggggggfg", false)]
    {
        let mut window = flagged.clone();
        noted(&mut window, came, true);
        assert_eq!(window.flag(NOW).is_none(), lifted, "{came}");
    }
    assert!(flagged.flag(NOW + FORGOTTEN_AFTER_SECS).is_some());
    assert!(flagged.flag(NOW + FORGOTTEN_AFTER_SECS + 1).is_none());
    let mut lifted = flagged;
    noted(&mut lifted, "gggggggg", true);
    noted(&mut lifted, "fffff", false);
    assert!(lifted.flag(NOW).is_none(), "what was before does not count again");
}

#[test]
fn a_trial_waits_twice_as_long_after_each_that_failed_and_not_at_all_after_a_good_one() {
    let mut window = after("ffffff");
    let mut waits = vec![window.wait_secs(NOW, TRIAL)];
    for _ in 0..8 {
        noted(&mut window, "f", true);
        waits.push(window.wait_secs(NOW, TRIAL));
    }
    assert_eq!(waits, [1, 2, 4, 8, 16, 32, 64, 64, 64].map(|times| times * TRIAL));
    let longest = 64 * TRIAL;
    assert_eq!(window.wait_secs(NOW + longest - 1, TRIAL), 1);
    assert_eq!(window.wait_secs(NOW + longest, TRIAL), 0);
    assert_eq!(window.wait_secs(NOW - 5_000, TRIAL), longest, "a clock that was set back");
    noted(&mut window, "g", true);
    assert_eq!(window.wait_secs(NOW, TRIAL), 0);
    noted(&mut window, "f", true);
    assert_eq!(window.wait_secs(NOW, TRIAL), longest, "the next bad one");
    // Who mends it and breaks it again waits as long as before, until a whole window was good.
    noted(&mut window, "ggggggggffffff", false);
    assert_eq!(window.wait_secs(NOW, TRIAL), longest);
    noted(&mut window, "gggggggggggggggggggggggggggggggg", false);
    assert!(!window.is_worth_keeping(NOW), "{window:?}");
}

#[test]
fn what_is_well_is_not_kept_and_what_the_user_said_is() {
    assert!(!after("").is_worth_keeping(NOW) && !after("gggg").is_worth_keeping(NOW));
    assert!(after("ggf").is_worth_keeping(NOW));
    assert!(!after("ggf").is_worth_keeping(NOW + FORGOTTEN_AFTER_SECS + 1));
    let said = ConductWindow { rule: Some(FlagRule::Stop), ..ConductWindow::default() };
    assert!(said.is_worth_keeping(NOW + FORGOTTEN_AFTER_SECS + 1));
}

proptest! {
    /// What is stored is what is read, and every figure is within the window.
    #[test]
    fn any_sequence_of_ends_is_counted_within_its_bounds(came in "[gfb]{0,200}", is_trial: bool) {
        let mut window = ConductWindow::default();
        noted(&mut window, &came, is_trial);
        let stored = serde_json::to_vec(&window).unwrap();
        prop_assert!(stored.len() < 400);
        prop_assert_eq!(&serde_json::from_slice::<ConductWindow>(&stored).unwrap(), &window);
        prop_assert!(window.came.len() <= CALLS_MAX);
        prop_assert!(window.wait_secs(NOW, TRIAL) <= TRIAL << DOUBLED_MAX);
        if let Some(flag) = window.flag(NOW) {
            let figures = flag.figures();
            prop_assert!(figures.failed + figures.broke <= figures.of && figures.of <= CALLS_MAX);
            // Good calls in a row always lift it.
            noted(&mut window, &"g".repeat(GOOD_IN_A_ROW), true);
            prop_assert_eq!(window.flag(NOW), None);
        }
    }

    /// Fewer bad calls than the least that counts never flag anything.
    #[test]
    fn a_few_bad_calls_flag_nothing(came in "g{0,40}f{0,2}g{0,40}b{0,3}g{0,40}") {
        prop_assert_eq!(after(&came).flag(NOW), None);
    }
}
