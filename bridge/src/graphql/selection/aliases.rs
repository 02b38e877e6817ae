//! Two object types may have a field of one name and two types; asked for side by side they need an alias, which
//! the answer loses again.
//!
//! A validator merges what is asked of the members of a union, and wants one type for one key, even in `!` and
//! `[]` and all the way down (GraphQL, October 2021, 5.3.2 "Field Selection Merging"). [`apply`] works from the
//! leaves upwards: within one selection the first field of a name keeps it, and another of that name keeps it
//! only if it has exactly the same type and asks for exactly the same below.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::{Selected, Selection};
use crate::graphql::schema::{GraphqlSchema, TypeRef};

/// Gives aliases where they are needed.
pub(in crate::graphql) fn apply(schema: &GraphqlSchema, selection: &mut Selection) {
    let fields = selection.fields.iter_mut();
    let in_fragments = selection.fragments.iter_mut().flat_map(|fragment| fragment.fields.iter_mut());
    for children in fields.chain(in_fragments).filter_map(|selected| selected.children.as_mut()) {
        apply(schema, children);
    }
    if selection.fragments.is_empty() {
        return;
    }
    let names: HashSet<&str> = declared(schema, selection).map(|(_, name, _)| name).collect();
    let mut taken: HashMap<String, (&TypeRef, Option<String>)> = HashMap::new();
    let mut aliases = Vec::new();
    for (selected, name, ty) in declared(schema, selection) {
        let asked = (ty, selected.children.as_ref().map(|children| children.text(schema)));
        let is_free = taken.get(name).is_none_or(|other| *other == asked);
        let key = if is_free { name.to_owned() } else { alias(schema, ty, name, &asked, &names, &taken) };
        aliases.push((!is_free).then(|| key.clone()));
        taken.insert(key, asked);
    }
    let fields = selection.fields.iter_mut();
    let in_fragments = selection.fragments.iter_mut().flat_map(|fragment| fragment.fields.iter_mut());
    for (selected, alias) in fields.chain(in_fragments).zip(aliases) {
        selected.alias = alias;
    }
}

/// Fields of a selection and its fragments, with names and types.
fn declared<'a>(
    schema: &'a GraphqlSchema,
    selection: &'a Selection,
) -> impl Iterator<Item = (&'a Selected, &'a str, &'a TypeRef)> {
    std::iter::once(selection)
        .chain(&selection.fragments)
        .flat_map(move |part| part.declared(schema))
        .map(|(selected, field)| (selected, field.name.as_str(), &field.ty))
}

/// A key that says what it holds, such as `size_Int`, and is no other's.
fn alias<'a>(
    schema: &GraphqlSchema,
    ty: &TypeRef,
    name: &str,
    asked: &(&'a TypeRef, Option<String>),
    names: &HashSet<&str>,
    taken: &HashMap<String, (&'a TypeRef, Option<String>)>,
) -> String {
    let mut alias = format!("{name}_{}", schema.get(ty.named()).map_or("", |ty| &ty.name));
    while names.contains(alias.as_str()) || taken.get(&alias).is_some_and(|other| other != asked) {
        alias.push('_');
    }
    alias
}

/// For one selection: keys of the answer that are not the field's name, or have such keys below them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::graphql) struct Renames(BTreeMap<String, Rename>);

#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::graphql) struct Rename {
    pub name: String,
    pub within: Option<Renames>,
}

impl Renames {
    /// The way back from `selection`; `None` when it has no alias.
    pub fn of(schema: &GraphqlSchema, selection: &Selection) -> Option<Self> {
        let mut renames = BTreeMap::new();
        for (selected, name, _) in declared(schema, selection) {
            let within = selected.children.as_ref().and_then(|children| Self::of(schema, children));
            if selected.alias.is_some() || within.is_some() {
                let key = selected.alias.clone().unwrap_or_else(|| name.to_owned());
                renames.insert(key, Rename { name: name.to_owned(), within });
            }
        }
        (!renames.is_empty()).then_some(Self(renames))
    }

    pub fn get(&self, key: &str) -> Option<&Rename> {
        self.0.get(key)
    }
}
