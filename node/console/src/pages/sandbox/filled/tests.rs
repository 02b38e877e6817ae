//! The promises of a form that is filled in: what it is read as, what it becomes, and what keeps it from being sent.

use farthing_bridge::description::BodyKind;
use farthing_values::Method;
use serde_json::json;

use super::*;

const SERVICE: ServiceId = ServiceId::from_bytes([7; 16]);

fn asked(kind: BodyKind, any_params: bool) -> CallForm {
    let body = BodyField {
        kind,
        media_type: "text/csv".to_owned(),
        also: Vec::new(),
        input: BodyInput::Text,
        required: false,
        type_name: String::new(),
        description: String::new(),
        example: None,
    };
    let field = |name: &str| {
        serde_json::from_value(json!(
            { "name": name, "in": "query", "type": "string", "input": "text" }
        ))
        .unwrap()
    };
    CallForm {
        deposit: None,
        method: Method::Post.into(),
        path: "/a".to_owned(),
        price: Usdc::from_micros(2_000).into(),
        summary: String::new(),
        description: String::new(),
        deprecated: false,
        timeout_secs: None,
        form: Form { fields: vec![field("b"), field("ä &=\u{202e}")], any_params, body: Some(body) },
    }
}

fn sent(fields: &[(&str, &str)]) -> FilledForm {
    let fields: Vec<_> =
        fields.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    FilledForm::sent(&fields)
}

#[test]
fn names_come_back_as_they_were_and_empty_fields_are_left_out() {
    let asked = asked(BodyKind::Json, false);
    let odd = field_name("ä &=\u{202e}");
    assert!(odd.is_ascii());
    let filled = sent(&[(&odd, "x=&y"), ("p.b", ""), ("p.unknown", "1"), (EXTRA, "c=1")]);
    let call = filled.call(&asked.form).unwrap();
    assert_eq!(call.params, [("ä &=\u{202e}".to_owned(), "x=&y".to_owned())]);
}

#[test]
fn a_form_that_was_saved_is_filled_in_as_it_was_and_is_another_call() {
    let odd = field_name("ä &=\u{202e}");
    let part = part_name("image");
    let fields = [
        (odd.as_str(), "x=&y"),
        (EXTRA, "c=1"),
        (BODY, "a\nb"),
        (part.as_str(), "a.png"),
        (NONCE, "1"),
        (PRICE, "0.1"),
    ];
    let filled = sent(&fields);
    let again = FilledForm::saved(&filled.to_save());
    let own = FilledForm { nonce: "1".to_owned(), agreed: "0.1".parse().ok(), ..again.clone() };
    assert_eq!(own, filled);
    assert!(!again.has_price() && again.nonce.is_empty(), "a price is agreed to by a button");
}

#[test]
fn an_operation_is_named_without_what_cannot_be_seen() {
    for operation in ["GET /a/{id}", "GET /~a", "~", "GET /\u{202e}b"] {
        let value = operation_value(operation);
        assert!(!value.contains('\u{202e}'));
        assert_eq!(read_operation(&value), operation);
    }
    assert_eq!(operation_value("GET /a/{id}"), "GET /a/{id}", "addresses stay readable");
}

#[test]
fn the_same_form_is_the_same_call_and_a_changed_one_another() {
    let asked = asked(BodyKind::Json, false);
    let id = |fields: &[(&str, &str)]| {
        let filled = sent(fields);
        filled.request(SERVICE, &asked, &filled.call(&asked.form).unwrap()).unwrap().0
    };
    let first = id(&[(NONCE, "1"), ("p.b", "x")]);
    assert_eq!(first, id(&[("p.b", "x"), (NONCE, "1")]));
    assert_ne!(first, id(&[(NONCE, "2"), ("p.b", "x")]));
    assert_ne!(first, id(&[(NONCE, "1"), ("p.b", "y")]));
    assert_ne!(first, id(&[(NONCE, "1"), ("p.b", "x"), (BODY, "{}")]));
}

#[test]
fn no_more_is_paid_than_the_button_said() {
    let asked = asked(BodyKind::Json, false);
    for (price, paid) in [("0.001", "0.001"), ("", "0.002"), ("much", "0.002")] {
        let filled = sent(&[(PRICE, price)]);
        let (_, request) = filled.request(SERVICE, &asked, &filled.call(&asked.form).unwrap()).unwrap();
        let request: Value = serde_json::from_slice(&request).unwrap();
        assert_eq!(request["max_price"], paid, "{price}");
    }
}

