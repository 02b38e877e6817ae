//! The right to ask a service's server.
//!
//! Four types have it, each of which only one module makes: a call that was admitted, with what it pays reserved; a finished call
//! whose one repeat is stored; a call with a payment of its own that the token would take, which is stored; and a question of the
//! owner's own. So nothing reaches a server that nobody paid for, by mistake
//! of another module.

use farthing_bounds::HeldBytes;

use super::UpstreamRequest;

/// Permission to ask a service's server. A request alone is not enough:
///
/// ```compile_fail,E0277
/// use farthing_owner::upstream::{Upstream, UpstreamRequest};
///
/// async fn ask(upstream: &Upstream, request: UpstreamRequest) {
///     upstream.fetch(&request).await;
/// }
/// ```
///
/// What has a permit may be asked,
///
/// ```
/// use farthing_owner::upstream::{Permit, Upstream};
///
/// async fn ask(upstream: &Upstream, permit: &impl Permit) {
///     upstream.fetch(permit).await;
/// }
/// ```
///
/// and nobody else gives one:
///
/// ```compile_fail,E0603
/// use farthing_owner::upstream::{Permit, UpstreamRequest, permit::Sealed};
///
/// struct Free(UpstreamRequest);
/// impl Sealed for Free {}
/// impl Permit for Free {
///     fn request(&self) -> UpstreamRequest {
///         self.0.clone()
///     }
/// }
/// ```
pub trait Permit: Sealed {
    /// Returns the request that is permitted.
    fn request(&self) -> UpstreamRequest;

    /// Takes what is held for the answer, in the caller's share of the memory for answers; a question of the owner's own has
    /// none.
    fn room(&self) -> Option<HeldBytes> {
        None
    }

    /// Returns whether the answer goes through a relay, which carries small ones alone.
    fn is_relayed(&self) -> bool {
        false
    }
}

/// Implemented where a permit is made, and nowhere outside of the owner's modules.
pub trait Sealed {}

/// Tests of the server's side ask as they like.
#[cfg(test)]
impl Sealed for UpstreamRequest {}

#[cfg(test)]
impl Permit for UpstreamRequest {
    fn request(&self) -> UpstreamRequest {
        self.clone()
    }
}
