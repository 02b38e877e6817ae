//! Made-up calls of every operation, for showing and for checking what the bridge sends.
//!
//! [`requests`] goes round the operations, and gives each call a random part of its arguments, with values that
//! the schema allows, in any of the forms a caller may use, and often a random `fields`. The same seed always
//! makes the same requests.

mod random;
#[cfg(test)]
mod tests;
mod values;

use std::collections::BTreeMap;

use serde::Serialize;

use self::{random::Random, values::ValueGenerator};
use super::{
    plan::{GraphqlRequest, OperationPlan, Planner},
    schema::{Field, GraphqlSchema, InputValue},
};
use crate::description::ApiDescription;

/// A made-up request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Generated {
    /// Such as `GET /planets`.
    pub operation: String,
    pub query: String,
    /// A JSON object.
    pub variables: String,
}

/// `count` requests, all operations in turn. Operations that nobody can call, because a required argument has no
/// value that ends, are passed over.
pub fn requests<'a>(
    planner: &'a Planner,
    description: &'a ApiDescription,
    count: usize,
    seed: u64,
) -> impl Iterator<Item = Generated> + 'a {
    let mut random = Random::new(seed);
    let mut indices = (0..description.operations.len()).cycle();
    let mut failures = 0;
    let next = move || {
        while failures < description.operations.len() {
            let index = indices.next()?;
            if let Some(request) = request(planner, description, index, &mut random) {
                failures = 0;
                return Some(Generated {
                    operation: name(description, index),
                    query: request.query,
                    variables: request.variables,
                });
            }
            failures += 1;
        }
        None
    };
    std::iter::from_fn(next).take(count)
}

fn name(description: &ApiDescription, index: usize) -> String {
    let operation = description.operations.get(index);
    operation.map(|operation| format!("{} {}", operation.method, operation.path)).unwrap_or_default()
}

/// A request of one operation: with everything, or, if that is too much, with less.
fn request(
    planner: &Planner,
    description: &ApiDescription,
    index: usize,
    random: &mut Random,
) -> Option<GraphqlRequest> {
    let schema = description.graphql.as_ref()?;
    let operation = planner.operation(index)?;
    let field = operation.declared(schema)?;
    let mut call = GeneratedCall::made_up(schema, operation, field, random);
    let plan =
        |call: &GeneratedCall| planner.plan(description, index, &call.params, call.body().as_bytes()).ok();
    plan(&call).or_else(|| {
        call.params.remove(operation.fields?);
        plan(&call)
    })
}

/// The parameters and the body that a caller sends.
#[derive(Debug, Default)]
struct GeneratedCall {
    params: BTreeMap<String, String>,
    /// Names and JSON texts.
    body: Vec<(String, String)>,
}

impl GeneratedCall {
    fn made_up(
        schema: &GraphqlSchema,
        operation: &OperationPlan,
        field: &Field,
        random: &mut Random,
    ) -> Self {
        let mut call = Self::default();
        let mut values = ValueGenerator { schema, random };
        for arg in &field.args {
            if arg.is_required() || values.random.chance(2) {
                call.argument(arg, &mut values);
            }
        }
        if let Some(name) = operation.fields.filter(|_| values.random.chance(2)) {
            call.params.extend(values.fields(&field.ty).map(|fields| (name.to_owned(), fields)));
        }
        call
    }

    /// Gives an argument as JSON, as text, or member by member.
    fn argument(&mut self, arg: &InputValue, values: &mut ValueGenerator<'_, '_>) {
        if values.random.chance(3) {
            let json = values.json(&arg.ty, 0);
            self.body.extend(json.map(|json| (arg.name.clone(), json)));
            return;
        }
        match values.dotted(&arg.ty) {
            Some(members) => {
                let named = members.into_iter().map(|(name, text)| (format!("{}.{name}", arg.name), text));
                self.params.extend(named);
            }
            None => self.params.extend(values.text(&arg.ty).map(|text| (arg.name.clone(), text))),
        }
    }

    fn body(&self) -> String {
        if self.body.is_empty() {
            return String::new();
        }
        let members: Vec<_> = self.body.iter().map(|(name, json)| format!("\"{name}\":{json}")).collect();
        format!("{{{}}}", members.join(","))
    }
}
