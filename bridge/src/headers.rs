//! Headers that are never passed on: of a caller to an upstream, and of an upstream to a caller.

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

/// Tells whether a header of an answer is passed on to nobody, whoever wants it: it speaks for a connection or for the place
/// that the answer is read at, leaves something behind in a browser, or is this network's own.
pub fn answer_header_is_forbidden(name: &str) -> bool {
    const FORBIDDEN: &[&str] = &[
        "accept-ch",
        "alt-svc",
        "clear-site-data",
        "connection",
        "critical-ch",
        "keep-alive",
        "nel",
        "public-key-pins",
        "refresh",
        "report-to",
        "reporting-endpoints",
        "server-timing",
        "service-worker-allowed",
        "set-cookie",
        "set-cookie2",
        "set-login",
        "sourcemap",
        "strict-transport-security",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
        "use-as-dictionary",
        "www-authenticate",
        "x-frame-options",
        "x-reproxy-url",
        "x-sourcemap",
    ];
    // Those of `x-accel-` and the like are orders to a proxy before the gateway: which file to answer with, what to keep.
    const FORBIDDEN_PREFIXES: &[&str] = &[
        "access-control-",
        "content-security-policy",
        "cross-origin-",
        "proxy-",
        "sec-",
        "secure-session-",
        "surrogate-",
        "x-accel-",
        "x-farthing-",
        "x-lighttpd-",
        "x-sendfile",
    ];
    let begins_with = |prefix: &str| {
        name.as_bytes().get(..prefix.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(prefix.as_bytes()))
    };
    FORBIDDEN.iter().any(|one| name.eq_ignore_ascii_case(one))
        || FORBIDDEN_PREFIXES.iter().any(|prefix| begins_with(prefix))
}

/// Ways to pack an answer that everybody means the same by.
const CODINGS: [&str; 3] = ["gzip", "br", "zstd"];

/// Returns those ways to pack an answer that an `accept-encoding` header asks for and everybody knows, as such a header;
/// `None` when there are none. What a server cannot do is left out, so that nobody has it fail by asking for it.
#[must_use]
pub fn codings(accept_encoding: &str) -> Option<String> {
    let wanted: Vec<String> = accept_encoding.split(',').filter_map(wanted_coding).collect();
    let known: Vec<&str> =
        CODINGS.into_iter().filter(|known| wanted.iter().any(|one| one == known)).collect();
    (!known.is_empty()).then(|| known.join(", "))
}

/// The name of one item, unless its weight is nothing.
fn wanted_coding(item: &str) -> Option<String> {
    let (name, weight) = item.split_once(';').unwrap_or((item, ""));
    let weight = weight.trim().to_ascii_lowercase();
    let is_nothing = |weight: &str| !weight.is_empty() && weight.bytes().all(|b| matches!(b, b'0' | b'.'));
    let is_refused = weight.strip_prefix("q=").is_some_and(|weight| is_nothing(weight.trim()));
    (!is_refused).then(|| name.trim().to_ascii_lowercase())
}

/// Tells whether an answer that is packed like this was asked for by `codings`, which [`codings()`] has made.
#[must_use]
pub fn is_asked_for(content_encoding: &str, codings: Option<&str>) -> bool {
    let asked = || codings.into_iter().flat_map(|codings| codings.split(", "));
    asked().any(|asked| asked.eq_ignore_ascii_case(content_encoding.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_packed_as_everybody_knows_and_as_was_asked_for() {
        for (said, expected) in [
            ("gzip, deflate, br, zstd", Some("gzip, br, zstd")),
            ("BR;q=1.0, GZip ; Q=0.5, *;q=0", Some("gzip, br")),
            ("gzip;q=0, br;q=0.000", None),
            ("identity;q=0, nonsense", None),
            ("*", None),
            ("", None),
        ] {
            assert_eq!(codings(said).as_deref(), expected, "{said}");
        }
        assert!(is_asked_for("GZIP", Some("gzip, br")));
        for (packed, asked) in
            [("zstd", Some("gzip, br")), ("gzip, br", Some("gzip, br")), ("gzip", None), ("", Some("gzip"))]
        {
            assert!(!is_asked_for(packed, asked), "{packed} of {asked:?}");
        }
    }

    #[test]
    fn no_answer_sets_a_cookie_or_speaks_for_its_place() {
        for name in [
            "Set-Cookie",
            "connection",
            "X-Farthing-Charged",
            "access-control-allow-origin",
            "proxy-status",
            "x-accel-redirect",
            "X-Sendfile",
        ] {
            assert!(answer_header_is_forbidden(name), "{name}");
        }
        for name in ["etag", "link", "x-rate-limit", "content-disposition", "x-proxy"] {
            assert!(!answer_header_is_forbidden(name), "{name}");
        }
    }
}
