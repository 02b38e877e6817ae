//! Any HTTP API: what goes in and comes out byte for byte, by either address of the gateway, and what is refused for nothing.

use std::fs;

use anyhow::{Context, Result, ensure};
use farthing_control::{
    encoded,
    types::{Api, OperationFile, ServiceFile, SourceFile, SourceKind},
};
use farthing_tests::{
    calls::{cost, expect_free, expect_served},
    command::farthing,
    recorder::{Recorder, Scripted, Seen},
    world::{Answer, PRICE, World},
};
use farthing_values::{Method, limits::REQUEST_BODY_BYTES_MAX};
use reqwest::{RequestBuilder, header::HeaderValue};
use serde_json::{Value, json};
use tempfile::TempDir;

const DESCRIPTION: &str = r#"{
  "openapi": "3.1.0",
  "info": { "title": "Uploads", "version": "1" },
  "paths": {
    "/images": { "post": {
      "requestBody": { "required": true, "content": { "image/png": {}, "image/jpeg": {} } },
      "responses": { "200": { "description": "Its size" } } } },
    "/raw": { "post": {
      "requestBody": { "required": true, "content": { "application/octet-stream": {} } },
      "responses": { "200": { "description": "Its size" } } } },
    "/table": { "post": {
      "requestBody": { "content": { "text/csv": {} } },
      "responses": { "200": { "description": "Its size" } } } },
    "/form": { "post": {
      "requestBody": { "required": true, "content": { "multipart/form-data": { "schema": {
        "type": "object", "required": ["photo"],
        "properties": { "photo": { "type": "string", "format": "binary" }, "stars": { "type": "integer" } } } } } },
      "responses": { "200": { "description": "Its size" } } } },
    "/things": { "get": {
      "parameters": [{ "name": "X-Tenant", "in": "header", "schema": { "type": "string" } }],
      "responses": { "200": { "description": "Things" } } } },
    "/page": { "get": {
      "responses": { "200": { "description": "A page", "content": { "text/html": {} } } } } }
  }
}"#;
const KEY: &str = "the-owners-own-key";

/// The service, for sale, the server behind it, and a caller by either address.
struct Uploads {
    world: World,
    recorder: Recorder,
    api: Api,
    base: String,
}

impl Uploads {
    async fn start() -> Result<Self> {
        let (world, recorder) = (World::start().await?, Recorder::start().await?);
        let source = SourceFile::given(SourceKind::Openapi, DESCRIPTION.to_owned(), String::new());
        let mut file = ServiceFile {
            upstream: recorder.url(),
            source: Some(source),
            response_headers: vec!["X-Cost".to_owned()],
            writes: true,
            ..ServiceFile::priced(PRICE)
        };
        file.upstream_query.insert("appid".to_owned(), KEY.to_owned());
        let api = world.publish(&file).await?;
        let base = format!("{}/services/{}", world.consumer.status().await?.gateway_url, api.id);
        Ok(Self { world, recorder, api, base })
    }

    async fn in_json(&self, method: &str, path: &str, more: &Value) -> Result<Answer> {
        let mut call = json!({ "api_id_public": self.api.id.to_string(), "path": path, "method": method });
        for (name, value) in more.as_object().into_iter().flatten() {
            call[name] = value.clone();
        }
        self.world.call(&call).await
    }

    async fn at_its_address(
        &self,
        method: &str,
        path: &str,
        edit: impl FnOnce(RequestBuilder) -> RequestBuilder,
    ) -> Result<Answer> {
        let method = reqwest::Method::from_bytes(method.as_bytes())?;
        let request = self.world.client().request(method, format!("{}{path}", self.base));
        let response = edit(request.bearer_auth(&self.world.secret)).send().await?;
        let (status, headers) = (response.status(), response.headers().clone());
        Ok(Answer { status, headers, body: response.bytes().await? })
    }

    /// Posts a body by both addresses.
    async fn posts(&self, path: &str, kind: &str, body: &[u8]) -> Result<[Answer; 2]> {
        let more = json!({ "headers": { "Content-Type": kind }, "body_base64": encoded::to_text(body) });
        let body = body.to_vec();
        let edit = |request: RequestBuilder| request.header("content-type", kind).body(body);
        Ok([self.in_json("POST", path, &more).await?, self.at_its_address("POST", path, edit).await?])
    }
}

fn every_byte() -> Vec<u8> {
    (0..=255).collect()
}

