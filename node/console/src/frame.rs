//! The frame around every page: navigation, search, network, balances, alerts, theme.

use axum::extract::FromRequestParts;
use farthing_control::{
    endpoint,
    types::{ChainStatus, Status},
};
use http::{Method, request::Parts};

use super::{
    ConsoleState,
    access::Session,
    failure::Failure,
    guard::cookie,
    icons::Icon,
    show,
    texts::{self, Alert, Done},
    theme::{THEME_COOKIE, Theme},
};

texts::words! {
    /// The pages of the navigation, in its order.
    pub(super) enum Section(title.0: &'static str, path.1: &'static str, icon.2: Icon) {
        Home = "Home", "/panel", Icon::Home;
        Catalog = "Catalog", "/panel/catalog", Icon::Catalog;
        Apis = "My APIs", "/panel/apis", Icon::Apis;
        Finance = "Finance", "/panel/finance", Icon::Finance;
        Activity = "Activity", "/panel/activity", Icon::Activity;
        Network = "Network", "/panel/network", Icon::Network;
        Settings = "Settings", "/panel/settings", Icon::Settings;
        Help = "Help", "/panel/help", Icon::Help;
    }
}

impl Section {
    /// The first so many have room in a phone's bar; the others stand in the menu there, as the stylesheet has it.
    pub(super) const IN_BAR: usize = 5;
}

/// A request for a page by somebody logged in.
#[derive(Debug)]
pub(super) struct Visit {
    pub(super) panel: ConsoleState,
    pub(super) session: Session,
    pub(super) theme: Theme,
    /// Path and query.
    pub(super) address: String,
    /// A form was sent.
    is_answer: bool,
    /// The changes that were known before the page asked the node for anything.
    changes: u64,
}

impl FromRequestParts<ConsoleState> for Visit {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, panel: &ConsoleState) -> Result<Self, Failure> {
        let session = Session::from_request_parts(parts, panel).await?;
        Ok(Self::new(parts, panel, session))
    }
}

impl Visit {
    pub(super) fn new(parts: &Parts, panel: &ConsoleState, session: Session) -> Self {
        Self {
            panel: panel.clone(),
            session,
            theme: Theme::named(cookie(&parts.headers, THEME_COOKIE).unwrap_or_default()),
            is_answer: parts.method == Method::POST,
            changes: panel.changes_count(),
            address: parts.uri.path_and_query().map_or_else(String::new, ToString::to_string),
        }
    }

    /// The frame of a page at `place`.
    ///
    /// # Errors
    /// When the node does not say how it is.
    pub(super) async fn frame(&self, place: Section) -> Result<Frame, Failure> {
        let status = self.panel.node().ask(endpoint::Status).await?;
        Ok(Frame {
            theme: self.theme,
            place,
            address: self.address.clone(),
            words: String::new(),
            done: Done::of(&self.address),
            is_answer: self.is_answer,
            changes: self.changes,
            alerts: status.alerts.iter().map(texts::alert).collect(),
            status,
        })
    }
}

/// The chain as a sentence names it.
pub(super) fn chain_name(chain: &ChainStatus) -> &str {
    if chain.name == "local" { "the local test chain" } else { &chain.name }
}

/// Everything around a page, as its template takes it.
#[derive(Debug)]
pub(super) struct Frame {
    pub(super) theme: Theme,
    pub(super) place: Section,
    pub(super) address: String,
    /// In the search field.
    pub(super) words: String,
    /// The page answers a form, and cannot be fetched again.
    pub(super) is_answer: bool,
    /// The number of changes that the page is up to date with, which its stream of events begins from.
    pub(super) changes: u64,
    /// The action that the form before has done.
    pub(super) done: Option<Done>,
    pub(super) alerts: Vec<Alert>,
    pub(super) status: Status,
}

impl Frame {
    /// In words and, by the name of a class, in colour.
    pub(super) fn network(&self) -> (&'static str, &'static str) {
        let chain = &self.status.chain;
        match (chain.testnet, chain.chain_id) {
            (true, 31_337 | 1_337) => ("Local test chain", "local"),
            (true, _) => ("Testnet", "testnet"),
            (false, _) => ("Mainnet", "mainnet"),
        }
    }

    /// As a sentence names it.
    pub(super) fn chain(&self) -> &str {
        chain_name(&self.status.chain)
    }

    pub(super) fn usdc(&self) -> String {
        self.status.balance.usdc.as_ref().map_or_else(|| "unknown".to_owned(), |usdc| show::usdc(usdc.0))
    }

    /// Everything that calls can be paid from: the wallet, and what is left in channels.
    pub(super) fn to_spend(&self) -> String {
        let balance = &self.status.balance;
        let sum = balance.usdc.map(|usdc| usdc.0.saturating_add(balance.in_channels.0));
        sum.map_or_else(|| "unknown".to_owned(), show::usdc)
    }

    pub(super) fn in_channels(&self) -> String {
        show::usdc(self.status.balance.in_channels.0)
    }

    pub(super) fn eth(&self) -> String {
        self.status.balance.eth.as_ref().map_or_else(|| "unknown".to_owned(), |eth| show::eth(&eth.0))
    }
}
