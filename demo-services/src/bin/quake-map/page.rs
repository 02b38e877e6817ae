//! The page: a form, and what was bought as a map and a table. No script; everything strangers wrote is escaped.

use std::fmt::Write;

use axum::{
    http::{HeaderName, HeaderValue, header},
    response::Response,
};

use serde::Deserialize;

/// Coastlines in half degrees, from Natural Earth's 1:110m land (public domain), simplified.
const LAND: &str = include_str!("land.path");
const POLICY: &str =
    "default-src 'none'; style-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";
const CHOICES: [&str; 6] = ["2.5", "3.5", "4.5", "5", "5.5", "6"];

/// The result of one call.
#[derive(Debug)]
pub(super) struct Bought {
    pub(super) quakes: Vec<Quake>,
    /// USDC
    pub(super) charged: String,
    pub(super) milliseconds: u128,
}

#[derive(Debug, Deserialize)]
pub(super) struct Answer {
    pub(super) features: Vec<Quake>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Quake {
    pub(super) properties: Properties,
    pub(super) geometry: Geometry,
}

#[derive(Debug, Deserialize)]
pub(super) struct Properties {
    pub(super) place: Option<String>,
    pub(super) mag: Option<f64>,
    /// Milliseconds since 1970.
    pub(super) time: i64,
}

#[derive(Debug, Deserialize)]
pub(super) struct Geometry {
    /// Degrees east and north, and kilometres below the ground.
    pub(super) coordinates: [f64; 3],
}

/// Adds the headers that keep a page from being framed or from running anything.
pub(super) async fn guarded(mut response: Response) -> Response {
    let headers = response.headers_mut();
    let mut set = |name: HeaderName, value| headers.insert(name, HeaderValue::from_static(value));
    set(header::CONTENT_SECURITY_POLICY, POLICY);
    set(header::X_CONTENT_TYPE_OPTIONS, "nosniff");
    set(header::REFERRER_POLICY, "no-referrer");
    set(header::CACHE_CONTROL, "no-store");
    response
}

/// The whole page, after a call if there was one.
pub(super) fn page(magnitude: &str, max_price: &str, bought: Option<&Result<Bought, String>>) -> String {
    let choices: String = CHOICES
        .iter()
        .map(|choice| {
            let selected = if *choice == magnitude { " selected" } else { "" };
            format!("<option{selected}>{choice}</option>")
        })
        .collect();
    let result = match bought {
        None => "<p>Nothing bought yet. Every press of the button is one paid call.</p>".to_owned(),
        Some(Err(why)) => format!("<p class=\"problem\" role=\"alert\">{}</p>", escape(why)),
        Some(Ok(bought)) => result(bought, magnitude),
    };
    include_str!("page.html")
        .replace("{{choices}}", &choices)
        .replace("{{max_price}}", &escape(max_price))
        .replace("{{map}}", &map(bought.and_then(|bought| bought.as_ref().ok())))
        .replace("{{result}}", &result)
}

fn result(bought: &Bought, magnitude: &str) -> String {
    let mut rows = String::new();
    for quake in &bought.quakes {
        let place = quake.properties.place.as_deref().unwrap_or("somewhere");
        let [_, _, depth_km] = quake.geometry.coordinates;
        // Writing to a String cannot fail.
        let _ = write!(
            rows,
            "<tr><td>{}</td><td>{}</td><td>{}</td><td>{depth_km:.0} km</td></tr>",
            quake.properties.mag.map_or("?".to_owned(), |mag| format!("{mag:.1}")),
            escape(place),
            utc(quake.properties.time),
        );
    }
    let (n, charged, milliseconds) = (bought.quakes.len(), escape(&bought.charged), bought.milliseconds);
    format!(
        "<p role=\"status\"><strong>{n} earthquakes</strong> of magnitude {} and above, for \
         <strong>{charged} USDC</strong>, in <strong>{milliseconds} ms</strong>.</p>\
         <div class=\"wide\" role=\"region\" aria-label=\"Earthquakes\" tabindex=\"0\"><table><thead><tr>\
         <th scope=\"col\">Magnitude</th><th scope=\"col\">Place</th><th scope=\"col\">Time (UTC)</th>\
         <th scope=\"col\">Depth</th></tr></thead><tbody>{rows}</tbody></table></div>",
        escape(magnitude),
    )
}

/// An equirectangular map, two units to a degree.
fn map(bought: Option<&Bought>) -> String {
    let quakes = bought.map_or(&[][..], |bought| &bought.quakes);
    let dot = |quake: &Quake| {
        let [east, north, _] = quake.geometry.coordinates;
        let magnitude = quake.properties.mag.unwrap_or(1.0);
        let title = format!("{magnitude:.1}, {}", quake.properties.place.as_deref().unwrap_or("somewhere"));
        format!(
            "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"{:.1}\"><title>{}</title></circle>",
            (east + 180.0) * 2.0,
            (90.0 - north) * 2.0,
            // The energy grows by a factor of 32 with each magnitude; an area that did would hide the small ones.
            (1.5_f64.powf(magnitude.clamp(0.0, 10.0)) * 0.7).max(1.5),
            escape(&title),
        )
    };
    let dots: String = quakes.iter().map(dot).collect();
    format!(
        "<svg viewBox=\"0 0 720 360\" role=\"img\" aria-label=\"World map with {} earthquakes\">\
         <path class=\"land\" d=\"{LAND}\"/>{dots}</svg>",
        quakes.len()
    )
}

/// `2018-02-06 15:50` of milliseconds since 1970. Years begin in March here, so that a leap day ends its year.
fn utc(milliseconds: i64) -> String {
    let minutes = milliseconds.div_euclid(60_000);
    let (days, minute) = (minutes.div_euclid(1440) + 719_468, minutes.rem_euclid(1440));
    // 146,097 days are 400 years.
    let (era, day) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day_of_year = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day_of_month = day_of_year - (153 * month + 2) / 5 + 1;
    let (year, month) =
        if month < 10 { (era * 400 + year, month + 3) } else { (era * 400 + year + 1, month - 9) };
    format!("{year}-{month:02}-{day_of_month:02} {:02}:{:02}", minute / 60, minute % 60)
}

fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for sign in text.chars() {
        match sign {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            // Signs that turn the direction of what follows could make a price read otherwise.
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {}
            other => safe.push(other),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_told_in_utc() {
        let told = [0, 951_782_400_000, 1_517_932_200_000, 1_735_689_540_000].map(utc);
        assert_eq!(told, ["1970-01-01 00:00", "2000-02-29 00:00", "2018-02-06 15:50", "2024-12-31 23:59"]);
    }

    #[test]
    fn what_strangers_wrote_is_text_and_nothing_else() {
        let place = "<script>alert(1)</script>\" onload=\"x\u{202e}";
        let quake = Quake {
            properties: Properties { place: Some(place.to_owned()), mag: Some(5.0), time: 0 },
            geometry: Geometry { coordinates: [10.0, 20.0, 30.0] },
        };
        let bought = Ok(Bought { quakes: vec![quake], charged: "<b>".to_owned(), milliseconds: 1 });
        for page in [page("\"><i>", "0.01", Some(&bought)), page("5", "<u>", Some(&Err("<s>".to_owned())))] {
            for tag in ["<script", "<b>", "<i>", "<u>", "<s>", "onload=\"", "\u{202e}"] {
                assert!(!page.contains(tag), "{tag} in {page}");
            }
        }
    }
}
