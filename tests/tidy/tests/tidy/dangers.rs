//! A page asks for the password before it does what is dangerous.

use crate::{
    Breaches,
    source::{function_name, repository, source_files},
};

const LIST: &str = "node/control/src/endpoint/list.rs";
/// Functions that ask the node for something dangerous and leave the password to somebody else, each with the reason.
const ELSEWHERE: [(&str, &str, &str); 6] = [
    ("finance/send.rs", "carry_out", "the button that starts it asks"),
    ("register/details.rs", "try_out", "the button that starts it asks"),
    ("register/preview.rs", "publish", "the button that starts it asks"),
    ("settings/backup.rs", "keep", "the form's gate asks before it reads the file"),
    ("setup/words.rs", "show", "the address that shows the words is told by `reveal`, which asks"),
    ("x402.rs", "tell", "the handlers of its forms ask"),
];
/// Proofs of the password, asked for or handed over.
const PROOFS: [&str; 3] = ["reauthenticated()", "confirmed()", "_: Reauthenticated"];

#[test]
fn a_page_asks_for_the_password_before_it_does_what_is_dangerous() {
    let list = std::fs::read_to_string(repository().join(LIST)).expect(LIST);
    let dangerous: Vec<String> =
        list.lines().filter_map(dangerous).map(|name| format!("endpoint::{name}")).collect();
    assert!(dangerous.len() > 30, "{dangerous:?}");
    let mut breaches = Breaches::default();
    let files = source_files(&repository().join("node/console/src"));
    for file in files.iter().filter(|file| !file.is_test()) {
        for (name, body) in functions(file.code()) {
            let is_elsewhere =
                |(path, own, _): &(&str, &str, &str)| *own == name && file.path.ends_with(path);
            if PROOFS.iter().any(|proof| body.contains(proof)) || ELSEWHERE.iter().any(is_elsewhere) {
                continue;
            }
            for endpoint in dangerous.iter().filter(|endpoint| asks(&body, endpoint)) {
                let detail = format!(
                    "asks the node for `{endpoint}` in `{name}`: call `form.reauthenticated()?` first"
                );
                breaches.add(&file.path, detail);
            }
        }
    }
    breaches.none();
}

/// `send: SendMoney, POST "/wallet/send" []; …, High;` → `SendMoney`
fn dangerous(line: &str) -> Option<&str> {
    let (_, declared) = line.split_once(": ")?;
    let (name, rest) = declared.split_once(", ")?;
    rest.trim_end().ends_with(", High;").then_some(name)
}

/// Whether `body` names this endpoint and not one whose name only begins alike.
fn asks(body: &str, endpoint: &str) -> bool {
    let is_whole = |rest: &str| !rest.starts_with(|next: char| next.is_alphanumeric());
    body.split(endpoint).skip(1).any(is_whole)
}

/// The functions and methods of a file, each with its text up to the next.
fn functions(code: &str) -> Vec<(&str, String)> {
    let mut found: Vec<(&str, String)> = Vec::new();
    for line in code.lines() {
        if let Some(name) = function_name(line.strip_prefix("    ").unwrap_or(line)) {
            found.push((name, String::new()));
        }
        if let Some((_, body)) = found.last_mut() {
            body.push_str(line);
            body.push('\n');
        }
    }
    found
}

#[test]
fn a_dangerous_endpoint_is_found_in_the_function_that_asks_for_it() {
    let line = "            send: SendMoney, POST \"/wallet/send\" []; (types::Send) -> (types::Sent), High;";
    assert_eq!(dangerous(line), Some("SendMoney"));
    assert_eq!(dangerous(&line.replace("High", "Low")), None);
    let code = "\
pub(in crate::pages) async fn send(form: Form<Fields>) -> Page {
    form.visit.panel.node().tell(endpoint::SendMoney, &order).await
}

impl Form {
    fn key(&self) -> &str {
        let closure = |f: fn(u8) -> u8| f(1);
    }
}
";
    let found = functions(code);
    assert_eq!(found.iter().map(|(name, _)| *name).collect::<Vec<_>>(), ["send", "key"]);
    let asking = found.iter().filter(|(_, body)| asks(body, "endpoint::SendMoney"));
    assert_eq!(asking.map(|(name, _)| *name).collect::<Vec<_>>(), ["send"]);
    assert!(!asks("endpoint::SendMoneyLater", "endpoint::SendMoney"));
}
