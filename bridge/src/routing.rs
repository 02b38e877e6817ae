//! Routing: method and path → operation and the parameters in the path.
//!
//! 1. The path is refused before anything else when it could mean different things to different readers:
//!    empty segments, dot segments, backslashes, queries, controls, bad escapes ([`path`]).
//! 2. Routes are indexed by their number of segments; a segment of a template is a literal, a parameter, or
//!    both (`{id}.json`, `v{n}`). Where several templates match, literal beats mixed beats parameter, from
//!    left to right ([`template`]).
//! 3. A path may be concrete (`/users/42`) or the template itself (`/users/{id}`), whose values then come from
//!    the call's parameters.

mod path;
mod template;

use std::collections::BTreeMap;

pub use self::{path::BadPath, template::TemplateError};
use self::{path::Path, template::Template};
use crate::{nearest, shown};

/// Suggesting compares against every template, so a long path is not worth it.
const SUGGESTED_PATH_BYTES_MAX: usize = 256;

/// One operation's method and path template. Its position in the list is the operation's index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    pub method: String,
    /// Such as `/users/{id}`.
    pub template: String,
}

/// Routes of one service, indexed.
#[derive(Debug, Clone, Default)]
pub struct Routes {
    /// By number of segments; most specific first.
    by_length: BTreeMap<usize, Vec<Indexed>>,
    operations: usize,
}

#[derive(Debug, Clone)]
struct Indexed {
    operation: usize,
    method: String,
    template: Template,
}

/// Where a call goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Routed {
    pub operation: usize,
    /// Decoded values in the path by parameter name; `None` when the path was the template itself.
    pub path_values: Option<BTreeMap<String, String>>,
}

/// Why a call goes nowhere.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RouteError {
    #[error("the path is refused: {0}")]
    BadPath(#[from] BadPath),
    #[error("no operation has the path {path}{}", did_you_mean(nearest.as_deref()))]
    UnknownPath { path: String, nearest: Option<String> },
    #[error("{path} has no {method}, only {}", allowed.join(", "))]
    MethodNotAllowed { method: String, path: String, allowed: Vec<String> },
}

fn did_you_mean(nearest: Option<&str>) -> String {
    nearest.map_or_else(String::new, |path| format!("; did you mean {path}?"))
}

impl Routes {
    /// Indexes `routes`.
    ///
    /// # Errors
    /// [`TemplateError`] for a template that cannot be routed, or two that match the same paths.
    pub fn new(routes: &[Route]) -> Result<Self, TemplateError> {
        let mut by_length: BTreeMap<usize, Vec<Indexed>> = BTreeMap::new();
        for (operation, route) in routes.iter().enumerate() {
            let template = Template::parse(&route.template)?;
            let method = route.method.to_ascii_uppercase();
            let rivals = by_length.entry(template.len()).or_default();
            if rivals.iter().any(|rival| rival.method == method && rival.template.same_shape(&template)) {
                return Err(TemplateError::Duplicate { method, template: shown(&route.template) });
            }
            rivals.push(Indexed { operation, method, template });
        }
        for rivals in by_length.values_mut() {
            rivals.sort_by_key(|route| route.template.rank());
        }
        Ok(Self { by_length, operations: routes.len() })
    }

    /// Number of operations.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.operations
    }

    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.operations == 0
    }

    /// Finds the operation for a call. `method` in any case.
    ///
    /// # Errors
    /// [`RouteError`], which tells an unknown path from a wrong method.
    pub fn find(&self, method: &str, path: &str) -> Result<Routed, RouteError> {
        let method = method.to_ascii_uppercase();
        let path = Path::parse(path)?;
        let matching = self
            .by_length
            .get(&path.segments().len())
            .into_iter()
            .flatten()
            .filter_map(|route| Some((route, route.template.matches(&path)?)));
        let mut allowed: Vec<&Indexed> = Vec::new();
        for (route, path_values) in matching {
            if route.method == method {
                return Ok(Routed { operation: route.operation, path_values });
            }
            allowed.push(route);
        }
        Err(match allowed.first() {
            Some(best) => RouteError::MethodNotAllowed {
                method: shown(&method),
                path: best.template.text().to_owned(),
                allowed: allowed.iter().map(|route| route.method.clone()).collect(),
            },
            None => self.unknown(path.raw()),
        })
    }

    pub(crate) fn template(&self, operation: usize) -> Option<&Template> {
        let mut routes = self.by_length.values().flatten();
        routes.find(|route| route.operation == operation).map(|route| &route.template)
    }

    fn unknown(&self, path: &str) -> RouteError {
        let routes = self.by_length.values().flatten();
        // A parameter is as near as can be to any value, so it is compared as if it had the caller's.
        let filled: Vec<_> = routes.map(|route| (route.template.like(path), route.template.text())).collect();
        let meant = if path.len() <= SUGGESTED_PATH_BYTES_MAX {
            nearest(path, filled.iter().map(|(filled, _)| filled.as_str()))
        } else {
            None
        };
        let nearest = filled.iter().find(|(filled, _)| Some(filled.as_str()) == meant);
        RouteError::UnknownPath { path: shown(path), nearest: nearest.map(|(_, text)| (*text).to_owned()) }
    }
}

pub(crate) use self::path::is_dot_segment;

#[cfg(test)]
mod tests;
