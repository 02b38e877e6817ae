//! Adapters are reached through use cases: the layers that serve people show what adapters know, and write through use cases
//! alone.
//!
//! The calls that write are read from the adapters' own source, so that a new one need not be listed here.

use std::collections::BTreeSet;

use crate::{
    ADAPTERS, Breaches, LAYERS, layer,
    source::{SourceFile, repository, source_files},
};

/// An adapter whose handle changes something that lasts.
struct Lasting {
    handle: &'static str,
    source: &'static str,
    /// The end of the names under which its handle is held.
    held_as: &'static str,
    /// The calls with which the handle gives its actor something to write.
    hands_over: &'static [&'static str],
}

const CHAIN: Lasting = Lasting {
    handle: "ChainHandle",
    source: "node/chain/src",
    held_as: "chain",
    hands_over: &["self.0.writer."],
};
const LEDGER: Lasting = Lasting {
    handle: "Ledger",
    source: "node/ledger/src",
    held_as: "ledger",
    hands_over: &[".enqueue(", ".ride(", ".queue().promise(", ".end_promises("],
};
/// They show what adapters know; what they change, they change through use cases.
const SHOWING: [&str; 4] = ["node/cli/src", "node/commands/src", "node/console/src", "node/gateway/src"];
/// Calls of other things that are named alike.
const OTHERS: [&str; 1] = ["node.end_promises("];

/// A method of a handle, and its text without white space.
struct Method {
    name: String,
    is_public: bool,
    text: String,
}

#[test]
fn adapters_are_reached_through_use_cases() {
    let mut breaches = Breaches::default();
    let mut files = source_files(&repository().join("node/src"));
    files.retain(|file| layer(file.top_module()).is_some_and(|layer| LAYERS[layer].0 == "foundation"));
    files.extend(source_files(&repository().join("node/gateway/src")));
    for file in &files {
        for adapter in ADAPTERS.map(|package| package.replace('-', "_")) {
            if file.has_word(&adapter) {
                breaches.add(&file.path, format!("uses {adapter}; ask a use case"));
            }
        }
    }
    for adapter in [CHAIN, LEDGER] {
        let writing = writing(&adapter);
        for file in SHOWING.iter().flat_map(|folder| source_files(&repository().join(folder))) {
            for write in writes(&adapter, &writing, file.code()) {
                breaches.add(&file.path, format!("writes by `{write}`; ask a use case"));
            }
        }
    }
    breaches.none();
}

#[test]
fn what_writes_is_read_from_the_source_of_the_adapters() {
    let (chain, ledger) = (writing(&CHAIN), writing(&LEDGER));
    for name in
        ["claim_many", "close", "deploy_contract", "deposit_onto", "send_eth", "send_usdc", "withdraw"]
    {
        assert!(chain.contains(name), "{name} sends a transaction: {chain:?}");
    }
    for name in ["balances_of", "contract_found", "deployment_cost", "operate", "track"] {
        assert!(!chain.contains(name), "{name} is private or sends nothing: {chain:?}");
    }
    for name in
        ["acknowledge", "delete", "end_promises", "promise", "put", "record_claim", "release", "serve"]
    {
        assert!(ledger.contains(name), "{name} stores something: {ledger:?}");
    }
    for name in ["audit", "catch_up", "get", "purchases", "settlements", "write"] {
        assert!(!ledger.contains(name), "{name} is private or stores nothing: {ledger:?}");
    }
}

