//! `fields`: the caller's own selection, such as `name,host(name,mass),orbit.*`.
//!
//! [`parse`] reads the text into names with positions; [`select`] looks every name up in the schema and builds
//! the selection from what it finds, so that no text of the caller reaches the query.
//!
//! `*` stands for the plain values of an object (its scalars and enums, without deprecated ones), and an object's
//! name alone for its plain values. Below an interface or union a name means every member that has it.

mod parse;
#[cfg(test)]
mod tests;

use std::{
    borrow::Cow,
    collections::HashSet,
    fmt::{Display, Write as _},
};

use self::parse::{Name, RequestedFields, parse};
use super::{
    schema::{Field, GraphqlSchema, TypeId, TypeRef},
    selection::{
        Selected, Selection, aliases,
        default::{IMPLEMENTORS_MAX, is_plain},
        is_composite, is_selectable, possible_types,
    },
};
use crate::{
    limits::{FIELDS_MAX, UNION_MEMBERS_MAX},
    nearest, shown,
    steps::Steps,
};

/// Steps of looking for what may have been meant, which takes some 5 ms at most: 2 s for one call.
const HINT_STEPS: usize = 5_000;
/// Names that an error lists when none is like the wrong one.
const LISTED_MAX: usize = 20;

/// The selection that `text` asks of a field's result, or a sentence saying where it goes wrong. At most so many lists
/// of objects are within each other. A field that is looked at is a step.
pub(super) fn select(
    schema: &GraphqlSchema,
    result: &TypeRef,
    lists_max: u8,
    text: &str,
    steps: &mut Steps,
) -> Result<Selection, String> {
    let text = joined(text);
    let wanted = parse(&text)?;
    let mut lookup = Lookup { schema, lists_max, selected: 0, steps };
    let mut selection = lookup.composite(result.named(), result.lists(), &wanted, 1)?;
    aliases::apply(schema, &mut selection);
    Ok(selection)
}

/// A list may be JSON as that of any parameter may, and a query string's is made so; its members are one text here.
fn joined(text: &str) -> Cow<'_, str> {
    let list = text.starts_with('[').then(|| serde_json::from_str::<Vec<String>>(text).ok());
    list.flatten().map_or(Cow::Borrowed(text), |names| names.join(",").into())
}

struct Lookup<'s, 'l> {
    schema: &'s GraphqlSchema,
    lists_max: u8,
    selected: usize,
    steps: &'l mut Steps,
}

