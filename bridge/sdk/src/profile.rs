//! A language's profile: its templates, its names, its types, its syntax. Tables, no code.

/// A language.
#[derive(Debug)]
pub(super) struct Profile {
    /// The requirements of the code: `Python 3.10 or later`.
    pub needs: &'static str,
    /// Every template of the language's folder.
    pub templates: &'static [Template],
    /// The files of a package.
    pub files: &'static [Output],
    /// The one file with everything.
    pub single_file: Output,
    /// Name of the template of [`super::snippet()`].
    pub snippet: &'static str,
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
    pub text: &'static str,
}

/// A template of one of the folders, by its name. Where tools would take it for something else, it lies there with another
/// ending.
macro_rules! template {
    ($folder:literal, $name:literal $(, $ending:literal)?) => {
        $crate::profile::Template {
            name: $name,
            text: include_str!(concat!("../../templates/", $folder, "/", $name $(, $ending)?)),
        }
    };
}

pub(super) use template;

/// A file to write.
#[derive(Debug)]
pub(super) struct Output {
    pub template: &'static str,
    /// A template itself: `src/{{ package.snake }}/client.py`.
    pub path: &'static str,
}

/// Code of a call without a client.
#[derive(Debug)]
pub(super) struct PlainCode {
    pub template: &'static str,
    pub request: RequestForm,
}

/// The form of the gateway's request in code.
#[derive(Debug, Clone, Copy)]
pub(super) enum RequestForm {
    /// As a value of the language, written as JSON but for these.
    Members {
        indent: usize,
        /// For null, true and false.
        words: [&'static str; 3],
        /// For a member of the name `__proto__`.
        prototype: &'static str,
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
#[derive(Debug)]
pub(super) struct Packages {
    pub registry: Registry,
    /// Names that a package cannot have beside the keywords, in small letters with underscores, apart by blanks: those of
    /// the language's library, those that its registry refuses, those of files beside it.
    pub taken: &'static str,
}

/// The form that the package's registry wants for its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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
#[derive(Debug)]
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
    pub keywords: &'static str,
    /// Used by the templates beside generated types, operations, parameters or members.
    pub taken_types: &'static str,
    pub taken_operations: &'static str,
    pub taken_parameters: &'static str,
    pub taken_members: &'static str,
    pub taken_choices: &'static str,
    /// True if members and parameters keep their names from outside, so that their names here are not used.
    pub keeps_wire_names: bool,
    /// True if names that differ in case only are the same, as in PHP.
    pub ignores_case: bool,
}

/// The spelling of types; `{}` stands for the type inside.
#[derive(Debug)]
pub(super) struct Types {
    pub any: &'static str,
    pub boolean: &'static str,
    /// Declared to fit into 32 bits, with sign.
    pub int32: &'static str,
    /// Declared to fit into what an IEEE 754 double holds exactly.
    pub int53: &'static str,
    pub int64: &'static str,
    /// Declared `uint64`: above what `int64` holds.
    pub uint64: &'static str,
    pub number: &'static str,
    pub text: &'static str,
    pub bytes: &'static str,
    pub array: &'static str,
    /// From texts to `{}`.
    pub map: &'static str,
    pub nullable: &'static str,
    /// A generated type by its name.
    pub named: &'static str,
    /// The same, for one that holds itself without a list or map between; in Rust `Box<{}>`.
    pub recursive: &'static str,
    /// The spelling of a type inside of lists, maps and nullable ones where that differs: `("long", "Long")`.
    pub boxed: &'static [(&'static str, &'static str)],
}

/// The syntax of text in code.
#[derive(Debug)]
pub(super) struct Syntax {
    pub literal: Literal,
    /// The beginning of a line of comment, blank included: `// `.
    pub comment: &'static str,
    pub doc: Doc,
}

/// A string literal in double quotes, with the escapes `\\`, `\"`, `\n`, `\r` and `\t`.
#[derive(Debug)]
pub(super) enum Literal {
    Quoted {
        /// Further characters that need a backslash, because the language would put values in their place.
        escaped: &'static [char],
        code_point: CodePoint,
    },
    /// Bash: `'…'`, or `$'…'` for what cannot be written so.
    Shell,
}

/// The form of a character written by its number.
#[derive(Debug, Clone, Copy)]
pub(super) enum CodePoint {
    /// `\u0041`, beyond 16 bits as two of them.
    Pairs,
    /// `\u0041`, beyond 16 bits `\U0001f600`.
    Wide,
    /// `\u{41}`
    Braces,
}

/// The form of documentation in code.
#[derive(Debug, Clone, Copy)]
pub(super) enum Doc {
    /// `"""…"""` with escapes.
    TripleQuotes,
    /// `/** … */`, each line after ` * `; tags begin with `@`.
    Stars,
    /// Lines after `/// ` or the like: the prefix, with its blank.
    Lines(&'static str),
    /// `/// ` with XML in it, as in C#.
    XmlLines,
}
