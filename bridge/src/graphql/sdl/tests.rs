//! What a stranger's schema may look like, as tables of promises.

use super::read;

#[test]
fn a_schema_that_is_printed_and_read_again_is_the_same() {
    let sdl = "type Query { a(x: E = nullable): [ Int ! ] } enum E { nullable }";
    let schema = read(sdl.as_bytes()).expect("the schema is valid").schema;
    let printed = crate::graphql::print::sdl(&schema);
    assert_eq!(read(printed.as_bytes()).expect("the printed schema is valid").schema, schema);
}
