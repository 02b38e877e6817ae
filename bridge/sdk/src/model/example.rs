//! Values for an example call: those of the description where code can write them as literals.

use farthing_bridge::description;
use serde_json::Value;

use super::{Declared, Enum, Example, Kind, Operation, Parameter, Type};

/// Optional parameters shown.
const OPTIONAL_MAX: usize = 2;
const TEXT_CHARS_MAX: usize = 60;

/// Values of the required parameters and a few others; `None` when a required one has none, or a body is needed.
pub(super) fn find(
    operation: &Operation,
    described: &description::Operation,
    types: &[Declared],
) -> Option<Vec<(usize, Example)>> {
    if operation.body.as_ref().is_some_and(|body| body.required) {
        return None;
    }
    let mut values = Vec::new();
    let mut optional = 0;
    for (index, parameter) in operation.parameters.iter().enumerate() {
        let schema = described.parameters.iter().find(|other| other.name == parameter.wire);
        let given = schema.and_then(|other| other.example.as_ref().or(other.schema.example.as_ref()));
        let given = given.filter(|_| !parameter.json).and_then(|given| value(given, &parameter.of, types));
        if parameter.required {
            let value = given.or_else(|| made_up(parameter, types));
            values.push((index, value?));
        } else if let Some(value) = given
            && optional < OPTIONAL_MAX
            && !parameter.deprecated
            && !is_only_choice(parameter, types)
        {
            optional += 1;
            values.push((index, value));
        }
    }
    Some(values)
}

/// Returns whether there is nothing to choose.
fn is_only_choice(parameter: &Parameter, types: &[Declared]) -> bool {
    let declared = parameter.of.declared().and_then(|index| types.get(index));
    match declared.map(|declared| &declared.kind) {
        Some(Kind::Enum(Enum::Texts(texts))) => texts.len() == 1,
        Some(Kind::Enum(Enum::Integers(numbers))) => numbers.len() == 1,
        _ => false,
    }
}

/// A given value as a literal of this type.
pub(crate) fn value(given: &Value, of: &Type, types: &[Declared]) -> Option<Example> {
    match (of, given) {
        (Type::Text, Value::String(text)) if text.chars().count() <= TEXT_CHARS_MAX => {
            Some(Example::Text(text.clone()))
        }
        (Type::Integer(_), Value::Number(number)) if number.is_i64() || number.is_u64() => {
            Some(Example::Number(number.to_string()))
        }
        (Type::Number, Value::Number(number)) => Some(Example::Number(number.to_string())),
        (Type::Boolean, Value::Bool(flag)) => Some(Example::Boolean(*flag)),
        (Type::Declared(index), given) => {
            let Kind::Enum(choices) = &types.get(*index)?.kind else { return None };
            let at = match choices {
                Enum::Texts(texts) => texts.iter().position(|text| given.as_str() == Some(text)),
                Enum::Integers(numbers) => numbers.iter().position(|number| given.as_i64() == Some(*number)),
            };
            at.map(Example::Choice)
        }
        _ => None,
    }
}

fn made_up(parameter: &Parameter, types: &[Declared]) -> Option<Example> {
    if parameter.json {
        return None;
    }
    match &parameter.of {
        Type::Text => Some(Example::Text(parameter.wire.clone())),
        Type::Integer(_) | Type::Number => Some(Example::Number("1".to_owned())),
        Type::Boolean => Some(Example::Boolean(true)),
        Type::Declared(index) => {
            matches!(types.get(*index)?.kind, Kind::Enum(_)).then_some(Example::Choice(0))
        }
        _ => None,
    }
}
