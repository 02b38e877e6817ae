//! Paths to operations. One that cannot be offered is skipped with the reason; the others are unaffected.

use std::collections::HashSet;

use serde_json::Value;

use super::{
    DocumentReader, FORMAT,
    contents::TOO_MUCH,
    ids::cleaned,
    refs::reference,
    values::{BYTES_PER_NODE, Members, array, bytes, cost, first_line, flag, text},
};
use crate::{
    description::{Method, Operation},
    limits::OPERATIONS_MAX,
    report::{ReadError, SecurityScheme},
    routing::{Route, Routes},
    shown,
};

/// Keys of a path item that are methods, and that nobody can call here.
const UNSOLD_METHODS: &[&str] = &["options", "trace", "connect", "query"];

const TAGS_MAX: usize = 20;

impl<'d> DocumentReader<'d> {
    /// Every operation that can be offered, in the document's order.
    pub(super) fn operations(&mut self, security: &[SecurityScheme]) -> Result<Vec<Operation>, ReadError> {
        let root: &'d Value = self.document.root;
        let mut operations = Vec::new();
        let mut shapes = HashSet::new();
        let paths = root.get("paths").and_then(Value::as_object);
        for (key, source) in paths.into_iter().flatten().filter(|(key, _)| !key.starts_with("x-")) {
            let item = match self.document.follow(source) {
                // Very many paths may refer to one large item.
                Ok(item)
                    if reference(source).is_some() && !self.spend_on(|| bytes(item) / BYTES_PER_NODE) =>
                {
                    self.report.skipped.add(shown(key), TOO_MUCH);
                    continue;
                }
                Ok(item) => item,
                Err(problem) => {
                    self.report.skipped.add(shown(key), problem.to_string());
                    continue;
                }
            };
            let Some(item) = item.as_object() else { continue };
            match self.path(key) {
                Ok(path) => self.path_item(&path, item, security, &mut shapes, &mut operations),
                Err(reason) => self.report.skipped.add(shown(key), reason),
            }
        }
        self.note_ignored(root);
        if operations.is_empty() {
            return Err(self.no_operation(paths.map_or(0, Members::len)));
        }
        self.name_operations(&mut operations);
        let route = |(operation, op): (usize, &Operation)| {
            let template = op.path.clone();
            Route { method: op.method, template, operation }
        };
        let routes: Vec<Route> = operations.iter().enumerate().map(route).collect();
        Routes::new(&routes).map_err(|error| ReadError::new(FORMAT, error.to_string()))?;
        Ok(operations)
    }

    /// A path key as a template that can be routed.
    fn path(&mut self, key: &str) -> Result<String, String> {
        if key.contains(['#', '?']) {
            return Err("a path cannot contain # or ?; declare query parameters as parameters".into());
        }
        let mut path = key.trim().to_owned();
        if !path.starts_with('/') {
            path.insert(0, '/');
            self.report.repaired.add(shown(key), "a leading slash was added");
        }
        let route = Route { method: Method::Get, template: path.clone(), operation: 0 };
        Routes::new(&[route]).map_err(|error| error.to_string())?;
        Ok(path)
    }

    fn path_item(
        &mut self,
        path: &str,
        item: &'d Members,
        security: &[SecurityScheme],
        shapes: &mut HashSet<(Method, String)>,
        operations: &mut Vec<Operation>,
    ) {
        for (key, source) in item {
            let place = format!("{} {path}", key.to_ascii_uppercase());
            if UNSOLD_METHODS.contains(&key.as_str()) {
                self.report.skipped.add(place, "the method cannot be offered");
                continue;
            }
            let (Some(method), Some(source)) = (Method::parse(key), source.as_object()) else { continue };
            if operations.len() >= OPERATIONS_MAX {
                self.report.skipped.add(place, format!("a service has at most {OPERATIONS_MAX} operations"));
                continue;
            }
            if !shapes.insert((method, shape_of(path))) {
                self.report.skipped.add(place, "another operation answers the same paths");
                continue;
            }
            self.place.clone_from(&place);
            match self.operation(method, path, item, source, security) {
                Ok(operation) => operations.push(operation),
                Err(reason) => {
                    shapes.remove(&(method, shape_of(path)));
                    self.report.skipped.add(place, reason);
                }
            }
        }
    }

