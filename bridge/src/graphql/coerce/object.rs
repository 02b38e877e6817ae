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

/// Fields that are passed over, and names that are compared, in the time of one step.
const FIELDS_PER_STEP: usize = 16;
const NAMES_PER_STEP: usize = 64;

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
        self.spend_on(input, members.len());
        if self.is_full() {
            return;
        }
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
        self.fields(place, input, &given, |coercer, place, ty, value| coercer.json(place, ty, value));
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
        self.spend_on(input, members.len());
        let mut given: Vec<Option<GivenField<'_>>> = input.fields.iter().map(|_| None).collect();
        for (name, text) in members {
            let (head, rest) = name.split_once('.').map_or((*name, None), |(head, rest)| (head, Some(rest)));
            match input.fields.iter().position(|field| field.name == head) {
                Some(index) => {
                    let given = given[index].get_or_insert_default();
                    match rest {
                        Some(rest) => given.members.push((rest, text)),
                        None => given.whole = Some(text),
                    }
                }
                None => self.no_member(place, head, Some(input)),
            }
            if self.is_full() {
                return;
            }
        }
        let fields = given.iter().zip(&input.fields);
        let fields = fields.filter_map(|(given, field)| Some((given.as_ref()?, field)));
        let not_null: Vec<bool> =
            fields.map(|(given, field)| given.whole != Some("null") || self.is_verbatim(&field.ty)).collect();
        self.exactly_one(place, input, &not_null);
        self.fields(place, input, &given, |coercer, place, ty, given| {
            coercer.given(place, ty, given, depth + 1);
        });
    }

    fn given(&mut self, place: &ValuePath<'_>, ty: &TypeRef, given: &GivenField<'_>, depth: usize) {
        match (given.whole, &given.members[..]) {
            (Some(text), []) => self.text(place, ty, text),
            (None, members) => self.dotted(place, ty, members, depth),
            (Some(_), _) => self.twice(place),
        }
    }

    /// Takes the steps of an object: each member is looked up among the fields, and each field among the members.
    fn spend_on(&mut self, input: &Input, members: usize) {
        let fields = input.fields.len();
        self.spend(fields / FIELDS_PER_STEP + fields.saturating_mul(members) / NAMES_PER_STEP);
    }

    /// Says that a value came whole and by its members.
    pub fn twice(&mut self, place: &ValuePath<'_>) {
        self.object(Problem::Twice { name: place.to_string(), places: "whole, and member by member" });
    }

    /// Writes an object. `given` has what was given for each field, and `write` writes it.
    fn fields<T>(
        &mut self,
        place: &ValuePath<'_>,
        input: &Input,
        given: &[Option<T>],
        write: impl Fn(&mut Self, &ValuePath<'_>, &TypeRef, &T),
    ) {
        self.out.push('{');
        for (field, given) in input.fields.iter().zip(given) {
            let place = ValuePath::Member(place, &field.name);
            match given {
                Some(given) => {
                    if !self.out.ends_with('{') {
                        self.out.push(',');
                    }
                    quote(&field.name, &mut self.out);
                    self.out.push(':');
                    write(self, &place, &field.ty, given);
                }
                None if field.is_required() => self.miss(place),
                None => {}
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
