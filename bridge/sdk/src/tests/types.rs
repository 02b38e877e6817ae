//! What becomes of schemas: widths, unions, recursion, pages.

use super::*;
use crate::model::{Enum, Kind, Model, Pace, Type, Width};

fn model(description: &ApiDescription) -> (Model, Vec<String>) {
    let mut warnings = Vec::new();
    let model = Model::new(description, &mut warnings);
    (model, warnings)
}

fn schemas(schemas: &str) -> Model {
    let document = format!(
        r##"{{"openapi": "3.1.0", "info": {{"title": "T", "version": "1"}},
        "paths": {{"/a": {{"get": {{"responses": {{"200": {{"description": "", "content": {{"application/json":
        {{"schema": {{"$ref": "#/components/schemas/A"}}}}}}}}}}}}}}}},
        "components": {{"schemas": {schemas}}}}}"##
    );
    model(&openapi::read(document.as_bytes()).expect(schemas).description).0
}

fn members(model: &Model, hint: &str) -> Vec<(String, Type)> {
    let declared = model.types.iter().find(|declared| declared.hint == hint).expect(hint);
    let Kind::Object(object) = &declared.kind else { panic!("{hint} is no object") };
    object.members.iter().map(|member| (member.wire.clone(), member.of.clone())).collect()
}

#[test]
fn integers_are_as_wide_as_they_are_declared() {
    let model = schemas(
        r#"{"A": {"type": "object", "properties": {
            "a": {"type": "integer"}, "b": {"type": "integer", "format": "int32"},
            "c": {"type": "integer", "minimum": 0, "maximum": 2147483647}, "d": {"type": "integer", "minimum": 0, "maximum": 2147483648},
            "e": {"type": "integer", "minimum": 0, "maximum": 9007199254740992}, "f": {"type": "integer", "format": "uint64"},
            "g": {"type": "integer", "format": "uint32"}, "h": {"type": "integer", "minimum": 0}}}}"#,
    );
    let widths: Vec<Type> = members(&model, "A").into_iter().map(|(_, of)| of).collect();
    let expected =
        [Width::I64, Width::I32, Width::I32, Width::I53, Width::I64, Width::U64, Width::I53, Width::I64];
    assert_eq!(widths, expected.map(Type::Integer));
}

#[test]
fn what_holds_itself_is_told_apart_from_lists_of_itself() {
    let model = schemas(
        r##"{"A": {"type": "object", "properties": {
            "own": {"$ref": "#/components/schemas/A"}, "tree": {"$ref": "#/components/schemas/Tree"}, "b": {"$ref": "#/components/schemas/B"}}},
            "B": {"type": "object", "properties": {"c": {"$ref": "#/components/schemas/C"}}},
            "C": {"type": "object", "properties": {"b": {"$ref": "#/components/schemas/B"}}},
            "Tree": {"type": "object", "properties": {"children": {"type": "array", "items": {"$ref": "#/components/schemas/Tree"}}}}}"##,
    );
    let recursive: BTreeMap<_, _> = model.types.iter().map(|t| (t.hint.as_str(), t.recursive)).collect();
    assert_eq!(recursive, [("A", true), ("B", true), ("C", true), ("Tree", false)].into());
}

#[test]
fn a_list_that_holds_itself_is_any_json_and_said_to_be() {
    let (model, warnings) = model(&nasty());
    // `Loose` is a union, which has a name to hold itself by.
    assert!(model.types.iter().any(|declared| declared.hint == "Loose"));
    assert!(warnings.is_empty(), "{warnings:?}");
    let list = r##"{"A": {"type": "array", "items": {"$ref": "#/components/schemas/A"}}}"##;
    assert_eq!(schemas(list).operations[0].answer.of, Type::Array(Box::new(Type::Any)));
}

#[test]
fn alternatives_within_alternatives_are_alternatives() {
    let model = schemas(
        r##"{"A": {"oneOf": [{"type": "string"}, {"oneOf": [{"type": "integer"}, {"type": "string"}, {"$ref": "#/components/schemas/A"}, {"type": "null"}]}]}}"##,
    );
    let union = model.types.iter().find(|declared| declared.hint == "A").unwrap();
    let Kind::Union(union) = &union.kind else { panic!("no union") };
    let kinds: Vec<Type> = union.variants.iter().map(|variant| variant.of.clone()).collect();
    assert_eq!(kinds, [Type::Text, Type::Integer(Width::I64)]);
    assert!(matches!(model.operations[0].answer.of, Type::Nullable(_)));
}

