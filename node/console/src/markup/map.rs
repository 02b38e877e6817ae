//! GeoJSON (RFC 7946) as a map: an equirectangular view of where the features are, without tiles from anywhere.
//!
//! Coordinates are kept in thousandths of a degree. Points, lines and outlines are drawn; the view is the world,
//! or what surrounds the features when they lie close together.

use std::{fmt::Write as _, sync::LazyLock};

use serde_json::Value;

use super::{Markup, escaped};
use crate::show;

/// In drawing units, two to one as the world is.
const WIDTH: i64 = 720;
const HEIGHT: i64 = 360;
/// The space that `120°W` takes with the largest letters that the style sheet gives it.
const LABEL_WIDTH: i64 = 76;
const LABEL_HEIGHT: i64 = 30;
/// The most that a page of 60 KB has room for, names included.
const FEATURES_MAX: usize = 250;
const POSITIONS_MAX: usize = 2_500;
const LABEL_CHARS_MAX: usize = 80;
/// The closest view, in thousandths of a degree from west to east: seen from closer by, land drawn with so few
/// strokes would mislead.
const SPAN_MIN: i64 = 90_000;
/// Outlines of land, drawn by hand with few strokes: enough to know the continents by, and for nothing else.
static LAND: LazyLock<Vec<Shape>> = LazyLock::new(|| {
    let land: Value = serde_json::from_str(include_str!("map/land.geojson")).unwrap_or_default();
    let mut left = POSITIONS_MAX;
    features(&land).flat_map(|outline| shapes(&outline["geometry"], &mut left)).collect()
});
/// Names of properties that tell what a feature is, best first.
const LABELS: [&str; 5] = ["title", "place", "name", "label", "id"];

/// Longitude and latitude in thousandths of a degree.
type Position = (i64, i64);

enum Shape {
    Point(Position),
    Line(Vec<Position>),
    Area(Vec<Position>),
}

/// The part of the world that is drawn.
struct MapView {
    west: i64,
    north: i64,
    /// From west to east; from north to south it is half of that.
    span: i64,
}

/// The map of a document; nothing when it is no GeoJSON or has no place in it.
pub(crate) fn of(document: &Value) -> Markup {
    let mut left = POSITIONS_MAX;
    let features: Vec<(Vec<Shape>, String)> = features(document)
        .take(FEATURES_MAX)
        .map(|feature| (shapes(feature.get("geometry").unwrap_or(feature), &mut left), label(feature)))
        .collect();
    let positions: Vec<Position> =
        features.iter().flat_map(|(shapes, _)| shapes).flat_map(Shape::positions).copied().collect();
    let Some(view) = MapView::around(&positions) else { return Markup::default() };
    let all = self::features(document).count();
    let which =
        if all > features.len() { format!("the first {} of {all}", features.len()) } else { all.to_string() };
    let mut svg = format!(
        r#"<svg class="map" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="Map of {which} places; the table names them">"#
    );
    view.draw_land(&mut svg);
    view.draw_grid(&mut svg);
    for (shapes, label) in &features {
        for shape in shapes {
            view.draw(shape, label, &mut svg);
        }
    }
    svg.push_str("</svg>");
    Markup(svg)
}

fn features(document: &Value) -> Box<dyn Iterator<Item = &Value> + '_> {
    match document.get("type").and_then(Value::as_str) {
        Some("FeatureCollection") => {
            let list = document.get("features").and_then(Value::as_array);
            Box::new(list.into_iter().flatten())
        }
        Some("Feature" | "Point" | "MultiPoint" | "LineString" | "Polygon" | "MultiPolygon") => {
            Box::new(std::iter::once(document))
        }
        _ => Box::new(std::iter::empty()),
    }
}

fn label(feature: &Value) -> String {
    let Some(properties) = feature.get("properties") else { return String::new() };
    let found = LABELS.iter().find_map(|name| properties.get(name).and_then(Value::as_str));
    show::visible(found.unwrap_or_default()).chars().take(LABEL_CHARS_MAX).collect()
}

