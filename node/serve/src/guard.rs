//! A guard over who is asked, and by whom: the Host allow-list and the refusal of requests from web pages.
//!
//! A page that rebinds its own name to this machine sends that name as Host, so unknown names are refused. An
//! IP address cannot be rebound; a page that names one is of another origin, and browsers say so in Origin.

use std::{net::IpAddr, sync::Arc};

use axum::{
    Router,
    body::Body,
    extract::{Request, State},
    middleware::{self, Next},
    response::Response,
};
use http::{HeaderValue, header, uri::Authority};

use crate::{TurnedAway, Wording};

/// The names under which a port may be asked.
#[derive(Debug, Clone)]
pub struct Hosts(Arc<Vec<String>>);

impl Hosts {
    /// `localhost`, every IP address, and `names`.
    pub fn new(names: &[String]) -> Self {
        let names = names.iter().map(|name| name.trim_end_matches('.').to_ascii_lowercase());
        Self(Arc::new(std::iter::once("localhost".to_owned()).chain(names).collect()))
    }

    /// The one name, with its port, under which a request asks; `None` when it is not one of ours.
    #[must_use]
    pub fn asked<'r>(&self, request: &'r Request<Body>) -> Option<&'r str> {
        let mut named = request.headers().get_all(header::HOST).iter().map(HeaderValue::to_str);
        let host = match (request.uri().authority(), named.next(), named.next()) {
            (authority, Some(Ok(host)), None) if authority.is_none_or(|own| own.as_str() == host) => host,
            (Some(authority), None, None) => authority.as_str(),
            _ => return None,
        };
        self.allow(host).then_some(host)
    }

    /// Returns whether `host`, with or without a port, is one of them. The port is not compared: the one that a
    /// container publishes may differ from the one it listens on, and proves nothing.
    #[must_use]
    pub fn allow(&self, host: &str) -> bool {
        let Ok(authority) = host.parse::<Authority>() else { return false };
        // Name and port are the whole text, which leaves no room for user names and the like.
        let (name, port) = (authority.host(), authority.port());
        let is_whole = host.strip_prefix(name).is_some_and(|rest| match &port {
            Some(port) => rest.strip_prefix(':') == Some(port.as_str()),
            None => rest.is_empty(),
        });
        if !is_whole {
            return false;
        }
        let bare = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
        bare.parse::<IpAddr>().is_ok()
            || self.0.iter().any(|allowed| bare.trim_end_matches('.').eq_ignore_ascii_case(allowed))
    }
}

/// `router` behind both checks: a name that is not ours, and a request by a web page, are turned away.
pub fn guarded(router: Router, hosts: Hosts, wording: Wording) -> Router {
    router.layer(middleware::from_fn_with_state((hosts, wording), guard))
}

async fn guard(State((hosts, wording)): State<(Hosts, Wording)>, request: Request, next: Next) -> Response {
    if hosts.asked(&request).is_none() {
        return wording(TurnedAway::UnknownHost);
    }
    if request.headers().contains_key(header::ORIGIN) {
        return wording(TurnedAway::FromWebPage);
    }
    next.run(request).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_own_names_are_answered() {
        let hosts = Hosts::new(&["Node.Example".into()]);
        for (host, allowed) in [
            ("localhost", true),
            ("LOCALHOST:3000", true),
            ("localhost.", true),
            ("127.0.0.1:3000", true),
            ("[::1]:3000", true),
            ("192.168.1.7", true),
            ("node.example:8443", true),
            ("evil.example", false),
            ("localhost.evil.example", false),
            ("evil-localhost", false),
            ("", false),
            ("localhost@evil.example", false),
            ("evil@localhost", false),
            ("localhost:3000:1", false),
            ("localhost/evil", false),
            ("localhost evil", false),
        ] {
            assert_eq!(hosts.allow(host), allowed, "{host}");
        }
    }
}
