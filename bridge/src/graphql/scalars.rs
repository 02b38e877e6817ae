//! Turns the text of a scalar into a value, by the scalar's name unless the owner says otherwise.

#[cfg(test)]
mod tests;

use super::schema::{GraphqlSchema, ScalarForm, TypeKind};

/// The scalars every server has; they are not declared.
pub(super) const BUILT_IN: [&str; 5] = ["Int", "Float", "String", "Boolean", "ID"];

/// The form of a scalar of this name. Custom names are compared in lower case, without underscores.
pub fn form(name: &str) -> ScalarForm {
    match name {
        "Int" => return ScalarForm::Int,
        "Float" => return ScalarForm::Float,
        "String" => return ScalarForm::String,
        "Boolean" => return ScalarForm::Boolean,
        "ID" => return ScalarForm::Id,
        _ => {}
    }
    let plain = name.replace('_', "").to_ascii_lowercase();
    match plain.as_str() {
        "any" | "anyscalar" | "awsjson" | "dictionary" | "dynamic" | "map" | "mixed" | "object"
        | "rawjson" | "struct" | "unknown" => ScalarForm::CustomJson,
        text if text.starts_with("json") || text.ends_with("json") || text.ends_with("jsonobject") => {
            ScalarForm::CustomJson
        }
        "awstimestamp" | "byte" | "latitude" | "longitude" | "money" | "number" | "numeric" | "port"
        | "short" | "smallint" | "tinyint" => ScalarForm::CustomNumber,
        text if is_sized_number(text) => ScalarForm::CustomNumber,
        _ => ScalarForm::CustomString,
    }
}

/// `Int64`, `UInt8`, `float8`, `NonNegativeInt`, `UnsignedFloat`, and their like.
fn is_sized_number(plain: &str) -> bool {
    const QUALIFIERS: [&str; 9] =
        ["", "nonnegative", "nonpositive", "positive", "negative", "unsigned", "u", "big", "safe"];
    let stem = plain.trim_end_matches(|c: char| c.is_ascii_digit());
    QUALIFIERS
        .iter()
        .filter_map(|qualifier| stem.strip_prefix(qualifier))
        .any(|number| matches!(number, "int" | "integer" | "float" | "decimal" | "long" | "double"))
}

/// Sets the form of a custom scalar by the owner's word; `false` when the schema has none of that name.
///
/// The built-in scalars keep their form: their values are fixed by the GraphQL specification.
pub fn override_scalar(schema: &mut GraphqlSchema, name: &str, form: ScalarForm) -> bool {
    if BUILT_IN.contains(&name) {
        return false;
    }
    for ty in &mut schema.types {
        if let TypeKind::Scalar(scalar) = &mut ty.kind
            && ty.name == name
        {
            scalar.form = form;
            return true;
        }
    }
    false
}
