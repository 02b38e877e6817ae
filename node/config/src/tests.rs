//! The promises of the configuration, on real files in folders of their own.

use super::{
    keys::{Fallback, SettingKey},
    settings::KEYS,
    *,
};

mod chain;

const OWN_TOKEN: &str = "0x00000000000000000000000000000000000000aa";

struct Setup {
    folder: tempfile::TempDir,
    sources: Sources,
}

impl Setup {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let sources = Sources { data_dir: Some(folder.path().to_owned()), ..Sources::default() };
        Self { folder, sources }
    }

    fn file(self, text: &str) -> Self {
        std::fs::write(self.folder.path().join("farthing.toml"), text).unwrap();
        self
    }

    fn variable(mut self, name: &str, value: &str) -> Self {
        self.sources.variables.push((name.into(), value.into()));
        self
    }

    fn set(mut self, assignment: &str) -> Self {
        self.sources.set.push(assignment.into());
        self
    }

    fn load(&self) -> Result<Loaded, ConfigError> {
        load(&self.sources)
    }

    fn refusal(&self) -> String {
        self.load().unwrap_err().to_string()
    }
}

fn origin_of(loaded: &Loaded, name: &str) -> String {
    loaded.shown().into_iter().find(|shown| shown.name == name).unwrap().origin.to_string()
}

#[test]
fn a_file_or_a_dead_link_in_place_of_the_data_folder_is_said_to_be_one_and_once() {
    let mut setup = Setup::new();
    let file = setup.folder.path().join("farthing.toml");
    std::fs::write(&file, "").unwrap();
    let link = setup.folder.path().join("link");
    std::os::unix::fs::symlink("nowhere", &link).unwrap();
    for (data_dir, told) in [
        (file.clone(), "names a file"),
        (file.join("node"), "leads through a file"),
        (link, "names a link whose target does not exist"),
    ] {
        setup.sources.data_dir = Some(data_dir);
        let refusal = setup.refusal();
        let told = format!("--data: node.data_dir: {told}; it must be a folder");
        assert!(refusal.contains(&told), "{refusal}");
        assert_eq!(refusal.lines().count(), 2, "{refusal}");
    }
}

#[test]
fn a_node_starts_with_no_configuration_at_all() {
    let within = |is_container, folder: &str| {
        let surroundings = Surroundings { is_container, data_dir: Some(folder.into()) };
        load(&Sources { surroundings, ..Sources::default() }).unwrap()
    };
    let loaded = within(false, "/nowhere/farthing");
    assert_eq!(loaded.config.node.data_dir, PathBuf::from("/nowhere/farthing"));
    assert_eq!(loaded.config.gateway.listen.to_string(), "127.0.0.1:3000");
    assert_eq!(loaded.config.panel.listen.to_string(), "127.0.0.1:3002");
    assert_eq!(origin_of(&loaded, "node.data_dir"), "default");
    assert_eq!(loaded.config.chain.preset, "base");
    assert_eq!(loaded.config.spending.price_max.to_string(), "0.01");
    assert_eq!(loaded.config.spending.deposit_max.to_string(), "1.00");
    assert_eq!(loaded.config.gateway.tls_mode(), TlsMode::OwnAuthority);

    let contained = within(true, "/data");
    assert_eq!(contained.config.gateway.listen.to_string(), "0.0.0.0:3000");
    assert_eq!(contained.config.panel.listen.to_string(), "0.0.0.0:3002");
    assert_eq!(contained.config.node.data_dir, PathBuf::from("/data"));

    let refusal = load(&Sources::default()).unwrap_err().to_string();
    assert!(refusal.contains("node.data_dir: has no default") && refusal.contains("--data"), "{refusal}");
}