fn form(parts: &[(&str, &[u8])]) -> Vec<u8> {
    let mut body = Vec::new();
    for (disposition, content) in parts {
        let head = format!("--xYz\r\nContent-Disposition: form-data; {disposition}\r\n\r\n");
        body.extend_from_slice(&[head.as_bytes(), content, b"\r\n"].concat());
    }
    body.extend_from_slice(b"--xYz--\r\n");
    body
}

const FORM: &str = "multipart/form-data; boundary=xYz";
const PHOTO: &str = "name=\"photo\"; filename=\"a b.png\"";

#[tokio::test]
async fn a_body_of_any_described_type_arrives_byte_for_byte() -> Result<()> {
    let sold = Uploads::start().await?;
    let large = |bytes: usize| -> Vec<u8> { every_byte().into_iter().cycle().take(bytes).collect() };
    // What is around a photo in a form, which counts as well.
    let around = form(&[(PHOTO, b"")]).len();
    let form_of = |bytes: usize| form(&[(PHOTO, &large(bytes - around))]);
    let mut served = 0;
    for (path, kind, body) in [
        ("/images", "image/png", every_byte()),
        ("/images", "image/jpeg", every_byte()),
        ("/table", "text/csv", b"a,b\r\n1,2".to_vec()),
        ("/form", FORM, form(&[(PHOTO, &every_byte()), ("name=\"stars\"", b"5")])),
        ("/form", FORM, form_of(around)),
        ("/form", FORM, form_of(REQUEST_BODY_BYTES_MAX - 1)),
        ("/form", FORM, form_of(REQUEST_BODY_BYTES_MAX)),
        ("/raw", "application/octet-stream", vec![0]),
        ("/raw", "application/octet-stream", large(REQUEST_BODY_BYTES_MAX - 1)),
        ("/raw", "application/octet-stream", large(REQUEST_BODY_BYTES_MAX)),
    ] {
        for answer in sold.posts(path, kind, &body).await? {
            expect_served(&answer)?;
            assert_eq!(answer.header("x-farthing-charged"), "0.002");
        }
        served += 2;
        let seen = sold.recorder.seen();
        assert_eq!(seen.len(), served);
        for seen in &seen[served - 2..] {
            ensure!(seen.body == body, "{} of {} bytes of {kind} arrived", seen.body.len(), body.len());
            assert_eq!(seen.headers["content-type"], kind);
        }
    }
    for (what, path, kind, bytes, status, problem) in [
        ("nothing", "/raw", "application/octet-stream", 0, 400, "bad-parameter"),
        (
            "more than is passed on",
            "/raw",
            "application/octet-stream",
            REQUEST_BODY_BYTES_MAX + 1,
            413,
            "too-large",
        ),
        ("another type", "/images", "image/gif", 256, 400, "bad-parameter"),
        ("bytes that are no text", "/table", "text/csv", 256, 400, "bad-parameter"),
    ] {
        for answer in sold.posts(path, kind, &large(bytes)).await? {
            expect_free(what, &answer, status, problem)?;
        }
    }
    for answer in sold.posts("/form", FORM, &form_of(REQUEST_BODY_BYTES_MAX + 1)).await? {
        expect_free("a form that is too large with what is around its photo", &answer, 413, "too-large")?;
    }
    // Where a body may be left out, one of no bytes is none.
    for answer in sold.posts("/table", "text/csv", b"").await? {
        expect_served(&answer)?;
    }
    served += 2;
    let seen = sold.recorder.seen();
    ensure!(seen[served - 2..].iter().all(|seen| seen.body.is_empty()), "{:?}", seen.last());
    assert_eq!(sold.recorder.hits(), served, "only what was served");
    sold.world.settle_for(cost(served as u64)).await
}