fn shapes(geometry: &Value, left: &mut usize) -> Vec<Shape> {
    let coordinates = geometry.get("coordinates").unwrap_or(&Value::Null);
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let mut line = |value: &Value| -> Vec<Position> {
        let positions: Vec<Position> = list(value).iter().take(*left).filter_map(position).collect();
        *left -= positions.len();
        positions
    };
    match geometry.get("type").and_then(Value::as_str) {
        Some("Point") => position(coordinates).map(Shape::Point).into_iter().collect(),
        Some("MultiPoint") => line(coordinates).into_iter().map(Shape::Point).collect(),
        Some("LineString") => drawn(Shape::Line, line(coordinates)).into_iter().collect(),
        Some("MultiLineString") => {
            list(coordinates).iter().filter_map(|one| drawn(Shape::Line, line(one))).collect()
        }
        Some("Polygon") => {
            list(coordinates).iter().take(1).filter_map(|ring| drawn(Shape::Area, line(ring))).collect()
        }
        Some("MultiPolygon") => {
            list(coordinates).iter().filter_map(|polygon| drawn(Shape::Area, line(polygon.get(0)?))).collect()
        }
        _ => Vec::new(),
    }
}

/// A shape with something to draw: so there are no more shapes than positions.
fn drawn(shape: fn(Vec<Position>) -> Shape, positions: Vec<Position>) -> Option<Shape> {
    (!positions.is_empty()).then(|| shape(positions))
}

fn position(value: &Value) -> Option<Position> {
    let degree = |index: usize, most: f64| {
        let degree = value.get(index)?.as_f64()?;
        // Comparing leaves no value that would not fit.
        #[expect(clippy::cast_possible_truncation, reason = "at most 180,000")]
        (degree.abs() <= most).then(|| (degree * 1_000.0).round() as i64)
    };
    Some((degree(0, 180.0)?, degree(1, 90.0)?))
}

impl Shape {
    fn positions(&self) -> &[Position] {
        match self {
            Self::Point(position) => std::slice::from_ref(position),
            Self::Line(positions) | Self::Area(positions) => positions,
        }
    }
}

impl MapView {
    /// The smallest view with some room around everything.
    fn around(positions: &[Position]) -> Option<Self> {
        let west = positions.iter().map(|(x, _)| *x).min()?;
        let east = positions.iter().map(|(x, _)| *x).max()?;
        let south = positions.iter().map(|(_, y)| *y).min()?;
        let north = positions.iter().map(|(_, y)| *y).max()?;
        let span = ((east - west).max((north - south) * 2) * 5 / 4).clamp(SPAN_MIN, 360_000);
        Some(Self {
            west: ((west + east - span) / 2).clamp(-180_000, 180_000 - span),
            north: ((north + south + span / 2) / 2).clamp(span / 2 - 90_000, 90_000),
            span,
        })
    }

    fn x(&self, longitude: i64) -> i64 {
        (longitude - self.west) * WIDTH / self.span
    }

    fn y(&self, latitude: i64) -> i64 {
        (self.north - latitude) * WIDTH / self.span
    }

