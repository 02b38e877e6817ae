//! How the text of a scalar becomes a value: told by the scalar's name, unless the owner says otherwise.

use super::schema::{ScalarForm, Schema, TypeKind};

/// The scalars every server has; they are not declared.
pub(super) const BUILT_IN: [&str; 5] = ["Int", "Float", "String", "Boolean", "ID"];

/// The form of a scalar of this name. Custom names are compared in lower case, without underscores.
#[must_use]
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
        "awstimestamp" | "bigdecimal" | "bigfloat" | "bigint" | "biginteger" | "byte" | "decimal"
        | "double" | "float32" | "float64" | "latitude" | "long" | "longitude" | "money" | "number"
        | "numeric" | "port" | "safeint" | "short" | "smallint" | "tinyint" | "uint" => {
            ScalarForm::CustomNumber
        }
        text if is_sized_number(text) => ScalarForm::CustomNumber,
        _ => ScalarForm::CustomString,
    }
}

/// `Int64`, `UInt8`, `Float8`, `NonNegativeInt`, `UnsignedFloat`, and their like.
fn is_sized_number(plain: &str) -> bool {
    let stem = plain.trim_end_matches(|c: char| c.is_ascii_digit());
    let qualified =
        ["nonnegative", "nonpositive", "positive", "negative", "unsigned", "u", "i", "big", "safe"]
            .iter()
            .find_map(|prefix| stem.strip_prefix(prefix))
            .unwrap_or(stem);
    let is_number = matches!(qualified, "int" | "integer" | "float" | "decimal" | "long" | "double");
    is_number && (stem.len() < plain.len() || qualified.len() < stem.len() || qualified == "integer")
}

/// Sets the form of a custom scalar by the owner's word; `false` when the schema has none of that name.
///
/// The built-in scalars keep their form: their values are fixed by the GraphQL specification.
pub fn override_scalar(schema: &mut Schema, name: &str, form: ScalarForm) -> bool {
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
