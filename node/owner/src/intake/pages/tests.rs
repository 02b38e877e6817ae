//! Pages as documentation tools write them, reduced to what matters.

use super::*;

const PAGE: &str = "http://h/docs/index.html";

fn page(text: &str) -> Leads {
    leads(text, &Url::parse(PAGE).unwrap())
}

fn documents(text: &str) -> Vec<String> {
    page(text).documents.into_iter().map(String::from).collect()
}

#[test]
fn every_documentation_tool_tells_where_its_document_is() {
    for (tool, text, document) in [
        ("FastAPI", "const ui = SwaggerUIBundle({\n    url: '/openapi.json',\n", "http://h/openapi.json"),
        (
            "Swagger UI",
            r#"window.ui = SwaggerUIBundle({url: "v1/swagger.json", dom_id: "x"})"#,
            "http://h/docs/v1/swagger.json",
        ),
        ("Swagger UI", r#"urls: [{"url":"/a.json","name":"A"}]"#, "http://h/a.json"),
        (
            "springdoc",
            r#"{"configUrl":"/v3/api-docs/swagger-config","oauth2RedirectUrl":"http://h/x.html","url":"/v3/api-docs"}"#,
            "http://h/v3/api-docs/swagger-config",
        ),
        ("Redoc", r#"<redoc spec-url="/openapi.yaml"></redoc>"#, "http://h/openapi.yaml"),
        ("Redoc", "Redoc.init('../openapi.json', {}, el)", "http://h/openapi.json"),
        ("RapiDoc", r#"<rapi-doc spec-url = "spec.json" theme="dark">"#, "http://h/docs/spec.json"),
        (
            "Scalar",
            r#"<script id="api-reference" data-url="/openapi/v1.json"></script>"#,
            "http://h/openapi/v1.json",
        ),
        (
            "Scalar",
            r#"data-configuration="{&quot;spec&quot;:{&quot;url&quot;:&quot;/s.json&quot;}}""#,
            "http://h/s.json",
        ),
        ("Elements", r#"<elements-api apiDescriptionUrl="/e.yaml" router="hash">"#, "http://h/e.yaml"),
    ] {
        let found = documents(text);
        assert_eq!(found.first().map(String::as_str), Some(document), "{tool}: {found:?}");
    }
}

#[test]
fn addresses_of_other_things_are_not_taken_for_documents() {
    for text in [
        r#"validatorUrl: "https://validator""#,
        r#"oauth2RedirectUrl: '/docs/oauth2-redirect'"#,
        r#"<img src="/logo.png"> <a href="/url">"#,
        r#"url: "/style.css""#,
        r#"url: """#,
        r#"url: "two words""#,
        "it's a url: nothing is quoted here, isn't it",
        "url: \"unfinished",
        "é\"ü\"url",
    ] {
        assert_eq!(page(text), Leads::default(), "{text}");
    }
}

#[test]
fn a_page_may_name_the_script_that_configures_it() {
    let found =
        page(r#"<script src="./swagger-initializer.js" charset="UTF-8"></script><script src="ui.js">"#);
    assert_eq!(found.scripts, [Url::parse("http://h/docs/swagger-initializer.js").unwrap()]);
    assert!(found.documents.is_empty());
}

#[test]
fn a_script_may_hold_the_document_itself() {
    let text = "let options = {\n \"swaggerDoc\": {\n  \"openapi\": \"3.0.0\", \"paths\": {\"/a\": {}}\n },\n \"x\": 1 };";
    let document = page(text).embedded.unwrap();
    let document: serde_json::Value = serde_json::from_str(&document).unwrap();
    assert!(document["paths"]["/a"].is_object());
    assert_eq!(page("{\"openapi\": broken").embedded, None);
    assert_eq!(page("{\"a\": \"openapi\"}").embedded, None);
}

#[test]
fn a_page_gives_a_bounded_number_of_leads() {
    let text: String = (0..100).map(|n| format!("url: '/{n}.json'\n")).collect();
    assert_eq!(documents(&text).len(), LEADS_MAX);
}

#[test]
fn link_headers_are_read_by_relation() {
    let base = Url::parse("http://h/v1/").unwrap();
    let read = |header: &str| {
        linked(std::iter::once(header), &base).into_iter().map(String::from).collect::<Vec<_>>()
    };
    assert_eq!(read("</a,b.json>; rel=\"service-desc\"; title=\"a, b\""), ["http://h/a,b.json"]);
    assert_eq!(
        read(
            "<x>; rel=next, <spec.yaml>; type=\"text/yaml\"; REL=\"Service-Desc help\", </docs>;rel=service-doc"
        ),
        ["http://h/v1/spec.yaml", "http://h/docs"]
    );
    for nothing in
        ["", "<", "<>", "</a>; rel=stylesheet", "</a>", "a; rel=service-desc", "<a; rel=service-desc"]
    {
        assert!(read(nothing).is_empty(), "{nothing}");
    }
}

#[test]
fn a_catalog_leads_to_descriptions() {
    let base = Url::parse("http://h/.well-known/api-catalog").unwrap();
    let catalog = br#"{"linkset":[{"anchor":"http://h/a","service-desc":[{"href":"/a/spec","type":"application/yaml"}],
        "service-doc":[{"href":"https://other/docs"}]},{"anchor":"http://h/","item":[{"href":"http://h/b"}]}, 7]}"#;
    let found: Vec<_> = catalogued(catalog, &base).into_iter().map(String::from).collect();
    assert_eq!(found, ["http://h/a/spec", "https://other/docs", "http://h/b"]);
    for nothing in [&b"{}"[..], b"[]", b"no", br#"{"linkset":{}}"#] {
        assert!(catalogued(nothing, &base).is_empty());
    }
}
