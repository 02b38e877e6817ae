//! Ruby: the standard library alone, clean under `ruby -wc`.

use crate::profile::{
    Case, CodePoint, Doc, Literal, Names, Output, Packages, Profile, Registry, Syntax, Types, template,
};

pub(crate) static PROFILE: Profile = Profile {
    needs: "Ruby 3.1 or later",
    templates: &[
        template!("ruby", "runtime.rb"),
        template!("ruby", "models.rb"),
        template!("ruby", "client.rb"),
        template!("ruby", "init.rb"),
        template!("ruby", "single.rb"),
        template!("ruby", "README.md"),
        template!("ruby", "gemspec"),
        template!("ruby", "example.rb"),
        template!("ruby", "test.rb"),
        template!("ruby", "snippet.rb"),
    ],
    files: &[
        Output { template: "README.md", path: "README.md" },
        Output { template: "example.rb", path: "examples/first_call.rb" },
        Output { template: "init.rb", path: "lib/{{ package.snake }}.rb" },
        Output { template: "client.rb", path: "lib/{{ package.snake }}/client.rb" },
        Output { template: "models.rb", path: "lib/{{ package.snake }}/models.rb" },
        Output { template: "runtime.rb", path: "lib/{{ package.snake }}/runtime.rb" },
        Output { template: "test.rb", path: "test/client_test.rb" },
        Output { template: "gemspec", path: "{{ package.kebab }}.gemspec" },
    ],
    single_file: Output { template: "single.rb", path: "{{ package.snake }}.rb" },
    snippet: "snippet.rb",
    plain: None,
    packages: Packages {
        registry: Registry::Kebab,
        taken: "array base64 basic_object benchmark bigdecimal bundler cgi class comparable csv data date digest \
        dir encoding enumerable erb errno etc exception fiber file fileutils find float forwardable gc \
        hash integer io ipaddr irb json kernel logger marshal math method module monitor mutex net \
        numeric object observer open3 openssl optparse ostruct pathname pp prettyprint proc process \
        pstore psych queue racc rake random range rational rbconfig rdoc readline regexp reline resolv \
        rexml rinda ripper ruby rubygems securerandom set shellwords signal singleton socket string \
        stringio strscan struct symbol syslog tempfile thread time timeout tmpdir trace_point tsort un \
        uri weakref yaml zlib",
    },
    names: Names {
        types: Case::Pascal,
        operations: Case::Snake,
        parameters: Case::Snake,
        members: Case::Snake,
        choices: Case::Shouty,
        variants: Case::Pascal,
        keywords: "BEGIN END alias and begin break case class def defined do else elsif end ensure false \
        for if in module next nil not or redo rescue retry return self super then true undef unless until \
        when while yield it p",
        taken_types: "Answer AnswerError Array CallOptions Client ConnectionFailed Encoding FarthingError \
        Float Hash IOError Integer Json JSON Kernel Module Net NodeError Numeric Object OpenSSL Random \
        SecureRandom ServiceError SocketError StandardError String Struct Symbol SystemCallError Timeout \
        Transport URI ArgumentError ENV UNSET Class Comparable Enumerable Exception",
        taken_operations: "call class clone dup freeze initialize inspect method methods object_id send \
        hash display then tap instance_eval raise loop",
        taken_parameters: "at body carried each found is_json items max_pages members options sent text \
        upcoming",
        taken_members: "class clone dup freeze frozen? hash initialize inspect instance_variables method \
        methods object_id send then to_json_form display extend tap itself members respond_to \
        instance_eval instance_exec public_send singleton_class raise loop",
        taken_choices: "",
        ignores_case: false,
        keeps_wire_names: false,
    },
    types: Types {
        any: "Object",
        boolean: "Boolean",
        int32: "Integer",
        int53: "Integer",
        int64: "Integer",
        uint64: "Integer",
        number: "Float",
        text: "String",
        bytes: "String",
        array: "Array<{}>",
        map: "Hash{String => {}}",
        nullable: "{}, nil",
        named: "{}",
        recursive: "{}",
        boxed: &[],
    },
    syntax: Syntax {
        literal: Literal::Quoted { escaped: &['#'], code_point: CodePoint::Braces },
        comment: "# ",
        doc: Doc::Lines("# "),
    },
};
