//! What commands say where something is not as one would expect: in words that help, and in JSON that programs can read.

use anyhow::{Context, Result, ensure};
use farthing_tests::{
    command::{farthing, run},
    nodes::{Nodes, all_find, offer, publish, words},
    wait::eventually,
};
use serde_json::{Value, json};

const UPSTREAM: &str = "http://127.0.0.1:9";

#[tokio::test(flavor = "multi_thread")]
async fn a_search_says_what_narrowed_it_which_of_how_many_it_shows_and_exact_bands_of_prices() -> Result<()> {
    let mut nodes = Nodes::new()?;
    let node = [nodes.join(&[]).await?];
    for name in ["Tides at sea", "Rain on land", "Wind above"] {
        publish(&node[0], &offer(name, UPSTREAM)).await?;
    }
    all_find(&node, &words(""), 3).await?;
    let node = &node[0];
    for (arguments, words) in [
        (&["unheard"][..], "Use fewer or shorter words to find more. "),
        (&["--category", "nope"], "Remove --category to find more"),
        (&["--max-price", "0", "--kind", "graphql"], "Use fewer of --kind, --max-price to find more"),
        (&["tides", "--tag", "nope"], "or fewer of --tag, to find more"),
    ] {
        let told = farthing(node, &[&["catalog", "search"], arguments].concat()).await?;
        ensure!(told.ends_with(0)?.err.contains(words), "{arguments:?}: {told:?}");
    }
    for (arguments, words) in [
        (&["--limit", "2"][..], "Number 1 to 2 of 3; more with --offset 2"),
        (&["--limit", "1", "--offset", "1"], "Number 2 of 3; more with --offset 2"),
        (&["--offset", "1"], "Number 2 to 3 of 3"),
    ] {
        let told = farthing(node, &[&["catalog", "search"], arguments].concat()).await?;
        ensure!(told.ends_with(0)?.out.trim_end().ends_with(words), "{arguments:?}: {told:?}");
    }
    let told = farthing(node, &["catalog", "search", "--max-price", "-1"]).await?;
    ensure!(told.ends_with(2)?.err.contains("`-1` is not an amount of USDC"), "{told:?}");
    let found = farthing(node, &["catalog", "search", "--json"]).await?.json()?;
    ensure!(found["hits"][0]["kind"] == "rest" && found["counts"]["kinds"][0]["value"] == "rest", "{found}");
    let prices = found["counts"]["prices"].as_array().context("no prices")?;
    let of = |end: &str| prices.iter().map(|band| band[end].clone()).collect::<Vec<Value>>();
    let (starts, ends) = (of("above"), of("up_to"));
    ensure!(starts[0].is_null() && ends[ends.len() - 1].is_null(), "{prices:?}");
    ensure!(starts[1..] == ends[..ends.len() - 1], "the bands touch and do not overlap: {prices:?}");
    let counted: u64 = prices.iter().filter_map(|band| band["count"].as_u64()).sum();
    ensure!(counted == 3, "{prices:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_service_twice_is_warned_of_and_a_new_price_says_how_far_it_got() -> Result<()> {
    let mut nodes = Nodes::new()?;
    let alone = nodes.join(&[]).await?;
    let file = alone.data_dir().join("offer.json");
    // A file has its description in one place; what a node is given has the name of that place beside the text.
    let mut written = serde_json::to_value(offer("Twice the same", UPSTREAM))?;
    written["source"].as_object_mut().context("no source")?.remove("file");
    std::fs::write(&file, written.to_string())?;
    let file = file.display().to_string();
    let add = ["api", "add", "--from", &file, "--yes"];
    let first = farthing(&alone, &add).await?;
    ensure!(!first.ends_with(0)?.err.contains("already"), "{first:?}");
    let second = farthing(&alone, &add).await?;
    ensure!(
        second.ends_with(0)?.err.contains("you already offer “Twice the same” from the same server"),
        "{second:?}"
    );
    let other = farthing(&alone, &[&add[..], &["--name", "Another one"]].concat()).await?;
    ensure!(!other.ends_with(0)?.err.contains("already"), "{other:?}");

    let apis = farthing(&alone, &["api", "list", "--json"]).await?.json()?;
    let service = apis[0]["id"].as_str().context("no service")?.to_owned();
    let told = farthing(&alone, &["api", "price", &service, "0.004"]).await?;
    ensure!(told.ends_with(0)?.err.contains("No node is connected, so nobody can find it yet"), "{told:?}");
    let neighbour = nodes.join(&[&alone]).await?;
    all_find(std::slice::from_ref(&neighbour), &words("twice"), 2).await?;
    let imitated = farthing(&neighbour, &[&add[..], &["--name", "Twic\u{435} the same"]].concat()).await?;
    ensure!(imitated.ends_with(0)?.err.contains("close to “Twice the same”"), "{imitated:?}");
    let told = farthing(&alone, &["api", "price", &service, "0.005"]).await?;
    // A slow machine may take longer than anybody waits for words.
    let is_told = ["Seen by 1 of 1 connected nodes.", "0 of 1 connected nodes have it so far"];
    ensure!(is_told.iter().any(|words| told.err.contains(words)), "{told:?}");
    eventually("the neighbour has it", async || {
        Ok(farthing(&alone, &["api", "health", &service]).await?.out.contains("1 of 1 connected nodes"))
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn settings_of_a_list_are_lists_in_json_and_a_broken_file_is_one_clear_line() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let data = folder.path().display().to_string();
    let announced = "network.announce=/ip4/203.0.113.7/tcp/3001,/dns4/node.example/tcp/3001";
    let shown = run(&data, &["config", "show", "--json", "--set", announced]).await?.json()?;
    let of = |name: &str| {
        let mut settings = shown.as_array().into_iter().flatten();
        settings.find(|setting| setting["name"] == name).map(|setting| setting["value"].clone())
    };
    let addresses = json!(["/ip4/203.0.113.7/tcp/3001", "/dns4/node.example/tcp/3001"]);
    ensure!(of("network.announce") == Some(addresses), "{shown}");
    ensure!(of("network.bootstrap") == Some(json!([])) && of("node.name") == Some(Value::Null), "{shown}");
    ensure!(of("gateway.tls") == Some(json!("on")), "{shown}");
    std::fs::write(folder.path().join("farthing.toml"), "[network\nname = \"x\"\n")?;
    let told = run(&data, &["config", "check"]).await?;
    let err = &told.ends_with(2)?.err;
    ensure!(err.contains("is not valid TOML") && !err.lines().any(|line| line.starts_with('.')), "{err}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_probe_says_what_is_wrong_in_plain_words() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let data = folder.path().display().to_string();
    // Bound, so that nobody else is given the port, and not listened on.
    let socket = tokio::net::TcpSocket::new_v4()?;
    socket.bind("127.0.0.1:0".parse()?)?;
    let nobody = socket.local_addr()?;
    for (url, words) in [
        ("foo", "`foo` is not the address of an HTTP server; write it like http://host:port/path"),
        (&format!("http://{nobody}/"), "refuses the connection: nothing listens there yet"),
    ] {
        let told = run(&data, &["testnet", "probe", url]).await?;
        ensure!(told.ends_with(3)?.err.contains(words), "{told:?}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_start_says_nothing_in_the_words_of_a_library() -> Result<()> {
    let mut nodes = Nodes::new()?;
    let first = nodes.join(&[]).await?;
    let second = nodes.join(&[&first]).await?;
    eventually("they have met", async || Ok(second.status().await?.peers == 1)).await?;
    for node in [&first, &second] {
        let log = node.log();
        ensure!(!log.is_empty(), "there is no log");
        for word in ["local_peer_id", "trigger bootstrap", "libp2p"] {
            ensure!(!log.contains(word), "{word}: {log}");
        }
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_that_is_not_this_machine_s_is_said_to_be_so_once() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let data = folder.path().display().to_string();
    // For documentation: no machine has it.
    let settings = [
        "chain.preset=local",
        "chain.rpc_urls=http://127.0.0.1:9",
        "chain.token=0x00000000000000000000000000000000000000aa",
        "network.listen=/ip4/192.0.2.1/tcp/13001",
        "gateway.listen=127.0.0.1:0",
        "panel.listen=127.0.0.1:0",
    ];
    let settings = settings.iter().flat_map(|setting| ["--set", setting]);
    let arguments: Vec<&str> = ["run", "--new"].into_iter().chain(settings).collect();
    let told = run(&data, &arguments).await?;
    ensure!(told.code == 1, "{told:?}");
    ensure!(told.err.contains("it is not an address of this machine"), "{told:?}");
    ensure!(!told.err.contains("stop the program using that port"), "{told:?}");
    // What the system said of this address; that the chain refuses may be said beside it.
    ensure!(told.err.matches("Cannot assign requested address").count() == 1, "{told:?}");
    Ok(())
}