#[test]
fn what_somebody_chose_is_told_from_defaults_and_what_flags_say_becomes_a_file_once() {
    let mut setup = Setup::new()
        .variable("FARTHING_LIMITS__CALLS_MAX", "64")
        .set("chain.preset=base")
        .set("gateway.hosts=a.example, b.example");
    let loaded = setup.load().unwrap();
    for name in ["chain.preset", "gateway.hosts", "limits.calls_max", "node.data_dir"] {
        assert!(loaded.is_chosen(name), "{name}");
    }
    for name in ["gateway.listen", "chain.token", "spending.at_rest_max"] {
        assert!(!loaded.is_chosen(name), "{name}");
    }
    let file = setup.sources.file_in(setup.folder.path());
    loaded.of_init().create(&file).unwrap();
    setup.sources.set.clear();
    setup.sources.variables.clear();
    let read = setup.load().unwrap();
    assert_eq!((read.config.chain.preset.as_str(), read.config.limits.calls_max), ("base", 64));
    assert_eq!(read.config.gateway.hosts, ["a.example", "b.example"]);
    assert!(origin_of(&read, "chain.preset").ends_with("farthing.toml"));
    assert!(!read.is_chosen("limits.calls_max"), "the environment is no flag");

    let text = std::fs::read_to_string(&file).unwrap();
    assert!(!loaded.of_init().is_empty() && read.of_init().is_empty(), "--data is no setting of a file");
    let again = loaded.of_init().create(&file).unwrap_err();
    assert_eq!(again.kind(), std::io::ErrorKind::AlreadyExists);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), text);
}

#[test]
fn a_public_chain_is_kept_by_its_name_wherever_that_was_said_and_any_other_is_not() {
    let of = |setup: Setup| {
        let loaded = setup.load().unwrap();
        (loaded.named_chain(), loaded.of_init())
    };
    let (none, preset) = (UserSettings::default(), SettingKey::find("chain.preset").unwrap());
    let mut sepolia = UserSettings::default();
    sepolia.set(preset, Some(&["base-sepolia".to_owned()]));
    let by_variable = Setup::new()
        .variable("FARTHING_CHAIN__PRESET", "base-sepolia")
        .variable("FARTHING_LIMITS__CALLS_MAX", "9");
    assert_eq!(of(by_variable), (sepolia.clone(), sepolia.clone()));
    assert_eq!(of(Setup::new().set("chain.preset=base-sepolia")), (sepolia.clone(), sepolia));
    assert_eq!(of(Setup::new()), (none.clone(), none.clone()), "the default was not chosen");
    assert_eq!(of(Setup::new().file("[chain]\npreset = \"base\"\n")), (none.clone(), none.clone()));
    let local = || {
        let local = Setup::new()
            .variable("FARTHING_CHAIN__PRESET", "local")
            .variable("FARTHING_CHAIN__TOKEN", OWN_TOKEN);
        local.variable("FARTHING_CHAIN__RPC_URLS", "http://127.0.0.1:8545")
    };
    assert_eq!(of(local()), (none.clone(), none), "a part of a chain is none");
}

#[test]
fn a_flag_that_nothing_else_says_as_well_is_found() {
    let lost = |setup: Setup| {
        let without = load(&Sources { set: Vec::new(), ..setup.sources.clone() }).unwrap();
        setup.load().unwrap().only_by_flag(&without)
    };
    let settings = || Setup::new().file("[chain]\npreset = \"base-sepolia\"\n[limits]\ncalls_max = 9\n");
    assert_eq!(lost(settings()), None, "--data is no setting of a file");
    assert_eq!(lost(settings().set("limits.calls_max=9").set("chain.preset=base-sepolia")), None);
    let other = settings().set("limits.calls_max=9").set("gateway.hosts=a.example, b.example");
    assert_eq!(lost(other), Some(("gateway.hosts", "a.example, b.example".to_owned())));
    assert_eq!(lost(settings().set("limits.calls_max=10")), Some(("limits.calls_max", "10".to_owned())));
    // The default is a choice like any other, once it is made.
    assert_eq!(lost(Setup::new().set("chain.preset=base")), Some(("chain.preset", "base".to_owned())));
}

