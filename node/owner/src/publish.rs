//! From a service file to something that can be published: its source is read, then put together.

use farthing_bridge::{description::Operation, report::Reading};
use farthing_control::types::{
    EditRequest, OperationFile, OperationName, SamplesFile, ServiceFile, SourceFile, SourceKind,
};
use farthing_discovery::method_of;
use farthing_os::secret::SecretText;
use farthing_protocol::{ServiceId, call::Method};
use farthing_shared::blocking::run_blocking;
use url::Url;

use super::{
    assemble::assemble,
    doubts::note_doubts,
    edit::{apply, edited},
    intake::{self, IntakeError, IntakeOptions, Kind, ScalarError, Source, override_scalars},
    new_service::{NewService, NewServiceError, same_origin},
    registry::Registered,
    samples,
    upstream::{Upstream, UpstreamError, UpstreamOptions},
};

/// An error that keeps a service file from being published.
#[derive(Debug, thiserror::Error)]
pub enum PublishError {
    #[error(transparent)]
    Intake(#[from] IntakeError),
    #[error("`scalars`: {0}")]
    Scalar(#[from] ScalarError),
    #[error(transparent)]
    Service(#[from] NewServiceError),
    #[error("upstream: {0}")]
    Upstream(#[from] UpstreamError),
    #[error("the service {0} was not registered from a source; publish it again with `farthing api add`")]
    NoSource(ServiceId),
}

impl PublishError {
    /// Returns the step to take next, where there is one.
    pub fn next_step(&self) -> Option<&'static str> {
        if let Self::Intake(error) = self { error.next_step() } else { None }
    }
}

/// The options of the node that reading needs.
#[derive(Debug, Clone)]
pub struct Reader {
    pub intake: IntakeOptions,
    pub upstream: UpstreamOptions,
}

impl Reader {
    /// Reads the file's source, if it names one, and puts the service together.
    pub async fn read(&self, mut file: ServiceFile) -> Result<NewService, PublishError> {
        let reading = self.reading(&mut file).await?;
        self.assemble(file, reading).await
    }

    /// Reads the source of a registered service again, or `source` instead of it, with today's choices.
    ///
    /// # Errors
    /// [`PublishError`] as [`Reader::read`], and for a service that has no source.
    pub async fn read_again(
        &self,
        service: &Registered,
        source: Option<SourceFile>,
    ) -> Result<NewService, PublishError> {
        let file = choices_of(service).ok_or(PublishError::NoSource(service.listing().service))?;
        let new = self.read_choices(service, file, source).await?;
        Ok(NewService { upstream_is_named: false, ..new })
    }

    /// The service with what its owner changes. Its source is read again only to offer what was hidden.
    ///
    /// # Errors
    /// [`PublishError`], saying what cannot be changed; `source` is needed where it was a file.
    pub async fn edit(
        &self,
        service: &Registered,
        edit: &EditRequest,
        source: Option<SourceFile>,
    ) -> Result<NewService, PublishError> {
        let mut file = choices_of(service).ok_or(PublishError::NoSource(service.listing().service))?;
        apply(edit, &mut file)?;
        if edit.offer.is_empty() {
            return Ok(edited(service, file, edit)?);
        }
        let new = if file.source.is_none() {
            // Its operations were written by hand, and are all in the file.
            self.assemble(file, None).await?
        } else {
            self.read_choices(service, file, source).await?
        };
        for OperationName { method, path } in &edit.offer {
            let is_it = |operation: &Operation| method_of(operation) == method.0 && operation.path == *path;
            if !new.api.operations.iter().any(is_it) {
                let problem = format!("has {method} {path}, which is not in the source");
                return Err(NewServiceError::new("offer", problem).into());
            }
        }
        Ok(NewService { secrets_are_all: true, upstream_is_named: edit.upstream.is_some(), ..new })
    }

    async fn read_choices(
        &self,
        service: &Registered,
        mut file: ServiceFile,
        source: Option<SourceFile>,
    ) -> Result<NewService, PublishError> {
        if let Some(newer) = source {
            // What kind of API it is was settled at registration; the caller only says where the newer one is.
            file.source = Some(SourceFile { kind: source_kind(service.listing().kind), ..newer });
        }
        let reading = self.reading(&mut file).await?;
        let Some(reading) = reading else {
            return Err(PublishError::NoSource(service.listing().service));
        };
        // An operation that has gone is what the caller wants to hear of, and no mistake in the choices.
        let has = |chosen: &OperationFile| {
            let mut operations = reading.description.operations.iter();
            operations
                .any(|operation| method_of(operation) == chosen.method.0 && operation.path == chosen.path)
        };
        file.operations.retain(has);
        self.assemble(file, Some(reading)).await
    }

    async fn reading(&self, file: &mut ServiceFile) -> Result<Option<Reading>, PublishError> {
        let Some(source) = &file.source else { return Ok(None) };
        let mut options = self.intake.clone();
        // The keys of the upstream read its description, and that of no other server.
        let is_upstreams = |url: &String| file.upstream.is_empty() || same_origin(url, &file.upstream);
        if source.url.as_ref().is_some_and(is_upstreams) {
            let header = |(name, value): (&String, &String)| (name.clone(), SecretText::new(value));
            options.headers = file.upstream_headers.iter().map(header).collect();
        }
        let kind = source.kind;
        let found = intake::read(source_of(source)?, options).await?;
        match (kind, found.kind()) {
            (SourceKind::Openapi, Kind::Graphql) => {
                return Err(NewServiceError::new("source", "is a GraphQL schema; use --graphql").into());
            }
            (SourceKind::Graphql, Kind::Rest) => {
                return Err(NewServiceError::new("source", "is an OpenAPI document; use --openapi").into());
            }
            _ => {}
        }
        if file.upstream.is_empty()
            && let Some(upstream) = found.upstream()
        {
            file.upstream = upstream.to_string();
        }
        let mut reading = found.reading;
        let scalars = file.scalars.iter().map(|(name, form)| (name.as_str(), form.form()));
        override_scalars(&mut reading, scalars)?;
        Ok(Some(reading))
    }

    async fn assemble(
        &self,
        file: ServiceFile,
        reading: Option<Reading>,
    ) -> Result<NewService, PublishError> {
        let wanted = file.samples;
        let mut service = assemble(file, reading)?;
        note_doubts(&service.api, &self.upstream, &mut service.report);
        service.samples = match wanted {
            SamplesFile::None => None,
            SamplesFile::Described => {
                let api = service.api.clone();
                run_blocking(move || samples::described(&api)).await
            }
            SamplesFile::Recorded => {
                let options = self.upstream.clone();
                let upstream = Upstream::new(&service.upstream, service.secrets.clone(), options)?;
                samples::recorded(&service.api, &upstream).await
            }
        };
        Ok(service)
    }
}

/// Returns the kind of source that a service of this kind is read from.
pub(super) const fn source_kind(kind: Kind) -> SourceKind {
    match kind {
        Kind::Rest => SourceKind::Openapi,
        Kind::Graphql => SourceKind::Graphql,
    }
}

/// Builds the file that would register the service today, with the prices and secrets it has now.
fn choices_of(service: &Registered) -> Option<ServiceFile> {
    let listing = service.listing();
    let mut file = service.file()?;
    let secrets = service.secrets();
    (file.upstream_headers, file.upstream_query) = (secrets.headers, secrets.query);
    service.upstream_url().clone_into(&mut file.upstream);
    file.id = Some(listing.service.into());
    file.price = listing.price.into();
    name_what_writes(&mut file, service.known().operations().map(|(operation, _)| operation));
    for own in &service.known().details().prices {
        choice(&mut file, own.method, &own.path).price = Some(own.price.into());
    }
    Some(file)
}

/// Names the offered operations that write: a service that offered them without a name goes on doing so.
fn name_what_writes<'o>(file: &mut ServiceFile, offered: impl Iterator<Item = &'o Operation>) {
    for operation in offered {
        let method = method_of(operation);
        if !method.is_safe() {
            choice(file, method, &operation.path);
        }
    }
}

/// The file's word on an operation, a new one when there is none.
fn choice<'f>(file: &'f mut ServiceFile, method: Method, path: &str) -> &'f mut OperationFile {
    let is_it = |chosen: &OperationFile| chosen.method.0 == method && chosen.path == path;
    let index = file.operations.iter().position(is_it).unwrap_or_else(|| {
        file.operations.push(OperationFile::named(method, path.to_owned()));
        file.operations.len() - 1
    });
    &mut file.operations[index]
}

