//! The simulator's table without the rest of the workspace; numbers of nodes, look-ups, a seed and an adversary may follow:
//! `cargo run -p farthing-simulation --example table 10000 1500`.

use farthing_simulation::{Plan, run};

fn main() {
    let mut numbers = std::env::args().skip(1).map_while(|word| word.parse().ok());
    let (nodes, lookups) = (numbers.next().unwrap_or(2000), numbers.next().unwrap_or(1000));
    let seed = numbers.next().map_or(1, |seed| seed as u64);
    for plan in Plan::table(nodes, lookups, seed, numbers.next()) {
        println!("{:?}", run(&plan));
    }
}