#[test]
fn a_path_holds_wherever_it_is_read_later() {
    let here = std::env::current_dir().unwrap();
    let sources = Sources::with_environment(Some("r2".into()), None, Vec::new());
    assert_eq!(load(&sources).unwrap().config.node.data_dir, here.join("r2"));
    let named = Sources::with_environment(Some("r2".into()), Some("./other.toml".into()), Vec::new());
    let refusal = load(&named).unwrap_err().to_string();
    assert!(
        refusal.contains(&format!("{}: file: cannot be read", here.join("other.toml").display())),
        "{refusal}"
    );
    let setup = Setup::new().file("[node]\nbackups_dir = \"../disk\"\n").set("gateway.socket=call.sock");
    let loaded = setup.load().unwrap();
    assert_eq!(loaded.config.node.backups_dir, Some(here.join("../disk")));
    assert_eq!(loaded.config.gateway.socket, Some(here.join("call.sock")));
    let shown = loaded.shown().into_iter().find(|shown| shown.name == "gateway.socket").unwrap();
    assert_eq!(shown.value.to_string(), here.join("call.sock").display().to_string());
}

#[test]
fn flags_win_over_the_environment_and_that_over_the_file_and_that_over_defaults() {
    let file = "[limits]\ncalls_max = 10\n";
    let setup = Setup::new();
    assert_eq!(setup.load().unwrap().config.limits.calls_max, 64);
    let setup = setup.file(file);
    assert_eq!(setup.load().unwrap().config.limits.calls_max, 10);
    let setup = setup.variable("FARTHING_LIMITS__CALLS_MAX", "11");
    assert_eq!(setup.load().unwrap().config.limits.calls_max, 11);
    let setup = setup.set("limits.calls_max=12");
    assert_eq!(setup.load().unwrap().config.limits.calls_max, 12);
}

#[test]
fn what_is_read_again_holds_at_once_or_is_named_until_the_next_start() {
    let mut setup = Setup::new().file("[spending]\nper_day = \"2\"\n[limits]\ncalls_max = 10\n");
    let mut running = setup.load().unwrap();
    assert_eq!(running.take_over(&setup.load().unwrap()), ChangedSettings::default());
    setup = setup.file("[spending]\nper_day = \"3\"\nenabled = false\n[log]\nfilter = \"warn\"\n");
    let changed = running.take_over(&setup.load().unwrap());
    assert_eq!(changed.taken, ["spending.enabled", "spending.per_day", "log.filter"]);
    assert_eq!(changed.waiting, ["limits.calls_max"]);
    assert_eq!((running.config.limits.calls_max, running.config.spending.enabled), (10, false));
    assert_eq!(running.config.log.filter, "warn");
    assert_eq!(origin_of(&running, "log.filter"), origin_of(&running, "spending.per_day"));
    let again = running.take_over(&setup.load().unwrap());
    assert_eq!(again, ChangedSettings { taken: Vec::new(), waiting: vec!["limits.calls_max"] });
}

#[test]
fn every_value_says_where_it_came_from() {
    let setup = Setup::new()
        .file("[limits]\ncalls_max = 10\n")
        .variable("FARTHING_GATEWAY__HOSTS", "a.example, b.example")
        .set("chain.preset=base-sepolia");
    let loaded = setup.load().unwrap();
    assert_eq!(loaded.config.gateway.hosts, ["a.example", "b.example"]);
    assert!(origin_of(&loaded, "limits.calls_max").ends_with("farthing.toml"));
    assert_eq!(origin_of(&loaded, "gateway.hosts"), "environment FARTHING_GATEWAY__HOSTS");
    assert_eq!(origin_of(&loaded, "chain.preset"), "flag --set");
    assert_eq!(origin_of(&loaded, "node.data_dir"), "flag --data");
    assert_eq!(origin_of(&loaded, "gateway.listen"), "default");
    assert_eq!(origin_of(&loaded, "chain.token"), "unset");
}

#[test]
fn an_unknown_key_is_an_error_that_names_the_nearest_one() {
    let refusal = Setup::new().file("[spending]\nper_dya = \"1\"\n").refusal();
    assert!(
        refusal.contains("spending.per_dya: is not a setting; did you mean spending.per_day?"),
        "{refusal}"
    );
    let refusal = Setup::new().file("[gateway]\nper_day = \"1\"\n").refusal();
    assert!(refusal.contains("did you mean spending.per_day?"), "{refusal}");
    let refusal = Setup::new().file("per_day = \"1\"\n").refusal();
    assert!(refusal.contains("write it under [spending]"), "{refusal}");
    let refusal = Setup::new().variable("FARTHING_GATEWAY__LISTN", "x").refusal();
    assert!(refusal.contains("environment FARTHING_GATEWAY__LISTN"), "{refusal}");
    let refusal = Setup::new().variable("FARTHING_GATEWAY_LISTEN", "x").refusal();
    assert!(refusal.contains("FARTHING_GATEWAY__LISTEN, with two underscores"), "{refusal}");
}

