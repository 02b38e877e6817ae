//! The size of a picture: an image goes in, its width and height come out.
//!
//! A PNG's or GIF's header says both in its first 24 bytes; nothing else of the image is looked at, and none is kept.

use axum::body::Bytes;
use axum::extract::multipart::{MultipartError, MultipartRejection};
use axum::extract::{DefaultBodyLimit, Multipart};
use axum::http::{HeaderMap, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde::Serialize;
use serde_json::json;

use crate::problem::Problem;

/// This service's API description, OpenAPI 3.1.
const OPENAPI: &str = include_str!("image_size/openapi.json");

const BODY_BYTES_MAX: usize = 8 << 20;

const RAW_TYPES: [&str; 3] = ["image/png", "image/gif", "application/octet-stream"];

/// The answer: all that is known of an image.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct Measured {
    width: u32,
    height: u32,
    /// The media type by the image's own first bytes, whatever the sender says.
    #[serde(rename = "type")]
    kind: &'static str,
    /// The file's name, as it was sent.
    file: Option<String>,
    note: Option<String>,
    bytes: usize,
}

/// The service's routes.
pub fn router() -> Router {
    Router::new()
        .route("/size", post(size_of_part))
        .route("/size/raw", post(size_of_body))
        .layer(DefaultBodyLimit::max(BODY_BYTES_MAX))
        .route("/openapi.json", get(openapi))
        .route("/healthz", get(health))
        .fallback(unknown_path)
        .method_not_allowed_fallback(wrong_method)
}

async fn size_of_part(form: Result<Multipart, MultipartRejection>) -> Result<Json<Measured>, Problem> {
    let mut form = form.map_err(|_| {
        let detail = "send multipart/form-data with the file `image`, and its boundary in the content type";
        Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "No form", detail)
    })?;
    let (mut image, mut note) = (None, None);
    while let Some(part) = form.next_field().await.map_err(|error| unreadable(&error))? {
        match part.name().unwrap_or_default() {
            "image" => {
                let file = part.file_name().map(str::to_owned);
                image = Some((file, part.bytes().await.map_err(|error| unreadable(&error))?));
            }
            "note" => note = Some(part.text().await.map_err(|error| unreadable(&error))?),
            other => {
                let detail = format!("no part is named `{other}`; send `image`, and `note` if you like");
                return Err(Problem::new(StatusCode::BAD_REQUEST, "Unknown part", detail));
            }
        }
    }
    let (file, image) = image.ok_or_else(|| {
        let detail = "the form has no part `image`; send the picture's bytes as one";
        Problem::new(StatusCode::BAD_REQUEST, "No image", detail)
    })?;
    Ok(Json(Measured { file, note, ..measure(&image)? }))
}

async fn size_of_body(headers: HeaderMap, image: Bytes) -> Result<Json<Measured>, Problem> {
    let named = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let named = named.split(';').next().unwrap_or_default().trim();
    if !RAW_TYPES.iter().any(|kind| kind.eq_ignore_ascii_case(named)) {
        let detail = format!("the body is `{named}`; send one of {}", RAW_TYPES.join(", "));
        return Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "No image", detail));
    }
    Ok(Json(measure(&image)?))
}

/// Reads an image's header.
fn measure(image: &[u8]) -> Result<Measured, Problem> {
    let (kind, width, height) = png(image).or_else(|| gif(image)).ok_or_else(|| {
        let detail = "these bytes are neither a PNG nor a GIF; send one of these";
        Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "Unknown image", detail)
    })?;
    Ok(Measured { width, height, kind, file: None, note: None, bytes: image.len() })
}

/// The first chunk of a PNG is `IHDR`, of 13 bytes (ISO/IEC 15948, 11.2.2).
fn png(image: &[u8]) -> Option<(&'static str, u32, u32)> {
    let (width, rest) = image.strip_prefix(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR")?.split_first_chunk()?;
    let height = rest.first_chunk()?;
    Some(("image/png", u32::from_be_bytes(*width), u32::from_be_bytes(*height)))
}

/// The logical screen follows a GIF's signature (GIF89a, 18).
fn gif(image: &[u8]) -> Option<(&'static str, u32, u32)> {
    let screen = image.strip_prefix(b"GIF87a").or_else(|| image.strip_prefix(b"GIF89a"))?;
    let (width, rest) = screen.split_first_chunk()?;
    let height = rest.first_chunk()?;
    Some(("image/gif", u16::from_le_bytes(*width).into(), u16::from_le_bytes(*height).into()))
}

fn unreadable(error: &MultipartError) -> Problem {
    let detail = format!("the form cannot be read ({}); let your HTTP library write it", error.body_text());
    Problem::new(error.status(), "Unreadable form", detail)
}

async fn openapi() -> Response {
    ([(header::CONTENT_TYPE, "application/json; charset=utf-8")], OPENAPI).into_response()
}

async fn health() -> Response {
    Json(json!({ "status": "ok" })).into_response()
}

async fn unknown_path() -> Problem {
    let detail = "this service has POST /size and POST /size/raw, and /openapi.json and /healthz to read";
    Problem::new(StatusCode::NOT_FOUND, "Unknown path", detail)
}

async fn wrong_method(method: Method, uri: Uri) -> Problem {
    let detail = match uri.path() {
        path @ ("/size" | "/size/raw") => format!("{path} takes images with POST, not {method}"),
        path => format!("{path} can be read with GET, not {method}"),
    };
    Problem::new(StatusCode::METHOD_NOT_ALLOWED, "Wrong method", detail)
}

#[cfg(test)]
mod tests {
    use super::{gif, png};

    #[test]
    fn a_header_that_ends_too_early_is_no_image() {
        let whole = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x01\0\0\0\0\x02";
        assert_eq!(png(whole), Some(("image/png", 256, 2)));
        assert_eq!(png(&whole[..whole.len() - 1]), None);
        assert_eq!(gif(b"GIF89a\x03\0\0\x01"), Some(("image/gif", 3, 256)));
        assert_eq!(gif(b"GIF89a\x03\0\0"), None);
        assert_eq!(gif(b"GIF90a\x03\0\0\x01"), None);
    }
}
