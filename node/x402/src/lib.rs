//! x402 as a node speaks it: what a payer is offered, what it sends, and what it is answered; and the same of servers that this
//! node pays.
//!
//! Versions 1 and 2 over HTTP, scheme `exact` with EIP-3009. Everything here is pure: headers and JSON in, decisions out.
//! The forms are read from the raw JSON, so that members which a later version adds do no harm.
//!
//! Reading order: `chains` → `terms` → `payment` → `settled` → `offer`.

mod chains;
mod offer;
mod payment;
mod settled;
mod terms;
#[cfg(test)]
mod testing;

use farthing_values::plain::Line;

pub use chains::Version;
pub use offer::{DESCRIPTION_CHARS_MAX, NoOffer, OFFERS_BYTES_MAX, Offer, Offers};
pub use payment::{InvalidPayment, Malformed, PAYMENT_BYTES_MAX, ReceivedPayment, read, read_json};
pub use settled::{SettlementHeard, SettlementTold};
pub use terms::Terms;

/// The scheme that is spoken: the payer signs for exactly the price.
pub(crate) const EXACT: &str = "exact";

/// Base64 of JSON, as all headers of x402 are.
fn header(value: &serde_json::Value) -> String {
    use base64::{Engine as _, engine::general_purpose::STANDARD};
    STANDARD.encode(value.to_string())
}

/// A stranger's words in one line of at most so many characters, without signs that hide or reorder text.
fn words(text: &str, chars_max: usize) -> String {
    let signs = text.chars().map(|sign| if sign.is_whitespace() { ' ' } else { sign });
    let line: String = signs.filter(|sign| Line::Prose.holds(*sign)).take(chars_max).collect();
    line.trim().to_owned()
}
