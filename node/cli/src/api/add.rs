//! `farthing api add`: from flags and files to a service file, which is what the node takes.

use std::{
    collections::BTreeMap,
    io::{self, IsTerminal, Write},
    path::{Component, Path, PathBuf},
};

use clap::Args;
use farthing_control::types::{
    Charge, OperationFile, SamplesFile, ScalarFile, ServiceFile, SourceFile, SourceKind,
};
use farthing_owner::{
    inspect::found_source,
    intake::{self, IntakeOptions},
};
use farthing_protocol::{ServiceId, Usdc};

use crate::{
    Context,
    bridge::{address, header, report::candidates, scalar},
    failure::{Exit, Failure},
    input,
};

/// Publish a service: from an API description, a running server, or a service file
///
/// With a description, operations that only read (GET and HEAD) are offered. Operations that write, such as POST and
/// GraphQL mutations, are offered if you name them or use --writes. Before anything is published, you see the service
/// and your server's answer to a first call, and you are asked to confirm. --dry-run stops there.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Add {
    /// A service file, TOML or JSON (- for standard input)
    #[arg(long = "from", value_name = "FILE", group = "what")]
    pub from: Option<PathBuf>,
    /// The same
    #[arg(value_name = "FILE", group = "what", hide = true)]
    pub file: Option<PathBuf>,
    /// An OpenAPI 3.0 or 3.1 or Swagger 2.0 document, JSON or YAML
    #[arg(long, value_name = "FILE|URL", group = "what")]
    pub openapi: Option<String>,
    /// A GraphQL schema, an introspection result, or a server that answers introspection
    #[arg(long, value_name = "FILE|URL", group = "what")]
    pub graphql: Option<String>,
    /// A running server; the node looks for its description
    #[arg(long, value_name = "URL", group = "what")]
    pub scan: Option<String>,
    /// Number of the description to use if a scan finds several
    #[arg(long, value_name = "NUMBER", requires = "scan")]
    pub pick: Option<usize>,

    /// Price in USDC of every operation without its own price; 0 is free
    #[arg(long, value_name = "USDC", allow_negative_numbers = true)]
    pub price: Option<Usdc>,
    #[command(flatten)]
    pub said: ListingFlags,

    /// Price of one operation, such as "GET /planets=0.005". May be repeated
    #[arg(long = "operation-price", value_name = "METHOD PATH=USDC")]
    pub operation_prices: Vec<String>,
    /// Do not offer an operation, such as "DELETE /users/{id}". May be repeated
    #[arg(long = "exclude", value_name = "METHOD PATH")]
    pub exclude: Vec<String>,
    /// Offer an operation that writes, such as "POST /orders". May be repeated
    #[arg(long = "include", value_name = "METHOD PATH")]
    pub include: Vec<String>,
    /// Offer all operations that write
    #[arg(long, visible_alias = "mutations")]
    pub writes: bool,
    /// How to read values of a custom scalar: NAME=json, NAME=number or NAME=string. May be repeated
    #[arg(long = "scalar", value_name = "NAME=FORM", value_parser = scalar)]
    pub scalars: Vec<(String, ScalarFile)>,
    /// Another header of your server's answers to pass on to callers, such as x-cost. May be repeated
    #[arg(long = "response-header", value_name = "NAME")]
    pub response_headers: Vec<String>,
    /// Free sample answers: from the description, recorded from your server now, or none
    #[arg(long, value_enum)]
    pub samples: Option<SamplesFile>,
    /// Seconds that an answer may take, 1 to 300; consumers wait this long. By default your node's limits apply, 30 s
    /// at most
    #[arg(long = "timeout-secs", value_name = "SECONDS")]
    pub timeout_secs: Option<u16>,

    /// Show what would be published and call your server once, but publish nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Do not ask before publishing
    #[arg(long)]
    pub yes: bool,
    /// Replace the service of this id with a new version
    #[arg(long, value_name = "SERVICE")]
    pub id: Option<ServiceId>,
}

