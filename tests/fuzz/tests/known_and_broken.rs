//! Every target meets what is known of its format and thousands of broken inputs, the same ones in every run.
//!
//! `farthing-fuzz` goes on with inputs of higher numbers: `make fuzz`.

use std::time::Instant;

use farthing_fuzz::{
    Broken, Plan, drive, shortest,
    targets::{TARGETS, Target},
};

fn survives(name: &str) {
    let target = *TARGETS.iter().find(|target| target.name == name).expect("there is a target of this name");
    let told = drive(target, &Plan { seed: 0, inputs: target.inputs, until: None, threads: 1 });
    if let Some(broken) = told.broken {
        let input = shortest(target, &broken.input);
        panic!(
            "{name} panics by input {:?}, of which it takes this: {}",
            broken.number,
            input.escape_ascii()
        );
    }
    assert!(told.known_accepted > 0, "{name} accepts nothing, so nothing was tried");
    println!("{name}: {} of {} broken inputs were accepted", told.accepted, told.given);
}

macro_rules! targets {
    ($($name:ident)+) => {
        const TESTED: &[&str] = &[$(stringify!($name)),+];

        mod no_bytes_break {
            $(
                #[test]
                fn $name() {
                    super::survives(stringify!($name));
                }
            )+
        }
    };
}

targets! {
    agent answer backup call_body call_frames call_headers call_heads chain comparison details directory document fields form
    info introspection listing openapi outline paths payments reach record sdl sessions signed texts x402_offers
    x402_payment yaml
}

#[test]
fn every_target_is_given_its_inputs() {
    let mut names: Vec<&str> = TARGETS.iter().map(|target| target.name).collect();
    names.sort_unstable();
    assert_eq!(names, TESTED);
}

/// A reader that cannot stand a word that is followed, anywhere, by another.
fn fragile() -> Target {
    let read = |bytes: &[u8]| {
        let at = bytes.windows(2).position(|pair| pair == b"no");
        assert!(at.is_none_or(|at| !bytes[at..].contains(&b'!')));
        at.is_some()
    };
    Target { name: "fragile", read, known: || vec![b"yes, no, yes".to_vec()], words: &["!", "no"], inputs: 1 }
}

#[test]
fn what_breaks_a_target_is_found_named_and_shortened() {
    let plan = Plan { seed: 7, inputs: 5_000, until: None, threads: 2 };
    let told = drive(fragile(), &plan);
    let Broken { number, input } = told.broken.expect("one of thousands has both words");
    let number = number.expect("it is none of those that are known");
    assert!((7..5_007).contains(&number) && told.known_accepted == 1);
    let again = drive(fragile(), &Plan { seed: number, inputs: 1, ..plan });
    assert_eq!(again.broken.map(|broken| broken.input).as_ref(), Some(&input), "its number repeats it");
    assert_eq!(shortest(fragile(), &input), b"no!");
}

#[test]
fn a_plan_ends_with_its_inputs_or_its_time() {
    let target = Target { read: |_| true, ..fragile() };
    let plan = Plan { seed: 0, inputs: 100, until: None, threads: 3 };
    let told = drive(target, &plan);
    assert_eq!((told.given, told.accepted, told.broken.is_none()), (100, 100, true));
    assert_eq!(drive(target, &Plan { until: Some(Instant::now()), ..plan }).given, 0);
}
