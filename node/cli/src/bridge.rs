//! `farthing bridge inspect`: what would become of an API before it is published.
//!
//! The document is read as a registration would read it; then one view of it is printed: the registration
//! report, the OpenAPI document, the request of one call, or many generated requests. No node, key, data folder
//! or money is needed.

pub(super) mod report;
mod request;

use std::time::Duration;

use clap::{Args, Subcommand};
use farthing_bridge::{Api, ApiError, document, limits::DOCUMENT_BYTES_MAX, openapi, share::share};
use farthing_control::types::ScalarFile;
use farthing_os::secret::SecretText;
use farthing_owner::intake::{self, Candidate, Intake, IntakeError, IntakeOptions, Source};
use url::Url;

use super::{
    Context,
    failure::{Exit, Failure},
    input,
};

#[derive(Debug, Subcommand)]
pub enum Bridge {
    /// Preview what an API would offer; needs no node and no money
    Inspect(Inspect),
}

/// As the documents' `version` parameter takes them, the usual one first.
pub(super) const OPENAPI_VERSIONS: [&str; 2] = ["3.1", "3.0"];

#[derive(Debug, Args)]
pub struct Inspect {
    /// File, - for standard input, or the URL of a document or of a server to search
    #[arg(value_name = "FILE|URL")]
    pub source: String,
    /// Treat the URL as a GraphQL endpoint or schema
    #[arg(long)]
    pub graphql: bool,
    /// Form of the values of a custom scalar; may be repeated
    #[arg(long = "scalar", value_name = "NAME=json|number|string", value_parser = scalar)]
    pub scalars: Vec<(String, ScalarFile)>,
    /// Header to send to the URL; @FILE reads the value from a file. May be repeated
    #[arg(short = 'H', long = "header", value_name = "NAME: VALUE", value_parser = input::header)]
    pub headers: Vec<(String, String)>,
    /// Time limit for all requests to the URL
    #[arg(long, value_name = "SECONDS", default_value = "30", value_parser = seconds)]
    pub timeout: Duration,

    /// Print the OpenAPI document that consumers get
    #[arg(long, value_name = "VERSION", num_args = 0..=1, require_equals = true, default_missing_value = "3.1",
          group = "view", value_parser = OPENAPI_VERSIONS)]
    pub openapi: Option<String>,
    /// Print the request that a call such as "GET /planets" would send
    #[arg(long, value_name = "METHOD PATH", group = "view")]
    pub operation: Option<String>,
    /// Parameter of the call; may be repeated
    #[arg(short, long = "param", value_name = "NAME=VALUE", value_parser = input::pair, requires = "operation")]
    pub params: Vec<(String, String)>,
    /// Body of the call as JSON, or @FILE
    #[arg(long, value_name = "JSON", requires = "operation")]
    pub body: Option<String>,
    /// Print this many generated requests over all operations, one JSON object per line
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
        .ok_or("write a number of seconds such as 30 or 0.5, at most 600")
}

pub(super) async fn bridge(context: &Context, verb: Bridge) -> Result<(), Failure> {
    match verb {
        Bridge::Inspect(arguments) => inspect(context, arguments).await,
    }
}

pub(super) async fn inspect(context: &Context, arguments: Inspect) -> Result<(), Failure> {
    let mut found = find(&arguments).await?;
    let scalars = arguments.scalars.iter().map(|(name, scalar)| (name.as_str(), scalar.form()));
    intake::override_scalars(&mut found.intake.reading, scalars).map_err(Failure::usage)?;
    found.tell_others(context);
    let FoundDescription { mut intake, candidates } = found;
    if let Some(version) = &arguments.openapi {
        return document(context, &intake, version);
    }
    if let Some(operation) = &arguments.operation {
        return request::show(context, intake, operation, arguments.params, arguments.body.as_deref());
    }
    if let Some(count) = arguments.queries {
        return request::generate(context, intake, count, arguments.seed);
    }
    // Whatever cannot be offered is found now and not at registration.
    let mut offered = intake.reading.description.clone();
    share(&mut offered);
    if let Err(error) = document::encode(&offered) {
        intake.reading.report.warnings.add("publishing", format!("not possible: {error}"));
    }
    Api::new(offered).map_err(|error| unusable(&error))?;
    report::show(context, &intake, &candidates)
}

