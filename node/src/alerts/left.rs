//! Money of nodes that a restored backup took the place of: of other wallets this node follows no channels, and of its own the
//! files may have better vouchers ([`better`]).
//!
//! What each of them had is noted beside its files when its node ends ([`crate::backup::staged`]). It is told until the files
//! are gone, whoever looks after that wallet meanwhile: this node cannot see it. A wallet that was replaced more than once has a
//! ledger in each folder, and the vouchers of an older one may be the better ones: so all of them are told.

use std::{collections::BTreeMap, path::Path};

use farthing_control::types::{
    Alert, AlertKind,
    AlertSeverity::{Error, Warning},
    ReplacedNode, WalletBalance,
};
use farthing_owner::book::Book;
use farthing_protocol::{Address, ChannelId, channel::PayeeState};

use crate::backup::replaced;

mod better;

use better::BetterVouchers;

/// The money of one wallet, as it is noted in the folders of the data folder that have its files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MoneyLeft {
    pub(super) wallet: String,
    /// Those of another wallet than the node's own, the newest first.
    pub(super) folders: Vec<ReplacedNode>,
    /// Those of its own.
    pub(super) better: Vec<BetterVouchers>,
}

/// Returns what is there still of `left`, and beyond the books of this node.
pub(super) fn still(left: &[MoneyLeft], data_dir: &Path, book: &Book) -> Vec<MoneyLeft> {
    let now = |id| book.get(id).map(|channel| channel.state);
    left.iter().filter_map(|left| left.kept(data_dir, now)).collect()
}

impl MoneyLeft {
    /// Reads what each wallet had when it was replaced, and of `own` what was earned and not claimed.
    pub fn read(data_dir: &Path, own: Address) -> Vec<Self> {
        let replaced = replaced::all(data_dir).unwrap_or_else(|error| {
            tracing::warn!(%error, "the money of replaced nodes is not known");
            Vec::new()
        });
        let own = own.to_string();
        let mut wallets = BTreeMap::<String, Vec<ReplacedNode>>::new();
        let mut better = Vec::new();
        for node in replaced {
            match node.wallet.clone() {
                Some(wallet) if wallet == own => better.extend(BetterVouchers::read(data_dir, &node)),
                Some(wallet) => wallets.entry(wallet).or_default().push(node),
                None => {}
            }
        }
        let left = wallets.into_iter().map(|(wallet, folders)| Self { wallet, folders, better: Vec::new() });
        let own = Self { wallet: own, folders: Vec::new(), better };
        left.chain([own]).filter(Self::has_money).collect()
    }

    /// Returns what is there still; `None` once no folder is left that tells of money beyond what the books know `now`.
    fn kept(&self, data_dir: &Path, now: impl Fn(ChannelId) -> Option<PayeeState>) -> Option<Self> {
        let is_there = |name: &str| data_dir.join(name).is_dir();
        let folders = self.folders.iter().filter(|node| is_there(&node.name)).cloned().collect();
        let better = self.better.iter().filter(|one| is_there(&one.folder));
        let better = better.filter_map(|one| one.compared(&now)).collect();
        Some(Self { wallet: self.wallet.clone(), folders, better }).filter(Self::has_money)
    }

    fn notes(&self) -> impl Iterator<Item = &WalletBalance> {
        self.folders.iter().filter_map(|node| node.left.as_ref())
    }

    fn has_money(&self) -> bool {
        !self.better.is_empty() || self.notes().any(has_money)
    }
}

/// Tells whether there is any. What the chain had not shown may be some.
fn has_money(balance: &WalletBalance) -> bool {
    let WalletBalance { usdc, eth, in_channels, unclaimed, .. } = balance;
    let is_empty = in_channels.0.is_zero()
        && unclaimed.0.is_zero()
        && usdc.is_some_and(|usdc| usdc.0.is_zero())
        && eth.is_some_and(|eth| eth.0.wei == 0);
    !is_empty
}

