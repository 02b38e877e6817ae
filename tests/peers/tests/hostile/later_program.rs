//! A data folder of a program of another version: one that holds it, or a later one that has written it, is left alone.

use std::{fs::File, io::Write, time::Duration};

use anyhow::{Result, ensure};
use farthing_tests::command::run;
use redb::{Database, ReadableTable, TableDefinition};

/// As the ledger has it.
const META: TableDefinition<&str, u64> = TableDefinition::new("meta");

/// A start that is refused ends long before.
const ENDS_WITHIN: Duration = Duration::from_secs(30);

#[tokio::test]
async fn a_folder_that_a_program_of_another_version_holds_is_left_to_it() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let data = folder.path().join("node");
    let named = data.display().to_string();
    run(&named, &["init", "--chain", "base-sepolia"]).await?.ends_with(0)?;
    let ledger = std::fs::read(data.join("ledger.redb"))?;
    // As every version has done it: a lock on the whole file, and in it the process that holds it.
    let mut held = File::options().create(true).truncate(true).write(true).open(data.join("lock"))?;
    held.try_lock()?;
    writeln!(held, "4242")?;
    let start = ["gateway.listen", "panel.listen"].map(|port| format!("{port}=127.0.0.1:0"));
    let words =
        ["run", "--set", &start[0], "--set", &start[1], "--set", "network.listen=/ip4/127.0.0.1/tcp/0"];
    let refused = tokio::time::timeout(ENDS_WITHIN, run(&named, &words)).await??;
    ensure!(refused.code != 0 && refused.out.is_empty(), "{refused:?}");
    ensure!(refused.err.contains("is in use by another node (process 4242)"), "{refused:?}");
    ensure!(std::fs::read(data.join("lock"))? == b"4242\n", "the holder's file was changed");
    ensure!(std::fs::read(data.join("ledger.redb"))? == ledger, "the ledger was changed");
    drop(held);
    run(&named, &["init"]).await?.ends_with(0)?;
    Ok(())
}

#[tokio::test]
async fn an_earlier_program_leaves_the_folder_of_a_later_one_as_it_is() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let data = folder.path().join("node");
    let named = data.display().to_string();
    run(&named, &["init", "--chain", "base-sepolia"]).await?.ends_with(0)?;
    let wallet = std::fs::read(data.join("wallet.json"))?;
    let set_schema = |to: u64| {
        let database = Database::open(data.join("ledger.redb")).unwrap();
        let transaction = database.begin_write().unwrap();
        let mut meta = transaction.open_table(META).unwrap();
        let found = meta.get("schema").unwrap().map_or(0, |schema| schema.value());
        meta.insert("schema", to).unwrap();
        drop(meta);
        transaction.commit().unwrap();
        found
    };
    let known = set_schema(99);
    for words in
        [&["init"][..], &["run", "--set", "gateway.listen=127.0.0.1:0", "--set", "panel.listen=127.0.0.1:0"]]
    {
        let refused = run(&named, words).await?;
        ensure!(refused.ends_with(1)?.err.contains("has schema 99"), "{refused:?}");
        ensure!(refused.err.contains("use the newer version of the program that wrote it"), "{refused:?}");
    }
    ensure!(set_schema(known) == 99, "the ledger was changed");
    ensure!(std::fs::read(data.join("wallet.json"))? == wallet, "the wallet was changed");
    run(&named, &["init"]).await?.ends_with(0)?;
    Ok(())
}
