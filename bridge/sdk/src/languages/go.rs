//! Go: the standard library alone, clean under `go vet`.

use crate::profile::{
    Case, CodePoint, Doc, Literal, Names, Output, Packages, PlainCode, Profile, Registry, RequestForm,
    Syntax, Types, template,
};

pub(crate) static PROFILE: Profile = Profile {
    needs: "Go 1.24 or later",
    templates: &[
        template!("go", "runtime.go"),
        template!("go", "imports.go"),
        template!("go", "models.go"),
        template!("go", "client.go"),
        template!("go", "doc.go"),
        template!("go", "single.go"),
        template!("go", "README.md"),
        template!("go", "go.mod"),
        template!("go", "example.go"),
        template!("go", "test.go"),
        template!("go", "snippet.go"),
        template!("go", "plain.go"),
    ],
    files: &[
        Output { template: "README.md", path: "README.md" },
        Output { template: "example.go", path: "example/main.go" },
        Output { template: "client.go", path: "client.go" },
        Output { template: "models.go", path: "models.go" },
        Output { template: "runtime.go", path: "runtime.go" },
        Output { template: "doc.go", path: "doc.go" },
        Output { template: "test.go", path: "client_test.go" },
        Output { template: "go.mod", path: "go.mod" },
    ],
    single_file: Output { template: "single.go", path: "{{ package.snake }}.go" },
    snippet: "snippet.go",
    plain: Some(PlainCode { template: "plain.go", request: RequestForm::Backticks }),
    packages: Packages {
        registry: Registry::GoModule,
        taken: "all any archive arena bool break bufio builtin byte bytes c case chan cmd cmp compress const \
        container context continue crypto database debug default defer else embed encoding error errors \
        example expvar fallthrough false flag fmt for func go goto hash html if image import index int \
        interface io iter len log map maps math mime net new nil os package path plugin range reflect \
        regexp return rune runtime select slices sort strconv string strings struct structs switch sync \
        syscall testing text time true type unicode unique unsafe var vendor weak",
    },
    names: Names {
        types: Case::PascalInitials,
        operations: Case::PascalInitials,
        parameters: Case::PascalInitials,
        members: Case::PascalInitials,
        choices: Case::PascalInitials,
        variants: Case::PascalInitials,
        // Names begin with a capital letter, as no keyword does.
        keywords: "",
        taken_types: "Answer AnswerError CallOption Client Config ConnectionFailed Error ErrorKind Json \
        New NodeError Nothing Null Nullable Of Ptr RequestError ServiceError WithCallID WithMaxPages \
        WithMaxPrice WithMaxRetries WithTimeout",
        taken_operations: "Call",
        taken_parameters: "",
        taken_members: "AdditionalMembers MarshalJSON UnmarshalJSON MarshalJson UnmarshalJson",
        taken_choices: "",
        ignores_case: false,
        keeps_wire_names: false,
    },
    types: Types {
        any: "Json",
        boolean: "bool",
        int32: "int32",
        int53: "int64",
        int64: "int64",
        uint64: "uint64",
        number: "float64",
        text: "string",
        bytes: "[]byte",
        array: "[]{}",
        map: "map[string]{}",
        nullable: "*{}",
        named: "{}",
        recursive: "{}",
        boxed: &[],
    },
    syntax: Syntax {
        literal: Literal::Quoted { escaped: &[], code_point: CodePoint::Wide },
        comment: "// ",
        doc: Doc::Lines("// "),
    },
};