    fn operation(
        &mut self,
        method: Method,
        path: &str,
        item: &'d Members,
        source: &'d Members,
        security: &[SecurityScheme],
    ) -> Result<Operation, String> {
        // Each operation of a path repeats what the path says.
        if !self.spend_on(|| 1 + cost(item)) {
            return Err(TOO_MUCH.into());
        }
        let parameters =
            self.parameters(path, array(item, "parameters"), array(source, "parameters"), security)?;
        let body = self.body(method, source.get("requestBody"))?;
        let responses = self.responses(source.get("responses"));
        if !array(source, "servers").is_empty() || !array(item, "servers").is_empty() {
            self.warn("it names its own server; the service's address is used");
        }
        let or_of_item =
            |key| Some(text(source, key)).filter(|text| !text.is_empty()).unwrap_or_else(|| text(item, key));
        let description = or_of_item("description");
        let summary = Some(first_line(&or_of_item("summary"))).filter(|summary| !summary.is_empty());
        let tags = array(source, "tags").iter().filter_map(Value::as_str).map(first_line);
        Ok(Operation {
            method,
            path: path.to_owned(),
            id: cleaned(&text(source, "operationId")),
            summary: summary.unwrap_or_else(|| first_line(&description)),
            description,
            tags: tags.filter(|tag| !tag.is_empty()).take(TAGS_MAX).collect(),
            deprecated: flag(source, "deprecated"),
            parameters,
            body,
            responses,
            any_params: false,
            timeout_secs: None,
            root: None,
        })
    }

    /// One line for each thing that has no place here.
    fn note_ignored(&mut self, root: &Value) {
        let paths = root.get("paths").and_then(Value::as_object);
        let methods = || {
            let items = paths.into_iter().flatten().filter_map(|(_, item)| item.as_object());
            items.flat_map(Members::values).filter_map(Value::as_object)
        };
        let callbacks = methods().filter(|operation| operation.contains_key("callbacks")).count();
        let has_links = |operation: &Members| {
            let responses = operation.get("responses").and_then(Value::as_object);
            responses.into_iter().flatten().any(|(_, response)| response.get("links").is_some())
        };
        let links = methods().filter(|operation| has_links(operation)).count();
        let webhooks = root.get("webhooks").and_then(Value::as_object).map_or(0, Members::len);
        for (count, what) in [(callbacks, "callbacks"), (links, "links"), (webhooks, "webhooks")] {
            if count > 0 {
                self.report.skipped.add(what, format!("{count} found; they are not part of a call"));
            }
        }
    }

    fn no_operation(&self, paths: usize) -> ReadError {
        if paths == 0 {
            let what = "the document has no paths, so there is nothing to offer; \
                        looked for operations under `paths`";
            return ReadError::new(FORMAT, what);
        }
        let what = "none of the document's paths has an operation that can be offered; looked for get, head, post, \
                    put, patch and delete under `paths`";
        let mut error = ReadError::new(FORMAT, what);
        let reasons = self.report.skipped.list.iter().take(ReadError::PROBLEMS_MAX - 1);
        error
            .problems
            .extend(reasons.flat_map(|finding| ReadError::new(FORMAT, finding.to_string()).problems));
        error
    }
}

/// Returns a template without its parameters' names: it is the same for templates that match the same paths.
fn shape_of(path: &str) -> String {
    let mut shape = String::with_capacity(path.len());
    let mut inside = false;
    for c in path.chars() {
        inside = (inside || c == '{') && c != '}';
        if !inside || c == '{' {
            shape.push(c);
        }
    }
    shape
}

/// Names in the braces of a template that can be routed.
pub(super) fn template_names(path: &str) -> Vec<&str> {
    path.split('{').skip(1).filter_map(|part| Some(part.split_once('}')?.0)).collect()
}
