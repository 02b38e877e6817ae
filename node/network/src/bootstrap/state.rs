//! The state of a configured peer, and in a few words. Pure.

use std::{error::Error, io};

use farthing_protocol::{Address, wire::NetworkName};
use libp2p::{Multiaddr, TransportError, multiaddr::Protocol, swarm::DialError};

use crate::{identity, innermost};

/// A system's or a resolver's word on a dial is cut to this.
const REASON_CHARS_MAX: usize = 160;

/// Words of a handshake with something that is no node.
const NO_NODE: [&str; 6] =
    ["invalid data", "unexpected end of file", "broken pipe", "invalid message", "decode error", "negotiat"];

/// A configured peer, as it was last met.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BootstrapPeer {
    /// As it is configured.
    pub address: String,
    pub state: BootstrapState,
}

/// The state of a configured address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BootstrapState {
    /// The first dial is not over.
    Trying,
    Connected {
        wallet: Address,
    },
    /// The machine is there, and nobody listens on the port.
    Refused,
    TimedOut,
    /// Something is connected for a moment, and ends it before it says who it is; or did so later.
    Closed,
    /// Not the wallet that the address names with `/p2p/`.
    OtherWallet {
        expected: Address,
        found: Address,
    },
    /// This node, or one with a copy of its data folder.
    OwnWallet,
    /// `None` when it names no network at all.
    OtherNetwork {
        name: Option<String>,
    },
    /// Nobody has the name.
    UnknownName,
    /// No resolver could be asked for the name.
    NoResolver,
    /// Something answers, and not as a node does.
    NoNode,
    /// Neither TCP nor QUIC on an address or a name.
    Undialable,
    /// One line.
    Failed {
        reason: String,
    },
}

impl BootstrapState {
    /// Reads the state from a failed dial; `None` if it was not a dial at all, because there is a connection already.
    pub(crate) fn of(error: &DialError, expected: Option<Address>) -> Option<Self> {
        Some(match error {
            DialError::LocalPeerId { .. } => Self::OwnWallet,
            DialError::WrongPeerId { obtained, .. } => match (expected, identity::wallet(obtained)) {
                (Some(expected), Some(found)) => Self::OtherWallet { expected, found },
                _ => Self::OtherNetwork { name: None },
            },
            DialError::DialPeerConditionFalse(_) | DialError::Aborted => return None,
            DialError::Transport(errors) => match errors.first() {
                Some((address, error)) => Self::of_address(address, error),
                None => Self::Undialable,
            },
            DialError::NoAddresses => Self::Undialable,
            DialError::Denied { cause } => Self::failed(cause),
        })
    }

    /// Reads the state from a failed dial of one address.
    pub(crate) fn of_address(address: &Multiaddr, error: &TransportError<io::Error>) -> Self {
        match error {
            TransportError::Other(error) if has_transport(address) => {
                let of_name = has_name(address).then(|| Self::of_name(error)).flatten();
                of_name.unwrap_or_else(|| Self::of_transport(error))
            }
            _ => Self::Undialable,
        }
    }

    /// By the words: the transports wrap the system's errors in others that show them and do not hand them out, and
    /// the library's own timeouts never had a kind.
    fn of_transport(error: &io::Error) -> Self {
        let words = innermost(error).to_lowercase();
        if words.contains("refused") {
            Self::Refused
        } else if words.contains("timed out") || words.contains("timeout") {
            Self::TimedOut
        } else if NO_NODE.iter().any(|sign| words.contains(sign)) {
            Self::NoNode
        } else {
            Self::failed(error)
        }
    }

    /// Reads what came of looking the name up, by the words as well: they show the question as the resolver holds it,
    /// which says nothing to a person. `None` when there was an answer.
    fn of_name(error: &io::Error) -> Option<Self> {
        let words = format!("{error} {}", innermost(error)).to_lowercase();
        let is_said = |signs: &[&str]| signs.iter().any(|sign| words.contains(sign));
        if is_said(&["no records found", "no matching records", "nxdomain"]) {
            Some(Self::UnknownName)
        } else {
            is_said(&["resolv", "dns", "name server", "nameserver", "no connections available"])
                .then_some(Self::NoResolver)
        }
    }

    fn failed(error: &dyn Error) -> Self {
        let reason = innermost(error).chars().filter(|c| !c.is_control()).take(REASON_CHARS_MAX).collect();
        Self::Failed { reason }
    }

    pub const fn is_connected(&self) -> bool {
        matches!(self, Self::Connected { .. })
    }

