//! `make simulate`: many nodes in one process, and one node with many listings; what that costs and whether it works.
//!
//! Tables go to standard output and, as JSON, to `target/simulate/report.json`.

use std::{path::Path, process::ExitCode, time::Duration};

use anyhow::{Context, Result, bail};
use farthing_tests::simulate::{catalog, full_node, network, report};

const REPORT: &str = "target/simulate/report.json";
const USAGE: &str = "usage: farthing-simulate network [--nodes 1000] [--gossiping 200] [--lookups 300] [--listings 10] \
     [--settle 60] [--watch 60]\n       farthing-simulate catalog [--listings 100000] [--missing 100] [--searches 600]\n       \
     farthing-simulate node [--listings 100000] [--searches 600]\n       farthing-simulate idle [--settle 20] [--watch 30]";

fn main() -> Result<ExitCode> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some((command, options)) = arguments.split_first() else { bail!(USAGE) };
    let option = |name: &str, default: u32| -> Result<u32> {
        match options.iter().position(|option| option == name) {
            Some(at) => Ok(options.get(at + 1).context(USAGE)?.parse()?),
            None => Ok(default),
        }
    };
    match command.as_str() {
        "network" => {
            let plan = network::Plan {
                nodes: option("--nodes", 1000)? as usize,
                gossiping: option("--gossiping", 200)? as usize,
                lookups: option("--lookups", 300)? as usize,
                settle: Duration::from_secs(option("--settle", 60)?.into()),
                watch: Duration::from_secs(option("--watch", 60)?.into()),
                listings: option("--listings", 10)? as usize,
            };
            let section = network::run(&plan)?;
            report::write_section(Path::new(REPORT), "network", &section)?;
        }
        "catalog" => {
            let plan = catalog::Plan {
                listings: option("--listings", 100_000)? as usize,
                missing: option("--missing", 100)? as usize,
                searches: option("--searches", 600)? as usize,
            };
            let folder = tempfile::tempdir()?;
            let own =
                std::env::current_exe()?.to_str().context("this program's path is not text")?.to_owned();
            let section =
                runtime()?.block_on(catalog::run(plan, folder.path(), &[own, "open".to_owned()]))?;
            report::print_table("One node's catalog", &[&section])?;
            report::write_section(Path::new(REPORT), "catalog", &section)?;
        }
        "node" => {
            let (listings, searches) = (option("--listings", 100_000)?, option("--searches", 600)?);
            let section = runtime()?.block_on(full_node::run(listings as usize, searches as usize))?;
            report::print_table("A whole node", &[&section])?;
            report::write_section(Path::new(REPORT), "node", &section)?;
        }
        "idle" => {
            let (settle, watch) = (option("--settle", 20)?.into(), option("--watch", 30)?.into());
            let (settle, watch) = (Duration::from_secs(settle), Duration::from_secs(watch));
            let section = runtime()?.block_on(network::small_network(settle, watch))?;
            report::print_table("Traffic of an idle node with ten peers", &[&section])?;
            report::write_section(Path::new(REPORT), "idle", &section)?;
        }
        // For `catalog`: what a process takes that has one catalog open and does nothing.
        "open" => {
            let folder = options.first().context(USAGE)?;
            let idle = runtime()?.block_on(catalog::idle(Path::new(folder)))?;
            println!("{} {}", idle.open_secs, idle.memory_mib);
        }
        _ => bail!(USAGE),
    }
    Ok(ExitCode::SUCCESS)
}

fn runtime() -> Result<tokio::runtime::Runtime> {
    Ok(tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?)
}
