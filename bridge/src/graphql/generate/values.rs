//! Made-up values and selections that the schema allows.

use super::random::Random;
use crate::graphql::{
    coerce::quote,
    schema::{GraphqlSchema, Input, InputValue, ScalarForm, TypeKind, TypeRef},
    selection::{is_composite, is_selectable, possible_types},
};

/// Levels of made-up values; required values below that do not end.
const DEPTH_MAX: usize = 6;
/// Levels of a made-up `fields`.
const FIELDS_DEPTH_MAX: usize = 3;

/// Texts that upset whatever puts them together carelessly.
const TEXTS: [&str; 8] =
    ["Transit", "", "null", "\"}{", "){__schema{types{name}}}#", "Öß\u{1F680}", "a\nb\\", "$limit"];
const INTS: [&str; 4] = ["0", "5", "-1", "2147483647"];
const FLOATS: [&str; 4] = ["0", "1.5", "-2e3", "0.1"];
const DIGITS: [&str; 3] = ["1", "12345678901234567890", "0.10"];
const JSONS: [&str; 4] = ["{\"a\":[1,null]}", "[]", "\"text\"", "7"];

pub(super) struct ValueGenerator<'s, 'r> {
    pub schema: &'s GraphqlSchema,
    pub random: &'r mut Random,
}

impl ValueGenerator<'_, '_> {
    /// A value as JSON; `None` when required values have no end.
    pub fn json(&mut self, ty: &TypeRef, depth: usize) -> Option<String> {
        if !ty.is_non_null() && (depth >= DEPTH_MAX / 2 || self.random.chance(10)) {
            return Some("null".into());
        }
        if depth > DEPTH_MAX {
            return None;
        }
        if let TypeRef::List(item) = ty.nullable() {
            let count = self.random.below(3);
            let items: Option<Vec<_>> = (0..count).map(|_| self.json(item, depth + 1)).collect();
            return Some(format!("[{}]", items?.join(",")));
        }
        let schema = self.schema;
        match &schema.get(ty.named())?.kind {
            TypeKind::Input(input) => self.object(input, depth),
            kind => {
                let (text, is_quoted) = self.leaf(kind);
                let mut json = String::new();
                if is_quoted {
                    quote(&text, &mut json);
                } else {
                    json.push_str(&text);
                }
                Some(json)
            }
        }
    }

    pub fn text(&mut self, ty: &TypeRef) -> Option<String> {
        let schema = self.schema;
        match ty.nullable() {
            TypeRef::List(_) => self.json(ty, 0),
            inner => match &schema.get(inner.named())?.kind {
                TypeKind::Input(_) => self.json(ty, 0),
                kind => Some(self.leaf(kind).0).filter(|text| text != "null").or_else(|| Some("x".into())),
            },
        }
    }

    /// An input object member by member: dotted names and texts. `None` for other values, and sometimes.
    pub fn dotted(&mut self, ty: &TypeRef) -> Option<Vec<(String, String)>> {
        let TypeRef::Named(id) = ty.nullable() else { return None };
        let schema = self.schema;
        let TypeKind::Input(input) = &schema.get(*id)?.kind else { return None };
        if self.random.chance(2) {
            return None;
        }
        let mut members = Vec::new();
        for field in self.chosen(input) {
            // A null would be refused by `@oneOf`, and a text that is null by others.
            let text = self.text(&TypeRef::NonNull(Box::new(field.ty.nullable().clone())))?;
            members.push((field.name.clone(), text));
        }
        (!members.is_empty()).then_some(members)
    }

    fn object(&mut self, input: &Input, depth: usize) -> Option<String> {
        let mut members = Vec::new();
        for field in self.chosen(input) {
            let ty = TypeRef::NonNull(Box::new(field.ty.nullable().clone()));
            let json = self.json(if input.one_of { &ty } else { &field.ty }, depth + 1)?;
            members.push(format!("\"{}\":{json}", field.name));
        }
        Some(format!("{{{}}}", members.join(",")))
    }

    /// The fields that get a value: one of `@oneOf`, else the required and some others.
    fn chosen<'i>(&mut self, input: &'i Input) -> Vec<&'i InputValue> {
        if input.one_of {
            return self.random.pick(&input.fields).into_iter().collect();
        }
        input.fields.iter().filter(|field| field.is_required() || self.random.chance(3)).collect()
    }

    /// A scalar or enum value as text, and whether JSON has it in quotes.
    fn leaf(&mut self, kind: &TypeKind) -> (String, bool) {
        let (texts, is_quoted): (&[&str], bool) = match kind {
            TypeKind::Enum(choices) => {
                let choice = self.random.pick(&choices.values).map(|value| value.name.clone());
                return (choice.unwrap_or_default(), true);
            }
            TypeKind::Scalar(scalar) => match scalar.form {
                ScalarForm::Int => (&INTS, false),
                ScalarForm::Float => (&FLOATS, false),
                ScalarForm::Boolean => (&["true", "false"], false),
                ScalarForm::String | ScalarForm::Id | ScalarForm::CustomString => (&TEXTS, true),
                ScalarForm::CustomJson => (&JSONS, false),
                ScalarForm::CustomNumber => (&DIGITS, false),
            },
            _ => (&[], true),
        };
        ((*self.random.pick(texts).unwrap_or(&"")).to_owned(), is_quoted)
    }

    /// A text for `fields`; `None` when the result has nothing to choose.
    pub fn fields(&mut self, ty: &TypeRef) -> Option<String> {
        let names = self.names(ty, 1);
        (!names.is_empty()).then(|| names.join(","))
    }

    fn names(&mut self, ty: &TypeRef, depth: usize) -> Vec<String> {
        let schema = self.schema;
        let on = ty.named();
        let own = schema.fields(on).unwrap_or_default();
        let members = possible_types(schema, on).unwrap_or_default();
        let of_members = members.iter().take(5).flat_map(|member| schema.fields(*member).unwrap_or_default());
        let fields: Vec<_> =
            own.iter().chain(of_members).filter(|field| is_selectable(schema, field)).collect();
        let mut names = Vec::new();
        for _ in 0..=self.random.below(4) {
            let Some(field) = self.random.pick(&fields) else { break };
            let is_leaf = !is_composite(schema, field.ty.named());
            let below = if is_leaf || depth >= FIELDS_DEPTH_MAX {
                Vec::new()
            } else {
                self.names(&field.ty, depth + 1)
            };
            names.push(match &below[..] {
                [] => field.name.clone(),
                [one] if self.random.chance(2) => format!("{}.{one}", field.name),
                below => format!("{}({})", field.name, below.join(",")),
            });
        }
        if self.random.chance(4) {
            names.push("*".into());
        }
        if self.random.chance(8) {
            names.push("__typename".into());
        }
        names
    }
}
