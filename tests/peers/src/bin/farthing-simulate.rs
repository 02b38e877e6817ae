//! `make simulate`: many nodes in one process, and one node with many listings; what that costs and whether it works.
//!
//! Tables go to standard output and, as JSON, to `target/simulate/report.json`, each part as soon as it is known.

use std::{path::Path, process::ExitCode, time::Duration};

use anyhow::{Context, Result, bail};
use farthing_peers::simulate::{
    catalog, full_node, network, news,
    options::{self, Choice, Command, Numbers, Wanted},
    rest,
};
use farthing_simulation::{Adversary, Plan};
use farthing_tests::report;

const REPORT: &str = "target/simulate/report.json";
/// As programs that do not understand their arguments usually end.
const USAGE_CODE: u8 = 2;
/// Not for people: what a process takes that has one catalog open and does nothing.
const OPEN: &str = "open";

const COMMANDS: &[Command] = &[
    Command {
        name: "network",
        meaning: "The life of a network: it grows, idles, spreads news, loses a third of its nodes, and liars join it.",
        choices: &[
            Choice {
                name: "--nodes",
                default: 1000,
                least: 10,
                meaning: "nodes of the large network, without gossip",
            },
            Choice {
                name: "--gossiping",
                default: 200,
                least: 2,
                meaning: "nodes of another network, with gossip",
            },
            Choice { name: "--lookups", default: 300, least: 1, meaning: "look-ups in every situation" },
            Choice {
                name: "--listings",
                default: 10,
                least: 1,
                meaning: "listings published to see how they spread",
            },
            Choice {
                name: "--settle",
                default: 60,
                least: 0,
                meaning: "seconds until the first measurement",
            },
            Choice { name: "--watch", default: 60, least: 1, meaning: "seconds to measure idle traffic" },
        ],
    },
    Command {
        name: "directory",
        meaning: "Look-ups among thousands of nodes in virtual time. Three in ten nodes belong to each adversary in turn.",
        choices: &[
            Choice { name: "--nodes", default: 10_000, least: 100, meaning: "nodes" },
            Choice { name: "--lookups", default: 1500, least: 1, meaning: "look-ups in every situation" },
            Choice { name: "--seed", default: 1, least: 0, meaning: "the same seed gives the same network" },
            Choice {
                name: ADVERSARY,
                default: 0,
                least: 0,
                meaning: "0 all of them in turn, 1 none, 2 gone, 3 silent, 4 old records, 5 inventing peers, 6 colluding, 7 ground ids, \
                          8 first to join",
            },
        ],
    },
    Command {
        name: "catalog",
        meaning: "One node's catalog: disk, memory, search, a comparison with a neighbour that lacks some listings, and the traffic of \
                  a full catalog beside it.",
        choices: &[
            LISTINGS,
            Choice {
                name: "--missing",
                default: 100,
                least: 1,
                meaning: "listings that the neighbour lacks",
            },
            SEARCHES,
        ],
    },
    Command {
        name: "node",
        meaning: "A whole node with many listings and records, as users run it: start, memory, search.",
        choices: &[
            LISTINGS,
            Choice {
                name: "--records",
                default: 100_000,
                least: 0,
                meaning: "records of other nodes, 100,000 at most",
            },
            SEARCHES,
        ],
    },
    Command {
        name: "idle",
        meaning: "Nodes with the shipped settings and a catalog each, watched while they have nothing to do.",
        choices: &[
            Choice { name: "--nodes", default: 11, least: 2, meaning: "nodes; 11 have ten peers each" },
            Choice { name: "--settle", default: 20, least: 0, meaning: "seconds before the measurement" },
            Choice {
                name: "--watch",
                default: 30,
                least: 1,
                meaning: "seconds to measure; scale.md has the figures of 3600",
            },
        ],
    },
    Command {
        name: "news",
        meaning: "The time until a new listing is in the catalogs of all nodes, with gossip and without.",
        choices: &[
            Choice { name: "--nodes", default: 100, least: 2, meaning: "nodes, each with its catalog" },
            Choice { name: "--listings", default: 10, least: 1, meaning: "listings, one after the other" },
            Choice {
                name: "--settle",
                default: 30,
                least: 0,
                meaning: "seconds between joining and the first listing",
            },
        ],
    },
];
const ADVERSARY: &str = "--adversary";
/// Of `directory`, by the machine's clock: a busy machine takes longer, so it is told and fails nothing.
const TABLE_SECS_MAX: f64 = 60.0;
const LISTINGS: Choice =
    Choice { name: "--listings", default: 100_000, least: 1, meaning: "listings in the catalog" };
const SEARCHES: Choice =
    Choice { name: "--searches", default: 600, least: 1, meaning: "searches to measure" };

