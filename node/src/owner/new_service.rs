//! What an owner says of a service when publishing it, checked before anything is signed.

use std::collections::{BTreeMap, HashSet};

use farthing_protocol::{ServiceId, Usdc, call::ChargePolicy, limits, listing::Details};

/// A service to publish.
#[derive(Clone)]
pub struct NewService {
    /// Replaces the service of this id; a new one is chosen when absent.
    pub id: Option<ServiceId>,
    pub name: String,
    pub summary: String,
    pub category: String,
    pub tags: Vec<String>,
    /// Base URL of the owner's server.
    pub upstream: String,
    /// Sent to the upstream with every call and never shown to anyone.
    pub upstream_headers: BTreeMap<String, String>,
    pub price: Usdc,
    pub charge_policy: ChargePolicy,
    pub details: Details,
}

impl std::fmt::Debug for NewService {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NewService").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Why a service cannot be published.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{field}` {problem}")]
pub struct NewServiceError {
    pub field: String,
    pub problem: String,
}

impl NewService {
    /// Checks what the listing itself does not: that there is something to sell, once each, within bounds.
    ///
    /// # Errors
    /// [`NewServiceError`], naming the field and what was expected.
    pub fn check(&self) -> Result<(), NewServiceError> {
        let operations = &self.details.operations;
        if operations.is_empty() {
            let problem = "is empty; name at least one, such as method = \"GET\", path = \"/v1/things\"";
            return Err(error("operations", problem));
        }
        if operations.len() > limits::OPERATIONS_MAX {
            return Err(error("operations", format!("are more than {}", limits::OPERATIONS_MAX)));
        }
        if self.details.description.len() > limits::DESCRIPTION_BYTES_MAX {
            let problem = format!("has more than {} bytes", limits::DESCRIPTION_BYTES_MAX);
            return Err(error("description", problem));
        }
        let mut seen = HashSet::new();
        for (i, operation) in operations.iter().enumerate() {
            let at = |name: &str| format!("operations[{i}].{name}");
            if !operation.path.starts_with('/') || operation.path.len() > limits::PATH_BYTES_MAX {
                return Err(error(at("path"), "must start with / and be a path such as /v1/things/{id}"));
            }
            if operation.parameters.len() > limits::PARAMS_MAX {
                return Err(error(at("parameters"), format!("are more than {}", limits::PARAMS_MAX)));
            }
            if !seen.insert((operation.method, &operation.path)) {
                let problem = format!("repeats {} {}", operation.method, operation.path);
                return Err(error(format!("operations[{i}]"), problem));
            }
        }
        Ok(())
    }
}

fn error(field: impl Into<String>, problem: impl Into<String>) -> NewServiceError {
    NewServiceError { field: field.into(), problem: problem.into() }
}

#[cfg(test)]
mod tests {
    use farthing_protocol::{call::Method, listing::Operation};

    use super::*;

    fn operation(path: &str) -> Operation {
        Operation {
            method: Method::Get,
            path: path.to_owned(),
            summary: String::new(),
            price: None,
            parameters: Vec::new(),
            body: false,
            any_params: false,
        }
    }

    fn service(operations: Vec<Operation>) -> NewService {
        NewService {
            id: None,
            name: "Earthquakes".to_owned(),
            summary: String::new(),
            category: String::new(),
            tags: Vec::new(),
            upstream: "http://127.0.0.1:4001".to_owned(),
            upstream_headers: BTreeMap::new(),
            price: Usdc::from_micros(2_000),
            charge_policy: ChargePolicy::Success,
            details: Details { description: String::new(), operations },
        }
    }

    #[test]
    fn every_mistake_names_its_field() {
        assert_eq!(service(vec![operation("/a"), operation("/b")]).check(), Ok(()));
        for (operations, field) in [
            (vec![], "operations"),
            (vec![operation("a")], "operations[0].path"),
            (vec![operation("/a"), operation("/a")], "operations[1]"),
            (vec![operation("/a"); limits::OPERATIONS_MAX + 1], "operations"),
        ] {
            assert_eq!(service(operations).check().unwrap_err().field, field);
        }
    }
}
