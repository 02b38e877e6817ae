//! PHP: curl and JSON, which come with it; clean under `php -l`.

use crate::profile::{
    Case, CodePoint, Doc, Literal, Names, Output, Packages, Profile, Registry, Syntax, Types, template,
};

pub(crate) static PROFILE: Profile = Profile {
    needs: "PHP 8.2 or later with curl",
    templates: &[
        template!("php", "runtime.php"),
        template!("php", "models.php"),
        template!("php", "client.php"),
        template!("php", "autoload.php"),
        template!("php", "single.php"),
        template!("php", "README.md"),
        template!("php", "composer.json"),
        template!("php", "example.php"),
        template!("php", "test.php"),
        template!("php", "snippet.php"),
    ],
    files: &[
        Output { template: "README.md", path: "README.md" },
        Output { template: "example.php", path: "examples/first_call.php" },
        Output { template: "client.php", path: "src/Client.php" },
        Output { template: "models.php", path: "src/models.php" },
        Output { template: "runtime.php", path: "src/runtime.php" },
        Output { template: "autoload.php", path: "autoload.php" },
        Output { template: "test.php", path: "tests/client_test.php" },
        Output { template: "composer.json", path: "composer.json" },
    ],
    single_file: Output { template: "single.php", path: "{{ package.pascal }}.php" },
    snippet: "snippet.php",
    plain: None,
    packages: Packages {
        registry: Registry::Composer,
        taken: "bool closure composer enum exception false float fn generator int iterable iterator mixed never \
        null object parent php readonly self static stdclass string throwable true void",
    },
    names: Names {
        types: Case::Pascal,
        operations: Case::Camel,
        parameters: Case::Camel,
        members: Case::Camel,
        choices: Case::Shouty,
        variants: Case::Pascal,
        keywords: "this",
        taken_types: "TextChoice IntegerChoice abstract and array as bool break callable case catch class \
        clone const continue declare default die do echo else elseif empty enddeclare endfor endforeach \
        endif endswitch endwhile enum eval exit extends false final finally float fn for foreach function \
        global goto if implements include instanceof insteadof int interface isset iterable list match \
        mixed namespace never new null numeric object or parent print private protected public readonly \
        require resource return self static string switch throw trait true try unset use var void while \
        xor yield Answer AnswerError CallOptions Client ConnectionFailed FarthingError Json JsonForm \
        NodeError Omitted ServiceError Transport",
        taken_operations: "call",
        taken_parameters: "body carried each found item items maxPages next options sent",
        taken_members: "",
        taken_choices: "CLASS",
        ignores_case: true,
        keeps_wire_names: false,
    },
    types: Types {
        any: "mixed",
        boolean: "bool",
        int32: "int",
        int53: "int",
        int64: "int",
        uint64: "int|string",
        number: "float",
        text: "string",
        bytes: "string",
        array: "list<{}>",
        map: "array<string, {}>",
        nullable: "?{}",
        named: "{}",
        recursive: "{}",
        boxed: &[],
    },
    syntax: Syntax {
        literal: Literal::Quoted { escaped: &['$'], code_point: CodePoint::Braces },
        comment: "// ",
        doc: Doc::Stars,
    },
};
