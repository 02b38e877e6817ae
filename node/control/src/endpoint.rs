//! The endpoints of a node's API, each in one place: what is sent, what comes back, at which method and path, and
//! whether it asks for the password.
//!
//! `list.rs` names them all. [`answer!`](crate::answer) makes a function the handler of one, and does not compile when it
//! takes or gives other types; a router of them does not compile while one has no handler. [`document()`] and
//! [`asks_for_password`] read the same list.

mod document;
mod handler;
mod list;
mod target;

use http::Method;

use self::document::{Param, Shape};
pub use self::{
    document::document,
    handler::{Answers, Fits, Handler, HasHandler, Takes, handle},
    list::*,
    target::Target,
};

/// One endpoint: its types, and where it is.
pub trait Endpoint: Copy + Send + 'static {
    /// The JSON of a request; `()` where nothing is sent, [`Raw`] where a file is.
    type Request;
    /// The JSON of an answer; [`Raw`] where it is something else.
    type Response;
    const METHOD: Method;
    /// Below the API's root, with `{id}` and the like in place of what a request fills in.
    const PATH: &'static str;
    const DANGER: Danger;
}

/// A body that is no JSON, or JSON of somebody else's making.
#[derive(Debug)]
pub struct Raw;

/// The harm that a stolen log-in could do with an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Danger {
    /// It looks, or does what can be undone.
    Low,
    /// It moves money, shows a secret, cannot be undone, or decides which server gets the owner's keys or what others may
    /// call there with them: the console asks for the password again.
    High,
}

/// The facts of an endpoint that the document and the guard read.
#[derive(Debug)]
pub struct Facts {
    pub method: Method,
    pub path: &'static str,
    pub danger: Danger,
    /// Its name among the operations of the document.
    pub id: &'static str,
    pub tag: &'static str,
    pub summary: &'static str,
    params: &'static [Param],
    request: Shape,
    response: Shape,
}

/// Lists the endpoints offered to programs: at the control socket, and behind a log-in at the console's port.
pub fn offered() -> impl Iterator<Item = &'static Facts> {
    [Commands::FACTS, Settings::FACTS, Session::FACTS].into_iter().flatten()
}

/// Tells whether a request is for an endpoint of great danger, under every spelling of its path that the router takes.
pub fn asks_for_password(method: &Method, path: &str) -> bool {
    // A HEAD is carried out as the GET that it asks the head of.
    let method = if method == Method::HEAD { &Method::GET } else { method };
    offered().any(|facts| facts.danger == Danger::High && facts.method == method && fits(facts.path, path))
}

/// Tells whether a path has the segments of a pattern; a trailing slash is no way around.
fn fits(pattern: &str, path: &str) -> bool {
    let (mut pattern, mut path) = (pattern.split('/'), path.trim_end_matches('/').split('/'));
    loop {
        match (pattern.next(), path.next()) {
            (None, None) => return true,
            (Some(pattern), Some(_)) if pattern.starts_with('{') => {}
            (Some(expected), Some(segment)) if expected == segment => {}
            _ => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_dangerous_is_so_under_every_spelling_that_a_route_takes() {
        for (method, path, dangerous) in [
            (Method::POST, "/wallet/send", true),
            (Method::POST, "/wallet/send/", true),
            (Method::GET, "/secret", true),
            (Method::HEAD, "/secret", true),
            (Method::GET, "/secrets", false),
            (Method::GET, "/secrets/dashboard", true),
            (Method::GET, "/secrets/dash%62oard", true),
            (Method::POST, "/secrets/dashboard/rotate", true),
            (Method::POST, "/spending/stop", false),
            (Method::POST, "/spending/resume", true),
            (Method::POST, "/spending/accept", true),
            (Method::POST, "/approvals/0b5f2a3e/approve", true),
            (Method::POST, "/approvals/0b5f2a3e/refuse", false),
            (Method::POST, "/spending/flagged", true),
            (Method::GET, "/spending/flagged", false),
            (Method::DELETE, "/apis/0b5f2a3e", true),
            (Method::GET, "/apis/0b5f2a3e", false),
            (Method::POST, "/apis/0b5f2a3e/pause", false),
            (Method::GET, "/wallet", false),
            (Method::GET, "/wallet/backup", false),
            (Method::POST, "/wallet/phrase", true),
            (Method::POST, "/backups/farthing-x.backup/restore", true),
            (Method::POST, "/restart", true),
            (Method::GET, "/automatic-backups", false),
            (Method::POST, "/automatic-backups", true),
            (Method::DELETE, "/replaced-nodes/replaced-x", true),
            (Method::GET, "/chain/settings", false),
            (Method::POST, "/x402/servers", true),
            (Method::POST, "/x402/terms", false),
            (Method::DELETE, "/x402/servers/0b5f2a3e", false),
            (Method::POST, "/contract", true),
            (Method::GET, "/contract/cost", false),
        ] {
            assert_eq!(asks_for_password(&method, path), dangerous, "{method} {path}");
        }
    }

    #[test]
    fn no_two_endpoints_share_an_address_or_a_name() {
        let mut addresses: Vec<_> = offered().map(|facts| (facts.path, facts.method.as_str())).collect();
        let mut names: Vec<_> = offered().map(|facts| facts.id).collect();
        let count = names.len();
        addresses.sort_unstable();
        addresses.dedup();
        names.sort_unstable();
        names.dedup();
        assert_eq!((addresses.len(), names.len()), (count, count));
    }
}