fn main() -> Result<ExitCode> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if let [OPEN, folder] = words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        let idle = runtime()?.block_on(catalog::idle(Path::new(folder)))?;
        println!("{} {}", idle.open_secs, idle.memory_mib);
        return Ok(ExitCode::SUCCESS);
    }
    match options::read(COMMANDS, &words) {
        Ok(Wanted::Help(text)) => print!("{text}"),
        Ok(Wanted::Run("catalog", numbers)) if numbers.of("--missing") >= numbers.of("--listings") => {
            return Ok(refused("`--missing` must be less than `--listings`\n"));
        }
        Ok(Wanted::Run("directory", numbers)) if numbers.count(ADVERSARY) > Adversary::ALL.len() => {
            return Ok(refused(&format!(
                "there is no adversary {}; expected 0 to 8\n",
                numbers.of(ADVERSARY)
            )));
        }
        Ok(Wanted::Run("directory", numbers)) => return directory(&numbers),
        Ok(Wanted::Run(command, numbers)) => run(command, &numbers)?,
        Err(why) => return Ok(refused(&why)),
    }
    Ok(ExitCode::SUCCESS)
}

fn refused(why: &str) -> ExitCode {
    eprint!("farthing-simulate: {why}");
    ExitCode::from(USAGE_CODE)
}

/// Ends with 1 when a row misses what the directory promises.
fn directory(numbers: &Numbers) -> Result<ExitCode> {
    let only = Some(numbers.count(ADVERSARY)).filter(|number| *number > 0);
    let (nodes, lookups) = (numbers.count("--nodes"), numbers.count("--lookups"));
    let (mut section, mut missed) = (Vec::new(), Vec::new());
    let mut table = report::Table::begin("Look-ups in virtual time");
    for plan in Plan::table(nodes, lookups, numbers.of("--seed").into(), only) {
        let found = farthing_simulation::run(&plan);
        table.row(&found)?;
        missed.extend(plan.missed(&found));
        section.push(found);
        report::write_section(Path::new(REPORT), "directory", &section)?;
    }
    let took_secs: f64 = section.iter().map(|found| found.took_secs).sum();
    let promise =
        format!("the table takes at most {TABLE_SECS_MAX} s for 10,000 nodes ({took_secs:.0} s for {nodes})");
    report::print_promise(promise, took_secs <= TABLE_SECS_MAX);
    println!("\n  written to {REPORT}");
    for missed in &missed {
        eprintln!("farthing-simulate: not as promised: {missed}");
    }
    Ok(if missed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn run(command: &str, numbers: &Numbers) -> Result<()> {
    let secs = |name| Duration::from_secs(numbers.of(name).into());
    let path = Path::new(REPORT);
    match command {
        "network" => {
            let plan = network::Plan {
                nodes: numbers.count("--nodes"),
                gossiping: numbers.count("--gossiping"),
                lookups: numbers.count("--lookups"),
                settle: secs("--settle"),
                watch: secs("--watch"),
                listings: numbers.count("--listings"),
            };
            network::run(&plan, |section| report::write_section(path, command, section))?;
        }
        "catalog" => {
            let plan = catalog::Plan {
                listings: numbers.count("--listings"),
                missing: numbers.count("--missing"),
                searches: numbers.count("--searches"),
            };
            let folder = tempfile::tempdir()?;
            let own =
                std::env::current_exe()?.to_str().context("this program's path is not text")?.to_owned();
            let section = runtime()?.block_on(catalog::run(plan, folder.path(), &[own, OPEN.to_owned()]))?;
            report::print_table("One node's catalog", &[&section])?;
            report::write_section(path, command, &section)?;
            let rest = runtime()?.block_on(rest::run(plan.listings, folder.path()))?;
            report::print_table("A full catalog at rest beside it", &[&rest])?;
            rest.print_promise();
            report::write_section(path, "full catalog at rest", &rest)?;
        }
        "node" => {
            let (listings, records) = (numbers.count("--listings"), numbers.count("--records"));
            let run = full_node::run(listings, records, numbers.count("--searches"));
            let section = runtime()?.block_on(run)?;
            report::print_table("A whole node", &[&section])?;
            section.print_promise();
            report::write_section(path, command, &section)?;
        }
        "idle" => {
            let idle = network::as_shipped_idle(numbers.count("--nodes"), secs("--settle"), secs("--watch"));
            let section = runtime()?.block_on(idle)?;
            report::print_table(network::IDLE, &[&section])?;
            section.print_promise();
            report::write_section(path, command, &section)?;
        }
        "news" => {
            let (nodes, listings) = (numbers.count("--nodes"), numbers.count("--listings"));
            let mut section = Vec::new();
            let mut table = report::Table::begin("Seconds until a new listing is in the catalog (medians)");
            for gossip in [true, false] {
                let spread = news::into_catalogs(nodes, gossip, listings, secs("--settle"));
                let spread = runtime()?.block_on(spread)?;
                table.row(&spread)?;
                section.push(spread);
                report::write_section(path, command, &section)?;
            }
        }
        other => bail!("`{other}` is listed and not implemented"),
    }
    println!("\n  written to {REPORT}");
    Ok(())
}

fn runtime() -> Result<tokio::runtime::Runtime> {
    Ok(tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?)
}