    fn draw_land(&self, svg: &mut String) {
        svg.push_str(r#"<path class="land" d=""#);
        for outline in LAND.iter() {
            let _ = write!(svg, "{}Z", self.path(outline.positions()));
        }
        svg.push_str("\"/>");
    }

    /// Lines and degrees, so that one knows where one is.
    fn draw_grid(&self, svg: &mut String) {
        let step = if self.span <= 120_000 { 10_000 } else { 30_000 };
        let lines = |from: i64, to: i64| {
            let first = from.div_euclid(step) + 1;
            (first..).map(move |index| index * step).take_while(move |degree| *degree < to)
        };
        for longitude in lines(self.west, self.west + self.span) {
            let x = self.x(longitude);
            let _ = write!(svg, r#"<path class="grid" d="M{x} 0V{HEIGHT}"/>"#);
            // Cut off by the edge it would be another number.
            if x + LABEL_WIDTH < WIDTH {
                let label = degrees(longitude, 'E', 'W');
                let _ = write!(svg, r#"<text x="{}" y="{}">{label}</text>"#, x + 4, HEIGHT - 6);
            }
        }
        for latitude in lines(self.north - self.span / 2, self.north) {
            let y = self.y(latitude);
            let _ = write!(svg, r#"<path class="grid" d="M0 {y}H{WIDTH}"/>"#);
            // In the corner stands a longitude.
            if y + LABEL_HEIGHT < HEIGHT {
                let label = degrees(latitude, 'N', 'S');
                let _ = write!(svg, r#"<text x="4" y="{}">{label}</text>"#, y - 4);
            }
        }
    }

    fn path(&self, positions: &[Position]) -> String {
        let mut path = String::new();
        for (index, (x, y)) in positions.iter().enumerate() {
            let _ = write!(path, "{}{} {}", if index == 0 { 'M' } else { 'L' }, self.x(*x), self.y(*y));
        }
        path
    }

    fn draw(&self, shape: &Shape, label: &str, svg: &mut String) {
        let title =
            if label.is_empty() { String::new() } else { format!("<title>{}</title>", escaped(label)) };
        let _ = match shape {
            Shape::Point((x, y)) => {
                write!(
                    svg,
                    r#"<circle class="place" cx="{}" cy="{}" r="5">{title}</circle>"#,
                    self.x(*x),
                    self.y(*y)
                )
            }
            Shape::Line(positions) => {
                write!(svg, r#"<path class="line" d="{}">{title}</path>"#, self.path(positions))
            }
            Shape::Area(positions) => {
                write!(svg, r#"<path class="area" d="{}Z">{title}</path>"#, self.path(positions))
            }
        };
    }
}

/// `120°E`, `0°`
fn degrees(thousandths: i64, positive: char, negative: char) -> String {
    let side = match thousandths {
        0 => String::new(),
        1.. => positive.to_string(),
        _ => negative.to_string(),
    };
    format!("{}°{side}", thousandths.abs() / 1_000)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn point(longitude: f64, latitude: f64, place: &str) -> Value {
        json!({ "type": "Feature", "properties": { "place": place },
            "geometry": { "type": "Point", "coordinates": [longitude, latitude, 10.0] } })
    }

    #[test]
    fn places_are_drawn_where_they_are() {
        let world = json!({ "type": "FeatureCollection", "features": [
            point(-180.0, 90.0, "north-west"), point(180.0, -90.0, "south-east"), point(0.0, 0.0, "middle"),
        ] });
        let map = of(&world).to_string();
        for place in [r#"cx="0" cy="0""#, r#"cx="720" cy="360""#, r#"cx="360" cy="180""#, "120°E", "60°S"] {
            assert!(map.contains(place), "{place} is not in {map}");
        }
        let one = of(&point(121.5, 24.0, "Hualian")).to_string();
        assert!(one.contains(r#"cx="360" cy="180""#) && one.contains("120°E"), "{one}");
    }

    #[test]
    fn all_land_is_read() {
        assert_eq!(LAND.iter().filter(|outline| matches!(outline, Shape::Area(_))).count(), 18);
    }

    #[test]
    fn what_is_no_place_is_left_out_and_names_are_text() {
        for nothing in [
            json!({}),
            json!([1]),
            json!({ "type": "FeatureCollection", "features": 3 }),
            point(181.0, 0.0, "beyond"),
            json!({ "type": "Point", "coordinates": ["1", "2"] }),
        ] {
            assert!(of(&nothing).is_empty(), "{nothing}");
        }
        let map = of(&point(1.0, 1.0, "<script>\u{202e}\"")).to_string();
        assert!(map.contains("<title>&lt;script&gt;&quot;</title>"), "{map}");
    }

    #[test]
    fn a_huge_outline_is_bounded() {
        let ring: Vec<Value> = (0..50_000).map(|index| json!([index % 180, index % 90])).collect();
        let polygon = json!({ "type": "Polygon", "coordinates": [ring] });
        let many = json!({ "type": "FeatureCollection", "features": vec![polygon; 20] });
        assert!(of(&many).to_string().len() < POSITIONS_MAX * 10 + 8_000);
    }

    #[test]
    fn lines_and_outlines_of_nothing_are_not_drawn_however_many() {
        for (kind, nothing) in [("MultiLineString", json!([])), ("MultiPolygon", json!([[]]))] {
            let empty = json!({ "type": "Feature", "properties": { "place": "\"".repeat(80) },
                "geometry": { "type": kind, "coordinates": vec![nothing; 100_000] } });
            let features = json!([empty, point(1.0, 1.0, "somewhere")]);
            let map = of(&json!({ "type": "FeatureCollection", "features": features })).to_string();
            assert!(!map.is_empty() && map.len() < 20_000, "{kind}: {} bytes", map.len());
        }
    }
}
