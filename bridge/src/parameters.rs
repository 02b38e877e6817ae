//! Parameters: checked against the description and put where they belong.
//!
//! [`Api::prepare`] routes the call, then looks at every parameter: unknown names, missing ones and wrong
//! values are all told at once. Nothing is dropped, coerced or guessed.

mod kind;

use std::collections::{BTreeMap, BTreeSet};

pub use self::kind::Kind;
use crate::{
    headers::header_is_forbidden,
    nearest,
    request::Prepared,
    routing::{BadPath, Route, RouteError, Routes, TemplateError, is_dot_segment},
    shown,
};

/// An operation of a service.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OperationSpec {
    pub method: String,
    /// Such as `/users/{id}`.
    pub template: String,
    /// Parameters of the template that are not declared are required text.
    pub parameters: Vec<ParameterSpec>,
    /// Undeclared parameters go to the query instead of being refused.
    pub any_params: bool,
}

/// A declared parameter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParameterSpec {
    pub name: String,
    pub place: Place,
    pub kind: Kind,
    pub required: bool,
    /// The allowed values; any when empty.
    pub choices: Vec<String>,
}

/// Where a parameter travels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    Query,
    Path,
    Header,
}

/// Why a description cannot be offered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ApiError {
    #[error(transparent)]
    Template(#[from] TemplateError),
    #[error("{operation}: the parameter `{name}` {reason}")]
    Parameter { operation: String, name: String, reason: &'static str },
}

/// Why a call is refused, free.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PrepareError {
    #[error(transparent)]
    Route(#[from] RouteError),
    #[error("{}", list(.0))]
    Parameters(Vec<ParameterProblem>),
}

/// One thing that is wrong with a call's parameters.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParameterProblem {
    #[error("missing {}", names(.0))]
    Missing(Vec<String>),
    #[error("`{name}` is not a parameter of this operation{}", suggestion(nearest.as_deref(), known))]
    Unknown { name: String, nearest: Option<String>, known: Vec<String> },
    #[error("`{name}` is already in the path; give it once")]
    Twice { name: String },
    #[error("`{name}` is `{value}`, expected {expected}")]
    Value { name: String, value: String, expected: String },
}

fn list(problems: &[ParameterProblem]) -> String {
    let texts: Vec<_> = problems.iter().map(ToString::to_string).collect();
    texts.join("; ")
}

fn names(names: &[String]) -> String {
    let quoted: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
    quoted.join(", ")
}

fn suggestion(nearest: Option<&str>, known: &[String]) -> String {
    match (nearest, known) {
        (Some(nearest), _) => format!("; did you mean `{nearest}`?"),
        (None, []) => "; it takes none".into(),
        (None, known) => format!("; it takes {}", names(known)),
    }
}

/// A service's operations, checked and indexed.
#[derive(Debug, Clone, Default)]
pub struct Api {
    routes: Routes,
    operations: Vec<OperationSpec>,
}

impl Api {
    /// Checks `operations` and indexes them.
    ///
    /// # Errors
    /// [`ApiError`] for the first operation that cannot be offered.
    pub fn new(mut operations: Vec<OperationSpec>) -> Result<Self, ApiError> {
        let route = |operation: &OperationSpec| Route {
            method: operation.method.clone(),
            template: operation.template.clone(),
        };
        let routes = Routes::new(&operations.iter().map(route).collect::<Vec<_>>())?;
        for (index, operation) in operations.iter_mut().enumerate() {
            let in_template: Vec<String> = routes
                .template(index)
                .map(|template| template.parameters().map(ToOwned::to_owned).collect())
                .unwrap_or_default();
            operation.complete(&in_template)?;
        }
        Ok(Self { routes, operations })
    }

    #[must_use]
    pub fn operations(&self) -> &[OperationSpec] {
        &self.operations
    }

    /// Turns a call into a request.
    ///
    /// # Errors
    /// [`PrepareError`]: no such path, not with this method, or everything that is wrong with the parameters.
    pub fn prepare(
        &self,
        method: &str,
        path: &str,
        params: &BTreeMap<String, String>,
    ) -> Result<Prepared, PrepareError> {
        let routed = self.routes.find(method, path)?;
        let operation = &self.operations[routed.operation];
        let in_path = routed.path_values.as_ref();
        let problems = operation.problems(in_path, params);
        if !problems.is_empty() {
            return Err(PrepareError::Parameters(problems));
        }
        let value = |name: &str| in_path.unwrap_or(params).get(name).map(String::as_str);
        let template = self.routes.template(routed.operation);
        let segments = template.and_then(|template| template.fill(value)).ok_or_else(|| {
            // Cannot happen: every parameter of the template is required, and none is missing.
            PrepareError::Parameters(vec![ParameterProblem::Missing(Vec::new())])
        })?;
        // A template such as `.{name}` turns an innocent value into a segment of dots.
        if segments.iter().any(|segment| is_dot_segment(segment)) {
            return Err(RouteError::from(BadPath::DotSegment).into());
        }
        let mut prepared =
            Prepared { operation: routed.operation, segments, query: Vec::new(), headers: Vec::new() };
        for (name, value) in params {
            match operation.parameter(name).map_or(Place::Query, |parameter| parameter.place) {
                Place::Path => {}
                Place::Query => prepared.query.push((name.clone(), value.clone())),
                Place::Header => prepared.headers.push((name.to_ascii_lowercase(), value.clone())),
            }
        }
        Ok(prepared)
    }
}

