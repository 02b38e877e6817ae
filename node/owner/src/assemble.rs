//! From what an owner brings — a file, a description, choices — to a service that can be published. Pure.
//!
//! In order: the operations come from the source, or from the file when there is none; those that are not
//! offered are dropped; parameters that the owner's node fills in disappear; names, texts and prices are put
//! together. Whatever is dropped is in the report, with the reason.

use farthing_bridge::{
    description::{
        ApiDescription, Body, Content, Method, Operation, Parameter, Place, Response, Schema, Status,
    },
    graphql,
    headers::answer_header_is_forbidden,
    nearest,
    report::{Reading, Report},
    share::share,
};
use farthing_control::types::{Charge, KindFile, OperationFile, ParameterFile, PlaceFile, ServiceFile};
use farthing_discovery::{documents, method_of};
use farthing_protocol::{
    call::ChargePolicy,
    limits::{self, CALL_DEADLINE_MS_MAX, LISTING_NAME_CHARS_MAX, LISTING_SUMMARY_CHARS_MAX},
    listing::OperationPrice,
    plain::Line,
};

use super::new_service::{NewService, NewServiceError, UpstreamSecrets};

/// Puts a service together. `reading` is what the file's source was read as.
pub fn assemble(file: ServiceFile, reading: Option<Reading>) -> Result<NewService, NewServiceError> {
    check_answers(&file)?;
    let secrets =
        UpstreamSecrets { headers: file.upstream_headers.clone(), query: file.upstream_query.clone() };
    let (mut api, mut report) = match reading {
        Some(reading) => {
            let (mut api, mut report) = (reading.description, reading.report);
            choose(&mut api, &mut report, &file)?;
            if secrets.is_empty() {
                for wanted in &reading.security {
                    let what = format!("requires {wanted}; add it with upstream_headers or upstream_query");
                    report.warnings.add("your server", what);
                }
            }
            (api, report)
        }
        None => (described_by(&file), Report { format: "service file".to_owned(), ..Report::default() }),
    };
    remove_secret_parameters(&mut api, &mut report, &secrets);
    set_timeouts(&mut api, &file)?;
    // Equal shapes are said once, and deep ones get names: both keep the description within its bounds.
    share(&mut api);
    report.bridged = api.operations.len();
    // A GraphQL schema has no title of its own, only one that was made up in reading it.
    let title = if api.graphql.is_some() { "" } else { &api.title };
    let name = first_of(&file.name, title, Line::Name, LISTING_NAME_CHARS_MAX);
    if name.is_empty() {
        let problem = format!(
            "is missing, and the source has no title; give the service a name of 1 to {LISTING_NAME_CHARS_MAX} \
             characters"
        );
        return Err(NewServiceError::new("name", problem));
    }
    let summary = first_of(&file.summary, &api.description, Line::Prose, LISTING_SUMMARY_CHARS_MAX);
    api.title.clone_from(&name);
    if !file.description.is_empty() {
        api.description.clone_from(&file.description);
    }
    let prices = prices(&api, &file);
    let service = NewService {
        id: file.id.map(|id| id.0),
        name,
        summary,
        category: file.category.trim().to_owned(),
        tags: file.tags.iter().map(|tag| tag.trim().to_owned()).collect(),
        upstream: file.upstream.clone(),
        upstream_is_named: true,
        secrets,
        secrets_are_all: false,
        price: file.price.0,
        charge_policy: match file.charge {
            Charge::Success => ChargePolicy::Success,
            Charge::Answered => ChargePolicy::Answered,
        },
        api,
        prices,
        file: remembered(file),
        report,
        samples: None,
    };
    service.check()?;
    Ok(service)
}

/// As long as anybody waits for a call.
const TIMEOUT_SECS_MAX: u64 = CALL_DEADLINE_MS_MAX / 1_000;

