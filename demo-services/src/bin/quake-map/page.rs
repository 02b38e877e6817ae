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

/// What one call costs, in USDC.
#[derive(Debug)]
pub(super) struct Prices {
    /// None while the service's description was not read.
    pub(super) price: Option<String>,
    /// The most that this application pays.
    pub(super) max: String,
}

/// The result of one call.
#[derive(Debug)]
pub(super) struct BoughtQuakes {
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
pub(super) fn page(
    magnitude: &str,
    prices: &Prices,
    bought: Option<&Result<BoughtQuakes, String>>,
) -> String {
    let choices: String = CHOICES
        .iter()
        .map(|choice| {
            let selected = if *choice == magnitude { " selected" } else { "" };
            format!("<option{selected}>{choice}</option>")
        })
        .collect();
    let result = match bought {
        None => "<p>Nothing bought yet. Each press of the button makes one paid call.</p>".to_owned(),
        Some(Err(why)) => format!("<p class=\"problem\" role=\"alert\">{}</p>", escape(why)),
        Some(Ok(bought)) => result(bought, magnitude),
    };
    include_str!("page.html")
        .replace("{{choices}}", &choices)
        .replace("{{price}}", &price(prices))
        .replace("{{max_price}}", &escape(&prices.max))
        .replace("{{map}}", &map(bought.and_then(|bought| bought.as_ref().ok())))
        .replace("{{result}}", &result)
}

/// The words of the button.
fn price(prices: &Prices) -> String {
    match &prices.price {
        Some(price) => format!("Buy for {} USDC", escape(price)),
        None => format!("Buy for at most {} USDC", escape(&prices.max)),
    }
}

/// `from 2018-02-02 to 2018-02-08`: the days of what was bought, whenever that was.
fn days(quakes: &[Quake]) -> String {
    let times = || quakes.iter().map(|quake| quake.properties.time);
    match (times().min(), times().max()) {
        (Some(first), Some(last)) if date(first) == date(last) => format!(" of {}", date(first)),
        (Some(first), Some(last)) => format!(" from {} to {}", date(first), date(last)),
        _ => String::new(),
    }
}

fn result(bought: &BoughtQuakes, magnitude: &str) -> String {
    let mut rows = String::new();
    for quake in &bought.quakes {
        let place = quake.properties.place.as_deref().unwrap_or("unknown place");
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
        "<p role=\"status\"><strong>{n} earthquakes</strong>{} of magnitude {} and above, for \
         <strong>{charged} USDC</strong>, in <strong>{milliseconds} ms</strong>.</p>\
         <div class=\"wide\" role=\"region\" aria-label=\"Earthquakes\" tabindex=\"0\"><table><thead><tr>\
         <th scope=\"col\">Magnitude</th><th scope=\"col\">Place</th><th scope=\"col\">Time (UTC)</th>\
         <th scope=\"col\">Depth</th></tr></thead><tbody>{rows}</tbody></table></div>",
        days(&bought.quakes),
        escape(magnitude),
    )
}

/// An equirectangular map, two units to a degree.
fn map(bought: Option<&BoughtQuakes>) -> String {
    let quakes = bought.map_or(&[][..], |bought| &bought.quakes);
    let dot = |quake: &Quake| {
        let [east, north, _] = quake.geometry.coordinates;
        let magnitude = quake.properties.mag.unwrap_or(1.0);
        let title =
            format!("{magnitude:.1}, {}", quake.properties.place.as_deref().unwrap_or("unknown place"));
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

/// `2018-02-06 15:50` of milliseconds since 1970.
fn utc(milliseconds: i64) -> String {
    let minute = milliseconds.div_euclid(60_000).rem_euclid(1440);
    format!("{} {:02}:{:02}", date(milliseconds), minute / 60, minute % 60)
}

/// `2018-02-06` of milliseconds since 1970. Years begin in March here, so that a leap day ends its year.
fn date(milliseconds: i64) -> String {
    let days = milliseconds.div_euclid(86_400_000) + 719_468;
    // 146,097 days are 400 years.
    let (era, day) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day_of_year = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day_of_month = day_of_year - (153 * month + 2) / 5 + 1;
    let (year, month) =
        if month < 10 { (era * 400 + year, month + 3) } else { (era * 400 + year + 1, month - 9) };
    format!("{year}-{month:02}-{day_of_month:02}")
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
    fn the_days_are_those_of_the_data_and_the_button_says_the_price() {
        let quake = |time| Quake {
            properties: Properties { place: None, mag: Some(5.0), time },
            geometry: Geometry { coordinates: [10.0, 20.0, 30.0] },
        };
        assert_eq!(
            days(&[quake(1_517_932_200_000), quake(951_782_400_000)]),
            " from 2000-02-29 to 2018-02-06"
        );
        assert_eq!((days(&[quake(0)]), days(&[])), (" of 1970-01-01".to_owned(), String::new()));
        let button =
            |known: Option<&str>| price(&Prices { price: known.map(str::to_owned), max: "0.01".to_owned() });
        assert_eq!(button(Some("0.002")), "Buy for 0.002 USDC");
        assert_eq!(button(None), "Buy for at most 0.01 USDC");
    }

    #[test]
    fn what_strangers_wrote_is_text_and_nothing_else() {
        let place = "<script>alert(1)</script>\" onload=\"x\u{202e}";
        let quake = Quake {
            properties: Properties { place: Some(place.to_owned()), mag: Some(5.0), time: 0 },
            geometry: Geometry { coordinates: [10.0, 20.0, 30.0] },
        };
        let bought = Ok(BoughtQuakes { quakes: vec![quake], charged: "<b>".to_owned(), milliseconds: 1 });
        let prices = |price: Option<&str>| Prices { price: price.map(str::to_owned), max: "<u>".to_owned() };
        for page in [
            page("\"><i>", &prices(Some("<b>")), Some(&bought)),
            page("5", &prices(None), Some(&Err("<s>".to_owned()))),
        ] {
            for tag in ["<script", "<b>", "<i>", "<u>", "<s>", "onload=\"", "\u{202e}"] {
                assert!(!page.contains(tag), "{tag} in {page}");
            }
        }
    }
}
