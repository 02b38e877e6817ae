//! The ways to call an x402 server, as its page shows them to copy: for people, for programs and for agents.

use farthing_control::types::X402Server;
use serde_json::{Value, json};

use crate::show;

/// A path that a server may have, in examples.
const EXAMPLE_PATH: &str = "/v1/things";
/// A price in examples, in USDC.
const EXAMPLE_PRICE: &str = "0.01";

/// A way to call a server, as code.
pub(super) struct Way {
    pub(super) title: &'static str,
    pub(super) text: String,
}

/// The path below a server's address that was asked last for its price.
pub(in crate::pages) fn asked_path(server: &X402Server) -> Option<&str> {
    let root = server.url.trim_end_matches('/');
    let path = server.terms.as_ref()?.url.strip_prefix(root)?;
    (path.len() > 1 && path.starts_with('/')).then_some(path)
}

/// The ways to call a server: the path that was asked last is the example, with the highest price that its calls may have.
pub(super) fn ways(server: &X402Server, gateway: &str) -> Vec<Way> {
    let path = asked_path(server).unwrap_or(EXAMPLE_PATH);
    let most = server.max_price.map_or_else(|| EXAMPLE_PRICE.to_owned(), |most| most.to_string());
    let id = server.id.to_string();
    // Without a call_id: one that is copied with the rest would make the next call a repeat of the first.
    let body = json!({ "api_id_public": id, "method": "GET", "path": path, "params": {}, "max_price": most });
    let command = format!("farthing call {id} GET {} --max-price {most}", quoted(path));
    let client = format!("farthing sdk generate {id} --language python --output client");
    let curl = format!(
        "curl --cacert farthing-ca.pem -H \"Authorization: Bearer $CONSUMER_SECRET\" \\\n  -d {} \\\n  {gateway}/internal/call",
        quoted(&body.to_string())
    );
    let arguments = json!({ "service": id, "method": "GET", "path": path, "max_price": most });
    let pretty = |value: &Value| serde_json::to_string_pretty(value).unwrap_or_default();
    let ways = [
        ("Command line", command),
        ("Body for /internal/call", pretty(&body)),
        ("curl", curl),
        ("Client code, in twelve languages", client),
        ("Agent: arguments of call_service", pretty(&arguments)),
    ];
    ways.map(|(title, text)| Way { title, text: show::visible_lines(&text) }).into()
}

/// A text as one word of a shell.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use farthing_control::types::X402Terms;

    use super::*;

    /// A server with a highest price, and the address that was asked last.
    fn server(max_price: Option<&str>, asked: Option<&str>) -> X402Server {
        let terms = |url: &str| X402Terms {
            url: url.to_owned(),
            heard_secs: 100,
            status: 402,
            price: None,
            network: None,
            pay_to: None,
            description: None,
            refused: None,
        };
        X402Server {
            id: "0b5f2a3e-6a3c-4c39-9a65-6a1c3f1d2e4b".parse().unwrap(),
            url: "https://data.example/api/".to_owned(),
            added_secs: 100,
            max_price: max_price.map(|price| price.parse().unwrap()),
            terms: asked.map(terms),
        }
    }

    #[test]
    fn a_server_is_called_with_its_highest_price_at_the_path_that_was_asked() {
        let [command, body, curl, client, agent] = <[Way; 5]>::try_from(ways(
            &server(Some("0.5"), Some("https://data.example/api/it's")),
            "https://localhost:3000",
        ))
        .ok()
        .unwrap();
        assert!(command.text.ends_with(" GET '/it'\\''s' --max-price 0.50"), "{}", command.text);
        for part in ["\"path\": \"/it's\"", "\"max_price\": \"0.50\""] {
            assert!(body.text.contains(part), "{part}: {}", body.text);
        }
        for copied in [&body, &curl] {
            assert!(!copied.text.contains("call_id"), "pasted twice, it is two calls: {}", copied.text);
        }
        assert!(curl.text.ends_with("https://localhost:3000/internal/call"), "{}", curl.text);
        assert!(client.text.starts_with("farthing sdk generate 0b5f2a3e-"), "{}", client.text);
        for part in ["\"service\": \"0b5f2a3e-", "\"path\": \"/it's\"", "\"max_price\": \"0.50\""] {
            assert!(agent.text.contains(part), "{part}: {}", agent.text);
        }
        let unasked = ways(&server(None, None), "https://localhost:3000");
        assert!(unasked[0].text.ends_with("GET '/v1/things' --max-price 0.01"), "{}", unasked[0].text);
    }
}