/// Checks what the file says of answers: names of headers that may be passed on, and media types.
fn check_answers(file: &ServiceFile) -> Result<(), NewServiceError> {
    for (i, name) in file.response_headers.iter().enumerate() {
        let is_plain =
            |name: &str| !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
        let name = name.trim();
        if !is_plain(name) || answer_header_is_forbidden(name) {
            let problem =
                "cannot be passed on: this header is for the connection, the browser or this network";
            return Err(NewServiceError::new(format!("response_headers[{i}]"), problem));
        }
    }
    if file.response_headers.len() > limits::HEADERS_MAX {
        let problem = format!("are more than {}; leave some out", limits::HEADERS_MAX);
        return Err(NewServiceError::new("response_headers", problem));
    }
    for (i, operation) in file.operations.iter().enumerate() {
        let is_type = |text: &String| text.trim().split('/').filter(|part| !part.is_empty()).count() == 2;
        if operation.answers.len() > ANSWERS_MAX || !operation.answers.iter().all(is_type) {
            let problem = format!("must be a list of media types such as text/html, at most {ANSWERS_MAX}");
            return Err(NewServiceError::new(format!("operations[{i}].answers"), problem));
        }
    }
    Ok(())
}

/// Media types that one operation of a file answers with: what a description keeps, too.
const ANSWERS_MAX: usize = 9;

/// Lists within lists that an owner may allow: the result's own, and one for each level that a caller may name.
const LISTS_MAX: u8 = 7;

/// Drops what the owner does not offer.
fn choose(api: &mut ApiDescription, report: &mut Report, file: &ServiceFile) -> Result<(), NewServiceError> {
    for (i, chosen) in file.operations.iter().enumerate() {
        if !api.operations.iter().any(|operation| is(operation, chosen)) {
            return Err(no_such_operation(api, chosen, i));
        }
        if !chosen.parameters.is_empty() || chosen.body || !chosen.answers.is_empty() {
            let problem = "come from the source; leave `parameters`, `body` and `answers` out here";
            return Err(NewServiceError::new(format!("operations[{i}]"), problem));
        }
        let is_graphql =
            api.operations.iter().any(|operation| is(operation, chosen) && operation.root.is_some());
        if chosen.lists.is_some_and(|lists| !is_graphql || !(1..=LISTS_MAX).contains(&lists)) {
            let problem =
                format!("is for GraphQL operations, a number from 1 to {LISTS_MAX}; leave it out for 2");
            return Err(NewServiceError::new(format!("operations[{i}].lists"), problem));
        }
    }
    let choice = |operation: &Operation| file.operations.iter().find(|chosen| is(operation, chosen));
    let before = api.operations.len();
    api.operations.retain_mut(|operation| {
        let place = format!("{} {}", operation.method, operation.path);
        if operation.method == Method::Get && documents::is_path(&operation.path) {
            report.skipped.add(place, "the path is that of the service's free document");
            return false;
        }
        match choice(operation) {
            Some(chosen) if chosen.exclude => report.skipped.add(place, "not offered, as the owner chose"),
            Some(chosen) => {
                operation.any_params |= chosen.any_params;
                if let (Some(root), Some(_)) = (&mut operation.root, chosen.lists) {
                    root.lists = chosen.lists;
                }
                return true;
            }
            None if !method_of(operation).is_safe() && !file.writes => report.skipped.add(
                place,
                "it writes data: name it (--include, or `operations` in a service file), or offer all with --writes",
            ),
            None => return true,
        }
        false
    });
    if api.operations.len() < before {
        graphql::prune(api);
    }
    if api.operations.is_empty() {
        let problem = "leave nothing to offer; exclude fewer, or name those that write";
        return Err(NewServiceError::new("operations", problem));
    }
    Ok(())
}

fn is(operation: &Operation, chosen: &OperationFile) -> bool {
    method_of(operation) == chosen.method.0 && operation.path == chosen.path
}

fn no_such_operation(api: &ApiDescription, chosen: &OperationFile, i: usize) -> NewServiceError {
    let names: Vec<String> =
        api.operations.iter().map(|operation| format!("{} {}", operation.method, operation.path)).collect();
    let wanted = format!("{} {}", chosen.method, chosen.path);
    let hint = match nearest(&wanted, names.iter().map(String::as_str)) {
        Some(name) => format!("did you mean {name}?"),
        None => "`farthing bridge inspect` lists the operations".to_owned(),
    };
    NewServiceError::new(
        format!("operations[{i}]"),
        format!("has {wanted}, which is not in the source; {hint}"),
    )
}

