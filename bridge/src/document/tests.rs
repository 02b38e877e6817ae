//! The document form holds what it promises, at its limits and against strangers.

use serde_json::json;

use super::*;
use crate::description::{NamedSchema, Operation, Schema, Shape};

fn described(text: &str) -> ApiDescription {
    ApiDescription { title: text.into(), ..ApiDescription::default() }
}

/// Text that deflate cannot shorten much: a linear congruential generator's.
fn noise(bytes: usize) -> String {
    let mut state = 1_u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        char::from(b'!' + u8::try_from((state >> 33) % 90).unwrap_or(0))
    };
    (0..bytes).map(|_| next()).filter(|c| *c != '"' && *c != '\\').collect()
}

fn packed(json: &str) -> Vec<u8> {
    [MAGIC, &compress_to_vec(json.as_bytes(), DEFLATE_LEVEL)].concat()
}

/// Objects within objects, `levels` schemas deep.
fn nested(levels: usize) -> ApiDescription {
    let mut schema = Schema::string();
    for _ in 1..levels {
        schema = Schema::array(schema);
    }
    let schemas = vec![NamedSchema { name: "Deep".into(), schema }];
    ApiDescription { schemas, ..ApiDescription::default() }
}

#[test]
fn a_description_comes_back_as_it_was() {
    let operation = Operation { path: "/planets".into(), id: "planets".into(), ..Operation::default() };
    let example = Some(json!({"brackets in text": "[[[{{{\\\"", "none": null}));
    let schema = Schema { example, ..Schema::of(Shape::Any) };
    let description = ApiDescription {
        operations: vec![operation],
        schemas: vec![NamedSchema { name: "Planet".into(), schema }],
        ..described("Exoplanets")
    };
    let document = encode(&description).expect("small");
    assert!(document.starts_with(b"farthing-api/1\n"));
    assert_eq!(decode(&document).expect("just encoded"), description);
}

#[test]
fn a_description_too_large_to_publish_says_what_to_do() {
    let small = encode(&described(&noise(400_000))).expect("below the bound");
    assert!(small.len() > 300_000, "noise is not shortened to {}", small.len());
    let error = encode(&described(&noise(700_000))).expect_err("above the bound");
    assert!(matches!(error, DocumentError::TooLarge { .. }));
    assert!(error.to_string().contains("leave operations out"), "{error}");
    let error = encode(&described(&" ".repeat(UNPACKED_BYTES_MAX))).expect_err("above the bound");
    assert!(matches!(error, DocumentError::TooLargeUnpacked { .. }));
}

#[test]
fn a_small_document_never_unpacks_to_more_than_the_bound() {
    let frame = serde_json::to_vec(&described("")).expect("small").len();
    let largest = described(&" ".repeat(UNPACKED_BYTES_MAX - frame));
    let document = encode(&largest).expect("at the bound");
    assert!(document.len() < 100_000);
    assert_eq!(decode(&document).expect("at the bound"), largest);
    let bomb = packed(&" ".repeat(UNPACKED_BYTES_MAX + 1));
    assert!(matches!(decode(&bomb), Err(DocumentError::TooLargeUnpacked { .. })));
}

#[test]
fn what_nobody_asked_for_is_read_within_narrower_bounds_and_says_what_it_costs() {
    let objects = |count: usize| {
        let choices = vec![json!({ "a": 0 }); count];
        let schema = Schema { choices, ..Schema::string() };
        let schemas = vec![NamedSchema { name: "Many".into(), schema }];
        encode(&ApiDescription { schemas, ..ApiDescription::default() })
            .expect("within the bounds of all readers")
    };
    let few = unpack(&objects(9_000), Bounds::UNASKED).expect("within the narrower bounds");
    assert!((9_000 * 900..9_000 * 1_300).contains(&few.memory_bytes), "{}", few.memory_bytes);
    let many = objects(12_000);
    assert!(matches!(
        unpack(&many, Bounds::UNASKED),
        Err(DocumentError::TooManyValues { values_max: 50_000 })
    ));
    assert!(unpack(&many, Bounds::ASKED_FOR).is_ok());
    let long = encode(&described(&" ".repeat(2 * 1024 * 1024))).expect("within the bounds of all readers");
    assert!(matches!(
        unpack(&long, Bounds::UNASKED),
        Err(DocumentError::TooLargeUnpacked { bytes_max: 1_048_576 })
    ));
}

#[test]
fn brackets_and_values_are_counted_before_anything_is_built() {
    let deep = packed(&"[".repeat(100_000));
    assert!(matches!(decode(&deep), Err(DocumentError::TooDeep)));
    let many = packed(&format!("[{}0]", "0,".repeat(UNPACKED_VALUES_MAX)));
    assert!(matches!(decode(&many), Err(DocumentError::TooManyValues { .. })));
}

#[test]
fn schemas_may_nest_as_deep_as_the_reader_of_json_allows() {
    // The named schema's object is at level 3, each array adds three, its innermost text two.
    let deepest = (UNPACKED_DEPTH_MAX - 5) / 3 + 1;
    let document = encode(&nested(deepest)).expect("at the bound");
    assert_eq!(decode(&document).expect("at the bound"), nested(deepest));
    assert!(matches!(encode(&nested(deepest + 1)), Err(DocumentError::TooDeep)));
}

#[test]
fn damaged_and_foreign_documents_are_told_apart() {
    let document = encode(&described("Exoplanets")).expect("small");
    assert!(matches!(decode(b""), Err(DocumentError::UnknownForm)));
    assert!(matches!(decode(b"farthing-api/2\n"), Err(DocumentError::UnknownForm)));
    assert!(matches!(decode(&document[..document.len() - 1]), Err(DocumentError::Damaged)));
    assert!(matches!(decode(&packed("{\"title\":7}")), Err(DocumentError::Json(_))));
    assert!(matches!(decode(&packed("not JSON")), Err(DocumentError::Json(_))));
    let long = vec![b' '; ENCODED_BYTES_MAX + 1];
    assert!(matches!(decode(&long), Err(DocumentError::TooLarge { .. })));
}

#[test]
fn a_damaged_document_never_panics() {
    let document = encode(&nested(20)).expect("small");
    for position in 0..document.len() {
        let mut damaged = document.clone();
        damaged[position] ^= 0x55;
        let _ = decode(&damaged);
    }
}

#[test]
fn paths_are_bounded_together_when_a_description_is_packed_and_when_it_is_read() {
    let wide = |operations: usize| {
        let operation =
            |number| Operation { path: format!("/{number}/a{}", "/a{b}".repeat(24)), ..Operation::default() };
        ApiDescription { operations: (0..operations).map(operation).collect(), ..ApiDescription::default() }
    };
    assert!(encode(&wide(400)).is_ok(), "20,000 segments and parameters");
    let refused = encode(&wide(401)).unwrap_err().to_string();
    assert!(refused.contains("leave operations out"), "{refused}");
    // Whoever writes documents by itself packs it all the same.
    let document = packed(&serde_json::to_string(&wide(401)).unwrap());
    assert!(matches!(decode(&document), Err(DocumentError::TooManySegments { .. })));
    let unasked =
        |operations| unpack(&packed(&serde_json::to_string(&wide(operations)).unwrap()), Bounds::UNASKED);
    assert!(unasked(100).is_ok(), "5,000 segments");
    assert!(matches!(unasked(101), Err(DocumentError::TooManySegments { segments_max: 5_000 })));
}
