//! Operations as callers see them: what is offered, what is promised, and that the promise can be kept.

use serde_json::{Value, json};

use super::*;
use crate::{
    fits::fits,
    graphql::{
        Planner, prune,
        schema::TypeKind,
        selection::{Selection, possible_types},
        testing::{SKY, api, sky},
    },
};

#[test]
fn every_root_field_is_an_operation_or_has_a_reason_in_the_report() {
    let sky = sky();
    let lines: Vec<_> = sky
        .description
        .operations
        .iter()
        .map(|operation| {
            let parameters: Vec<_> = operation
                .parameters
                .iter()
                .map(|parameter| format!("{}{}", parameter.name, if parameter.required { "!" } else { "" }))
                .collect();
            format!("{} {} ({}) {}", operation.method, operation.path, operation.id, parameters.join(" "))
        })
        .collect();
    let skipped: Vec<_> = sky.report.skipped.list.iter().map(ToString::to_string).collect();
    insta::assert_snapshot!([lines, skipped].concat().join("\n"));
    assert_eq!(sky.report.bridged, sky.description.operations.len());
}

#[test]
fn arguments_are_described_as_a_caller_writes_them() {
    let sky = sky();
    let values = &sky.description.operations[sky.index("values")];
    let shown: Vec<_> = values
        .parameters
        .iter()
        .map(|parameter| {
            let schema = serde_json::to_string(&parameter.schema).unwrap();
            format!("{} {:?} {schema}", parameter.name, parameter.style)
        })
        .collect();
    insta::assert_snapshot!(shown.join("\n"));
    let defaults = |id: &str, name: &str| {
        let operation = &sky.description.operations[sky.index(id)];
        operation.parameters.iter().find(|parameter| parameter.name == name).unwrap().schema.default.clone()
    };
    assert_eq!(defaults("planets", "limit"), Some(json!(10)), "shown, not sent");
    assert_eq!(defaults("page", "first"), Some(json!(20)), "what is sent without it");
    assert_eq!(defaults("limited", "first"), Some(json!(5)));
}

#[test]
fn words_of_the_schema_are_shown() {
    let sky = sky();
    let planets = &sky.description.operations[sky.index("planets")];
    assert_eq!((planets.summary.as_str(), planets.method), ("Planets known.", Method::Get));
    assert!(planets.description.contains("More words."));
    let old = &sky.description.operations[sky.index("old")];
    assert!(old.deprecated && old.description == "Deprecated: use count");
    let note = &sky.description.operations[sky.index("note")];
    assert_eq!((note.method, note.root.as_ref().unwrap().kind), (Method::Post, RootKind::Mutation));
    assert!(note.body.as_ref().is_some_and(|body| body.required));
    assert_eq!(note.parameters[0].style, crate::description::Style::Comma);
}

/// What an upstream could answer to a selection: every list has one item, every nullable value is now and then
/// null, and of an interface or union it is the `turn`th type.
fn made_up(schema: &GraphqlSchema, ty: &TypeRef, selection: Option<&Selection>, turn: usize) -> Value {
    match ty {
        TypeRef::NonNull(inner) => made_up_value(schema, inner, selection, turn),
        _ if turn % 7 == 6 => Value::Null,
        _ => made_up_value(schema, ty, selection, turn),
    }
}

fn made_up_value(schema: &GraphqlSchema, ty: &TypeRef, selection: Option<&Selection>, turn: usize) -> Value {
    if let TypeRef::List(item) = ty {
        return json!([made_up(schema, item, selection, turn)]);
    }
    let on = schema.get(ty.named()).unwrap();
    let Some(selection) = selection else {
        return match &on.kind {
            TypeKind::Enum(choices) => choices.values[turn % choices.values.len()].name.as_str().into(),
            TypeKind::Scalar(_) => match on.name.as_str() {
                "Int" => json!(7),
                "Float" => json!(1.5),
                "Boolean" => json!(true),
                "String" | "ID" => json!("text"),
                // Its name tells how a caller's text is read, and nothing of how the service writes it.
                _ => [json!("text"), json!(1.5), json!({ "a": [true] })][turn % 3].clone(),
            },
            _ => panic!("{} needs a selection", on.name),
        };
    };
    let concrete = match possible_types(schema, ty.named()) {
        Some(possible) => possible[turn % possible.len()],
        None => ty.named(),
    };
    let mut object = serde_json::Map::new();
    if selection.typename {
        object.insert("__typename".into(), schema.get(concrete).unwrap().name.as_str().into());
    }
    let fragments = selection.fragments.iter().filter(|fragment| fragment.on == concrete);
    for part in std::iter::once(selection).chain(fragments) {
        for (i, (selected, field)) in part.declared(schema).enumerate() {
            let value = made_up(schema, &field.ty, selected.children.as_ref(), turn + i);
            object.insert(field.name.clone(), value);
        }
    }
    object.into()
}

#[test]
fn what_the_default_selection_gives_is_what_the_description_promises() {
    let sky = sky();
    let schema = sky.description.graphql.as_ref().unwrap();
    for (index, operation) in sky.description.operations.iter().enumerate() {
        let planned = sky.planner.operation(index).unwrap();
        let field = planned.declared(schema).unwrap();
        let selection = planned.default_selection(schema, field, &mut Steps::new(usize::MAX));
        let promised = &operation.responses[0].content.as_ref().unwrap().schema;
        for turn in 0..42 {
            let value = made_up(schema, &field.ty, selection.as_ref(), turn);
            assert!(
                fits(&sky.description, promised, &value, &mut Steps::new(usize::MAX)),
                "{} {value}\n{promised:?}",
                operation.id
            );
            if let Some(mut object) = value.as_object().cloned() {
                object.insert("unasked".into(), json!(1));
                assert!(
                    !fits(&sky.description, promised, &object.into(), &mut Steps::new(usize::MAX)),
                    "{}",
                    operation.id
                );
            }
        }
    }
}