impl<'s> Lookup<'s, '_> {
    /// Selects what is wanted of a type that lies in so many lists. `position` is the place where the caller wrote it.
    fn composite(
        &mut self,
        on: TypeId,
        lists: u8,
        wanted: &RequestedFields<'_>,
        position: usize,
    ) -> Result<Selection, String> {
        let mut selection = Selection::empty(on);
        if wanted.all {
            self.plain(&mut selection)?;
        }
        for name in &wanted.names {
            self.name(&mut selection, lists, name)?;
        }
        if selection.is_empty() {
            let names = self.names(on);
            let some = names.first().map_or("__typename", |name| name);
            return Err(format!(
                "`fields`, position {position}: {} has no plain values; name the fields you want, such as `{some}`",
                self.type_name(on)
            ));
        }
        Ok(selection)
    }

    /// Selects all plain values.
    fn plain(&mut self, selection: &mut Selection) -> Result<(), String> {
        let on = selection.on;
        self.plain_fields(selection, &[])?;
        let Some(members) = possible_types(self.schema, on) else { return Ok(()) };
        selection.typename = true;
        self.count(1)?;
        let own = self.schema.fields(on);
        let members_max = if own.is_some() { IMPLEMENTORS_MAX } else { UNION_MEMBERS_MAX };
        for member in members.iter().take(members_max) {
            let mut fragment = Selection::empty(*member);
            self.plain_fields(&mut fragment, own.unwrap_or_default())?;
            if !fragment.is_empty() {
                selection.fragments.push(fragment);
            }
        }
        Ok(())
    }

    fn plain_fields(&mut self, selection: &mut Selection, except: &[Field]) -> Result<(), String> {
        let fields = self.schema.fields(selection.on).unwrap_or_default();
        self.look_at(fields.len() + except.len())?;
        let except: HashSet<&str> = except.iter().map(|own| own.name.as_str()).collect();
        for (index, field) in fields.iter().enumerate() {
            if is_plain(self.schema, field) && !except.contains(field.name.as_str()) {
                self.count(1)?;
                selection.fields.push(Selected { field: index, alias: None, children: None });
            }
        }
        Ok(())
    }

    /// Selects one name, of the type itself or of every member that has it.
    fn name(&mut self, selection: &mut Selection, lists: u8, name: &Name<'_>) -> Result<(), String> {
        let on = selection.on;
        if name.text == "__typename" && name.below.is_none() {
            selection.typename = true;
            return self.count(1);
        }
        if self.find(on, name.text)?.is_some() {
            return self.field(selection, lists, name);
        }
        let members = possible_types(self.schema, on).unwrap_or_default();
        let mut error = None;
        let mut found = false;
        for member in members.iter().take(UNION_MEMBERS_MAX) {
            if self.find(*member, name.text)?.is_none() {
                continue;
            }
            let known = selection.fragments.iter().position(|fragment| fragment.on == *member);
            let mut fragment = match known {
                Some(known) => selection.fragments.remove(known),
                None => Selection::empty(*member),
            };
            match self.field(&mut fragment, lists, name) {
                Ok(()) => found = true,
                Err(problem) => error = error.or(Some(problem)),
            }
            if !fragment.is_empty() {
                let at = known.unwrap_or(selection.fragments.len());
                selection.fragments.insert(at, fragment);
            }
        }
        match error {
            _ if found => Ok(()),
            Some(error) => Err(error),
            None => Err(self.no_such(on, name)),
        }
    }

    /// Selects a field that `selection`'s type has.
    fn field(&mut self, selection: &mut Selection, lists: u8, name: &Name<'_>) -> Result<(), String> {
        let Some((index, field)) = self.find(selection.on, name.text)? else {
            return Err(self.no_such(selection.on, name));
        };
        if !is_selectable(self.schema, field) {
            let on = self.type_name(selection.on);
            let why = "needs arguments, or leads back to the operations";
            return Err(at(name, format!("{on}.{} cannot be chosen: it {why}", field.name)));
        }
        let children = if is_composite(self.schema, field.ty.named()) {
            let lists = lists.saturating_add(field.ty.lists());
            if field.ty.lists() > 0 && lists > self.lists_max {
                let (on, max) = (self.type_name(selection.on), self.lists_max);
                let what = format!("{on}.{} makes {lists} nested lists", field.name);
                let next = "leave it out, or ask for it one object at a time";
                return Err(at(name, format!("{what}, and this operation answers at most {max}; {next}")));
            }
            let mut wanted = name.below.clone().unwrap_or_default();
            wanted.all |= name.alone;
            Some(self.composite(field.ty.named(), lists, &wanted, name.position)?)
        } else if name.below.is_some() {
            return Err(at(name, format!("{} is a plain value and has no fields", field.name)));
        } else {
            None
        };
        // With `*` it may be there already.
        if selection.fields.iter().all(|selected| selected.field != index) {
            self.count(1)?;
            selection.fields.push(Selected { field: index, alias: None, children });
        }
        Ok(())
    }

    fn find(&mut self, on: TypeId, name: &str) -> Result<Option<(usize, &'s Field)>, String> {
        let fields = self.schema.fields(on).unwrap_or_default();
        let place = fields.iter().position(|field| field.name == name);
        self.look_at(place.map_or(fields.len(), |place| place + 1))?;
        Ok(place.map(|place| (place, &fields[place])))
    }

    fn count(&mut self, fields: usize) -> Result<(), String> {
        self.selected += fields;
        if self.selected > FIELDS_MAX {
            return Err(format!("`fields` asks for more than {FIELDS_MAX} fields; choose fewer"));
        }
        Ok(())
    }

    /// Counts fields that are looked at, and the type itself: those of members of unions within unions multiply.
    fn look_at(&mut self, fields: usize) -> Result<(), String> {
        if self.steps.take(1 + fields) {
            return Ok(());
        }
        Err("`fields` is too complex: it goes through too many types and fields; choose fewer".into())
    }

    fn no_such(&mut self, on: TypeId, name: &Name<'_>) -> String {
        // Every member of a union may lack the name.
        if let Err(intricate) = self.look_at(HINT_STEPS) {
            return intricate;
        }
        let names = self.names(on);
        let mut error = at(name, format!("{} has no field `{}`", self.type_name(on), shown(name.text)));
        let nearest = if name.text.len() <= 64 { nearest(name.text, names.iter().copied()) } else { None };
        // Writing to a string cannot fail.
        let _ = match nearest {
            Some(nearest) => write!(error, "; did you mean `{nearest}`?"),
            None => write!(error, "; it has {}", names[..names.len().min(LISTED_MAX)].join(", ")),
        };
        error
    }

    /// Lists the fields that can be asked of a type, its members' fields included; bounded.
    fn names(&self, on: TypeId) -> Vec<&'s str> {
        let own = self.schema.fields(on).unwrap_or_default();
        let members = possible_types(self.schema, on).unwrap_or_default();
        let of_members = members.iter().take(IMPLEMENTORS_MAX);
        let of_members = of_members.flat_map(|member| self.schema.fields(*member).unwrap_or_default());
        let fields = own.iter().chain(of_members).take(4 * FIELDS_MAX);
        let mut seen = HashSet::new();
        let names = fields.filter(|field| is_selectable(self.schema, field)).map(|field| field.name.as_str());
        names.filter(|name| seen.insert(*name)).collect()
    }

    fn type_name(&self, on: TypeId) -> &'s str {
        self.schema.get(on).map_or("the result", |ty| &ty.name)
    }
}

/// A sentence about what the caller wrote there.
fn at(name: &Name<'_>, what: impl Display) -> String {
    format!("`fields`, position {}: {what}", name.position)
}