/// Removes the parameters that the owner's node fills in: they are no business of a caller's.
pub(super) fn remove_secret_parameters(
    api: &mut ApiDescription,
    report: &mut Report,
    secrets: &UpstreamSecrets,
) {
    for operation in &mut api.operations {
        let place = format!("{} {}", operation.method, operation.path);
        operation.parameters.retain(|parameter| {
            let secret = secrets.has(parameter.place, &parameter.name);
            if secret {
                report.repaired.add(&place, format!("`{}` is filled in by this node", parameter.name));
            }
            !secret
        });
    }
}

/// The owner's own words, which are refused elsewhere when they are no such line; or the first line of the
/// source's, made one: nobody wrote that for this place.
pub(super) fn first_of(own: &str, source: &str, line: Line, chars_max: usize) -> String {
    let own = own.trim();
    if !own.is_empty() {
        return own.to_owned();
    }
    // Signs that Markdown emphasises with are no part of a line.
    let unmarked = |text: &str| text.trim_start_matches(['#', ' ']).replace("**", "").replace('`', "");
    let lines = source.lines().map(|text| line.of(&unmarked(text)));
    let plain = lines.into_iter().find(|text| !text.is_empty()).unwrap_or_default();
    match plain.char_indices().nth(chars_max) {
        None => plain,
        Some(_) => plain.chars().take(chars_max - 1).chain(['…']).collect(),
    }
}

/// Notes how long an answer may take, where the owner says so: both nodes go by it.
fn set_timeouts(api: &mut ApiDescription, file: &ServiceFile) -> Result<(), NewServiceError> {
    let checked = |field: String, secs: Option<u16>| match secs {
        Some(secs) if !(1..=TIMEOUT_SECS_MAX).contains(&u64::from(secs)) => {
            let problem = format!(
                "must be 1 to {TIMEOUT_SECS_MAX} seconds but is {secs}; for a longer job, answer with an id that the \
                 caller can poll"
            );
            Err(NewServiceError::new(field, problem))
        }
        _ => Ok(()),
    };
    checked("timeout_secs".to_owned(), file.timeout_secs)?;
    for (i, chosen) in file.operations.iter().enumerate() {
        checked(format!("operations[{i}].timeout_secs"), chosen.timeout_secs)?;
    }
    for operation in &mut api.operations {
        let chosen = file.operations.iter().find(|chosen| is(operation, chosen));
        operation.timeout_secs = chosen.and_then(|chosen| chosen.timeout_secs).or(file.timeout_secs);
    }
    Ok(())
}

fn prices(api: &ApiDescription, file: &ServiceFile) -> Vec<OperationPrice> {
    let price_of = |operation: &Operation| {
        let chosen = file.operations.iter().find(|chosen| is(operation, chosen))?;
        let price = chosen.price?.0;
        Some(OperationPrice { method: method_of(operation), path: operation.path.clone(), price })
    };
    api.operations.iter().filter_map(price_of).collect()
}

/// The file without what must not, or need not, be remembered beside the service.
pub(super) fn remembered(mut file: ServiceFile) -> ServiceFile {
    file.upstream_headers.clear();
    file.upstream_query.clear();
    if let Some(source) = &mut file.source {
        source.text = None;
    }
    file
}

/// The API as a file without a source defines it.
fn described_by(file: &ServiceFile) -> ApiDescription {
    ApiDescription {
        title: file.name.clone(),
        description: file.description.clone(),
        operations: file.operations.iter().filter(|file| !file.exclude).map(operation).collect(),
        ..ApiDescription::default()
    }
}

fn operation(file: &OperationFile) -> Operation {
    Operation {
        method: Method::parse(file.method.0.as_str()).unwrap_or_default(),
        path: file.path.clone(),
        id: format!("{} {}", file.method, file.path),
        summary: file.summary.clone(),
        parameters: file.parameters.iter().map(parameter).collect(),
        body: file.body.then(Body::default),
        responses: answers(&file.answers).into_iter().collect(),
        any_params: file.any_params,
        ..Operation::default()
    }
}

/// The answer of an operation that names its media types, of which nothing more is said.
fn answers(media_types: &[String]) -> Option<Response> {
    let mut media_types = media_types.iter().map(|media_type| media_type.trim().to_ascii_lowercase());
    let content =
        Content { media_type: media_types.next()?, also: media_types.collect(), ..Content::default() };
    Some(Response { status: Status::Default, description: String::new(), content: Some(content) })
}