#[test]
fn a_write_is_found_by_whatever_way_its_handle_is_reached() {
    let writing = writing(&CHAIN);
    for (code, found) in [
        ("node.chain.send_usdc(request.to.0, amount).await", "chain.send_usdc("),
        ("let report = node.chain.deploy_contract().await?;", "chain.deploy_contract("),
        ("node\n    .chain\n    .send_eth(to, wei)", "chain.send_eth("),
        ("let held = node.chain.clone();\nheld.send_eth(to, wei)", "held.send_eth("),
        ("return node.chain().clone().close(row)", "chain.close("),
        ("ChainHandle::withdraw(&node.chain, config)", "ChainHandle::withdraw"),
    ] {
        assert_eq!(writes(&CHAIN, &writing, code), [found], "{code}");
    }
    for code in [
        "transfers::send(&node.chain, request.to.0, request.amount).await?",
        "deployment::deploy(&node.chain).await?",
        "node.chain.contract_found().await?",
        "served.close().await",
        "form.withdraw()",
        "node.chain.close_delay()",
    ] {
        assert_eq!(writes(&CHAIN, &writing, code), [""; 0], "{code}");
    }
}

/// The public methods of an adapter's handle that write, by themselves or by one another.
fn writing(adapter: &Lasting) -> BTreeSet<String> {
    let files = source_files(&repository().join(adapter.source));
    let methods: Vec<Method> = files.iter().flat_map(|file| methods_of(adapter.handle, file)).collect();
    let mut writing: BTreeSet<&str> = BTreeSet::new();
    loop {
        let known = writing.len();
        for method in &methods {
            let hands_over = adapter.hands_over.iter().any(|call| method.text.contains(call));
            let asks_one = || writing.iter().any(|name| method.text.contains(&format!("self.{name}(")));
            if hands_over || asks_one() {
                writing.insert(&method.name);
            }
        }
        if writing.len() == known {
            break;
        }
    }
    let public = methods.iter().filter(|method| method.is_public && writing.contains(method.name.as_str()));
    public.map(|method| method.name.clone()).collect()
}

/// The methods in the blocks of a type that are no trait's.
fn methods_of(handle: &str, file: &SourceFile) -> Vec<Method> {
    let opening = format!("impl {handle} {{\n");
    let mut methods: Vec<Method> = Vec::new();
    for block in file.code().split(opening.as_str()).skip(1) {
        for line in block.split("\n}\n").next().unwrap_or(block).lines() {
            if let Some((name, is_public)) = declared(line) {
                methods.push(Method { name: name.to_owned(), is_public, text: String::new() });
            }
            if let Some(method) = methods.last_mut() {
                method.text.extend(line.split_whitespace());
            }
        }
    }
    methods
}

/// The name of the method that a line of a block begins, and whether everybody may call it.
fn declared(line: &str) -> Option<(&str, bool)> {
    let line = line.strip_prefix("    ").filter(|line| !line.starts_with(' '))?;
    let (before, after) = line.split_once("fn ")?;
    let is_method = before.split_whitespace().all(|word| {
        matches!(word, "async" | "const" | "pub") || word.starts_with("pub(") && word.ends_with(')')
    });
    let name = after.split(|c: char| !is_of_a_name(c)).next().filter(|_| is_method)?;
    Some((name, before.starts_with("pub ")))
}

/// The calls in a code that write: on a handle that is held under its usual name, or by a name of several words, which
/// nothing else has.
fn writes(adapter: &Lasting, writing: &BTreeSet<String>, code: &str) -> Vec<String> {
    let code: String = code.split_whitespace().collect();
    let mut found = Vec::new();
    for name in writing {
        let by_path = format!("{}::{name}", adapter.handle);
        let by_method = format!(".{name}(");
        let held = code.match_indices(by_method.as_str()).map(|(at, _)| holder(&code[..at]));
        let is_its = |held: &&str| held.ends_with(adapter.held_as) || name.contains('_');
        let calls = held.filter(is_its).map(|held| format!("{held}{by_method}"));
        found.extend(calls.filter(|call| !OTHERS.contains(&call.as_str())));
        found.extend(code.contains(&format!("{by_path}(")).then_some(by_path));
    }
    found
}

/// The last name before a call: `chain` of `node.chain`, of `node.chain()` and of `node.chain.clone()`.
fn holder(before: &str) -> &str {
    let before = before.trim_end_matches("()").trim_end_matches(".clone").trim_end_matches("()");
    before.rsplit(|c: char| !is_of_a_name(c)).next().unwrap_or_default()
}

fn is_of_a_name(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}
