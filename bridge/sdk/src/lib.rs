//! Client code for a service, in twelve languages: typed, documented, ready to run.
//!
//! 1. A description becomes a language-neutral [`model`]: operations, and the types they need.
//! 2. The language's [`profile`] gives everything a name that compiles there ([`names`]); each rename is a warning.
//! 3. Names and texts become the [`context`] of the templates.
//! 4. [`render`] makes files of them. What a stranger wrote reaches a file only through an escaping filter
//!    ([`escape`]); a template that forgets one is an error and no file.
//!
//! [`plain()`] shows one call as code that needs no client, for pasting, and [`upload()`] one that sends files.
//!
//! The same description and options give the same bytes. **A language is added** with a folder below
//! `bridge/sdk/templates`, which holds its templates and, as `profile.toml`, its [`profile::Profile`], and with its
//! lines in `named!` and [`languages`]. `bridge/sdk/templates/README.md` lists what templates are given.
//!
//! Integers are exact in every language: what is not declared to fit into 32 or 53 bits is a 64-bit type, and in
//! JavaScript and TypeScript `number | bigint`, a `bigint` whenever a `number` would lose digits.

mod context;
mod escape;
mod languages;
mod model;
mod names;
mod package;
mod plain;
mod profile;
mod render;
mod snippet;
mod upload;

use std::collections::BTreeMap;

use farthing_bridge::description::ApiDescription;

pub use plain::{PlainCall, plain};
pub use snippet::{SnippetBody, snippet};
pub use upload::{UploadBody, UploadCall, UploadPart, upload};

/// Each language with its name, as it is written on a command line and in addresses, its title, as people write it, and
/// its short names, in the order in which they are shown.
macro_rules! named {
    ($($language:ident: $name:literal, $title:literal, $short_names:expr;)+) => {
        /// A language that client code can be written in.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Language {
            $($language,)+
        }

        impl Language {
            const ALL: [Self; [$($name),+].len()] = [$(Self::$language),+];

            /// Name, title and short names.
            const fn facts(self) -> (&'static str, &'static str, &'static [&'static str]) {
                match self {
                    $(Self::$language => ($name, $title, &$short_names),)+
                }
            }
        }
    };
}

named! {
    Python: "python", "Python", ["py"];
    TypeScript: "typescript", "TypeScript", ["ts"];
    JavaScript: "javascript", "JavaScript", ["js", "node"];
    Go: "go", "Go", ["golang"];
    Rust: "rust", "Rust", ["rs"];
    Kotlin: "kotlin", "Kotlin", ["kt"];
    Java: "java", "Java", [];
    CSharp: "csharp", "C#", ["cs", "dotnet"];
    Ruby: "ruby", "Ruby", ["rb"];
    Php: "php", "PHP", [];
    Shell: "shell", "Shell", ["sh", "bash"];
    Swift: "swift", "Swift", [];
}

impl Language {
    /// All of them, in the order in which they are shown.
    pub fn all() -> impl Iterator<Item = Self> {
        Self::ALL.into_iter()
    }

    /// As it is written on a command line and in addresses.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.facts().0
    }

    /// As people write it.
    #[must_use]
    pub const fn title(self) -> &'static str {
        self.facts().1
    }

    /// Returns what the generated code needs to run.
    #[must_use]
    pub fn needs(self) -> &'static str {
        &self.profile().needs
    }

    /// Reads a name in any case: the one of [`Self::name`], of [`Self::title`], or the usual end of the language's files;
    /// `None` for one that is not among them.
    pub fn parse(given: &str) -> Option<Self> {
        let is_it = |language: &Self| {
            let (name, title, short_names) = language.facts();
            let mut names = [name, title].into_iter().chain(short_names.iter().copied());
            names.any(|known| known.eq_ignore_ascii_case(given))
        };
        Self::all().find(is_it)
    }
}

impl std::fmt::Display for Language {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.name())
    }
}

/// Settings of client code that the description does not give.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// UUID of the service, which the code calls.
    pub service_id: String,
    /// The service's name in the network; the description's title when empty.
    pub service_name: String,
    /// Price of a call in USDC as decimal text; empty when it is not known.
    pub price: String,
    /// Prices that differ, by operation id.
    pub prices: BTreeMap<String, String>,
    /// Name of the package instead of one made from the service's name.
    pub package: Option<String>,
    /// Everything in one file, without tests and metadata.
    pub single_file: bool,
    /// Address of the caller's own node.
    pub base_url: String,
    /// Templates that replace the built-in ones of the language, by their name, such as `client.py`.
    pub templates: BTreeMap<String, String>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            service_id: String::new(),
            service_name: String::new(),
            price: String::new(),
            prices: BTreeMap::new(),
            package: None,
            single_file: false,
            base_url: "https://localhost:3000".to_owned(),
            templates: BTreeMap::new(),
        }
    }
}

/// Generated client code.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sdk {
    /// Name of the package in the language's own spelling, good as the name of a folder.
    pub package: String,
    /// In the order in which a reader wants to see them.
    pub files: Vec<SdkFile>,
    /// Names that differ from those of the description, and parts that could not be typed.
    pub warnings: Vec<String>,
}

/// A file of the generated code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SdkFile {
    /// Relative, with slashes: `src/quakes/client.py`.
    pub path: String,
    pub text: String,
}

/// The reason that no code was generated.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SdkError {
    #[error(
        "`{0}` cannot be the name of a package; use up to 100 letters, digits, `-`, `_`, `.` and `/`, with a letter \
         first in the last part, or `@scope/name`"
    )]
    Package(String),
    #[error("there is no template `{name}` to replace; the templates are {known}")]
    UnknownTemplate { name: String, known: String },
    #[error("the template `{name}`: {detail}")]
    Template { name: String, detail: String },
    #[error("there is no operation number {0}")]
    NoOperation(usize),
}

impl SdkError {
    pub const fn next_step(&self) -> &'static str {
        match self {
            Self::Package(_) => "Leave it out for a name made from the service's.",
            Self::Template { .. } | Self::UnknownTemplate { .. } => {
                "Correct or remove it; the code can be written without it."
            }
            Self::NoOperation(_) => "Read the service again.",
        }
    }
}

/// Writes client code for a service.
///
/// # Errors
/// [`SdkError`] for a name or template of the caller's that cannot be used.
pub fn generate(
    description: &ApiDescription,
    language: Language,
    options: &Options,
) -> Result<Sdk, SdkError> {
    let profile = language.profile();
    let mut warnings = Vec::new();
    let package = package::Package::new(options, description, profile, &mut warnings)?;
    let model = model::Model::new(description, &mut warnings);
    let context = context::context(&model, profile, &package, options, &mut warnings);
    let files = render::files(profile, &context, options)?;
    Ok(Sdk { package: package.kebab, files, warnings })
}

// The bridge's test descriptions, which its tests share with these, find it at the root.
#[cfg(test)]
use farthing_bridge::description;

#[cfg(test)]
mod tests;