fn parameter(file: &ParameterFile) -> Parameter {
    let mut schema = match file.kind {
        KindFile::Text => Schema::string(),
        KindFile::Integer => Schema::integer(),
        KindFile::Number => Schema::number(),
        KindFile::Boolean => Schema::boolean(),
    };
    schema.choices = file.choices.iter().map(|choice| typed(file.kind, choice)).collect();
    Parameter {
        name: file.name.clone(),
        place: match file.place {
            PlaceFile::Query => Place::Query,
            PlaceFile::Path => Place::Path,
            PlaceFile::Header => Place::Header,
        },
        required: file.required,
        schema,
        description: file.description.clone(),
        example: file.example.as_ref().map(|example| typed(file.kind, example)),
        ..Parameter::default()
    }
}

/// A file writes values as texts, whatever the parameter's type.
fn typed(kind: KindFile, text: &str) -> serde_json::Value {
    match kind {
        KindFile::Text => text.into(),
        _ => serde_json::from_str(text).unwrap_or_else(|_| text.into()),
    }
}

#[cfg(test)]
mod tests {
    use farthing_bridge::read;
    use farthing_protocol::{Usdc, call::Method as Called};

    use super::*;

    const SCHEMA: &str = "type Query { a(key: String): Int b: Int } type Mutation { c: Int d: Int }";

    fn file() -> ServiceFile {
        let upstream = "http://127.0.0.1:9".to_owned();
        ServiceFile { name: "Test".to_owned(), upstream, ..ServiceFile::priced(Usdc::from_micros(2_000)) }
    }

    fn paths(service: &NewService) -> Vec<&str> {
        service.api.operations.iter().map(|operation| operation.path.as_str()).collect()
    }

    fn bridged(file: ServiceFile) -> Result<NewService, NewServiceError> {
        assemble(file, Some(read(SCHEMA.as_bytes()).unwrap()))
    }

    #[test]
    fn what_writes_is_offered_when_named_or_all_together() {
        assert_eq!(paths(&bridged(file()).unwrap()), ["/a", "/b"]);
        let all = ServiceFile { writes: true, ..file() };
        assert_eq!(paths(&bridged(all).unwrap()), ["/a", "/b", "/c", "/d"]);
        let operations = vec![OperationFile::named(Called::Post, "/c".to_owned())];
        let service = bridged(ServiceFile { operations, ..file() }).unwrap();
        assert_eq!(paths(&service), ["/a", "/b", "/c"]);
        assert_eq!((service.report.bridged, service.report.skipped.count()), (3, 1));
    }

    #[test]
    fn choices_exclude_price_and_must_exist() {
        let named = |path: &str| OperationFile::named(Called::Get, path.to_owned());
        let price = Some(Usdc::from_micros(7).into());
        let operations =
            vec![OperationFile { exclude: true, ..named("/b") }, OperationFile { price, ..named("/a") }];
        let service = bridged(ServiceFile { operations, ..file() }).unwrap();
        assert_eq!(paths(&service), ["/a"]);
        assert_eq!(service.prices[0].price, Usdc::from_micros(7));
        let operations = vec![named("/a"), named("/bb")];
        let error = bridged(ServiceFile { operations, ..file() }).unwrap_err().to_string();
        assert!(error.contains("operations[1]") && error.contains("did you mean GET /b?"), "{error}");
        let operations = ["/a", "/b"].map(|path| OperationFile { exclude: true, ..named(path) }).into();
        assert_eq!(bridged(ServiceFile { operations, ..file() }).unwrap_err().field, "operations");
    }

    #[test]
    fn lists_within_lists_are_the_owners_choice() {
        let read = |operations: Vec<OperationFile>| {
            const SCHEMA: &str = "type Query { a: [A] } type A { name: String a: [A] }";
            assemble(ServiceFile { operations, ..file() }, Some(read(SCHEMA.as_bytes()).unwrap()))
        };
        let of = |lists| {
            vec![OperationFile { lists: Some(lists), ..OperationFile::named(Called::Get, "/a".to_owned()) }]
        };
        let told = read(Vec::new()).unwrap().report.warnings;
        assert!(told.list.iter().any(|finding| finding.what.contains("2 nested lists")), "{told:?}");
        assert_eq!(read(of(4)).unwrap().api.operations[0].root.as_ref().unwrap().lists_max(), 4);
        for lists in [0, 8] {
            let error = read(of(lists)).unwrap_err().to_string();
            assert!(error.contains("operations[0].lists") && error.contains("from 1 to 7"), "{error}");
        }
    }

