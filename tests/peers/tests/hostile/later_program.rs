//! A data folder that a later program has written: an earlier one leaves it as it is.

use anyhow::{Result, ensure};
use farthing_tests::command::run;
use redb::{Database, ReadableTable, TableDefinition};

/// As the ledger has it.
const META: TableDefinition<&str, u64> = TableDefinition::new("meta");

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
