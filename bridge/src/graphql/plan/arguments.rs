//! The caller's values, sorted by argument: every name once, in one place.

use std::collections::BTreeMap;

use super::OperationPlan;
use crate::{
    graphql::{coerce::Coercer, schema::Field},
    json::Json,
    limits::VALUE_DEPTH_MAX,
    nearest,
    problem::Problem,
    shown,
    values::ValuePath,
};

#[derive(Debug)]
pub(super) enum GivenArgument<'a> {
    Nothing,
    Text(&'a str),
    Json(Json<'a>),
    /// Dotted names, without the argument's own, and texts.
    Members(Vec<(&'a str, &'a str)>),
}

/// The values given for an operation.
#[derive(Debug)]
pub(super) struct GivenArguments<'a> {
    given: Vec<GivenArgument<'a>>,
    /// The caller's own selection.
    pub fields: Option<&'a str>,
}

impl<'a> GivenArguments<'a> {
    /// Sorts `params` and `body`, and tells `coercer` what has no place, or two.
    pub fn sort(
        operation: &OperationPlan,
        field: &Field,
        params: &'a BTreeMap<String, String>,
        body: &'a [u8],
        coercer: &mut Coercer<'_>,
    ) -> Self {
        let given = field.args.iter().map(|_| GivenArgument::Nothing).collect();
        let mut arguments = Self { given, fields: None };
        for (name, text) in params {
            if operation.fields == Some(name.as_str()) {
                arguments.fields = Some(text);
            } else if let Some(index) = position(field, name) {
                arguments.given[index] = GivenArgument::Text(text);
            } else {
                arguments.member(operation, field, name, text, coercer);
            }
        }
        arguments.body(field, body, coercer);
        arguments
    }

    pub fn given(&self, index: usize) -> &GivenArgument<'a> {
        self.given.get(index).unwrap_or(&GivenArgument::Nothing)
    }

    pub fn is_given(&self, field: &Field, name: &str) -> bool {
        position(field, name).is_some_and(|index| !matches!(self.given[index], GivenArgument::Nothing))
    }

    /// A name that is no argument's: the dotted name of a member of one, or unknown.
    fn member(
        &mut self,
        operation: &OperationPlan,
        field: &Field,
        name: &'a str,
        text: &'a str,
        coercer: &mut Coercer<'_>,
    ) {
        let dotted = name.split_once('.');
        let found = dotted.and_then(|(head, rest)| Some((position(field, head)?, rest)));
        let Some((index, rest)) = found else {
            return coercer.object(unknown(operation, field, name));
        };
        match &mut self.given[index] {
            GivenArgument::Members(members) => members.push((rest, text)),
            given @ GivenArgument::Nothing => *given = GivenArgument::Members(vec![(rest, text)]),
            GivenArgument::Text(_) | GivenArgument::Json(_) => {
                coercer.twice(&ValuePath::Root(&field.args[index].name));
            }
        }
    }

    fn body(&mut self, field: &Field, body: &'a [u8], coercer: &mut Coercer<'_>) {
        if body.trim_ascii().is_empty() {
            return;
        }
        let text = std::str::from_utf8(body).map_err(|_| "it is not UTF-8".to_owned());
        // The object around the arguments is not part of any value.
        let members = match text
            .and_then(|text| Json::parse(text, VALUE_DEPTH_MAX + 1).map_err(|error| error.to_string()))
        {
            Ok(Json::Object(members)) => members,
            Ok(_) => {
                return coercer
                    .object(Problem::Other("the body is JSON, but not an object of arguments".into()));
            }
            Err(error) => {
                return coercer.object(Problem::Other(format!("the body is not JSON: {error}")));
            }
        };
        for (name, value) in members {
            if coercer.is_full() {
                return;
            }
            self.body_member(field, &name, value, coercer);
        }
    }

    fn body_member(&mut self, field: &Field, name: &str, value: Json<'a>, coercer: &mut Coercer<'_>) {
        let Some(index) = position(field, name) else {
            return coercer.object(Problem::NoMember {
                name: "body".into(),
                member: shown(name),
                nearest: nearest_argument(name, field.args.iter().map(|arg| arg.name.as_str())),
                known: field.args.iter().take(20).map(|arg| arg.name.clone()).collect(),
            });
        };
        match &mut self.given[index] {
            given @ GivenArgument::Nothing => *given = GivenArgument::Json(value),
            _ => coercer.object(Problem::Twice {
                name: field.args[index].name.clone(),
                places: "in `params` and in the body",
            }),
        }
    }
}

fn position(field: &Field, name: &str) -> Option<usize> {
    field.args.iter().position(|arg| arg.name == name)
}

fn unknown(operation: &OperationPlan, field: &Field, name: &str) -> Problem {
    let names = || field.args.iter().map(|arg| arg.name.as_str()).chain(operation.fields);
    Problem::Unknown {
        name: shown(name),
        nearest: nearest_argument(name, names()),
        known: names().take(20).map(ToOwned::to_owned).collect(),
    }
}

fn nearest_argument<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> Option<String> {
    if name.len() <= 64 { nearest(name, names).map(ToOwned::to_owned) } else { None }
}
