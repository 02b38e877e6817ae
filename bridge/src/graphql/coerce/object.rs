//! Input objects: as JSON, or member by member with dotted names.

use std::borrow::Cow;

use super::{Coercer, leaf::quote};
use crate::{
    graphql::schema::{Input, TypeKind, TypeRef},
    json::Json,
    limits::VALUE_DEPTH_MAX,
    nearest,
    problem::Problem,
    shown,
    values::ValuePath,
};

/// The texts given for one field of an input object by dotted names.
#[derive(Default)]
struct GivenField<'a> {
    whole: Option<&'a str>,
    /// Rest of the name, and the text.
    members: Vec<(&'a str, &'a str)>,
}

impl Coercer<'_> {
    pub(super) fn input_json(
        &mut self,
        place: &ValuePath<'_>,
        input: &Input,
        members: &[(Cow<'_, str>, Json<'_>)],
    ) {
        let mut given: Vec<Option<&Json<'_>>> = vec![None; input.fields.len()];
        for (name, value) in members {
            match input.fields.iter().position(|field| field.name == *name) {
                Some(index) => given[index] = Some(value),
                None => self.no_member(place, name, Some(input)),
            }
            if self.is_full() {
                return;
            }
        }
        let not_null: Vec<bool> = given.iter().flatten().map(|value| **value != Json::Null).collect();
        self.exactly_one(place, input, &not_null);
        self.fields(place, input, |coercer, place, index| match given[index] {
            Some(value) => {
                coercer.json(place, &input.fields[index].ty, value);
                true
            }
            None => false,
        });
    }

    /// A value given member by member: rests of names, such as `mass.gt` of `filter.mass.gt`, and texts.
    pub fn dotted(&mut self, place: &ValuePath<'_>, ty: &TypeRef, members: &[(&str, &str)], depth: usize) {
        let input = match ty.nullable() {
            TypeRef::Named(id) => match self.kind(*id) {
                Some(TypeKind::Input(input)) => Some(input),
                _ => None,
            },
            _ => None,
        };
        let Some(input) = input.filter(|_| depth < VALUE_DEPTH_MAX) else {
            let member = members.first().map_or("", |(name, _)| name.split('.').next().unwrap_or(name));
            return self.no_member(place, member, None);
        };
        let mut given: Vec<GivenField<'_>> = input.fields.iter().map(|_| GivenField::default()).collect();
        for (name, text) in members {
            let (head, rest) = name.split_once('.').map_or((*name, None), |(head, rest)| (head, Some(rest)));
            match input.fields.iter().position(|field| field.name == head) {
                Some(index) => match rest {
                    Some(rest) => given[index].members.push((rest, text)),
                    None => given[index].whole = Some(text),
                },
                None => self.no_member(place, head, Some(input)),
            }
            if self.is_full() {
                return;
            }
        }
        let fields = given.iter().zip(&input.fields);
        let fields = fields.filter(|(given, _)| given.whole.is_some() || !given.members.is_empty());
        let not_null: Vec<bool> =
            fields.map(|(given, field)| given.whole != Some("null") || self.is_verbatim(&field.ty)).collect();
        self.exactly_one(place, input, &not_null);
        self.fields(place, input, |coercer, place, index| {
            coercer.given(place, &input.fields[index].ty, &given[index], depth + 1)
        });
    }

    /// One field's value; false when there is none.
    fn given(&mut self, place: &ValuePath<'_>, ty: &TypeRef, given: &GivenField<'_>, depth: usize) -> bool {
        match (given.whole, &given.members[..]) {
            (None, []) => return false,
            (Some(text), []) => self.text(place, ty, text),
            (None, members) => self.dotted(place, ty, members, depth),
            (Some(_), _) => self.twice(place),
        }
        true
    }

    /// Says that a value came whole and by its members.
    pub fn twice(&mut self, place: &ValuePath<'_>) {
        self.object(Problem::Twice { name: place.to_string(), places: "whole, and member by member" });
    }

    /// Writes an object. `write` writes one field's value, or says that there is none.
    fn fields(
        &mut self,
        place: &ValuePath<'_>,
        input: &Input,
        write: impl Fn(&mut Self, &ValuePath<'_>, usize) -> bool,
    ) {
        self.out.push('{');
        for (index, field) in input.fields.iter().enumerate() {
            let place = ValuePath::Member(place, &field.name);
            let start = self.out.len();
            if !self.out.ends_with('{') {
                self.out.push(',');
            }
            quote(&field.name, &mut self.out);
            self.out.push(':');
            if !write(self, &place, index) {
                self.out.truncate(start);
                if field.is_required() {
                    self.missing.push(place.to_string());
                }
            }
        }
        self.out.push('}');
    }

    /// `given` says of each given member whether it is other than null.
    fn exactly_one(&mut self, place: &ValuePath<'_>, input: &Input, given: &[bool]) {
        if input.one_of && *given != [true] {
            let what = if *given == [false] { "null".to_owned() } else { given.len().to_string() };
            let names: Vec<_> =
                input.fields.iter().take(20).map(|field| format!("`{}`", field.name)).collect();
            self.object(Problem::Other(format!(
                "`{place}` takes exactly one member that is not null, not {what}; it takes {}",
                names.join(", ")
            )));
        }
    }

    fn no_member(&mut self, place: &ValuePath<'_>, member: &str, input: Option<&Input>) {
        let known = || input.iter().flat_map(|input| &input.fields).map(|field| field.name.as_str());
        let nearest = if member.len() <= 64 { nearest(member, known().take(500)) } else { None };
        self.object(Problem::NoMember {
            name: place.to_string(),
            member: shown(member),
            nearest: nearest.map(ToOwned::to_owned),
            known: known().take(20).map(ToOwned::to_owned).collect(),
        });
    }
}