    /// Returns whether patience cannot help: the configuration, here or there, has to change.
    pub const fn is_mistake(&self) -> bool {
        matches!(
            self,
            Self::OtherWallet { .. } | Self::OtherNetwork { .. } | Self::UnknownName | Self::Undialable
        )
    }
}

/// Follows the address in a sentence: `/ip4/… refuses the connection`.
impl std::fmt::Display for BootstrapState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Trying => f.write_str("is being tried"),
            Self::Connected { wallet } => write!(f, "is connected: {wallet}"),
            Self::Refused => f.write_str("refuses the connection"),
            Self::TimedOut => f.write_str("does not answer"),
            Self::Closed => f.write_str("closed the connection"),
            Self::OtherWallet { expected, found } => {
                write!(f, "is the node of another wallet: {found}, expected {expected}")
            }
            Self::OwnWallet => f.write_str("answers with this node's own wallet"),
            Self::OtherNetwork { name: Some(name) } => {
                let words =
                    NetworkName::new(name.as_str()).map_or_else(|_| name.clone(), |name| name.in_words());
                write!(f, "is a node of another network: {words}")
            }
            Self::OtherNetwork { name: None } => f.write_str("is not a node of this network"),
            Self::UnknownName => f.write_str("has a name that does not exist"),
            Self::NoResolver => f.write_str("has a name that could not be looked up"),
            Self::NoNode => f.write_str("answers, but not as a node does"),
            Self::Undialable => f.write_str("is not an address that can be dialled"),
            Self::Failed { reason } => write!(f, "cannot be reached: {reason}"),
        }
    }
}

/// Returns whether the address says how to get there: TCP, QUIC, or within this process.
fn has_transport(address: &Multiaddr) -> bool {
    address.iter().any(|part| matches!(part, Protocol::Tcp(_) | Protocol::QuicV1 | Protocol::Memory(_)))
}

fn has_name(address: &Multiaddr) -> bool {
    let first = address.iter().next();
    matches!(first, Some(Protocol::Dns(_) | Protocol::Dns4(_) | Protocol::Dns6(_) | Protocol::Dnsaddr(_)))
}

#[cfg(test)]
mod tests {
    use libp2p::PeerId;

    use super::*;

    fn transport(error: io::Error) -> DialError {
        DialError::Transport(vec![("/ip4/9.9.9.9/tcp/1".parse().unwrap(), TransportError::Other(error))])
    }

    #[test]
    fn a_failed_dial_is_told_by_its_cause() {
        let of = |error: &DialError| BootstrapState::of(error, None);
        let wrapped = io::Error::other("Connection refused (os error 111)");
        assert_eq!(of(&transport(wrapped)), Some(BootstrapState::Refused));
        assert_eq!(of(&transport(io::ErrorKind::TimedOut.into())), Some(BootstrapState::TimedOut));
        let library = io::Error::other("Timeout has been reached");
        assert_eq!(of(&transport(library)), Some(BootstrapState::TimedOut));
        let of_name = |words: &str| {
            let address = "/dns4/nowhere.example/tcp/1".parse().unwrap();
            of(&DialError::Transport(vec![(
                address,
                TransportError::Other(io::Error::other(words.to_owned())),
            )]))
        };
        let unknown = "no records found for Query { name: Name(\"nowhere.example.\"), query_type: A }";
        assert_eq!(of_name(unknown), Some(BootstrapState::UnknownName));
        assert_eq!(of_name("no connections available"), Some(BootstrapState::NoResolver));
        assert_eq!(of_name("Connection refused (os error 111)"), Some(BootstrapState::Refused));
        let odd = io::Error::other(io::Error::from(io::ErrorKind::InvalidData));
        assert_eq!(of(&transport(odd)), Some(BootstrapState::NoNode));
        let other = transport(io::Error::other(format!("no such thing{}", "!".repeat(1000))));
        let Some(BootstrapState::Failed { reason }) = of(&other) else { panic!() };
        assert_eq!(reason.chars().count(), REASON_CHARS_MAX);
        let address: Multiaddr = "/ip4/9.9.9.9".parse().unwrap();
        let odd = DialError::Transport(vec![(
            address.clone(),
            TransportError::MultiaddrNotSupported(address.clone()),
        )]);
        assert_eq!(of(&odd), Some(BootstrapState::Undialable));
        assert_eq!(of(&DialError::LocalPeerId { address: address.clone() }), Some(BootstrapState::OwnWallet));
        let stranger = DialError::WrongPeerId { obtained: PeerId::random(), address };
        assert_eq!(of(&stranger), Some(BootstrapState::OtherNetwork { name: None }), "of no wallet at all");
    }
}
