//! Kotlin on the JVM: its own library and Java's, clean under `kotlinc -Werror`.

use crate::profile::{
    Case, CodePoint, Doc, Literal, Names, Output, Packages, PlainCode, Profile, Registry, RequestForm,
    Syntax, Types, template,
};

pub(crate) static PROFILE: Profile = Profile {
    needs: "Kotlin 2 on Java 17 or later",
    templates: &[
        template!("kotlin", "Farthing.kt"),
        template!("kotlin", "imports.kt"),
        template!("kotlin", "Models.kt"),
        template!("kotlin", "Client.kt"),
        template!("kotlin", "single.kt"),
        template!("kotlin", "README.md"),
        template!("kotlin", "build.gradle.kts"),
        template!("kotlin", "example.kt"),
        template!("kotlin", "test.kt"),
        template!("kotlin", "snippet.kt"),
        template!("kotlin", "plain.kt"),
    ],
    files: &[
        Output { template: "README.md", path: "README.md" },
        Output { template: "example.kt", path: "examples/FirstCall.kt" },
        Output { template: "Client.kt", path: "src/main/kotlin/Client.kt" },
        Output { template: "Models.kt", path: "src/main/kotlin/Models.kt" },
        Output { template: "Farthing.kt", path: "src/main/kotlin/Farthing.kt" },
        Output { template: "test.kt", path: "src/test/kotlin/ClientTest.kt" },
        Output { template: "build.gradle.kts", path: "build.gradle.kts" },
    ],
    single_file: Output { template: "single.kt", path: "{{ package.pascal }}.kt" },
    snippet: "snippet.kt",
    plain: Some(PlainCode { template: "plain.kt", request: RequestForm::TripleQuotes }),
    packages: Packages {
        registry: Registry::Kebab,
        taken: "fun java javax kotlin kotlinx object typealias typeof val var",
    },
    names: Names {
        types: Case::Pascal,
        operations: Case::Camel,
        parameters: Case::Camel,
        members: Case::Camel,
        choices: Case::Shouty,
        variants: Case::Pascal,
        keywords: "as break class continue do else false for fun if in interface is null object package \
        return super this throw true try typealias typeof val var when while it field value Any Answer \
        AnswerException Array Body Boolean ByteArray CallOptions Client ConnectionException Double \
        Exception FarthingConfig FarthingException Int Json List Long LinkedHashMap Map NodeException \
        Nothing Nullable ServiceException String Throwable Transport Unit BigInteger Unknown Set Pair \
        HttpHeaders Duration URI ExecutionException HttpTimeoutException TimeUnit TimeoutException Number \
        Iterable UUID File Reader Char StringBuilder ArrayList CharSequence Comparable HttpClient \
        HttpRequest HttpResponse Thread Function Regex Short Byte Float",
        taken_types: "",
        taken_operations: "call equals hashCode toString",
        taken_parameters: "body bytes carried options sent transport isJson v1 json at each found isLast \
        items maxPages next",
        taken_members: "copy equals hashCode members toJson toString known",
        taken_choices: "",
        ignores_case: false,
        keeps_wire_names: false,
    },
    types: Types {
        any: "Any?",
        boolean: "Boolean",
        int32: "Int",
        int53: "Long",
        int64: "Long",
        uint64: "java.math.BigInteger",
        number: "Double",
        text: "String",
        bytes: "ByteArray",
        array: "List<{}>",
        map: "Map<String, {}>",
        nullable: "{}?",
        named: "{}",
        recursive: "{}",
        boxed: &[],
    },
    syntax: Syntax {
        literal: Literal::Quoted { escaped: &['$'], code_point: CodePoint::Pairs },
        comment: "// ",
        doc: Doc::Stars,
    },
};