#[tokio::test]
async fn a_body_of_several_parts_that_lies_is_free_and_reaches_nobody() -> Result<()> {
    let sold = Uploads::start().await?;
    let fine = form(&[(PHOTO, b"x")]);
    let cut = &fine[..fine.len() - 10];
    let other_lines = String::from_utf8(fine.clone())?.replace("\r\n", "\n");
    for (what, kind, body) in [
        ("no boundary", "multipart/form-data", fine.clone()),
        ("another boundary", "multipart/form-data; boundary=other", fine.clone()),
        ("two boundaries", "multipart/form-data; boundary=xYz; boundary=other", fine.clone()),
        ("no end", FORM, cut.to_vec()),
        ("something behind the end", FORM, [&fine[..], b"--xYz--"].concat()),
        ("a boundary within a part", FORM, form(&[(PHOTO, b"a\n--xYz\nb")])),
        ("lines of another kind", FORM, other_lines.into_bytes()),
        ("a length that it has not", FORM, form(&[(&format!("{PHOTO}\r\nContent-Length: 9"), b"x")])),
        ("two names", FORM, form(&[("name=\"photo\"; name=\"stars\"; filename=\"a\"", b"x")])),
        ("a name within a name", FORM, form(&[("name=\"photo\\\"; name=\"stars\"", b"x")])),
        ("what is missing", FORM, form(&[("name=\"stars\"", b"5")])),
        ("a value of another kind", FORM, form(&[(PHOTO, b"x"), ("name=\"stars\"", b"many")])),
        ("a file for a number", FORM, form(&[(PHOTO, b"x"), ("name=\"stars\"; filename=\"5\"", b"5")])),
        ("another method", FORM, form(&[(PHOTO, b"x"), ("name=\"_method\"", b"DELETE")])),
        ("the owner's key", FORM, form(&[(PHOTO, b"x"), ("name=\"AppId\"", b"mine")])),
    ] {
        for answer in sold.posts("/form", kind, &body).await? {
            expect_free(what, &answer, 400, "bad-parameter")?;
        }
    }
    assert_eq!(sold.recorder.hits(), 0);
    for answer in sold.posts("/form", FORM, &fine).await? {
        expect_served(&answer)?;
    }
    sold.world.settle_for(cost(2)).await
}

#[tokio::test]
async fn a_head_is_asked_for_where_the_whole_is_for_sale_and_costs_the_same() -> Result<()> {
    let sold = Uploads::start().await?;
    sold.recorder.answer_with(Scripted::json(200, "{\"n\":1}"));
    let head = sold.at_its_address("HEAD", "/things", |request| request).await?;
    expect_served(&head)?;
    assert_eq!((head.header("content-length"), head.body.len()), ("7", 0));
    assert_eq!(head.header("x-farthing-charged"), "0.002");
    let in_json = sold.in_json("HEAD", "/things", &Value::Null).await?;
    expect_served(&in_json)?;
    assert_eq!(in_json.body.len(), 0);
    let methods: Vec<_> = sold.recorder.seen().into_iter().map(|seen| seen.method.to_string()).collect();
    assert_eq!(methods, ["HEAD", "HEAD"]);
    let nowhere = sold.in_json("HEAD", "/raw", &Value::Null).await?;
    expect_free("where nothing is read", &nowhere, 405, "method-not-allowed")?;
    sold.world.settle_for(cost(2)).await
}

#[tokio::test]
async fn headers_that_help_are_told_and_no_cookie_and_nothing_of_the_owners() -> Result<()> {
    let sold = Uploads::start().await?;
    let own = sold.recorder.url();
    let headers = vec![
        ("content-type", "text/csv".to_owned()),
        ("content-disposition", "attachment; filename=\"things.csv\"".to_owned()),
        ("location", format!("{own}/things/5?appid={KEY}")),
        ("link", format!("</things?page=2&appid={KEY}>; rel=\"next\", <http://10.0.0.1/>; rel=\"up\"")),
        ("x-ratelimit-remaining", "7".to_owned()),
        ("retry-after", "5".to_owned()),
        ("allow", "GET".to_owned()),
        ("x-cost", "3".to_owned()),
        ("vary", KEY.to_owned()),
        ("set-cookie", "buyer=first".to_owned()),
        ("access-control-allow-origin", "*".to_owned()),
        ("x-internal", "10.0.0.1".to_owned()),
    ];
    sold.recorder.answer_with(Scripted { headers, ..Scripted::json(201, "a,b") });
    let here = format!("/services/{}", sold.api.id);
    let repeated = json!({ "call_id": "once" });
    let answers = [
        (String::new(), sold.in_json("GET", "/things", &repeated).await?),
        (String::new(), sold.in_json("GET", "/things", &repeated).await?),
        (here, sold.at_its_address("GET", "/things", |request| request).await?),
    ];
    for (address, answer) in &answers {
        expect_served(answer)?;
        for (name, value) in [
            ("content-type", "text/csv".to_owned()),
            ("content-disposition", "attachment; filename=\"things.csv\"".to_owned()),
            ("location", format!("{address}/things/5")),
            ("link", format!("<{address}/things?page=2>; rel=\"next\"")),
            ("x-ratelimit-remaining", "7".to_owned()),
            ("retry-after", "5".to_owned()),
            ("allow", "GET".to_owned()),
            ("x-cost", "3".to_owned()),
            ("vary", String::new()),
            ("set-cookie", String::new()),
            ("access-control-allow-origin", String::new()),
            ("x-internal", String::new()),
        ] {
            assert_eq!(answer.header(name), value, "{name} at `{address}`");
        }
    }
    assert_eq!(sold.recorder.hits(), 2, "a repeat is served once");
    sold.world.settle_for(cost(2)).await
}

