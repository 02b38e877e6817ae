//! Headers of every answer of the console: run nothing but ours, embed nothing, tell nobody.

use axum::{extract::Request, middleware::Next, response::Response};
use http::{HeaderName, HeaderValue, header};

const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; font-src 'self'; img-src 'self' data:; \
                      connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'; \
                      require-trusted-types-for 'script'";
const OWN_ONLY: &str = "connect-src 'self'";

/// Of a page that may ask one other origin: the console's own name.
#[derive(Debug, Clone)]
pub(super) struct MayAsk(pub(super) String);

/// Of a page that plays or frames what a service answered, from the console's own origin.
#[derive(Debug, Clone, Copy)]
pub(super) struct ShowsContent;
const SHOWN_CONTENT: &str = "media-src 'self'; frame-src 'self'";

/// Of what a service answered, as it came: it loads nothing, runs nothing, and stands in pages of ours alone.
#[derive(Debug, Clone, Copy)]
pub(super) struct IsContent;
const CONTENT_POLICY: &str = "default-src 'none'; sandbox; frame-ancestors 'self'";

const HEADERS: [(HeaderName, &str); 7] = [
    (header::CONTENT_SECURITY_POLICY, POLICY),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "no-referrer"),
    // The older form of frame-ancestors.
    (header::X_FRAME_OPTIONS, "DENY"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    (
        HeaderName::from_static("permissions-policy"),
        "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
    ),
];

/// Adds the headers. What does not say how long it may be kept is not kept.
pub(super) async fn secure(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    let policy = policy(&mut response);
    let is_content = response.extensions_mut().remove::<IsContent>().is_some();
    let headers = response.headers_mut();
    for (name, value) in HEADERS {
        headers.insert(name, HeaderValue::from_static(value));
    }
    if let Some(policy) = policy.and_then(|policy| HeaderValue::try_from(policy).ok()) {
        headers.insert(header::CONTENT_SECURITY_POLICY, policy);
    }
    if is_content {
        headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(CONTENT_POLICY));
        headers.insert(header::X_FRAME_OPTIONS, HeaderValue::from_static("SAMEORIGIN"));
    }
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}

/// The policy of a page that needs another one than all others.
fn policy(response: &mut Response) -> Option<String> {
    let extensions = response.extensions_mut();
    if let Some(MayAsk(other)) = extensions.remove() {
        return Some(POLICY.replace(OWN_ONLY, &format!("{OWN_ONLY} {other}")));
    }
    let ShowsContent = extensions.remove()?;
    Some(format!("{POLICY}; {SHOWN_CONTENT}"))
}
