//! Headers that are for the gateway itself: `x-farthing-…`, the caller's secret and the id of the call.
//!
//! A caller sends one to guard its money. So one of this network's that does not exist, and any that is there twice, is
//! refused: a limit that is passed over in silence guards nothing.

use axum::http::{HeaderMap, HeaderName, HeaderValue};
use farthing_bridge::shown;
use farthing_protocol::Usdc;

use super::problem::Problem;

/// The highest price of the call in USDC, as `max_price` in the body of `POST /internal/call`.
pub(super) const MAX_PRICE: &str = "x-farthing-max-price";

/// The beginning of every name that is this network's.
const PREFIX: &str = "x-farthing-";

/// The limit that a request's headers name, after a look at all that are this network's.
///
/// # Errors
/// A [`Problem`] that names the header and what was expected.
pub(super) fn max_price(headers: &HeaderMap) -> Result<Option<Usdc>, Problem> {
    let mut names = headers.keys().map(HeaderName::as_str);
    if let Some(unknown) = names.find(|name| is_own(name) && *name != MAX_PRICE) {
        return Err(Problem::malformed(format!(
            "there is no header `{}`; the only `x-farthing-` header of a request is `{MAX_PRICE}`",
            shown(unknown)
        )));
    }
    let Some(value) = only(headers, MAX_PRICE)? else { return Ok(None) };
    let text =
        value.to_str().map_err(|_| Problem::malformed(format!("`{MAX_PRICE}` must be printable ASCII")))?;
    text.parse::<Usdc>().map(Some).map_err(|e| Problem::malformed(format!("`{MAX_PRICE}`: {e}")))
}

/// The value of a header that a request may have once, also of one that is for the service.
///
/// # Errors
/// A [`Problem`] that names the header, when it is there more than once.
pub(super) fn only<'h>(headers: &'h HeaderMap, name: &str) -> Result<Option<&'h HeaderValue>, Problem> {
    let mut values = headers.get_all(name).iter();
    let value = values.next();
    match values.next() {
        None => Ok(value),
        Some(_) => Err(Problem::malformed(format!("`{name}` is there more than once; send it once"))),
    }
}

/// Tells whether a name is one of this network's; some programs write `_` for `-`.
fn is_own(name: &str) -> bool {
    let is_prefix = name.bytes().zip(PREFIX.bytes()).all(|(is, own)| is == own || (is, own) == (b'_', b'-'));
    is_prefix && name.len() >= PREFIX.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(sent: &[(&'static str, &'static str)]) -> Result<Option<Usdc>, String> {
        let mut headers = HeaderMap::new();
        for (name, value) in sent {
            headers.append(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        max_price(&headers).map_err(|problem| problem.detail)
    }

    #[test]
    fn a_limit_is_read_or_refused_and_never_passed_over() {
        assert_eq!(read(&[("accept", "a"), ("x-request-id", "7"), ("x-farthingale", "silk")]), Ok(None));
        assert_eq!(read(&[("x-farthing-max-price", "0.001")]), Ok(Some(Usdc::from_micros(1_000))));
        for (sent, expected) in [
            (&[("x-farthing-max-price-usdc", "0.001")][..], "no header `x-farthing-max-price-usdc`"),
            (&[("x-farthing-maxprice", "0.001")], "no header `x-farthing-maxprice`"),
            (&[("x_farthing_max_price", "0.001")], "no header `x_farthing_max_price`"),
            (&[("x-farthing-max-price", "0.001"), ("x-farthing-cap", "1")], "no header `x-farthing-cap`"),
            (&[("x-farthing-call-id", "7")], "of a request is `x-farthing-max-price`"),
            (&[("x-farthing-max-price", "1"), ("x-farthing-max-price", "0.001")], "more than once"),
            (&[("x-farthing-max-price", "")], "`x-farthing-max-price`: "),
            (&[("x-farthing-max-price", "cheap")], "`x-farthing-max-price`: "),
        ] {
            let refused = read(sent).expect_err(expected);
            assert!(refused.contains(expected), "{sent:?}: {refused}");
        }
    }
}
