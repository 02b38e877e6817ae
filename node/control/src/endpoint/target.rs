//! The target of a request to an endpoint (RFC 9112 §3.2): its path and query.

use std::{fmt::Display, marker::PhantomData};

use super::Endpoint;

/// An endpoint's path with its parts filled in, and a query.
#[derive(Debug, Clone)]
pub struct Target<E> {
    text: String,
    endpoint: PhantomData<E>,
}

impl<E: Endpoint> From<E> for Target<E> {
    fn from(_: E) -> Self {
        Self { text: E::PATH.to_owned(), endpoint: PhantomData }
    }
}

impl<E: Endpoint> Target<E> {
    /// Fills in the next part of the path.
    #[must_use]
    pub fn of(mut self, part: impl Display) -> Self {
        let part: String = url::form_urlencoded::byte_serialize(part.to_string().as_bytes()).collect();
        // In a path a plus stands for itself.
        let part = part.replace('+', "%20");
        if let (Some(from), Some(to)) = (self.text.find('{'), self.text.find('}')) {
            self.text.replace_range(from..=to, &part);
        }
        self
    }

    /// Adds a parameter to the query.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Display) -> Self {
        self.text.push(if self.text.contains('?') { '&' } else { '?' });
        self.text.extend(url::form_urlencoded::byte_serialize(name.as_bytes()));
        self.text.push('=');
        self.text.extend(url::form_urlencoded::byte_serialize(value.to_string().as_bytes()));
        self
    }

    /// The same with a parameter that may be missing.
    #[must_use]
    pub fn with_some(self, name: &str, value: Option<impl Display>) -> Self {
        match value {
            Some(value) => self.with(name, value),
            None => self,
        }
    }

    /// Adds a query that is encoded already.
    #[must_use]
    pub fn with_query(mut self, query: &str) -> Self {
        self.text.push(if self.text.contains('?') { '&' } else { '?' });
        self.text.push_str(query);
        self
    }

    /// As it is sent.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::endpoint::{History, NamedSecret, Sdk, Status};

    #[test]
    fn parts_and_parameters_are_encoded_and_fill_their_places() {
        assert_eq!(Target::from(Status).as_str(), "/status");
        assert_eq!(NamedSecret.of("a b/c+{x}").as_str(), "/secrets/a%20b%2Fc%2B%7Bx%7D");
        assert_eq!(Sdk.of("1").of("go").with("form", "zip").as_str(), "/catalog/1/sdk/go?form=zip");
        let history = History.with("kind", "bought,served").with_some("state", None::<&str>).with("limit", 2);
        assert_eq!(history.as_str(), "/history?kind=bought%2Cserved&limit=2");
    }
}
