//! Arguments of `farthing bridge inspect`.

use std::time::Duration;

use clap::Args;
use farthing_control::types::ScalarFile;

use super::{header, pair};

/// As the documents' `version` parameter takes them, the usual one first.
pub(super) const OPENAPI_VERSIONS: [&str; 2] = ["3.1", "3.0"];

#[derive(Debug, Args)]
pub struct Inspect {
    /// File, - for standard input, or URL of a document or of a server to be searched
    #[arg(value_name = "FILE|URL")]
    pub source: String,
    /// The URL is a GraphQL endpoint, or where a schema lies
    #[arg(long)]
    pub graphql: bool,
    /// Values of a custom scalar; may be repeated
    #[arg(long = "scalar", value_name = "NAME=json|number|string", value_parser = scalar)]
    pub scalars: Vec<(String, ScalarFile)>,
    /// Header sent to the URL, where a value @FILE is read from a file; may be repeated
    #[arg(short = 'H', long = "header", value_name = "NAME: VALUE", value_parser = header)]
    pub headers: Vec<(String, String)>,
    /// Time limit for all requests to the URL
    #[arg(long, value_name = "SECONDS", default_value = "30", value_parser = seconds)]
    pub timeout: Duration,

    /// Print the OpenAPI document that consumers get
    #[arg(long, value_name = "VERSION", num_args = 0..=1, require_equals = true, default_missing_value = "3.1",
          group = "view", value_parser = OPENAPI_VERSIONS)]
    pub openapi: Option<String>,
    /// Print what a call such as "GET /planets" would send
    #[arg(long, value_name = "METHOD PATH", group = "view")]
    pub operation: Option<String>,
    /// Parameter of the call; may be repeated
    #[arg(short, long = "param", value_name = "NAME=VALUE", value_parser = pair, requires = "operation")]
    pub params: Vec<(String, String)>,
    /// Body of the call as JSON, or @FILE
    #[arg(long, value_name = "JSON", requires = "operation")]
    pub body: Option<String>,
    /// Print this many generated requests over all operations, one JSON object a line
    #[arg(long, value_name = "NUMBER", group = "view", value_parser = clap::value_parser!(u32).range(..=1_000_000))]
    pub queries: Option<u32>,
    /// The same seed generates the same requests
    #[arg(long, value_name = "NUMBER", default_value_t = 0, requires = "queries")]
    pub seed: u64,
}

/// The form of a custom scalar's values, against the guess by its name.
pub(super) fn scalar(text: &str) -> Result<(String, ScalarFile), &'static str> {
    let (name, form) = text.split_once('=').ok_or("write NAME=json, NAME=number or NAME=string")?;
    let form = match form {
        "json" => ScalarFile::Json,
        "number" => ScalarFile::Number,
        "string" => ScalarFile::String,
        _ => return Err("the form of a scalar is json, number or string"),
    };
    Ok((name.to_owned(), form))
}

/// Seconds, with decimals: `0.5`.
fn seconds(text: &str) -> Result<Duration, &'static str> {
    let seconds = text.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    seconds
        .filter(|seconds| (1..=600_000).contains(&seconds.as_millis()))
        .ok_or("write seconds such as 30 or 0.5, 600 at most")
}
