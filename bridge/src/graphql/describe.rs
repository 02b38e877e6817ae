//! Every root field becomes an operation: queries `GET /<field>`, mutations `POST /<field>`.
//!
//! Fields are taken in the schema's order, queries first. Arguments become parameters, those of mutations a JSON
//! body ([`inputs`]); the answer has the shape of the default selection ([`outputs`]); `fields` lets the caller
//! choose another. What cannot be offered is in the report, with the reason.

mod inputs;
mod outputs;
#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet};

use self::{inputs::InputSchemas, outputs::output};
use super::{
    fields,
    plan::{self, FIRST_DEFAULT},
    schema::{Composite, Field, GraphqlSchema, InputValue, TypeId, TypeKind, TypeRef, Union},
    selection::is_selectable,
    worst::{Worst, worst},
};
use crate::{
    description::{
        ApiDescription, ArrayOf, Body, BodyKind, Content, Method, Operation, Parameter, Response, RootField,
        RootKind, Schema, Shape, Status,
    },
    limits::{DESCRIPTION_STEPS_MAX, LISTS_DEPTH_MAX, OPERATIONS_MAX, TYPE_FIELDS_VISITED_MAX},
    report::Report,
    share::share,
    steps::Steps,
};

/// Choices that `fields` lists; with more, only those of the result itself.
const FIELD_CHOICES_MAX: usize = 200;
/// Characters of a summary.
const SUMMARY_LENGTH_MAX: usize = 120;

/// Root fields that are the machinery of federation, not the service's.
const MACHINERY: [&str; 2] = ["_service", "_entities"];

/// Describes what can be called, and reports why the rest cannot.
pub fn describe(mut schema: GraphqlSchema, title: &str, report: &mut Report) -> ApiDescription {
    leave_out_roots(&mut schema);
    describe_within(schema, title, report, Steps::new(DESCRIPTION_STEPS_MAX))
}

fn describe_within(schema: GraphqlSchema, title: &str, report: &mut Report, steps: Steps) -> ApiDescription {
    let mut description = ApiDescription { title: title.to_owned(), ..ApiDescription::default() };
    let inputs = InputSchemas::new(&schema);
    let mut describer =
        Describer { schema: &schema, inputs, ids: HashSet::new(), results: HashMap::new(), steps };
    for kind in [RootKind::Query, RootKind::Mutation] {
        let fields = schema.root(kind).and_then(|id| schema.fields(id)).unwrap_or_default();
        for (index, field) in fields.iter().enumerate() {
            let place = format!("{} {}", kind.keyword(), field.name);
            if description.operations.len() == OPERATIONS_MAX {
                report.skipped.add(place, format!("a service has at most {OPERATIONS_MAX} operations"));
                continue;
            }
            match describer.operation(kind, index, field) {
                Ok((operation, worst)) => {
                    if let Some(worst) = worst {
                        report.warnings.add(place, worst.to_string());
                    }
                    description.operations.push(operation);
                }
                Err(reason) => report.skipped.add(place, reason),
            }
        }
    }
    description.schemas = describer.inputs.schemas;
    if description.operations.is_empty() {
        report.warnings.add("the schema", "it has no query or mutation that can be called");
    }
    share(&mut description);
    report.bridged = description.operations.len();
    description.graphql = Some(schema);
    description
}

/// Takes the root types out of interfaces and unions: what is asked of them are operations of their own, each with its
/// price.
fn leave_out_roots(schema: &mut GraphqlSchema) {
    let roots = [schema.query, schema.mutation];
    for ty in &mut schema.types {
        if let TypeKind::Interface(Composite { implementors: members, .. })
        | TypeKind::Union(Union { members }) = &mut ty.kind
        {
            members.retain(|member| !roots.contains(&Some(*member)));
        }
    }
}

struct Describer<'s> {
    schema: &'s GraphqlSchema,
    inputs: InputSchemas<'s>,
    ids: HashSet<String>,
    /// By result, and the lists it is in: many operations have the same.
    results: HashMap<(TypeId, u8), ResultFields>,
    steps: Steps,
}

/// The fields that a caller may ask of a result.
#[derive(Clone)]
struct ResultFields {
    /// As [`Describer::field_choices`] tells them.
    choices: Vec<String>,
    worst: Option<Worst>,
}

