//! Every target meets what is known of its format and thousands of broken inputs, the same ones in every run.
//!
//! `farthing-fuzz` goes on with inputs of higher numbers: `make fuzz`.

use farthing_fuzz::{Plan, drive, shortest, targets::TARGETS};

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
