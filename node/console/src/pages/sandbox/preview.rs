//! Answers that browsers show by themselves: images, sound and PDF.
//!
//! What an answer is follows from its first bytes, and what it says of itself must not contradict them: so nothing is ever
//! handed to a browser under a type that it is not. It comes from the console's own origin, under a policy by which it loads
//! nothing and runs nothing ([`IsContent`]); but for a PDF, whose viewer is a page, it is no document: opened by its
//! address it is downloaded. A drawing (SVG), which could be one, is therefore a picture and nothing else.

use axum::{
    extract::{Path, Query, State},
    response::IntoResponse,
};
use farthing_bridge::media::essence;
use farthing_serve::attachment;
use http::header;

use crate::{
    ConsoleState,
    access::Session,
    failure::{Failure, Page},
    headers::IsContent,
};

use super::{DownloadQuery, exchanged, file_name};

/// A drawing begins with its element at the latest here, behind declarations and comments.
const DRAWING_BYTES_MAX: usize = 1024;

/// The element that shows a content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ContentKind {
    Image,
    Sound,
    Pdf,
}

/// A content that a browser shows by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ShownContent {
    pub(super) kind: ContentKind,
    pub(super) media_type: &'static str,
}

/// The first signs of a file, signs from a place on, and what such a file is.
type Beginning = (&'static [u8], usize, &'static [u8], ContentKind, &'static str);

/// Beginnings of files, where the signs after a gap stand at the eighth byte or, of boxes, at the fourth.
static BEGINNINGS: [Beginning; 13] = [
    (b"\x89PNG\r\n\x1a\n", 0, b"", ContentKind::Image, "image/png"),
    (b"\xff\xd8\xff", 0, b"", ContentKind::Image, "image/jpeg"),
    (b"GIF87a", 0, b"", ContentKind::Image, "image/gif"),
    (b"GIF89a", 0, b"", ContentKind::Image, "image/gif"),
    (b"RIFF", 8, b"WEBP", ContentKind::Image, "image/webp"),
    (b"", 4, b"ftypavif", ContentKind::Image, "image/avif"),
    (b"ID3", 0, b"", ContentKind::Sound, "audio/mpeg"),
    (b"\xff\xfb", 0, b"", ContentKind::Sound, "audio/mpeg"),
    (b"RIFF", 8, b"WAVE", ContentKind::Sound, "audio/wav"),
    (b"OggS", 0, b"", ContentKind::Sound, "audio/ogg"),
    (b"fLaC", 0, b"", ContentKind::Sound, "audio/flac"),
    (b"", 4, b"ftypM4A", ContentKind::Sound, "audio/mp4"),
    (b"%PDF-", 0, b"", ContentKind::Pdf, "application/pdf"),
];

impl ShownContent {
    /// Finds out what a content is; `None` when a browser shows it as text at best, or it says that it is something else.
    pub(super) fn of(declared: &str, content: &[u8]) -> Option<Self> {
        let declared = essence(declared);
        if declared == "image/svg+xml" {
            let preview = Self { kind: ContentKind::Image, media_type: "image/svg+xml" };
            return is_drawing(content).then_some(preview);
        }
        let begins =
            |from: usize, signs: &[u8]| content.get(from..).is_some_and(|rest| rest.starts_with(signs));
        let found = BEGINNINGS.iter().find(|(first, at, then, ..)| begins(0, first) && begins(*at, then));
        let (_, _, _, kind, media_type) = *found?;
        fits(kind, &declared).then_some(Self { kind, media_type })
    }
}

/// Tells whether a declared type is one of a kind, or says nothing.
fn fits(kind: ContentKind, declared: &str) -> bool {
    let is_silent = matches!(declared, "" | "application/octet-stream" | "binary/octet-stream");
    let is_of_kind = match kind {
        ContentKind::Image => declared.starts_with("image/"),
        ContentKind::Sound => declared.starts_with("audio/") || declared == "application/ogg",
        ContentKind::Pdf => declared == "application/pdf",
    };
    is_silent || is_of_kind
}

fn is_drawing(content: &[u8]) -> bool {
    let beginning = content.get(..DRAWING_BYTES_MAX).unwrap_or(content);
    std::str::from_utf8(content).is_ok() && beginning.windows(4).any(|signs| signs == b"<svg")
}

/// The content of an answer, for the element of the page that shows it.
pub(in crate::pages) async fn show(
    State(panel): State<ConsoleState>,
    session: Session,
    Path(id): Path<String>,
    Query(asked): Query<DownloadQuery>,
) -> Page {
    let kept = exchanged(&panel, &session, &id, &asked)?;
    let answer = &kept.exchange.answer;
    let preview = ShownContent::of(&answer.media_type, &answer.body).ok_or_else(Failure::not_found)?;
    let body = answer.body.clone();
    let mut response = match preview.kind {
        ContentKind::Pdf => ([(header::CONTENT_TYPE, preview.media_type)], body).into_response(),
        ContentKind::Image | ContentKind::Sound => {
            (attachment(preview.media_type, &file_name(&asked, answer)), body).into_response()
        }
    };
    response.extensions_mut().insert(IsContent);
    Ok(response)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(declared: &str, content: &[u8]) -> Option<(ContentKind, &'static str)> {
        ShownContent::of(declared, content).map(|preview| (preview.kind, preview.media_type))
    }

    #[test]
    fn a_content_is_what_its_first_bytes_are_and_its_type_does_not_contradict() {
        let (png, jpeg) = (b"\x89PNG\r\n\x1a\n\0\0", b"\xff\xd8\xff\xe0\0\x10JFIF");
        for (declared, content, shown) in [
            ("image/png", &png[..], Some((ContentKind::Image, "image/png"))),
            ("image/png; a=b", &jpeg[..], Some((ContentKind::Image, "image/jpeg"))),
            ("", &png[..], Some((ContentKind::Image, "image/png"))),
            ("application/octet-stream", &png[..], Some((ContentKind::Image, "image/png"))),
            ("image/webp", b"RIFF\x10\0\0\0WEBPVP8 ", Some((ContentKind::Image, "image/webp"))),
            ("image/avif", b"\0\0\0\x1cftypavif", Some((ContentKind::Image, "image/avif"))),
            ("audio/x-wav", b"RIFF\x10\0\0\0WAVEfmt ", Some((ContentKind::Sound, "audio/wav"))),
            ("application/ogg", b"OggS\0", Some((ContentKind::Sound, "audio/ogg"))),
            ("audio/mpeg", b"ID3\x04", Some((ContentKind::Sound, "audio/mpeg"))),
            ("application/pdf", b"%PDF-1.7\n", Some((ContentKind::Pdf, "application/pdf"))),
            // What says that it is something else is nothing to show.
            ("text/html", &png[..], None),
            ("text/html", b"%PDF-1.7<script>", None),
            ("image/png", b"%PDF-1.7", None),
            ("application/pdf", &png[..], None),
            ("image/png", b"<html><script>", None),
            ("image/png", b"", None),
            ("image/webp", b"RIFF", None),
            ("application/json", b"{}", None),
        ] {
            assert_eq!(seen(declared, content), shown, "{declared} {content:?}");
        }
    }

    #[test]
    fn a_drawing_is_one_by_its_declared_type_and_its_element_alone() {
        let drawing = b"<?xml version=\"1.0\"?><!-- a --><svg onload=\"alert(1)\"/>";
        assert_eq!(seen("image/svg+xml", drawing), Some((ContentKind::Image, "image/svg+xml")));
        for declared in ["", "image/png", "text/xml", "application/octet-stream"] {
            assert_eq!(seen(declared, drawing), None, "{declared}");
        }
        for none in [&b"<html><body></body></html>"[..], b"", b"<svg\xff", &[b' '; 4096]] {
            assert_eq!(seen("image/svg+xml", none), None, "{none:?}");
        }
    }
}
