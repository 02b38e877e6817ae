//! What the parser refuses although it is common is put right; what the owner may want to mend is told.

use super::{fine, read, understood};

#[test]
fn common_forms_that_the_parser_refuses_are_repaired_and_told() {
    for (sdl, plain, told) in [
        (
            "\"\"\"The API.\"\"\"\nschema { query: Q }\ntype Q { a: Int }",
            "schema { query: Q } type Q { a: Int }",
            "schema, line 2: a description is not used here and was left out",
        ),
        (
            "type Query { a: A }\n\"more\" extend type A { b: Int }\ntype A { a: Int }",
            "type Query { a: A } type A { a: Int b: Int }",
            "type A, line 2: a description is not used here and was left out",
        ),
        (
            "interface A { a: Int } interface B { a: Int }\ntype Query implements A, B { a: Int x: A y: B }",
            "interface A { a: Int } interface B { a: Int } type Query implements A & B { a: Int x: A y: B }",
            "type Query, line 2: interfaces are separated by `&`; it was put between them",
        ),
        (
            "interface A { a: Int } interface B { a: Int } type Query implements A\nB @x { a: Int x: A y: B }",
            "interface A { a: Int } interface B { a: Int } type Query implements A & B { a: Int x: A y: B }",
            "type Query, line 1: interfaces are separated by `&`; it was put between them",
        ),
        (
            "type Query { a(): Int e: E }\ntype E { }",
            "type Query { a: Int e: E } type E",
            "type Query, line 1: empty brackets were left out\ntype E, line 2: empty brackets were left out",
        ),
        (
            "schema { } type Query { a: Int @deprecated() }",
            "type Query { a: Int @deprecated }",
            "schema, line 1: empty brackets were left out\ntype Query, line 1: empty brackets were left out",
        ),
        (
            r#""\u{1F680} \uD83D\uDE80" type Query { a: Int }"#,
            "\"🚀 🚀\" type Query { a: Int }",
            "type Query, line 1: `\\u{…}` or a surrogate pair in a string was replaced by its character",
        ),
        (
            r#"type Query { a(x: String = "\u{22}\uD800\u{A}"): Int }"#,
            "type Query { a(x: String = \"\\\"\u{fffd}\\n\"): Int }",
            "type Query, line 1: `\\u{…}` or a surrogate pair in a string was replaced by its character",
        ),
        (
            r#""as in \d+ \u{110000} \u{" type Query { a: Int }"#,
            r#""as in \\d+ \\u{110000} \\u{" type Query { a: Int }"#,
            "type Query, line 1: a backslash in a string begins no escape; it was taken literally",
        ),
        (
            "type Query { a: _Any b: AWSDateTime }",
            "scalar _Any scalar AWSDateTime type Query { a: _Any b: AWSDateTime }",
            "scalar _Any: is used but not declared; it was added\n\
             scalar AWSDateTime: is used but not declared; it was added",
        ),
    ] {
        let reading = fine(sdl);
        let repaired: Vec<_> = reading.report.repaired.list.iter().map(ToString::to_string).collect();
        assert_eq!(repaired.join("\n"), told, "{sdl}");
        let sorted = |sdl: &str| {
            let mut types: Vec<_> = understood(sdl).split("\n\n").map(|ty| ty.trim().to_owned()).collect();
            types.sort();
            types
        };
        assert_eq!(sorted(sdl), sorted(plain), "{sdl}");
    }
}

