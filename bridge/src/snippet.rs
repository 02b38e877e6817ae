//! One call as code to paste, in several languages.
//!
//! The code posts the call to the gateway of the caller's node. The secret and the file of the node's certificate
//! authority come from the environment (`CONSUMER_SECRET`, `FARTHING_CA_FILE`), so that code can be shared.
//!
//! Invariant: what a stranger wrote (names, paths) and what was typed (values, bodies) stands inside a literal of
//! the language, never in the code. Characters that hide or turn text are written as escapes.

use std::fmt::Write as _;

use serde::Serialize;
use serde_json::{Value, ser::PrettyFormatter};

use crate::is_deceptive;

mod literal;

use literal::{Dialect, literal};

/// Languages that a call can be shown in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Language {
    Curl,
    Python,
    /// Without types, so it is JavaScript as well.
    TypeScript,
    Go,
    Rust,
    Kotlin,
}

impl Language {
    pub const ALL: [Self; 6] =
        [Self::Curl, Self::Python, Self::TypeScript, Self::Go, Self::Rust, Self::Kotlin];

    /// As people call it.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::Curl => "curl",
            Self::Python => "Python",
            Self::TypeScript => "TypeScript",
            Self::Go => "Go",
            Self::Rust => "Rust",
            Self::Kotlin => "Kotlin",
        }
    }

    /// Lower case, for addresses and ids.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Curl => "curl",
            Self::Python => "python",
            Self::TypeScript => "typescript",
            Self::Go => "go",
            Self::Rust => "rust",
            Self::Kotlin => "kotlin",
        }
    }
}

/// The call to show. It is not checked.
#[derive(Debug, Clone)]
pub struct SnippetCall<'a> {
    /// Where the gateway is: `https://localhost:3000`.
    pub gateway: &'a str,
    /// UUID.
    pub service: &'a str,
    pub method: &'a str,
    /// Concrete, or a template whose parameters are among `params`.
    pub path: &'a str,
    /// In the order to show them.
    pub params: &'a [(String, String)],
    /// JSON, or a text.
    pub body: Option<Value>,
    /// Of a body that is a text.
    pub content_type: Option<&'a str>,
}

/// The call as code.
#[must_use]
pub fn snippet(call: &SnippetCall<'_>, language: Language) -> String {
    let address = format!("{}/internal/call", call.gateway);
    let tls = address.starts_with("https://");
    let request = request(call);
    match language {
        Language::Curl => curl(&address, tls, &request),
        Language::Python => python(&address, tls, &request),
        Language::TypeScript => typescript(&address, tls, &request),
        Language::Go => go(&address, tls, &request),
        Language::Rust => rust(&address, tls, &request),
        Language::Kotlin => kotlin(&address, tls, &request),
    }
}

/// The gateway's request, its members in the order that people read them.
fn request(call: &SnippetCall<'_>) -> Vec<(String, Value)> {
    let text = |text: &str| Value::String(text.to_owned());
    let mut request = vec![
        ("api_id_public".to_owned(), text(call.service)),
        ("method".to_owned(), text(call.method)),
        ("path".to_owned(), text(call.path)),
    ];
    if !call.params.is_empty() {
        let params = call.params.iter().map(|(name, value)| (name.clone(), text(value)));
        request.push(("params".to_owned(), Value::Object(params.collect())));
    }
    if let Some(body) = &call.body {
        request.push(("body".to_owned(), body.clone()));
    }
    if let Some(kind) = call.content_type {
        request.push(("headers".to_owned(), serde_json::json!({ "content-type": kind })));
    }
    request
}