/// What an owner says of a service, when it is published and when it is changed.
#[derive(Debug, Args)]
pub struct ListingFlags {
    /// Which answers are charged
    #[arg(long, value_enum)]
    pub charge: Option<Charge>,
    /// Name of the service; by default the description's title. A GraphQL schema has no title, so it needs a name
    #[arg(long)]
    pub name: Option<String>,
    /// One line
    #[arg(long)]
    pub summary: Option<String>,
    /// Markdown, or @FILE
    #[arg(long, value_name = "TEXT|@FILE")]
    pub description: Option<String>,
    /// Category, one or two words such as Weather; consumers can filter their search by it
    #[arg(long)]
    pub category: Option<String>,
    /// Tag; may be repeated. Replaces all current tags of a service
    #[arg(long = "tag", value_name = "TAG")]
    pub tags: Vec<String>,
    /// Address of your own server; for GraphQL, the endpoint itself
    #[arg(long, value_name = "URL")]
    pub upstream: Option<String>,
    /// Header sent to your server with every call, such as an API key; @FILE reads the value from a file, which keeps
    /// it out of the shell's history. Never published. May be repeated; replaces all current ones of a service
    #[arg(long = "upstream-header", value_name = "NAME: VALUE", value_parser = input::header)]
    pub upstream_headers: Vec<(String, String)>,
    /// The same as a query parameter
    #[arg(long = "upstream-query", value_name = "NAME=VALUE", value_parser = input::pair)]
    pub upstream_query: Vec<(String, String)>,
}

const EXAMPLES: &str = "Examples:\n  \
    farthing api add --openapi openapi.yaml --price 0.002\n  \
    farthing api add --graphql http://127.0.0.1:4002/graphql --name Exoplanets --price 0.003\n  \
    farthing api add --scan http://127.0.0.1:8080 --price 0.001 --include \"POST /orders\"\n  \
    farthing api add --from service.toml";

/// The service that `add` describes.
pub(super) async fn service_file(context: &Context, add: Add) -> Result<ServiceFile, Failure> {
    let mut file = match (add.from.as_deref().or(add.file.as_deref()), source(context, &add).await?) {
        (Some(path), None) => read(path)?,
        (None, Some((source, upstream))) => ServiceFile { upstream, ..described(source, &add)? },
        _ => {
            return Err(Failure::usage(
                "name what to publish: --openapi, --graphql or --scan with a file or URL, or --from with a service \
                 file",
            )
            .next("`farthing api add --help` has examples"));
        }
    };
    amend(&mut file, add)?;
    Ok(file)
}

/// Returns the source that describes the API, and its server where that is known already; `None` when a service file
/// describes it.
async fn source(context: &Context, add: &Add) -> Result<Option<(SourceFile, String)>, Failure> {
    Ok(match (&add.openapi, &add.graphql, &add.scan) {
        (Some(place), _, _) => Some((source_at(place, SourceKind::Openapi)?, String::new())),
        (_, Some(place), _) => Some((source_at(place, SourceKind::Graphql)?, String::new())),
        (_, _, Some(url)) => Some(scan(context, url, add).await?),
        _ => None,
    })
}

/// A URL, which the node fetches, or a file, which is read here.
pub(super) fn source_at(place: &str, kind: SourceKind) -> Result<SourceFile, Failure> {
    if is_url(place) {
        return Ok(SourceFile::at(kind, place.to_owned()));
    }
    let (text, file) = if place == "-" {
        (io::read_to_string(io::stdin()), String::new())
    } else {
        (std::fs::read_to_string(place), place.to_owned())
    };
    let text = text.map_err(|error| {
        input::unreadable(place, &error).next("check the path, or give a URL with http://")
    })?;
    Ok(SourceFile::given(kind, text, file))
}

fn is_url(place: &str) -> bool {
    place.starts_with("http://") || place.starts_with("https://")
}

