//! Operations for templates.

use farthing_bridge::description::BodyKind;
use minijinja::Value;
use serde::Serialize;

use super::{TypeRef, Writer, types::columns};
use crate::{
    Options,
    escape::Foreign,
    model::{self, AnswerKind, Body, Example, Kind, Pace, Type},
};

/// A default in documentation.
const DEFAULT_CHARS_MAX: usize = 60;

#[derive(Debug, Serialize)]
pub(crate) struct OperationContext {
    name: String,
    /// For a type that holds the parameters.
    params_type: String,
    id: Value,
    method: &'static str,
    path: Value,
    summary: Value,
    description: Value,
    deprecated: bool,
    price: Value,
    /// Required ones first.
    params: Vec<Param>,
    body: Option<BodyContext>,
    answer: AnswerContext,
    paging: Option<PagingContext>,
    /// Values that show a call; undefined when none can be told.
    example: Option<Vec<Argument>>,
}

#[derive(Debug, Serialize)]
struct Param {
    name: String,
    column: usize,
    wire: Value,
    /// True if `name` is its name outside as well.
    same: bool,
    doc: Value,
    required: bool,
    deprecated: bool,
    /// Its text is JSON even if the value is a text.
    json: bool,
    #[serde(rename = "type")]
    of: TypeRef,
    /// The value that the service takes when it is left out, as JSON; undefined when that is not known.
    default: Option<Value>,
}

#[derive(Debug, Serialize)]
struct BodyContext {
    /// `json`, `form`, `parts`, `text` or `any`.
    kind: &'static str,
    media_type: Value,
    required: bool,
    doc: Value,
    #[serde(rename = "type")]
    of: TypeRef,
}

#[derive(Debug, Serialize)]
struct AnswerContext {
    /// `nothing`, `json`, `text`, `bytes` or `mixed`.
    kind: &'static str,
    #[serde(rename = "type")]
    of: TypeRef,
    doc: Value,
}

#[derive(Debug, Serialize)]
struct PagingContext {
    /// `cursor`, `page` or `offset`.
    kind: &'static str,
    /// Of the function that gets all pages.
    name: String,
    /// Name of the parameter that chooses the page.
    param: String,
    param_wire: Value,
    param_type: TypeRef,
    param_required: bool,
    /// Name of the parameter that says how many items are wanted.
    limit: Option<String>,
    limit_wire: Option<Value>,
    limit_type: Option<TypeRef>,
    limit_required: bool,
    limit_default: Option<i64>,
    items: Vec<Step>,
    item: TypeRef,
    next: Vec<Step>,
    more: Vec<Step>,
    first: i64,
}

/// A member on the way to something in the answer.
#[derive(Debug, Serialize)]
pub(super) struct Step {
    pub name: String,
    pub wire: Value,
    /// It is optional or may be null.
    pub may_be_missing: bool,
}

/// A value with the name of what it is for.
#[derive(Debug, Serialize)]
pub(crate) struct Argument {
    /// Of the parameter, or of the member of a form.
    name: String,
    wire: Value,
    required: bool,
    /// `text`, `number`, `boolean`, `choice`, `list`, `bytes`, `upload` or `form`.
    kind: &'static str,
    /// The value as it is outside; of `bytes` and an `upload` the name of the file that holds them.
    text: Value,
    /// Digits; with a point when the type is no integer.
    number: String,
    boolean: bool,
    /// Type and member of the enum.
    choice_type: String,
    choice: String,
    /// The values of a `list`, the members of a `form`.
    holds: Vec<Argument>,
    #[serde(rename = "type")]
    of: TypeRef,
}

