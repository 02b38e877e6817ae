//! The promises of bodies: what is passed on, what is written anew, and what is refused.

use std::collections::BTreeMap;

use crate::{
    Api, Call, PlanError, Request,
    description::{
        ApiDescription, ArrayOf, Body, BodyKind, Method, Object, OneOf, Operation, Property, Schema, Shape,
    },
};

const JSON: &str = "application/json";
const FORM: &str = "application/x-www-form-urlencoded";

fn note() -> Schema {
    let property = |name: &str, required, schema| Property { name: name.into(), required, schema };
    let tags = Schema::of(Shape::Array(Box::new(ArrayOf {
        items: Schema::string(),
        items_max: Some(2),
        ..ArrayOf::default()
    })));
    Schema::of(Shape::Object(Object {
        properties: vec![
            property("name", true, Schema::string()),
            property("stars", false, Schema::integer().or_null()),
            property("tags", false, tags),
            property("place", false, Schema::default()),
        ],
        ..Object::default()
    }))
}

fn api(kind: BodyKind, media_type: &str, required: bool) -> Api {
    let schema = if kind == BodyKind::Text { Schema::string() } else { note() };
    let media_type = media_type.into();
    let body = Body { kind, media_type, required, schema, ..Body::default() };
    let operation = |path: &str, body| Operation {
        method: Method::Post,
        path: path.into(),
        id: path.into(),
        body,
        ..Operation::default()
    };
    let operations = vec![operation("/a", Some(body)), operation("/none", None)];
    Api::new(ApiDescription { operations, ..ApiDescription::default() }).unwrap()
}

/// The content type and the body that would be sent.
fn sent(
    api: &Api,
    path: &str,
    content_type: Option<&str>,
    body: &[u8],
) -> Result<(Option<String>, String), PlanError> {
    let call = Call { method: "POST", path, params: &BTreeMap::new(), content_type, body };
    match api.plan(&call)?.request {
        Request::Http(request) => {
            let bytes = String::from_utf8_lossy(request.body.bytes(body)).into_owned();
            Ok((request.headers.into_iter().find(|(name, _)| name == "content-type").map(|(_, v)| v), bytes))
        }
        Request::Graphql(_) => panic!("this is no GraphQL field"),
    }
}

#[test]
fn json_is_passed_on_byte_by_byte() {
    let api = api(BodyKind::Json, JSON, false);
    let body = " {\"name\" : \"\\u0061\", \"stars\":null,\n\"place\":{\"x\":[1.10]}} ";
    for content_type in
        [None, Some(JSON), Some("Application/JSON; charset=utf-8"), Some("application/merge-patch+json")]
    {
        let sent = sent(&api, "/a", content_type, body.as_bytes()).unwrap();
        assert_eq!(sent, (Some(JSON.into()), body.into()));
    }
    assert_eq!(sent(&api, "/a", None, b"").unwrap(), (None, String::new()));
    assert_eq!(sent(&api, "/none", None, b"").unwrap(), (None, String::new()));
}

#[test]
fn a_json_body_that_does_not_fit_is_refused_with_the_path_of_each_fault() {
    let api = api(BodyKind::Json, JSON, true);
    for (body, expected) in [
        ("", "this operation needs a body that is not empty: application/json"),
        ("{", "the body is not JSON that can be passed on: a name in quotes is missing at byte 1"),
        (
            "{\"name\":\"a\",\"name\":\"b\"}",
            "the body is not JSON that can be passed on: a name occurs twice at byte 12",
        ),
        ("[]", "`body` is `[]`, expected an object, as JSON"),
        ("{}", "missing `body.name`"),
        (
            "{\"name\":7,\"nmae\":1}",
            "`body.name` is `7`, expected text; `body` has no `nmae`; did you mean `name`?",
        ),
        ("{\"name\":\"a\",\"stars\":1.5}", "`body.stars` is `1.5`, expected a whole number such as 7"),
        ("{\"name\":\"a\",\"tags\":[\"x\",\"y\",\"z\"]}", "`body.tags` has 3 items, expected at most 2"),
        ("{\"name\":\"a\",\"tags\":[\"x\",1]}", "`body.tags[1]` is `1`, expected text"),
    ] {
        assert_eq!(sent(&api, "/a", None, body.as_bytes()).unwrap_err().to_string(), expected);
    }
    let deep =
        |levels: usize| format!("{{\"name\":\"a\",\"place\":{}{}}}", "[".repeat(levels), "]".repeat(levels));
    assert!(sent(&api, "/a", None, deep(31).as_bytes()).is_ok());
    let error = sent(&api, "/a", None, deep(32).as_bytes()).unwrap_err().to_string();
    assert!(error.contains("nested too deeply"), "{error}");
    let bytes = sent(&api, "/a", None, b"{\"name\":\"\xff\"}").unwrap_err().to_string();
    assert_eq!(bytes, "the body is not UTF-8 text");
}

