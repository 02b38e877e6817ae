//! Parameters: checked against the description and put where they belong.
//!
//! [`read`] sorts what a caller gave under the declared parameters, then looks at every one: unknown names,
//! missing ones and wrong values are all told at once. Nothing is dropped, coerced or guessed. The values are then
//! written in the style of their parameter ([`style`]).

mod dotted;
pub(crate) mod style;

use std::{borrow::Cow, collections::BTreeMap};

use crate::{
    description::{Operation, Parameter, Place, Schema, Shape, Style},
    json::Json,
    nearest,
    problem::Problem,
    routing::PathValues,
    shown,
    values::{Checker, STEPS_DEPTH_MAX, ValuePath},
};

/// A longer name is not compared with the known ones.
const NAME_BYTES_MAX: usize = 64;

/// The checked values of a call, in the description's order.
#[derive(Default)]
pub(crate) struct ArgumentValues<'a> {
    pub(crate) declared: Vec<ArgumentValue<'a>>,
    /// Undeclared ones, which the operation allows.
    pub(crate) others: Vec<(&'a str, &'a str)>,
}

/// A declared parameter's value.
pub(crate) struct ArgumentValue<'a> {
    pub(crate) parameter: &'a Parameter,
    pub(crate) value: Json<'a>,
    /// As it came, unless it came in parts.
    pub(crate) text: Option<&'a str>,
}

impl<'a> ArgumentValues<'a> {
    /// The declared ones that travel in `place`.
    pub(crate) fn in_place(&self, place: Place) -> impl Iterator<Item = &ArgumentValue<'a>> {
        self.declared.iter().filter(move |argument| argument.parameter.place == place)
    }
}

impl ArgumentValue<'_> {
    /// The value as JSON: as it came, if it came as one text.
    fn json_text(&self) -> Cow<'_, str> {
        self.text.map_or_else(|| self.value.to_text().into(), Cow::Borrowed)
    }
}

/// The texts that a caller gave for one parameter.
#[derive(Default, Clone)]
struct GivenParameter<'a> {
    in_path: Option<&'a str>,
    whole: Option<&'a str>,
    /// Dotted path below the parameter, and text.
    members: Vec<(&'a str, &'a str)>,
}

/// Reads a call's parameters. What is wrong is told to `checker`; the arguments are complete when that is nothing.
pub(crate) fn read<'a>(
    checker: &mut Checker<'a>,
    operation: &'a Operation,
    in_path: Option<&'a PathValues<'a>>,
    params: &'a BTreeMap<String, String>,
) -> ArgumentValues<'a> {
    let mut arguments = ArgumentValues::default();
    let mut given = vec![GivenParameter::default(); operation.parameters.len()];
    let mut unknown = Vec::new();
    for (name, text) in in_path.into_iter().flatten() {
        if let Some(index) = operation.parameters.iter().position(|parameter| parameter.name == *name) {
            given[index].in_path = Some(text);
        }
    }
    for (name, text) in params {
        match owner(checker, operation, name) {
            Some((index, "")) => given[index].whole = Some(text),
            Some((index, member)) => given[index].members.push((member, text)),
            None if operation.any_params => arguments.others.push((name, text)),
            None => unknown.push(self::unknown(operation, name)),
        }
    }
    let missing = operation.parameters.iter().zip(&given).filter(|(parameter, given)| {
        parameter.required && given.in_path.is_none() && given.whole.is_none() && given.members.is_empty()
    });
    let missing: Vec<_> = missing.map(|(parameter, _)| parameter.name.clone()).collect();
    if !missing.is_empty() {
        checker.tell(Problem::Missing(missing));
    }
    unknown.into_iter().for_each(|problem| checker.tell(problem));
    for (parameter, given) in operation.parameters.iter().zip(&given) {
        arguments.declared.extend(argument(checker, parameter, given));
    }
    style::check(checker, operation, &arguments);
    arguments
}

/// The parameter that `name` belongs to, and the dotted path below it; empty for the parameter itself.
fn owner<'a, 'n>(checker: &Checker<'a>, operation: &'a Operation, name: &'n str) -> Option<(usize, &'n str)> {
    if let Some(index) = operation.parameters.iter().position(|parameter| parameter.name == name) {
        return Some((index, ""));
    }
    if !name.contains('.') {
        return None;
    }
    let below = |parameter: &Parameter| name.strip_prefix(&*parameter.name)?.strip_prefix('.');
    operation
        .parameters
        .iter()
        .enumerate()
        .filter(|(_, parameter)| has_members(checker, parameter))
        .filter_map(|(index, parameter)| Some((index, below(parameter)?)))
        .filter(|(_, member)| !member.is_empty())
        .min_by_key(|(_, member)| member.len())
}

/// Tells whether a parameter may be given in parts.
fn has_members<'a>(checker: &Checker<'a>, parameter: &'a Parameter) -> bool {
    let is_object = |schema| matches!(checker.resolved(schema), Some(Schema { shape: Shape::Object(_), .. }));
    match checker.resolved(&parameter.schema).map(|schema| &schema.shape) {
        Some(Shape::OneOf(one_of)) => one_of.variants.iter().any(is_object),
        _ => is_object(&parameter.schema),
    }
}

fn argument<'a>(
    checker: &mut Checker<'a>,
    parameter: &'a Parameter,
    given: &GivenParameter<'a>,
) -> Option<ArgumentValue<'a>> {
    let places = match given {
        GivenParameter { in_path: Some(_), whole, members } if whole.is_some() || !members.is_empty() => {
            Some("in the path and in `params`")
        }
        GivenParameter { whole: Some(_), members, .. } if !members.is_empty() => Some("whole and in parts"),
        _ => None,
    };
    if let Some(places) = places {
        checker.tell(Problem::Twice { name: parameter.name.clone(), places });
        return None;
    }
    let at = ValuePath::Root(&parameter.name);
    let Some(text) = given.in_path.or(given.whole) else {
        if given.members.is_empty() {
            return None;
        }
        let value = dotted::read(checker, &at, &given.members, &parameter.schema, STEPS_DEPTH_MAX)?;
        return Some(ArgumentValue { parameter, value, text: None });
    };
    if let Some(expected) = style::objection(parameter, text) {
        checker.refuse(&at, text, expected);
        return None;
    }
    let value = if parameter.style == Style::Json {
        let value = checker.parse(&at, text)?;
        checker.json(&at, &value, &parameter.schema, STEPS_DEPTH_MAX).then_some(value)
    } else {
        checker.text(&at, text, &parameter.schema, STEPS_DEPTH_MAX)
    }?;
    Some(ArgumentValue { parameter, value, text: Some(text) })
}

fn unknown(operation: &Operation, name: &str) -> Problem {
    let known = || operation.parameters.iter().map(|parameter| parameter.name.as_str());
    let nearest = if name.len() <= NAME_BYTES_MAX { nearest(name, known()) } else { None };
    Problem::Unknown {
        name: shown(name),
        nearest: nearest.map(ToOwned::to_owned),
        known: known().take(20).map(ToOwned::to_owned).collect(),
    }
}

#[cfg(test)]
mod tests;
