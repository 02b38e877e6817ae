//! `farthing bridge inspect`: what would become of an API before it is published.
//!
//! The document is read as a registration would read it; then one view of it is printed: the registration
//! report, the OpenAPI document, the request of one call, or many generated requests. No node, key, data folder
//! or money is needed.

pub(super) mod report;
mod request;

use farthing_bridge::{Api, ApiError, document, limits::DOCUMENT_BYTES_MAX, openapi, share::share};
use farthing_node::owner::intake::{self, Candidate, Intake, IntakeError, IntakeOptions, Source};
use farthing_os::secret::SecretText;
use url::Url;

use super::{
    Context,
    args::{self, Inspect},
    failure::{Exit, Failure},
    input,
};

pub(super) async fn bridge(context: &Context, verb: args::Bridge) -> Result<(), Failure> {
    match verb {
        args::Bridge::Inspect(arguments) => inspect(context, arguments).await,
    }
}

pub(super) async fn inspect(context: &Context, arguments: Inspect) -> Result<(), Failure> {
    let mut found = find(&arguments).await?;
    let scalars = arguments.scalars.iter().map(|(name, scalar)| (name.as_str(), scalar.form()));
    intake::override_scalars(&mut found.intake.reading, scalars).map_err(Failure::usage)?;
    found.tell_others(context);
    let Found { mut intake, candidates } = found;
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
        intake.reading.report.warnings.add("publishing", format!("not possible as it is: {error}"));
    }
    Api::new(offered).map_err(|error| unusable(&error))?;
    report::show(context, &intake, &candidates)
}

/// The description that is inspected, and what else a search found.
struct Found {
    intake: Intake,
    candidates: Vec<Candidate>,
}

impl Found {
    /// Tells which of several descriptions was taken; says nothing about the only one.
    fn tell_others(&self, context: &Context) {
        if self.candidates.len() > 1 {
            let table = report::candidates(&self.candidates);
            context.output.prose(&format!(
                "{} descriptions were found; this is about the first.\n{table}\n",
                self.candidates.len()
            ));
        }
    }
}

async fn find(arguments: &Inspect) -> Result<Found, Failure> {
    let options = IntakeOptions {
        headers: arguments.headers.iter().map(header).collect::<Result<_, _>>()?,
        each: IntakeOptions::default().each.min(arguments.timeout),
        total: arguments.timeout,
        ..IntakeOptions::default()
    };
    let Some(url) = url(&arguments.source)? else {
        let (bytes, name) = read(&arguments.source)?;
        let intake = intake::read(Source::Document { bytes: bytes.into(), name }, options).await?;
        return Ok(Found { intake, candidates: Vec::new() });
    };
    if arguments.graphql {
        let intake = intake::read(Source::GraphqlUrl(url), options).await?;
        return Ok(Found { intake, candidates: Vec::new() });
    }
    let scan = intake::scan(&url, &options).await?;
    match scan.candidates.first() {
        Some(best) => Ok(Found { intake: best.intake.clone(), candidates: scan.candidates }),
        None => Ok(Found { intake: scan.into_best()?.intake, candidates: Vec::new() }),
    }
}

/// `None` for what is a file.
fn url(source: &str) -> Result<Option<Url>, Failure> {
    if source.contains("://") { address(source).map(Some) } else { Ok(None) }
}

pub(super) fn address(text: &str) -> Result<Url, Failure> {
    Url::parse(text).map_err(|error| {
        Failure::usage(format!("{text} is no address ({error})")).next("write it as http://host:port/")
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
        return Err(Failure::usage(format!("{name} is larger than {mebibytes} MiB"))
            .next("leave out what is not sold"));
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
