//! Mistakes are told with their line and column, all of them up to 20.

use super::{read, refused};

#[test]
fn mistakes_are_told_where_they_are() {
    for (sdl, told) in [
        ("", "the file is empty; expected definitions such as `type Query { … }`"),
        ("# nothing\n", "the file is empty; expected definitions such as `type Query { … }`"),
        ("type Query {\n  a: Int\n", "line 1, column 12: `{` is never closed"),
        ("type Query { a(: Int }", "line 1, column 22: `}` does not close the `(` of line 1, column 15"),
        ("type Query { a: Int }\n}", "line 2, column 1: `}` closes nothing"),
        ("type Query { a: }", "line 1, column 17: `}` is not allowed here; expected a type"),
        (
            "type Query { a: Int\n  b }",
            "line 2, column 5: `}` is not allowed here; expected arguments in brackets",
        ),
        ("type Query { a: Int } hello", "line 1, column 23: `hello` is not allowed here; expected the end"),
        (
            "hello type Query { a: Int }",
            "line 1, column 1: `hello` is not a definition; expected for example `type`, `input` or `enum`",
        ),
        (
            "query { a }",
            "line 1, column 1: `query` begins a request, not a schema; use the schema that the server publishes",
        ),
        (
            "{ a }",
            "line 1, column 1: `{` is not a definition; expected for example `type`, `input` or `enum`",
        ),
        (
            "\"text\" \"text\" type Query { a: Int }",
            "line 1, column 1: a description is not followed by a definition",
        ),
        (
            "type Query { a: Int } extend { b: Int }",
            "line 1, column 23: `extend` is not followed by what it extends",
        ),
        (
            "type Query { a(x: String = \"abc): Int }\n",
            "line 1, column 28: the string is not closed with `\"` on its line",
        ),
        (
            "type Query { a: Int }\n\"\"\" abc ",
            "line 2, column 1: the block string is never closed with `\"\"\"`",
        ),
        ("type Query { a: Int … }", "line 1, column 21: `…` is not allowed outside strings and comments"),
        (
            "type Query { “a” a: Int }",
            "line 1, column 14: a typographic quotation mark is not a `\"`; replace it",
        ),
        (
            "type Query {\u{a0}a: Int }",
            "line 1, column 13: the character U+00A0 is not allowed outside strings",
        ),
        ("type Query { a(x: Float = 1e999): Int }", "line 1, column 27: the number is too large"),
        (
            "schema { query: A query: B } type A { a: Int }",
            "line 1, column 19: multiple query roots in schema definition",
        ),
        (
            "type { a: Int } type Query { a: Int }",
            "line 1, column 6: `{` is not allowed here; expected a name",
        ),
        ("union U = A | type Query { a: Int }", "line 1, column 20: `Query` is not allowed here"),
        (
            "type Query { a(x: Int = $v): Int }",
            "line 1, column 25: `$` is not allowed here; expected a value",
        ),
        ("type Query { a: Int! ! }", "line 1, column 22: `!` is not allowed here"),
        ("enum E { true } type Query { a: E }", "line 1, column 10: `true` is not allowed here"),
    ] {
        let refused = refused(sdl);
        let refused = refused.strip_prefix("GraphQL SDL: ").unwrap_or(&refused);
        assert!(refused.starts_with(told), "{sdl}\n  told:     {refused}\n  expected: {told}");
    }
}

#[test]
fn broken_utf_8_is_told_with_its_place() {
    let error = read(b"type Query {\n  a\xff: Int }").expect_err("0xff is never UTF-8");
    assert_eq!(
        error.to_string(),
        "GraphQL SDL: line 2, column 4: the text is not UTF-8 from here on; save it as UTF-8"
    );
}

#[test]
fn a_repair_before_a_mistake_does_not_move_its_place() {
    for (sdl, position) in [
        ("interface A { a: Int }\ntype Query implements A, A { a: [ Int ] b: Missing }", (2, 44)),
        ("\"\"\"Describes\nthe schema.\"\"\" schema { query: Missing }", (2, 32)),
        ("extend type Query { a: [\n Int\n] b(x: Int = \"\\u{41}\"): Missing }", (3, 25)),
        ("type Query { nullA: Int nullB: Int a: Missing }", (1, 39)),
        ("type Query { \"\"\"a\\\"\"\"\nb\"\"\" a: Missing }", (2, 9)),
        ("type Query { a(): Int \r\n nullB(): Missing }", (2, 11)),
        ("type Query { a(): Int \r\n b(): }", (2, 7)),
    ] {
        let error = read(sdl.as_bytes()).expect_err("something is missing");
        assert_eq!(error.problems[0].position, Some(position), "{error}\n{sdl}");
    }
}

#[test]
fn every_mistake_is_told_up_to_twenty() {
    for (mistakes, told) in [(1, 1), (19, 19), (20, 20), (21, 20), (500, 20)] {
        let broken: String = (0..mistakes).map(|n| format!("type T{n} {{ a: }}\n")).collect();
        let error =
            read(format!("type Query {{ a: Int }}\n{broken}").as_bytes()).expect_err("they are broken");
        assert_eq!(error.problems.len(), told);
        let undefined: String = (0..mistakes).map(|n| format!("f{n}: T{n}\n")).collect();
        let error = read(format!("type Query {{ {undefined} }}").as_bytes()).expect_err("they are undefined");
        assert_eq!(error.problems.len(), told);
    }
}

#[test]
fn a_mistake_repeats_no_long_text_and_no_control_characters() {
    let name = "x".repeat(100_000);
    for sdl in [
        format!("type Query {{ a: {name} }}"),
        format!("{name} {{ a: Int }}"),
        format!("type {name} {{ a: }}"),
        format!("type Query {{ a: Int }} extend union Query = {name}"),
        format!("type Query {{ a: Int {name} }}"),
    ] {
        let refused = refused(&sdl);
        assert!(refused.len() < 400 && !refused.contains(char::is_control), "{refused}");
    }
}