/// How many unions that are tried stand within each other from a type down, as far as a chain of 20 goes.
fn trials(model: &Model, index: usize, left: usize) -> usize {
    let declared = &model.types[index];
    let own = match &declared.kind {
        Kind::Union(union) => usize::from(union.discriminator.is_none() && union.variants.len() > 1),
        _ => 0,
    };
    let held = declared.holds().filter_map(Type::declared);
    own + if left == 0 { 0 } else { held.map(|held| trials(model, held, left - 1)).max().unwrap_or_default() }
}

#[test]
fn no_answer_is_read_in_more_ways_than_its_alternatives_within_alternatives() {
    let variant = |name: &str, of: &str| {
        format!(
            r##""{name}": {{"type": "object", "required": ["m", "{name}"], "properties": {{"m": {{"$ref": "#/components/schemas/{of}"}}, "{name}": {{}}}}}}"##
        )
    };
    let union = |name: &str, variants: [&str; 2]| {
        let [one, other] =
            variants.map(|variant| format!(r##"{{"$ref": "#/components/schemas/{variant}"}}"##));
        format!(r#""{name}": {{"oneOf": [{one}, {other}]}}"#)
    };
    let within_itself = [union("A", ["T", "U"]), variant("T", "A"), variant("U", "A")].join(",");
    let mut chain = Vec::new();
    for n in 0..8 {
        let [name, one, other, below] =
            [format!("A{n}"), format!("T{n}"), format!("U{n}"), format!("A{}", n + 1)];
        chain.extend([union(&name, [&one, &other]), variant(&one, &below), variant(&other, &below)]);
    }
    chain.push(r##""A8": {"type": "string"}, "A": {"$ref": "#/components/schemas/A0"}"##.to_owned());
    // Types that hold each other hide how deep they are.
    let around = r##""B": {"type": "object", "properties": {"c": {"$ref": "#/components/schemas/C"}}},
        "C": {"type": "object", "properties": {"b": {"$ref": "#/components/schemas/B"}, "a": {"$ref": "#/components/schemas/A3"}}}"##;
    let hidden = chain.join(",").replace(r##""#/components/schemas/A3""##, r##""#/components/schemas/B""##);
    let hidden = format!("{hidden},{around}");
    for (what, described) in
        [("within itself", within_itself), ("a chain", chain.join(",")), ("hidden", hidden)]
    {
        let model = schemas(&format!("{{{described}}}"));
        let deepest = (0..model.types.len()).map(|index| trials(&model, index, 20)).max();
        assert_eq!(deepest, Some(if what == "within itself" { 1 } else { 2 }), "{what}");
    }
}

#[test]
fn a_form_with_files_is_an_object_of_parts_and_the_same_schema_in_json_is_not() {
    let document = r##"{"openapi": "3.1.0", "info": {"title": "T", "version": "1"}, "paths": {
        "/a": {"post": {"responses": {"200": {"description": "d"}}, "requestBody": {"content": {"multipart/form-data": {"schema": {"$ref": "#/components/schemas/Photo"}}}}}},
        "/b": {"put": {"responses": {"200": {"description": "d"}}, "requestBody": {"content": {"Multipart/Form-Data": {"schema": {"$ref": "#/components/schemas/Photo"}}}}}},
        "/c": {"post": {"responses": {"200": {"description": "d"}}, "requestBody": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Photo"}}}}}},
        "/d": {"post": {"responses": {"200": {"description": "d"}}, "requestBody": {"content": {"multipart/form-data": {}}}}},
        "/e": {"post": {"responses": {"200": {"description": "d"}}, "requestBody": {"content": {"image/png": {}, "image/gif": {}}}}},
        "/f": {"post": {"responses": {"200": {"description": "d"}}, "requestBody": {"content": {"application/yaml": {}}}}}},
        "components": {"schemas": {
            "Bytes": {"type": "string", "format": "binary"},
            "Photo": {"type": "object", "required": ["photo"], "properties": {
                "photo": {"$ref": "#/components/schemas/Bytes"},
                "more": {"type": "array", "items": {"type": "string", "format": "binary"}},
                "tags": {"type": "array", "items": {"type": "string"}},
                "note": {"type": ["string", "null"]}}}}}}"##;
    let description = openapi::read(document.as_bytes()).expect("it is valid").description;
    let (model, warnings) = model(&description);
    assert_eq!(warnings, [""; 0]);
    let body = |path: &str| {
        let operation = model.operations.iter().find(|operation| operation.path == path).expect(path);
        operation.body.as_ref().expect("it has a body")
    };
    let file = || Type::Upload;
    let text = || Type::Text;
    for (path, is_form, expected) in [
        ("/a", true, [file(), Type::Array(Box::new(file())), Type::Array(Box::new(text())), text()]),
        (
            "/c",
            false,
            [text(), Type::Array(Box::new(text())), Type::Array(Box::new(text())), text().or_null()],
        ),
    ] {
        let declared = &model.types[body(path).of.declared().expect("it is declared")];
        let (Kind::Object(object) | Kind::Parts(object)) = &declared.kind else {
            panic!("{path} is no object")
        };
        assert_eq!(matches!(declared.kind, Kind::Parts(_)), is_form, "{path}");
        assert_eq!(declared.hint, "Photo");
        assert_eq!(
            object.members.iter().map(|member| member.of.clone()).collect::<Vec<_>>(),
            expected,
            "{path}"
        );
    }
    assert_eq!(body("/a").of, body("/b").of, "a form is declared once");
    assert_eq!(body("/d").of, Type::Map(Box::new(Type::Upload)));
    assert_eq!(body("/e").of, Type::Bytes);
    assert_eq!(body("/f").of, Type::Text);
    assert!(body("/b").has_parts() && body("/d").has_parts() && !body("/c").has_parts());
}

#[test]
fn every_language_writes_forms_where_there_are_some_and_nothing_for_them_elsewhere() {
    let sizes = include_bytes!("../../../../demo-services/src/image_size/openapi.json");
    let sizes = farthing_bridge::read(sizes).expect("it is valid").description;
    for language in Language::all() {
        for single_file in [false, true] {
            let options = Options { single_file, ..options() };
            let speaks = |description: &ApiDescription| {
                let text = all_text(&generate(description, language, &options).unwrap());
                assert!(text.contains("body_base64") && !text.contains("must be UTF-8 text"), "{language}");
                text.contains("form-data; boundary=") && text.contains("%0D")
            };
            assert!(speaks(&sizes), "{language}");
            assert!(!speaks(&nasty()), "{language}");
        }
    }
}

#[test]
fn choices_are_enums_of_texts_or_of_whole_numbers() {
    let model = schemas(
        r#"{"A": {"type": "object", "properties": {
            "t": {"enum": ["a", "b", null]}, "n": {"enum": [1, 2]}, "b": {"enum": [true]}, "f": {"enum": [1.5]}, "m": {"enum": ["a", 1]}}}}"#,
    );
    let members = members(&model, "A");
    assert!(matches!(&members[0].1, Type::Nullable(of) if matches!(**of, Type::Declared(_))), "{members:?}");
    assert_eq!(members[2].1, Type::Boolean);
    assert_eq!(members[3].1, Type::Number);
    let enums: Vec<usize> = model
        .types
        .iter()
        .filter_map(|declared| match &declared.kind {
            Kind::Enum(Enum::Texts(texts)) => Some(texts.len()),
            Kind::Enum(Enum::Integers(numbers)) => Some(10 * numbers.len()),
            _ => None,
        })
        .collect();
    assert_eq!(enums, [2, 20]);
}

#[test]
fn pages_are_found_by_their_parameters_and_answers() {
    let (model, _) = model(&nasty());
    let pace = |id: &str| {
        let operation = model.operations.iter().find(|operation| operation.id == id).expect(id);
        operation.paging.as_ref().map(|paging| paging.pace.clone())
    };
    assert!(matches!(pace("list"), Some(Pace::Cursor { more: Some(_), .. })), "{:?}", pace("list"));
    assert_eq!(pace("pages"), Some(Pace::Page { first: 1 }));
    assert_eq!(pace("offsets"), Some(Pace::Offset { first: 0 }));
    assert!(
        matches!(pace("search"), Some(Pace::Cursor { next, .. }) if next.len() == 2),
        "{:?}",
        pace("search")
    );
    assert_eq!(pace("class"), None);
}

#[test]
fn a_chain_of_thousands_of_types_is_no_danger() {
    const TYPES: usize = 5_000;
    let mut description = ApiDescription::default();
    for index in 0..TYPES {
        let next = (index + 1) % TYPES;
        let of = description::Schema::reference(description::SchemaId(u32::try_from(next).unwrap()));
        let list = description::Schema::array(of.clone());
        let property =
            |name: &str, schema| description::Property { name: name.into(), required: true, schema };
        let object = description::Object { properties: vec![property("next", of)], ..Default::default() };
        let schema = description::Schema::of(description::Shape::Object(object));
        // Every other chain is of lists, which have no names to stop at.
        let schema = if index % 1_000 < 500 { schema } else { list };
        description.schemas.push(description::NamedSchema { name: format!("T{index}"), schema });
    }
    let answer = description::Content {
        media_type: "application/json".into(),
        schema: description::Schema::reference(description::SchemaId(0)),
        ..Default::default()
    };
    description.operations.push(description::Operation {
        path: "/a".into(),
        id: "a".into(),
        responses: vec![description::Response {
            status: description::Status::Code(200),
            description: String::new(),
            content: Some(answer),
        }],
        ..Default::default()
    });
    let (model, warnings) = model(&description);
    assert!(model.types.len() >= 500, "{}", model.types.len());
    assert!(!warnings.is_empty());
}

#[test]
fn a_type_of_a_graphql_schema_is_one_type_wherever_it_is_selected() {
    let schema = include_bytes!("../../benches/planets.graphql");
    let (model, _) = model(&farthing_bridge::read(schema).expect("it is a schema").description);
    let named = |hint: &str| -> Vec<_> {
        model
            .types
            .iter()
            .filter(|declared| declared.hint.trim_end_matches(char::is_numeric) == hint)
            .collect()
    };
    for hint in ["Planet", "Star", "Facility", "Note", "Discovery", "Position"] {
        assert_eq!(named(hint).len(), 1, "{hint}: {:?}", named(hint));
    }
    // What `rankedPlanets` selects of a star, and what `star` does.
    let star = members(&model, "Star");
    assert!(
        ["spectralType", "planets"].iter().all(|name| star.iter().any(|(wire, _)| wire == name)),
        "{star:?}"
    );
    let selections = model.operations.iter().flat_map(|operation| &operation.parameters);
    let mut selections = selections.filter(|parameter| parameter.wire == "fields").peekable();
    assert!(selections.peek().is_some() && selections.all(|parameter| parameter.of == Type::Text));
}

#[test]
fn members_that_differ_between_two_selections_are_any_json_and_names_that_lead_in_circles_end() {
    let mut description = samples::graphql();
    let id = |id: usize| description::Schema {
        title: "T".into(),
        ..description::Schema::reference(description::SchemaId(u32::try_from(id).unwrap()))
    };
    let property = |name: &str, schema| description::Property { name: name.into(), required: true, schema };
    let first = description.schemas.len();
    for (index, member) in
        [description::Schema::integer(), description::Schema::string()].into_iter().enumerate()
    {
        let properties = vec![property("a", member), property("own", id(first + 1 - index))];
        let object = description::Object { properties, ..Default::default() };
        let schema = description::Schema::of(description::Shape::Object(object));
        description.schemas.push(description::NamedSchema { name: format!("T{index}"), schema });
    }
    let operation = description.operations.iter_mut().find(|operation| operation.root.is_some()).unwrap();
    let content = operation.responses.iter_mut().find_map(|response| response.content.as_mut()).unwrap();
    content.schema = description::Schema::array(id(first));
    let (model, _) = model(&description);
    let of = |wire: &str| members(&model, "T").into_iter().find(|(name, _)| name == wire).unwrap().1;
    assert_eq!(of("a").bare(), &Type::Any);
    assert!(matches!(of("own").bare(), Type::Declared(_)));
}

#[test]
fn the_choice_of_fields_is_a_text_with_commas_in_every_language() {
    let planets =
        farthing_bridge::read(include_bytes!("../../benches/planets.graphql")).expect("it is valid");
    let (model, _) = model(&planets.description);
    let choices: Vec<_> = model
        .operations
        .iter()
        .flat_map(|operation| &operation.parameters)
        .filter(|parameter| parameter.wire == "fields")
        .collect();
    assert!(choices.len() > 5, "{}", choices.len());
    for choice in choices {
        assert_eq!((&choice.of, choice.json), (&Type::Text, false), "{}", choice.doc);
    }
}
