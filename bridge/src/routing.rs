//! Routing: method and path → operation and the parameters in the path.
//!
//! 1. The path is refused before anything else when it could mean different things to different readers:
//!    empty segments, dot segments, backslashes, queries, controls, bad escapes ([`path`]).
//! 2. Templates form a tree, one level for each segment, which is a literal, a parameter, or both (`{id}.json`,
//!    `v{n}`). Where several templates match, literal beats mixed beats parameter, from left to right ([`tree`]).
//! 3. A path may be concrete (`/users/42`) or the template itself (`/users/{id}`), whose values then come from
//!    the call's parameters.

mod path;
mod template;
mod tree;

use std::{borrow::Cow, collections::HashMap};

pub use self::{path::BadPath, template::TemplateError};
use self::{path::RequestPath, tree::Tree};
pub(crate) use self::{
    path::{has_slash, leads_elsewhere},
    template::Template,
};
use crate::{description::Method, nearest, shown};

/// One method and path template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    pub method: Method,
    /// Such as `/users/{id}`.
    pub template: String,
    /// The operation that it leads to.
    pub operation: usize,
}

/// Routes of one service, indexed.
#[derive(Debug, Clone, Default)]
pub struct Routes {
    routes: Vec<IndexedRoute>,
    tree: Tree,
    /// Routes by template, for templates with parameters.
    by_template: HashMap<String, Vec<usize>>,
}

#[derive(Debug, Clone)]
struct IndexedRoute {
    operation: usize,
    method: Method,
    template: Template,
}

/// Decoded values in a path by parameter name, in the template's order.
pub type PathValues<'a> = Vec<(&'a str, Cow<'a, str>)>;

/// The destination of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RouteMatch<'a> {
    /// Position among the routes.
    pub route: usize,
    pub operation: usize,
    /// `None` when the path was the template itself.
    pub path_values: Option<PathValues<'a>>,
}

/// The reason that a call goes nowhere.
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
        let mut indexed = Self::default();
        for (index, route) in routes.iter().enumerate() {
            let template = Template::parse(&route.template)?;
            let rivals = indexed.tree.insert(&template, index);
            if rivals.iter().any(|rival| routes[*rival].method == route.method) {
                let method = route.method.to_string();
                return Err(TemplateError::Duplicate { method, template: shown(&route.template) });
            }
            if template.parameters().next().is_some() {
                indexed.by_template.entry(route.template.clone()).or_default().push(index);
            }
            indexed.routes.push(IndexedRoute { operation: route.operation, method: route.method, template });
        }
        Ok(indexed)
    }

    /// Number of routes.
    pub const fn len(&self) -> usize {
        self.routes.len()
    }

    pub const fn is_empty(&self) -> bool {
        self.routes.is_empty()
    }

    /// Finds the operation for a call. `method` in any case.
    ///
    /// # Errors
    /// [`RouteError`], which tells an unknown path from a wrong method, and takes time to say what may have been meant.
    pub fn find<'a>(&'a self, method: &str, path: &'a str) -> Result<RouteMatch<'a>, RouteError> {
        let path = RequestPath::parse(path)?;
        let mut passed = Vec::new();
        if let Some(routed) = self.search(method, &path, &mut passed) {
            return Ok(routed);
        }
        Err(match passed.first() {
            Some(best) => RouteError::MethodNotAllowed {
                method: shown(method).to_ascii_uppercase(),
                path: self.routes[*best].template.text().to_owned(),
                allowed: self.methods_of(&passed),
            },
            None => self.unknown(path.raw()),
        })
    }

    /// The operation that a call leads to. Unlike [`Routes::find`] it takes no longer where there is none, so that it may be
    /// asked for a stranger.
    pub fn operation_at(&self, method: &str, path: &str) -> Option<usize> {
        let path = RequestPath::parse(path).ok()?;
        self.search(method, &path, &mut Vec::new()).map(|routed| routed.operation)
    }

    /// `passed` are routes of this path with other methods.
    fn search<'a>(
        &'a self,
        method: &str,
        path: &RequestPath<'a>,
        passed: &mut Vec<usize>,
    ) -> Option<RouteMatch<'a>> {
        let wanted = Method::parse(method);
        let mut is_wanted = |route: usize| {
            let wanted = Some(self.routes[route].method) == wanted;
            if !wanted {
                passed.push(route);
            }
            wanted
        };
        // Without a brace it is no template, and need not be looked up.
        let same_text = path.raw().contains('{').then(|| self.by_template.get(path.raw())).flatten();
        let same_text = same_text.into_iter().flatten();
        if let Some(route) = same_text.copied().find(|route| is_wanted(*route)) {
            return Some(RouteMatch { route, operation: self.routes[route].operation, path_values: None });
        }
        let is_right = |route: usize| !self.routes[route].template.is_half_of(path) && is_wanted(route);
        if let Some(route) = self.tree.find(path, is_right)
            && let Some(values) = self.routes[route].template.values(path)
        {
            let IndexedRoute { operation, .. } = self.routes[route];
            return Some(RouteMatch { route, operation, path_values: Some(values) });
        }
        None
    }

    /// The template of another operation than `routed` that some upstream may take a request for: as it is sent, and as
    /// it is [read](path::readings) by whoever decodes more than we do.
    pub(crate) fn other_than(&self, routed: &RouteMatch<'_>, segments: &[String]) -> Option<&Template> {
        let method = self.routes[routed.route].method.as_str();
        let path = segments.iter().fold(String::new(), |path, segment| path + "/" + segment);
        path::readings(path).find_map(|path| {
            let found = self.search(method, &RequestPath::of_request(&path)?, &mut Vec::new())?;
            (found.operation != routed.operation).then(|| self.template(found.route))
        })
    }

    pub(crate) fn template(&self, route: usize) -> &Template {
        &self.routes[route].template
    }

    /// The methods of `routes`, each once: a path may match two templates that have the same one.
    fn methods_of(&self, routes: &[usize]) -> Vec<String> {
        let mut methods = Vec::new();
        for route in routes {
            let method = self.routes[*route].method.to_string();
            if !methods.contains(&method) {
                methods.push(method);
            }
        }
        methods
    }

    fn unknown(&self, path: &str) -> RouteError {
        // A parameter is as near as can be to any value, so it is compared as if it had the caller's.
        let filled: Vec<_> =
            self.routes.iter().map(|route| (route.template.like(path), route.template.text())).collect();
        let meant = nearest(path, filled.iter().map(|(filled, _)| filled.as_str()));
        let nearest = filled.iter().find(|(filled, _)| Some(filled.as_str()) == meant);
        RouteError::UnknownPath { path: shown(path), nearest: nearest.map(|(_, text)| (*text).to_owned()) }
    }
}

#[cfg(test)]
mod tests;