impl Writer<'_> {
    pub(crate) fn operation(&self, index: usize, options: &Options) -> OperationContext {
        let operation = &self.model.operations[index];
        let names = &self.named.parameters[index];
        let param = |((parameter, name), column): ((&model::Parameter, &String), usize)| Param {
            name: name.clone(),
            column,
            wire: Foreign::value(&*parameter.wire),
            same: parameter.wire == *name,
            doc: Foreign::value(&*parameter.doc),
            required: parameter.required,
            deprecated: parameter.deprecated,
            json: parameter.json,
            of: self.type_ref(&parameter.of, false),
            default: parameter
                .default
                .as_ref()
                .map(|default| Foreign::value(model::clip(&default.to_string(), DEFAULT_CHARS_MAX))),
        };
        let is_documented = |parameter: &model::Parameter| {
            !parameter.doc.is_empty() || parameter.default.is_some() || parameter.deprecated
        };
        let columns = columns(names, |at| operation.parameters.get(at).is_some_and(is_documented));
        let body = operation.body.as_ref().map(|body| BodyContext {
            kind: match body.kind {
                BodyKind::Json => "json",
                BodyKind::Form => "form",
                BodyKind::Text if body.has_parts() => "parts",
                BodyKind::Text => "text",
                BodyKind::Any => "any",
            },
            media_type: Foreign::value(&*body.media_type),
            required: body.required,
            doc: Foreign::value(&*body.doc),
            of: self.type_ref(&body.of, false),
        });
        let arguments = operation
            .example
            .as_ref()
            .map(|values| values.iter().map(|(at, value)| self.argument(index, *at, value)).collect());
        OperationContext {
            name: self.named.operations[index].clone(),
            params_type: self.named.parameter_types[index].clone(),
            id: Foreign::value(&*operation.id),
            method: operation.method.as_str(),
            path: Foreign::value(&*operation.path),
            summary: Foreign::value(&*operation.summary),
            description: Foreign::value(&*operation.description),
            deprecated: operation.deprecated,
            price: Foreign::value(options.prices.get(&operation.id).unwrap_or(&options.price).as_str()),
            params: operation.parameters.iter().zip(names).zip(columns).map(param).collect(),
            body,
            answer: self.answer(&operation.answer),
            paging: operation.paging.as_ref().map(|paging| self.paging(index, paging)),
            example: arguments,
        }
    }

    fn answer(&self, answer: &model::Answer) -> AnswerContext {
        AnswerContext {
            kind: match answer.kind {
                AnswerKind::Nothing => "nothing",
                AnswerKind::Json => "json",
                AnswerKind::Text => "text",
                AnswerKind::Bytes => "bytes",
                AnswerKind::Mixed => "mixed",
            },
            of: self.type_ref(&answer.of, false),
            doc: Foreign::value(&*answer.doc),
        }
    }

    fn paging(&self, index: usize, paging: &model::Paging) -> PagingContext {
        let operation = &self.model.operations[index];
        let names = &self.named.parameters[index];
        let of = |at: usize| self.type_ref(&operation.parameters[at].of, false);
        let wire = |at: usize| Foreign::value(&*operation.parameters[at].wire);
        let (kind, next, more, first) = match &paging.pace {
            Pace::Cursor { next, more } => {
                ("cursor", self.way(next), more.as_ref().map(|more| self.way(more)).unwrap_or_default(), 0)
            }
            Pace::Page { first } => ("page", Vec::new(), Vec::new(), *first),
            Pace::Offset { first } => ("offset", Vec::new(), Vec::new(), *first),
        };
        PagingContext {
            kind,
            name: self.named.pagers[index].clone(),
            param: names[paging.parameter].clone(),
            param_wire: wire(paging.parameter),
            param_type: of(paging.parameter),
            param_required: operation.parameters[paging.parameter].required,
            limit: paging.limit.map(|at| names[at].clone()),
            limit_wire: paging.limit.map(wire),
            limit_type: paging.limit.map(of),
            limit_required: paging.limit.is_some_and(|at| operation.parameters[at].required),
            limit_default: paging.limit_default,
            items: self.way(&paging.items),
            item: self.type_ref(&paging.item, false),
            next,
            more,
            first,
        }
    }

    /// A value for the parameter at `at` of an operation.
    pub(crate) fn argument(&self, index: usize, at: usize, value: &Example) -> Argument {
        let parameter = &self.model.operations[index].parameters[at];
        let name = &self.named.parameters[index][at];
        self.written((name, &parameter.wire, parameter.required), &parameter.of, value)
    }

    pub(crate) fn body_argument(&self, body: &Body, value: &Example) -> Argument {
        self.written(("body", "", body.required), &body.of, value)
    }

    /// A value of the type `of`, for what has this name, this one outside, and is required or not.
    fn written(&self, place: (&str, &str, bool), of: &Type, value: &Example) -> Argument {
        let (name, wire, required) = place;
        let mut argument = Argument {
            name: name.to_owned(),
            wire: Foreign::value(wire),
            required,
            kind: "text",
            text: Foreign::value(""),
            number: String::new(),
            boolean: false,
            choice_type: String::new(),
            choice: String::new(),
            holds: Vec::new(),
            of: self.type_ref(of, false),
        };
        match value {
            Example::Text(text) => argument.text = Foreign::value(&**text),
            Example::Number(number) => {
                argument.kind = "number";
                argument.text = Foreign::value(&**number);
                let is_whole = number.bytes().all(|b| b.is_ascii_digit() || b == b'-');
                let point = if *of == Type::Number && is_whole { ".0" } else { "" };
                argument.number = format!("{number}{point}");
            }
            Example::Boolean(flag) => {
                argument.kind = "boolean";
                argument.text = Foreign::value(flag.to_string());
                argument.boolean = *flag;
            }
            Example::Choice(choice) => {
                argument.kind = "choice";
                if let Type::Declared(of) = *of {
                    argument.choice_type.clone_from(&self.named.types[of]);
                    argument.choice.clone_from(&self.named.members[of][*choice]);
                    if let Kind::Enum(choices) = &self.model.types[of].kind {
                        argument.text = Foreign::value(choices.text(*choice));
                    }
                }
            }
            Example::List(items) => {
                argument.kind = "list";
                if let Type::Array(of) = of {
                    let item = |item| self.written((name, wire, true), of, item);
                    argument.holds = items.iter().map(item).collect();
                }
            }
            Example::File(file) => {
                argument.kind = if *of == Type::Upload { "upload" } else { "bytes" };
                argument.text = Foreign::value(&**file);
            }
            Example::Form(members) => {
                argument.kind = "form";
                argument.holds = members.iter().filter_map(|(at, value)| self.part(of, *at, value)).collect();
            }
        }
        argument
    }

    /// A value for the member at `at` of a form.
    fn part(&self, form: &Type, at: usize, value: &Example) -> Option<Argument> {
        let index = form.declared()?;
        let Kind::Parts(object) = &self.model.types.get(index)?.kind else { return None };
        let member = object.members.get(at)?;
        let name = self.named.members.get(index)?.get(at)?;
        Some(self.written((name, &member.wire, member.required), &member.of, value))
    }
}
