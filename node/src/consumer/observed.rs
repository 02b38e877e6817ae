//! Observations of a service by paid calls: judged after the answer was handed on, off the path of any call.
//!
//! Only what the owner answers for counts: a charged answer that keeps or breaks the service's description, a failure
//! by the owner's word, an answer that contradicts its receipt, a call that the owner took and left open. A call that
//! the service declined, that was refused, lost on its way, or free, says nothing.

use std::sync::Arc;

use bytes::Bytes;
use farthing_bridge::promised;
use farthing_protocol::call::Method;

use crate::catalog::{CallPlan, KnownService};

use super::{
    Bought, BuyError, Consumer, Order,
    conduct::{Conduct, TrialPermit, window::CallEnd},
    exchange::Exchanged,
    unanswered::Unanswered,
};

/// A larger answer is judged beside the tasks that serve calls.
const BESIDE_BYTES_MIN: usize = 16 * 1024;

/// An answer that was charged, and what it is held against.
struct ChargedAnswer {
    service: Arc<KnownService>,
    method: &'static str,
    path: String,
    accept: Option<String>,
    is_conditional: bool,
    status: u16,
    /// As the owner's server named it.
    media_type: Option<String>,
    body: Bytes,
    /// False for a head alone, and for a body that came compressed as asked for, which this node does not unfold.
    is_readable: bool,
}

impl Consumer {
    /// Returns the conduct of the services that this node pays.
    pub fn conduct(&self) -> &Conduct {
        &self.0.conduct
    }

    /// Checks that the rule about flagged services lets a call be bought; nothing is promised yet.
    pub(super) fn admitted(&self, order: &Order, plan: &CallPlan) -> Result<Option<TrialPermit>, BuyError> {
        if plan.price.is_zero() {
            return Ok(None);
        }
        let service = order.service;
        self.0
            .conduct
            .admit(service, &order.grant.name)
            .map_err(|refused| BuyError::Flagged { service, refused })
    }

    /// Counts how a call ended, in the background.
    pub(super) fn observe(
        &self,
        order: Order,
        service: Arc<KnownService>,
        bought: &Result<Bought, BuyError>,
        is_withheld: bool,
        trial: Option<TrialPermit>,
    ) {
        let (id, grant, conduct) = (order.service, Arc::clone(&order.grant), self.0.conduct.clone());
        let failed = match bought {
            Ok(bought) if bought.charged.is_zero() => return,
            Ok(bought) => {
                let charged = ChargedAnswer::new(order, service, bought);
                self.0.tasks.spawn(async move {
                    let (came, why) = match charged.judged().await.as_deref() {
                        None => (CallEnd::Good, ""),
                        Some(why) => (CallEnd::Broke, &*why.to_owned()),
                    };
                    conduct.note((id, &grant.name), came, why, trial).await;
                });
                return;
            }
            // Who asked for more than is passed on may ask for less.
            Err(BuyError::UpstreamFailed { why: Unanswered::Oversize, .. }) => return,
            Err(error @ (BuyError::UpstreamFailed { .. } | BuyError::BadAnswer { .. })) => error.to_string(),
            Err(BuyError::Undecided(_)) if is_withheld => "the owner's node left the call open".to_owned(),
            Err(BuyError::BodyGone { charged }) if is_withheld && !charged.is_zero() => {
                "the owner's node charged the call and kept its answer".to_owned()
            }
            Err(_) => return,
        };
        self.0
            .tasks
            .spawn(async move { conduct.note((id, &grant.name), CallEnd::Failed, &failed, trial).await });
    }
}

impl ChargedAnswer {
    fn new(order: Order, service: Arc<KnownService>, bought: &Bought) -> Self {
        let header = |name: &str| order.headers.get(name).cloned();
        let is_packed =
            bought.headers.contains_key("content-encoding") && header("accept-encoding").is_some();
        Self {
            method: order.method.as_str(),
            accept: header("accept"),
            is_conditional: header("if-none-match").or_else(|| header("if-modified-since")).is_some(),
            path: order.path,
            service,
            status: bought.status,
            media_type: bought.headers.get("content-type").cloned(),
            body: bought.body.clone(),
            is_readable: order.method != Method::Head && !is_packed,
        }
    }

    /// Describes in words how it breaks the description.
    async fn judged(self) -> Option<String> {
        if self.body.len() < BESIDE_BYTES_MIN {
            return self.judge();
        }
        tokio::task::spawn_blocking(move || self.judge()).await.unwrap_or_default()
    }

    fn judge(&self) -> Option<String> {
        if !self.is_readable {
            return None;
        }
        let api = self.service.api();
        let answer = promised::PromisedAnswer {
            status: self.status,
            body: &self.body,
            accept: self.accept.as_deref(),
            media_type: self.media_type.as_deref(),
            is_conditional: self.is_conditional,
        };
        let operation = api.operation_at(self.method, &self.path)?;
        promised::breach(api.description(), operation, &answer).map(|breach| breach.to_string())
    }
}

/// Tells whether the owner took the call, answered, and keeps its end or the answer to itself, with nothing lost on the
/// way.
pub(super) const fn is_withheld(exchanged: &Exchanged) -> bool {
    matches!(exchanged, Exchanged::Undecided { by_owner: true, .. } | Exchanged::Gone { by_owner: true, .. })
}