#[test]
fn a_body_that_nobody_wants_or_of_another_type_is_refused() {
    for (kind, media_type, path, content_type, expected) in [
        (BodyKind::Json, JSON, "/none", None, "this operation takes no body; leave `body` out"),
        (
            BodyKind::Json,
            JSON,
            "/a",
            Some("text/xml"),
            "the body's content type is `text/xml`, expected application/json",
        ),
        (
            BodyKind::Form,
            FORM,
            "/a",
            Some("text/xml"),
            "the body's content type is `text/xml`, expected a JSON object, or application/x-www-form-urlencoded",
        ),
        (
            BodyKind::Text,
            "text/csv",
            "/a",
            Some(JSON),
            "the body's content type is `application/json`, expected text/csv",
        ),
        (
            BodyKind::Text,
            "image/*",
            "/a",
            None,
            "the body has no content type, expected image/*: name it with the header Content-Type",
        ),
        (
            BodyKind::Text,
            "image/*",
            "/a",
            Some("text/plain"),
            "the body's content type is `text/plain`, expected image/*",
        ),
    ] {
        let error = sent(&api(kind, media_type, false), path, content_type, b"{\"name\":\"a\"}").unwrap_err();
        assert_eq!(error.to_string(), expected);
    }
}

#[test]
fn an_object_becomes_a_form_and_a_form_stays_one() {
    let api = api(BodyKind::Form, FORM, true);
    let (form, json) = (Some(FORM.to_owned()), br#"{"name":"a&b=c d","stars":5,"tags":["x","y"]}"#);
    let written = "name=a%26b%3Dc%20d&stars=5&tags=x&tags=y";
    assert_eq!(sent(&api, "/a", Some(JSON), json).unwrap(), (form.clone(), written.into()));
    let given = "name=a%26b+c&stars=5&tags=x&tags=y";
    assert_eq!(sent(&api, "/a", Some(FORM), given.as_bytes()).unwrap(), (form, given.into()));
    for (content_type, body, expected) in [
        (
            JSON,
            r#"{"name":"a","stars":null}"#,
            "`body.stars` is `null`, expected text, a number, true or false, or a list of these",
        ),
        (
            JSON,
            r#"{"name":"a","place":{}}"#,
            "`body.place` is `{}`, expected text, a number, true or false, or a list of these",
        ),
        (
            JSON,
            r#"{"name":"a","tags":[]}"#,
            "`body.tags` is `[]`, expected text, a number, true or false, or a list of these",
        ),
        (JSON, r#"{"nmae":"a"}"#, "missing `body.name`; `body` has no `nmae`; did you mean `name`?"),
        (FORM, "nmae=a", "missing `body.name`; `body` has no `nmae`; did you mean `name`?"),
        (FORM, "name=a&stars=x", "`body.stars` is `x`, expected a whole number such as 7"),
        (FORM, "name=a&tags=x&tags=y&tags=z", "`body.tags` has 3 items, expected at most 2"),
        (FORM, "name=a&name=b", "`body.name` is given twice: in the form; give it once"),
        (
            FORM,
            "name=%zz",
            "`body` is `name=%zz`, expected percent escapes of UTF-8 text; missing `body.name`",
        ),
    ] {
        assert_eq!(sent(&api, "/a", Some(content_type), body.as_bytes()).unwrap_err().to_string(), expected);
    }
}

#[test]
fn text_is_passed_on_as_it_is() {
    let csv = api(BodyKind::Text, "text/csv", false);
    assert_eq!(sent(&csv, "/a", None, b"a,b").unwrap(), (Some("text/csv".into()), "a,b".into()));
    assert_eq!(sent(&csv, "/a", Some("text/plain"), b"a").unwrap(), (Some("text/csv".into()), "a".into()));
    assert_eq!(sent(&csv, "/a", None, b"\xff").unwrap_err().to_string(), "the body is not UTF-8 text");
    let image = api(BodyKind::Text, "image/*", false);
    assert_eq!(sent(&image, "/a", Some("image/png"), b"\xff").unwrap().0, Some("image/png".into()));
    let any = api(BodyKind::Any, "", false);
    assert_eq!(sent(&any, "/a", Some("a/b"), b"x").unwrap(), (Some("a/b".into()), "x".into()));
    assert_eq!(sent(&any, "/a", None, b"x").unwrap(), (None, "x".into()));
}

#[test]
fn a_form_of_many_members_is_checked_as_far_as_it_is_paid_for() {
    const COUNT: usize = 6_000;
    let property = |n| Property { name: format!("p{n}"), required: false, schema: Schema::integer() };
    let object = Object { properties: (0..COUNT).map(property).collect(), ..Object::default() };
    let mut description = api(BodyKind::Form, FORM, true).description().clone();
    description.operations[0].body.as_mut().unwrap().schema = Schema::of(Shape::Object(object));
    let api = Api::new(description).unwrap();
    let form = |text: &str| (0..COUNT).map(|n| format!("p{n}={text}")).collect::<Vec<_>>().join("&");
    let told = |text| sent(&api, "/a", Some(FORM), form(text).as_bytes()).unwrap_err().to_string();
    assert_eq!(told("1").matches("too complex").count(), 1);
    assert_eq!(told("x").matches("whole number").count(), crate::limits::PROBLEMS_MAX);
}

#[test]
fn a_form_that_the_caller_writes_is_held_to_the_schema_as_json_is() {
    let object = |properties: &[(&str, Schema)]| {
        let property = |(name, schema): &(&str, Schema)| Property {
            name: (*name).into(),
            required: true,
            schema: schema.clone(),
        };
        Object { properties: properties.iter().map(property).collect(), ..Object::default() }
    };
    let any_of = |variants| Schema::of(Shape::OneOf(OneOf { variants, discriminator: None }));
    let either = any_of(vec![Schema::string(), Schema::array(Schema::string())]);
    let open = Object { additional: Some(Box::default()), ..object(&[("limit", Schema::integer())]) };
    let one = Object {
        exactly_one: true,
        properties: vec![
            Property { required: false, ..object(&[("a", Schema::integer())]).properties.remove(0) },
            Property { required: false, ..object(&[("b", Schema::integer())]).properties.remove(0) },
        ],
        ..Object::default()
    };
    let of = |object| Schema::of(Shape::Object(object));
    let two = any_of(vec![of(object(&[("n", Schema::integer())])), of(object(&[("m", Schema::boolean())]))]);
    for (schema, form, is_right) in [
        (two.clone(), "n=1", true),
        (two.clone(), "m=true", true),
        (two.clone(), "n=x", false),
        (two, "n=1&m=true", false),
        (of(one.clone()), "a=1", true),
        (of(one), "a=1&b=2", false),
        (of(object(&[("tag", either)])), "tag=a&tag=b", true),
        (of(object(&[("tag", Schema::string())])), "tag=a&tag=b", false),
        (Schema::integer(), "n=1", false),
        (of(open.clone()), "limit=1&other=2", true),
        (of(open.clone()), "limit=1&limit[]=2", false),
        (of(open.clone()), "limit=1&+Limit=2", false),
        (of(open.clone()), "limit=1&_method=DELETE", false),
        (of(open.clone()), "limit=1&[limit]=2", false),
        (of(open.clone()), "limit=1&.method=DELETE", false),
        (Schema::default(), "a=1&b=2", true),
        (Schema::default(), "a=1&_method=DELETE", false),
        (any_of(vec![of(open.clone()), Schema::default()]), "limit=x&_method=DELETE", false),
        (any_of(vec![of(open), Schema::default()]), "limit=x", true),
    ] {
        let mut description = api(BodyKind::Form, FORM, true).description().clone();
        description.operations[0].body.as_mut().unwrap().schema = schema;
        let api = Api::new(description).unwrap();
        let planned = sent(&api, "/a", Some(FORM), form.as_bytes());
        assert_eq!(planned.is_ok(), is_right, "{form}: {planned:?}");
    }
    // A form that is made of JSON.
    for (schema, body, is_right) in [
        (any_of(vec![of(object(&[("n", Schema::integer())]))]), r#"{"n":1,"_method":"DELETE"}"#, false),
        (Schema::default(), r#"{"n":1,"[_method]":"DELETE"}"#, false),
        (Schema::default(), r#"{"n":1}"#, true),
    ] {
        let mut description = api(BodyKind::Form, FORM, true).description().clone();
        description.operations[0].body.as_mut().unwrap().schema = schema;
        let planned = sent(&Api::new(description).unwrap(), "/a", Some(JSON), body.as_bytes());
        assert_eq!(planned.is_ok(), is_right, "{body}: {planned:?}");
    }
    // The same in JSON; what the owner declares is the owner's.
    for (names, body, is_right) in [
        (&["limit"][..], r#"{"limit":"1","_method":"DELETE"}"#, false),
        (&["limit"], r#"{"limit":"1","_Method":"DELETE"}"#, false),
        (&["limit"], r#"{"limit":"1","method":"DELETE","in":{"_method":1}}"#, true),
        (&["_method"], r#"{"_method":"DELETE"}"#, true),
    ] {
        let properties: Vec<_> = names.iter().map(|name| (*name, Schema::string())).collect();
        let mut description = api(BodyKind::Json, JSON, true).description().clone();
        description.operations[0].body.as_mut().unwrap().schema =
            of(Object { additional: Some(Box::default()), ..object(&properties) });
        let planned = sent(&Api::new(description).unwrap(), "/a", Some(JSON), body.as_bytes());
        assert_eq!(planned.is_ok(), is_right, "{body}: {planned:?}");
    }
    let open = api(BodyKind::Any, "", false);
    assert!(sent(&open, "/a", Some("a/b\r\nx: y"), b"x").is_err(), "no header begins in another");
}

#[test]
fn a_body_of_a_type_that_is_only_named_is_what_it_calls_itself() {
    let mut description = api(BodyKind::Json, JSON, true).description().clone();
    let body = description.operations[0].body.as_mut().unwrap();
    body.also = vec!["image/*".into(), "text/csv".into(), FORM.into(), "multipart/form-data".into()];
    let api = Api::new(description).unwrap();
    let refused = |kind: &str, body: &[u8]| sent(&api, "/a", Some(kind), body).unwrap_err().to_string();
    assert_eq!(sent(&api, "/a", Some("Image/PNG"), b"\x89").unwrap().0.as_deref(), Some("image/png"));
    assert_eq!(sent(&api, "/a", Some("text/csv"), b"a,b").unwrap().1, "a,b");
    assert_eq!(refused("text/csv", b"\xff"), "the body is not UTF-8 text");
    assert!(refused(FORM, b"_method=DELETE").contains("another name or method"));
    assert!(refused("multipart/form-data", b"--x--").contains("no boundary"));
    assert!(refused(JSON, b"{}").contains("missing `body.name`"), "what is described is checked as ever");
    let told = refused("video/mp4", b"x");
    assert!(told.contains("expected application/json, or image/*, or text/csv, or "), "{told}");
}

#[test]
fn parts_are_checked_as_they_are_described_and_passed_on_with_their_boundary() {
    let property = |name: &str, required, schema| Property { name: name.into(), required, schema };
    let form = Object {
        properties: vec![
            property("photo", true, Schema::string()),
            property("stars", false, Schema::integer()),
            property("more", false, Schema::array(Schema::string())),
        ],
        ..Object::default()
    };
    let api = |schema: Schema| {
        let mut description = api(BodyKind::Text, "multipart/form-data", true).description().clone();
        description.operations[0].body.as_mut().unwrap().schema = schema;
        Api::new(description).unwrap()
    };
    let described = api(Schema::of(Shape::Object(form)));
    let part = |disposition: &str, content: &str| {
        format!("--b\r\ncontent-disposition: form-data; {disposition}\r\n\r\n{content}\r\n")
    };
    let body = |parts: &[String]| format!("{}--b--\r\n", parts.concat());
    let photo = || part("name=\"photo\"; filename=\"a.png\"", "\u{fffd}");
    let kind = "multipart/form-data; charset=utf-8; boundary=b";
    let planned = |api: &Api, parts: &[String]| sent(api, "/a", Some(kind), body(parts).as_bytes());
    let told = |parts: &[String]| planned(&described, parts).unwrap_err().to_string();
    let fine = [photo(), part("name=\"stars\"", "5"), part("name=\"more\"", "a"), part("name=\"more\"", "b")];
    let (content_type, passed_on) = planned(&described, &fine).unwrap();
    assert_eq!(content_type.as_deref(), Some("multipart/form-data; boundary=b"));
    assert_eq!(passed_on, body(&fine), "byte by byte");
    assert_eq!(told(&[]), "missing `body.photo`");
    assert!(told(&[photo(), photo()]).contains("`body.photo` is given twice"));
    assert!(
        told(&[photo(), part("name=\"stars\"", "many")])
            .contains("`body.stars` is `many`, expected a whole number")
    );
    assert!(
        told(&[photo(), part("name=\"stars\"; filename=\"a\"", "5")]).contains("`body.stars` is `a file`")
    );
    assert!(told(&[photo(), part("name=\"strs\"", "5")]).contains("did you mean `stars`?"));
    assert!(told(&[photo(), part("name=\"photo[]\"", "5")]).contains("given twice"));
    assert!(sent(&described, "/a", None, b"--b--").unwrap_err().to_string().contains("no boundary"));
    let open = api(Schema::default());
    assert!(planned(&open, &[part("name=\"_method\"", "DELETE")]).is_err());
    assert!(planned(&open, &[part("name=\"any\"; filename=\"x\"", "y")]).is_ok());
}
