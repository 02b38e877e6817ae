//! Client code for services.

use std::collections::BTreeMap;

use farthing_sdk::Language;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// `farthing sdk languages`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SdkLanguage {
    /// As `farthing sdk generate --language` takes it.
    pub name: String,
    /// As people write it.
    pub title: String,
    /// The requirements for running the code.
    pub needs: String,
}

impl SdkLanguage {
    /// All of them, in the order in which they are shown.
    pub fn all() -> Vec<Self> {
        let shown = |language: Language| Self {
            name: language.name().to_owned(),
            title: language.title().to_owned(),
            needs: language.needs().to_owned(),
        };
        Language::all().map(shown).collect()
    }
}

/// `farthing sdk generate`: what is wished beyond service and language.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SdkRequest {
    /// Name of the package instead of one made from the service's name.
    pub package: Option<String>,
    /// Everything in one file, without tests and metadata.
    pub single_file: bool,
    /// Templates that replace the built-in ones of the language, by their name.
    pub templates: BTreeMap<String, String>,
}

/// Generated client code.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Sdk {
    /// Name of the package, good as the name of a folder.
    pub package: String,
    pub files: Vec<SdkFile>,
    /// Names that differ from those in the service's description, and parts that could not be typed.
    pub warnings: Vec<String>,
}

/// One call, to be shown as code that uses the client.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SnippetRequest {
    pub method: String,
    /// As the service's description has it: `/things/{id}`.
    pub path: String,
    /// Texts by the parameters' names.
    #[serde(default)]
    pub params: BTreeMap<String, String>,
    pub body: Option<SnippetBody>,
}

/// The body of a call that is shown as code.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum SnippetBody {
    /// JSON, or any other text.
    Text(String),
    /// The name of a file that is all of it.
    File(String),
    /// `multipart/form-data`
    Parts(Vec<SnippetPart>),
}

/// A part of a form that is shown as code.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SnippetPart {
    pub name: String,
    /// A text, or the name of a file.
    pub value: String,
    pub is_file: bool,
}

/// The call in a language.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Snippet {
    /// As `farthing sdk generate --language` takes it.
    pub language: String,
    /// As people write it.
    pub title: String,
    pub text: String,
}

/// A file of the code.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SdkFile {
    /// Relative, with slashes.
    pub path: String,
    pub text: String,
}
