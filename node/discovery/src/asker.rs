//! The one on whose behalf a service is looked for, which decides in whose turn that is done, and what leaves memory for it.

use std::{fmt, sync::Arc};

use farthing_protocol::Listing;

/// The one in whose turn something is looked up, read or written: each has a share, so that nobody waits for all of another's.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Queuer {
    /// The node, which reads what nobody asked for.
    Node,
    /// The user of this node, at its console or in a terminal.
    User,
    /// The holder of the consumer secret of this name.
    Secret(String),
}

/// Somebody who looks for a service. A cheap handle.
#[derive(Clone)]
pub struct Asker(Option<Caller>);

/// The holder of a consumer secret.
#[derive(Clone)]
struct Caller {
    secret: String,
    /// Tells whether a call of the service could be paid for now, by its listing and the own books.
    can_pay: Arc<dyn Fn(&Listing) -> bool + Send + Sync>,
}

impl Asker {
    /// The user of this node, at its console or in a terminal.
    pub const USER: Self = Self(None);

    /// The holder of a secret, who can pay for a call of the services of which `can_pay` says so.
    pub fn with_secret(secret: String, can_pay: impl Fn(&Listing) -> bool + Send + Sync + 'static) -> Self {
        Self(Some(Caller { secret, can_pay: Arc::new(can_pay) }))
    }

    /// Tells whether services that were paid for may leave memory for this one.
    pub(super) fn may_displace(&self, listing: &Listing) -> bool {
        self.0.as_ref().is_none_or(|caller| (caller.can_pay)(listing))
    }

    pub(super) fn queuer(&self) -> Queuer {
        self.0.as_ref().map_or(Queuer::User, |caller| Queuer::Secret(caller.secret.clone()))
    }
}

impl fmt::Debug for Asker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Asker({:?})", self.queuer())
    }
}
