//! A GraphQL schema as it was written: what both readers produce and [`super::judge`] compiles.
//!
//! Types are still names, nothing has been checked, and everything remembers where it stood.

use serde_json::Value as Json;

/// Line and column, counted from 1; introspection has none.
pub(super) type At = Option<(u64, u64)>;

/// A schema document.
#[derive(Debug, Default)]
pub(super) struct SchemaDraft {
    pub types: Vec<DraftDefinition>,
    pub roots: Roots,
}

/// The contents of `schema {…}` and its extensions.
#[derive(Debug, Default)]
pub(super) struct Roots {
    /// There is a definition, not only extensions: types called `Query` and so on are no roots by their name.
    pub is_complete: bool,
    pub query: Option<Named>,
    pub mutation: Option<Named>,
    pub subscription: Option<Named>,
}

/// A type referred to by its bare name.
#[derive(Debug, Clone)]
pub(super) struct Named {
    pub name: String,
    pub at: At,
}

/// The parts that everything with a name has.
#[derive(Debug, Default)]
pub(super) struct Head {
    pub name: String,
    pub at: At,
    pub description: String,
    /// The reason.
    pub deprecated: Option<String>,
    /// `@inaccessible`.
    pub is_hidden: bool,
}

/// A type, or an extension of one.
#[derive(Debug)]
pub(super) struct DraftDefinition {
    pub head: Head,
    pub extends: bool,
    pub body: DraftBody,
}

#[derive(Debug)]
pub(super) enum DraftBody {
    Scalar,
    Enum(Vec<Head>),
    Object(Fields),
    Interface(Fields),
    Union(Vec<Named>),
    Input(DraftInputs),
}

#[derive(Debug, Default)]
pub(super) struct Fields {
    pub fields: Vec<DraftField>,
    pub implements: Vec<Named>,
}

#[derive(Debug, Default)]
pub(super) struct DraftInputs {
    pub fields: Vec<DraftArgument>,
    pub one_of: bool,
}

#[derive(Debug)]
pub(super) struct DraftField {
    pub head: Head,
    pub args: Vec<DraftArgument>,
    pub ty: Reference,
}

/// An argument, or a field of an input object.
#[derive(Debug)]
pub(super) struct DraftArgument {
    pub head: Head,
    pub ty: Reference,
    /// Enum members are strings; `null` counts as none.
    pub default: Option<Json>,
}

impl DraftArgument {
    /// Tells whether leaving it out is an error.
    pub fn is_required(&self) -> bool {
        self.default.is_none() && self.ty.wraps.last() == Some(&Wrap::NonNull)
    }
}

/// A type referred to with its lists and exclamation marks.
#[derive(Debug)]
pub(super) struct Reference {
    pub name: String,
    pub at: At,
    /// From the inside out; `NonNull` never follows `NonNull`.
    pub wraps: Vec<Wrap>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wrap {
    List,
    NonNull,
}

impl DraftBody {
    /// The keyword of its definition.
    pub const fn keyword(&self) -> &'static str {
        match self {
            Self::Scalar => "scalar",
            Self::Enum(_) => "enum",
            Self::Object(_) => "type",
            Self::Interface(_) => "interface",
            Self::Union(_) => "union",
            Self::Input(_) => "input",
        }
    }

    /// Tells whether arguments can have this type.
    pub const fn is_input(&self) -> bool {
        matches!(self, Self::Scalar | Self::Enum(_) | Self::Input(_))
    }

    /// Tells whether fields can have this type.
    pub const fn is_output(&self) -> bool {
        !matches!(self, Self::Input(_))
    }
}

impl DraftDefinition {
    /// Such as `type Planet, line 12`, for findings.
    pub fn place(&self) -> String {
        place(self.body.keyword(), &self.head.name, self.head.at)
    }

    /// Every type it mentions.
    pub fn mentions(&self) -> Vec<&str> {
        let mut names = Vec::new();
        match &self.body {
            DraftBody::Scalar | DraftBody::Enum(_) => {}
            DraftBody::Object(object) | DraftBody::Interface(object) => {
                names.extend(object.implements.iter().map(|named| named.name.as_str()));
                for field in &object.fields {
                    names.push(&field.ty.name);
                    names.extend(field.args.iter().map(|argument| argument.ty.name.as_str()));
                }
            }
            DraftBody::Union(members) => names.extend(members.iter().map(|named| named.name.as_str())),
            DraftBody::Input(input) => names.extend(input.fields.iter().map(|field| field.ty.name.as_str())),
        }
        names
    }
}

/// Such as `type Planet, line 12`.
pub(super) fn place(keyword: &str, name: &str, at: At) -> String {
    let name = crate::shown(name);
    let subject = format!("{keyword} {name}");
    match at {
        Some((line, _)) => format!("{}, line {line}", subject.trim_end()),
        None => subject.trim_end().to_owned(),
    }
}