pub(super) fn source_of(source: &SourceFile) -> Result<Source, NewServiceError> {
    let address = |text: &str| {
        Url::parse(text).map_err(|error| {
            let problem =
                format!("is `{text}`, which is not an address ({error}); write it as http://host:port/");
            NewServiceError::new("source.url", problem)
        })
    };
    match (source.kind, &source.url, &source.text) {
        (SourceKind::Scan, Some(url), None) => Ok(Source::ScanUrl(address(url)?)),
        (SourceKind::Openapi, Some(url), None) => Ok(Source::OpenApiUrl(address(url)?)),
        (SourceKind::Graphql, Some(url), None) => Ok(Source::GraphqlUrl(address(url)?)),
        (SourceKind::Openapi | SourceKind::Graphql, None, Some(text)) => {
            let name = if source.file.is_empty() { "the source" } else { &source.file };
            Ok(Source::Document { name: name.to_owned(), bytes: text.clone().into() })
        }
        (_, None, None) if !source.file.is_empty() => {
            let problem = format!("was the file {}; name it or a newer version with --source", source.file);
            Err(NewServiceError::new("source", problem))
        }
        _ => Err(NewServiceError::new("source", "needs either `url` or `text`, and a scan needs `url`")),
    }
}

#[cfg(test)]
mod tests {
    use farthing_bridge::read;
    use farthing_protocol::Usdc;

    use super::*;

    #[test]
    fn a_service_that_offered_what_writes_before_it_had_to_be_named_goes_on_doing_so() {
        const SOURCE: &str = r#"{"openapi":"3.1.0","info":{"title":"Things","version":"1"},"paths":{"/things":{
            "get":{"responses":{"200":{"description":"All"}}},
            "post":{"responses":{"201":{"description":"Made"}}}}}}"#;
        let upstream = "http://127.0.0.1:9".to_owned();
        let mut file = ServiceFile { upstream, ..ServiceFile::priced(Usdc::from_micros(2_000)) };
        let published = read(SOURCE.as_bytes()).unwrap().description;
        let offers = |file: &ServiceFile| {
            let reading = read(SOURCE.as_bytes()).unwrap();
            assemble(file.clone(), Some(reading)).unwrap().api.operations.len()
        };
        assert_eq!(offers(&file), 1);
        name_what_writes(&mut file, published.operations.iter());
        assert_eq!(offers(&file), 2);
        name_what_writes(&mut file, published.operations.iter());
        assert_eq!(file.operations.len(), 1, "each is named once, and what reads is not");
    }
}