    #[test]
    fn an_operations_time_is_its_own_or_the_services_and_300_seconds_at_most() {
        let named = |path: &str| OperationFile::named(Called::Get, path.to_owned());
        let read = |service, operation| {
            let operations = vec![OperationFile { timeout_secs: operation, ..named("/a") }];
            bridged(ServiceFile { timeout_secs: service, operations, ..file() })
        };
        let times = |service: &NewService| -> Vec<_> {
            service.api.operations.iter().map(|operation| operation.timeout_secs).collect()
        };
        assert_eq!(times(&read(None, None).unwrap()), [None, None]);
        assert_eq!(times(&read(Some(60), Some(300)).unwrap()), [Some(300), Some(60)]);
        assert_eq!(times(&read(None, Some(1)).unwrap()), [Some(1), None]);
        for secs in [0, 301] {
            assert_eq!(read(Some(secs), None).unwrap_err().field, "timeout_secs");
            let error = read(None, Some(secs)).unwrap_err().to_string();
            assert!(error.contains("operations[0].timeout_secs") && error.contains("1 to 300"), "{error}");
        }
    }

    #[test]
    fn what_the_owners_node_fills_in_is_offered_to_nobody_and_not_remembered() {
        let mut file = file();
        file.upstream_query.insert("KEY".to_owned(), "secret".to_owned());
        let service = bridged(file).unwrap();
        let a = &service.api.operations[0];
        assert!(a.parameters.iter().all(|parameter| parameter.name != "key"), "{a:?}");
        assert_eq!(service.report.repaired.count(), 1);
        assert!(service.file.upstream_query.is_empty());
        assert_eq!(service.secrets.query["KEY"], "secret");
    }

    #[test]
    fn names_and_summaries_are_the_owners_or_the_sources_first_line() {
        let nameless = ServiceFile { name: String::new(), ..file() };
        assert_eq!(bridged(nameless).unwrap_err().field, "name");
        let first = |own: &str, source: &str| first_of(own, source, Line::Name, 80);
        assert_eq!(first("own", "other"), "own");
        assert_eq!(first(" own\u{a0}", "other"), "own", "blanks around it are no part of it");
        assert_eq!(first("", "\n# Weather\nof *today*"), "Weather");
        assert_eq!(first("", "\u{200b}\n\u{26a1}\u{fe0f} Weather\u{a0}"), "\u{26a1} Weather");
        assert_eq!(first("", &"ä".repeat(80)), "ä".repeat(80));
        assert_eq!(first("", &"ä".repeat(81)), "ä".repeat(79) + "…");
    }

    #[test]
    fn a_service_without_a_name_is_told_what_a_name_is() {
        let operations = vec![OperationFile::named(Called::Get, "/a".to_owned())];
        for name in ["", " ", "\u{a0}"] {
            let nameless = ServiceFile { name: name.to_owned(), operations: operations.clone(), ..file() };
            let error = assemble(nameless, None).unwrap_err();
            assert_eq!(error.field, "name");
            assert!(error.problem.contains("1 to 80 characters"), "{error}");
        }
    }

    #[test]
    fn every_mistake_names_its_field() {
        let named = |path: &str| OperationFile::named(Called::Get, path.to_owned());
        let service = |operations| assemble(ServiceFile { operations, ..file() }, None);
        assert!(service(vec![named("/a"), named("/b")]).is_ok());
        assert_eq!(service(vec![]).unwrap_err().field, "operations");
        assert_eq!(service(vec![named("a")]).unwrap_err().field, "operations[0].path");
        let upstream = String::new();
        let nowhere = assemble(ServiceFile { upstream, operations: vec![named("/a")], ..file() }, None);
        assert_eq!(nowhere.unwrap_err().field, "upstream");
    }
}
