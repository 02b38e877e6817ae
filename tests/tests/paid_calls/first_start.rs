//! First starts: on a machine of a user, where chain and folder have to be meant, and in a container.

use std::{
    fs::{self, File, Permissions},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Stdio,
};

use anyhow::{Result, ensure};
use farthing_testnet::program;
use farthing_tests::{command::Ran, wait::eventually};
use tokio::process::{Child, Command};

/// A chain of one's own.
const LOCAL: [&str; 2] = ["chain.preset=local", "chain.token=0x00000000000000000000000000000000000000aa"];

/// Settings of an endpoint at which nobody answers, and of free ports.
const SETTINGS: [&str; 5] = [
    "chain.rpc_urls=http://127.0.0.1:9",
    "gateway.listen=127.0.0.1:0",
    "panel.listen=127.0.0.1:0",
    "network.listen=/ip4/127.0.0.1/tcp/0",
    "network.allow_private=true",
];

/// A user's machine, or a container, whatever the tests themselves run in.
struct Machine {
    home: tempfile::TempDir,
    is_container: bool,
}

impl Machine {
    fn new(is_container: bool) -> Result<Self> {
        Ok(Self { home: tempfile::tempdir()?, is_container })
    }

    fn path(&self, inside: &str) -> PathBuf {
        self.home.path().join(inside)
    }

    /// The user's own folder for a node.
    fn own(&self) -> PathBuf {
        self.path(".local/share/farthing")
    }

    fn command(&self, arguments: &[&str]) -> Result<Command> {
        let mut command = Command::new(program("farthing")?);
        command
            .args(arguments)
            .env_remove("XDG_DATA_HOME")
            .env("HOME", self.home.path())
            .env("FARTHING_CONTAINER", self.is_container.to_string())
            .stdin(Stdio::null())
            .kill_on_drop(true);
        Ok(command)
    }

    async fn run(&self, arguments: &[&str]) -> Result<Ran> {
        Ran::of(self.command(arguments)?.output().await?)
    }

    /// `farthing run` on [`LOCAL`], as a person types it.
    fn start_command(&self, arguments: &[&str]) -> Result<Command> {
        self.start_command_on(&LOCAL, arguments)
    }

    /// The same on the chain that these settings name, if any.
    fn start_command_on(&self, chain: &[&str], arguments: &[&str]) -> Result<Command> {
        let settings = chain.iter().chain(&SETTINGS).flat_map(|setting| ["--set", *setting]);
        let words: Vec<&str> = ["run"].into_iter().chain(arguments.iter().copied()).chain(settings).collect();
        self.command(&words)
    }

    /// Starts a node on a folder that the arguments lead to; what it prints, once it runs.
    async fn start(&self, folder: &Path, arguments: &[&str]) -> Result<(Child, String)> {
        self.start_on(&LOCAL, folder, arguments).await
    }

    /// The same on the chain that these settings name, if any.
    async fn start_on(&self, chain: &[&str], folder: &Path, arguments: &[&str]) -> Result<(Child, String)> {
        let printed = self.path("printed");
        let mut command = self.start_command_on(chain, arguments)?;
        let mut node = command.stdout(Stdio::null()).stderr(File::create(&printed)?).spawn()?;
        let data = folder.display().to_string();
        eventually("it runs", async || {
            let text = fs::read_to_string(&printed)?;
            ensure!(node.try_wait()?.is_none(), "the node ended: {text}");
            Ok(text.contains("is running.") && self.run(&["status", "--data", &data]).await?.code == 0)
        })
        .await?;
        Ok((node, fs::read_to_string(&printed)?))
    }
}

#[tokio::test]
async fn where_nobody_can_be_asked_init_names_the_flags_and_an_empty_folder_starts_nothing() -> Result<()> {
    let machine = Machine::new(false)?;
    machine.run(&["init"]).await?.fails(2, &["--chain base-sepolia", "--data", "--listen"])?;
    machine.run(&["init", "--yes"]).await?.fails(2, &["--chain base-sepolia"])?;
    machine.run(&["init", "--chain", "bse"]).await?.fails(2, &["base-sepolia"])?;
    machine.run(&["run"]).await?.fails(2, &["no chain is chosen", "`farthing init`"])?;
    let named = machine.path("node").display().to_string();
    let next = format!("`farthing init --data {named}`");
    machine.run(&["run", "--new", "--data", &named]).await?.fails(2, &["no chain is chosen", &next])?;
    ensure!(fs::read_dir(machine.home.path())?.next().is_none(), "something was made");
    Ok(())
}

