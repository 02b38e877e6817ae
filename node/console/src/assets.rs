//! The stylesheet, scripts and icon, embedded in the program.
//!
//! Their addresses hold a hash of their content, so browsers keep them for a year and never use an old one.

use std::sync::LazyLock;

use axum::{
    Router,
    extract::Path,
    response::{IntoResponse, Response},
    routing::get,
};
use farthing_protocol::keccak256;
use http::{StatusCode, header};

use super::ConsoleState;

const KEPT: &str = "public, max-age=31536000, immutable";

/// An embedded file.
#[derive(Debug)]
struct Asset {
    name: String,
    content_type: &'static str,
    content: &'static [u8],
}

macro_rules! assets {
    ($($function:ident: $file:literal as $content_type:literal),+ $(,)?) => {
        static ASSETS: LazyLock<Vec<Asset>> = LazyLock::new(|| vec![$(
            asset($file, $content_type, include_bytes!(concat!("../assets/", $file))),
        )+]);

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
    style: "console.css" as "text/css; charset=utf-8",
    key_script: "key.js" as "text/javascript; charset=utf-8",
    door_script: "door.js" as "text/javascript; charset=utf-8",
    live_script: "live.js" as "text/javascript; charset=utf-8",
    search_script: "search.js" as "text/javascript; charset=utf-8",
    sandbox_script: "sandbox.js" as "text/javascript; charset=utf-8",
    actions_script: "actions.js" as "text/javascript; charset=utf-8",
    icon: "icon.svg" as "image/svg+xml",
}

/// `console.css` → `console.0123456789abcdef.css`
fn asset(file: &str, content_type: &'static str, content: &'static [u8]) -> Asset {
    let hash = hex::encode(&keccak256(&[content])[..8]);
    let (stem, extension) = file.split_once('.').unwrap_or((file, ""));
    Asset { name: format!("{stem}.{hash}.{extension}"), content_type, content }
}

fn url(file: &str) -> String {
    let stem = file.split('.').next().unwrap_or(file);
    let named = |asset: &&Asset| asset.name.split('.').next() == Some(stem);
    let name = ASSETS.iter().find(named).map_or("", |asset| &asset.name);
    format!("/assets/{name}")
}

pub(super) fn routes() -> Router<ConsoleState> {
    Router::new().route("/assets/{name}", get(serve))
}

async fn serve(Path(name): Path<String>) -> Response {
    match ASSETS.iter().find(|asset| asset.name == name) {
        Some(asset) => {
            let headers = [(header::CONTENT_TYPE, asset.content_type), (header::CACHE_CONTROL, KEPT)];
            (headers, asset.content).into_response()
        }
        None => StatusCode::NOT_FOUND.into_response(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_asset_has_an_address_of_its_own_that_changes_with_its_content() {
        for asset in ASSETS.iter() {
            assert!(asset.name.split('.').count() == 3 && !asset.content.is_empty(), "{}", asset.name);
        }
        assert_eq!(style(), format!("/assets/{}", ASSETS[0].name));
        assert_ne!(asset("a.css", "", b"1").name, asset("a.css", "", b"2").name);
    }
}