#[tokio::test]
async fn an_answer_is_packed_from_end_to_end_where_the_caller_unfolds_it() -> Result<()> {
    let sold = Uploads::start().await?;
    let packed = "\u{1}\u{2} not looked at";
    let headers =
        vec![("content-type", "application/json".to_owned()), ("content-encoding", "gzip".to_owned())];
    sold.recorder.answer_with(Scripted { headers, ..Scripted::json(200, packed) });
    let asked = "nonsense, br;q=0, gzip;q=0.5, identity;q=0";
    let answers = [
        sold.in_json("GET", "/things", &json!({ "headers": { "Accept-Encoding": asked } })).await?,
        sold.at_its_address("GET", "/things", |request| request.header("accept-encoding", asked)).await?,
    ];
    for answer in &answers {
        expect_served(answer)?;
        assert_eq!(answer.header("content-encoding"), "gzip");
        assert_eq!(answer.body, packed);
    }
    for seen in sold.recorder.seen() {
        assert_eq!(seen.headers["accept-encoding"], "gzip");
    }
    let unasked = sold.in_json("GET", "/things", &Value::Null).await?;
    expect_free("nobody asked for it", &unasked, 502, "upstream-failed")?;
    assert_eq!(sold.recorder.seen()[2].headers["accept-encoding"], "identity");
    let other = json!({ "headers": { "Accept-Encoding": "zstd" } });
    let other = sold.in_json("GET", "/things", &other).await?;
    expect_free("another was asked for", &other, 502, "upstream-failed")?;
    sold.world.settle_for(cost(2)).await
}

