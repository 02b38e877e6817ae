//! Code of uploads names the files that are sent, and holds all texts unharmed.

use farthing_bridge::openapi;

use crate::{Language, Options, SnippetBody, UploadBody, UploadCall, UploadPart, snippet, upload};

const ADDRESS: &str = "https://localhost:3000/services/0b5f2a3e-6a3c-4c39-9a65-6a1c3f1d2e4b/size";

fn part(name: &str, value: &str, is_file: bool) -> UploadPart {
    UploadPart { name: name.to_owned(), value: value.to_owned(), is_file }
}

fn code(language: Language, body: UploadBody<'_>) -> String {
    let headers = [("x-tenant".to_owned(), "blue".to_owned())];
    let call = UploadCall { address: ADDRESS, method: "POST", headers: &headers, body };
    upload(&call, language).unwrap().unwrap()
}

#[test]
fn every_language_sends_the_file_the_secret_and_the_trust_to_the_services_address() {
    let parts = [part("image", "picture.png", true), part("note", "a b", false)];
    let file = UploadBody::File { name: "picture.png", content_type: "image/png" };
    for language in Language::PLAIN {
        let (form, file) = (code(language, UploadBody::Parts(&parts)), code(language, file));
        for part in [ADDRESS, "picture.png", "CONSUMER_SECRET", "FARTHING_CA_FILE", "x-tenant", "blue"] {
            for code in [&form, &file] {
                assert!(code.contains(part), "{} has no {part}:\n{code}", language.name());
            }
        }
        assert!(form.contains("image") && form.contains("note") && form.contains("a b"), "{form}");
        assert!(file.contains("image/png"), "{file}");
        assert!(form.ends_with('\n') && file.ends_with('\n'), "{}", language.name());
    }
    for language in Language::all().filter(|language| !Language::PLAIN.contains(language)) {
        let call = UploadCall { address: ADDRESS, method: "POST", headers: &[], body: file };
        assert_eq!(upload(&call, language), Ok(None));
    }
}

#[test]
fn curl_sends_parts_as_people_write_them() {
    let parts =
        [part("image", "picture.png", true), part("more", "a;b\".png", true), part("note", "@it's", false)];
    let form = code(Language::Shell, UploadBody::Parts(&parts));
    let written = format!(
        "curl --cacert \"$FARTHING_CA_FILE\" '{ADDRESS}' \\\n  -H \"Authorization: Bearer $CONSUMER_SECRET\" \\\n  \
         -H 'x-tenant: blue' \\\n  -F 'image=@picture.png' \\\n  -F $'more=@\"a;b\\\\\".png\"' \\\n  \
         --form-string $'note=@it\\'s'\n"
    );
    assert_eq!(form, written);
    let body = UploadBody::File { name: "picture.png", content_type: "image/png" };
    let call = UploadCall { address: "http://localhost:3000/a", method: "PUT", headers: &[], body };
    let file = upload(&call, Language::Shell).unwrap().unwrap();
    let written = "curl -X 'PUT' 'http://localhost:3000/a' \\\n  -H \"Authorization: Bearer $CONSUMER_SECRET\" \\\n  \
                   -H 'content-type: image/png' \\\n  --data-binary '@picture.png'\n";
    assert_eq!(file, written);
    let odd = [part("a=b", "picture.png", true)];
    let call = UploadCall { address: ADDRESS, method: "POST", headers: &[], body: UploadBody::Parts(&odd) };
    assert_eq!(upload(&call, Language::Shell), Ok(None), "curl would end the name there");
    assert!(upload(&call, Language::Python).unwrap().is_some());
}

#[test]
fn what_could_end_a_literal_is_escaped() {
    const HOSTILE: &str = "'\"`$(id)${x}\\\n\u{202e}*/#\"\"\"";
    for language in Language::PLAIN {
        let lines = |text: &str| {
            let parts = [part(text, text, true), part(text, text, false)];
            let code = code(language, UploadBody::Parts(&parts));
            assert!(!code.contains('\u{202e}'), "{code}");
            code.lines().count()
        };
        assert_eq!(lines(HOSTILE), lines("x"), "{}", language.name());
    }
}

/// An operation with every kind of part that code can write, one that takes bytes, and one whose form nobody described.
const DESCRIBED: &str = r##"{"openapi": "3.1.0", "info": {"title": "T", "version": "1"}, "paths": {
    "/form": {"post": {"operationId": "sendForm", "responses": {"200": {"description": "d"}}, "parameters": [
        {"$ref": "#/components/parameters/size"}, {"$ref": "#/components/parameters/limit"}],
        "requestBody": {"required": true, "content": {"multipart/form-data": {"schema": {"type": "object", "required": ["image", "count"], "properties": {
            "image": {"type": "string", "format": "binary"}, "more": {"type": "array", "items": {"type": "string", "format": "binary"}},
            "note": {"type": "string"}, "count": {"type": "integer"}, "on": {"type": "boolean"},
            "day": {"type": "string", "enum": ["mon", "tue"]}, "tags": {"type": "array", "items": {"type": "string"}},
            "thing": {"type": "object", "properties": {"a": {}}}}}}}}}},
    "/bytes": {"post": {"operationId": "sendBytes", "responses": {"200": {"description": "d"}}, "parameters": [
        {"$ref": "#/components/parameters/size"}], "requestBody": {"required": true, "content": {"image/png": {}}}}},
    "/open": {"post": {"operationId": "sendAnything", "responses": {"200": {"description": "d"}}, "parameters": [
        {"$ref": "#/components/parameters/size"}], "requestBody": {"required": true, "content": {"multipart/form-data": {}}}}}},
    "components": {"parameters": {
        "size": {"name": "size", "in": "query", "required": true, "schema": {"type": "string"}},
        "limit": {"name": "limit", "in": "query", "schema": {"type": "integer"}}}}}"##;