#[test]
fn no_more_is_deposited_first_than_the_button_said() {
    let usdc = |micros| UsdcText::from(Usdc::from_micros(micros));
    for (named, now, is_refused) in [
        ("0.40", Some(400_000), false),
        ("0.40", Some(400_001), true),
        ("0.40", None, false),
        ("0.00", Some(1), true),
        // The page did not know it, and said so.
        ("", Some(1_000_000), false),
    ] {
        let filled = sent(&[(DEPOSIT, named)]);
        let now = now.map(usdc);
        assert_eq!(filled.names_less_than(now.as_ref()), is_refused, "{named} {now:?}");
    }
}

#[test]
fn bodies_are_json_or_text_as_the_operation_takes_them() {
    let body = |kind, text: &str| {
        let call = sent(&[(BODY, text)]).call(&asked(kind, false).form)?;
        let typed = |body| match body {
            CallBody::Typed(body) => body,
            CallBody::Files(body) => panic!("{body:?}"),
        };
        Ok::<_, String>(call.body.map(typed))
    };
    let json = body(BodyKind::Json, "{\"n\": 12345678901234567890123}").unwrap().unwrap();
    assert_eq!(json.raw.get(), "{\"n\": 12345678901234567890123}", "digit by digit");
    assert!(body(BodyKind::Json, "{").unwrap_err().contains("not JSON"));
    assert!(body(BodyKind::Json, " \r\n").unwrap().is_none());
    let text = body(BodyKind::Text, "a,b\r\n1,2").unwrap().unwrap();
    assert_eq!((text.value, text.content_type.as_deref()), ("a,b\n1,2".into(), Some("text/csv")));
    assert!(body(BodyKind::Any, "{}").unwrap().unwrap().content_type.is_none());
}

#[test]
fn more_parameters_are_lines() {
    let form = asked(BodyKind::Json, true).form;
    let call = sent(&[(EXTRA, "c=1\r\n\r\nd=e=f")]).call(&form).unwrap();
    assert_eq!(call.params.len(), 2);
    assert_eq!(call.params[1], ("d".to_owned(), "e=f".to_owned()));
    assert!(sent(&[(EXTRA, "c")]).call(&form).unwrap_err().contains("“c”"));
    assert!(sent(&[(EXTRA, "b=1"), ("p.b", "2")]).call(&form).unwrap_err().contains("twice"));
}

fn upload(required: bool) -> CallForm {
    let part = |name: &str, input: &str, required: bool| json!({ "name": name, "type": "string", "input": input, "required": required });
    let mut several = part("more", "file", false);
    several["several"] = true.into();
    let input = json!({ "parts": [part("im age", "file", true), part("note", "text", false), part("tags", "list", false),
        several] });
    let body = json!({ "kind": "text", "media_type": "multipart/form-data", "type": "object", "required": required,
        "input": input });
    let form = Form { body: serde_json::from_value(body).unwrap(), ..Form::default() };
    CallForm { form, ..asked(BodyKind::Json, false) }
}

fn file(field: &str, name: &str, content: Option<&'static [u8]>) -> SentFile {
    SentFile {
        field: field.to_owned(),
        name: name.to_owned(),
        media_type: "image/png".to_owned(),
        content: content.map(bytes::Bytes::from_static),
    }
}

/// The order of a form with these fields and files, or what keeps it from being sent.
fn order(form: &CallForm, fields: &[(&str, &str)], files: &[SentFile]) -> Result<(CallId, Value), String> {
    let names = files.iter().map(|file| (file.field.as_str(), file.name.as_str()));
    let fields: Vec<_> = [(NONCE, "7f")].into_iter().chain(fields.iter().copied()).chain(names).collect();
    let filled = sent(&fields).with(files.to_vec());
    let call = filled.call(&form.form)?;
    let (id, request) = filled.request(SERVICE, form, &call)?;
    Ok((id, serde_json::from_slice(&request).unwrap()))
}

