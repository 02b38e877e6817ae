//! The terms of one call, and how they are told to a payer in both versions.

use farthing_values::{Address, TokenDomain, Usdc};
use serde_json::{Value, json};

use super::{EXACT, chains, header};

/// The price of a call, and the one way to pay it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Terms {
    pub price: Usdc,
    pub pay_to: Address,
    /// The token, with the domain that its payers sign in.
    pub token: TokenDomain,
    /// The time that an authorization has to be valid for from now on.
    pub timeout_secs: u64,
    /// One line on the service, for people.
    pub description: String,
}

impl Terms {
    /// The header `PAYMENT-REQUIRED` of version 2. `resource` is the call's URL, `error` the reason that a payment is (still)
    /// asked for.
    #[must_use]
    pub fn required_header(&self, resource: &str, error: &str) -> String {
        let accepted = json!({
            "scheme": EXACT,
            "network": chains::by_number(self.token.chain_id),
            "amount": self.price.micros().to_string(),
            "asset": self.token.token.to_string(),
            "payTo": self.pay_to.to_string(),
            "maxTimeoutSeconds": self.timeout_secs,
            "extra": self.extra(),
        });
        header(&json!({
            "x402Version": 2,
            "error": error,
            "resource": { "url": resource, "description": self.description },
            "accepts": [accepted],
        }))
    }

    /// The body of the same answer, which version 1 reads. It offers nothing if version 1 has no name for the chain.
    #[must_use]
    pub fn required_body(&self, resource: &str, error: &str) -> Value {
        let offered = chains::by_word(self.token.chain_id).map(|network| {
            json!({
                "scheme": EXACT,
                "network": network,
                "maxAmountRequired": self.price.micros().to_string(),
                "resource": resource,
                "description": self.description,
                "mimeType": "application/json",
                "payTo": self.pay_to.to_string(),
                "maxTimeoutSeconds": self.timeout_secs,
                "asset": self.token.token.to_string(),
                "extra": self.extra(),
            })
        });
        json!({ "x402Version": 1, "error": error, "accepts": offered.into_iter().collect::<Vec<_>>() })
    }

    fn extra(&self) -> Value {
        json!({ "name": self.token.name, "version": self.token.version })
    }
}

#[cfg(test)]
mod tests {
    use base64::{Engine as _, engine::general_purpose::STANDARD};

    use super::*;
    use crate::{Version, testing::terms};

    const URL: &str = "https://data.example/0b5f2a3e-6a3c-4c39-9a65-6a1c3f1d2e4b/ok";

    #[test]
    fn one_answer_has_the_terms_of_both_versions() {
        let terms = terms(84_532);
        let told = STANDARD.decode(terms.required_header(URL, "why")).unwrap();
        let told: Value = serde_json::from_slice(&told).unwrap();
        let [token, payee] = [terms.token.token, terms.pay_to].map(|address| address.to_string());
        assert_eq!(
            told,
            json!({
                "x402Version": 2,
                "error": "why",
                "resource": { "url": URL, "description": terms.description },
                "accepts": [{
                    "scheme": "exact", "network": "eip155:84532", "amount": "2000", "asset": token, "payTo": payee,
                    "maxTimeoutSeconds": 300, "extra": { "name": "USDC", "version": "2" },
                }],
            })
        );
        assert_eq!(
            terms.required_body(URL, "why"),
            json!({
                "x402Version": 1,
                "error": "why",
                "accepts": [{
                    "scheme": "exact", "network": "base-sepolia", "maxAmountRequired": "2000", "resource": URL,
                    "description": terms.description, "mimeType": "application/json", "payTo": payee,
                    "maxTimeoutSeconds": 300, "asset": token, "extra": { "name": "USDC", "version": "2" },
                }],
            })
        );
    }

    #[test]
    fn a_chain_that_version_1_has_no_word_for_is_offered_in_version_2_alone() {
        let terms = terms(31_337);
        assert_eq!(terms.required_body(URL, "why")["accepts"], json!([]));
        assert_eq!(Version::One.network(31_337), None);
        assert_eq!(Version::Two.network(31_337).as_deref(), Some("eip155:31337"));
    }
}
