//! Values for templates: the model with a language's names and types, strangers' texts behind their lock.
//!
//! Names, types and digits are safe to print. Everything typed [`Value`] here is a stranger's text ([`Foreign`]) and
//! needs a filter. `bridge/sdk/templates/README.md` describes every field for those who write templates.

pub(super) mod named;
mod operations;
mod types;

use std::collections::BTreeSet;

use minijinja::{Value, value::Serde};
use serde::Serialize;

use self::{named::NameTable, operations::OperationContext, types::DeclaredContext};
use super::{
    Options,
    escape::Foreign,
    model::{self, Body, Model, Type, Width},
    package::Package,
    profile::Profile,
};

/// The type of a file among the parts of a form, in every language.
const UPLOAD: &str = "Upload";

#[derive(Debug, Serialize)]
struct Context<'a> {
    /// Of the generator.
    version: &'static str,
    service: Service,
    package: &'a Package,
    base_url: Value,
    single_file: bool,
    types: Vec<DeclaredContext>,
    operations: Vec<OperationContext>,
    /// An operation that can be shown in use: its `example` holds the values.
    example: Option<OperationContext>,
    /// Parameters that choose the fields of a GraphQL answer.
    selections: Vec<Value>,
    has_paging: bool,
    /// True if an operation takes a form with files.
    has_parts: bool,
}

/// The service as strangers describe it.
#[derive(Debug, Serialize)]
struct Service {
    id: Value,
    name: Value,
    title: Value,
    version: Value,
    description: Value,
    price: Value,
}

/// A type in the language.
#[derive(Debug, Clone, Serialize)]
struct TypeRef {
    /// `any`, `boolean`, `integer`, `number`, `text`, `bytes`, `upload`, `array`, `map`, `object`, `parts`, `enum` or
    /// `union`.
    kind: &'static str,
    /// Of an integer: `i32`, `i53`, `i64` or `u64`.
    width: Option<&'static str>,
    nullable: bool,
    /// As it is written.
    text: String,
    /// Without null.
    bare: String,
    /// With null.
    or_null: String,
    /// Without null, as it is written inside of lists and maps.
    boxed: String,
    /// Name of a declared type.
    name: Option<String>,
    /// Of an enum: `text` or `integer`.
    enum_of: Option<&'static str>,
    /// The type that a list or map holds.
    of: Option<Box<TypeRef>>,
}

/// Everything the templates of a language get for this service.
pub(super) fn context(
    model: &Model,
    profile: &'static Profile,
    package: &Package,
    options: &Options,
    warnings: &mut Vec<String>,
) -> Value {
    let named = NameTable::new(model, profile, warnings);
    let writer = Writer::new(model, profile, &named);
    let operations: Vec<OperationContext> =
        (0..model.operations.len()).map(|index| writer.operation(index, options)).collect();
    let shown = shown_operation(model);
    let parameters = model.operations.iter().flat_map(|operation| &operation.parameters);
    let selections: BTreeSet<&str> =
        parameters.filter(|parameter| parameter.selection).map(|parameter| &*parameter.wire).collect();
    let name = if options.service_name.is_empty() { &model.title } else { &options.service_name };
    let context = Context {
        version: env!("CARGO_PKG_VERSION"),
        service: Service {
            id: Foreign::value(&*options.service_id),
            name: Foreign::value(&**name),
            title: Foreign::value(&*model.title),
            version: Foreign::value(&*model.version),
            description: Foreign::value(model::clip(&model.description, 600)),
            price: Foreign::value(&*options.price),
        },
        package,
        base_url: Foreign::value(&*options.base_url),
        single_file: options.single_file,
        types: (0..model.types.len()).map(|index| writer.declared(index)).collect(),
        example: shown.map(|index| writer.operation(index, options)),
        selections: selections.into_iter().map(Foreign::value).collect(),
        has_paging: model.operations.iter().any(|operation| operation.paging.is_some()),
        has_parts: model
            .operations
            .iter()
            .filter_map(|operation| operation.body.as_ref())
            .any(Body::has_parts),
        operations,
    };
    Value::from(Serde(&context))
}

/// The operation to show first: one that asks for something, with values, rather than one that takes none.
fn shown_operation(model: &Model) -> Option<usize> {
    let rank = |operation: &model::Operation| {
        let values = operation.example.as_ref()?;
        let is_list = operation.paging.is_some() || matches!(operation.answer.of.bare(), Type::Array(_));
        let is_read = operation.method == farthing_bridge::description::Method::Get;
        Some((!operation.deprecated, is_read, !values.is_empty(), is_list))
    };
    let ranked =
        model.operations.iter().enumerate().filter_map(|(index, operation)| Some((rank(operation)?, index)));
    // The first of the best.
    ranked.min_by_key(|(rank, index)| (std::cmp::Reverse(*rank), *index)).map(|(_, index)| index)
}

