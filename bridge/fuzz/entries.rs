//! What is fuzzed: each entry takes any bytes, must not panic, and checks what must hold for what was accepted.

use farthing_bridge::graphql;

/// SDL; what is accepted is printed as a schema that reads the same.
pub fn sdl(bytes: &[u8]) {
    if let Ok(reading) = graphql::sdl::read(bytes) {
        prints_the_same(&reading.schema);
    }
}

/// An answer to the introspection query; likewise.
pub fn introspection(bytes: &[u8]) {
    let _ = graphql::introspection::looks_like_introspection(bytes);
    if let Ok(reading) = graphql::introspection::read(bytes) {
        prints_the_same(&reading.schema);
    }
}

fn prints_the_same(schema: &graphql::Schema) {
    let printed = graphql::print::sdl(schema);
    match graphql::sdl::read(printed.as_bytes()) {
        Ok(again) => assert_eq!(&again.schema, schema, "{printed}"),
        Err(error) => panic!("what was printed is refused: {error}\n{printed}"),
    }
}