/// The description that is inspected, and what else a search found.
struct FoundDescription {
    intake: Intake,
    candidates: Vec<Candidate>,
}

impl FoundDescription {
    /// Tells which of several descriptions was taken; says nothing about the only one.
    fn tell_others(&self, context: &Context) {
        if self.candidates.len() > 1 {
            let table = report::candidates(&self.candidates);
            context.output.prose(&format!(
                "Found {} descriptions; this report is about the first.\n{table}\n",
                self.candidates.len()
            ));
        }
    }
}

async fn find(arguments: &Inspect) -> Result<FoundDescription, Failure> {
    let options = IntakeOptions {
        headers: arguments.headers.iter().map(header).collect::<Result<_, _>>()?,
        each: IntakeOptions::default().each.min(arguments.timeout),
        total: arguments.timeout,
        ..IntakeOptions::default()
    };
    let Some(url) = url(&arguments.source)? else {
        let (bytes, name) = read(&arguments.source)?;
        let intake = intake::read(Source::Document { bytes: bytes.into(), name }, options).await?;
        return Ok(FoundDescription { intake, candidates: Vec::new() });
    };
    if arguments.graphql {
        let intake = intake::read(Source::GraphqlUrl(url), options).await?;
        return Ok(FoundDescription { intake, candidates: Vec::new() });
    }
    let scan = intake::scan(&url, &options).await?;
    match scan.candidates.first() {
        Some(best) => Ok(FoundDescription { intake: best.intake.clone(), candidates: scan.candidates }),
        None => Ok(FoundDescription { intake: scan.into_best()?.intake, candidates: Vec::new() }),
    }
}

/// `None` for what is a file.
fn url(source: &str) -> Result<Option<Url>, Failure> {
    if source.contains("://") { address(source).map(Some) } else { Ok(None) }
}

pub(super) fn address(text: &str) -> Result<Url, Failure> {
    Url::parse(text).map_err(|error| {
        Failure::usage(format!("{text} is not an address ({error})")).next("write it as http://host:port/")
    })
}

pub(super) fn header((name, value): &(String, String)) -> Result<(String, SecretText), Failure> {
    let value = input::value(value)?;
    Ok((name.clone(), SecretText::new(value.trim_end_matches(['\r', '\n']))))
}

/// A file or standard input, and what to call it.
fn read(source: &str) -> Result<(Vec<u8>, String), Failure> {
    let bytes = input::bytes(source.as_ref(), DOCUMENT_BYTES_MAX as u64 + 1)?;
    let name = if source == "-" { "standard input" } else { source }.to_owned();
    if bytes.len() > DOCUMENT_BYTES_MAX {
        let mebibytes = DOCUMENT_BYTES_MAX / 1024 / 1024;
        return Err(Failure::usage(format!("{name} is larger than the {mebibytes} MiB that are allowed"))
            .next("remove operations that you do not sell"));
    }
    Ok((bytes, name))
}

fn document(context: &Context, intake: &Intake, version: &str) -> Result<(), Failure> {
    let options = openapi::WriteOptions {
        version: if version == "3.0" { openapi::Version::V30 } else { openapi::Version::V31 },
        ..openapi::WriteOptions::default()
    };
    let document = openapi::write(&intake.reading.description, &options);
    context.output.data(&document, |document| format!("{document:#}"))
}

/// A description that the readers made and that breaks a rule of descriptions: nothing an owner can correct.
fn unusable(error: &ApiError) -> Failure {
    Failure::new(Exit::Failure, format!("the description cannot be offered: {error}"))
        .next("report it, with the description, as an error of this program")
}

impl From<IntakeError> for Failure {
    fn from(error: IntakeError) -> Self {
        let exit = match &error {
            IntakeError::Address(_) | IntakeError::Unreadable { .. } => Exit::Usage,
            IntakeError::Unreachable { .. } => Exit::Unreachable,
            error if error.wants_authentication() => Exit::Authentication,
            IntakeError::Status { .. }
            | IntakeError::Missed { .. }
            | IntakeError::Html { .. }
            | IntakeError::Silent { .. }
            | IntakeError::NothingFound { .. } => Exit::Upstream,
        };
        Self::new(exit, &error).next_step(error.next_step())
    }
}
