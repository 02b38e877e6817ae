//! Whatever an owner brings becomes a description: OpenAPI, Swagger, GraphQL SDL, or an introspection result.
//!
//! The first kilobytes tell which it is ([`guess`]), without parsing anything twice; then its reader takes over.

mod guess;

pub(crate) use self::guess::foreign;
use self::guess::{Guess, guess};
use crate::{
    graphql::{self, SchemaReading},
    openapi,
    report::{ReadError, Reading},
};

/// Reads an API description of any known kind.
///
/// # Errors
/// [`ReadError`] that says what the document seems to be, what is wrong with it, and where.
pub fn read(bytes: &[u8]) -> Result<Reading, ReadError> {
    match guess(bytes) {
        // What is unknown may still be OpenAPI with a mistake in it, and its reader tells others by their parts.
        Guess::OpenApi | Guess::Unknown => openapi::read(bytes),
        Guess::Introspection => graphql::introspection::read(bytes).map(described),
        Guess::Sdl => graphql::sdl::read(bytes).map(described),
    }
}

/// A schema with its operations; its address is where the owner found it.
fn described(reading: SchemaReading) -> Reading {
    let SchemaReading { schema, mut report } = reading;
    let description = graphql::describe(schema, "GraphQL", &mut report);
    Reading { description, report, servers: Vec::new(), security: Vec::new() }
}

#[cfg(test)]
mod tests;
