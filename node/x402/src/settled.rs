//! The word on a payment that goes with an answer.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use farthing_values::{Address, Hash};
use serde::Deserialize;
use serde_json::json;

use super::{header, words};

/// As much of a server's reason as its sentence has room for.
const REASON_CHARS_MAX: usize = 100;
/// Longer words on a payment than any server has.
const HEARD_BYTES_MAX: usize = 16 * 1024;

/// The end of a payment, as its payer is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettlementTold {
    pub payer: Address,
    /// The chain, in the words of the payer's version.
    pub network: String,
    /// The transaction that paid.
    pub transaction: Option<Hash>,
    /// The code of the reason that it is not paid, or not yet.
    pub error: Option<&'static str>,
}

impl SettlementTold {
    /// The header `PAYMENT-RESPONSE` of version 2, or `X-PAYMENT-RESPONSE` of version 1.
    #[must_use]
    pub fn header(&self) -> String {
        let transaction = self.transaction.map(|hash| format!("0x{}", hex::encode(hash)));
        let mut told = json!({
            "success": self.error.is_none(),
            "payer": self.payer.to_string(),
            "transaction": transaction.unwrap_or_default(),
            "network": self.network,
        });
        if let Some(error) = self.error {
            told["errorReason"] = error.into();
        }
        header(&told)
    }
}

/// The end of a payment, as a server tells it to this node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettlementHeard {
    pub success: bool,
    /// The transaction that paid, where the server names one.
    pub transaction: Option<Hash>,
    /// The server's reason that it is not paid.
    pub error: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct HeardJson {
    success: bool,
    transaction: Option<String>,
    error_reason: Option<String>,
}

impl SettlementHeard {
    /// Reads the header `PAYMENT-RESPONSE` of version 2, or `X-PAYMENT-RESPONSE` of version 1; `None` for anything else.
    #[must_use]
    pub fn read(header: &[u8]) -> Option<Self> {
        let json = Some(header).filter(|header| header.len() <= HEARD_BYTES_MAX)?;
        let heard: HeardJson = serde_json::from_slice(&STANDARD.decode(json).ok()?).ok()?;
        let digits = heard.transaction.as_deref().and_then(|text| text.strip_prefix("0x"));
        let transaction = digits.and_then(|digits| hex::decode(digits).ok()?.try_into().ok());
        let error = heard.error_reason.map(|reason| words(&reason, REASON_CHARS_MAX));
        Some(Self { success: heard.success, transaction, error })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn told(transaction: Option<Hash>, error: Option<&'static str>) -> Value {
        let (payer, network) = (Address::from_bytes([1; 20]), "base".to_owned());
        let header = SettlementTold { payer, network, transaction, error }.header();
        serde_json::from_slice(&STANDARD.decode(header).unwrap()).unwrap()
    }

    #[test]
    fn a_payer_is_told_the_transaction_or_the_reason() {
        let paid = told(Some([7; 32]), None);
        assert_eq!((&paid["success"], &paid["network"]), (&json!(true), &json!("base")));
        assert_eq!(paid["transaction"], format!("0x{}", "07".repeat(32)));
        assert!(paid.get("errorReason").is_none());
        let unpaid = told(None, Some("insufficient_funds"));
        assert_eq!((&unpaid["success"], &unpaid["transaction"]), (&json!(false), &json!("")));
        assert_eq!(unpaid["errorReason"], "insufficient_funds");
    }
    #[test]
    fn a_servers_word_on_a_payment_is_read_as_an_owner_of_this_network_writes_it() {
        let (payer, network) = (Address::from_bytes([1; 20]), "eip155:8453".to_owned());
        let told = SettlementTold { payer, network, transaction: Some([7; 32]), error: None };
        let heard = SettlementHeard::read(told.header().as_bytes()).unwrap();
        assert_eq!((heard.success, heard.transaction, heard.error), (true, Some([7; 32]), None));
        let told = SettlementTold { transaction: None, error: Some("insufficient_funds"), ..told };
        let heard = SettlementHeard::read(told.header().as_bytes()).unwrap();
        assert_eq!((heard.success, heard.transaction), (false, None));
        assert_eq!(heard.error.as_deref(), Some("insufficient_funds"));
        for nothing in [&b""[..], b"e30=", b"{}", "A".repeat(HEARD_BYTES_MAX + 1).as_bytes()] {
            assert_eq!(SettlementHeard::read(nothing), None);
        }
    }
}
