//! A compiled schema as SDL: the free `/schema.graphql` of a service.
//!
//! Types come in the schema's order, built-in scalars are left out. Reading the text again yields the same schema,
//! except for forms of scalars that the owner has overridden.

mod description;
mod value;

#[cfg(test)]
mod tests;

use std::fmt::Write;

use super::{
    scalars::BUILT_IN,
    schema::{Composite, Field, GraphqlSchema, Input, InputValue, Type, TypeId, TypeKind},
    sdl::{NO_REASON, strings::quoted},
};

pub fn sdl(schema: &GraphqlSchema) -> String {
    let mut printer = Printer {
        schema,
        implements: implements(schema),
        values: value::ValuePrinter::new(schema),
        out: String::new(),
    };
    printer.roots();
    for (index, ty) in schema.types.iter().enumerate() {
        let is_built_in = matches!(ty.kind, TypeKind::Scalar(_)) && BUILT_IN.contains(&ty.name.as_str());
        if !is_built_in {
            printer.ty(ty, index);
        }
    }
    printer.out
}

/// For each type, the names of the interfaces it implements.
fn implements(schema: &GraphqlSchema) -> Vec<Vec<&str>> {
    let mut implements = vec![Vec::new(); schema.types.len()];
    for ty in &schema.types {
        let TypeKind::Interface(interface) = &ty.kind else { continue };
        for TypeId(object) in &interface.implementors {
            let object = usize::try_from(*object).unwrap_or(usize::MAX);
            if let Some(names) = implements.get_mut(object) {
                names.push(ty.name.as_str());
            }
        }
    }
    implements
}

struct Printer<'a> {
    schema: &'a GraphqlSchema,
    implements: Vec<Vec<&'a str>>,
    values: value::ValuePrinter<'a>,
    out: String,
}

impl Printer<'_> {
    fn line(&mut self, text: &str) {
        self.out.push_str(text);
        self.out.push('\n');
    }

    /// Always written: a type that only happens to be called `Mutation` is then none.
    fn roots(&mut self) {
        self.line("schema {");
        for (keyword, root) in [("query", self.schema.query), ("mutation", self.schema.mutation)] {
            if let Some(ty) = root.and_then(|id| self.schema.get(id)) {
                self.line(&format!("  {keyword}: {}", ty.name));
            }
        }
        self.line("}");
    }

    fn ty(&mut self, ty: &Type, index: usize) {
        self.out.push('\n');
        description::write(&mut self.out, &ty.description, "");
        let name = &ty.name;
        match &ty.kind {
            TypeKind::Scalar(_) => self.line(&format!("scalar {name}")),
            TypeKind::Enum(values) => {
                self.open(&format!("enum {name}"), values.values.is_empty());
                for value in &values.values {
                    description::write(&mut self.out, &value.description, "  ");
                    let deprecated = deprecated(value.deprecated.as_deref());
                    self.line(&format!("  {}{deprecated}", value.name));
                }
                self.close(values.values.is_empty());
            }
            TypeKind::Object(composite) => {
                let implements =
                    self.implements.get(index).map(|names| names.join(" & ")).unwrap_or_default();
                let implements =
                    if implements.is_empty() { implements } else { format!(" implements {implements}") };
                self.composite(&format!("type {name}{implements}"), composite);
            }
            TypeKind::Interface(composite) => self.composite(&format!("interface {name}"), composite),
            TypeKind::Union(union) => {
                let names =
                    union.members.iter().filter_map(|id| self.schema.get(*id)).map(|ty| ty.name.as_str());
                let members = names.collect::<Vec<_>>().join(" | ");
                let members = if members.is_empty() { members } else { format!(" = {members}") };
                self.line(&format!("union {name}{members}"));
            }
            TypeKind::Input(input) => self.input(name, input),
        }
    }

    /// Empty braces are not SDL.
    fn open(&mut self, head: &str, is_empty: bool) {
        self.line(&if is_empty { head.to_owned() } else { format!("{head} {{") });
    }

    fn close(&mut self, is_empty: bool) {
        if !is_empty {
            self.line("}");
        }
    }

    fn composite(&mut self, head: &str, composite: &Composite) {
        self.open(head, composite.fields.is_empty());
        composite.fields.iter().for_each(|field| self.field(field));
        self.close(composite.fields.is_empty());
    }

    fn field(&mut self, field: &Field) {
        description::write(&mut self.out, &field.description, "  ");
        let _ = write!(self.out, "  {}", field.name);
        if field.args.iter().any(|argument| !argument.description.is_empty()) {
            self.line("(");
            for argument in &field.args {
                description::write(&mut self.out, &argument.description, "    ");
                let text = self.input_value(argument);
                self.line(&format!("    {text}"));
            }
            self.out.push_str("  )");
        } else if !field.args.is_empty() {
            let args: Vec<_> = field.args.iter().map(|argument| self.input_value(argument)).collect();
            let _ = write!(self.out, "({})", args.join(", "));
        }
        let (ty, deprecated) = (self.schema.type_text(&field.ty), deprecated(field.deprecated.as_deref()));
        self.line(&format!(": {ty}{deprecated}"));
    }

    fn input(&mut self, name: &str, input: &Input) {
        let one_of = if input.one_of { " @oneOf" } else { "" };
        self.open(&format!("input {name}{one_of}"), input.fields.is_empty());
        for field in &input.fields {
            description::write(&mut self.out, &field.description, "  ");
            let text = self.input_value(field);
            self.line(&format!("  {text}"));
        }
        self.close(input.fields.is_empty());
    }

    fn input_value(&self, input: &InputValue) -> String {
        let InputValue { name, ty, default, deprecated: reason, .. } = input;
        let mut text = format!("{name}: {}", self.schema.type_text(ty));
        if let Some(default) = default {
            text.push_str(" = ");
            self.values.write(&mut text, ty, default);
        }
        text.push_str(&deprecated(reason.as_deref()));
        text
    }
}

fn deprecated(reason: Option<&str>) -> String {
    match reason {
        None => String::new(),
        Some(NO_REASON) => " @deprecated".into(),
        Some(reason) => format!(" @deprecated(reason: {})", quoted(reason)),
    }
}
