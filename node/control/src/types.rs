//! Messages between command line and node: JSON over the control socket.
//!
//! Each command is one request to one [`endpoint`](crate::endpoint). Amounts, ids and addresses are text ([`Text`]), so
//! that no reader has to guess a number's unit or precision. Errors are `application/problem+json` ([`Problem`]).

use std::collections::BTreeMap;

use farthing_values::{Address, Usdc};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

pub use self::{
    activity::*, agent_calls::*, alerts::*, approvals::*, backup::*, calls::*, catalog::*, channel::*,
    console::*, contract::*, flagged::*, foreign::*, history::*, inspect::*, logs::*, petnames::*,
    problem::*, reach::*, saved::*, secrets::*, series::*, service_file::*, services::*, spending::*,
    starred::*,
};
pub use crate::{
    eth::Eth,
    text::{AddressText, CallIdText, ChannelIdText, EthText, MethodText, ServiceIdText, Text, UsdcText},
};

/// An enum whose variants have one word each, the same in JSON, on the command line and for people.
macro_rules! words {
    ($(#[$about:meta])* $name:ident { $($(#[$note:meta])* $variant:ident = $word:literal,)+ }) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        #[derive(serde::Serialize, serde::Deserialize, utoipa::ToSchema)]
        pub enum $name {
            $($(#[$note])* #[serde(rename = $word)] $variant,)+
        }

        impl $name {
            pub const ALL: [Self; [$($word),+].len()] = [$(Self::$variant),+];

            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.name())
            }
        }

        impl std::str::FromStr for $name {
            type Err = crate::text::NoneOf;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                let found = Self::ALL.into_iter().find(|one| one.name() == text);
                found.ok_or_else(|| crate::text::NoneOf::new(text, &[$($word),+]))
            }
        }
    };
}

farthing_os::hidden!(
    AlertLevelsRequest,
    AutomaticBackupsRequest { on },
    BackupRequest,
    ChainSettingsRequest { confirmations },
    Console { url },
    EditRequest { name },
    LogIn,
    LoggedIn,
    PhraseCheck,
    Secret,
    SetUp,
    TryRequest { operation }
);

mod activity;
mod agent_calls;
mod alerts;
mod approvals;
mod backup;
mod calls;
mod catalog;
mod channel;
mod console;
mod contract;
mod flagged;
mod foreign;
pub mod history;
mod inspect;
mod logs;
mod petnames;
mod problem;
mod reach;
mod saved;
pub mod sdk;
mod secrets;
mod series;
mod service_file;
mod services;
mod spending;
mod starred;

/// `farthing status`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Status {
    pub version: String,
    pub uptime_secs: u64,
    pub address: AddressText,
    pub peer_id: String,
    /// Addresses at which other nodes are told to reach this one; those it listens on, while it tells none.
    pub addresses: Vec<String>,
    /// A few words on whether other nodes can connect to this one.
    #[serde(default)]
    pub reach: String,
    /// A few words on what the public DHT did for this node, in which nodes of a network find each other.
    #[serde(default)]
    pub rendezvous: String,
    pub gateway_url: String,
    /// The address of the port for x402 clients, where there is one: a service is at its UUID below.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub x402_url: Option<String>,
    pub network: String,
    pub chain: ChainStatus,
    pub balance: WalletBalance,
    pub peers: u64,
    pub services: u64,
    /// `false` after "stop all spending", or when the ledger failed.
    pub spending: bool,
    pub spent_today: UsdcText,
    /// Everything that keeps the node from working fully, each with its next step.
    pub alerts: Vec<Alert>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ChainStatus {
    pub name: String,
    pub chain_id: u64,
    /// Test money only.
    pub testnet: bool,
    /// A public site that shows the chain's transactions at `/tx/HASH`, where the preset names one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub explorer: Option<String>,
    pub head: Option<u64>,
    pub head_age_secs: Option<u64>,
    /// The reason that the chain is not usable, if it is not.
    pub problem: Option<String>,
}

