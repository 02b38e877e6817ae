//! Every name once: extensions join what they extend, and of duplicates the first wins.

use std::collections::{HashMap, HashSet};

use super::Problems;
use crate::{
    graphql::{
        draft::{DraftArgument, DraftBody, DraftDefinition, DraftField, Fields, Head, Named, place},
        scalars,
    },
    limits::GRAPHQL_NAME_BYTES_MAX,
    report::Report,
};

/// Definitions with distinct names and members, in the order of the document.
pub(super) fn merge(
    types: Vec<DraftDefinition>,
    report: &mut Report,
    problems: &mut Problems,
) -> Vec<DraftDefinition> {
    let mut merged: Vec<DraftDefinition> = Vec::with_capacity(types.len());
    let mut indices: HashMap<String, usize> = HashMap::with_capacity(types.len());
    let own = types.into_iter().filter(|ty| is_own(ty, report));
    let (extensions, bases): (Vec<_>, Vec<_>) = own.partition(|ty| ty.extends);
    for base in bases {
        if indices.contains_key(&base.head.name) {
            report.warnings.add(base.place(), "is declared twice; the first one counts");
        } else {
            indices.insert(base.head.name.clone(), merged.len());
            merged.push(base);
        }
    }
    for extension in extensions {
        match indices.get(&extension.head.name).and_then(|index| merged.get_mut(*index)) {
            Some(base) => extend(base, extension, problems),
            None => {
                // The usual form in subgraphs, whose base is elsewhere: it defines.
                indices.insert(extension.head.name.clone(), merged.len());
                merged.push(extension);
            }
        }
    }
    merged.iter_mut().for_each(|ty| distinct_members(ty, report));
    merged
}

/// Checks whether a definition is the owner's: not a built-in scalar, not a part of introspection.
fn is_own(ty: &DraftDefinition, report: &mut Report) -> bool {
    let name = ty.head.name.as_str();
    if scalars::BUILT_IN.contains(&name) {
        if !matches!(ty.body, DraftBody::Scalar) {
            report.skipped.add(ty.place(), "is a built-in scalar and cannot be something else");
        }
        return false;
    }
    if !is_name(name) {
        report.skipped.add(ty.place(), NOT_A_NAME);
        return false;
    }
    !name.starts_with("__")
}

const NOT_A_NAME: &str = "is not a GraphQL name of at most 255 letters, digits and underscores";

fn is_name(name: &str) -> bool {
    let mut bytes = name.bytes();
    name.len() <= GRAPHQL_NAME_BYTES_MAX
        && bytes.next().is_some_and(|first| first == b'_' || first.is_ascii_alphabetic())
        && bytes.all(|byte| byte == b'_' || byte.is_ascii_alphanumeric())
}

fn extend(base: &mut DraftDefinition, extension: DraftDefinition, problems: &mut Problems) {
    base.head.is_hidden |= extension.head.is_hidden;
    match (&mut base.body, extension.body) {
        (DraftBody::Scalar, DraftBody::Scalar) => {}
        (DraftBody::Enum(values), DraftBody::Enum(more)) => values.extend(more),
        (DraftBody::Object(fields), DraftBody::Object(more))
        | (DraftBody::Interface(fields), DraftBody::Interface(more)) => {
            fields.fields.extend(more.fields);
            fields.implements.extend(more.implements);
        }
        (DraftBody::Union(members), DraftBody::Union(more)) => members.extend(more),
        (DraftBody::Input(inputs), DraftBody::Input(more)) => {
            inputs.fields.extend(more.fields);
            inputs.one_of |= more.one_of;
        }
        (body, other) => {
            let (name, is, not) = (crate::shown(&base.head.name), body.keyword(), other.keyword());
            problems.add(extension.head.at, format!("`extend {not} {name}`: `{name}` is declared as `{is}`"));
        }
    }
}

fn distinct_members(ty: &mut DraftDefinition, report: &mut Report) {
    let owner = format!("{} {}", ty.body.keyword(), crate::shown(&ty.head.name));
    match &mut ty.body {
        DraftBody::Scalar => {}
        DraftBody::Enum(values) => distinct(values, |value| value, &owner, report),
        DraftBody::Object(Fields { fields, implements })
        | DraftBody::Interface(Fields { fields, implements }) => {
            distinct(fields, |field: &DraftField| &field.head, &owner, report);
            for field in fields {
                let owner = format!("{owner}, field {}", crate::shown(&field.head.name));
                distinct(&mut field.args, |argument: &DraftArgument| &argument.head, &owner, report);
            }
            distinct_names(implements);
        }
        DraftBody::Union(members) => distinct_names(members),
        DraftBody::Input(inputs) => {
            distinct(&mut inputs.fields, |field: &DraftArgument| &field.head, &owner, report);
        }
    }
}

fn distinct<T>(list: &mut Vec<T>, head: impl Fn(&T) -> &Head, owner: &str, report: &mut Report) {
    let mut seen: HashSet<String> = HashSet::with_capacity(list.len());
    list.retain(|item| {
        let Head { name, at, .. } = head(item);
        let is_kept = is_name(name) && !name.starts_with("__");
        if !is_kept {
            let what = if is_name(name) { "begins with `__`, which is reserved" } else { NOT_A_NAME };
            report.skipped.add(owner, format!("`{}` {what}", crate::shown(name)));
        } else if !seen.insert(name.clone()) {
            let what = format!("`{}` is declared twice; the first one counts", crate::shown(name));
            report.warnings.add(with_line(owner, *at), what);
            return false;
        }
        is_kept
    });
}

fn with_line(owner: &str, at: crate::graphql::draft::At) -> String {
    match owner.split_once(' ') {
        Some((keyword, name)) => place(keyword, name, at),
        None => owner.to_owned(),
    }
}

/// Repeating a name here changes nothing, so nothing is said.
fn distinct_names(names: &mut Vec<Named>) {
    let mut seen: HashSet<String> = HashSet::with_capacity(names.len());
    names.retain(|named| seen.insert(named.name.clone()));
}
