//! Checks of a description before it is used: it may come from a stranger.
//!
//! Sizes first, then references, then every operation: its id, its parameters against its path, its schemas. After
//! that the planner relies on [`crate::description`]'s invariants; what only costs time is bounded when a call is
//! checked.

use std::collections::HashSet;

use crate::{
    ApiError,
    description::{ApiDescription, Method, Operation, Parameter, Place, RootKind, Schema, Shape},
    headers::header_is_forbidden,
    limits::{
        DOCUMENT_DEPTH_MAX, NAME_BYTES_MAX, OPERATIONS_MAX, PARAMETERS_MAX, REFERENCES_MAX, SCHEMAS_MAX,
    },
    routing::{Route, Routes},
    shown,
};

/// Checks `description`, declares what its paths imply, and indexes them.
pub(super) fn check(description: &mut ApiDescription) -> Result<Routes, ApiError> {
    at_most("operations", description.operations.len(), OPERATIONS_MAX)?;
    at_most("schemas", description.schemas.len(), SCHEMAS_MAX)?;
    check_schemas(description)?;
    let routes = Routes::new(&routes(description))?;
    let mut ids = HashSet::new();
    let schemas = description.schemas.len();
    let is_graphql = description.graphql.is_some();
    for (index, operation) in description.operations.iter_mut().enumerate() {
        let refuse = |reason| Err(ApiError::Operation { operation: name(operation), reason });
        if operation.id.len() > NAME_BYTES_MAX {
            return refuse("has an id that is too long");
        }
        if !ids.insert(operation.id.clone()) {
            return refuse("has the id of another operation");
        }
        let in_path: Vec<String> = routes.template(index).parameters().map(ToOwned::to_owned).collect();
        if operation.root.is_some() && !in_path.is_empty() {
            return refuse("stands for a GraphQL field, whose path has no parameters");
        }
        if operation.root.is_some() && !is_graphql {
            return refuse("stands for a GraphQL field, and there is no schema");
        }
        complete(operation, &in_path)?;
        at_most("parameters", operation.parameters.len(), PARAMETERS_MAX)?;
        let parameters = operation.parameters.iter().map(|parameter| &parameter.schema);
        let body = operation.body.iter().map(|body| &body.schema);
        let contents = operation.responses.iter().filter_map(|response| response.content.as_ref());
        let mut all = parameters.chain(body).chain(contents.map(|content| &content.schema));
        if let Some(reason) = all.find_map(|schema| objection(schema, schemas, DOCUMENT_DEPTH_MAX)) {
            return Err(ApiError::Operation { operation: name(operation), reason });
        }
    }
    Ok(routes)
}

fn at_most(what: &'static str, found: usize, max: usize) -> Result<(), ApiError> {
    if found > max { Err(ApiError::TooMany { what, found, max }) } else { Ok(()) }
}

fn name(operation: &Operation) -> String {
    format!("{} {}", operation.method, shown(&operation.path))
}

/// One route for each operation, in order; then those of GraphQL queries that can be posted as well.
fn routes(description: &ApiDescription) -> Vec<Route> {
    let operations = || description.operations.iter().enumerate();
    let route = |operation, method, path: &str| Route { method, template: path.to_owned(), operation };
    let posted: HashSet<&str> = operations()
        .filter(|(_, operation)| operation.method == Method::Post)
        .map(|(_, operation)| operation.path.as_str())
        .collect();
    let is_query = |operation: &Operation| {
        operation.method == Method::Get
            && operation.root.as_ref().is_some_and(|root| root.kind == RootKind::Query)
    };
    let declared = operations().map(|(index, operation)| route(index, operation.method, &operation.path));
    let also_posted = operations()
        .filter(|(_, operation)| is_query(operation) && !posted.contains(operation.path.as_str()))
        .map(|(index, operation)| route(index, Method::Post, &operation.path));
    declared.chain(also_posted).collect()
}

fn check_schemas(description: &ApiDescription) -> Result<(), ApiError> {
    let mut names = HashSet::new();
    for named in &description.schemas {
        let reason = if named.name.len() > NAME_BYTES_MAX {
            Some("has a name that is too long")
        } else if !names.insert(&named.name) {
            Some("is named like another")
        } else if let Some(reason) = objection(&named.schema, description.schemas.len(), DOCUMENT_DEPTH_MAX) {
            Some(reason)
        } else if !ends(description, &named.schema) {
            Some("has only references to references")
        } else {
            None
        };
        if let Some(reason) = reason {
            return Err(ApiError::Schema { name: shown(&named.name), reason });
        }
    }
    Ok(())
}

/// Tells whether the references of `schema` lead to something else soon.
fn ends(description: &ApiDescription, schema: &Schema) -> bool {
    let mut schema = Some(schema);
    for _ in 0..REFERENCES_MAX {
        match schema.map(|schema| &schema.shape) {
            Some(Shape::Ref(id)) => schema = description.schema(*id).map(|named| &named.schema),
            Some(_) => return true,
            None => return false,
        }
    }
    false
}

/// Returns the reason that `schema` cannot be used; `named` is the number of named schemas.
fn objection(schema: &Schema, named: usize, depth: usize) -> Option<&'static str> {
    let Some(depth) = depth.checked_sub(1) else { return Some("has schemas nested too deeply") };
    let inside = |schema: &Schema| objection(schema, named, depth);
    match &schema.shape {
        Shape::Ref(id) if usize::try_from(id.0).is_ok_and(|id| id < named) => None,
        Shape::Ref(_) => Some("refers to a schema that does not exist"),
        Shape::Array(array) => inside(&array.items),
        Shape::OneOf(one_of) => one_of.variants.iter().find_map(inside),
        Shape::Object(object) => {
            let mut names = HashSet::new();
            if !object.properties.iter().all(|property| names.insert(&property.name)) {
                return Some("has an object with two members of the same name");
            }
            let members = object.properties.iter().map(|property| &property.schema);
            members.chain(object.additional.as_deref()).find_map(inside)
        }
        Shape::Any | Shape::Boolean | Shape::Integer(_) | Shape::Number(_) | Shape::String(_) => None,
    }
}

/// Declares what the path implies, and checks what is declared.
fn complete(operation: &mut Operation, in_path: &[String]) -> Result<(), ApiError> {
    let mut seen = HashSet::new();
    for parameter in &mut operation.parameters {
        let header = parameter.place == Place::Header;
        let key = if header { parameter.name.to_ascii_lowercase() } else { parameter.name.clone() };
        let reason = if !seen.insert(key) {
            "is declared twice"
        } else if parameter.name.is_empty() || parameter.name.contains(char::is_control) {
            "needs a name"
        } else if header && header_is_forbidden(&parameter.name) {
            "is a header that is never passed on"
        } else if in_path.contains(&parameter.name) != (parameter.place == Place::Path) {
            "must be in the path template if, and only if, it is a path parameter"
        } else {
            parameter.required |= parameter.place == Place::Path;
            continue;
        };
        let operation = format!("{} {}", operation.method, shown(&operation.path));
        return Err(ApiError::Parameter { operation, name: shown(&parameter.name), reason });
    }
    for name in in_path.iter().filter(|name| !seen.contains(*name)) {
        operation.parameters.push(Parameter {
            name: name.clone(),
            place: Place::Path,
            required: true,
            schema: Schema::string(),
            ..Parameter::default()
        });
    }
    Ok(())
}
