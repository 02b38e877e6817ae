//! Operations that answer a page at a time, told from the names of their parameters and of what they answer.
//!
//! Only what is sure is offered: the parameter, the list that holds the items, and for cursors where the next one is.

use farthing_bridge::description;

use super::{Declared, Kind, Object, Operation, Parameter, Type, Width};

const CURSORS: [&str; 9] = [
    "cursor",
    "after",
    "pagetoken",
    "nexttoken",
    "startingafter",
    "continuationtoken",
    "continuation",
    "pagecursor",
    "nextcursor",
];
const NEXT: [&str; 9] = [
    "nextcursor",
    "nextpagetoken",
    "nexttoken",
    "endcursor",
    "next",
    "cursor",
    "continuationtoken",
    "continuation",
    "nextpage",
];
const MORE: [&str; 4] = ["hasnextpage", "hasmore", "hasnext", "more"];
const PAGES: [&str; 3] = ["page", "pagenumber", "pageno"];
const OFFSETS: [&str; 4] = ["offset", "skip", "start", "startindex"];
const LIMITS: [&str; 9] =
    ["limit", "pagesize", "perpage", "size", "count", "maxresults", "first", "take", "pagelimit"];
/// The names of the list that holds the items, when there are several lists.
const ITEMS: [&str; 7] = ["items", "results", "data", "nodes", "records", "entries", "values"];

/// The way to get all pages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Paging {
    pub pace: Pace,
    /// Index of the parameter that chooses the page.
    pub parameter: usize,
    /// Index of the parameter that says how many items are wanted, and how many come without it.
    pub limit: Option<usize>,
    pub limit_default: Option<i64>,
    /// Members on the way to the items, as indices; none when the answer is the list.
    pub items: Vec<(usize, usize)>,
    pub item: Type,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Pace {
    /// The answer holds the next value of the parameter, until it does not, or another member is false.
    Cursor { next: Vec<(usize, usize)>, more: Option<Vec<(usize, usize)>> },
    /// One more each time.
    Page { first: i64 },
    /// As many more as items came.
    Offset { first: i64 },
}

/// Finds out how the operation is paged; `None` when it is not, or that cannot be told.
pub(super) fn find(
    operation: &Operation,
    described: &description::Operation,
    types: &[Declared],
) -> Option<Paging> {
    let (items, item) = items(&operation.answer.of, types)?;
    let find = |names: &[&str]| {
        operation.parameters.iter().position(|parameter| names.contains(&&*plain(&parameter.wire)))
    };
    // What is counted fits into every language's own integers.
    let whole = |index: &usize| {
        matches!(operation.parameters[*index].of, Type::Integer(Width::I32 | Width::I53 | Width::I64))
    };
    let limit = find(&LIMITS).filter(whole);
    let limit_default = limit.and_then(|index| operation.parameters[index].default.as_ref()?.as_i64());
    let paging = |pace, parameter| Paging {
        pace,
        parameter,
        limit,
        limit_default,
        items: items.clone(),
        item: item.clone(),
    };
    let text = |index: &usize| matches!(operation.parameters[*index].of, Type::Text);
    if let Some(parameter) = find(&CURSORS).filter(text)
        && let Some(next) = member(&operation.answer.of, types, &NEXT, &Type::Text)
    {
        let more = member(&operation.answer.of, types, &MORE, &Type::Boolean);
        return Some(paging(Pace::Cursor { next, more }, parameter));
    }
    if let Some(parameter) = find(&PAGES).filter(whole) {
        let first = first(described, &operation.parameters[parameter], 1);
        return Some(paging(Pace::Page { first }, parameter));
    }
    let parameter = find(&OFFSETS).filter(whole)?;
    limit?;
    let first = first(described, &operation.parameters[parameter], 0);
    Some(paging(Pace::Offset { first }, parameter))
}

/// Small letters and digits of a name: `pageToken` and `page_token` are the same.
fn plain(name: &str) -> String {
    name.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
}

/// Pages usually begin with 1 and offsets with 0, unless the description says 0 or 1.
fn first(described: &description::Operation, parameter: &Parameter, usual: i64) -> i64 {
    let schema =
        described.parameters.iter().find(|other| other.name == parameter.wire).map(|other| &other.schema);
    let default = parameter.default.as_ref().and_then(serde_json::Value::as_i64);
    let minimum = schema.and_then(|schema| match &schema.shape {
        description::Shape::Integer(bounds) => bounds.minimum.as_ref()?.as_i64(),
        _ => None,
    });
    default.or(minimum).filter(|first| matches!(first, 0 | 1)).unwrap_or(usual)
}

/// An object that only answers hold, and not itself: its members are values, or null where they are missing.
fn page(index: usize, types: &[Declared]) -> Option<&Object> {
    match types.get(index)? {
        Declared { kind: Kind::Object(object), in_requests: false, recursive: false, .. } => Some(object),
        _ => None,
    }
}

/// The way to the list of items, and what it holds.
fn items(answer: &Type, types: &[Declared]) -> Option<(Vec<(usize, usize)>, Type)> {
    match answer.bare() {
        Type::Array(item) => Some((Vec::new(), (**item).clone())),
        Type::Declared(index) => {
            let object = page(*index, types)?;
            let lists = object.members.iter().enumerate().filter_map(|(at, member)| match member.of.bare() {
                Type::Array(item) => Some((at, &member.wire, item)),
                _ => None,
            });
            let lists: Vec<_> = lists.collect();
            let usual = lists.iter().find(|(_, wire, _)| ITEMS.contains(&&*plain(wire)));
            // Of several lists without a usual name, only one of objects can be meant.
            let mut objects = lists.iter().filter(|(_, _, item)| matches!(item.bare(), Type::Declared(_)));
            let only = match (objects.next(), objects.next()) {
                (Some(list), None) => Some(list),
                _ => (lists.len() == 1).then(|| &lists[0]),
            };
            let (at, _, item) = usual.or(only)?;
            Some((vec![(*index, *at)], (***item).clone()))
        }
        _ => None,
    }
}

/// The way to a member of one of the names and of the type, in the answer or one object below it.
fn member(answer: &Type, types: &[Declared], names: &[&str], of: &Type) -> Option<Vec<(usize, usize)>> {
    let find = |index: usize| {
        let object = page(index, types)?;
        let named = |name: &&str| {
            object.members.iter().position(|member| plain(&member.wire) == **name && member.of.bare() == of)
        };
        Some((index, names.iter().find_map(named)?))
    };
    let Type::Declared(top) = answer.bare() else { return None };
    if let Some(found) = find(*top) {
        return Some(vec![found]);
    }
    page(*top, types)?.members.iter().enumerate().find_map(|(at, member)| match member.of.bare() {
        Type::Declared(below) => Some(vec![(*top, at), find(*below)?]),
        _ => None,
    })
}