/// The request as JSON on several lines, without characters that deceive.
fn json(request: &[(String, Value)]) -> String {
    let mut lines: Vec<String> = Vec::new();
    for (name, value) in request {
        let mut text = Vec::new();
        let mut writer =
            serde_json::Serializer::with_formatter(&mut text, PrettyFormatter::with_indent(b"  "));
        // Writing a value into memory does not fail.
        let _ = value.serialize(&mut writer);
        let value = String::from_utf8(text).unwrap_or_default().replace('\n', "\n  ");
        lines.push(format!("  {}: {value}", Value::from(name.as_str())));
    }
    let text = format!("{{\n{}\n}}", lines.join(",\n"));
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if is_deceptive(c) && c != '\n' {
            let mut units = [0; 2];
            for unit in c.encode_utf16(&mut units) {
                let _ = write!(shown, "\\u{unit:04x}");
            }
        } else {
            shown.push(c);
        }
    }
    shown
}

fn curl(address: &str, tls: bool, request: &[(String, Value)]) -> String {
    let quoted = |text: &str| format!("'{}'", text.replace('\'', r"'\''"));
    let trust = if tls { "--cacert \"$FARTHING_CA_FILE\" " } else { "" };
    format!(
        "curl {trust}{} \\\n  -H \"Authorization: Bearer $CONSUMER_SECRET\" \\\n  \
         -H 'Content-Type: application/json' \\\n  --data-raw {}\n",
        quoted(address),
        quoted(&json(request))
    )
}

fn python(address: &str, tls: bool, request: &[(String, Value)]) -> String {
    let (import, trust, argument) = if tls {
        (
            "import json, os, ssl, urllib.request",
            "trust = ssl.create_default_context(cafile=os.environ[\"FARTHING_CA_FILE\"])\n",
            ", context=trust",
        )
    } else {
        ("import json, os, urllib.request", "", "")
    };
    format!(
        r#"{import}

call = {}
request = urllib.request.Request(
    {},
    data=json.dumps(call).encode(),
    headers={{
        "Authorization": "Bearer " + os.environ["CONSUMER_SECRET"],
        "Content-Type": "application/json",
    }},
)
{trust}with urllib.request.urlopen(request{argument}) as answer:
    print(answer.headers["x-farthing-charged"], "USDC charged")
    print(answer.read().decode())
"#,
        literal(Dialect::Python, request),
        Dialect::Python.text(address),
    )
}

fn typescript(address: &str, tls: bool, request: &[(String, Value)]) -> String {
    let run =
        if tls { "// Run it with NODE_EXTRA_CA_CERTS=\"$FARTHING_CA_FILE\" node call.mjs\n" } else { "" };
    format!(
        r#"{run}const call = {};
const answer = await fetch({}, {{
  method: "POST",
  headers: {{
    Authorization: `Bearer ${{process.env.CONSUMER_SECRET}}`,
    "Content-Type": "application/json",
  }},
  body: JSON.stringify(call),
}});
console.log(answer.status, answer.headers.get("x-farthing-charged"), "USDC charged");
console.log(await answer.text());
"#,
        literal(Dialect::JavaScript, request),
        Dialect::JavaScript.text(address),
    )
}

fn go(address: &str, tls: bool, request: &[(String, Value)]) -> String {
    let call = json(request);
    // A raw string keeps line breaks; it cannot hold its own quotes.
    let call = if call.contains('`') { Dialect::Go.text(&call) } else { format!("`{call}`") };
    let (imports, client) = if tls {
        (
            "\"crypto/tls\"\n\t\"crypto/x509\"\n\t\"fmt\"",
            "authority, err := os.ReadFile(os.Getenv(\"FARTHING_CA_FILE\"))\n\tcheck(err)\n\t\
             trusted := x509.NewCertPool()\n\ttrusted.AppendCertsFromPEM(authority)\n\t\
             client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trusted}}}",
        )
    } else {
        ("\"fmt\"", "client := &http.Client{}")
    };
    format!(
        r#"package main

import (
	{imports}
	"io"
	"net/http"
	"os"
	"strings"
)

const call = {call}

func main() {{
	{client}
	request, err := http.NewRequest("POST", {}, strings.NewReader(call))
	check(err)
	request.Header.Set("Authorization", "Bearer "+os.Getenv("CONSUMER_SECRET"))
	request.Header.Set("Content-Type", "application/json")
	answer, err := client.Do(request)
	check(err)
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	check(err)
	fmt.Println(answer.Status, answer.Header.Get("x-farthing-charged"), "USDC charged")
	fmt.Println(string(body))
}}

func check(err error) {{
	if err != nil {{
		panic(err)
	}}
}}
"#,
        Dialect::Go.text(address)
    )
}

