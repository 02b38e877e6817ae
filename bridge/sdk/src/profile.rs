//! A language's profile: its files, its names, its types, its syntax, as the `profile.toml` of its folder says.

use std::collections::BTreeMap;

use serde::Deserialize;

/// A language.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Profile {
    /// The requirements of the code: `Python 3.10 or later`.
    pub needs: String,
    /// Every template of the language's folder.
    #[serde(skip)]
    pub templates: Vec<Template>,
    /// The files of a package.
    pub files: Vec<Output>,
    /// The one file with everything.
    pub single_file: Output,
    /// Name of the template of [`super::snippet()`].
    pub snippet: String,
    /// For [`super::plain()`].
    pub plain: Option<PlainCode>,
    pub packages: Packages,
    pub names: Names,
    pub types: Types,
    pub syntax: Syntax,
}

/// A template with the name by which others include it and a caller may replace it.
#[derive(Debug)]
pub(super) struct Template {
    pub name: &'static str,
    pub text: String,
}

/// A file to write.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Output {
    pub template: String,
    /// A template itself: `src/{{ package.snake }}/client.py`.
    pub path: String,
}

/// Code of a call without a client.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PlainCode {
    pub template: String,
    pub request: RequestForm,
    /// For [`super::upload()`].
    pub upload: String,
}

/// The form of the gateway's request in code.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum RequestForm {
    /// As a value of the language, written as JSON but for these.
    Members {
        indent: usize,
        /// For null, true and false.
        words: [String; 3],
        /// For a member of the name `__proto__`.
        prototype: String,
    },
    /// As JSON, in `'…'` of a shell.
    SingleQuotes,
    /// In a raw string of Go.
    Backticks,
    /// In a raw string of Rust.
    Hashes,
    /// In a raw string of Kotlin.
    TripleQuotes,
}

/// Rules for the name of a package.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Packages {
    pub registry: Registry,
    /// Names that a package cannot have beside the keywords, in small letters with underscores, apart by blanks: those of
    /// the language's library, those that its registry refuses, those of files beside it.
    pub taken: String,
}

/// The form that the package's registry wants for its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Registry {
    /// Small letters, with dashes.
    Kebab,
    /// Small letters; a slash only as in `@scope/name`.
    Npm,
    /// A path, such as `example.com/name`.
    GoModule,
    /// `vendor/name`
    Composer,
}

/// The way in which words are joined to a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Case {
    /// `list_planets`
    Snake,
    /// `listPlanets`
    Camel,
    /// `ListPlanets`
    Pascal,
    /// `PlanetByID`: as in Go, where words such as ID and URL keep their capitals.
    PascalInitials,
    /// `LIST_PLANETS`
    Shouty,
}

/// Rules for names. A name that is taken gets an underscore at its end, one that is given twice a number.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Names {
    pub types: Case,
    pub operations: Case,
    pub parameters: Case,
    pub members: Case,
    /// Members of enums.
    pub choices: Case,
    /// Alternatives of a union, in languages where they have names.
    pub variants: Case,
    /// Nothing may have these names, which stand apart by blanks, as all that are taken.
    #[serde(default)]
    pub keywords: String,
    /// Used by the templates beside generated types, operations, parameters or members.
    #[serde(default)]
    pub taken_types: String,
    #[serde(default)]
    pub taken_operations: String,
    #[serde(default)]
    pub taken_parameters: String,
    #[serde(default)]
    pub taken_members: String,
    #[serde(default)]
    pub taken_choices: String,
    /// True if members and parameters keep their names from outside, so that their names here are not used.
    #[serde(default)]
    pub keeps_wire_names: bool,
    /// True if names that differ in case only are the same, as in PHP.
    #[serde(default)]
    pub ignores_case: bool,
}

/// The spelling of types; `{}` stands for the type inside.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Types {
    pub any: String,
    pub boolean: String,
    /// Declared to fit into 32 bits, with sign.
    pub int32: String,
    /// Declared to fit into what an IEEE 754 double holds exactly.
    pub int53: String,
    pub int64: String,
    /// Declared `uint64`: above what `int64` holds.
    pub uint64: String,
    pub number: String,
    pub text: String,
    pub bytes: String,
    pub array: String,
    /// From texts to `{}`.
    pub map: String,
    pub nullable: String,
    /// A generated type by its name.
    #[serde(default = "itself")]
    pub named: String,
    /// The same, for one that holds itself without a list or map between; in Rust `Box<{}>`.
    #[serde(default = "itself")]
    pub recursive: String,
    /// The spelling of a type inside of lists, maps and nullable ones where that differs: `long = "Long"`.
    #[serde(default)]
    pub boxed: BTreeMap<String, String>,
}

fn itself() -> String {
    "{}".to_owned()
}

/// The syntax of text in code.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Syntax {
    pub literal: Literal,
    /// The beginning of a line of comment, blank included: `// `.
    pub comment: String,
    pub doc: Doc,
}

/// A string literal in double quotes, with the escapes `\\`, `\"`, `\n`, `\r` and `\t`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum Literal {
    Quoted {
        /// Further characters that need a backslash, because the language would put values in their place.
        #[serde(default)]
        escaped: Vec<char>,
        code_point: CodePoint,
    },
    /// Bash: `'…'`, or `$'…'` for what cannot be written so.
    Shell,
}

/// The form of a character written by its number.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum CodePoint {
    /// `\u0041`, beyond 16 bits as two of them.
    Pairs,
    /// `\u0041`, beyond 16 bits `\U0001f600`.
    Wide,
    /// `\u{41}`
    Braces,
}

/// The form of documentation in code.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Doc {
    /// `"""…"""` with escapes.
    TripleQuotes,
    /// `/** … */`, each line after ` * `; tags begin with `@`.
    Stars,
    /// Lines after `/// ` or the like: the prefix, with its blank.
    Lines(String),
    /// `/// ` with XML in it, as in C#.
    XmlLines,
}
