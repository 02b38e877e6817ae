//! The caller's own selection, well and badly written.

use super::{HINT_STEPS, select};
use crate::{
    graphql::testing::{api, sky},
    limits::{FIELDS_BYTES_MAX, FIELDS_DEPTH_MAX, FIELDS_MAX, SELECTION_STEPS_MAX},
    steps::Steps,
};

/// The query's selection.
fn selection(id: &str, fields: &str) -> String {
    let shown = sky().shown(id, &[("fields", fields)], "");
    let query = shown.lines().next().unwrap_or_default();
    query.trim_start_matches("query{").trim_end_matches("\n{}").to_owned()
}

#[test]
fn fields_choose_what_is_asked_for() {
    for (fields, expected) in [
        ("name", "{name}"),
        ("name,mass", "{name mass}"),
        (" mass , name ", "{mass name}"),
        (r#"["name","mass"]"#, "{name mass}"),
        (r#"["star(name", "size)", "mass"]"#, "{star{name size}mass}"),
        ("name,name", "{name}"),
        ("star.name", "{star{name}}"),
        ("star(name,size)", "{star{name size}}"),
        ("star.name,star.size,name", "{star{name size}name}"),
        ("star(galaxy.name,planets(name))", "{star{galaxy{name}planets{name}}}"),
        ("star.galaxy.cluster(title)", "{star{galaxy{cluster{title}}}}"),
        ("*", "{id name size mass method}"),
        ("*,star.*", "{id name size mass method star{id name size bright}}"),
        ("*,name", "{id name size mass method}"),
        ("star", "{star{id name size bright}}"),
        ("star,star.name", "{star{id name size bright}}"),
        ("star.galaxy.name,star", "{star{id name size bright galaxy{name}}}"),
        ("old", "{old}"),
        ("__typename,name", "{__typename name}"),
        ("neighbours(totalCount,edges.node.name)", "{neighbours{totalCount edges{node{name}}}}"),
    ] {
        assert_eq!(selection("planets", fields), format!("planets{expected}}}"), "{fields}");
    }
}

#[test]
fn below_an_interface_or_union_a_name_means_every_member_that_has_it() {
    for (id, fields, expected) in [
        ("bodies", "name", "{name}"),
        ("bodies", "mass", "{...on Planet{mass}}"),
        ("bodies", "name,bright,mass", "{name...on Star{bright}...on Planet{mass}}"),
        ("bodies", "*", "{__typename id name size...on Planet{mass method}...on Star{bright}}"),
    ] {
        assert_eq!(selection(id, fields), format!("{id}{expected}}}"), "{fields}");
    }
    let thing = |fields: &str| {
        let shown = sky().shown("search", &[("text", "x"), ("_fields", fields)], "");
        shown.lines().next().unwrap_or_default().replace("query($text: String!){search(text:$text)", "")
    };
    insta::assert_snapshot!(
        ["name", "size", "size,size_String", "star.name", "star(name,size),id", "*"].map(thing).join("\n")
    );
}

#[test]
fn what_cannot_be_chosen_is_refused_with_its_position_and_the_nearest_name() {
    let sky = sky();
    let deep = |levels: usize| vec!["star"; levels].join(".") + ".name";
    let refused = [
        "",
        " ",
        ",",
        "name,",
        ",name",
        "nme",
        "name,star.nam",
        "star(name,brigt)",
        "héllo",
        "name}",
        "name{mass}",
        "star(",
        "star(name",
        "star)",
        "star()",
        "star..name",
        "star.",
        ".name",
        "name.x",
        "name(x)",
        "**",
        "*.name",
        "moons",
        "__schema",
        "__typename.x",
        "star,\u{1F600}",
        "name mass",
        "$x",
        "\"",
        "name\n",
        "neighbours.pages",
        &deep(FIELDS_DEPTH_MAX),
    ];
    let mut lines: Vec<_> =
        refused.iter().map(|fields| sky.refused("planets", &[("fields", fields)], "")).collect();
    lines.push(sky.refused("note", &[("fields", "query.count")], r#"{"planet": "a", "text": "b"}"#));
    lines.push(sky.refused("nodes", &[("fields", "edges.*")], ""));
    lines.push(sky.refused("hermit", &[("fields", "*")], ""));
    insta::assert_snapshot!(lines.join("\n"));
    assert!(sky.plan("planets", &[("fields", &deep(FIELDS_DEPTH_MAX - 1))], "").is_ok());
}

#[test]
fn fields_are_bounded_in_bytes_names_and_what_they_select() {
    let sky = sky();
    let of_length = |bytes: usize| format!("name{}", " ".repeat(bytes - 4));
    assert!(sky.plan("planets", &[("fields", &of_length(FIELDS_BYTES_MAX))], "").is_ok());
    let longer = sky.refused("planets", &[("fields", &of_length(FIELDS_BYTES_MAX + 1))], "");
    assert_eq!(longer, "`fields` has 4097 bytes, 4096 are allowed");

    let names = |count: usize| vec!["id"; count].join(",");
    assert!(sky.plan("planets", &[("fields", &names(FIELDS_MAX))], "").is_ok());
    assert_eq!(
        sky.refused("planets", &[("fields", &names(FIELDS_MAX + 1))], ""),
        "`fields` names more than 500 fields; choose fewer"
    );

    let wide = |count: usize| {
        let fields: Vec<_> = (0..count).map(|i| format!("f{i}: Int")).collect();
        api(&format!("type Query {{ wide: Wide }} type Wide {{ {} }}", fields.join(" ")))
    };
    assert!(wide(FIELDS_MAX).plan("wide", &[("fields", "*")], "").is_ok());
    assert_eq!(
        wide(FIELDS_MAX + 1).refused("wide", &[("fields", "*")], ""),
        "`fields` asks for more than 500 fields; choose fewer"
    );
}

#[test]
fn unions_within_unions_do_not_multiply_without_end() {
    let members: Vec<_> = (0..60).map(|i| format!("M{i}")).collect();
    let types: Vec<_> = members.iter().map(|name| format!("type {name} {{ next: U leaf: Int }}")).collect();
    let sky = api(&format!("type Query {{ u: U }} union U = {} {}", members.join("|"), types.join(" ")));
    let refused = sky.refused("u", &[("fields", "next.next.next.next.next.leaf")], "");
    assert!(refused.contains("choose fewer"), "{refused}");
}

#[test]
fn a_hint_is_paid_for_by_every_member_of_a_union_that_lacks_the_name() {
    let members: Vec<_> = (0..90).map(|i| format!("M{i}")).collect();
    let types: Vec<_> = members.iter().map(|name| format!("type {name} {{ next: U }}")).collect();
    let api = api(&format!("type Query {{ u: U }} union U = {} {}", members.join("|"), types.join(" ")));
    let schema = api.description.graphql.as_ref().unwrap();
    let field = api.planner.operation(0).unwrap().declared(schema).unwrap();
    let mut steps = Steps::new(SELECTION_STEPS_MAX);
    let refused = select(schema, &field.ty, 2, "next.wrong", &mut steps).unwrap_err();
    assert!(refused.contains("U has no field `wrong`"), "{refused}");
    assert!(SELECTION_STEPS_MAX - steps.left() > 90 * HINT_STEPS, "{steps:?}");
}
