//! Swift: Foundation alone.

use crate::profile::{
    Case, CodePoint, Doc, Literal, Names, Output, Packages, Profile, Registry, Syntax, Types, template,
};

pub(crate) static PROFILE: Profile = Profile {
    needs: "Swift 5.9 or later",
    templates: &[
        template!("swift", "Runtime.swift"),
        template!("swift", "imports.swift"),
        template!("swift", "Models.swift"),
        template!("swift", "Client.swift"),
        template!("swift", "single.swift"),
        template!("swift", "README.md"),
        template!("swift", "Package.swift"),
        template!("swift", "example.swift"),
        template!("swift", "snippet.swift"),
    ],
    files: &[
        Output { template: "README.md", path: "README.md" },
        Output { template: "example.swift", path: "Examples/FirstCall.swift" },
        Output { template: "Client.swift", path: "Sources/Client.swift" },
        Output { template: "Models.swift", path: "Sources/Models.swift" },
        Output { template: "Runtime.swift", path: "Sources/Runtime.swift" },
        Output { template: "Package.swift", path: "Package.swift" },
    ],
    single_file: Output { template: "single.swift", path: "{{ package.pascal }}.swift" },
    snippet: "snippet.swift",
    plain: None,
    packages: Packages {
        registry: Registry::Kebab,
        taken: "any client combine dispatch error_type first_call foundation foundation_networking \
        package_description protocol security swift xctest",
    },
    names: Names {
        types: Case::Pascal,
        operations: Case::Camel,
        parameters: Case::Camel,
        members: Case::Camel,
        choices: Case::Camel,
        variants: Case::Camel,
        keywords: "Any Protocol Self Type actor as associatedtype async await break case catch class \
        continue default defer deinit do dynamic else enum extension fallthrough false fileprivate for \
        func get guard if import in indirect infix init inout internal is lazy let macro mutating nil \
        nonisolated open operator optional override postfix precedencegroup prefix private protocol public \
        repeat required rethrows return self set some static struct subscript super switch throw throws \
        true try typealias unowned var weak where while",
        taken_types: "Answer Array Body Bool CallOptions Pages Character Client Codable Codingkey \
        CodingKeys Data Decodable Decoder Dictionary Double Encodable Encoder Error FarthingError Float \
        Hashable Indirect Int Int32 Int64 Json Name NSObject Nullable Optional Result Set String Task \
        Transport UInt64 URL UUID Void Sendable Never",
        taken_operations: "call transport",
        taken_parameters: "at body carried data each found isJson isMore items maxPages next options sent \
        value",
        taken_members: "additionalMembers encode container known further hash",
        taken_choices: "rawValue hash hashValue unknown encode",
        keeps_wire_names: false,
        ignores_case: false,
    },
    types: Types {
        any: "Json",
        boolean: "Bool",
        int32: "Int32",
        int53: "Int64",
        int64: "Int64",
        uint64: "UInt64",
        number: "Double",
        text: "String",
        bytes: "Data",
        array: "[{}]",
        map: "[String: {}]",
        nullable: "{}?",
        named: "{}",
        recursive: "Indirect<{}>",
        boxed: &[],
    },
    syntax: Syntax {
        literal: Literal::Quoted { escaped: &[], code_point: CodePoint::Braces },
        comment: "// ",
        doc: Doc::Lines("/// "),
    },
};
