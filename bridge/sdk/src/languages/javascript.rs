//! JavaScript and TypeScript: modules for Node, `node:https` alone; members keep the names that they have outside.
//!
//! What is not declared to fit into 53 bits is `number | bigint`: a number whenever it is exact, otherwise a bigint.

use crate::profile::{
    Case, CodePoint, Doc, Literal, Names, Output, Packages, PlainCode, Profile, Registry, RequestForm,
    Syntax, Types, template,
};

/// Names of modules that Node.js has itself, and names that its registry refuses.
const PACKAGES: Packages = Packages {
    registry: Registry::Npm,
    taken: "assert async_hooks buffer child_process cluster console constants crypto dgram \
    diagnostics_channel dns domain events favicon_ico fs http http2 https inspector module net \
    node_modules os path perf_hooks process punycode querystring readline repl stream string_decoder \
    sys test timers tls trace_events tty url util v8 vm wasi worker_threads zlib",
};

pub(crate) static TYPESCRIPT: Profile = Profile {
    needs: "Node 20 or later, TypeScript 5",
    templates: &[
        template!("typescript", "runtime.ts"),
        template!("typescript", "models.ts"),
        template!("typescript", "client.ts"),
        template!("typescript", "index.ts"),
        template!("typescript", "single.ts"),
        template!("typescript", "README.md"),
        template!("typescript", "package.json"),
        template!("typescript", "tsconfig.json"),
        template!("typescript", "example.ts"),
        template!("typescript", "test.ts"),
        template!("typescript", "snippet.ts"),
        template!("typescript", "plain.ts"),
        template!("typescript", "arguments"),
    ],
    files: &[
        Output { template: "README.md", path: "README.md" },
        Output { template: "example.ts", path: "examples/first-call.ts" },
        Output { template: "index.ts", path: "src/index.ts" },
        Output { template: "client.ts", path: "src/client.ts" },
        Output { template: "models.ts", path: "src/models.ts" },
        Output { template: "runtime.ts", path: "src/runtime.ts" },
        Output { template: "test.ts", path: "test/client.test.ts" },
        Output { template: "package.json", path: "package.json" },
        Output { template: "tsconfig.json", path: "tsconfig.json" },
    ],
    single_file: Output { template: "single.ts", path: "{{ package.kebab }}.ts" },
    snippet: "snippet.ts",
    plain: Some(PlainCode {
        template: "plain.ts",
        // In quotes it would set the object's prototype.
        request: RequestForm::Members {
            indent: 2,
            words: ["null", "true", "false"],
            prototype: "[\"__proto__\"]",
        },
    }),
    packages: PACKAGES,
    names: NAMES,
    types: TYPES,
    syntax: SYNTAX,
};

pub(crate) static JAVASCRIPT: Profile = Profile {
    needs: "Node 20 or later",
    templates: &[
        template!("javascript", "runtime.js"),
        template!("javascript", "runtime.d.ts"),
        template!("typescript", "models.ts"),
        template!("javascript", "client.js"),
        template!("javascript", "client.d.ts"),
        template!("javascript", "index.js"),
        template!("javascript", "index.d.ts"),
        template!("javascript", "single.js"),
        template!("javascript", "README.md"),
        template!("javascript", "package.json"),
        template!("javascript", "example.js"),
        template!("javascript", "test.js"),
        template!("javascript", "snippet.js"),
        template!("typescript", "arguments"),
    ],
    files: &[
        Output { template: "README.md", path: "README.md" },
        Output { template: "example.js", path: "examples/first-call.js" },
        Output { template: "index.js", path: "src/index.js" },
        Output { template: "index.d.ts", path: "src/index.d.ts" },
        Output { template: "client.js", path: "src/client.js" },
        Output { template: "client.d.ts", path: "src/client.d.ts" },
        Output { template: "models.ts", path: "src/models.d.ts" },
        Output { template: "runtime.js", path: "src/runtime.js" },
        Output { template: "runtime.d.ts", path: "src/runtime.d.ts" },
        Output { template: "test.js", path: "test/client.test.js" },
        Output { template: "package.json", path: "package.json" },
    ],
    single_file: Output { template: "single.js", path: "{{ package.kebab }}.mjs" },
    snippet: "snippet.js",
    plain: None,
    packages: PACKAGES,
    names: NAMES,
    types: TYPES,
    syntax: SYNTAX,
};

const NAMES: Names = Names {
    types: Case::Pascal,
    operations: Case::Camel,
    parameters: Case::Camel,
    members: Case::Camel,
    choices: Case::Pascal,
    variants: Case::Pascal,
    keywords: "",
    taken_types: "AbortSignal Answer AnswerError Array AsyncGenerator BadRequest BigInt Boolean Buffer \
    CallOptions PageOptions Client ClientOptions ConnectionFailed Date Error FarthingError Function \
    Infinity Integer JSON Json JsonReader Map Math NaN NodeError NotFound Number Object Omit \
    PaymentRefused Promise Raw Record RegExp ServiceError Set String Symbol Transport URL Uint8Array \
    Unauthorized Unavailable",
    // A client with a method `then` would be taken for a promise.
    taken_operations: "call constructor hasOwnProperty isPrototypeOf then toJson toLocaleString toString \
    transport valueOf",
    taken_parameters: "",
    taken_members: "",
    taken_choices: "",
    keeps_wire_names: true,
    ignores_case: false,
};

const TYPES: Types = Types {
    any: "unknown",
    boolean: "boolean",
    int32: "number",
    int53: "number",
    int64: "Integer",
    uint64: "Integer",
    number: "number",
    text: "string",
    bytes: "Uint8Array",
    array: "Array<{}>",
    map: "{ [key: string]: {} }",
    nullable: "{} | null",
    named: "{}",
    recursive: "{}",
    boxed: &[],
};

const SYNTAX: Syntax = Syntax {
    literal: Literal::Quoted { escaped: &[], code_point: CodePoint::Pairs },
    comment: "// ",
    doc: Doc::Stars,
};
