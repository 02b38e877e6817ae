//! Names that the user gave to other wallets, for rows that name one.

use std::collections::HashMap;

use farthing_control::{Local, endpoint};
use farthing_values::Address;

use crate::{failure::Failure, show};

/// The user's names of wallets.
#[derive(Debug, Default)]
pub(super) struct PeerNames(HashMap<Address, String>);

impl PeerNames {
    pub(super) async fn of(node: &Local) -> Result<Self, Failure> {
        let named = node.ask(endpoint::Petnames).await?.into_iter();
        let named = named.filter(|one| !one.name.is_empty());
        Ok(Self(named.map(|one| (one.wallet.0, show::visible(&one.name))).collect()))
    }

    pub(super) fn get(&self, wallet: Address) -> Option<&str> {
        self.0.get(&wallet).map(String::as_str)
    }

    /// The user's name of a wallet, or the ends of its address.
    pub(super) fn short(&self, wallet: Address) -> String {
        self.get(wallet).map_or_else(|| show::short(wallet), str::to_owned)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wallet_that_the_user_named_goes_by_that_name() {
        let (named, other) = (Address::from_bytes([1; 20]), Address::from_bytes([2; 20]));
        let names = PeerNames(HashMap::from([(named, "Harbour office".to_owned())]));
        assert_eq!(names.short(named), "Harbour office");
        assert_eq!(names.short(other), show::short(other));
    }
}
