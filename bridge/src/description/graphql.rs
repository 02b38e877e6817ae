//! A GraphQL schema, compiled: what queries are planned with, on both sides of a call.
//!
//! Readers make it once at registration; it travels in the description, so that nobody parses SDL to make a
//! call. Types refer to each other by index. Root types are ordinary object types.
//!
//! Invariants, checked by [`crate::Api::new`] because the other node's owner is a stranger: every [`TypeId`] is in
//! range; names are GraphQL names; fields have output types and arguments input types.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

use super::RootKind;

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GraphqlSchema {
    /// Names are unique. The five built-in scalars are present when used.
    pub types: Vec<Type>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub query: Option<TypeId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mutation: Option<TypeId>,
}

/// Index into [`GraphqlSchema::types`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TypeId(pub u32);

impl TypeId {
    pub(crate) fn index(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }
}

/// A named type.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Type {
    pub name: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    pub kind: TypeKind,
}

/// The kind of a type, with its declaration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum TypeKind {
    Scalar(Scalar),
    Enum(Enum),
    Object(Composite),
    Interface(Composite),
    Union(Union),
    Input(Input),
}

/// A leaf.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scalar {
    pub form: ScalarForm,
}

/// The form of a scalar, by which its text becomes a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ScalarForm {
    Int,
    Float,
    Boolean,
    String,
    Id,
    /// A custom scalar whose values are any JSON.
    CustomJson,
    /// A custom scalar whose values are numbers, passed on digit by digit.
    CustomNumber,
    /// Any other custom scalar: a string.
    CustomString,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Enum {
    pub values: Vec<EnumValue>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EnumValue {
    pub name: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// The reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deprecated: Option<String>,
}

/// An object or interface type.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Composite {
    pub fields: Vec<Field>,
    /// For an interface: the object types that implement it, in the schema's order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub implementors: Vec<TypeId>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Union {
    pub members: Vec<TypeId>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Input {
    pub fields: Vec<InputValue>,
    /// `@oneOf`: exactly one field is given, and it is not null.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub one_of: bool,
}

/// A field of an object or interface.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Field {
    pub name: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// The reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deprecated: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<InputValue>,
    #[serde(rename = "type")]
    pub ty: TypeRef,
}

/// An argument, or a field of an input object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InputValue {
    pub name: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// The reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deprecated: Option<String>,
    #[serde(rename = "type")]
    pub ty: TypeRef,
    /// As JSON text: enum members as strings. Shown, never sent.
    #[serde(
        default,
        deserialize_with = "crate::description::given",
        skip_serializing_if = "Option::is_none"
    )]
    pub default: Option<serde_json::Value>,
}

impl InputValue {
    /// Returns whether a caller must give it: non-null and without a default.
    pub const fn is_required(&self) -> bool {
        matches!(self.ty, TypeRef::NonNull(_)) && self.default.is_none()
    }
}

/// A type with its lists and exclamation marks. Serialised as `[7!]!`, where 7 is the [`TypeId`].
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum TypeRef {
    Named(TypeId),
    List(Box<Self>),
    /// Never around another `NonNull`.
    NonNull(Box<Self>),
}

/// Lists within lists that a [`TypeRef`] may have; it bounds every recursion over one.
pub const LIST_DEPTH_MAX: usize = 16;

impl TypeRef {
    /// The type inside all lists and exclamation marks.
    pub fn named(&self) -> TypeId {
        match self {
            Self::Named(id) => *id,
            Self::List(inner) | Self::NonNull(inner) => inner.named(),
        }
    }

    /// Lists within lists.
    pub fn lists(&self) -> u8 {
        match self {
            Self::Named(_) => 0,
            Self::List(inner) => inner.lists().saturating_add(1),
            Self::NonNull(inner) => inner.lists(),
        }
    }

    pub const fn is_non_null(&self) -> bool {
        matches!(self, Self::NonNull(_))
    }

    /// Without the outermost exclamation mark.
    pub fn nullable(&self) -> &Self {
        match self {
            Self::NonNull(inner) => inner,
            other => other,
        }
    }

    /// Writes it with `name` for its named type: with the type's name this is exactly the SDL.
    fn write(&self, f: &mut impl fmt::Write, name: &dyn fmt::Display) -> fmt::Result {
        match self {
            Self::Named(_) => write!(f, "{name}"),
            Self::List(inner) => {
                f.write_char('[')?;
                inner.write(f, name)?;
                f.write_char(']')
            }
            Self::NonNull(inner) => {
                inner.write(f, name)?;
                f.write_char('!')
            }
        }
    }

    /// The text of the type, `name` standing for its named type.
    pub fn text(&self, name: &str) -> String {
        let mut text = String::with_capacity(name.len() + 4);
        self.write(&mut text, &name).unwrap_or_default();
        text
    }

    fn parse(text: &str, depth: usize) -> Option<Self> {
        if let Some(inner) = text.strip_suffix('!') {
            let inner = if inner.ends_with('!') { None } else { Self::parse(inner, depth) };
            return inner.map(|inner| Self::NonNull(Box::new(inner)));
        }
        if let Some(inner) = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')) {
            let depth = depth.checked_sub(1)?;
            return Some(Self::List(Box::new(Self::parse(inner, depth)?)));
        }
        text.parse().ok().map(|id| Self::Named(TypeId(id)))
    }
}

impl Serialize for TypeRef {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text(&self.named().0.to_string()))
    }
}

impl<'de> Deserialize<'de> for TypeRef {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        Self::parse(&text, LIST_DEPTH_MAX)
            .ok_or_else(|| D::Error::custom("expected a type such as [7!]!, not nested too deeply"))
    }
}

impl GraphqlSchema {
    /// The type; `None` for an id out of range, which [`crate::Api::new`] rules out.
    pub fn get(&self, id: TypeId) -> Option<&Type> {
        self.types.get(id.index())
    }

    /// The root type of queries or mutations.
    pub const fn root(&self, kind: RootKind) -> Option<TypeId> {
        match kind {
            RootKind::Query => self.query,
            RootKind::Mutation => self.mutation,
        }
    }

    /// Fields of an object or interface.
    pub fn fields(&self, id: TypeId) -> Option<&[Field]> {
        match &self.get(id)?.kind {
            TypeKind::Object(composite) | TypeKind::Interface(composite) => Some(&composite.fields),
            _ => None,
        }
    }

    /// `ty` as SDL writes it.
    pub fn type_text(&self, ty: &TypeRef) -> String {
        ty.text(self.get(ty.named()).map_or("", |named| &named.name))
    }
}
