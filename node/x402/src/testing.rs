//! What tests of several modules share.

use farthing_values::{Address, TokenDomain, Usdc};

use super::Terms;

pub(crate) fn terms(chain_id: u64) -> Terms {
    let token = Address::from_bytes([9; 20]);
    Terms {
        price: Usdc::from_micros(2_000),
        pay_to: Address::from_bytes([2; 20]),
        token: TokenDomain { name: "USDC".to_owned(), version: "2".to_owned(), chain_id, token },
        timeout_secs: 300,
        description: "Earthquakes: Where the ground shook".to_owned(),
    }
}