#[test]
fn the_parts_of_a_form_become_a_body_of_our_own() {
    let asked = upload(true);
    let image = || file("b.im+age", "picture.png", Some(b"\x89PNG"));
    let fields = [("b.note", "it's"), ("b.tags", "a, b"), ("b.nobody", "x")];
    let (id, request) = order(&asked, &fields, &[image(), file("b.more", "a.png", Some(b""))]).unwrap();
    assert_eq!(request["headers"]["content-type"], "multipart/form-data; boundary=farthing-7f");
    let body = farthing_control::encoded::from_text(request["body_base64"].as_str().unwrap()).unwrap();
    let parts =
        farthing_bridge::multipart::parts("multipart/form-data; boundary=farthing-7f", &body).unwrap();
    let seen: Vec<_> = parts.iter().map(|part| (part.name, part.is_file, part.content)).collect();
    let expected: [(&str, bool, &[u8]); 5] = [
        ("im age", true, b"\x89PNG"),
        ("note", false, b"it's"),
        ("tags", false, b"a"),
        ("tags", false, b"b"),
        ("more", true, b""),
    ];
    assert_eq!(seen, expected);
    assert_eq!(order(&asked, &fields, &[image(), file("b.more", "a.png", Some(b""))]).unwrap().0, id);
    let other = file("b.im+age", "picture.png", Some(b"\x89PNg"));
    assert_ne!(order(&asked, &fields, &[other, file("b.more", "a.png", Some(b""))]).unwrap().0, id);
}

#[test]
fn files_of_one_name_are_sent_each_with_its_own_content() {
    let more = |content: &'static [u8]| file("b.more", "image.jpg", Some(content));
    let files = [file("b.im+age", "image.jpg", Some(b"0")), more(b"1"), more(b"2")];
    let (_, request) = order(&upload(true), &[], &files).unwrap();
    let body = farthing_control::encoded::from_text(request["body_base64"].as_str().unwrap()).unwrap();
    let content_type = request["headers"]["content-type"].as_str().unwrap();
    let parts = farthing_bridge::multipart::parts(content_type, &body).unwrap();
    let sent: Vec<_> = parts.iter().map(|part| part.content).collect();
    let expected: [&[u8]; 3] = [b"0", b"1", b"2"];
    assert_eq!(sent, expected);
}

#[test]
fn a_body_whose_files_are_not_here_is_not_sent_and_says_which() {
    let asked = upload(true);
    let told = |fields: &[(&str, &str)], files: &[SentFile]| order(&asked, fields, files).unwrap_err();
    assert_eq!(told(&[("b.note", "x")], &[]), "This call needs a file for `im age`. Choose one.");
    let forgotten = told(&[("b.im+age", "picture.png")], &[]);
    assert!(
        forgotten.contains("“picture.png” did not come") && forgotten.contains("`im age` again"),
        "{forgotten}"
    );
    let large = told(&[], &[file("b.im+age", "large.png", None)]);
    assert!(large.contains("“large.png” is too large for `im age`: a call carries 4.0 MiB"), "{large}");
    let image = file("b.im+age", "x", Some(b"1\r\n--farthing-7f\r\n2"));
    assert!(told(&[], &[image]).contains("cannot be put into one body"));
    // What needs no body goes without.
    let (_, request) = order(&upload(false), &[], &[]).unwrap();
    assert!(request.get("body_base64").is_none() && request.get("headers").is_none(), "{request}");
}

#[test]
fn parts_that_are_large_together_are_told_before_anything_is_sent() {
    let large: &'static [u8] = vec![0; farthing_values::limits::REQUEST_BODY_BYTES_MAX].leak();
    let told = order(&upload(true), &[], &[file("b.im+age", "x", Some(large))]).unwrap_err();
    assert!(told.contains("with all of its parts") && told.contains("4194304"), "{told}");
}

#[test]
fn a_file_is_the_whole_body_and_keeps_its_type_where_that_is_described() {
    let body = json!({ "kind": "text", "media_type": "image/png", "also": ["image/gif"], "type": "string",
        "required": true, "input": "file" });
    let form = Form { body: serde_json::from_value(body).unwrap(), ..Form::default() };
    let asked = CallForm { form, ..asked(BodyKind::Json, false) };
    let with = |media_type: &str| {
        let file = file(FILE, "picture", Some(b"\x89PNG"));
        order(&asked, &[], &[SentFile { media_type: media_type.to_owned(), ..file }]).unwrap().1
    };
    assert_eq!(with("image/gif")["headers"]["content-type"], "image/gif");
    assert_eq!(with("video/mp4")["headers"]["content-type"], "image/png");
    assert_eq!(with("")["body_base64"], "iVBORw==");
    assert!(order(&asked, &[], &[]).unwrap_err().contains("a file for the body"));
}

#[test]
fn parts_without_names_cannot_be_filled_in() {
    let mut asked = upload(true);
    asked.form.body.iter_mut().for_each(|body| body.input = BodyInput::Parts(Vec::new()));
    assert!(order(&asked, &[], &[]).unwrap_err().contains("does not name the parts"));
}