#[test]
fn every_choice_of_fields_can_be_planned() {
    let sky = sky();
    let mut planned = 0;
    for (index, operation) in sky.description.operations.iter().enumerate() {
        for parameter in operation.parameters.iter().filter(|parameter| parameter.name.ends_with("fields")) {
            let text = serde_json::to_value(&parameter.schema).unwrap();
            let choices = text.pointer("/shape/array/items/choices").and_then(Value::as_array).cloned();
            for choice in choices.unwrap_or_default() {
                let schema = sky.description.graphql.as_ref().unwrap();
                let field = sky.planner.operation(index).unwrap().declared(schema).unwrap();
                let choice = choice.as_str().unwrap();
                let steps = &mut Steps::new(usize::MAX);
                let selected = fields::select(schema, &field.ty, LISTS_DEPTH_MAX, choice, steps);
                assert!(selected.is_ok(), "{choice}: {selected:?}");
                planned += 1;
            }
        }
    }
    assert!(planned > 50);
}

#[test]
fn a_pruned_description_keeps_its_operations_and_drops_what_they_do_not_need() {
    let sky = sky();
    let mut description = sky.description.clone();
    description.operations.retain(|operation| ["planets", "count"].contains(&operation.id.as_str()));
    prune(&mut description);
    let schema = description.graphql.as_ref().unwrap();
    assert_eq!(schema.mutation, None);
    assert!(
        schema
            .types
            .iter()
            .all(|ty| !matches!(ty.name.as_str(), "Note" | "StarInput" | "Thing" | "Pick" | "Federation"))
    );
    assert!(description.schemas.len() < sky.description.schemas.len());
    let planner = Planner::new(&description).unwrap();
    let params = [("filter".to_owned(), r#"{"method":"TRANSIT"}"#.to_owned())].into();
    let now = planner.plan(&description, 0, &params, b"").unwrap();
    let before = sky.planner.plan(&sky.description, sky.index("planets"), &params, b"").unwrap();
    assert_eq!(now, before);
    let again = ApiDescription { graphql: description.graphql.clone(), ..description.clone() };
    prune(&mut description);
    assert_eq!(description, again, "there is nothing left to drop");
}

#[test]
fn describing_twice_gives_the_same_description() {
    let again = describe(api(SKY).description.graphql.unwrap(), "Sky", &mut Report::default());
    assert_eq!(again, sky().description);
}

/// Every operation leads to a type of its own, from there to every other, and all of them have many fields that count
/// for nothing.
fn entangled(operations: usize, types: usize) -> GraphqlSchema {
    let list = |item: &dyn Fn(usize) -> String, n: usize| (0..n).map(item).collect::<Vec<_>>().join(" ");
    let leading = |ty: usize| list(&|i| format!("f{i}: [T{}]", (ty + i) % types), types);
    let silent = list(&|i| format!("o{i}: Int @deprecated"), 200);
    let sdl = format!(
        "type Query {{ {} }} {}",
        list(&|i| format!("a{i}: T{}", i % types), operations),
        list(&|i| format!("type T{i} {{ {} {silent} z: Int }}", leading(i)), types),
    );
    api(&sdl).description.graphql.unwrap()
}

#[test]
fn operations_of_a_schema_that_is_too_intricate_are_skipped_and_the_reason_is_told() {
    let schema = entangled(60, 40);
    for (steps, described) in [(usize::MAX, 60..=60), (2_000_000, 1..=59), (100, 0..=0)] {
        let mut report = Report::default();
        let description = describe_within(schema.clone(), "Entangled", &mut report, Steps::new(steps));
        let offered = description.operations.len();
        assert!(described.contains(&offered), "{offered} with {steps}");
        assert_eq!(report.skipped.list.len(), 60 - offered);
        let told = report.skipped.list.iter().all(|finding| finding.what.contains("too large to follow"));
        assert!(told, "{:?}", report.skipped.list);
    }
}

#[test]
fn what_a_result_leads_to_is_looked_at_once_for_all_operations_that_have_it() {
    let looked_at = |operations| {
        let schema = entangled(operations, 10);
        let inputs = InputSchemas::new(&schema);
        let (ids, results, steps) = (HashSet::new(), HashMap::new(), Steps::new(usize::MAX));
        let mut describer = Describer { schema: &schema, inputs, ids, results, steps };
        for field in schema.fields(schema.query.unwrap()).unwrap() {
            describer.result(&field.ty);
        }
        usize::MAX - describer.steps.left()
    };
    assert_eq!(looked_at(500), looked_at(10));
}

#[test]
fn a_root_type_is_no_member_of_what_an_operation_answers() {
    let api = api("schema { query: Query mutation: Mutation }
        interface Node { id: ID } union Any = Query | Mutation | User
        type Query implements Node { id: ID node: Node any: Any users: [User] secret: Int }
        type Mutation { wipe: Int } type User implements Node { id: ID name: String }");
    for operation in ["node", "any"] {
        let query = api.plan(operation, &[], "").unwrap().query;
        assert!(
            query.contains("...on User{") && !query.contains("Query") && !query.contains("Mutation"),
            "{query}"
        );
        for fields in ["secret", "users.name", "wipe"] {
            assert!(api.plan(operation, &[("fields", fields)], "").is_err(), "{operation} {fields}");
        }
    }
}
