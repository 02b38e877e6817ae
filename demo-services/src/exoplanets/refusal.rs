//! Reasons why a field cannot be answered, with the stable code that a program reads in `extensions.code`.

use juniper::{DefaultScalarValue, FieldError, IntoFieldError, Object, Value};
use thiserror::Error;

/// One error of one field. The text is a sentence for a person: what was wrong, and what would be right.
#[derive(Debug, Error)]
pub(super) enum Refusal {
    /// An argument of the right type whose value cannot be used.
    #[error("{0}")]
    BadInput(String),
    #[error("{0}")]
    NotFound(String),
    /// Right in itself, but not in the state things are in.
    #[error("{0}")]
    Conflict(String),
    /// The answer would have too many fields.
    #[error("{0}")]
    TooComplex(String),
}

impl Refusal {
    fn code(&self) -> &'static str {
        match self {
            Self::BadInput(_) => "BAD_USER_INPUT",
            Self::NotFound(_) => "NOT_FOUND",
            Self::Conflict(_) => "CONFLICT",
            Self::TooComplex(_) => "QUERY_TOO_COMPLEX",
        }
    }

    /// The HTTP status this would be, had it been the only thing asked; for gateways, in `extensions.http.status`.
    fn status(&self) -> i32 {
        match self {
            Self::BadInput(_) | Self::TooComplex(_) => 400,
            Self::NotFound(_) => 404,
            Self::Conflict(_) => 409,
        }
    }
}

impl IntoFieldError<DefaultScalarValue> for Refusal {
    fn into_field_error(self) -> FieldError {
        let http = object([("status", Value::scalar(self.status()))]);
        FieldError::new(&self, object([("code", Value::scalar(self.code())), ("http", http)]))
    }
}

fn object<const N: usize>(fields: [(&str, Value); N]) -> Value {
    Value::object(Object::from_iter(fields))
}
