//! A sample answer, as a map, a table and text.
//!
//! The answer is a stranger's. GeoJSON becomes a map; an array of objects, wherever it lies near the top, a
//! table; anything else stays text. All of it is bounded and escaped by the template.

use farthing_bridge::samples::Origin;
use serde_json::Value;

use crate::{
    control::types::OperationSample,
    panel::{
        markup::{Markup, map_of},
        show,
    },
};

const ROWS_MAX: usize = 12;
const COLUMNS_MAX: usize = 8;
const CELL_CHARS_MAX: usize = 60;
const TEXT_CHARS_MAX: usize = 4_000;
/// How deep a list of rows is looked for.
const DEPTH_MAX: usize = 3;

/// What the template shows of one sample.
pub(super) struct Sample {
    pub(super) operation: String,
    pub(super) status: u16,
    /// Where it comes from, in words.
    pub(super) origin: &'static str,
    pub(super) map: Markup,
    pub(super) columns: Vec<String>,
    pub(super) rows: Vec<Vec<String>>,
    pub(super) rows_hidden: usize,
    pub(super) text: String,
    pub(super) is_cut: bool,
}

impl Sample {
    pub(super) fn new(named: &OperationSample) -> Self {
        let sample = &named.sample;
        let json: Option<Value> = serde_json::from_str(&sample.body).ok();
        let (columns, rows, rows_hidden) = json.as_ref().map(table).unwrap_or_default();
        let text = json
            .as_ref()
            .and_then(|json| serde_json::to_string_pretty(json).ok())
            .unwrap_or_else(|| sample.body.clone());
        Self {
            operation: show::visible(&named.operation),
            status: sample.status,
            origin: match sample.origin {
                Origin::Recorded => "Recorded from the owner's server",
                Origin::MediaExample | Origin::SchemaExample => "An example from the description",
                Origin::Synthesised => "Made up from the schema: the form is right, the values mean nothing",
            },
            map: json.as_ref().map(map_of).unwrap_or_default(),
            columns,
            rows,
            rows_hidden,
            is_cut: text.chars().nth(TEXT_CHARS_MAX).is_some(),
            text: text.chars().filter(|c| !show::is_invisible(*c)).take(TEXT_CHARS_MAX).collect(),
        }
    }
}

/// Columns, rows, and how many rows are left out.
fn table(json: &Value) -> (Vec<String>, Vec<Vec<String>>, usize) {
    let Some(list) = list_of_objects(json, DEPTH_MAX) else { return Default::default() };
    let flat: Vec<Vec<(String, String)>> = list.iter().take(ROWS_MAX).map(cells).collect();
    let mut columns: Vec<String> = Vec::new();
    for (name, _) in flat.iter().flatten() {
        if columns.len() < COLUMNS_MAX && !columns.contains(name) {
            columns.push(name.clone());
        }
    }
    let cell = |row: &[(String, String)], column: &String| {
        row.iter().find(|(name, _)| name == column).map(|(_, value)| value.clone()).unwrap_or_default()
    };
    let rows = flat.iter().map(|row| columns.iter().map(|column| cell(row, column)).collect()).collect();
    (columns, rows, list.len().saturating_sub(ROWS_MAX))
}

fn list_of_objects(json: &Value, depth: usize) -> Option<&Vec<Value>> {
    match json {
        Value::Array(list) if list.iter().any(Value::is_object) => Some(list),
        Value::Object(object) if depth > 0 => {
            object.values().find_map(|value| list_of_objects(value, depth - 1))
        }
        _ => None,
    }
}

/// The plain values of one object; those of an object within, such as GeoJSON's `properties`, beside them.
fn cells(row: &Value) -> Vec<(String, String)> {
    let Value::Object(object) = row else { return vec![("value".to_owned(), text(row))] };
    let mut cells = Vec::new();
    for (name, value) in object {
        match value {
            Value::Object(inner) if name == "properties" => {
                cells.splice(0..0, inner.iter().map(|(name, value)| (show::visible(name), text(value))));
            }
            Value::Object(inner) => cells.extend(
                inner
                    .iter()
                    .filter(|(_, value)| !value.is_object())
                    .map(|(inner, value)| (show::visible(&format!("{name}.{inner}")), text(value))),
            ),
            _ => cells.push((show::visible(name), text(value))),
        }
    }
    cells
}

fn text(value: &Value) -> String {
    let text = match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let mut short: String = show::visible(&text).chars().take(CELL_CHARS_MAX).collect();
    if text.chars().nth(CELL_CHARS_MAX).is_some() {
        short.push('…');
    }
    short
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_answer_with_a_list_of_objects_is_a_table() {
        let (columns, rows, hidden) = table(&json!({ "data": { "planets": [
            { "name": "a", "star": { "name": "S" } },
            { "name": "b\u{202e}", "mass": 2 },
        ] } }));
        assert_eq!(columns, ["name", "star.name", "mass"]);
        assert_eq!(rows, [["a", "S", ""], ["b", "", "2"]]);
        assert_eq!(hidden, 0);
        assert!(table(&json!({ "a": 1 })).0.is_empty());
        assert!(table(&json!([1, 2])).0.is_empty());
    }

    #[test]
    fn a_large_table_is_bounded() {
        let row: serde_json::Map<String, Value> =
            (0..100).map(|column| (format!("c{column}"), "x".repeat(1_000).into())).collect();
        let (columns, rows, hidden) = table(&Value::from(vec![Value::Object(row); 100]));
        assert_eq!((columns.len(), rows.len(), hidden), (COLUMNS_MAX, ROWS_MAX, 100 - ROWS_MAX));
        assert_eq!(rows[0][0].chars().count(), CELL_CHARS_MAX + 1);
    }
}