#[test]
fn variables_of_clients_and_container_platforms_are_left_alone() {
    let setup = Setup::new()
        .variable("FARTHING_CA_FILE", "/x")
        .variable("FARTHING_NODE_SERVICE_HOST", "10.0.0.1")
        .variable("FARTHING_LOG", "debug")
        .variable("FARTHING_SPENDING__PER_DAY", "");
    let loaded = setup.load().unwrap();
    assert_eq!(loaded.config.spending.per_day.to_string(), "5.00");
    assert_eq!(loaded.config.log.filter, "debug", "the variable of before is the setting's");
}

#[test]
fn what_the_console_sets_stands_between_the_file_and_the_environment_and_keys_in_addresses_are_not_shown() {
    let setup = Setup::new().file("[chain]\nrpc_urls = [\"https://one.example\"]\nconfirmations = 3\n");
    let chosen =
        "[chain]\nrpc_urls = [\"https://me:pw@two.example/v2/very-secret\"]\nconfirmations = \"9\"\n";
    std::fs::write(setup.folder.path().join(file_names::CHOSEN_SETTINGS), chosen).unwrap();
    let setup = setup.variable("FARTHING_CHAIN__CONFIRMATIONS", "12");
    let loaded = setup.load().unwrap();
    assert_eq!(loaded.config.chain.rpc_urls, ["https://me:pw@two.example/v2/very-secret"]);
    assert_eq!(loaded.config.chain.confirmations, Some(12));
    assert!(origin_of(&loaded, "chain.rpc_urls").ends_with(file_names::CHOSEN_SETTINGS));
    let shown = loaded.shown().into_iter().find(|shown| shown.name == "chain.rpc_urls").unwrap();
    assert_eq!(shown.value.to_string(), "https://two.example/…");
    let of = |name: &str| {
        let shown = loaded.shown().into_iter().find(|shown| shown.name == name).unwrap();
        serde_json::to_value(shown).unwrap()["value"].clone()
    };
    assert_eq!(of("chain.rpc_urls"), serde_json::json!(["https://two.example/…"]));
    assert_eq!(of("network.announce"), serde_json::json!([]));
    assert_eq!(of("node.name"), serde_json::Value::Null);
    assert_eq!(of("chain.confirmations"), "12");
    let trial =
        Sources { chosen: Some("[chain]\nrpc_urls = [\"nothing\"]\n".into()), ..setup.sources.clone() };
    assert!(load(&trial).unwrap_err().to_string().contains("chain.rpc_urls"));
}

#[test]
fn all_problems_are_told_at_once() {
    let setup = Setup::new()
        .file("[spending]\nper_day = 5.0\nprice_max = \"1e3\"\n[gateway]\nlisten = \"3000\"\nhosts = \"a\"\n")
        .set("limits.calls_max=0");
    let refusal = setup.refusal();
    for part in [
        "spending.per_day: write fractions in quotes",
        "spending.price_max: `1e3`: `1e3` is not an amount of USDC",
        "gateway.listen: `3000`: expected an address with a port",
        "gateway.hosts: must be a list",
        "limits.calls_max: `0`: expected a whole number from 1 to 65536",
    ] {
        assert!(refusal.contains(part), "{part} is missing from:\n{refusal}");
    }
}

#[test]
fn a_secret_comes_from_a_file_and_is_never_shown() {
    let setup = Setup::new();
    let secret_file = setup.folder.path().join("passphrase");
    std::fs::write(&secret_file, "correct horse\n").unwrap();
    let setup = setup.variable("FARTHING_WALLET__PASSPHRASE_FILE", secret_file.to_str().unwrap());
    let loaded = setup.load().unwrap();
    assert_eq!(loaded.config.wallet.passphrase.as_ref().unwrap().expose(), "correct horse");
    let shown = format!("{loaded:?} {:?}", loaded.shown());
    assert!(!shown.contains("horse"), "{shown}");

    let twice = setup.variable("FARTHING_WALLET__PASSPHRASE", "other");
    assert!(twice.refusal().contains("given twice"));
    let on_the_command_line = Setup::new().set("wallet.passphrase=horse").refusal();
    assert!(on_the_command_line.contains("FARTHING_WALLET__PASSPHRASE_FILE"), "{on_the_command_line}");
    assert!(!on_the_command_line.contains("horse"));
    let missing = Setup::new().variable("FARTHING_WALLET__PASSPHRASE_FILE", "/nowhere/at/all").refusal();
    assert!(missing.contains("/nowhere/at/all cannot be read"), "{missing}");
}