impl Describer<'_> {
    /// Describes the root field at `place` among those of its kind, with the worst query of it.
    fn operation(
        &mut self,
        kind: RootKind,
        place: usize,
        field: &Field,
    ) -> Result<(Operation, Option<Worst>), String> {
        if field.name.starts_with("__") || MACHINERY.contains(&field.name.as_str()) {
            return Err("it belongs to GraphQL or federation, not to the service".into());
        }
        let root = RootField::new(kind, field.name.clone());
        let planned = plan::OperationPlan::new(self.schema, &root, Some(place))?;
        let mut operation = Operation {
            method: if kind == RootKind::Query { Method::Get } else { Method::Post },
            path: format!("/{}", field.name),
            id: self.id(&field.name, kind),
            summary: summary(&field.description),
            description: described(&field.description, field.deprecated.as_deref()),
            deprecated: field.deprecated.is_some(),
            responses: vec![self.response(field, &planned)],
            root: Some(root),
            ..Operation::default()
        };
        match kind {
            RootKind::Query => {
                let parameters = field.args.iter().enumerate();
                operation.parameters = parameters
                    .map(|(index, arg)| self.parameter(arg, planned.first == Some(index)))
                    .collect();
            }
            RootKind::Mutation => operation.body = self.body(field),
        }
        let result = self.result(&field.ty);
        operation.parameters.extend(planned.fields.map(|name| fields_parameter(name, result.choices)));
        if self.steps.are_spent() {
            return Err("the schema is too large to follow all its fields; offer a part of it".into());
        }
        Ok((operation, result.worst))
    }

    /// The field's name; a mutation that is named like a query says so.
    fn id(&mut self, name: &str, kind: RootKind) -> String {
        let mut id = name.to_owned();
        while !self.ids.insert(id.clone()) {
            id.push_str(if kind == RootKind::Mutation { "Mutation" } else { "Query" });
        }
        id
    }

    fn parameter(&mut self, arg: &InputValue, is_first: bool) -> Parameter {
        let mut schema = self.inputs.as_text(&arg.ty);
        schema.default = arg.default.clone().filter(|default| !default.is_null());
        if is_first {
            schema.default = Some(FIRST_DEFAULT.into());
        }
        Parameter {
            name: arg.name.clone(),
            style: self.inputs.style(&arg.ty),
            required: arg.is_required() && !is_first,
            schema,
            description: described(&arg.description, arg.deprecated.as_deref()),
            deprecated: arg.deprecated.is_some(),
            ..Parameter::default()
        }
    }

    fn body(&mut self, field: &Field) -> Option<Body> {
        let arguments = self.inputs.object(&field.args, false);
        (!field.args.is_empty()).then(|| Body {
            kind: BodyKind::Json,
            media_type: "application/json".into(),
            required: field.args.iter().any(InputValue::is_required),
            schema: Schema::of(Shape::Object(arguments)),
            ..Body::default()
        })
    }

    fn response(&mut self, field: &Field, planned: &plan::OperationPlan) -> Response {
        let selection = planned.default_selection(self.schema, field, &mut self.steps);
        let schema = output(self.schema, &mut self.inputs, &field.ty, selection.as_ref());
        let content = Content { media_type: "application/json".into(), schema, ..Content::default() };
        Response {
            status: Status::Code(200),
            description: format!("The value of `{}`.", field.name),
            content: Some(content),
        }
    }

    fn result(&mut self, ty: &TypeRef) -> ResultFields {
        let key = (ty.named(), ty.lists());
        if let Some(known) = self.results.get(&key) {
            return known.clone();
        }
        let choices = self.field_choices(ty);
        let worst = worst(self.schema, ty, LISTS_DEPTH_MAX, &mut self.steps);
        let result = ResultFields { choices, worst };
        self.results.insert(key, result.clone());
        result
    }

    /// `*` and the names that mean something by themselves, and those one level deeper while they are few.
    fn field_choices(&mut self, result: &TypeRef) -> Vec<String> {
        let (schema, steps) = (self.schema, &mut self.steps);
        let looked_at = |on| schema.fields(on).unwrap_or_default().iter().take(TYPE_FIELDS_VISITED_MAX);
        let usable = |field: &&Field| field.deprecated.is_none() && is_selectable(schema, field);
        let usable_of = |on| looked_at(on).filter(usable).take(FIELD_CHOICES_MAX);
        let own = || usable_of(result.named());
        steps.take(own().map(|field| looked_at(field.ty.named()).len()).sum());
        let mut is_accepted =
            |text: &String| fields::select(schema, result, LISTS_DEPTH_MAX, text, steps).is_ok();
        let names = ["*".to_owned()].into_iter().chain(own().map(|field| field.name.clone()));
        let mut choices: Vec<String> = names.filter(&mut is_accepted).collect();
        let deeper = own().flat_map(|field| {
            usable_of(field.ty.named()).map(move |below| format!("{}.{}", field.name, below.name))
        });
        let deeper: Vec<String> = deeper.take(FIELD_CHOICES_MAX).filter(is_accepted).collect();
        if choices.len() + deeper.len() < FIELD_CHOICES_MAX {
            choices.extend(deeper);
        }
        choices
    }
}

/// The parameter with the caller's own selection. Its choices are those that are accepted as they are; what can be put
/// together from them is told in words.
fn fields_parameter(name: &str, choices: Vec<String>) -> Parameter {
    let plain = choices.iter().filter(|choice| !choice.contains(['*', '.'])).take(2);
    let example = plain.map(|choice| choice.as_str().into()).collect::<Vec<serde_json::Value>>();
    let items = Schema { choices: choices.into_iter().map(Into::into).collect(), ..Schema::string() };
    let array = ArrayOf { items, items_min: Some(1), items_max: None };
    Parameter {
        name: name.to_owned(),
        schema: Schema::of(Shape::Array(Box::new(array))),
        description: "The fields of the answer instead of the usual ones, separated by commas: `name`, \
                      `host.name`, `host(name,mass)`; `*` stands for all plain values of an object. Fewer \
                      fields make a smaller request."
            .into(),
        example: (!example.is_empty()).then_some(example.into()),
        ..Parameter::default()
    }
}

/// The first line, as plain text.
fn summary(description: &str) -> String {
    let line = description.trim().lines().next().unwrap_or_default();
    line.chars()
        .filter(|c| !c.is_control())
        .take(SUMMARY_LENGTH_MAX)
        .collect::<String>()
        .trim_end()
        .to_owned()
}

/// A description with the reason of a deprecation.
fn described(description: &str, deprecated: Option<&str>) -> String {
    match deprecated {
        None => description.to_owned(),
        Some(reason) if description.is_empty() => format!("Deprecated: {reason}"),
        Some(reason) => format!("{description}\n\nDeprecated: {reason}"),
    }
}