fn rust(address: &str, tls: bool, request: &[(String, Value)]) -> String {
    let call = json(request);
    let mut hashes = "#".to_owned();
    while call.contains(&format!("\"{hashes}")) {
        hashes.push('#');
    }
    let imports = if tls { "env, error::Error, fs" } else { "env, error::Error" };
    let client = if tls {
        "let authority = fs::read(env::var(\"FARTHING_CA_FILE\")?)?;\n    \
         let client = reqwest::Client::builder()\n        \
         .tls_certs_only([reqwest::Certificate::from_pem(&authority)?])\n        .build()?;"
    } else {
        "let client = reqwest::Client::new();"
    };
    format!(
        r#"// Cargo.toml: reqwest = "0.13" and tokio = {{ version = "1", features = ["full"] }}
use std::{{{imports}}};

const CALL: &str = r{hashes}"{call}"{hashes};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {{
    {client}
    let answer = client
        .post({})
        .bearer_auth(env::var("CONSUMER_SECRET")?)
        .header("content-type", "application/json")
        .body(CALL)
        .send()
        .await?;
    println!("{{}} {{:?}} USDC charged", answer.status(), answer.headers().get("x-farthing-charged"));
    println!("{{}}", answer.text().await?);
    Ok(())
}}
"#,
        Dialect::Rust.text(address)
    )
}

fn kotlin(address: &str, tls: bool, request: &[(String, Value)]) -> String {
    // In a raw string only the dollar means something; three quotes in a row are not possible in JSON.
    let call = json(request).replace('$', "${'$'}");
    let (imports, client) = if tls {
        (
            "import java.io.File\nimport java.net.URI\nimport java.net.http.HttpClient\n\
             import java.net.http.HttpRequest\nimport java.net.http.HttpResponse\nimport java.security.KeyStore\n\
             import java.security.cert.CertificateFactory\nimport javax.net.ssl.SSLContext\n\
             import javax.net.ssl.TrustManagerFactory",
            "val authority = File(System.getenv(\"FARTHING_CA_FILE\")).inputStream().use {\n        \
             CertificateFactory.getInstance(\"X.509\").generateCertificate(it)\n    }\n    \
             val store = KeyStore.getInstance(KeyStore.getDefaultType())\n    store.load(null, null)\n    \
             store.setCertificateEntry(\"farthing\", authority)\n    \
             val trust = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm())\n    \
             trust.init(store)\n    val tls = SSLContext.getInstance(\"TLS\")\n    \
             tls.init(null, trust.trustManagers, null)\n    \
             val client = HttpClient.newBuilder().sslContext(tls).build()",
        )
    } else {
        (
            "import java.net.URI\nimport java.net.http.HttpClient\nimport java.net.http.HttpRequest\n\
             import java.net.http.HttpResponse",
            "val client = HttpClient.newHttpClient()",
        )
    };
    format!(
        r#"{imports}

val call = """{call}"""

fun main() {{
    {client}
    val request = HttpRequest.newBuilder(URI.create({}))
        .header("Authorization", "Bearer " + System.getenv("CONSUMER_SECRET"))
        .header("Content-Type", "application/json")
        .POST(HttpRequest.BodyPublishers.ofString(call))
        .build()
    val answer = client.send(request, HttpResponse.BodyHandlers.ofString())
    println("${{answer.statusCode()}} ${{answer.headers().firstValue("x-farthing-charged").orElse("")}} USDC charged")
    println(answer.body())
}}
"#,
        Dialect::Kotlin.text(address)
    )
}

#[cfg(test)]
mod tests;
