//! The largest query that a caller may make of an operation: what its owner wants to know before pricing it.
//!
//! One price buys any selection, and the lengths of lists within the result are the server's own. So what counts is how
//! many lists of objects are within each other.

use std::{
    collections::{HashSet, VecDeque},
    fmt,
};

use super::{
    schema::{GraphqlSchema, TypeRef},
    selection::{is_composite, is_selectable, possible_types},
};
use crate::{
    limits::{FIELDS_DEPTH_MAX, SELECTION_VISITS_MAX, TYPE_FIELDS_VISITED_MAX, UNION_MEMBERS_MAX},
    steps::Steps,
};

/// A query that asks for as many lists within each other as it may.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Worst {
    /// As the caller writes it in `fields`.
    path: String,
    lists: u8,
    /// True if there are further lists below, which are refused.
    is_cut: bool,
}

impl fmt::Display for Worst {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, lists, is_cut } = self;
        write!(
            f,
            "for its price a caller may ask for {lists} nested lists, such as `fields={path}`; your server decides how \
             long they are, so limit them there, or give the operation its own price"
        )?;
        if *is_cut {
            write!(f, "; deeper lists are refused unless `lists` of the operation allows them")?;
        }
        Ok(())
    }
}

/// The worst query of a field's result; `None` when no list is within another one, whatever is asked. A field that is
/// looked at is a step.
pub(super) fn worst(
    schema: &GraphqlSchema,
    result: &TypeRef,
    lists_max: u8,
    steps: &mut Steps,
) -> Option<Worst> {
    let start = (result.named(), result.lists());
    let mut waiting = VecDeque::from([(start, Vec::<&str>::new())]);
    let mut seen = HashSet::from([start]);
    let mut worst = Worst { path: String::new(), lists: 1, is_cut: false };
    while let Some(((on, lists), path)) = waiting.pop_front() {
        let members = possible_types(schema, on).unwrap_or_default();
        let types = std::iter::once(on).chain(members.iter().copied().take(UNION_MEMBERS_MAX));
        let fields =
            types.flat_map(|on| schema.fields(on).unwrap_or_default().iter().take(TYPE_FIELDS_VISITED_MAX));
        for field in fields {
            if !steps.take(1) {
                return None;
            }
            let below = field.ty.named();
            if !is_selectable(schema, field) || !is_composite(schema, below) {
                continue;
            }
            let below_lists = lists.saturating_add(field.ty.lists());
            if field.ty.lists() > 0 && below_lists > lists_max {
                worst.is_cut = true;
                continue;
            }
            let is_worse = below_lists > worst.lists;
            let is_new = seen.len() < SELECTION_VISITS_MAX && seen.insert((below, below_lists));
            if !is_worse && !is_new {
                continue;
            }
            let mut path = path.clone();
            path.push(&field.name);
            if is_worse {
                worst.lists = below_lists;
                worst.path = path.join(".");
            }
            if is_new && path.len() < FIELDS_DEPTH_MAX {
                waiting.push_back(((below, below_lists), path));
            }
        }
    }
    (worst.lists > 1).then_some(worst)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graphql::{schema::GraphqlSchema, testing::api};

    const CHAIN: &str = "type Query { users: [User!]! user: User me: Me page: UserConnection many: [[User]] }
        type User { id: ID name: String tags: [String!]! friends: [User!]! boss: User }
        type Me { name: String boss: User }
        type UserConnection { edges: [Edge] pageInfo: PageInfo }
        type Edge { node: User }
        type PageInfo { endCursor: String }";

    fn worst_of(schema: &GraphqlSchema, field: &str, lists_max: u8) -> Option<(String, u8, bool)> {
        let fields =
            schema.root(crate::description::RootKind::Query).and_then(|id| schema.fields(id)).unwrap();
        let field = fields.iter().find(|own| own.name == field).unwrap();
        worst(schema, &field.ty, lists_max, &mut Steps::new(1_000))
            .map(|worst| (worst.path, worst.lists, worst.is_cut))
    }

    #[test]
    fn the_worst_query_of_an_operation_is_named_and_told_to_its_owner() {
        let api = api(CHAIN);
        let schema = api.description.graphql.as_ref().unwrap();
        for (field, lists_max, path, lists) in [
            ("users", 2, "friends", 2),
            ("users", 4, "friends.friends.friends", 4),
            ("user", 2, "friends.friends", 2),
            ("me", 2, "boss.friends.friends", 2),
            ("page", 2, "edges.node.friends", 2),
        ] {
            let expected = (path.to_owned(), lists, true);
            assert_eq!(worst_of(schema, field, lists_max), Some(expected), "{field} {lists_max}");
        }
        let told: Vec<String> = api.report.warnings.list.iter().map(ToString::to_string).collect();
        let users = told.iter().find(|finding| finding.starts_with("query users: ")).unwrap();
        assert!(users.contains("2 nested lists, such as `fields=friends`"), "{users}");
        assert!(users.contains("deeper lists are refused"), "{users}");
    }

    #[test]
    fn a_search_without_steps_left_finds_nothing() {
        let api = api(CHAIN);
        let schema = api.description.graphql.as_ref().unwrap();
        let fields = schema.fields(schema.query.unwrap()).unwrap();
        for (steps, found) in [(100, true), (5, false)] {
            let mut steps = Steps::new(steps);
            assert_eq!(worst(schema, &fields[0].ty, 2, &mut steps).is_some(), found);
            assert_eq!(steps.are_spent(), !found);
        }
    }

    #[test]
    fn nothing_is_told_of_an_operation_without_lists_in_lists() {
        let api =
            api("type Query { users: [User!]! } type User { name: String boss: User tags: [String!]! }");
        assert_eq!(worst_of(api.description.graphql.as_ref().unwrap(), "users", 2), None);
        assert!(api.report.warnings.is_empty(), "{:?}", api.report.warnings);
    }

    #[test]
    fn lists_deeper_than_an_operation_answers_are_refused_and_its_owner_may_allow_them() {
        let mut api = api(CHAIN);
        let deepest = "friends.friends.friends.friends.friends.name";
        for (operation, fields, planned) in [
            ("users", "friends.name", true),
            ("users", "friends.boss.boss.name", true),
            ("users", "friends.tags", true),
            ("users", "friends.friends.name", false),
            ("users", "boss.friends(friends.name)", false),
            ("user", "friends.friends.name", true),
            ("user", deepest, false),
            ("me", "boss.friends.friends.boss.friends", false),
            ("page", "edges.node.friends.name", true),
            ("page", "edges.node.friends.friends.name", false),
            ("many", "boss.name", true),
            ("many", "friends.name", false),
        ] {
            let asked = api.plan(operation, &[("fields", fields)], "");
            assert_eq!(asked.is_ok(), planned, "{operation} {fields}: {asked:?}");
        }
        let refused = api.refused("users", &[("fields", "friends.friends.name")], "");
        assert!(
            refused.contains("User.friends makes 3 nested lists") && refused.contains("at most 2"),
            "{refused}"
        );
        // What is selected without a word follows the same rule.
        let query = |operation| api.plan(operation, &[], "").unwrap().query;
        assert_eq!(query("users"), "query{users{id name tags friends{id}boss{id}}}");
        assert_eq!(query("many"), "query{many{id name tags boss{id}}}");
        for operation in &mut api.description.operations {
            operation.root.as_mut().unwrap().lists = Some(6);
        }
        api.planner = crate::graphql::Planner::new(&api.description).unwrap();
        assert!(api.plan("user", &[("fields", deepest)], "").is_ok());
    }
}
