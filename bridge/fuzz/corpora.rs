//! Inputs of the entries that are known: well-formed ones, and the words that each format is made of.

pub const SDL: [&[u8]; 3] = [
    include_bytes!("../src/graphql/introspection/tests/library.graphql"),
    br#"extend schema @link(url: "x") { query: Q } "d" type Q implements A, B & C @d(x: {y: [1, "z", E, null]}) { a(b: [ [ Int! ] ] = [[1]]): U }"#,
    b"\xef\xbb\xbfunion U = | A | B\r\nenum E { nullable true_ } input I @oneOf { a: I = {a: {}} } type Query { a: I } extend type Query { b: U }",
];

pub const SDL_WORDS: [&str; 36] = [
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

pub const INTROSPECTION: [&[u8]; 2] = [
    br#"{"data":{"__schema":{"queryType":{"name":"Query"},"mutationType":null,"types":[{"kind":"OBJECT","name":"Query","fields":[{"name":"a","args":[{"name":"x","type":{"kind":"LIST","ofType":{"kind":"ENUM","name":"E"}},"defaultValue":"[A, B]"}],"type":{"kind":"NON_NULL","ofType":{"kind":"SCALAR","name":"Int"}},"isDeprecated":true,"deprecationReason":"old"}],"interfaces":[{"kind":"INTERFACE","name":"I"}]},{"kind":"ENUM","name":"E","enumValues":[{"name":"A"},{"name":"B"}]},{"kind":"INTERFACE","name":"I","fields":[{"name":"a","type":{"kind":"SCALAR","name":"Int"}}],"possibleTypes":[{"kind":"OBJECT","name":"Query"}]}]}}}"#,
    br#"{"data":{"_service":{"sdl":"type Query { a: Int }"}},"errors":[{"message":"m"}]}"#,
];

pub const INTROSPECTION_WORDS: [&str; 20] = [
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

pub const CALLS: [&[u8]; 4] = [
    b"/things/us7000\nlimit=5&ids=1&ids=2&words=a,b%2Cc&piped=a%7Cb&filter[mass][gt]=1.50&filter[tags]=x&json=%7B%7D",
    b"/things/{id}\nid=a%2Fb&x-tenant=blue&filter.mass.gt=2&words=%5Ba",
    b"/things/7/parts/.a.json\n\n{\"name\":\"x\"}",
    b"/things/{id}/parts/.{part}.json\nid=7&part=a,b\n{\"name\":\"\\u0061\",\"more\":[1.10]}",
];

pub const CALL_WORDS: [&str; 34] = [
    "/", "//", "\\", ".", "..", ";", "..;", "%2e", "%2E%2e", "%2f", "%5c", "%252e", "%00", "%0d%0a", "%",
    "%c0%ae", "?", "#", "@", "{id}", "{part}", "{", "}", "[", "]", "&", "=", ",", "+", "|", "\n", "\"",
    "null", "ids=",
];

pub const OPENAPI: [&[u8]; 3] = [
    include_bytes!("../src/openapi/read/tests/documents/fastapi.json"),
    include_bytes!("../src/openapi/read/tests/documents/spring.json"),
    br##"{"openapi":"3.0.3","paths":{"/{a}.{b}":{"parameters":[{"name":"a","in":"path"}],"post":{"requestBody":{"content":{"application/json":{"schema":{"allOf":[{"$ref":"#/components/schemas/A"},{"oneOf":[{"type":"null"},{"const":1.5}]}]}}}}}}},"components":{"schemas":{"A":{"type":["object","string"],"properties":{"a":{"$ref":"#/components/schemas/A"}},"enum":[{},"a",null]}}}}"##,
];

pub const OPENAPI_WORDS: [&str; 26] = [
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

pub const YAML: [&[u8]; 2] = [
    include_bytes!("../src/openapi/read/tests/documents/shop.yaml"),
    b"openapi: 3.1\ninfo: {version: 1.10}\nx: &x {get: {responses: {200: {description: >-\n  a\n  b}}}}\npaths:\n  /a: *x\n  /b:\n    <<: *x\n    post: {operationId: no, parameters: [{name: 012, in: query}]}\n",
];

pub const YAML_WORDS: [&str; 24] = [
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

pub const FIELDS: [&[u8]; 3] = [
    b"id,name,moons(id,star.name)",
    b"*,sky.name,moons.star(*),__typename",
    b"sky(sky(sky(name,size)),moons)",
];

pub const FIELDS_WORDS: [&str; 14] =
    ["id", "name", "moons", "star", "sky", "size", "*", ".", "(", ")", ",", " ", "__typename", "{"];

/// Answers to the query of `fields` in `entries.rs`.
pub const ANSWER: [&[u8]; 4] = [
    br#"{"data":{"sky":{"__typename":"Star","id":"7","name_String":"Vega","moons_Moon":[{"id":"8","star_Star":{"name_String":null}}]}}}"#,
    br#"{"errors":[{"message":"a\u0007b","path":["sky","moons_Moon",0,"name_String_"],"extensions":{"code":"FORBIDDEN"}}],"data":{"sky":{"id":"1"}}}"#,
    br#"{"data":{"sky":null},"errors":[{"message":"none"},{"message":""},{},7]}"#,
    br#"{"data":null,"errors":[]}"#,
];
pub const ANSWER_WORDS: [&str; 20] = [
    "{",
    "}",
    "[",
    "]",
    "\"",
    ",",
    ":",
    "null",
    "1e999",
    "\"data\":",
    "\"errors\":[",
    "\"sky\":",
    "\"message\":",
    "\"path\":[",
    "\"extensions\":{\"code\":",
    "\"NOT_FOUND\"",
    "\"name_String_\"",
    "\\ud83d",
    "\\u202e",
    "\\",
];

/// A content type, and behind the end of its line the body.
pub const FORM: [&[u8]; 3] = [
    b"multipart/form-data; boundary=x7d1\n--x7d1\r\ncontent-disposition: form-data; name=\"a\"\r\n\r\n1\r\n--x7d1\r\nContent-Disposition: form-data; name=\"f\"; filename=\"p.png\"\r\ncontent-type: image/png\r\n\r\n\x89PNG\r\n\r\n--x7d1--\r\n",
    b"multipart/form-data; boundary=x\n--x--",
    b"multipart/mixed; boundary=7\n--7\r\n\r\n\r\n\r\n--7\r\ncontent-type: text/plain\r\n\r\nx\r\n--7--",
];
pub const FORM_WORDS: [&str; 20] = [
    "\r\n",
    "\n",
    "--",
    "--x7d1",
    "--x7d1--",
    "--x7d1\r\ncontent-disposition: form-data; name=\"b\"\r\n\r\n",
    "; filename=\"",
    "; filename*=UTF-8''",
    "; name=\"",
    "content-transfer-encoding: base64\r\n",
    "content-type: text/plain\r\n",
    "multipart/form-data; boundary=",
    "boundary=x7d1",
    "\"",
    "\\\"",
    "%22",
    ";",
    ":",
    "\0",
    " ",
];
