//! Shell: one bash script that needs curl and jq, each operation a function with `name=value` arguments.

use crate::profile::{
    Case, Doc, Literal, Names, Output, Packages, PlainCode, Profile, Registry, RequestForm, Syntax, Types,
    template,
};

pub(crate) static PROFILE: Profile = Profile {
    needs: "bash, curl and jq",
    templates: &[
        template!("shell", "client.sh"),
        template!("shell", "example.sh"),
        template!("shell", "test.sh"),
        template!("shell", "snippet.sh"),
        template!("shell", "plain.sh"),
        template!("shell", "README.md"),
    ],
    files: &[
        Output { template: "README.md", path: "README.md" },
        Output { template: "example.sh", path: "example.sh" },
        Output { template: "client.sh", path: "{{ package.kebab }}.sh" },
        Output { template: "test.sh", path: "test.sh" },
    ],
    single_file: Output { template: "client.sh", path: "{{ package.kebab }}.sh" },
    snippet: "snippet.sh",
    plain: Some(PlainCode { template: "plain.sh", request: RequestForm::SingleQuotes }),
    packages: Packages { registry: Registry::Kebab, taken: "example test" },
    names: Names {
        types: Case::Pascal,
        operations: Case::Snake,
        parameters: Case::Snake,
        members: Case::Snake,
        choices: Case::Snake,
        variants: Case::Snake,
        keywords: "",
        taken_types: "",
        taken_operations: "call help",
        taken_parameters: "",
        taken_members: "",
        taken_choices: "",
        keeps_wire_names: true,
        ignores_case: false,
    },
    // Everything is text here.
    types: Types {
        any: "text",
        boolean: "text",
        int32: "text",
        int53: "text",
        int64: "text",
        uint64: "text",
        number: "text",
        text: "text",
        bytes: "text",
        array: "text",
        map: "text",
        nullable: "{}",
        named: "text",
        recursive: "text",
        boxed: &[],
    },
    syntax: Syntax { literal: Literal::Shell, comment: "# ", doc: Doc::Lines("# ") },
};
