//! The address of an upstream: what it may look like, and whether it leads to this node.

use std::net::{IpAddr, Ipv4Addr};

use url::{Host, Url};

use super::{AddressClass, UpstreamError, UpstreamOptions, address};

/// `base_url` as an address that may be named for an upstream now.
///
/// # Errors
/// [`UpstreamError`] for an address that is none, where no upstream may be, or a port of this node's.
pub fn check_base(base_url: &str, options: &UpstreamOptions) -> Result<Url, UpstreamError> {
    let base = read_base(base_url)?;
    own_port(&base, options).map_or(Ok(base), |port| Err(UpstreamError::OwnPort(port)))
}

/// `base_url` as an address that could be an upstream's, whatever this node listens on.
pub(super) fn read_base(base_url: &str) -> Result<Url, UpstreamError> {
    let malformed =
        || UpstreamError::Malformed(base_url.chars().filter(|c| !c.is_control()).take(80).collect());
    let base = Url::parse(base_url).map_err(|_| malformed())?;
    if !matches!(base.scheme(), "http" | "https") || !base.has_host() {
        return Err(malformed());
    }
    if !base.username().is_empty() || base.password().is_some() {
        return Err(UpstreamError::Credentials);
    }
    if base.query().is_some() || base.fragment().is_some() {
        return Err(UpstreamError::Query);
    }
    match literal_address(&base).filter(|address| AddressClass::of(*address).is_none()) {
        Some(address) => Err(UpstreamError::ForbiddenAddress(address)),
        None => Ok(base),
    }
}

/// The port of this node that `base` names, when its host is an address of this machine. Where a name leads is found
/// when it is resolved.
pub(super) fn own_port(base: &Url, options: &UpstreamOptions) -> Option<u16> {
    let port = port_of(base);
    let is_own = options.own_ports.contains(port);
    (is_own && literal_address(base).is_some_and(address::is_of_this_machine)).then_some(port)
}

pub(super) fn port_of(base: &Url) -> u16 {
    base.port_or_known_default().unwrap_or_default()
}

fn literal_address(base: &Url) -> Option<IpAddr> {
    match base.host()? {
        Host::Ipv4(v4) => Some(v4.into()),
        Host::Ipv6(v6) => Some(v6.into()),
        Host::Domain(name) => {
            // RFC 6761: this name never leaves the machine.
            let local = name.trim_end_matches('.');
            (local == "localhost" || local.ends_with(".localhost")).then_some(Ipv4Addr::LOCALHOST.into())
        }
    }
}

/// The class of a host that is an address itself; `None` for a name, which is resolved when connecting.
pub fn literal_class(base: &Url) -> Option<AddressClass> {
    literal_address(base).and_then(AddressClass::of)
}