/// Looks for descriptions, shows them, and picks one: the named one, the only one, or the one a person chooses.
async fn scan(context: &Context, url: &str, add: &Add) -> Result<(SourceFile, String), Failure> {
    let address = address(url)?;
    let headers = add.said.upstream_headers.iter().map(header).collect::<Result<_, _>>()?;
    let options = IntakeOptions { headers, ..IntakeOptions::default() };
    context.output.prose(&format!("Looking for a description at {url} …"));
    let found = intake::scan(&address, &options).await?;
    let count = found.candidates.len();
    if count == 0 {
        found.into_best()?;
        return Err(Failure::new(Exit::Failure, "nothing was found"));
    }
    context.output.prose(&candidates(&found.candidates));
    let number = match add.pick {
        Some(number) => number,
        None if count == 1 => 1,
        None => ask(count)?,
    };
    let candidate = number.checked_sub(1).and_then(|index| found.candidates.get(index));
    let candidate = candidate
        .ok_or_else(|| Failure::usage(format!("there is no description {number}, only 1 to {count}")))?;
    let intake = &candidate.intake;
    // Another server's is read from the document, which is then read without the keys of the upstream.
    let here = intake.upstream().filter(|upstream| upstream.origin() == address.origin());
    if add.said.upstream.is_none()
        && let Some(here) = here
        && let Some(named) = intake.upstreams.iter().find(|named| named.origin() != here.origin())
    {
        context.output.prose(&format!(
            "Calls go to {here}, where the description was found. The description names {named}; choose another server \
             with --upstream URL."
        ));
    }
    Ok((found_source(intake), here.map(ToString::to_string).unwrap_or_default()))
}

fn ask(count: usize) -> Result<usize, Failure> {
    if !io::stdin().is_terminal() {
        return Err(Failure::usage("several descriptions were found").next("choose one with --pick NUMBER"));
    }
    let _ = write!(io::stderr(), "Which one? [1-{count}] ");
    let mut answer = String::new();
    io::stdin().read_line(&mut answer).map_err(|error| Failure::new(Exit::Failure, error))?;
    answer.trim().parse().map_err(|_| Failure::usage(format!("answer with a number from 1 to {count}")))
}

/// The smallest file for a source.
fn described(source: SourceFile, add: &Add) -> Result<ServiceFile, Failure> {
    let price = add.price.ok_or_else(|| {
        Failure::usage("--price is missing")
            .next("give the price of a call in USDC, such as --price 0.002; 0 is free")
    })?;
    Ok(ServiceFile { source: Some(source), ..ServiceFile::priced(price) })
}

/// Flags win over the file.
fn amend(file: &mut ServiceFile, add: Add) -> Result<(), Failure> {
    let said = add.said;
    if let Some(id) = add.id {
        file.id = Some(id.into());
    }
    if let Some(price) = add.price {
        file.price = price.into();
    }
    if let Some(charge) = said.charge {
        file.charge = charge;
    }
    if let Some(samples) = add.samples {
        file.samples = samples;
    }
    file.timeout_secs = add.timeout_secs.or(file.timeout_secs);
    if said.name.as_ref().is_some_and(|name| name.trim().is_empty()) {
        return Err(Failure::usage("--name is empty").next(
            "give the service a name of 1 to 80 characters, or leave --name out to take the description's title",
        ));
    }
    for (field, flag) in [
        (&mut file.name, said.name),
        (&mut file.summary, said.summary),
        (&mut file.category, said.category),
        (&mut file.upstream, said.upstream),
    ] {
        if let Some(flag) = flag {
            *field = flag;
        }
    }
    if let Some(description) = said.description {
        file.description = input::value(&description)?;
    }
    if !said.tags.is_empty() {
        file.tags = said.tags;
    }
    file.upstream_headers.extend(secrets(said.upstream_headers)?);
    file.upstream_query.extend(secrets(said.upstream_query)?);
    file.response_headers.extend(add.response_headers);
    file.writes |= add.writes;
    file.scalars.extend(add.scalars);
    for text in &add.operation_prices {
        let wrong = || {
            Failure::usage(format!("`{text}` is not the price of an operation"))
                .next("write \"GET /planets=0.005\"")
        };
        let (name, price) = text.rsplit_once('=').ok_or_else(wrong)?;
        let price = price.trim().parse().map_err(|error| Failure::usage(format!("{text}: {error}")))?;
        choice(file, name)?.price = Some(price);
    }
    for name in &add.include {
        choice(file, name)?;
    }
    for name in &add.exclude {
        choice(file, name)?.exclude = true;
    }
    Ok(())
}

