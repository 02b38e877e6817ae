//! Every reader of a stranger's bytes meets thousands of broken inputs, the same ones in every run.
//!
//! Each test below takes well-formed inputs, mutates them with a seeded generator and calls an entry of
//! `fuzz/entries.rs`. The targets in `fuzz/targets` call the same entries under libFuzzer, for hours instead of
//! seconds. A test for a further reader is an entry, a corpus and one line here.

#[path = "../fuzz/entries.rs"]
mod entries;
#[path = "fuzz_smoke/mutation.rs"]
mod mutation;

use mutation::survives;

const SDL: [&[u8]; 3] = [
    include_bytes!("../src/graphql/introspection/tests/library.graphql"),
    br#"extend schema @link(url: "x") { query: Q } "d" type Q implements A, B & C @d(x: {y: [1, "z", E, null]}) { a(b: [ [ Int! ] ] = [[1]]): U }"#,
    b"\xef\xbb\xbfunion U = | A | B\r\nenum E { nullable true_ } input I @oneOf { a: I = {a: {}} } type Query { a: I } extend type Query { b: U }",
];
const SDL_WORDS: [&str; 36] = [
    "type ",
    "extend ",
    "schema ",
    "input ",
    "enum ",
    "union ",
    "interface ",
    "scalar ",
    "directive ",
    "implements ",
    "Query",
    "Int",
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
    "\"",
    "\"\"\"",
    "\\\"\"\"",
    "\\u{1F600}",
    "\\uD83D",
    "#",
    "\n",
    "null",
    "true",
    "1e9",
    "@deprecated(reason: ",
    "@inaccessible",
];

const INTROSPECTION: [&[u8]; 2] = [
    br#"{"data":{"__schema":{"queryType":{"name":"Query"},"mutationType":null,"types":[{"kind":"OBJECT","name":"Query","fields":[{"name":"a","args":[{"name":"x","type":{"kind":"LIST","ofType":{"kind":"ENUM","name":"E"}},"defaultValue":"[A, B]"}],"type":{"kind":"NON_NULL","ofType":{"kind":"SCALAR","name":"Int"}},"isDeprecated":true,"deprecationReason":"old"}],"interfaces":[{"kind":"INTERFACE","name":"I"}]},{"kind":"ENUM","name":"E","enumValues":[{"name":"A"},{"name":"B"}]},{"kind":"INTERFACE","name":"I","fields":[{"name":"a","type":{"kind":"SCALAR","name":"Int"}}],"possibleTypes":[{"kind":"OBJECT","name":"Query"}]}]}}}"#,
    br#"{"data":{"_service":{"sdl":"type Query { a: Int }"}},"errors":[{"message":"m"}]}"#,
];
const INTROSPECTION_WORDS: [&str; 20] = [
    "null",
    "{",
    "}",
    "[",
    "]",
    "\"",
    ",",
    ":",
    "\"ofType\":",
    "\"kind\":\"LIST\"",
    "\"NON_NULL\"",
    "\"name\":",
    "\"types\":",
    "\"fields\":",
    "\"defaultValue\":\"",
    "\"isOneOf\":true",
    "\\u0000",
    "{\"kind\":\"LIST\",\"ofType\":",
    "__",
    "1e999",
];

const CALLS: [&[u8]; 4] = [
    b"/things/us7000\nlimit=5&ids=1&ids=2&words=a,b%2Cc&piped=a%7Cb&filter[mass][gt]=1.50&filter[tags]=x&json=%7B%7D",
    b"/things/{id}\nid=a%2Fb&x-tenant=blue&filter.mass.gt=2&words=%5Ba",
    b"/things/7/parts/.a.json\n\n{\"name\":\"x\"}",
    b"/things/{id}/parts/.{part}.json\nid=7&part=a,b\n{\"name\":\"\\u0061\",\"more\":[1.10]}",
];
const CALL_WORDS: [&str; 34] = [
    "/", "//", "\\", ".", "..", ";", "..;", "%2e", "%2E%2e", "%2f", "%5c", "%252e", "%00", "%0d%0a", "%",
    "%c0%ae", "?", "#", "@", "{id}", "{part}", "{", "}", "[", "]", "&", "=", ",", "+", "|", "\n", "\"",
    "null", "ids=",
];