/// Tells of one wallet. It is an error where money was earned: a payer withdraws what is not claimed in time.
pub(super) fn alert(money: &MoneyLeft) -> Alert {
    let MoneyLeft { wallet, folders, better } = money;
    if !better.is_empty() {
        return better::alert(wallet, better);
    }
    let (severity, threat) = match money.notes().all(|balance| balance.unclaimed.0.is_zero()) {
        true => (Warning, ""),
        false => (Error, ", and payers can withdraw what was earned"),
    };
    let had = folders.iter().map(|node| {
        let sums = node.left.as_ref().map_or_else(|| "an unknown amount".to_owned(), WalletBalance::sums);
        format!("{sums} when its files were moved to `{}`", node.name)
    });
    let cause = format!(
        "a restored backup replaced the wallet {wallet}, which had {}. This node follows none of its channels{threat}",
        had.collect::<Vec<_>>().join("; and ")
    );
    let forget = folders.iter().map(|node| format!("`farthing backup forget {}`", node.name));
    let forget = forget.collect::<Vec<_>>().join(", ");
    let (files, ends) = match folders.as_slice() {
        [one] => (
            format!("its files, which are in `{}` in the data folder,", one.name),
            format!("{forget} removes that wallet and ends this alert"),
        ),
        _ => (
            "the files of one of these folders of the data folder, the one with the most earned first,"
                .to_owned(),
            format!("{forget} remove that wallet; this alert ends when all are gone"),
        ),
    };
    let action = format!(
        "copy {files} into another folder, and run `farthing settle now` and `farthing channel close` with a node \
         there; {ends}"
    );
    Alert::new(AlertKind::MoneyLeft, severity, cause, action).about(wallet)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use farthing_control::types::Eth;
    use farthing_os::file_names;
    use farthing_protocol::Usdc;

    use super::*;
    use crate::backup::money_at_end::EarnedOn;

    fn balance(wallet: u8, in_channels: u64, unclaimed: u64) -> WalletBalance {
        WalletBalance {
            address: Address::from_bytes([wallet; 20]).into(),
            usdc: Some(Usdc::ZERO.into()),
            eth: Some(Eth { wei: 0 }.into()),
            in_channels: Usdc::from_micros(in_channels).into(),
            unclaimed: Usdc::from_micros(unclaimed).into(),
            stale: None,
        }
    }

    fn replaced(data_dir: &Path, name: &str, wallet: u8, note: Option<WalletBalance>) {
        let folder = data_dir.join(name);
        fs::create_dir(&folder).unwrap();
        let address = Address::from_bytes([wallet; 20]);
        let json = serde_json::json!({ "address": address.to_string() }).to_string();
        fs::write(folder.join(file_names::WALLET), json).unwrap();
        if let Some(note) = note {
            fs::write(folder.join(file_names::LEFT), serde_json::to_vec(&note).unwrap()).unwrap();
        }
    }

    const OWN: Address = Address::from_bytes([9; 20]);

    #[test]
    fn what_a_replaced_wallet_has_is_told_until_its_files_are_gone() {
        let data = tempfile::tempdir().unwrap();
        assert_eq!(MoneyLeft::read(data.path(), OWN), []);
        replaced(data.path(), "replaced-1", 1, Some(balance(1, 40_000, 2_000)));
        replaced(data.path(), "replaced-2", 2, Some(balance(2, 5, 0)));
        replaced(data.path(), "replaced-3", 3, Some(balance(3, 0, 0)));
        replaced(data.path(), "replaced-4", 9, Some(balance(9, 7, 7)));
        replaced(data.path(), "replaced-5", 4, None);
        let left = MoneyLeft::read(data.path(), OWN);
        let alerts: Vec<Alert> = left.iter().map(alert).collect();
        assert_eq!(alerts.len(), 2, "neither one's own nor one without money: {alerts:?}");
        assert_eq!((alerts[0].severity, alerts[1].severity), (Error, Warning));
        assert!(alerts[0].cause.contains("had 0.04 USDC in channels, 0.002 USDC earned"), "{alerts:?}");
        assert!(alerts[1].cause.contains("had 0.000005 USDC in channels"), "{alerts:?}");
        assert!(alerts[0].action.contains("`farthing backup forget replaced-1` removes"), "{alerts:?}");
        assert_eq!(alerts[0].subject, Address::from_bytes([1; 20]).to_string());

        fs::remove_dir_all(data.path().join("replaced-1")).unwrap();
        let kept: Vec<bool> = left.iter().map(|left| left.kept(data.path(), |_| None).is_some()).collect();
        assert_eq!(kept, [false, true]);
    }

    #[test]
    fn money_in_the_wallet_alone_is_told_and_so_is_a_wallet_that_the_chain_had_not_shown() {
        let data = tempfile::tempdir().unwrap();
        let with_usdc = WalletBalance { usdc: Some(Usdc::from_micros(322_000).into()), ..balance(1, 0, 0) };
        replaced(data.path(), "replaced-1", 1, Some(with_usdc));
        let with_eth =
            WalletBalance { eth: Some(Eth { wei: 1_000_000_000_000_000 }.into()), ..balance(2, 0, 0) };
        replaced(data.path(), "replaced-2", 2, Some(with_eth));
        replaced(
            data.path(),
            "replaced-3",
            3,
            Some(WalletBalance { usdc: None, eth: None, ..balance(3, 0, 0) }),
        );
        let alerts: Vec<Alert> = MoneyLeft::read(data.path(), OWN).iter().map(alert).collect();
        assert_eq!(alerts.len(), 3, "{alerts:?}");
        for (alert, sums) in alerts.iter().zip([
            "and 0.322 USDC and 0 ETH in the wallet",
            "and 0.00 USDC and 0.001 ETH in the wallet",
            "and an unknown amount of USDC and an unknown amount of ETH in the wallet",
        ]) {
            assert!(alert.severity == Warning && alert.cause.contains(sums), "{sums}: {alert:?}");
        }
    }

    #[test]
    fn all_folders_of_a_wallet_are_told_whatever_the_newest_says() {
        let data = tempfile::tempdir().unwrap();
        replaced(data.path(), "replaced-1", 1, Some(balance(1, 0, 94)));
        replaced(data.path(), "replaced-2", 1, None);
        replaced(data.path(), "replaced-3", 1, Some(balance(1, 3, 0)));
        let left = MoneyLeft::read(data.path(), OWN);
        let told = alert(&left[0]);
        assert!(left.len() == 1 && told.severity == Error, "{left:?}");
        for words in ["0.000003 USDC in channels", "0.000094 USDC earned", "an unknown amount"] {
            assert!(told.cause.contains(words), "{told:?}");
        }
        for name in ["replaced-3", "replaced-2", "replaced-1"] {
            assert!(told.action.contains(&format!("`farthing backup forget {name}`")), "{told:?}");
            assert!(left[0].kept(data.path(), |_| None).is_some(), "{name} is there");
            fs::remove_dir_all(data.path().join(name)).unwrap();
        }
        assert_eq!(left[0].kept(data.path(), |_| None), None);
    }

    #[test]
    fn better_vouchers_of_its_own_wallet_are_told_until_the_books_know_as_much() {
        let data = tempfile::tempdir().unwrap();
        let id = ChannelId::NONE;
        let state = |claimed, spent| {
            let [claimed, spent] = [claimed, spent].map(Usdc::from_micros);
            PayeeState { deposited: Usdc::from_micros(40_000), claimed, spent, ..PayeeState::default() }
        };
        // What it has in channels and in the wallet this node has as well.
        replaced(data.path(), "replaced-1", 9, Some(balance(9, 7, 0)));
        assert_eq!(MoneyLeft::read(data.path(), OWN), []);
        replaced(data.path(), "replaced-2", 9, Some(balance(9, 7, 22_000)));
        let earned = vec![EarnedOn::of(id, &state(0, 22_000)).unwrap()];
        let note = data.path().join("replaced-2").join(file_names::EARNED);
        fs::write(note, serde_json::to_vec(&earned).unwrap()).unwrap();

        let left = MoneyLeft::read(data.path(), OWN);
        let told = |now: Option<PayeeState>| left[0].kept(data.path(), |_| now).as_ref().map(alert);
        let told_of = |now| told(now).unwrap().cause;
        assert!(left.len() == 1 && told_of(None).contains("0.022 USDC earned"), "{left:?}");
        for (now, sum) in [(state(0, 2_000), "0.02 USDC"), (state(2_000, 2_000), "0.02 USDC")] {
            assert!(told_of(Some(now)).contains(&format!("{sum} earned and not claimed")), "{now:?}");
        }
        let alert = told(Some(state(0, 21_999))).unwrap();
        assert!(alert.severity == Error && alert.subject == OWN.to_string(), "{alert:?}");
        assert!(alert.cause.contains("0.000001 USDC earned and not claimed, whose vouchers"), "{alert:?}");
        assert!(alert.cause.starts_with("the restored backup knows less than the files"), "{alert:?}");
        assert!(
            alert.action.contains("`farthing backup forget replaced-2` gives up this money"),
            "{alert:?}"
        );
        for known in [state(0, 22_000), state(22_000, 22_000), state(22_000, 2_000)] {
            assert_eq!(told(Some(known)), None, "{known:?}");
        }
        fs::remove_dir_all(data.path().join("replaced-2")).unwrap();
        assert_eq!(told(None), None);
    }
}