/// The file's word on an operation, a new one when there is none.
fn choice<'a>(file: &'a mut ServiceFile, name: &str) -> Result<&'a mut OperationFile, Failure> {
    let name = super::operation_name(name)?;
    let known = file
        .operations
        .iter()
        .position(|operation| operation.method == name.method && operation.path == name.path);
    let index = known.unwrap_or_else(|| {
        file.operations.push(OperationFile::named(name.method.0, name.path));
        file.operations.len() - 1
    });
    Ok(&mut file.operations[index])
}

pub(super) fn secrets(pairs: Vec<(String, String)>) -> Result<BTreeMap<String, String>, Failure> {
    pairs.into_iter().map(|(name, value)| Ok((name, input::value(&value)?.trim_end().to_owned()))).collect()
}

/// A service file is TOML, or JSON when its name says so.
fn read(file: &Path) -> Result<ServiceFile, Failure> {
    let shown = file.display();
    let text =
        if file == Path::new("-") { io::read_to_string(io::stdin()) } else { std::fs::read_to_string(file) };
    let text = text.map_err(|error| input::unreadable(&shown, &error))?;
    let json =
        file.extension().is_some_and(|extension| extension == "json") || text.trim_start().starts_with('{');
    let parsed = if json {
        serde_json::from_str(&text).map_err(|error| error.to_string())
    } else {
        toml::from_str(&text).map_err(|error| error.to_string())
    };
    let mut parsed: ServiceFile = parsed.map_err(|error| {
        let hint = if text.contains("openapi") || text.contains("swagger") {
            "It looks like an API description: use --openapi."
        } else {
            "Correct it and try again."
        };
        Failure::usage(format!("{shown} is not a service file: {error}")).next(hint)
    })?;
    if let Some(source) = &parsed.source {
        one_place(source).map_err(|what| {
            Failure::usage(format!("{shown} is not a service file: `[source]` {what}"))
                .next("name the API description once, with `file`, `url` or `text`")
        })?;
    }
    if let Some(source) =
        parsed.source.as_mut().filter(|source| source.url.is_none() && source.text.is_none())
    {
        let place = beside(file, &source.file, "name it with --openapi FILE or --graphql FILE")?;
        *source = source_at(&place.to_string_lossy(), source.kind)?;
    }
    for (secrets, instead) in [
        (&mut parsed.upstream_headers, "name it with --upstream-header 'NAME: @FILE'"),
        (&mut parsed.upstream_query, "name it with --upstream-query NAME=@FILE"),
    ] {
        for value in secrets.values_mut().filter(|value| value.starts_with('@')) {
            let place = beside(file, &value[1..], instead)?;
            *value = input::value(&format!("@{}", place.display()))?.trim_end().to_owned();
        }
    }
    Ok(parsed)
}

/// Checks that a source says once where the description is.
fn one_place(source: &SourceFile) -> Result<(), String> {
    let fields = [
        ("`file`", !source.file.is_empty()),
        ("`url`", source.url.is_some()),
        ("`text`", source.text.is_some()),
    ];
    let given: Vec<&str> =
        fields.into_iter().filter(|(_, is_given)| *is_given).map(|(name, _)| name).collect();
    match given.as_slice() {
        [_] => Ok(()),
        [] => Err("has only `kind`".to_owned()),
        several => Err(format!("has {}, which contradict each other", several.join(" and "))),
    }
}