const OPENAPI: [&[u8]; 3] = [
    include_bytes!("../src/openapi/read/tests/documents/fastapi.json"),
    include_bytes!("../src/openapi/read/tests/documents/spring.json"),
    br##"{"openapi":"3.0.3","paths":{"/{a}.{b}":{"parameters":[{"name":"a","in":"path"}],"post":{"requestBody":{"content":{"application/json":{"schema":{"allOf":[{"$ref":"#/components/schemas/A"},{"oneOf":[{"type":"null"},{"const":1.5}]}]}}}}}}},"components":{"schemas":{"A":{"type":["object","string"],"properties":{"a":{"$ref":"#/components/schemas/A"}},"enum":[{},"a",null]}}}}"##,
];
const OPENAPI_WORDS: [&str; 26] = [
    "{",
    "}",
    "[",
    "]",
    "\"",
    ",",
    ":",
    "null",
    "true",
    "1e308",
    "\"$ref\":",
    "\"#/components/schemas/",
    "\"allOf\":[",
    "\"oneOf\":[",
    "\"anyOf\":[",
    "\"type\":",
    "\"enum\":",
    "\"properties\":{",
    "\"items\":",
    "\"required\":[",
    "{a}",
    "/",
    "#",
    "?",
    "~1",
    "%7B",
];

const YAML: [&[u8]; 2] = [
    include_bytes!("../src/openapi/read/tests/documents/shop.yaml"),
    b"openapi: 3.1\ninfo: {version: 1.10}\nx: &x {get: {responses: {200: {description: >-\n  a\n  b}}}}\npaths:\n  /a: *x\n  /b:\n    <<: *x\n    post: {operationId: no, parameters: [{name: 012, in: query}]}\n",
];
const YAML_WORDS: [&str; 24] = [
    "\n",
    "  ",
    "- ",
    ": ",
    "&a ",
    "*a",
    "<<: ",
    "{",
    "}",
    "[",
    "]",
    "|\n",
    ">-\n",
    "\"",
    "'",
    "#",
    "!!str ",
    "!!binary ",
    "? ",
    "---\n",
    "~",
    "0x1F",
    "$ref: '#/definitions/",
    "\t",
];

#[test]
fn no_openapi_makes_the_reader_panic() {
    survives(entries::openapi, &OPENAPI, &OPENAPI_WORDS, 10_000);
}

#[test]
fn no_yaml_makes_the_reader_panic() {
    survives(entries::yaml, &YAML, &YAML_WORDS, 10_000);
}

#[test]
fn no_call_makes_the_planner_panic_or_leaves_the_upstream() {
    survives(entries::paths, &CALLS, &CALL_WORDS, 20_000);
}

#[test]
fn no_sdl_makes_the_reader_panic() {
    survives(entries::sdl, &SDL, &SDL_WORDS, 20_000);
}

#[test]
fn no_introspection_makes_the_reader_panic() {
    survives(entries::introspection, &INTROSPECTION, &INTROSPECTION_WORDS, 20_000);
}

const FIELDS: [&[u8]; 3] = [
    b"id,name,moons(id,star.name)",
    b"*,sky.name,moons.star(*),__typename",
    b"sky(sky(sky(name,size)),moons)",
];
const FIELDS_WORDS: [&str; 14] =
    ["id", "name", "moons", "star", "sky", "size", "*", ".", "(", ")", ",", " ", "__typename", "{"];

#[test]
fn no_fields_make_the_planner_panic_or_bring_a_callers_words_into_a_query() {
    survives(entries::fields, &FIELDS, &FIELDS_WORDS, 20_000);
}