/// Parts for the form: those that it takes together, or those of which it takes none beside an image and a count.
fn parts(is_taken: bool) -> Vec<UploadPart> {
    let all = [
        ("count", "17", false, true),
        ("count", "2", false, false),
        ("image", "picture.png", true, true),
        ("more", "first.gif", true, true),
        ("more", "second.gif", true, true),
        ("more", "no file", false, false),
        ("note", "a b", false, true),
        ("note", "note.txt", true, false),
        ("on", "true", false, true),
        ("on", "perhaps", false, false),
        ("day", "tue", false, true),
        ("tags", "red", false, true),
        ("thing", "{}", false, false),
        ("unknown", "x", false, false),
    ];
    let chosen = all.into_iter().filter(|(.., taken)| *taken == is_taken);
    chosen.map(|(name, value, is_file, _)| part(name, value, is_file)).collect()
}

fn with_client(
    language: Language,
    id: &str,
    values: &[(&str, &str)],
    body: SnippetBody<'_>,
) -> Option<String> {
    let description = openapi::read(DESCRIBED.as_bytes()).expect("it is valid").description;
    let index = description.operations.iter().position(|operation| operation.id == id).expect(id);
    let values = values.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
    snippet(&description, index, &values, Some(body), language, &Options::default()).unwrap()
}

#[test]
fn every_client_uploads_a_form_and_a_whole_body_in_its_own_types() {
    let (sized, limited) = ([("size", "large")], [("size", "large"), ("limit", "3")]);
    let parts = parts(true);
    for language in Language::all() {
        let form = with_client(language, "sendForm", &limited, SnippetBody::Parts(&parts))
            .unwrap_or_else(|| panic!("{language} shows no client"));
        for text in
            ["picture.png", "first.gif", "second.gif", "a b", "17", "true", "tue", "red", "large", "3"]
        {
            let is_there = form.to_lowercase().contains(text);
            assert!(is_there, "{language} has no {text}:\n{form}");
        }
        let whole = with_client(language, "sendBytes", &sized, SnippetBody::File("picture.png"));
        let whole = whole.unwrap_or_else(|| panic!("{language} shows no client"));
        assert!(whole.contains("picture.png") && whole.contains("large"), "{language}:\n{whole}");
        for code in [form, whole] {
            let name = code.to_lowercase().replace('_', "");
            assert!(
                name.contains("sendform") || name.contains("sendbytes"),
                "{language} is untyped:\n{code}"
            );
        }
    }
    let python = with_client(Language::Python, "sendForm", &limited, SnippetBody::Parts(&parts)).unwrap();
    let form = "client.send_form(size=\"large\", limit=3, body=sdk.SendFormForm(\
                image=sdk.Upload(pathlib.Path(\"picture.png\").read_bytes(), \"picture.png\"), \
                more=[sdk.Upload(pathlib.Path(\"first.gif\").read_bytes(), \"first.gif\"), \
                sdk.Upload(pathlib.Path(\"second.gif\").read_bytes(), \"second.gif\")], note=\"a b\", count=17, on=True, \
                day=sdk.SendFormFormDay.TUE, tags=[\"red\"]))";
    assert!(python.contains(form), "{python}");
}

#[test]
fn what_a_clients_types_cannot_hold_is_not_shown_with_it() {
    let (values, image, count) =
        ([("size", "large")], part("image", "picture.png", true), part("count", "1", false));
    let shown = |parts: &[UploadPart]| {
        with_client(Language::Rust, "sendForm", &values, SnippetBody::Parts(parts)).is_some()
    };
    assert!(shown(&[image.clone(), count.clone()]));
    assert!(!shown(std::slice::from_ref(&image)), "a required part is missing");
    for odd in parts(false) {
        assert!(!shown(&[image.clone(), count.clone(), odd.clone()]), "{odd:?}");
    }
    let file = SnippetBody::File("picture.png");
    assert_eq!(with_client(Language::Rust, "sendForm", &values, file), None, "it takes no bytes");
    assert_eq!(with_client(Language::Rust, "sendBytes", &[], file), None, "a required parameter is missing");
    let open = SnippetBody::Parts(std::slice::from_ref(&image));
    assert_eq!(with_client(Language::Rust, "sendAnything", &values, open), None, "no part is described");
    // The shell's client would read these otherwise.
    for odd in [part("note", "@note", false), part("more", "a;type=b", true)] {
        let parts = [image.clone(), count.clone(), odd];
        for (language, is_shown) in [(Language::Shell, false), (Language::Python, true)] {
            let code = with_client(language, "sendForm", &values, SnippetBody::Parts(&parts));
            assert_eq!(code.is_some(), is_shown, "{language}: {parts:?}");
        }
    }
}

#[test]
fn what_could_end_a_literal_is_escaped_with_a_client_as_well() {
    const HOSTILE: &str = "'\"`$(id)${x}#{x}\\\n\u{202e}*/#\"\"\"";
    for language in Language::all() {
        let lines = |text: &str| {
            let parts = [part("count", "1", false), part("image", text, true), part("note", text, false)];
            let body = SnippetBody::Parts(&parts);
            let code = with_client(language, "sendForm", &[("size", text)], body)
                .unwrap_or_else(|| panic!("{language} shows no client"));
            assert!(!code.contains('\u{202e}'), "{code}");
            code.lines().count()
        };
        assert_eq!(lines(HOSTILE), lines("x"), "{language}");
    }
}