/// A file that a service file names: in its own folder or below, and not hidden. The service file may be a stranger's, and what
/// is in the named one goes to the server that it names, before anybody is asked.
fn beside(file: &Path, named: &str, instead: &'static str) -> Result<PathBuf, Failure> {
    let folder = file.parent().unwrap_or(Path::new(""));
    let place = folder.join(named);
    // Links are followed first: what they lead to is what is read.
    let real =
        |path: &Path| std::fs::canonicalize(path).map_err(|error| input::unreadable(path.display(), &error));
    let (folder, whole) = (real(&Path::new(".").join(folder))?, real(&place)?);
    let is_shown = |part: Component<'_>| !part.as_os_str().as_encoded_bytes().starts_with(b".");
    if whole.strip_prefix(&folder).is_ok_and(|below| below.components().all(is_shown)) {
        return Ok(place);
    }
    let shown = file.display();
    Err(Failure::usage(format!("{shown} names {named}, which is hidden or outside of its folder"))
        .next(instead))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(folder: &Path, name: &str, text: &str) -> PathBuf {
        let path = folder.join(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    #[test]
    fn a_service_file_is_toml_or_json() {
        let folder = tempfile::tempdir().unwrap();
        let toml =
            write(folder.path(), "a.toml", "name = \"a\"\nupstream = \"http://h\"\nprice = \"0.01\"\n");
        let json = write(folder.path(), "a.json", r#"{"name":"a","upstream":"http://h","price":"0.01"}"#);
        assert_eq!(read(&toml).unwrap(), read(&json).unwrap());
        let wrong = write(folder.path(), "b.toml", "name = \"a\"\nupstream = \"http://h\"\nprice = 0.01\n");
        let refused = read(&wrong).unwrap_err().to_string();
        assert!(refused.contains("b.toml is not a service file"), "{refused}");
        assert!(refused.contains("expected a string in quotes"), "{refused}");
    }

    #[test]
    fn a_service_file_may_name_the_description_beside_it() {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), "schema.graphql", "type Query { a: Int }");
        write(folder.path(), "key.txt", "secret\n");
        let file = write(
            folder.path(),
            "a.toml",
            "price = \"0.01\"\nupstream_headers = { X-Key = \"@key.txt\" }\n[source]\nkind = \"graphql\"\nfile = \"schema.graphql\"\n",
        );
        let file = read(&file).unwrap();
        assert_eq!(file.source.unwrap().text.unwrap(), "type Query { a: Int }");
        assert_eq!(file.upstream_headers["X-Key"], "secret");
    }

    #[test]
    fn a_source_names_its_description_once() {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), "a.json", "{}");
        for (fields, told) in [
            ("", "has only `kind`"),
            ("file = \"a.json\"\nurl = \"http://h\"", "`file` and `url`"),
            ("file = \"a.json\"\ntext = \"{}\"", "`file` and `text`"),
            ("url = \"http://h\"\ntext = \"{}\"", "`url` and `text`"),
        ] {
            let text = format!("price = \"0.01\"\n[source]\nkind = \"openapi\"\n{fields}\n");
            let refused = read(&write(folder.path(), "a.toml", &text)).unwrap_err().to_string();
            assert!(refused.contains(told), "{refused}");
        }
    }

    #[test]
    fn a_service_file_sends_no_file_from_outside_of_its_folder_to_the_server_that_it_names() {
        let all = tempfile::tempdir().unwrap();
        let folder = all.path().join("downloaded");
        std::fs::create_dir_all(folder.join("keys")).unwrap();
        let outside = write(all.path(), "id_rsa", "private");
        write(&folder, ".netrc", "private");
        write(&folder.join("keys"), "own.txt", "own");
        std::os::unix::fs::symlink(&outside, folder.join("link")).unwrap();
        let absolute = outside.display().to_string();
        for named in ["../id_rsa", "keys/../../id_rsa", ".netrc", "link", absolute.as_str()] {
            for line in [
                format!("upstream_headers = {{ X-Key = \"@{named}\" }}"),
                format!("upstream_query = {{ key = \"@{named}\" }}"),
                format!("[source]\nkind = \"openapi\"\nfile = \"{named}\""),
            ] {
                let file = write(&folder, "a.toml", &format!("price = \"0.01\"\n{line}\n"));
                let refused = read(&file).unwrap_err().to_string();
                assert!(refused.contains("hidden or outside of its folder"), "{named}: {refused}");
            }
        }
        let own = "price = \"0.01\"\nupstream_headers = { X-Key = \"@keys/own.txt\" }\n";
        assert_eq!(read(&write(&folder, "a.toml", own)).unwrap().upstream_headers["X-Key"], "own");
    }
}
