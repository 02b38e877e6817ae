//! Strangers' JSON as a table: an array of objects, wherever it lies near the top, bounded on every side.

use serde_json::Value;

use super::show;

const COLUMNS_MAX: usize = 8;
const CELL_CHARS_MAX: usize = 60;
/// Names of fields whose numbers are times, in seconds or milliseconds since the Unix epoch.
const TIMES: [&str; 6] = ["time", "timestamp", "updated", "created", "date", "datetime"];
/// 1973 to 2096: no number of this range is milliseconds of the same range.
const PLAUSIBLE_FROM_SECS: u64 = 100_000_000;
const PLAUSIBLE_UNTIL_SECS: u64 = 4_000_000_000;
/// The greatest depth at which a list of rows is looked for.
const DEPTH_MAX: usize = 3;

/// A table as a template shows it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Table {
    pub(super) columns: Vec<String>,
    pub(super) rows: Vec<Vec<String>>,
    /// Rows that are left out.
    pub(super) hidden: usize,
}

/// The table of a document, of at most `rows_max` rows; without any when the document has no list of objects.
pub(super) fn of(json: &Value, rows_max: usize) -> Table {
    let Some(list) = list_of_objects(json, DEPTH_MAX) else { return Table::default() };
    let flat: Vec<Vec<(String, String)>> = list.iter().take(rows_max).map(cells).collect();
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
    Table { columns, rows, hidden: list.len().saturating_sub(rows_max) }
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
                cells
                    .splice(0..0, inner.iter().map(|(name, value)| (show::visible(name), cell(name, value))));
            }
            Value::Object(inner) => cells.extend(
                inner
                    .iter()
                    .filter(|(_, value)| !value.is_object())
                    .map(|(inner, value)| (show::visible(&format!("{name}.{inner}")), text(value))),
            ),
            _ => cells.push((show::visible(name), cell(name, value))),
        }
    }
    cells
}

/// A value, and beside a count of milliseconds or seconds what time that is.
fn cell(name: &str, value: &Value) -> String {
    secs_of(name, value).map_or_else(|| text(value), |secs| format!("{value} ({})", show::utc(secs)))
}

/// The seconds since the Unix epoch that a value is a count of, in seconds or milliseconds, if its name is that of a time.
pub(super) fn secs_of(name: &str, value: &Value) -> Option<u64> {
    let is_time = TIMES.iter().any(|time| name.eq_ignore_ascii_case(time));
    value.as_u64().filter(|_| is_time).and_then(|number| match number {
        PLAUSIBLE_FROM_SECS..PLAUSIBLE_UNTIL_SECS => Some(number),
        _ => Some(number / 1_000).filter(|secs| (PLAUSIBLE_FROM_SECS..PLAUSIBLE_UNTIL_SECS).contains(secs)),
    })
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

    const ROWS_MAX: usize = 12;

    #[test]
    fn an_answer_with_a_list_of_objects_is_a_table() {
        let table = of(
            &json!({ "data": { "planets": [
                { "name": "a", "star": { "name": "S" } },
                { "name": "b\u{202e}", "mass": 2 },
            ] } }),
            ROWS_MAX,
        );
        assert_eq!(table.columns, ["name", "star.name", "mass"]);
        assert_eq!(table.rows, [["a", "S", ""], ["b", "", "2"]]);
        assert_eq!(table.hidden, 0);
        assert!(of(&json!({ "a": 1 }), ROWS_MAX).columns.is_empty());
        assert!(of(&json!([1, 2]), ROWS_MAX).columns.is_empty());
    }

    #[test]
    fn numbers_that_are_times_say_which() {
        let table = of(
            &json!([
                { "time": 1_517_960_631_840_u64, "Updated": 1_517_960_631, "count": 1_517_960_631 },
                { "time": 7, "Updated": "1517960631", "count": 2 },
            ]),
            ROWS_MAX,
        );
        let at = "2018-02-06 23:43:51 UTC";
        assert_eq!(
            table.rows,
            [
                [&*format!("1517960631840 ({at})"), &format!("1517960631 ({at})"), "1517960631"],
                ["7", "1517960631", "2"],
            ]
        );
    }

    #[test]
    fn a_large_table_is_bounded() {
        let row: serde_json::Map<String, Value> =
            (0..100).map(|column| (format!("c{column}"), "x".repeat(1_000).into())).collect();
        let table = of(&Value::from(vec![Value::Object(row); 100]), ROWS_MAX);
        assert_eq!(
            (table.columns.len(), table.rows.len(), table.hidden),
            (COLUMNS_MAX, ROWS_MAX, 100 - ROWS_MAX)
        );
        assert_eq!(table.rows[0][0].chars().count(), CELL_CHARS_MAX + 1);
    }
}