#[test]
fn correct_forms_that_the_parser_refuses_are_read_without_a_word() {
    for (sdl, plain) in [
        ("type Query { a: [ Int ! ] ! }", "type Query { a: [Int!]! }"),
        ("type Query { a: [\n  [ # inner\n Int,] ]\n b: Int }", "type Query { a: [[Int]] b: Int }"),
        ("schema { mutation: M } type M { a: Int }", "extend schema { mutation: M } type M { a: Int }"),
        ("extend schema @link(url: \"x\") type Query { a: Int }", "type Query { a: Int }"),
        ("type Query { a: Int } directive @new on DIRECTIVE_DEFINITION", "type Query { a: Int }"),
        (
            "type Query { a: Int } extend interface I implements J interface J { a: Int }",
            "type Query { a: Int }",
        ),
        ("type type { type: input } input input { enum: Int } schema { query: type }", ""),
        ("type Query { a(x: Int,, y: Int,): Int, }", "type Query { a(x: Int y: Int): Int }"),
        ("\u{feff}type Query {\r\n  a: Int\r\n}\r\n", "type Query { a: Int }"),
        ("type Query {\ra: Int # comment\rb: Int }", "type Query { a: Int b: Int }"),
        ("type Query { a: Int \u{feff} }", "type Query { a: Int }"),
    ] {
        let reading = read(sdl.as_bytes());
        if sdl.contains("type type") {
            let refused = reading.expect_err("an input type is no output type").to_string();
            assert!(refused.contains("`input` is an input type"), "{refused}");
            continue;
        }
        let reading = reading.unwrap_or_else(|error| panic!("{error}\n{sdl}"));
        assert!(reading.report.repaired.is_empty(), "{sdl}: {:?}", reading.report.repaired);
        assert_eq!(understood(sdl), understood(plain), "{sdl}");
    }
}

#[test]
fn names_that_begin_with_a_literal_stay_what_they_are() {
    let sdl = "type Query { trueName(nullable: falsey = nullsFirst): nullT }\n\
               enum falsey { nullsFirst trueish falsehood farthing__x }\n\
               type nullT { farthing__x: Int, null: Int, true: Int }\n";
    let printed = understood(sdl);
    for name in [
        "trueName(nullable: falsey = nullsFirst): nullT",
        "enum falsey",
        "  trueish",
        "  farthing__x\n",
        "  null: Int",
    ] {
        assert!(printed.contains(name), "{name}\n{printed}");
    }
}

#[test]
fn keywords_are_allowed_as_names() {
    let sdl = "type Query implements extend & type { type: type input(enum: scalar): union }\n\
               interface extend { type: type }\n interface type { type: type }\n\
               scalar scalar union union = schema | directive\n\
               type schema { on: Int } type directive { query: Int implements: extend }\n";
    let reading = fine(sdl);
    assert_eq!(
        reading.schema.types.iter().map(|ty| ty.name.as_str()).collect::<Vec<_>>(),
        ["Query", "extend", "type", "scalar", "union", "schema", "directive", "Int"]
    );
}

#[test]
fn block_strings_lose_their_escapes_and_their_indentation() {
    let sdl =
        "\"\"\"\n    Say \\\"\"\"hi\\\"\"\".\n\n      Indented.\n  \"\"\"\ntype Query { a: Int b: Unknown }";
    let refused = super::refused(sdl);
    assert_eq!(refused, "GraphQL SDL: line 6, column 24: the type `Unknown` is not defined");
    let schema = fine(&sdl.replace("b: Unknown", "")).schema;
    assert_eq!(schema.types[0].description, "Say \"\"\"hi\"\"\".\n\n  Indented.");
}

#[test]
fn utf_16_of_windows_shells_is_converted_and_told() {
    let sdl = "type Query { \"ü\" a: Int }";
    let little: Vec<u8> =
        std::iter::once(0xfeff).chain(sdl.encode_utf16()).flat_map(u16::to_le_bytes).collect();
    let big: Vec<u8> = std::iter::once(0xfeff).chain(sdl.encode_utf16()).flat_map(u16::to_be_bytes).collect();
    for bytes in [little, big] {
        let reading = read(&bytes).expect("UTF-16 is understood");
        assert_eq!(reading.schema, fine(sdl).schema);
        assert_eq!(reading.report.repaired.count(), 1);
        let cut = read(bytes.get(..bytes.len() - 1).unwrap_or_default()).expect_err("half a character");
        assert!(cut.to_string().contains("broken UTF-16"));
    }
}
