//! The stylesheet, font, scripts and icon, embedded in the program.
//!
//! Their addresses hold a hash of their content, so browsers keep them for a year and never use an old one. Styles and
//! scripts travel compressed to browsers that take it, at less than half of their size.

use std::{borrow::Cow, sync::LazyLock};

use axum::{
    Router,
    extract::Path,
    response::{IntoResponse, Response},
    routing::get,
};
use bytes::Bytes;
use farthing_values::keccak256;
use http::{HeaderMap, StatusCode, header};
use miniz_oxide::deflate::compress_to_vec_zlib;

use super::ConsoleState;

const KEPT: &str = "public, max-age=31536000, immutable";

/// Inter, variable from 100 to 900, Latin alone (`inter-LICENSE.txt`); the styles name it like that.
const FONT: &str = "inter.woff2";

/// The name of zlib in HTTP, which every browser takes (RFC 9110, 8.4.1.2).
const CODING: &str = "deflate";
/// From 0 to 10; a higher one takes longer, once per start, and saves next to nothing.
const COMPRESSION_LEVEL: u8 = 9;

/// An embedded file.
#[derive(Debug)]
struct Asset {
    name: String,
    content_type: &'static str,
    content: Cow<'static, [u8]>,
    /// The content in [`CODING`], where that is at most half as long: a font is compressed already.
    compressed: Option<Bytes>,
}

/// The text of files, one behind the other.
macro_rules! text {
    ($($file:literal),+) => {
        concat!($(include_str!(concat!("../assets/", $file))),+)
    };
}

/// Names each file, and the files that browsers are given before it in the same answer.
macro_rules! assets {
    ($($function:ident: $file:literal $(after $($first:literal),+)? as $content_type:literal),+ $(,)?) => {
        static ASSETS: LazyLock<Vec<Asset>> = LazyLock::new(|| {
            let font = asset(FONT, "font/woff2", include_bytes!("../assets/inter.woff2"));
            let text = |text: &'static str| match text.contains(FONT) {
                true => Cow::Owned(text.replace(FONT, &font.name).into_bytes()),
                false => Cow::Borrowed(text.as_bytes()),
            };
            let mut all = vec![$(asset($file, $content_type, text(text!($($($first,)+)? $file)))),+];
            all.push(font);
            all
        });

        $(
            #[doc = concat!("Address of `", $file, "`.")]
            pub(super) fn $function() -> &'static str {
                static URL: LazyLock<String> = LazyLock::new(|| url($file));
                &URL
            }
        )+
    };
}

assets! {
    style: "console.css" after "tokens.css", "charts.css" as "text/css; charset=utf-8",
    guest_style: "guest.css" as "text/css; charset=utf-8",
    operations_style: "operations.css" as "text/css; charset=utf-8",
    key_script: "key.js" as "text/javascript; charset=utf-8",
    door_script: "door.js" as "text/javascript; charset=utf-8",
    live_script: "live.js" as "text/javascript; charset=utf-8",
    search_script: "search.js" as "text/javascript; charset=utf-8",
    sandbox_script: "sandbox.js" as "text/javascript; charset=utf-8",
    answer_script: "answer.js" as "text/javascript; charset=utf-8",
    answer_style: "answer.css" as "text/css; charset=utf-8",
    actions_script: "actions.js" as "text/javascript; charset=utf-8",
    chart_script: "chart.js" as "text/javascript; charset=utf-8",
    icon: "icon.svg" as "image/svg+xml",
}

/// `console.css` → `console.0123456789abcdef.css`
fn asset(file: &str, content_type: &'static str, content: impl Into<Cow<'static, [u8]>>) -> Asset {
    let content = content.into();
    let hash = hex::encode(&keccak256(&[&content])[..8]);
    let (stem, extension) = file.split_once('.').unwrap_or((file, ""));
    let compressed = compress_to_vec_zlib(&content, COMPRESSION_LEVEL);
    let compressed = (compressed.len() <= content.len() / 2).then(|| Bytes::from(compressed));
    Asset { name: format!("{stem}.{hash}.{extension}"), content_type, content, compressed }
}

fn url(file: &str) -> String {
    let (stem, extension) = file.split_once('.').unwrap_or((file, ""));
    let named = |asset: &&Asset| {
        let mut parts = asset.name.split('.');
        parts.next() == Some(stem) && parts.next_back() == Some(extension)
    };
    let name = ASSETS.iter().find(named).map_or("", |asset| &asset.name);
    format!("/assets/{name}")
}

pub(super) fn routes() -> Router<ConsoleState> {
    Router::new().route("/assets/{name}", get(serve))
}

async fn serve(Path(name): Path<String>, headers: HeaderMap) -> Response {
    let Some(asset) = ASSETS.iter().find(|asset| asset.name == name) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let kept = [
        (header::CONTENT_TYPE, asset.content_type),
        (header::CACHE_CONTROL, KEPT),
        (header::VARY, "accept-encoding"),
    ];
    match asset.compressed.clone().filter(|_| takes_compressed(&headers)) {
        Some(compressed) => (kept, [(header::CONTENT_ENCODING, CODING)], compressed).into_response(),
        None => (kept, asset.content.clone()).into_response(),
    }
}

/// Returns true for a browser that names the coding. One that gives it a weight gets the content as it is.
fn takes_compressed(headers: &HeaderMap) -> bool {
    let named = headers.get(header::ACCEPT_ENCODING).and_then(|value| value.to_str().ok());
    named.is_some_and(|named| named.split(',').any(|coding| coding.trim() == CODING))
}

#[cfg(test)]
mod tests;
