//! Port 3002: the console, everything a person does with the node, in the browser.
//!
//! 1. Every answer leaves with the security headers ([`headers`]); a request for another host than ours, or a
//!    change that another site asks for, is refused before any route ([`guard`]).
//!    What is typed at `localhost` is led to the node's own name ([`door`]).
//! 2. Pages are rendered here from templates, one file per page ([`pages`]), inside a common [`frame`]. What they
//!    show and do goes through the commands of the control socket ([`Local`]), so that the command line can do
//!    everything the console can, and `/api/v1` ([`api`]) offers the same to programs.
//! 3. A page is given only to a [`access::Session`], which the cookie names. A change is a [`form::Form`], which brought
//!    the session's key or the password; a dangerous one needs an [`access::Reauthenticated`] or [`access::PasswordProof`].
//!    All are types that only the checks make.
//!
//! Invariant: nothing changes on GET. Texts of pages stand in the templates, those of code in [`texts`].

use std::{
    net::{IpAddr, Ipv4Addr},
    sync::Arc,
};

use axum::{
    Extension, Router,
    middleware::{from_fn, from_fn_with_state},
};
use farthing_control::Local;
use farthing_os::clock;
use farthing_serve::{ClientAddress, Hosts};
use tokio::sync::{Semaphore, SemaphorePermit, watch};
use tokio_util::sync::CancellationToken;

mod access;
mod api;
mod assets;
mod course;
mod door;
mod failure;
mod form;
mod frame;
mod guard;
mod headers;
mod health;
mod held_forms;
mod history;
mod icons;
mod markup;
mod outcome;
mod page;
mod pages;
mod password_first;
mod same_site;
mod series;
mod session_store;
mod show;
pub mod socket;
mod table;
#[cfg(test)]
mod testing;
mod texts;
mod theme;

pub use access::{Access, AccessError, SetupCode};
use pages::{Drafts, Looks, Orders, SetupAnswers};

/// Open pages that are kept up to date; further ones are, when they are loaded again.
const LIVE_PAGES_MAX: usize = 24;

/// Each may take 16 MiB while it arrives, and a backup 64 MiB.
const UPLOADS_AT_ONCE_MAX: usize = 2;

/// The parts that the console is made of.
#[derive(Debug)]
pub struct Parts {
    pub access: Access,
    /// The commands it may give.
    pub node: Local,
    /// Names beside localhost.
    pub hosts: Vec<String>,
    /// The node's own, below localhost, that browsers are led to; none where the certificate does not have it.
    pub name: Option<String>,
    /// True if browsers speak TLS to this port itself, rather than to a proxy in front.
    pub tls: bool,
    /// The authority's certificate (PEM), for people to trust.
    pub ca_pem: Option<String>,
    /// Cancelled when open pages are let go.
    pub stopping: CancellationToken,
}

/// The console's state. Cheap to clone.
#[derive(Clone, Debug)]
pub struct ConsoleState(Arc<ConsoleInner>);

#[derive(Debug)]
struct ConsoleInner {
    parts: Parts,
    hosts: Hosts,
    live_pages: Arc<Semaphore>,
    history: history::History,
    uploads: Semaphore,
    drafts: Drafts,
    orders: Orders,
    setup_answers: SetupAnswers,
    held: held_forms::HeldForms,
    /// Counts what ended in the console itself, and in no record of the node.
    changes: watch::Sender<u64>,
    looks: Looks,
}

impl ConsoleState {
    pub fn new(parts: Parts) -> Self {
        let names: Vec<String> = parts.hosts.iter().chain(&parts.name).cloned().collect();
        let hosts = Hosts::new(&names);
        Self(Arc::new(ConsoleInner {
            parts,
            hosts,
            live_pages: Arc::new(Semaphore::new(LIVE_PAGES_MAX)),
            history: history::History::default(),
            uploads: Semaphore::new(UPLOADS_AT_ONCE_MAX),
            drafts: Drafts::default(),
            orders: Orders::default(),
            setup_answers: SetupAnswers::default(),
            held: held_forms::HeldForms::default(),
            changes: watch::Sender::new(first_count()),
            looks: Looks::default(),
        }))
    }

    fn access(&self) -> &Access {
        &self.0.parts.access
    }

    fn drafts(&self) -> &Drafts {
        &self.0.drafts
    }

    fn orders(&self) -> &Orders {
        &self.0.orders
    }

    fn setup_answers(&self) -> &SetupAnswers {
        &self.0.setup_answers
    }

    fn held(&self) -> &held_forms::HeldForms {
        &self.0.held
    }

    /// Has open pages look again: something of the console's own has changed.
    fn changed(&self) {
        self.0.changes.send_modify(|count| *count = count.wrapping_add(1));
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.0.changes.subscribe()
    }

    /// Counts the changes that are known: those of the node and the console's own. If a page takes the number before it asks the
    /// node for anything, it is up to date as long as the number stays the same.
    fn changes_count(&self) -> u64 {
        self.0.changes.borrow().wrapping_add(self.0.looks.changes())
    }

    /// A place to take in a large file; whoever finds none waits.
    async fn upload_place(&self) -> Result<SemaphorePermit<'_>, failure::Failure> {
        self.0.uploads.acquire().await.map_err(|_| failure::Failure::broken("The node is stopping."))
    }

    fn node(&self) -> &Local {
        &self.0.parts.node
    }
}

/// Returns where the count of changes begins. A page of an earlier start must not carry a number of this one, so the count begins
/// with the time, and leaves room for a thousand changes a second.
fn first_count() -> u64 {
    clock::now_secs().wrapping_mul(1_000)
}

/// The routes of port 3002. Connection limits and TLS are the accept loop's.
pub fn router(panel: ConsoleState) -> Router {
    Router::new()
        .merge(assets::routes())
        .merge(health::routes())
        .merge(pages::routes())
        .merge(api::routes(&panel))
        .fallback(pages::not_found)
        .method_not_allowed_fallback(pages::other_method)
        .with_state(panel.clone())
        .layer(from_fn_with_state(panel.clone(), door::lead))
        .layer(from_fn_with_state(panel, same_site::same_site))
        .layer(from_fn(headers::secure))
}

/// Returns the address that a request came from. Without the accept loop, as in tests of a router, it is this machine.
fn address_or_here(from: Option<Extension<ClientAddress>>) -> IpAddr {
    from.map_or(IpAddr::V4(Ipv4Addr::LOCALHOST), |Extension(from)| from.0.ip())
}
