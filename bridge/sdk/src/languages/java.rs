//! Java: the standard library alone, clean under `javac -Xlint:all -Werror`.

use crate::profile::{
    Case, CodePoint, Doc, Literal, Names, Output, Packages, Profile, Registry, Syntax, Types, template,
};

pub(crate) static PROFILE: Profile = Profile {
    needs: "Java 17 or later",
    templates: &[
        template!("java", "Farthing.java"),
        template!("java", "imports.java"),
        template!("java", "Models.java"),
        template!("java", "Client.java"),
        template!("java", "single.java"),
        template!("java", "README.md"),
        template!("java", "pom.xml"),
        template!("java", "example.java"),
        template!("java", "test.java"),
        template!("java", "snippet.java"),
    ],
    files: &[
        Output { template: "README.md", path: "README.md" },
        Output { template: "example.java", path: "examples/FirstCall.java" },
        Output { template: "Client.java", path: "src/main/java/{{ package.flat }}/Client.java" },
        Output { template: "Models.java", path: "src/main/java/{{ package.flat }}/Models.java" },
        Output { template: "Farthing.java", path: "src/main/java/{{ package.flat }}/Farthing.java" },
        Output { template: "test.java", path: "src/test/java/{{ package.flat }}/ClientTest.java" },
        Output { template: "pom.xml", path: "pom.xml" },
    ],
    single_file: Output { template: "single.java", path: "{{ package.flat }}/Client.java" },
    snippet: "snippet.java",
    plain: None,
    packages: Packages { registry: Registry::Kebab, taken: "java javac javax jdk sun" },
    names: Names {
        types: Case::Pascal,
        operations: Case::Camel,
        parameters: Case::Camel,
        members: Case::Camel,
        choices: Case::Shouty,
        variants: Case::Pascal,
        // From `Boolean` on, of java.lang, which every file sees.
        keywords: "abstract assert boolean break byte case catch char class const continue default do \
        double else enum extends false final finally float for goto if implements import instanceof int \
        interface long native new null package private protected public return short static strictfp super \
        switch synchronized this throw throws transient true try var void volatile while yield record \
        sealed permits java Boolean Client Deprecated Double Exception Farthing Integer Long Models Object \
        Other Override Record String Void Comparable Iterable Number",
        taken_types: "Json",
        taken_operations: "call clone equals finalize getClass hashCode notify notifyAll toString wait",
        taken_parameters: "body bytes carried clone equals finalize getClass hashCode isJson notify \
        notifyAll options params sent toString transport v1 value wait at each found isMore items next own",
        taken_members: "members value",
        taken_choices: "",
        ignores_case: false,
        keeps_wire_names: false,
    },
    types: Types {
        any: "Object",
        boolean: "boolean",
        int32: "int",
        int53: "long",
        int64: "long",
        uint64: "java.math.BigInteger",
        number: "double",
        text: "String",
        bytes: "byte[]",
        array: "java.util.List<{}>",
        map: "java.util.Map<String, {}>",
        nullable: "{}",
        named: "Models.{}",
        recursive: "Models.{}",
        boxed: &[("boolean", "Boolean"), ("int", "Integer"), ("long", "Long"), ("double", "Double")],
    },
    syntax: Syntax {
        literal: Literal::Quoted { escaped: &[], code_point: CodePoint::Pairs },
        comment: "// ",
        doc: Doc::Stars,
    },
};