/// `farthing healthcheck`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Health {
    pub ready: bool,
    /// The reasons that it is not ready.
    pub waiting_for: Vec<String>,
}

/// `farthing doctor`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Doctor {
    pub checks: Vec<Check>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Check {
    pub name: String,
    /// The node can do its work; with a `next` there is something to mind all the same.
    pub good: bool,
    pub detail: String,
    /// The next step.
    pub next: Option<String>,
}

/// `farthing call`, and the body of `POST /internal/call`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CallRequest {
    pub api_id_public: ServiceIdText,
    pub path: String,
    pub method: MethodText,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub params: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<serde_json::Value>,
    /// A body of bytes, as base64, instead; `headers` name its `content-type`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body_base64: Option<String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_price: Option<UsdcText>,
    /// A UUID, or any text of the caller's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call_id: Option<String>,
}

/// `farthing wallet address` and `balance`. Balances are as last seen on chain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WalletBalance {
    pub address: AddressText,
    /// `None` while the chain was never reached.
    pub usdc: Option<UsdcText>,
    pub eth: Option<EthText>,
    /// Deposited in channels and not yet spent.
    pub in_channels: UsdcText,
    /// Earned and not yet claimed.
    pub unclaimed: UsdcText,
    /// The reason that the chain cannot be read now; `usdc` and `eth` are then the last known amounts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stale: Option<String>,
}

impl WalletBalance {
    /// All of it, in words.
    pub fn sums(&self) -> String {
        let of = |amount: Option<String>, coin: &str| {
            let amount = amount.unwrap_or_else(|| "an unknown amount of".to_owned());
            format!("{amount} {coin}")
        };
        format!(
            "{} USDC in channels, {} USDC earned and not claimed, and {} and {} in the wallet",
            self.in_channels,
            self.unclaimed,
            of(self.usdc.map(|usdc| usdc.to_string()), "USDC"),
            of(self.eth.map(|eth| eth.to_string()), "ETH"),
        )
    }
}

/// `farthing wallet send`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SendRequest {
    pub to: AddressText,
    /// `usdc` or `eth`, and how much.
    #[serde(flatten)]
    #[schema(value_type = BTreeMap<String, String>)]
    pub amount: SendAmount,
}

/// `{"usdc": "1.50"}` or `{"eth": "0.001"}`
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SendAmount {
    Usdc(Text<Usdc>),
    Eth(Text<Eth>),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Sent {
    /// Hash of the transaction, `0x…`.
    pub transaction: String,
    pub block: Option<u64>,
}

/// `farthing channel close`
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CloseQuery {
    /// Closes on the chain without asking the owner first.
    #[serde(default)]
    pub force: bool,
}

words! {
    /// This node's side of a channel.
    ChannelRole {
        /// I buy.
        Payer = "payer",
        /// I sell.
        Payee = "payee",
    }
}

/// `farthing channel open`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct OpenRequest {
    pub service: ServiceIdText,
    /// By the rules of `[spending]` when absent.
    pub deposit: Option<UsdcText>,
}

/// `farthing settle`: what was claimed. Empty when nothing was left to claim.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Settled {
    pub claimed: UsdcText,
    pub channels: u64,
    /// Hashes, `0x…`, each confirmed.
    pub transactions: Vec<String>,
    /// Channels whose claims the contract refused.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<RefusedClaim>,
}

/// A claim that the contract refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RefusedClaim {
    pub channel: ChannelIdText,
    pub reason: String,
}

/// `farthing audit`
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditQuery {
    /// Wallet of an owner whose ledger is compared with this node's.
    pub with: Option<Text<Address>>,
    /// Checks only the ledger, without asking the chain or an owner.
    #[serde(default)]
    pub offline: bool,
}

