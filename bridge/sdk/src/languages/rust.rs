//! Rust: asynchronous, over reqwest and serde.
//!
//! Its templates end in `.j2`: no tool should take them for code or for a package of this repository.

use crate::profile::{
    Case, CodePoint, Doc, Literal, Names, Output, Packages, PlainCode, Profile, Registry, RequestForm,
    Syntax, Types, template,
};

pub(crate) static PROFILE: Profile = Profile {
    needs: "Rust 1.88 or later, reqwest, serde and tokio",
    templates: &[
        template!("rust", "runtime.rs", ".j2"),
        template!("rust", "imports.rs", ".j2"),
        template!("rust", "models.rs", ".j2"),
        template!("rust", "client.rs", ".j2"),
        template!("rust", "lib.rs", ".j2"),
        template!("rust", "single.rs", ".j2"),
        template!("rust", "README.md", ".j2"),
        template!("rust", "Cargo.toml", ".j2"),
        template!("rust", "example.rs", ".j2"),
        template!("rust", "test.rs", ".j2"),
        template!("rust", "snippet.rs", ".j2"),
        template!("rust", "plain.rs", ".j2"),
    ],
    files: &[
        Output { template: "README.md", path: "README.md" },
        Output { template: "example.rs", path: "examples/first_call.rs" },
        Output { template: "lib.rs", path: "src/lib.rs" },
        Output { template: "client.rs", path: "src/client.rs" },
        Output { template: "models.rs", path: "src/models.rs" },
        Output { template: "runtime.rs", path: "src/runtime.rs" },
        Output { template: "test.rs", path: "tests/client.rs" },
        Output { template: "Cargo.toml", path: "Cargo.toml" },
    ],
    single_file: Output { template: "single.rs", path: "{{ package.snake }}.rs" },
    snippet: "snippet.rs",
    plain: Some(PlainCode { template: "plain.rs", request: RequestForm::Hashes }),
    packages: Packages {
        registry: Registry::Kebab,
        taken: "alloc aux benches bool build char com1 con core crate deps examples f32 f64 i32 i64 incremental \
        isize lpt1 nul prn proc_macro reqwest rustls serde serde_json src str tests tokio u32 u64 usize",
    },
    names: Names {
        types: Case::Pascal,
        operations: Case::Snake,
        parameters: Case::Snake,
        members: Case::Snake,
        choices: Case::Pascal,
        variants: Case::Pascal,
        keywords: "Self abstract as async await become box break const continue crate do dyn else enum \
        extern false final fn for gen if impl in let loop macro match mod move mut override priv pub ref \
        return self static struct super trait true try type typeof union unsafe unsized use virtual where \
        while yield",
        taken_types: "Answer BTreeMap BuildHasher CallOptions Pages Box Clone Client Config Copy Debug \
        Default Deserialize Drop Duration Eq Err Error ErrorKind Fn From Hash Hasher Into Iterator None Ok \
        Option Ord PartialEq PartialOrd PathBuf RandomState Received Result Send Serialize Some String \
        Sync ToOwned ToString TryFrom TryInto Vec",
        taken_operations: "attempt buy call clone fmt from_env new with",
        taken_parameters: "",
        taken_members: "additional_members",
        taken_choices: "Other",
        ignores_case: false,
        keeps_wire_names: false,
    },
    types: Types {
        any: "serde_json::Value",
        boolean: "bool",
        int32: "i32",
        int53: "i64",
        int64: "i64",
        uint64: "u64",
        number: "f64",
        text: "String",
        bytes: "Vec<u8>",
        array: "Vec<{}>",
        map: "::std::collections::BTreeMap<String, {}>",
        nullable: "Option<{}>",
        named: "{}",
        recursive: "Box<{}>",
        boxed: &[],
    },
    syntax: Syntax {
        literal: Literal::Quoted { escaped: &[], code_point: CodePoint::Braces },
        comment: "// ",
        doc: Doc::Lines("/// "),
    },
};
