//! `farthing testnet demo`: two owners sell, one consumer buys, told in plain words, with the money counted on
//! chain before and after ([`story`]). `farthing testnet up` leaves the same running.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    path::{Path, PathBuf},
    time::Duration,
};

use farthing_control::{
    endpoint,
    types::{Api, ServiceFile},
};
use farthing_os::{files, shell::word};
use farthing_values::{Address, Usdc};
use tokio::{
    net::UnixStream,
    signal::unix::{SignalKind, signal},
};

use super::{
    LocalChain,
    down::{FOLDER_PREFIX, Stop},
    process::{NodeOptions, NodeProcess, ServiceProcess, program},
};

pub mod join;
pub(super) mod offers;
mod story;

pub use offers::{earthquakes, recent_earthquakes, transiting_planets};
pub use story::{Report, run};

/// The time between two checks that everything still runs.
const LOOK_EVERY: Duration = Duration::from_secs(2);

const GATEWAY_PORT: u16 = 3000;
const QUAKE_MAP_PORT: u16 = 4003;
const PANEL_PORT: u16 = 3002;

/// The programs behind what is sold.
const SERVICES: [&str; 2] = ["earthquakes", "exoplanets"];

/// The settings that the demo starts with.
#[derive(Debug, Clone)]
pub struct Setup {
    /// Test USDC in the consumer's wallet.
    pub funds: Usdc,
    /// The consumer's ports, if nobody has them; 0 for any.
    pub gateway_port: u16,
    pub panel_port: u16,
    /// Settings of both nodes, `section.key` and value.
    pub settings: Vec<(String, String)>,
    /// The `farthing` that all nodes run; the one of this workspace when it is none.
    pub program: Option<PathBuf>,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            funds: Usdc::from_micros(10_000_000),
            gateway_port: GATEWAY_PORT,
            panel_port: PANEL_PORT,
            settings: Vec::new(),
            program: None,
        }
    }
}

/// An owner with something to sell.
#[derive(Debug)]
pub struct DemoOwner {
    pub service: ServiceProcess,
    pub node: NodeProcess,
    pub wallet: Address,
    pub api: Api,
}

/// Three nodes, two services and a chain.
#[derive(Debug)]
pub struct Demo {
    pub chain: LocalChain,
    /// REST.
    pub earthquakes: DemoOwner,
    /// GraphQL, through the bridge.
    pub planets: DemoOwner,
    pub consumer: NodeProcess,
    pub consumer_wallet: Address,
    pub secret: String,
    pub gateway_url: String,
}

impl Demo {
    /// Starts everything, funds the consumer and publishes the services.
    pub async fn start(folder: &Path, setup: Setup) -> anyhow::Result<Self> {
        // What is missing is told before anything runs.
        for service in SERVICES {
            program(service)?;
        }
        say("Starting a local Ethereum chain with a test USDC and the payment channel contract …");
        let chain = LocalChain::start().await?;
        say(
            "Starting two services that do not know about Farthing: earthquakes (REST) and exoplanets (GraphQL) …",
        );
        let [rest, graphql] = SERVICES;
        let services = (ServiceProcess::start(rest).await?, ServiceProcess::start(graphql).await?);
        say("Starting three nodes: two owners that sell and a consumer that buys …");
        let start = async |name: &str, bootstrap: Vec<String>, (gateway_port, panel_port): (u16, u16)| {
            let mut options = NodeOptions::new(folder.join(name)).bootstrap(bootstrap);
            options.settings.clone_from(&setup.settings);
            options.program.clone_from(&setup.program);
            options.gateway_port = gateway_port;
            options.panel_port = panel_port;
            let node = NodeProcess::start(&chain, options).await?;
            let status = node.status().await?;
            say(&format!("  {name:20}{}", status.address));
            anyhow::Ok((node, status))
        };
        let (first, first_status) = start("earthquake owner", Vec::new(), (0, 0)).await?;
        let join = vec![first.loopback_address().await?];
        let (second, second_status) = start("planet owner", join.clone(), (0, 0)).await?;
        let ports = (free_or_any(setup.gateway_port), free_or_any(setup.panel_port));
        let (consumer, status) = start("consumer", join, ports).await?;
        for (node, wallet, funds) in [
            (&first, first_status.address.0, Usdc::ZERO),
            (&second, second_status.address.0, Usdc::ZERO),
            (&consumer, status.address.0, setup.funds),
        ] {
            chain.fund(wallet, funds).await?;
            node.wait_until_ready().await?;
        }
        consumer.wait_for_usdc(setup.funds).await?;
        say(&format!(
            "The consumer's wallet received {} test USDC, and each wallet a little ETH for gas.",
            setup.funds
        ));
        let earthquakes = earthquakes(&services.0.url);
        let earthquakes = publish(services.0, first, first_status.address.0, earthquakes).await?;
        let planets = offers::planets(&services.1.url);
        let planets = publish(services.1, second, second_status.address.0, planets).await?;
        let secret = consumer.secret().await?;
        Ok(Self {
            chain,
            earthquakes,
            planets,
            consumer,
            consumer_wallet: status.address.0,
            secret,
            gateway_url: status.gateway_url,
        })
    }