/// Writes the model in a language.
pub(super) struct Writer<'a> {
    model: &'a Model,
    profile: &'static Profile,
    named: &'a NameTable,
}

impl<'a> Writer<'a> {
    pub(super) const fn new(model: &'a Model, profile: &'static Profile, named: &'a NameTable) -> Self {
        Self { model, profile, named }
    }

    /// A type where it is used. `held`: in a declared type, where one that holds itself needs its box.
    fn type_ref(&self, of: &Type, held: bool) -> TypeRef {
        let bare = of.bare();
        let width = match bare {
            Type::Integer(width) => Some(match width {
                Width::I32 => "i32",
                Width::I53 => "i53",
                Width::I64 => "i64",
                Width::U64 => "u64",
            }),
            _ => None,
        };
        let name = match bare {
            Type::Declared(index) => self.named.types.get(*index).cloned(),
            _ => None,
        };
        let inner = match bare {
            Type::Array(of) | Type::Map(of) => Some(Box::new(self.type_ref(of, false))),
            _ => None,
        };
        let kind = match bare {
            Type::Any | Type::Nullable(_) => "any",
            Type::Boolean => "boolean",
            Type::Integer(_) => "integer",
            Type::Number => "number",
            Type::Text => "text",
            Type::Bytes => "bytes",
            Type::Upload => "upload",
            Type::Array(_) => "array",
            Type::Map(_) => "map",
            Type::Declared(index) => match self.model.types.get(*index).map(|declared| &declared.kind) {
                Some(model::Kind::Enum(_)) => "enum",
                Some(model::Kind::Union(_)) => "union",
                Some(model::Kind::Parts(_)) => "parts",
                _ => "object",
            },
        };
        let enum_of = match bare {
            Type::Declared(index) => match self.model.types.get(*index).map(|declared| &declared.kind) {
                Some(model::Kind::Enum(model::Enum::Texts(_))) => Some("text"),
                Some(model::Kind::Enum(model::Enum::Integers(_))) => Some("integer"),
                _ => None,
            },
            _ => None,
        };
        TypeRef {
            enum_of,
            kind,
            width,
            nullable: matches!(of, Type::Nullable(_)),
            text: self.text(of, held, false),
            bare: self.text(bare, held, false),
            or_null: self.text(&bare.clone().or_null(), held, false),
            boxed: self.text(bare, held, true),
            name,
            of: inner,
        }
    }

    /// The type as the language writes it; `inside` of another one some differ.
    fn text(&self, of: &Type, held: bool, inside: bool) -> String {
        let types = &self.profile.types;
        let around = |pattern: &str, of: &Type, held| pattern.replace("{}", &self.text(of, held, true));
        let text = match of {
            Type::Any => types.any.clone(),
            Type::Boolean => types.boolean.clone(),
            Type::Integer(Width::I32) => types.int32.clone(),
            Type::Integer(Width::I53) => types.int53.clone(),
            Type::Integer(Width::I64) => types.int64.clone(),
            Type::Integer(Width::U64) => types.uint64.clone(),
            Type::Number => types.number.clone(),
            Type::Text => types.text.clone(),
            Type::Bytes => types.bytes.clone(),
            Type::Upload => UPLOAD.to_owned(),
            Type::Array(of) => around(&types.array, of, false),
            Type::Map(of) => around(&types.map, of, false),
            Type::Nullable(of) => around(&types.nullable, of, held),
            Type::Declared(index) => {
                let recursive =
                    held && self.model.types.get(*index).is_some_and(|declared| declared.recursive);
                let name = self.named.types.get(*index).map_or("", String::as_str);
                if recursive { &types.recursive } else { &types.named }.replace("{}", name)
            }
        };
        if !inside {
            return text;
        }
        types.boxed.get(&text).cloned().unwrap_or(text)
    }

    /// Names of members on a way, and what they are called outside.
    fn way(&self, way: &[(usize, usize)]) -> Vec<operations::Step> {
        let step = |(index, at): &(usize, usize)| {
            let name = self.named.members.get(*index)?.get(*at)?.clone();
            let model::Kind::Object(object) = &self.model.types.get(*index)?.kind else { return None };
            let member = object.members.get(*at)?;
            let may_be_missing = !member.required || matches!(member.of, Type::Nullable(_));
            Some(operations::Step { name, wire: Foreign::value(&*member.wire), may_be_missing })
        };
        way.iter().filter_map(step).collect()
    }
}
