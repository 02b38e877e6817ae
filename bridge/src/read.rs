//! Whatever an owner brings becomes a description: OpenAPI, Swagger, GraphQL SDL, or an introspection result.
//!
//! The first kilobytes tell which it is, without parsing anything twice; then its reader takes over.

use crate::{
    graphql::{
        self, SchemaReading,
        introspection::{self, looks_like_introspection},
        sdl::{self, looks_like_sdl},
    },
    openapi::{self, looks_like_openapi},
    report::{ReadError, Reading},
};

/// Reads an API description of any known kind.
pub fn read(bytes: &[u8]) -> Result<Reading, ReadError> {
    if looks_like_openapi(bytes) {
        openapi::read(bytes)
    } else if looks_like_introspection(bytes) {
        introspection::read(bytes).map(described)
    } else if looks_like_sdl(bytes) {
        sdl::read(bytes).map(described)
    } else {
        // What is unknown may still be OpenAPI with a mistake in it, and its reader tells others by their parts.
        openapi::read(bytes)
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