#[tokio::test]
async fn init_with_flags_makes_the_node_in_its_users_folder_and_writes_what_was_chosen() -> Result<()> {
    let machine = Machine::new(false)?;
    let made =
        machine.run(&["init", "--chain", "base-sepolia", "--listen", "0.0.0.0", "--yes", "--json"]).await?;
    let made = made.ok()?.json()?;
    let file = machine.own().join("farthing.toml");
    ensure!(made["data_dir"] == machine.own().display().to_string(), "{made}");
    ensure!(made["settings"] == file.display().to_string() && made["created"] == true, "{made}");
    let written = fs::read_to_string(&file)?;
    let mut lines: Vec<&str> = written.lines().filter(|line| line.contains('=')).collect();
    lines.sort_unstable();
    ensure!(
        lines == ["listen = \"0.0.0.0:3000\"", "listen = \"0.0.0.0:3002\"", "preset = \"base-sepolia\""],
        "{written}"
    );
    let own = machine.own().display().to_string();
    for (setting, value) in [
        ("chain.preset", "base-sepolia"),
        ("gateway.listen", "0.0.0.0:3000"),
        ("panel.listen", "0.0.0.0:3002"),
        ("node.data_dir", own.as_str()),
    ] {
        let shown = machine.run(&["config", "get", setting]).await?.ok()?;
        ensure!(shown.out.trim() == value, "{setting}: {shown:?}");
    }

    // Again, it makes nothing; and what is written stays.
    let again = machine.run(&["init", "--chain", "base-sepolia", "--json"]).await?.ok()?.json()?;
    ensure!(again["address"] == made["address"] && again["created"] == false, "{again}");
    ensure!(again["settings"].is_null(), "{again}");
    machine.run(&["init", "--chain", "base"]).await?.fails(2, &["farthing.toml", "base"])?;
    let lost = ["farthing.toml already exists", "write limits.calls_max = \"9\" into it"];
    machine.run(&["init", "--set", "limits.calls_max=9"]).await?.fails(2, &lost)?;
    ensure!(fs::read_to_string(&file)? == written, "the file was changed");

    // A person is told of the wallet, and pastes what is printed.
    let other = machine.path("my other").display().to_string();
    let told = machine.run(&["init", "--chain", "base", "--data", &other]).await?.ok()?;
    for words in ["New wallet 0x", "farthing backup create", &format!("`farthing run --data '{other}'`")] {
        ensure!(told.err.contains(words), "it does not say `{words}`: {told:?}");
    }
    ensure!(told.out.contains("Base — real money"), "{told:?}");
    ensure!(
        told.err.contains("The program treats this as a machine")
            && told.err.contains("FARTHING_CONTAINER=true"),
        "{told:?}"
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wallet_stays_on_the_chain_that_it_was_made_for_or_does_not_start() -> Result<()> {
    let machine = Machine::new(false)?;
    let own = machine.own();
    let variable = ("FARTHING_CHAIN__PRESET", "base-sepolia");
    let init = machine.command(&["init"])?.env(variable.0, variable.1).output().await?;
    ensure!(Ran::of(init)?.ok()?.out.contains("Base Sepolia — test money, worth nothing"));
    let (mut node, printed) = machine.start_on(&[], &own, &[]).await?;
    ensure!(printed.contains("Chain    Base Sepolia — test money, worth nothing"), "{printed}");
    node.kill().await?;

    // So it is where the first start makes the wallet, and nobody says the chain again.
    for (chain, words) in [("base-sepolia", "Base Sepolia — test money"), ("base", "Base — real money")] {
        let folder = machine.path(chain);
        let data = folder.display().to_string();
        let named = format!("chain.preset={chain}");
        let (mut node, _) = machine.start_on(&[named.as_str()], &folder, &["--new", "--data", &data]).await?;
        node.kill().await?;
        let (mut node, printed) = machine.start_on(&[], &folder, &["--data", &data]).await?;
        ensure!(printed.contains(words), "{printed}");
        node.kill().await?;
    }

    // Without its file a node on test money is on no chain, and one that has only been on the default one goes on.
    let folder = machine.path("base-sepolia");
    fs::remove_file(folder.join("farthing.toml"))?;
    let data = folder.display().to_string();
    let command = format!("`farthing init --chain base-sepolia --data {data}`");
    let refused = ["chain.preset", "it was on base-sepolia before", "(real money)", &command];
    let ran = machine.start_command_on(&[], &["--new", "--data", &data])?.output().await?;
    Ran::of(ran)?.fails(2, &refused)?;
    machine.run(&["init", "--chain", "base-sepolia", "--data", &data]).await?.ok()?;
    let (mut node, _) = machine.start_on(&[], &folder, &["--data", &data]).await?;
    node.kill().await?;
    let folder = machine.path("base");
    fs::remove_file(folder.join("farthing.toml"))?;
    let (mut node, printed) =
        machine.start_on(&[], &folder, &["--data", &folder.display().to_string()]).await?;
    ensure!(
        printed.contains("no setting names the chain") && printed.contains("Base — real money"),
        "{printed}"
    );
    node.kill().await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_of_something_else_becomes_no_node_and_nobody_loses_a_right_in_it() -> Result<()> {
    let machine = Machine::new(false)?;
    let (folder, diary) = (machine.path("documents"), machine.path("documents/diary"));
    fs::create_dir(&folder)?;
    fs::write(&diary, "dear diary")?;
    for (path, mode) in [(&folder, 0o755), (&diary, 0o644)] {
        fs::set_permissions(path, Permissions::from_mode(mode))?;
    }
    let data = folder.display().to_string();
    let says = ["is not empty", "`diary` is there", "name an empty or a new one", "nothing was changed"];
    machine.run(&["init", "--chain", "base-sepolia", "--data", &data]).await?.fails(1, &says)?;
    Ran::of(machine.start_command(&["--new", "--data", &data])?.output().await?)?.fails(1, &says)?;
    for (path, mode) in [(&folder, 0o755), (&diary, 0o644)] {
        let found = fs::metadata(path)?.permissions().mode() & 0o777;
        ensure!(found == mode, "{} is {found:o}", path.display());
    }
    ensure!(fs::read_dir(&folder)?.count() == 1, "something was made in it");

    // A copy of a wallet is kept anywhere, and makes no folder a node's.
    let node = machine.path("node");
    machine.run(&["init", "--chain", "base-sepolia", "--data", &node.display().to_string()]).await?.ok()?;
    let copy = folder.join("wallet.json");
    fs::copy(node.join("wallet.json"), &copy)?;
    fs::set_permissions(&copy, Permissions::from_mode(0o644))?;
    machine.run(&["init", "--chain", "base-sepolia", "--data", &data]).await?.fails(1, &says)?;
    Ran::of(machine.start_command(&["--data", &data])?.output().await?)?.fails(1, &says)?;
    for (path, mode) in [(&folder, 0o755), (&diary, 0o644), (&copy, 0o644)] {
        let found = fs::metadata(path)?.permissions().mode() & 0o777;
        ensure!(found == mode, "{} is {found:o}", path.display());
    }
    ensure!(fs::read_dir(&folder)?.count() == 2, "something was made in it");

    // Nor is a link a folder of the node's own.
    let linked = machine.path("linked");
    fs::create_dir(&linked)?;
    std::os::unix::fs::symlink(&folder, linked.join("tls"))?;
    let says = ["`tls` in it is a link", "nothing was changed"];
    let data = linked.display().to_string();
    machine.run(&["init", "--chain", "base-sepolia", "--data", &data]).await?.fails(1, &says)?;
    ensure!(fs::read_dir(&linked)?.count() == 1 && fs::read_dir(&folder)?.count() == 2, "something was made");
    ensure!(fs::metadata(&folder)?.permissions().mode() & 0o777 == 0o755, "the folder behind it was changed");

    // What people and file systems put there beforehand is no hindrance.
    let prepared = machine.path("prepared");
    fs::create_dir_all(prepared.join("lost+found"))?;
    fs::write(prepared.join("farthing.toml"), "[chain]\npreset = \"base-sepolia\"\n")?;
    fs::write(prepared.join("passphrase"), "four random words here\n")?;
    let data = prepared.display().to_string();
    machine.run(&["init", "--data", &data]).await?.ok()?;

    // Nor is what a node makes: a wallet that is gone is told, and not that its folder is another's.
    let (mut node, _) = machine.start_on(&[], &prepared, &["--data", &data]).await?;
    node.kill().await?;
    fs::remove_file(prepared.join("wallet.json"))?;
    let again = machine.run(&["init", "--data", &data]).await?;
    ensure!(!again.err.contains("is not empty"), "{again:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wallet_that_was_brought_along_starts_on_the_chain_that_is_named_once_and_a_nodes_own_needs_its_ledger()
-> Result<()> {
    let machine = Machine::new(false)?;
    let names = ["imported", "brought", "own", "alone", "words"];
    let [imported, brought, own, alone, words] = names.map(|name| machine.path(name));
    let text = |path: &Path| path.display().to_string();
    fs::write(&words, format!("{}about", "abandon ".repeat(11)))?;
    let (file, data) = (text(&words), text(&imported));
    let import = ["wallet", "import", "--phrase-file", &file, "--data", &data, "--json"];
    let address = machine.run(&import).await?.ok()?.json()?["address"].clone();
    // As another program writes it.
    let others = fs::read_to_string(imported.join("wallet.json"))?.replace("x-farthing", "x-other");
    fs::create_dir(&brought)?;
    fs::write(brought.join("wallet.json"), &others)?;
    fs::copy(imported.join("wallet.passphrase"), brought.join("wallet.passphrase"))?;
    for folder in [&imported, &brought] {
        let named = ["chain.preset=base-sepolia"];
        let (mut node, printed) = machine.start_on(&named, folder, &["--data", &text(folder)]).await?;
        node.kill().await?;
        ensure!(printed.contains("and its ledger begins now") == (folder == &brought), "{printed}");
        let written = fs::read_to_string(folder.join("farthing.toml"))?;
        ensure!(written.contains("preset = \"base-sepolia\""), "{written}");
        let (mut node, printed) = machine.start_on(&[], folder, &["--data", &text(folder)]).await?;
        node.kill().await?;
        ensure!(printed.contains("Base Sepolia — test money"), "{printed}");
        let init = machine.run(&["init", "--data", &text(folder), "--json"]).await?.ok()?.json()?;
        ensure!(init["address"] == address && init["created"] == false, "{init}");
    }

    // A ledger that is lost is told before anything else is written, with what to do.
    let init =
        async |data: &Path| machine.run(&["init", "--chain", "base-sepolia", "--data", &text(data)]).await;
    init(&own).await?.ok()?;
    fs::create_dir(&alone)?;
    fs::copy(own.join("wallet.json"), alone.join("wallet.json"))?;
    let says = ["is missing", "restore a backup", "`farthing wallet import`"];
    init(&alone).await?.fails(1, &says)?;
    let mut start = machine.start_command_on(&["chain.preset=base-sepolia"], &["--data", &text(&alone)])?;
    Ran::of(start.output().await?)?.fails(1, &says)?;
    ensure!(!alone.join("farthing.toml").exists() && !alone.join("ledger.redb").exists(), "it was made");
    for folder in [&own, &brought] {
        fs::remove_file(folder.join("ledger.redb"))?;
        machine.run(&["init", "--data", &text(folder)]).await?.fails(1, &says)?;
    }
    // Nothing but the wallet is left, and it says that it was used.
    let used = fs::read_to_string(brought.join("wallet.json"))?;
    ensure!(used.ends_with(&others[1..]) && used.matches("x-farthing").count() == 1, "{used}");
    for wallet in [&imported, &brought] {
        let left = wallet.with_extension("left");
        fs::create_dir(&left)?;
        for name in ["wallet.json", "wallet.passphrase"] {
            fs::copy(wallet.join(name), left.join(name))?;
        }
        let named = ["chain.preset=base-sepolia"];
        let mut start = machine.start_command_on(&named, &["--data", &text(&left)])?;
        Ran::of(start.output().await?)?.fails(1, &says)?;
        ensure!(!left.join("ledger.redb").exists() && !left.join("farthing.toml").exists(), "it was made");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_that_was_mistyped_gets_no_wallet_and_one_that_is_meant_tells_of_its_own() -> Result<()> {
    let machine = Machine::new(false)?;
    let folder = machine.path("node");
    let data = folder.display().to_string();
    let says = [format!("`farthing init --data {data}`"), format!("`farthing run --new --data {data}`")];
    let says = [data.as_str(), "has no wallet", &says[0], &says[1]];
    Ran::of(machine.start_command(&["--data", &data])?.output().await?)?.fails(2, &says)?;
    let mut by_variable = machine.start_command(&[])?;
    Ran::of(by_variable.env("FARTHING_NODE__DATA_DIR", &folder).output().await?)?.fails(2, &says)?;
    ensure!(!folder.exists(), "the folder was made");
    // A disk that is not mounted leaves an empty folder.
    fs::create_dir(&folder)?;
    Ran::of(machine.start_command(&["--data", &data])?.output().await?)?.fails(2, &says)?;
    ensure!(fs::read_dir(&folder)?.next().is_none(), "something was made in it");

    let (mut node, printed) = machine.start(&folder, &["--new", "--data", &data]).await?;
    ensure!(printed.contains("New wallet 0x") && printed.contains("farthing backup create"), "{printed}");
    node.kill().await?;
    let (mut node, printed) = machine.start(&folder, &["--data", &data]).await?;
    ensure!(!printed.contains("New wallet"), "{printed}");
    node.kill().await?;

    // Where no folder is named, none was mistyped.
    let (mut node, printed) = machine.start(&machine.own(), &[]).await?;
    ensure!(printed.contains("New wallet 0x"), "{printed}");
    node.kill().await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_container_makes_its_wallet_by_itself_and_listens_for_whoever_publishes_its_ports() -> Result<()> {
    let machine = Machine::new(true)?;
    for (setting, value) in
        [("node.data_dir", "/data"), ("gateway.listen", "0.0.0.0:3000"), ("panel.listen", "0.0.0.0:3002")]
    {
        let shown = machine.run(&["config", "get", setting]).await?.ok()?;
        ensure!(shown.out.trim() == value, "{setting}: {shown:?}");
    }
    let chain = machine.run(&["config", "get", "chain.preset"]).await?.ok()?;
    ensure!(chain.out.is_empty() && chain.err.contains("No chain is chosen yet"), "{chain:?}");
    let folder = machine.path("mounted");
    let (mut node, printed) = machine.start(&folder, &["--data", &folder.display().to_string()]).await?;
    ensure!(printed.contains("New wallet 0x"), "{printed}");
    node.kill().await?;
    ensure!(printed.contains("The program treats this as a container"), "{printed}");
    let other = machine.path("other").display().to_string();
    machine.run(&["init", "--data", &other]).await?.fails(2, &["no chain is chosen (chain.preset)"])?;
    let ran = machine.start_command_on(&[], &["--data", &other])?.output().await?;
    Ran::of(ran)?.fails(2, &["no chain is chosen", "FARTHING_CHAIN__PRESET=base-sepolia"])?;
    ensure!(!Path::new(&other).exists(), "the folder was made");
    let told = machine.run(&["init", "--chain", "base-sepolia", "--data", &other]).await?.ok()?;
    for words in
        ["The program treats this as a container", "listen on all networks", "FARTHING_CONTAINER=false"]
    {
        ensure!(told.err.contains(words), "it does not say `{words}`: {told:?}");
    }
    Ok(())
}