#[test]
fn tls_is_off_only_where_nobody_else_can_listen_in() {
    let open = || Setup::new().set("gateway.tls=off").set("gateway.listen=0.0.0.0:3000");
    assert!(open().refusal().contains("trusted_proxies"));
    let loopback = Setup::new().set("gateway.tls=off");
    assert_eq!(loopback.load().unwrap().config.gateway.tls_mode(), TlsMode::Off);
    assert!(open().set("gateway.trusted_proxies=10.0.0.7").load().is_ok());
    assert!(Setup::new().set("gateway.plain=192.168.1.4:3003").refusal().contains("use 127.0.0.1"));
    assert!(Setup::new().set("gateway.plain=127.0.0.1:3003").load().is_ok());
    assert!(Setup::new().set("gateway.tls_cert_file=a.pem").refusal().contains("tls_key_file"));
}

#[test]
fn the_socket_of_calls_is_not_that_of_commands() {
    let named = |name: &str| {
        let setup = Setup::new();
        let socket = setup.folder.path().join(name).display().to_string();
        setup.set(&format!("gateway.socket={socket}"))
    };
    assert!(named("call.sock").load().is_ok());
    for name in [file_names::CONTROL_SOCKET, &*format!("./{}", file_names::CONTROL_SOCKET)] {
        let refusal = named(name).refusal();
        assert!(refusal.contains("gateway.socket: is the node's own control socket"), "{refusal}");
    }
}

#[test]
fn a_smallest_deposit_above_the_largest_is_refused() {
    assert!(Setup::new().set("spending.deposit_min=1").load().is_ok());
    let refusal = Setup::new().set("spending.deposit_min=1.000001").refusal();
    assert!(refusal.contains("spending.deposit_min: must not exceed deposit_max"), "{refusal}");
}

#[test]
fn the_limits_of_money_at_rest_follow_the_largest_deposit_and_hold_it() {
    let at_rest = |setup: Setup| {
        let spending = setup.load().unwrap().config.spending;
        (spending.at_rest_per_owner.to_string(), spending.at_rest_max.to_string())
    };
    let told = |per_owner: &str, in_all: &str| (per_owner.to_owned(), in_all.to_owned());
    assert_eq!(at_rest(Setup::new()), told("5.00", "20.00"));
    assert_eq!(at_rest(Setup::new().set("chain.preset=ethereum")), told("100.00", "400.00"));
    assert_eq!(at_rest(Setup::new().set("spending.deposit_max=0.10")), told("5.00", "20.00"));
    assert_eq!(at_rest(Setup::new().set("spending.at_rest_per_owner=1")), told("1.00", "4.00"));
    let refusal = Setup::new().set("spending.at_rest_per_owner=0.999999").refusal();
    assert!(refusal.contains("spending.at_rest_per_owner: must be at least deposit_max"), "{refusal}");
    let refusal = Setup::new().set("spending.at_rest_max=4.999999").refusal();
    assert!(refusal.contains("spending.at_rest_max: must be at least at_rest_per_owner"), "{refusal}");
    let refusal = Setup::new().set("spending.close_delay_max_secs=2592001").refusal();
    assert!(refusal.contains("spending.close_delay_max_secs"), "{refusal}");
}

