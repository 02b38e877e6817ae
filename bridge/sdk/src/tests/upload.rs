//! Code of uploads names the files that are sent, and holds all texts unharmed.

use crate::{Language, UploadBody, UploadCall, UploadPart, upload};

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
