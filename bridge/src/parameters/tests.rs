//! The promises of parameters: how each style is written and read, and what is refused.

use std::collections::BTreeMap;

use url::Url;

use crate::{
    Api, Call, HttpRequest, PlanError, Request,
    description::{
        ApiDescription, ArrayOf, Method, NumberBounds, Object, OneOf, Operation, Parameter, Place, Property,
        Schema, Shape, Style,
    },
};

fn parameter(name: &str, place: Place, style: Style, schema: Schema) -> Parameter {
    Parameter { name: name.into(), place, style, schema, ..Parameter::default() }
}

fn object(properties: Vec<(&str, bool, Schema)>) -> Schema {
    let property =
        |(name, required, schema): (&str, bool, Schema)| Property { name: name.into(), required, schema };
    Schema::of(Shape::Object(Object {
        properties: properties.into_iter().map(property).collect(),
        ..Object::default()
    }))
}

fn api(path: &str, parameters: Vec<Parameter>) -> Api {
    let operation = Operation {
        method: Method::Get,
        path: path.into(),
        id: "one".into(),
        parameters,
        ..Operation::default()
    };
    Api::new(ApiDescription { operations: vec![operation], ..ApiDescription::default() }).unwrap()
}

fn params(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn plan(api: &Api, path: &str, pairs: &[(&str, &str)]) -> Result<HttpRequest, PlanError> {
    let call = Call { method: "GET", path, params: &params(pairs), content_type: None, body: &[] };
    match api.plan(&call)?.request {
        Request::Http(request) => Ok(request),
        Request::Graphql(_) => panic!("this is no GraphQL field"),
    }
}

fn strings() -> Schema {
    Schema::array(Schema::string())
}

fn point() -> Schema {
    object(vec![("x", true, Schema::integer()), ("name", false, Schema::string())])
}

#[test]
fn lists_and_objects_are_written_in_their_style() {
    let filter = || {
        object(vec![
            ("mass", false, object(vec![("gt", false, Schema::number())])),
            ("ids", false, strings()),
        ])
    };
    for (style, schema, text, query) in [
        (Style::Comma, strings(), "a,b", "p=a,b"),
        (Style::Comma, strings(), r#"["a,b","c d"]"#, "p=a%2Cb,c%20d"),
        (Style::Comma, point(), r#"{"x":1,"name":"a,&=b"}"#, "p=x,1,name,a%2C%26%3Db"),
        (Style::Exploded, strings(), "a,b", "p=a&p=b"),
        (Style::Exploded, strings(), r#"["a,b"]"#, "p=a%2Cb"),
        (Style::Exploded, point(), r#"{"x":1,"name":"n"}"#, "x=1&name=n"),
        (Style::Space, strings(), "a,b", "p=a%20b"),
        (Style::Pipe, strings(), "a,b", "p=a%7Cb"),
        (Style::Pipe, strings(), r#"["a b","c"]"#, "p=a%20b%7Cc"),
        (Style::DeepObject, point(), r#"{"x":1,"name":"]&["}"#, "p%5Bx%5D=1&p%5Bname%5D=%5D%26%5B"),
        (
            Style::DeepObject,
            filter(),
            r#"{"mass":{"gt":1.50},"ids":["a","b"]}"#,
            "p%5Bmass%5D%5Bgt%5D=1.50&p%5Bids%5D=a&p%5Bids%5D=b",
        ),
        (Style::Json, point(), r#"{ "x":1 }"#, "p=%7B%20%22x%22%3A1%20%7D"),
        (Style::Json, Schema::integer(), "7", "p=7"),
        (Style::Comma, filter(), r#"{"mass":{"gt":1}}"#, "p=mass,%7B%22gt%22%3A1%7D"),
        (Style::Comma, Schema::integer(), "7", "p=7"),
        (Style::DeepObject, Schema::string(), "a b", "p=a%20b"),
        (Style::Comma, Schema::default(), "[1, 2", "p=%5B1%2C%202"),
        (Style::Comma, Schema::array(Schema::integer().or_null()), "1,null", "p=1,null"),
    ] {
        let api = api("/a", vec![parameter("p", Place::Query, style, schema)]);
        let request = plan(&api, "/a", &[("p", text)]).unwrap();
        assert_eq!(request.query, query, "{style:?} {text}");
        // What is written is read as the same.
        let read = api.params_of("GET", "/a", &request.query).unwrap();
        let again: Vec<_> = read.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
        assert_eq!(plan(&api, "/a", &again).unwrap().query, query, "{style:?} {text} {read:?}");
    }
}

#[test]
fn paths_and_headers_have_their_styles() {
    for (style, schema, text, segment, header) in [
        (Style::Comma, strings(), "a,b", "a,b", "a,b"),
        (Style::Comma, strings(), r#"["a?b","c d"]"#, "a%3Fb,c%20d", "a?b,c d"),
        (Style::Comma, point(), r#"{"x":1,"name":"n"}"#, "x,1,name,n", "x,1,name,n"),
        (Style::Exploded, strings(), "a,b", "a,b", "a,b"),
        (Style::Exploded, point(), r#"{"x":1,"name":"n"}"#, "x=1,name=n", "x=1,name=n"),
        (Style::Json, point(), r#"{"x":1}"#, "%7B%22x%22%3A1%7D", r#"{"x":1}"#),
        (Style::Comma, Schema::string(), "a,b", "a%2Cb", "a,b"),
    ] {
        let api = api(
            "/a/{p}.json",
            vec![
                parameter("p", Place::Path, style, schema.clone()),
                parameter("X-P", Place::Header, style, schema),
            ],
        );
        let request = plan(&api, "/a/{p}.json", &[("p", text), ("X-P", text)]).unwrap();
        assert_eq!(request.segments, ["a".to_owned(), format!("{segment}.json")]);
        assert_eq!(request.headers, [("x-p".to_owned(), header.to_owned())]);
        request.url(&Url::parse("http://h/base").unwrap()).unwrap();
    }
}

#[test]
fn what_a_style_cannot_write_is_refused() {
    let any_object =
        || Schema::of(Shape::Object(Object { additional: Some(Box::default()), ..Object::default() }));
    for (place, style, schema, text, expected) in [
        (Place::Query, Style::Comma, strings(), "[]", "at least one value in every list"),
        (Place::Query, Style::Exploded, strings(), "[]", "at least one value in every list"),
        (
            Place::Query,
            Style::DeepObject,
            any_object(),
            r#"{"a":{"b":[]}}"#,
            "at least one value in every list",
        ),
        (Place::Query, Style::Space, strings(), r#"["a b"]"#, "items without blanks"),
        (Place::Query, Style::Pipe, strings(), r#"["a|b"]"#, "items without |"),
        (Place::Header, Style::Comma, strings(), r#"["a,b"]"#, "items without commas"),
        (Place::Header, Style::Comma, strings(), r#"["a\nb"]"#, "printable ASCII"),
        (Place::Header, Style::Comma, any_object(), r#"{"a\r\nb":1}"#, "printable ASCII"),
        (Place::Path, Style::Comma, strings(), r#"["a",".."]"#, "without the segments"),
        (Place::Path, Style::Comma, strings(), r#"["a","\u0000"]"#, "without control"),
        (
            Place::Query,
            Style::Exploded,
            any_object(),
            r#"{"other":1}"#,
            "`p.other` is given twice: as a member",
        ),
    ] {
        let path = if place == Place::Path { "/a/{p}" } else { "/a" };
        let other = parameter("other", Place::Query, Style::Comma, Schema::string());
        let api = api(path, vec![parameter("p", place, style, schema), other]);
        let error = plan(&api, path, &[("p", text)]).unwrap_err().to_string();
        assert!(error.contains(expected), "{place:?} {style:?} {text}: {error}");
    }
}

#[test]
fn an_object_is_given_whole_or_in_parts() {
    let mass = object(vec![("gt", true, Schema::number()), ("lt", false, Schema::number())]);
    let filter = object(vec![
        ("mass", false, mass),
        ("name", false, Schema::string()),
        ("ids", false, Schema::array(Schema::integer())),
        ("any", false, Schema::default()),
    ]);
    let api = api(
        "/a",
        vec![
            parameter("filter", Place::Query, Style::Json, filter),
            parameter("filter.name", Place::Query, Style::Comma, Schema::integer()),
            parameter("n", Place::Query, Style::Comma, Schema::integer()),
        ],
    );
    let url = |pairs: &[(&str, &str)]| {
        crate::escape::decode(&plan(&api, "/a", pairs).unwrap().query).unwrap().into_owned()
    };
    assert_eq!(
        url(&[("filter.mass.gt", "1.50"), ("filter.ids", "1,2"), ("filter.any", "5")]),
        r#"filter={"mass":{"gt":1.50},"ids":[1,2],"any":"5"}"#
    );
    // A declared name is itself, whatever it looks like.
    assert_eq!(url(&[("filter.name", "7")]), "filter.name=7");
    assert_eq!(url(&[("filter.mass", r#"{"gt":1}"#)]), r#"filter={"mass":{"gt":1}}"#);
    for (pairs, expected) in [
        (&[("filter.mas.gt", "1")][..], "`filter` has no `mas`; did you mean `mass`?"),
        (&[("filter.mass.lt", "1")], "missing `filter.mass.gt`"),
        (&[("filter.mass.gt", "1,5")], "`filter.mass.gt` is `1,5`, expected a number such as 4.5"),
        (
            &[("filter.ids", "1,x,y")],
            "`filter.ids[1]` is `x`, expected a whole number such as 7; `filter.ids[2]` is `y`, expected a whole number such as 7",
        ),
        (
            &[("filter.ids.0", "1")],
            "`filter.ids` was given in parts that do not fit, expected a list, as a JSON array or separated by commas",
        ),
        (
            &[("filter", "{}"), ("filter.mass.gt", "1")],
            "`filter` is given twice: whole and in parts; give it once",
        ),
        (
            &[("filter.mass", "{}"), ("filter.mass.gt", "1")],
            "`filter.mass` is given twice: whole and in parts; give it once",
        ),
        (&[("n.x", "1")], "`n.x` is not a parameter of this operation; did you mean `n`?"),
        (&[("filter.", "1")], "`filter.` is not a parameter of this operation; did you mean `filter`?"),
        (&[("filter..gt", "1")], "`filter` has no ``; it takes `mass`, `name`, `ids`, `any`"),
        (&[("filter", "{\"mass\":1}")], "`filter.mass` is `1`, expected an object, as JSON"),
        (&[("filter", "{\"name\":null}")], "`filter.name` is `null`, expected text"),
        (
            &[("filter", "{\"name\":\"a\",\"name\":\"b\"}")],
            "`filter` is `{\"name\":\"a\",\"name\":\"b\"}`, expected JSON (a name occurs twice at byte 12)",
        ),
    ] {
        assert_eq!(plan(&api, "/a", pairs).unwrap_err().to_string(), expected);
    }
}

#[test]
fn a_query_string_becomes_params() {
    let filter = object(vec![
        ("mass", false, object(vec![("gt", false, Schema::number())])),
        ("tags", false, strings()),
    ]);
    let page = object(vec![("limit", false, Schema::integer()), ("offset", false, Schema::integer())]);
    let either =
        Schema::of(Shape::OneOf(OneOf { variants: vec![Schema::string(), strings()], discriminator: None }));
    let api = api(
        "/a/{id}",
        vec![
            parameter("ids", Place::Query, Style::Exploded, Schema::array(Schema::integer())),
            parameter("words", Place::Query, Style::Comma, strings()),
            parameter("f", Place::Query, Style::DeepObject, filter),
            parameter("page", Place::Query, Style::Exploded, page),
            parameter("state", Place::Query, Style::Exploded, either),
            parameter("raw[]", Place::Query, Style::Exploded, strings()),
            parameter("q", Place::Query, Style::Comma, Schema::string()),
        ],
    );
    for (query, expected) in [
        ("", &[][..]),
        ("q=a+b%2Bc", &[("q", "a b+c")]),
        ("q", &[("q", "")]),
        ("&&q=1&", &[("q", "1")]),
        ("ids=1&ids=2", &[("ids", "[1,2]")]),
        ("ids[]=1&ids[]=x", &[("ids", "[1,\"x\"]")]),
        ("ids=1,2", &[("ids", "[1,2]")]),
        ("words=a%2Cb,c", &[("words", "[\"a,b\",\"c\"]")]),
        ("words=1&words=true", &[("words", "[\"1\",\"true\"]")]),
        ("f[mass][gt]=1.5", &[("f.mass.gt", "1.5")]),
        ("f%5Btags%5D%5B%5D=a&f%5Btags%5D%5B%5D=b", &[("f.tags", "[\"a\",\"b\"]")]),
        ("f.mass.gt=2", &[("f.mass.gt", "2")]),
        ("limit=5&offset=7", &[("page.limit", "5"), ("page.offset", "7")]),
        ("state=a", &[("state", "a")]),
        ("state=a&state=b", &[("state", "[\"a\",\"b\"]")]),
        ("raw[]=a", &[("raw[]", "[\"a\"]")]),
        ("unknown=1&f2[x]=2", &[("unknown", "1"), ("f2[x]", "2")]),
    ] {
        assert_eq!(api.params_of("get", "/a/7", query).unwrap(), params(expected), "{query}");
    }
    for (query, expected) in [
        ("q=1&q=2", "`q` is given twice: in the query; give it once"),
        ("f[mass][gt]=1&f.mass.gt=2", "`f.mass.gt` is given twice: in the query; give it once"),
        ("unknown=1&unknown=2", "`unknown` is given twice: in the query; give it once"),
        ("q=%zz", "`the query` is `q=%zz`, expected percent escapes of UTF-8 text"),
        ("%ff=1", "`the query` is `%ff=1`, expected percent escapes of UTF-8 text"),
    ] {
        assert_eq!(api.params_of("GET", "/a/7", query).unwrap_err().to_string(), expected);
    }
    assert!(api.params_of("GET", "/b", "").is_err());
}

#[test]
fn lists_have_their_bounds() {
    let bounded = Schema::of(Shape::Array(Box::new(ArrayOf {
        items: Schema::of(Shape::Integer(NumberBounds {
            minimum: Some(0.into()),
            maximum: Some(10.into()),
            maximum_is_exclusive: true,
            ..NumberBounds::default()
        })),
        items_min: Some(2),
        items_max: Some(3),
    })));
    let api = api("/a", vec![parameter("p", Place::Query, Style::Comma, bounded)]);
    for (text, expected) in [
        ("1", Some("`p` has 1 items, expected 2 to 3")),
        ("0,9", None),
        ("1,2,3", None),
        ("1,2,3,4", Some("`p` has 4 items, expected 2 to 3")),
        ("[1,10]", Some("`p[1]` is `10`, expected a whole number of at least 0 and below 10")),
        ("-1,1", Some("`p[0]` is `-1`, expected a whole number of at least 0 and below 10")),
        ("[\"1\",2]", Some("`p[0]` is `\"1\"`, expected a whole number of at least 0 and below 10")),
        ("1, 2", Some("`p[1]` is ` 2`, expected a whole number of at least 0 and below 10")),
        ("", Some("`p` is ``, expected a list, as a JSON array or separated by commas")),
        ("[1,2", Some("`p` is `[1,2`, expected JSON (a comma or ] is missing at byte 4)")),
    ] {
        let outcome = plan(&api, "/a", &[("p", text)]).map_err(|error| error.to_string()).err();
        assert_eq!(outcome.as_deref(), expected, "{text}");
    }
}

#[test]
fn a_name_that_the_caller_chooses_is_no_other_parameters() {
    let any = |properties| match object(properties) {
        Schema { shape: Shape::Object(object), .. } => {
            Schema::of(Shape::Object(Object { additional: Some(Box::default()), ..object }))
        }
        other => other,
    };
    let bounded = |maximum: u32| {
        let bounds = NumberBounds { maximum: Some(maximum.into()), ..NumberBounds::default() };
        Schema::of(Shape::Integer(bounds))
    };
    let query = |name, style, schema| parameter(name, Place::Query, style, schema);
    let one_of = |variants| Schema::of(Shape::OneOf(OneOf { variants, discriminator: None }));
    let api = api(
        "/a",
        vec![
            query("size", Style::Exploded, bounded(100)),
            query(
                "filter",
                Style::DeepObject,
                any(vec![("page", false, any(vec![("size", false, bounded(100))]))]),
            ),
            query("a", Style::Exploded, any(vec![("limit", false, bounded(100))])),
            query("b", Style::Exploded, any(vec![])),
            query("filter[literal]", Style::Exploded, bounded(100)),
            query(
                "c",
                Style::Exploded,
                one_of(vec![Schema::string(), any(vec![("either", false, bounded(100))])]),
            ),
            parameter("name", Place::Header, Style::Exploded, any(vec![])),
        ],
    );
    for given in [
        [("filter.page][size", "100000")].as_slice(),
        &[("filter.page.x[y", "1")],
        &[("b.limit", "100000")],
        &[("b.limit[0]", "100000")],
        &[("b.size[]", "100000")],
        &[("b.filter[page][size]", "100000")],
        &[("b.Limit", "100000")],
        &[("b.either", "100000")],
        &[("filter.literal", "100000")],
        &[("a.other", "1"), ("b.other", "2")],
    ] {
        let refused = plan(&api, "/a", given);
        assert!(refused.is_err(), "{given:?}: {refused:?}");
    }
    let refused = plan(&api, "/a", &[("name.x=1", "1")]).unwrap_err().to_string();
    assert!(refused.contains("without = in their names"), "{refused}");
    let given = [
        ("b.name", "7"),
        ("filter.page.size", "100"),
        ("filter.x", "1"),
        ("a.limit", "7"),
        ("a.z", "1"),
        ("b.y[0]", "2"),
    ];
    let query = plan(&api, "/a", &given).unwrap().query;
    assert_eq!(query, "filter%5Bx%5D=1&filter%5Bpage%5D%5Bsize%5D=100&z=1&limit=7&name=7&y%5B0%5D=2");
    let open = Operation {
        method: Method::Get,
        path: "/a".into(),
        parameters: api.description().operations[0].parameters.clone(),
        any_params: true,
        ..Operation::default()
    };
    let open = Api::new(ApiDescription { operations: vec![open], ..ApiDescription::default() }).unwrap();
    for (name, is_right) in [
        ("limit", false),
        ("filter[page][size]", false),
        ("size[]", false),
        ("_method", false),
        ("_Method[]", false),
        ("X-HTTP-Method-Override", false),
        ("[limit]", false),
        ("]_method", false),
        (".method", false),
        ("[", false),
        ("method", true),
        ("other", true),
    ] {
        assert_eq!(plan(&open, "/a", &[(name, "100000")]).is_ok(), is_right, "{name}");
    }
}