#[test]
fn the_public_dht_is_used_on_public_chains_alone_unless_set() {
    let used = |setup: Setup| setup.load().unwrap().config.network.rendezvous;
    let local = || {
        let token = format!("chain.token={OWN_TOKEN}");
        Setup::new().set("chain.preset=local").set("chain.rpc_urls=http://127.0.0.1:8545").set(&token)
    };
    assert_eq!(used(Setup::new()), Rendezvous::Ipfs);
    assert_eq!(used(Setup::new().set("chain.preset=base-sepolia")), Rendezvous::Ipfs);
    assert_eq!(used(Setup::new().set("network.rendezvous=off")), Rendezvous::Off);
    assert_eq!(used(Setup::new().set("network.allow_private=true")), Rendezvous::Off);
    assert_eq!(used(local()), Rendezvous::Off);
    assert_eq!(used(local().set("network.rendezvous=ipfs")), Rendezvous::Ipfs);

    let closed = || Setup::new().set("network.rendezvous_entrance=");
    let refusal = closed().refusal();
    assert!(refusal.contains("network.rendezvous_entrance: must have at least one address"), "{refusal}");
    assert!(closed().set("network.rendezvous=off").load().is_ok());
}

#[test]
fn the_example_file_is_read_back_as_the_defaults() {
    let defaults = Setup::new().load().unwrap();
    let commented = Setup::new().file(&example()).load().unwrap();
    let values = |loaded: &Loaded| -> Vec<_> {
        let shown = loaded.shown().into_iter().filter(|shown| shown.name != "node.data_dir");
        shown.map(|shown| (shown.name, shown.value)).collect()
    };
    assert_eq!(values(&defaults), values(&commented));

    // With every comment sign before a setting removed, each line is still a setting of the right form.
    let active: String = example()
        .lines()
        .filter(|line| !line.ends_with("# unset"))
        .map(|line| if line.starts_with("# ") { line } else { line.trim_start_matches('#') })
        .fold(String::new(), |text, line| text + line + "\n");
    let active = Setup::new().file(&active).load().unwrap();
    assert_eq!(values(&defaults), values(&active));
    assert!(origin_of(&active, "limits.calls_max").ends_with("farthing.toml"));
}

#[test]
fn the_data_folder_is_not_named_by_the_file_inside_it() {
    assert!(Setup::new().file("[node]\ndata_dir = \"/x\"\n").refusal().contains("--data"));
}

#[test]
fn a_named_file_that_is_missing_is_an_error() {
    let mut setup = Setup::new();
    setup.sources.file = Some(setup.folder.path().join("other.toml"));
    assert!(setup.refusal().contains("cannot be read"));
}

#[test]
fn the_settings_that_documents_show_are_settings() {
    let mut shown = 0;
    for entry in std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs")).unwrap() {
        let path = entry.unwrap().path();
        // The examples in that one are service files.
        if path.extension().is_none_or(|ending| ending != "md") || path.ends_with("service-file.md") {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        for rest in text.split("```toml\n").skip(1) {
            let block = rest.split("```").next().unwrap_or_default();
            let refusal = Setup::new().file(block).load().err().map(|error| error.to_string());
            assert_eq!(refusal, None, "{}:\n{block}", path.display());
            shown += 1;
        }
    }
    assert!(shown >= 4, "{shown} were found");
}

/// Every setting, as docs/configuration.md has them.
fn reference() -> String {
    let (mut text, mut section) = (String::new(), "");
    for key in KEYS {
        if key.section() != section {
            section = key.section();
            text += &format!("\n## {section}\n\n| setting | form | default | meaning |\n|---|---|---|---|\n");
        }
        let default = match key.default {
            Fallback::Value(value) => format!("`{value}`"),
            Fallback::Values([]) => "none".to_owned(),
            Fallback::Values(items) => {
                items.iter().map(|item| format!("`{item}`")).collect::<Vec<_>>().join(" ")
            }
            Fallback::Unset => "unset".to_owned(),
        };
        let (form, about) = (key.form.expectation(), key.about.replace('<', "&lt;"));
        text += &format!("| `{}` | {form} | {default} | {about} |\n", key.name);
    }
    text
}

#[test]
fn the_reference_has_every_setting_as_it_is() {
    let document = include_str!("../../../docs/configuration.md");
    let reference = reference();
    let missing: Vec<&str> =
        reference.lines().filter(|line| !document.lines().any(|written| written == *line)).collect();
    assert!(missing.is_empty(), "docs/configuration.md lacks these lines:\n{}", missing.join("\n"));
    assert!(document.ends_with(&reference), "the tables of docs/configuration.md have lines too many");
}
