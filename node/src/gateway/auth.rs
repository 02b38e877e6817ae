//! Who calls: the consumer secret, compared in constant time.

use std::sync::{PoisonError, RwLock};

use axum::{
    extract::FromRequestParts,
    http::{header, request::Parts},
};

use crate::secret::{ConsumerSecret, SecretFile, SecretFileError};

use super::{Gateway, problem::Problem};

/// The name budgets and history use for the node's own secret.
pub const DEFAULT_SECRET: &str = "default";

/// The secrets this node accepts.
#[derive(Debug)]
pub struct Secrets {
    file: SecretFile,
    current: RwLock<ConsumerSecret>,
}

impl Secrets {
    #[must_use]
    pub const fn new(file: SecretFile, current: ConsumerSecret) -> Self {
        Self { file, current: RwLock::new(current) }
    }

    /// The name of the secret that was presented, if it is one.
    #[must_use]
    pub fn name_of(&self, presented: &str) -> Option<String> {
        let current = self.current.read().unwrap_or_else(PoisonError::into_inner);
        current.matches(presented).then(|| DEFAULT_SECRET.to_owned())
    }

    /// The secret, for the user who asked to see it.
    #[must_use]
    pub fn current(&self) -> ConsumerSecret {
        self.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Replaces the secret; the old one stops working at once.
    ///
    /// # Errors
    /// [`SecretFileError`]; the old one stays then.
    pub fn rotate(&self) -> Result<ConsumerSecret, SecretFileError> {
        let fresh = self.file.rotate()?;
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = fresh.clone();
        Ok(fresh)
    }
}

/// Proof that the caller presented a consumer secret, with the secret's name.
#[derive(Clone, Debug)]
pub struct Consumer(pub String);

impl FromRequestParts<Gateway> for Consumer {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, gateway: &Gateway) -> Result<Self, Problem> {
        let header = parts.headers.get(header::AUTHORIZATION);
        let header = header.ok_or_else(|| Problem::unauthorized("the header `Authorization` is missing"))?;
        let secret = header
            .to_str()
            .ok()
            .and_then(|value| value.split_once(' '))
            .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"))
            .map(|(_, secret)| secret.trim())
            .ok_or_else(|| Problem::unauthorized("`Authorization` must be `Bearer <CONSUMER_SECRET>`"))?;
        let name = gateway.secrets.name_of(secret);
        name.map(Self).ok_or_else(|| Problem::unauthorized("the secret is not this node's"))
    }
}