#[tokio::test]
async fn a_header_that_would_be_lost_is_refused_at_either_address() -> Result<()> {
    let sold = Uploads::start().await?;
    for (name, value) in [
        ("x-tennant", "blue"),
        ("cookie", "a=b"),
        ("range", "bytes=0-1"),
        ("x-api-key", "mine"),
        ("if-match", "a"),
    ] {
        let mut more = json!({ "headers": {} });
        more["headers"][name] = value.into();
        let answers = [
            sold.in_json("GET", "/things", &more).await?,
            sold.at_its_address("GET", "/things", |request| request.header(name, value)).await?,
        ];
        for answer in &answers {
            expect_free(name, answer, 400, "bad-parameter")?;
            ensure!(answer.json()["detail"].as_str().is_some_and(|told| told.contains(name)), "{answer:?}");
        }
        if name == "x-tennant" {
            let told = answers[1].json()["detail"].to_string();
            ensure!(told.contains("did you mean `X-Tenant`?"), "{told}");
        }
    }
    // Of two copies neither counts, whatever the letters.
    let body = |twice: &str| {
        let call = json!({ "api_id_public": sold.api.id.to_string(), "path": "/things", "method": "GET",
            "params": {} });
        call.to_string().replacen("{}", twice, 1)
    };
    for (twice, problem, told) in [
        (r#"{"X-Tenant":"blue","X-Tenant":"green"}"#, "malformed", "send `X-Tenant` once"),
        (r#"{"X-Tenant":"blue","x-tenant":"green"}"#, "bad-parameter", "`x-tenant`"),
    ] {
        let answer = sold.world.post(body(twice), |request| request).await?;
        expect_free(twice, &answer, 400, problem)?;
        ensure!(answer.json()["detail"].as_str().is_some_and(|detail| detail.contains(told)), "{answer:?}");
    }
    for (name, other, shown) in [
        ("X-Tenant", "x-tenant", "X-Tenant"),
        ("accept", "Accept", "accept"),
        ("if-none-match", "If-None-Match", "if-none-match"),
    ] {
        let twice = |request: RequestBuilder| request.header(name, "a").header(other, "b");
        let answer = sold.at_its_address("GET", "/things", twice).await?;
        expect_free(name, &answer, 400, "malformed")?;
        let told = format!("`{shown}` is there more than once; send it once");
        ensure!(answer.json()["detail"] == told, "{answer:?}");
        ensure!(!answer.header("x-farthing-call-id").is_empty(), "{answer:?}");
    }
    assert_eq!(sold.recorder.hits(), 0);
    let of_the_client = |request: RequestBuilder| {
        let names = [
            "user-agent",
            "sec-fetch-mode",
            "x-request-id",
            "traceparent",
            "cache-control",
            "x-forwarded-for",
        ];
        names.into_iter().fold(request.header("x-tenant", "blue"), |request, name| request.header(name, "7"))
    };
    expect_served(&sold.at_its_address("GET", "/things", of_the_client).await?)?;
    let seen = sold.recorder.seen();
    assert_eq!(seen[0].headers["x-tenant"], "blue");
    ensure!(!seen[0].headers.contains_key("x-request-id"), "{:?}", seen[0].headers);
    sold.world.settle_for(cost(1)).await
}

#[tokio::test]
async fn a_web_page_is_sold_where_one_is_described() -> Result<()> {
    let sold = Uploads::start().await?;
    let page = "<h1>Tea</h1>";
    let headers = vec![("content-type", "text/html; charset=utf-8".to_owned())];
    sold.recorder.answer_with(Scripted { headers, ..Scripted::json(200, page) });
    let answer = sold.at_its_address("GET", "/page", |request| request.header("accept", "text/html")).await?;
    expect_served(&answer)?;
    assert_eq!(answer.body, page);
    assert_eq!(answer.header("content-type"), "text/html; charset=utf-8");
    assert_eq!(answer.header("content-security-policy"), "sandbox");
    assert_eq!(sold.recorder.seen()[0].headers["accept"], "text/html");
    let elsewhere = sold.in_json("GET", "/things", &Value::Null).await?;
    expect_free("a page where none is described", &elsewhere, 502, "upstream-failed")?;
    let by_hand = ServiceFile {
        name: "Pages".to_owned(),
        upstream: sold.recorder.url(),
        operations: vec![OperationFile {
            answers: vec!["text/html".to_owned()],
            ..OperationFile::named(Method::Get, "/page".to_owned())
        }],
        ..ServiceFile::priced(PRICE)
    };
    let by_hand = sold.world.publish(&by_hand).await?;
    expect_served(&sold.world.call_of(&by_hand, "GET", "/page").await?)?;
    sold.world.settle_for(cost(2)).await
}

#[tokio::test]
async fn an_owner_tests_an_upload_with_a_file_and_headers_as_a_call_sends_them() -> Result<()> {
    let sold = Uploads::start().await?;
    let (folder, service) = (TempDir::new()?, sold.api.id.to_string());
    let file = folder.path().join("a.png");
    fs::write(&file, every_byte())?;
    let file = file.to_str().context("the path is no text")?;
    let kind = "Content-Type: image/png";
    let image = ["api", "test", &service, "POST /images", "--body-file", file, "-H", kind];
    let tested = [&image[..], &["-H", "Accept-Language=de", "--json"]].concat();
    let told = farthing(&sold.world.owner, &tested).await?.ends_with(0)?.json()?;
    assert_eq!((&told["answered"], &told["would_charge"]), (&json!(true), &json!("0.002")), "{told}");

    let headers = json!({ "Content-Type": "image/png", "Accept-Language": "de" });
    let called = json!({ "headers": headers, "body_base64": encoded::to_text(&every_byte()) });
    expect_served(&sold.in_json("POST", "/images", &called).await?)?;
    let seen = sold.recorder.seen();
    let sent = |nth: usize| {
        let Seen { method, target, headers, body } = &seen[nth];
        let named = ["content-type", "accept-language"].map(|name| headers.get(name));
        (method.clone(), target.clone(), named.map(Option::<&HeaderValue>::cloned), body.clone())
    };
    assert_eq!(sent(0), sent(1), "the test sends what a call sends");
    assert_eq!((seen.len(), &seen[0].body[..]), (2, &every_byte()[..]));
    assert_eq!(seen[0].headers["accept-language"], "de");

    let both = [&image[..], &["--body", "{}"]].concat();
    farthing(&sold.world.owner, &both).await?.ends_with(2)?;
    let unknown = [&image[..], &["-H", "X-Mine: 1"]].concat();
    ensure!(farthing(&sold.world.owner, &unknown).await?.ends_with(2)?.err.contains("is not passed on"));
    assert_eq!(sold.recorder.hits(), 2, "what does not fit reaches no server");
    sold.world.settle_for(cost(1)).await
}