/// The result of comparing the books with an owner's, call by call and channel by channel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Compared {
    pub owner: AddressText,
    pub calls: u64,
    /// Charged or not: not known here yet.
    pub undecided: u64,
    /// Calls that the owner no longer has to keep and does not keep.
    pub not_kept: u64,
    /// Charged by the owner for calls that adjustments stand for here.
    pub adjusted: UsdcText,
    /// Charged here for calls that adjustments stand for in the owner's books: it was restored from a backup.
    pub adjusted_there: UsdcText,
    /// Channels at rest whose totals were compared, and channels that were not: why.
    pub channels: u64,
    pub channels_left_out: Vec<String>,
    /// The totals of these channels in both books.
    pub spent_here: UsdcText,
    pub earned_there: UsdcText,
    pub differences_total: u64,
    /// At most 1,000 of them, each with its call or channel.
    pub differences: Vec<String>,
}

/// The contract's holdings, and the number of channels of which it said what the books say.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OnChain {
    /// The newest confirmed block.
    pub block: u64,
    pub channels: u64,
    /// USDC in the contract, of all its channels.
    pub escrow: UsdcText,
    /// USDC in the channels of this node.
    pub at_stake: UsdcText,
    /// Everything that is not confirmed yet, or on its way into the books; at most 1,000.
    pub unconfirmed: Vec<String>,
}

/// The books, checked now; no violation when they add up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Audit {
    pub calls_served: u64,
    pub calls_bought: u64,
    /// Promised, and the end not known yet.
    pub calls_undecided: u64,
    /// Amounts that a channel counts and no call explains; the history shows them with their causes.
    pub adjustments: u64,
    pub violations_total: u64,
    /// At most 2,000 of them.
    pub violations: Vec<String>,
    /// Parts that were not checked, each with the reason.
    pub not_checked: Vec<String>,
    /// Held against the contract; `null` when that was not possible, which `not_checked` then says.
    pub chain: Option<OnChain>,
    /// With another node's books.
    pub compared: Option<Compared>,
}

/// A connected node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Peer {
    pub wallet: AddressText,
    pub address: String,
    pub agent: String,
    pub rtt_us: Option<u64>,
}

/// `farthing net ping`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PingRequest {
    pub wallet: AddressText,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Pong {
    pub address: String,
    pub rtt_us: u64,
}

/// `farthing net lookup`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct LookupRequest {
    pub wallet: AddressText,
}

/// The result of a look-up, and what every step of it brought.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Lookup {
    /// True if the wallet's node is connected now, or is this node.
    pub connected: bool,
    pub record: Option<LookupRecord>,
    pub steps: Vec<LookupStep>,
}

/// The record in which a wallet's node says where it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LookupRecord {
    pub seq: u64,
    pub issued_secs: u64,
    pub expires_secs: u64,
    pub addresses: Vec<String>,
    pub listings: u32,
    /// The reason it is of no use, to follow `it`: it has expired, says that its node has left, or is of the future.
    pub amiss: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LookupStep {
    pub name: String,
    pub took_us: u64,
    pub outcome: String,
    pub helped: bool,
}

/// The gateway's header with the [`farthing_values::CallId`] of a finished call.
pub const HEADER_CALL_ID: &str = "x-farthing-call-id";
pub const HEADER_PRICE: &str = "x-farthing-price-usdc";
/// The amount, or [`CHARGED_UNDECIDED`]; of a problem also `yes`.
pub const HEADER_CHARGED: &str = "x-farthing-charged";
/// The word for a charge that is not known yet.
pub const CHARGED_UNDECIDED: &str = "undecided";
pub const HEADER_RECEIPT: &str = "x-farthing-receipt";
pub const HEADER_TIMING: &str = "server-timing";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_decimal_text() {
        let request = SendRequest {
            to: Text(Address::ZERO),
            amount: SendAmount::Usdc(Text(Usdc::from_micros(1_500_000))),
        };
        let json = serde_json::to_string(&request).unwrap();
        assert_eq!(json, r#"{"to":"0x0000000000000000000000000000000000000000","usdc":"1.50"}"#);
        assert_eq!(serde_json::from_str::<SendRequest>(&json).unwrap(), request);
        assert!(serde_json::from_str::<SendRequest>(&json.replace("\"1.50\"", "1.5")).is_err());
    }
}