    /// Starts a consumer's application: a page on which visitors buy earthquakes through the consumer's node.
    pub async fn quake_map(&self, folder: &Path, port: u16) -> anyhow::Result<ServiceProcess> {
        let secret = folder.join("quake-map.secret");
        files::create_private(&secret, self.secret.as_bytes())?;
        let arguments: [(_, OsString); 4] = [
            ("--node", self.gateway_url.clone().into()),
            ("--ca", self.consumer.ca_file().into()),
            ("--secret-file", secret.into()),
            ("--service", self.earthquakes.api.id.to_string().into()),
        ];
        ServiceProcess::start_on("quake-map", port, arguments).await
    }

    /// Lists what has ended although nobody stopped it.
    fn ended(&mut self) -> Vec<&'static str> {
        [
            ("The chain", self.chain.has_ended()),
            ("The earthquake service", self.earthquakes.service.has_ended()),
            ("The earthquake owner's node", self.earthquakes.node.has_ended()),
            ("The planet service", self.planets.service.has_ended()),
            ("The planet owner's node", self.planets.node.has_ended()),
            ("The consumer's node", self.consumer.has_ended()),
        ]
        .into_iter()
        .filter_map(|(name, has_ended)| has_ended.then_some(name))
        .collect()
    }

    /// Stops the nodes in good order; the rest ends with them.
    pub async fn stop(mut self) -> anyhow::Result<()> {
        self.consumer.stop().await?;
        for mut seller in [self.earthquakes, self.planets] {
            seller.node.stop().await?;
            seller.service.kill().await?;
        }
        Ok(())
    }
}

async fn publish(
    service: ServiceProcess,
    node: NodeProcess,
    wallet: Address,
    file: ServiceFile,
) -> anyhow::Result<DemoOwner> {
    let api = node.control().tell(endpoint::AddApi, &file).await?;
    say(&format!("The owner of “{}” publishes it for {} USDC a call, as {}.", api.name, api.price, api.id));
    Ok(DemoOwner { service, node, wallet, api })
}

/// Everything a node counts, by name.
pub async fn metrics(node: &NodeProcess) -> anyhow::Result<BTreeMap<String, u64>> {
    let url = format!("{}/metrics", node.status().await?.gateway_url);
    let text = node.https_client()?.get(url).send().await?.text().await?;
    let value = |line: &str| {
        let (name, value) = line.split_once(' ')?;
        Some((name.to_owned(), value.parse().ok()?))
    };
    Ok(text.lines().filter_map(value).collect())
}

