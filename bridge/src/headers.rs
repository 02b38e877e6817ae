//! Headers that a caller may never set at an upstream.

/// Tells whether servers may take a name in a query or a body, as [`base_name`](crate::base_name) gives it, for the method
/// that they are asked with.
pub(crate) fn names_another_method(base: &str) -> bool {
    ["_method", "x-http-method", "x-http-method-override", "x-method-override"].contains(&base)
}

/// Tells whether a name, as [`base_name`](crate::base_name) gives it, says something else to some servers.
pub(crate) fn is_ambiguous(base: &str) -> bool {
    base.is_empty() || names_another_method(base)
}

/// Headers that no parameter can set at an upstream: they carry the owner's authority, describe the connection or
/// the body, or make a server believe it was asked something else.
pub fn header_is_forbidden(name: &str) -> bool {
    const FORBIDDEN: &[&str] = &[
        "authorization",
        "connection",
        "content-encoding",
        "content-length",
        "content-type",
        "cookie",
        "expect",
        "forwarded",
        "front-end-https",
        "host",
        "keep-alive",
        "max-forwards",
        "metadata",
        "metadata-flavor",
        "origin",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "referer",
        "set-cookie",
        "te",
        "trailer",
        "transfer-encoding",
        "true-client-ip",
        "upgrade",
        "via",
        "x-aws-ec2-metadata-token",
        "x-client-ip",
        "x-cluster-client-ip",
        "x-google-metadata-request",
        "x-host",
        "x-http-method",
        "x-http-method-override",
        "x-identity-trust-domain",
        "x-method-override",
        "x-original-host",
        "x-original-url",
        "x-real-ip",
        "x-rewrite-url",
    ];
    const FORBIDDEN_PREFIXES: &[&str] =
        &["x-forwarded", "x-farthing-", "sec-", "proxy-", "x-aws-ec2-metadata"];
    let name = name.to_ascii_lowercase();
    // Some servers read `x_forwarded_for` as `x-forwarded-for`, so underscores are refused altogether.
    let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'-';
    name.is_empty()
        || !name.bytes().all(plain)
        || FORBIDDEN.contains(&name.as_str())
        || FORBIDDEN_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}
