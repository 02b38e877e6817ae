//! Whatever the bytes are, there is a schema or an error with places inside the text, and never a panic.

use proptest::prelude::*;

use super::read;

/// What SDL is made of, good and bad.
const PIECES: [&str; 54] = [
    "type",
    "extend",
    "schema",
    "input",
    "enum",
    "union",
    "interface",
    "scalar",
    "directive",
    "implements",
    "on",
    "query",
    "mutation",
    "repeatable",
    "Query",
    "Int",
    "String",
    "A",
    "nullable",
    "trueA",
    "farthing__",
    "__a",
    "{",
    "}",
    "(",
    ")",
    "[",
    "]",
    "!",
    "|",
    "&",
    "@",
    ":",
    "=",
    "$",
    ",",
    " ",
    "\n",
    "\r\n",
    "\u{feff}",
    "# c\n",
    "\"",
    "\"s\"",
    "\"\"\"",
    "\"\"\"b\n b\"\"\"",
    "\\",
    "\\\"\"\"",
    "\"\\u{1F600}\\uD800\\x\"",
    "-1",
    "1.5e3",
    "1e999",
    "null",
    "true",
    "ü",
];

fn check(text: &str) -> Result<(), TestCaseError> {
    let Err(error) = read(text.as_bytes()) else { return Ok(()) };
    let lines = u64::try_from(text.split('\n').count()).unwrap_or(u64::MAX);
    prop_assert!((1..=20).contains(&error.problems.len()));
    for problem in error.problems {
        if let Some((line, column)) = problem.position {
            prop_assert!((1..=lines).contains(&line) && column >= 1, "{}\n{}", problem, text);
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn arbitrary_text_is_read_or_refused(text in any::<String>()) {
        check(&text)?;
    }

    #[test]
    fn arbitrary_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = read(&bytes);
    }

    #[test]
    fn pieces_of_sdl_in_any_order_are_read_or_refused(
        pieces in prop::collection::vec((prop::sample::select(PIECES.to_vec()), any::<bool>()), 0..60),
    ) {
        let text: String = pieces
            .into_iter()
            .flat_map(|(piece, is_apart)| [piece, if is_apart { " " } else { "" }])
            .collect();
        check(&text)?;
    }

    #[test]
    fn a_schema_with_pieces_put_in_and_taken_out_is_read_or_refused(
        changes in prop::collection::vec((any::<prop::sample::Index>(), 0..12_usize, prop::sample::select(PIECES.to_vec())), 1..6),
    ) {
        let mut text: Vec<char> = include_str!("../../introspection/tests/library.graphql").chars().collect();
        for (at, length, piece) in changes {
            let at = at.index(text.len());
            let end = (at + length).min(text.len());
            text.splice(at..end, piece.chars());
        }
        check(&text.into_iter().collect::<String>())?;
    }
}