impl OperationSpec {
    fn parameter(&self, name: &str) -> Option<&ParameterSpec> {
        self.parameters.iter().find(|parameter| parameter.name == name)
    }

    /// Declares what the template implies, and checks what is declared.
    fn complete(&mut self, in_template: &[String]) -> Result<(), ApiError> {
        let mut seen = BTreeSet::new();
        for parameter in &mut self.parameters {
            let reason = if !seen.insert(parameter.name.clone()) {
                "is declared twice"
            } else if parameter.name.is_empty() || parameter.name.contains(char::is_control) {
                "needs a name"
            } else if parameter.place == Place::Header && header_is_forbidden(&parameter.name) {
                "is a header that is never passed on"
            } else if in_template.contains(&parameter.name) != (parameter.place == Place::Path) {
                "must be in the path template if, and only if, it is a path parameter"
            } else {
                parameter.required |= parameter.place == Place::Path;
                continue;
            };
            let operation = format!("{} {}", shown(&self.method), shown(&self.template));
            return Err(ApiError::Parameter { operation, name: shown(&parameter.name), reason });
        }
        for name in in_template.iter().filter(|name| !seen.contains(*name)) {
            self.parameters.push(ParameterSpec {
                name: name.clone(),
                place: Place::Path,
                kind: Kind::Text,
                required: true,
                choices: Vec::new(),
            });
        }
        Ok(())
    }

    fn problems(
        &self,
        in_path: Option<&BTreeMap<String, String>>,
        params: &BTreeMap<String, String>,
    ) -> Vec<ParameterProblem> {
        let empty = BTreeMap::new();
        let in_path = in_path.unwrap_or(&empty);
        let mut problems = Vec::new();
        let missing: Vec<_> = self
            .parameters
            .iter()
            .filter(|spec| {
                spec.required && !params.contains_key(&spec.name) && !in_path.contains_key(&spec.name)
            })
            .map(|spec| spec.name.clone())
            .collect();
        if !missing.is_empty() {
            problems.push(ParameterProblem::Missing(missing));
        }
        for name in params.keys() {
            if in_path.contains_key(name) {
                problems.push(ParameterProblem::Twice { name: shown(name) });
            } else if self.parameter(name).is_none() && !self.any_params {
                problems.push(self.unknown(name));
            }
        }
        for (name, value) in in_path.iter().chain(params) {
            let Some(expected) = self.parameter(name).and_then(|spec| spec.objection(value)) else {
                continue;
            };
            problems.push(ParameterProblem::Value { name: shown(name), value: shown(value), expected });
        }
        problems
    }

    fn unknown(&self, name: &str) -> ParameterProblem {
        let known = || self.parameters.iter().map(|parameter| parameter.name.as_str());
        let nearest = if name.len() <= 64 { nearest(name, known()) } else { None };
        ParameterProblem::Unknown {
            name: shown(name),
            nearest: nearest.map(ToOwned::to_owned),
            known: known().take(20).map(ToOwned::to_owned).collect(),
        }
    }
}

impl ParameterSpec {
    /// What was expected instead of `value`, if it cannot be accepted.
    fn objection(&self, value: &str) -> Option<String> {
        if !self.choices.is_empty() && !self.choices.iter().any(|choice| choice == value) {
            return Some(format!("one of {}", self.choices.join(", ")));
        }
        if !self.kind.accepts(value) {
            return Some(self.kind.to_string());
        }
        let expected = match self.place {
            Place::Path if value.is_empty() => "a value that is not empty",
            // A server behind the upstream may decode what we encode.
            Place::Path if value.split(['/', '\\']).any(is_dot_segment) => {
                "a value without the segments . and .."
            }
            Place::Path if value.contains(char::is_control) => "text without control characters",
            Place::Header if !value.bytes().all(|b| matches!(b, b' '..=b'~')) => "printable ASCII",
            _ => return None,
        };
        Some(expected.into())
    }
}

#[cfg(test)]
mod tests;
