//! Client code for a service, made from its verified description, and packed for a download.

use std::io::{Cursor, Write};

use farthing_bridge::description::{ApiDescription, Operation};
use farthing_control::types::sdk::{SdkRequest, SnippetBody, SnippetPart, SnippetRequest};
use farthing_protocol::{ServiceId, Usdc};
use farthing_sdk::{self as sdk, Language, Options, Sdk, SdkError, UploadPart};
use zip::{CompressionMethod, ZipWriter, result::ZipError, write::SimpleFileOptions};

use super::KnownService;

/// Client code for a service; `origin` is this node's gateway as its callers reach it. It takes a while for a
/// large service.
///
/// # Errors
/// [`SdkError`] for wishes that cannot be fulfilled.
pub fn generate(
    known: &KnownService,
    language: Language,
    origin: &str,
    wishes: SdkRequest,
) -> Result<Sdk, SdkError> {
    let SdkRequest { package, single_file, templates } = wishes;
    let options = Options { package, single_file, templates, ..options(known, origin) };
    sdk::generate(known.api().description(), language, &options)
}

/// The description of an x402 server in its client code: the differences to a service of the network.
const SERVER_WORDS: &str = "An x402 server, which is no node. It signs no receipt, so answers come without one. Each call needs a highest \
     price: choose one that is close to what the server asks, because the server can take it and give no answer.";

/// Client code for an x402 server, which describes no operations: its `call` buys any path, and one method buys `path`.
///
/// # Errors
/// [`SdkError`] for wishes that cannot be fulfilled.
pub fn generate_for_server(
    (id, name): (ServiceId, &str),
    path: &str,
    language: Language,
    origin: &str,
    wishes: SdkRequest,
) -> Result<Sdk, SdkError> {
    let example = Operation {
        id: "get_example".to_owned(),
        path: path.to_owned(),
        summary: "Gets the path whose price your node asked last. `call` buys any other path of this server."
            .to_owned(),
        ..Operation::default()
    };
    let description = ApiDescription {
        title: name.to_owned(),
        description: SERVER_WORDS.to_owned(),
        operations: vec![example],
        ..ApiDescription::default()
    };
    let SdkRequest { package, single_file, templates } = wishes;
    let options = Options {
        service_id: id.to_string(),
        service_name: name.to_owned(),
        base_url: origin.to_owned(),
        package,
        single_file,
        templates,
        ..Options::default()
    };
    sdk::generate(&description, language, &options)
}

/// One call of the operation at `index` as code; `None` where the client has no words for it.
///
/// # Errors
/// [`SdkError`] when there is no such operation.
pub fn snippet(
    known: &KnownService,
    index: usize,
    call: &SnippetRequest,
    language: Language,
    origin: &str,
) -> Result<Option<String>, SdkError> {
    let part = |SnippetPart { name, value, is_file }: &SnippetPart| UploadPart {
        name: name.clone(),
        value: value.clone(),
        is_file: *is_file,
    };
    let parts: Vec<UploadPart> = match &call.body {
        Some(SnippetBody::Parts(parts)) => parts.iter().map(part).collect(),
        _ => Vec::new(),
    };
    let body = call.body.as_ref().map(|body| match body {
        SnippetBody::Text(text) => sdk::SnippetBody::Text(text),
        SnippetBody::File(name) => sdk::SnippetBody::File(name),
        SnippetBody::Parts(_) => sdk::SnippetBody::Parts(&parts),
    });
    let description = known.api().description();
    sdk::snippet(description, index, &call.params, body, language, &options(known, origin))
}

fn options(known: &KnownService, origin: &str) -> Options {
    let listing = known.listing();
    let price = |(operation, price): (&Operation, Usdc)| (operation.id.clone(), price.to_string());
    Options {
        service_id: listing.service.to_string(),
        service_name: listing.name.clone(),
        price: listing.price.to_string(),
        prices: known.operations().map(price).collect(),
        base_url: origin.to_owned(),
        ..Options::default()
    }
}

/// The files as a ZIP archive, in a folder named like the package; the same bytes for the same files.
///
/// # Errors
/// [`ZipError`] for an archive beyond four gigabytes, which client code never is.
pub fn zip(sdk: &Sdk) -> Result<Vec<u8>, ZipError> {
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    let options = SimpleFileOptions::default().compression_method(CompressionMethod::Stored);
    for file in &sdk.files {
        // A script can be run at once.
        let mode = if file.text.starts_with("#!") { 0o755 } else { 0o644 };
        archive.start_file(format!("{}/{}", sdk.package, file.path), options.unix_permissions(mode))?;
        archive.write_all(file.text.as_bytes())?;
    }
    Ok(archive.finish()?.into_inner())
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use farthing_sdk::SdkFile;

    use super::*;

    #[test]
    fn client_code_of_an_x402_server_says_how_it_differs_from_a_service_of_the_network() {
        let server = (ServiceId::from_bytes([1; 16]), "data.example");
        let language = Language::parse("python").unwrap();
        let made =
            generate_for_server(server, "/v1", language, "https://localhost:3000", SdkRequest::default());
        let files = made.unwrap().files;
        let about = files.iter().find(|file| file.path == "README.md").unwrap();
        assert!(about.text.contains("It signs no receipt"), "{}", about.text);
    }

    #[test]
    fn an_archive_holds_every_file_in_a_folder_of_its_own_and_is_the_same_each_time() {
        let file = |path: &str, text: &str| SdkFile { path: path.to_owned(), text: text.to_owned() };
        let script = file("quakes.sh", "#!/usr/bin/env bash\n");
        let files = vec![file("README.md", "# größe\n"), file("src/a/empty.py", ""), script];
        let sdk = Sdk { package: "quakes".to_owned(), files: files.clone(), warnings: Vec::new() };
        let bytes = zip(&sdk).unwrap();
        assert_eq!(bytes, zip(&sdk).unwrap());
        let mut archive = zip::ZipArchive::new(Cursor::new(bytes)).unwrap();
        assert_eq!(archive.len(), files.len());
        for file in files {
            let mut text = String::new();
            let mut packed = archive.by_name(&format!("quakes/{}", file.path)).unwrap();
            packed.read_to_string(&mut text).unwrap();
            assert_eq!(text, file.text);
            let can_be_run = packed.unix_mode().is_some_and(|mode| mode & 0o111 != 0);
            assert_eq!(can_be_run, file.path.ends_with(".sh"), "{}", file.path);
        }
    }
}
