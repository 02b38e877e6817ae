//! Better vouchers in the folders of the node's own wallet: a restored backup may know less than the files that it replaced.
//!
//! What counts is how far the payers' vouchers there go beyond these books, channel by channel. What is in channels and in the
//! wallet is this node's own, and is told by itself.

use std::path::Path;

use farthing_control::types::{Alert, AlertKind, AlertSeverity::Error, ReplacedNode};
use farthing_protocol::{ChannelId, Usdc, channel::PayeeState};

use crate::backup::money_at_end::{self, EarnedOn};

/// The better vouchers in one folder of the node's own wallet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BetterVouchers {
    pub(super) folder: String,
    earned: Vec<EarnedOn>,
    /// So much of it these books neither have earned nor show as claimed.
    beyond: Usdc,
}

impl BetterVouchers {
    /// Reads it; `None` where nothing was earned and not claimed.
    pub(super) fn read(data_dir: &Path, replaced: &ReplacedNode) -> Option<Self> {
        let earned = money_at_end::noted_in(&data_dir.join(&replaced.name));
        let better = Self { folder: replaced.name.clone(), earned, beyond: Usdc::ZERO };
        (!better.earned.is_empty()).then_some(better)
    }

    /// Compares it with the books; `None` where they know as much.
    pub(super) fn compared(&self, now: impl Fn(ChannelId) -> Option<PayeeState>) -> Option<Self> {
        let beyond = self.earned.iter().map(|earned| earned.beyond(now(earned.channel.0).as_ref()));
        let beyond = beyond.fold(Usdc::ZERO, Usdc::saturating_add);
        (!beyond.is_zero()).then(|| Self { beyond, ..self.clone() })
    }
}

/// Tells of the folders of the node's own wallet, the newest first. It is an error: a payer withdraws what is not claimed in time.
pub(super) fn alert(wallet: &str, folders: &[BetterVouchers]) -> Alert {
    let sums = of_each(folders, "; and ", |one| {
        format!("{} USDC earned and not claimed, whose vouchers are in `{}`", one.beyond, one.folder)
    });
    let forget = of_each(folders, ", ", |one| format!("`farthing backup forget {}`", one.folder));
    let cause = format!(
        "the restored backup knows less than the files it replaced: {sums}. Payers can withdraw what is not claimed in \
         time"
    );
    let (files, ends) = match folders {
        [one] => (
            format!("the files of `{}` in the data folder", one.folder),
            "gives up this money and ends this alert",
        ),
        _ => (
            "the files of one of these folders of the data folder, the one with the most first,".to_owned(),
            "give up this money; this alert ends when all are gone",
        ),
    };
    let action = format!(
        "stop this node, copy {files} into another folder, run `farthing settle now` with a node there, stop that node \
         and start this one again; or wait for the payers, who show their newest receipts when they buy again. \
         {forget} {ends}"
    );
    Alert::new(AlertKind::MoneyLeft, Error, cause, action).about(&wallet)
}

fn of_each(folders: &[BetterVouchers], between: &str, tell: impl Fn(&BetterVouchers) -> String) -> String {
    folders.iter().map(tell).collect::<Vec<_>>().join(between)
}
