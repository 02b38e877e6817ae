//! A language's names for everything in a model, given once and in the model's order.

use super::super::{
    model::{Declared, Enum, Kind, Model},
    names::Scope,
    profile::{Case, Names, Profile},
};

/// Names by index.
#[derive(Debug)]
pub(crate) struct NameTable {
    pub types: Vec<String>,
    /// Members of objects, enums and unions by type.
    pub members: Vec<Vec<String>>,
    pub operations: Vec<String>,
    /// Functions that get all pages of an operation.
    pub pagers: Vec<String>,
    /// A type for the parameters of an operation, where the language has no optional ones.
    pub parameter_types: Vec<String>,
    pub parameters: Vec<Vec<String>>,
}

impl NameTable {
    pub(crate) fn new(model: &Model, profile: &'static Profile, warnings: &mut Vec<String>) -> Self {
        let names = &profile.names;
        let mut types = scope(names, names.types, &names.taken_types);
        let type_names: Vec<String> = model
            .types
            .iter()
            .map(|declared| types.name(&declared.hint, "model", "type", warnings))
            .collect();
        let declared = model.types.iter().zip(&type_names);
        let members = declared.map(|(declared, name)| members(declared, name, names, warnings)).collect();
        let mut operations = scope(names, names.operations, &names.taken_operations);
        let operation_names: Vec<String> = model
            .operations
            .iter()
            .map(|op| operations.name(&op.id, "operation", "operation", warnings))
            .collect();
        let mut unheard = Vec::new();
        let pager = |id: &str| operations.name(&format!("iterate {id}"), "iterate", "", &mut unheard);
        let pagers = model.operations.iter().map(|op| op.id.as_str()).map(pager).collect();
        let mut unheard_types = Vec::new();
        let parameter_type = |id: &str| types.name(&format!("{id} params"), "params", "", &mut unheard_types);
        let parameter_types = model.operations.iter().map(|op| op.id.as_str()).map(parameter_type).collect();
        let parameters = model.operations.iter().zip(&operation_names).map(|(operation, name)| {
            let mut scope = scope(names, names.parameters, &names.taken_parameters);
            let what = format!("the parameter of {name}");
            let wire = operation.parameters.iter().map(|parameter| &parameter.wire);
            let warnings = if names.keeps_wire_names { &mut unheard } else { &mut *warnings };
            wire.map(|wire| scope.name(wire, "parameter", &what, warnings)).collect()
        });
        let parameters = parameters.collect();
        Self { types: type_names, members, operations: operation_names, pagers, parameter_types, parameters }
    }
}

/// A scope of names without the language's own and those that templates take.
fn scope(names: &Names, case: Case, taken: &str) -> Scope {
    Scope::new(case, names.ignores_case, &[names.keywords.as_str(), taken])
}

/// The names of what the type `name` is made of: members of an object, values of an enum, variants of a union.
fn members(declared: &Declared, name: &str, names: &Names, warnings: &mut Vec<String>) -> Vec<String> {
    let of = |what: &str| format!("{what} of {name}");
    // Of names that code does not show nobody hears.
    let mut unheard = Vec::new();
    let heard = if names.keeps_wire_names { &mut unheard } else { &mut *warnings };
    match &declared.kind {
        Kind::Object(object) | Kind::Parts(object) => {
            let mut scope = scope(names, names.members, &names.taken_members);
            let wire = object.members.iter().map(|member| &member.wire);
            wire.map(|wire| scope.name(wire, "member", &of("the member"), heard)).collect()
        }
        Kind::Enum(Enum::Texts(texts)) => {
            let mut scope = scope(names, names.choices, &names.taken_choices);
            // The text that is empty has a name as well.
            let texts = texts.iter().map(|text| if text.is_empty() { "empty" } else { text });
            texts.map(|text| scope.name(text, "value", &of("the value"), heard)).collect()
        }
        Kind::Enum(Enum::Integers(numbers)) => {
            let mut scope = scope(names, names.choices, &names.taken_choices);
            let name = |number: &i64| {
                let sign = if *number < 0 { " minus" } else { "" };
                format!("value{sign} {}", number.unsigned_abs())
            };
            numbers.iter().map(|n| scope.name(&name(n), "value", &of("the value"), warnings)).collect()
        }
        Kind::Union(union) => {
            let mut scope = scope(names, names.variants, "");
            let hints = union.variants.iter().map(|variant| &variant.hint);
            hints.map(|hint| scope.name(hint, "variant", &of("the variant"), &mut unheard)).collect()
        }
    }
}
