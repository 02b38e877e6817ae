//! The word on a payment that goes with an answer.

use farthing_protocol::{Address, Hash};
use serde_json::json;

use super::header;

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

#[cfg(test)]
mod tests {
    use base64::{Engine as _, engine::general_purpose::STANDARD};
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
}