/// Leaves everything running until Ctrl-C, with lines to paste.
pub async fn up() -> anyhow::Result<()> {
    // The last to be dropped: whoever asks for the end waits until nothing is left.
    let _asker;
    let folder = tempdir()?;
    let mut demo = Demo::start(&folder.0, Setup::default()).await?;
    let quake_map = demo.quake_map(&folder.0, free_or_any(QUAKE_MAP_PORT)).await?;
    let ca = demo.consumer.ca_file();
    let ca = ca.display();
    let (url, secret) = (format!("{}/internal/call", demo.gateway_url), &demo.secret);
    let body = recent_earthquakes(&demo.earthquakes.api);
    let console = demo.consumer.control().ask(endpoint::ShowConsole).await?;
    let code = console.setup_code.map_or_else(String::new, |code| format!("   setup code {code}"));
    say("\nEverything is up.\n");
    say("To make a paid call, paste one of these commands into another terminal:");
    say(&format!(
        "\ncurl --cacert '{ca}' '{url}' \\\n  -H 'Authorization: Bearer {secret}' \\\n  -d '{body}'"
    ));
    let planets = format!("{}/services/{}", demo.gateway_url, demo.planets.api.id);
    say(&format!(
        "\ncurl --cacert '{ca}' '{planets}/planets?discoveryMethod=Transit&limit=5' \\\n  \
         -H 'Authorization: Bearer {secret}'"
    ));
    say(&format!(
        "\npython3 - <<'PY'\nimport json, ssl, urllib.request\n\
         context = ssl.create_default_context(cafile={:?})\n\
         request = urllib.request.Request({url:?}, data=json.dumps({body}).encode(),\n    \
         headers={{\"Authorization\": \"Bearer {secret}\"}})\n\
         with urllib.request.urlopen(request, context=context) as answer:\n    \
         print(answer.headers[\"x-farthing-charged\"], \"USDC\")\n    \
         for feature in json.load(answer)[\"features\"]:\n        \
         print(feature[\"properties\"][\"mag\"], feature[\"properties\"][\"place\"])\nPY",
        ca.to_string(),
    ));
    say("\nThe command line finds a node by its data folder, for example:\n");
    let program = program("farthing")?;
    for node in [&demo.consumer, &demo.earthquakes.node, &demo.planets.node] {
        say(&format!("{} status --data {}", word(&program), word(node.data_dir())));
    }
    let mut bootstrap = Vec::new();
    for node in [&demo.earthquakes.node, &demo.planets.node, &demo.consumer] {
        bootstrap.push(node.loopback_address().await?);
    }
    say("\nTo join with your own node, save these settings as `my-node/farthing.toml`:\n");
    say(&join::settings(&demo.chain.rpc_url(), demo.chain.token, &bootstrap));
    say(
        "\nThe first command runs your node. The other two give it test money; run them in another terminal:\n",
    );
    say(&join::commands(&program, demo.consumer.data_dir()));
    let stop = Stop::listen(&folder.0)?;
    // What a person does next comes last, where it is seen.
    let prints_again = format!("{} console url --data {}", word(&program), word(demo.consumer.data_dir()));
    let by_eye = console.ca_fingerprint.map_or_else(String::new, |fingerprint| {
        format!("\n\nYour browser shows a warning until it trusts {ca}. To compare it, its SHA-256:\n{fingerprint}")
    });
    say(&format!(
        "\nOpen the consumer's console in your browser:\n\n{}{code}\n\n`{prints_again}` prints the address \
         again.{by_eye}\n\nOpen a consumer's application in your browser. Each press of its button makes a paid \
         call:\n\n{}\n\nTo stop and delete everything, press Ctrl-C here, or run `{} testnet down` in another terminal.",
        console.url,
        quake_map.url,
        word(&program)
    ));
    _asker = until_end(&mut demo, &stop).await?;
    demo.stop().await
}

/// Waits until somebody wants an end, and tells what ends before; returns who asks from another terminal.
async fn until_end(demo: &mut Demo, stop: &Stop) -> anyhow::Result<Option<UnixStream>> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut told = Vec::new();
    loop {
        tokio::select! {
            interrupted = tokio::signal::ctrl_c() => return Ok(interrupted.map(|()| None)?),
            _ = terminate.recv() => return Ok(None),
            asker = stop.wanted() => return Ok(Some(asker)),
            () = tokio::time::sleep(LOOK_EVERY) => {}
        }
        for name in demo.ended() {
            if !told.contains(&name) {
                say(&format!(
                    "{name} has ended. Calls that need it fail until you start `testnet up` again."
                ));
                told.push(name);
            }
        }
    }
}

/// The port if nobody has it, else any: somebody else's server must not stop the demo.
fn free_or_any(port: u16) -> u16 {
    match std::net::TcpListener::bind(("127.0.0.1", port)) {
        Ok(_) => port,
        Err(_) => {
            say(&format!("  (port {port} is in use on this machine; the network uses another one)"));
            0
        }
    }
}

/// A folder that is removed with its value.
#[derive(Debug)]
pub struct TempDir(pub PathBuf);

pub fn tempdir() -> anyhow::Result<TempDir> {
    let path = std::env::temp_dir().join(format!("{FOLDER_PREFIX}{}", uuid::Uuid::new_v4().simple()));
    std::fs::create_dir_all(&path)?;
    Ok(TempDir(path))
}

impl Drop for TempDir {
    fn drop(&mut self) {
        // Left-overs in the system's temporary folder do no harm.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[expect(clippy::print_stdout, reason = "the story is this command's output")]
fn say(line: &str) {
    println!("{line}");
}
