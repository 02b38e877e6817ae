//! Money of wallets that a restored backup took the place of: this node does not follow their channels.
//!
//! What each of them had in channels is noted beside its files when it is replaced ([`crate::backup::staged`]). It is told until
//! the files are gone, whoever looks after that wallet meanwhile: this node cannot see it.

use std::{collections::BTreeSet, fs, path::Path};

use farthing_control::types::{
    Alert, AlertKind,
    AlertSeverity::{Error, Warning},
    WalletBalance,
};
use farthing_os::file_names;
use farthing_protocol::Address;

use crate::backup::replaced;

/// The money of one wallet, and the folder of the data folder that has its files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MoneyLeft {
    pub(super) folder: String,
    pub(super) balance: WalletBalance,
}

impl MoneyLeft {
    /// Reads what each wallet but `own` had when it was replaced last. A note that cannot be read tells nothing.
    pub fn read(data_dir: &Path, own: Address) -> Vec<Self> {
        let replaced = replaced::all(data_dir).unwrap_or_else(|error| {
            tracing::warn!(%error, "what replaced nodes left is not known");
            Vec::new()
        });
        let mut wallets = BTreeSet::from([own.to_string()]);
        let mut left = Vec::new();
        for node in replaced {
            // The newest come first: of one that was put back and replaced again, the older note is out of date.
            if node.wallet.is_none_or(|wallet| !wallets.insert(wallet)) {
                continue;
            }
            let json = fs::read(data_dir.join(&node.name).join(file_names::LEFT)).unwrap_or_default();
            let balance = serde_json::from_slice(&json).ok().filter(has_money);
            left.extend(balance.map(|balance| Self { folder: node.name, balance }));
        }
        left
    }

    /// Tells whether its files are there still.
    pub(super) fn is_kept(&self, data_dir: &Path) -> bool {
        data_dir.join(&self.folder).is_dir()
    }
}

fn has_money(balance: &WalletBalance) -> bool {
    !(balance.in_channels.0.is_zero() && balance.unclaimed.0.is_zero())
}

/// Tells of one wallet. It is an error where money was earned: a payer withdraws what is not claimed in time.
pub(super) fn alert(money: &MoneyLeft) -> Alert {
    let MoneyLeft { folder, balance: WalletBalance { address, in_channels, unclaimed, .. } } = money;
    let (severity, threat) = match unclaimed.0.is_zero() {
        true => (Warning, ""),
        false => (Error, ", and payers can withdraw what was earned"),
    };
    let cause = format!(
        "a restored backup replaced the wallet {address}, which had {in_channels} USDC in channels and {unclaimed} USDC earned \
         and not claimed then. This node follows none of its channels{threat}"
    );
    let action = format!(
        "put its files, which are in `{folder}` in the data folder, into a folder of their own, and run `farthing settle now` and \
         `farthing channel close` on a node there; `farthing backup forget {folder}` removes that wallet and ends this alert"
    );
    Alert::new(AlertKind::MoneyLeft, severity, cause, action).about(address)
}

#[cfg(test)]
mod tests {
    use farthing_protocol::Usdc;

    use super::*;

    fn balance(wallet: u8, in_channels: u64, unclaimed: u64) -> WalletBalance {
        WalletBalance {
            address: Address::from_bytes([wallet; 20]).into(),
            usdc: None,
            eth: None,
            in_channels: Usdc::from_micros(in_channels).into(),
            unclaimed: Usdc::from_micros(unclaimed).into(),
            stale: None,
        }
    }

    #[test]
    fn what_a_replaced_wallet_has_in_channels_is_told_until_its_files_are_gone() {
        let data = tempfile::tempdir().unwrap();
        let replaced = |name: &str, wallet: u8, note: Option<WalletBalance>| {
            let folder = data.path().join(name);
            fs::create_dir(&folder).unwrap();
            let address = Address::from_bytes([wallet; 20]);
            let json = serde_json::json!({ "address": address.to_string() }).to_string();
            fs::write(folder.join(file_names::WALLET), json).unwrap();
            if let Some(note) = note {
                fs::write(folder.join(file_names::LEFT), serde_json::to_vec(&note).unwrap()).unwrap();
            }
        };
        let own = Address::from_bytes([9; 20]);
        assert_eq!(MoneyLeft::read(data.path(), own), []);
        replaced("replaced-1", 1, Some(balance(1, 40_000, 2_000)));
        replaced("replaced-2", 2, Some(balance(2, 5, 0)));
        replaced("replaced-3", 3, Some(balance(3, 0, 0)));
        replaced("replaced-4", 9, Some(balance(9, 7, 7)));
        replaced("replaced-5", 4, None);
        replaced("replaced-6", 2, Some(balance(2, 60, 0)));
        let left = MoneyLeft::read(data.path(), own);
        let alerts: Vec<Alert> = left.iter().map(alert).collect();
        assert_eq!(alerts.len(), 2, "neither one's own nor one without money: {alerts:?}");
        assert_eq!((alerts[0].severity, alerts[1].severity), (Warning, Error));
        assert!(alerts[0].cause.contains("had 0.00006 USDC in channels"), "as it was last: {alerts:?}");
        assert!(alerts[1].cause.contains("had 0.04 USDC in channels and 0.002 USDC earned"), "{alerts:?}");
        assert!(alerts[1].action.contains("`farthing backup forget replaced-1`"), "{alerts:?}");
        assert_eq!(alerts[1].subject, Address::from_bytes([1; 20]).to_string());

        fs::remove_dir_all(data.path().join("replaced-1")).unwrap();
        let kept: Vec<bool> = left.iter().map(|left| left.is_kept(data.path())).collect();
        assert_eq!(kept, [true, false]);
    }
}
