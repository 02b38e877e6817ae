//! `make fuzz`: every reader of strangers' bytes is given broken inputs, until one breaks it or none is left.
//!
//! Prints, for each target, how many inputs it was given, how many it accepted, how fast, and which took longest; then the sums,
//! and the number at which the next part begins. What breaks a target is shortened and written to `target/fuzz`, and its number
//! repeats it.

use std::{
    fs, io, panic,
    path::PathBuf,
    process::ExitCode,
    thread,
    time::{Duration, Instant},
};

use clap::Parser;
use farthing_fuzz::{
    Broken, Plan, Told, drive, shortest,
    targets::{TARGETS, Target},
};

const FOLDER: &str = "target/fuzz";
/// As programs that do not understand their arguments usually end.
const USAGE_CODE: u8 = 2;

/// Gives every reader of strangers' bytes broken inputs.
#[derive(Debug, Parser)]
struct Options {
    /// Targets; all of them when none is named.
    targets: Vec<String>,
    /// Broken inputs for each target.
    #[arg(long, default_value_t = 1_000_000)]
    inputs: u64,
    /// The number of the first one; each number is one input.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Seconds for each target, after which it is given no more.
    #[arg(long)]
    seconds: Option<u64>,
    /// Threads; as many as the machine has processors when absent.
    #[arg(long)]
    threads: Option<usize>,
}

fn main() -> ExitCode {
    let options = Options::parse();
    let Some(targets) = chosen(&options.targets) else { return ExitCode::from(USAGE_CODE) };
    let threads = options.threads.unwrap_or_else(|| thread::available_parallelism().map_or(1, usize::from));
    println!("from input {} on, in {threads} threads", options.seed);
    println!("{:<14} {:>12} {:>12} {:>10}  longest (input)", "target", "inputs", "accepted", "a second");
    let (all_began, mut all) = (Instant::now(), Sums::default());
    let mut is_any_broken = false;
    for target in targets {
        let began = Instant::now();
        let until = options.seconds.map(|seconds| began + Duration::from_secs(seconds));
        let plan = Plan { seed: options.seed, inputs: options.inputs, until, threads };
        let told = drive(target, &plan);
        show(target, &told, began.elapsed());
        all.add(&told);
        if let Some(broken) = &told.broken {
            is_any_broken = true;
            tell(target, broken);
        }
    }
    all.show(&options, all_began.elapsed());
    if is_any_broken { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// What all targets were given.
#[derive(Debug, Default)]
struct Sums {
    targets: usize,
    given: u64,
    accepted: u64,
    /// The inputs of the target that was given the fewest.
    least: Option<u64>,
}

impl Sums {
    fn add(&mut self, told: &Told) {
        self.targets += 1;
        self.given += told.given;
        self.accepted += told.accepted;
        self.least = Some(self.least.map_or(told.given, |least| least.min(told.given)));
    }

    /// Every target has had the numbers below the one that it names.
    fn show(&self, options: &Options, taken: Duration) {
        let Self { targets, given, accepted, least } = *self;
        println!("{:<14} {given:>12} {accepted:>12} {:>10}", "all", a_second(given, taken));
        let next = options.seed.saturating_add(least.unwrap_or_default());
        println!("{targets} targets in {} s; go on from input {next}", taken.as_secs());
    }
}

/// The targets of these names; nothing when one is unknown, which is told.
fn chosen(names: &[String]) -> Option<Vec<Target>> {
    if names.is_empty() {
        return Some(TARGETS.to_vec());
    }
    let find = |name: &String| {
        let found = TARGETS.iter().copied().find(|target| target.name == name);
        if found.is_none() {
            let known: Vec<&str> = TARGETS.iter().map(|target| target.name).collect();
            eprintln!("there is no target `{name}`; the targets are {}", known.join(", "));
        }
        found
    };
    names.iter().map(find).collect()
}

fn show(target: Target, told: &Told, taken: Duration) {
    let (slowest, number) = told.slowest;
    println!(
        "{:<14} {:>12} {:>12} {:>10}  {:.1} ms ({number})",
        target.name,
        told.given,
        told.accepted,
        a_second(told.given, taken),
        slowest.as_secs_f64() * 1e3
    );
}

fn a_second(given: u64, taken: Duration) -> u128 {
    u128::from(given) * 1_000 / taken.as_millis().max(1)
}

/// Shortens what breaks a target, without its many messages, and says where it is and what repeats it.
fn tell(target: Target, broken: &Broken) {
    let hook = panic::take_hook();
    panic::set_hook(Box::new(|_| {}));
    let input = shortest(target, &broken.input);
    panic::set_hook(hook);
    let name = target.name;
    eprintln!("\nerror: `{name}` panics, as said above, by {} bytes: {}", input.len(), input.escape_ascii());
    match broken.number {
        Some(number) => eprintln!("  repeat it with: farthing-fuzz {name} --seed {number} --inputs 1"),
        None => eprintln!("  it is one of the inputs that are known"),
    }
    match written(name, &input) {
        Ok(path) => eprintln!("  it is in {}; a test has to keep it\n", path.display()),
        Err(error) => eprintln!("  it cannot be written to {FOLDER}: {error}\n"),
    }
}

fn written(name: &str, input: &[u8]) -> io::Result<PathBuf> {
    let path = PathBuf::from(FOLDER).join(name);
    fs::create_dir_all(FOLDER)?;
    fs::write(&path, input)?;
    Ok(path)
}
