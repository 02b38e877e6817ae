//! Operations as callers see them: what is offered, what is promised, and that the promise can be kept.

use serde_json::{Value, json};

use crate::{
    description::{ApiDescription, Method, RootKind, Style},
    fits::{Steps, fits},
    graphql::{
        Planner, describe, plan, prune,
        schema::{GraphqlSchema, TypeKind, TypeRef},
        selection::{Selection, possible_types},
        testing::{SKY, api, sky},
    },
    report::Report,
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
    assert_eq!(note.parameters[0].style, Style::Comma);
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
    for operation in &sky.description.operations {
        let root = operation.root.as_ref().unwrap();
        let field = schema.root_field(root.kind, &root.field).unwrap();
        let planned = plan::OperationPlan::new(schema, root).unwrap();
        let selection = planned.default_selection(schema, field);
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
    for operation in &sky.description.operations {
        for parameter in operation.parameters.iter().filter(|parameter| parameter.name.ends_with("fields")) {
            let text = serde_json::to_value(&parameter.schema).unwrap();
            let choices = text.pointer("/shape/array/items/choices").and_then(Value::as_array).cloned();
            for choice in choices.unwrap_or_default() {
                let root = operation.root.as_ref().unwrap();
                let schema = sky.description.graphql.as_ref().unwrap();
                let field = schema.root_field(root.kind, &root.field).unwrap();
                let choice = choice.as_str().unwrap();
                assert!(
                    crate::graphql::fields::select(schema, &field.ty, crate::limits::LISTS_DEPTH_MAX, choice)
                        .is_ok(),
                    "{choice}"
                );
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
