//! Declared types for templates.

use minijinja::Value;
use serde::Serialize;

use super::{TypeRef, Writer};
use crate::{
    escape::Foreign,
    model::{self, Enum, Kind},
};

/// A type to declare. Which lists are filled depends on `kind`.
#[derive(Debug, Serialize)]
pub(super) struct DeclaredContext {
    /// `object`, `parts`, `enum` or `union`.
    kind: &'static str,
    name: String,
    /// Its name in the description.
    source: Value,
    doc: Value,
    in_requests: bool,
    in_answers: bool,
    recursive: bool,
    members: Vec<MemberContext>,
    additional: Option<TypeRef>,
    exactly_one: bool,
    /// Of an enum: `text` or `integer`.
    of: &'static str,
    choices: Vec<Choice>,
    variants: Vec<VariantContext>,
    /// The member that tells the variant; undefined when none does.
    discriminator: Option<Value>,
}

#[derive(Debug, Serialize)]
struct MemberContext {
    name: String,
    column: usize,
    wire: Value,
    /// True if `name` is its name outside as well.
    same: bool,
    doc: Value,
    required: bool,
    deprecated: bool,
    #[serde(rename = "type")]
    of: TypeRef,
}

#[derive(Debug, Serialize)]
struct Choice {
    name: String,
    column: usize,
    text: Value,
    number: Option<i64>,
}

#[derive(Debug, Serialize)]
struct VariantContext {
    name: String,
    column: usize,
    #[serde(rename = "type")]
    of: TypeRef,
    /// Values of the discriminator.
    tags: Vec<Value>,
}

impl Writer<'_> {
    pub(super) fn declared(&self, index: usize) -> DeclaredContext {
        let declared = &self.model.types[index];
        let names = &self.named.members[index];
        let mut written = DeclaredContext {
            kind: "object",
            name: self.named.types[index].clone(),
            source: Foreign::value(&*declared.hint),
            doc: Foreign::value(&*declared.doc),
            in_requests: declared.in_requests,
            in_answers: declared.in_answers,
            recursive: declared.recursive,
            members: Vec::new(),
            additional: None,
            exactly_one: false,
            of: "text",
            choices: Vec::new(),
            variants: Vec::new(),
            discriminator: None,
        };
        match &declared.kind {
            Kind::Object(object) | Kind::Parts(object) => {
                if matches!(declared.kind, Kind::Parts(_)) {
                    written.kind = "parts";
                }
                let is_documented = |member: &model::Member| !member.doc.is_empty() || member.deprecated;
                let columns = columns(names, |at| object.members.get(at).is_some_and(is_documented));
                let named = object.members.iter().zip(names).zip(columns);
                written.members =
                    named.map(|((member, name), column)| self.member(member, name, column)).collect();
                written.additional = object.additional.as_ref().map(|of| self.type_ref(of, false));
                written.exactly_one = object.exactly_one;
            }
            Kind::Enum(choices) => {
                written.kind = "enum";
                written.choices = self::choices(choices, names);
                if matches!(choices, Enum::Integers(_)) {
                    written.of = "integer";
                }
            }
            Kind::Union(union) => {
                written.kind = "union";
                let variant =
                    |((variant, name), column): ((&model::Variant, &String), usize)| VariantContext {
                        name: name.clone(),
                        column,
                        of: self.type_ref(&variant.of, true),
                        tags: variant.tags.iter().map(|tag| Foreign::value(&**tag)).collect(),
                    };
                written.variants =
                    union.variants.iter().zip(names).zip(columns(names, |_| false)).map(variant).collect();
                written.discriminator = union.discriminator.as_deref().map(Foreign::value);
            }
        }
        written
    }

    fn member(&self, member: &model::Member, name: &str, column: usize) -> MemberContext {
        MemberContext {
            name: name.to_owned(),
            column,
            wire: Foreign::value(&*member.wire),
            same: member.wire == name,
            doc: Foreign::value(&*member.doc),
            required: member.required,
            deprecated: member.deprecated,
            of: self.type_ref(&member.of, true),
        }
    }
}

/// For each name the width of the longest among those that stand together, so that what follows begins in one column: a
/// documented one begins anew.
pub(super) fn columns(names: &[String], is_documented: impl Fn(usize) -> bool) -> Vec<usize> {
    let mut columns = vec![0; names.len()];
    let mut begin = 0;
    while begin < names.len() {
        let end = (begin + 1..names.len()).find(|at| is_documented(*at)).unwrap_or(names.len());
        let width = names[begin..end].iter().map(String::len).max().unwrap_or(0);
        columns[begin..end].fill(width);
        begin = end;
    }
    columns
}

fn choices(choices: &Enum, names: &[String]) -> Vec<Choice> {
    let columns = columns(names, |_| false);
    let names = names.iter().cloned().zip(columns);
    match choices {
        Enum::Texts(texts) => names
            .zip(texts)
            .map(|((name, column), text)| Choice {
                name,
                column,
                text: Foreign::value(&**text),
                number: None,
            })
            .collect(),
        Enum::Integers(numbers) => names
            .zip(numbers)
            .map(|((name, column), number)| Choice {
                name,
                column,
                text: Foreign::value(number.to_string()),
                number: Some(*number),
            })
            .collect(),
    }
}
