//! Observations of a service by paid calls: an answer is judged after it was handed on, off the path of any call.
//!
//! Only what the owner answers for counts: a charged answer that keeps or breaks the service's description, a failure
//! by the owner's word, an answer that contradicts its receipt, a charge for a call whose answer it does not give when it is
//! asked again, a call that the owner took and never ended with a receipt. A call that the service declined, that was refused,
//! lost on its way, or free, says nothing, and one that outlasts its caller's time nothing before its end. That is judged by the
//! version of the service that the call was bought with, which is read again where memory has given it up. What keeps this node
//! from that is its own trouble: the call counts neither for nor against the service then.
//!
//! An honest owner keeps an answer for a while, and asks its service once more for one that is gone. But it forgets, and a
//! network that breaks off loses every answer under way. So of the charges whose answers were lost those count that are for
//! calls made after the last one that counted was known ([`Conduct::note_lost`]): one break counts once, and an owner that
//! breaks off each call counts each time.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use bytes::Bytes;
use farthing_bridge::promised;
use farthing_discovery::{Asker, CallPlan, Catalog, KnownService};
use farthing_ledger::{Promise, Purchase};
use farthing_protocol::{CallRequest, CallResponse, Outcome, Receipt, ServiceId, call::Method, limits};
use farthing_shared::{blocking::start_blocking, tasks::Tasks};
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::{
    Bought, BuyError, Order,
    conduct::{
        Conduct, TrialPermit,
        window::{CallEnd, LostAnswer},
    },
    exchange::LostAt,
    open_verdict::{BoughtVersion, OpenVerdict},
    unanswered::Unanswered,
};

/// A larger answer is judged beside the tasks that serve calls.
const BESIDE_BYTES_MIN: usize = 16 * 1024;
/// Until a description is tried to be read again that this node could not read: it had no room, or its disk failed.
const READ_AGAIN_AFTER: Duration = Duration::from_secs(5);
/// The longest that an answer waits for what it is judged by: as long as the longest call. An owner cannot have it wait so
/// long, nor whoever else is asked, so this node is the reason then.
const JUDGED_WITHIN: Duration = Duration::from_millis(limits::CALL_DEADLINE_MS_MAX);

const CHARGED_AND_LOST: &str =
    "the call was charged, its answer never arrived, and the owner's node did not give it when asked again";
const CHARGED_AND_UNJUDGED: &str =
    "the call was charged late, and the description it was bought with is no longer available";
const LEFT_OPEN: &str =
    "the owner's node took the call, did not end it in time, and said later that it was not charged";
const FAILED_LATER: &str = "the owner's node said after the call's time that the service had failed";
const CHARGED_AFTER_ALL: &str = "the owner's node said that the call was not charged, and charged it later";

/// The outcome of looking for the version that a call was bought with.
enum Grounds {
    Read(Arc<KnownService>),
    /// Nobody reachable has it any more.
    Gone,
    /// This node cannot read it.
    Unread,
}

/// An answer that was charged, and what was asked for.
struct ChargedAnswer {
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

/// The judge of services by how the calls to them end. A cheap handle.
#[derive(Clone, Debug)]
pub(super) struct Observer {
    pub conduct: Conduct,
    pub catalog: Catalog,
    /// Answers are judged in them, after their callers were served.
    pub tasks: Tasks,
    pub stopping: CancellationToken,
}

impl Observer {
    /// Checks that the rule about flagged services lets a call be bought; nothing is promised yet.
    pub(super) fn admitted(&self, order: &Order, plan: &CallPlan) -> Result<Option<TrialPermit>, BuyError> {
        if plan.price.is_zero() {
            return Ok(None);
        }
        let service = order.service;
        self.conduct
            .admit(service, &order.grant.name)
            .map_err(|refused| BuyError::Flagged { service, refused })
    }

    /// Counts how a call ended for its caller.
    pub(super) fn observe(
        &self,
        promise: &Promise,
        bought: &Result<Bought, BuyError>,
        lost_at: Option<LostAt>,
        unjudged: OpenVerdict,
    ) {
        let failed = match bought {
            Ok(bought) if !bought.is_charged() => return,
            Ok(bought) => {
                let answer = (bought.status, &bought.headers, bought.body.clone());
                return self.judge(promise, answer, true, unjudged);
            }
            // Who asked for more than is passed on may ask for less.
            Err(BuyError::UpstreamFailed { why: Unanswered::Oversize, .. }) => return,
            Err(error @ (BuyError::UpstreamFailed { .. } | BuyError::BadAnswer { .. })) => error.to_string(),
            Err(BuyError::BodyGone { charged }) if !charged.is_zero() => match lost_at {
                Some(LostAt::Owner) => "the owner's node charged the call and kept its answer".to_owned(),
                Some(LostAt::Way) => return self.count_lost(promise, CHARGED_AND_LOST, unjudged),
                Some(LostAt::Here) | None => return,
            },
            Err(BuyError::Refused(_) | BuyError::OwnerUnreachable(_)) => {
                return self.observe_uncharged(promise, unjudged);
            }
            Err(_) => return,
        };
        let noted = self.conduct.note(counted_under(promise), CallEnd::Failed, &failed, unjudged.trial);
        self.tasks.spawn(noted);
    }

    /// Counts how a call ended that nobody waits for any more: with this answer, or with its receipt alone.
    pub(super) fn observe_late(
        &self,
        promise: &Promise,
        receipt: &Receipt,
        answer: Option<(CallResponse, Bytes)>,
        unjudged: OpenVerdict,
    ) {
        match answer {
            _ if receipt.charged.is_zero() => {
                if has_failed(receipt) {
                    let call = counted_under(promise);
                    let noted = self.conduct.note(call, CallEnd::Failed, FAILED_LATER, unjudged.trial);
                    self.tasks.spawn(noted);
                }
            }
            // It is no praise, but of a trial: its caller was not handed it.
            Some((answer, body)) => {
                self.judge(promise, (answer.status, &answer.headers, body), false, unjudged);
            }
            None => self.count_lost(promise, CHARGED_AND_LOST, unjudged),
        }
    }

    /// Counts a call that was not charged, where its owner had it and ended it with neither answer nor receipt. An owner that
    /// stops breaks off all calls under way, as a network does.
    pub(super) fn observe_uncharged(&self, promise: &Promise, unjudged: OpenVerdict) {
        if unjudged.was_taken {
            self.count_lost(promise, LEFT_OPEN, unjudged);
        }
    }

    /// Counts a charge for a call that had ended as not charged; of those in the same books the first counts.
    pub(super) fn observe_charge_after_all(&self, purchase: &Purchase, lost: LostAnswer) {
        let call = (purchase.service, &*purchase.secret);
        self.tasks.spawn(self.conduct.note_lost(call, CHARGED_AFTER_ALL, lost, None));
    }

    fn judge(
        &self,
        promise: &Promise,
        answer: (u16, &BTreeMap<String, String>, Bytes),
        was_handed_on: bool,
        unjudged: OpenVerdict,
    ) {
        let OpenVerdict { bought, made, trial, .. } = unjudged;
        let lost = LostAnswer { made, known: Instant::now() };
        let charged = ChargedAnswer::new(&promise.request, answer);
        // Now: whoever bought it may let go of it next.
        let known = bought.known.upgrade();
        let (observer, service, secret) = (self.clone(), promise.request.service, promise.secret.clone());
        self.tasks.spawn(async move {
            let (conduct, call) = (&observer.conduct, (service, &*secret));
            let known = match known {
                Some(known) => known,
                None => {
                    let grounds = observer.read_again(&bought, &secret);
                    match observer.stopping.run_until_cancelled(grounds).await {
                        Some(Grounds::Read(known)) => known,
                        Some(Grounds::Gone) => {
                            return conduct.note_lost(call, CHARGED_AND_UNJUDGED, lost, trial).await;
                        }
                        // Nor is anything said of it when this node stops.
                        Some(Grounds::Unread) | None => return,
                    }
                }
            };
            let (came, why) = match charged.judged(known).await {
                Some(why) => (CallEnd::Broke, why),
                // A trial ends with its count, or the next one would follow at once, and so on.
                None if was_handed_on || trial.is_some() => (CallEnd::Good, String::new()),
                None => return,
            };
            conduct.note(call, came, &why, trial).await;
        });
    }

    /// Looks for the service as a call was bought with it, in the turn of its secret.
    async fn read_again(&self, bought: &BoughtVersion, secret: &str) -> Grounds {
        let asker = Asker::with_secret(secret.to_owned(), |_| false);
        let mut trouble = None;
        let reading = async {
            loop {
                match self.catalog.version(&bought.listing, &asker).await {
                    Ok(known) => return Grounds::Read(known),
                    Err(error) if error.is_of_others() => return Grounds::Gone,
                    Err(error) => trouble = Some(error),
                }
                sleep(READ_AGAIN_AFTER).await;
            }
        };
        let grounds = timeout(JUDGED_WITHIN, reading).await;
        grounds.unwrap_or_else(|_| {
            let why = trouble.map_or_else(
                || "too many other descriptions are being read first".to_owned(),
                |error| format!("{error}. {}", error.next_step()),
            );
            let service = bought.listing.service;
            tracing::warn!(%service, %secret, why, "a charged answer cannot be judged: this node cannot read its \
                                                    description");
            Grounds::Unread
        })
    }

    fn count_lost(&self, promise: &Promise, why: &str, unjudged: OpenVerdict) {
        let (call, OpenVerdict { made, trial, .. }) = (counted_under(promise), unjudged);
        let lost = LostAnswer { made, known: Instant::now() };
        self.tasks.spawn(self.conduct.note_lost(call, why, lost, trial));
    }
}

/// Returns the service and the secret that a call's end counts for.
fn counted_under(promise: &Promise) -> (ServiceId, &str) {
    (promise.request.service, &promise.secret)
}

/// Tells whether the service failed, by its owner's receipt. Who asked for more than is passed on may ask for less.
fn has_failed(receipt: &Receipt) -> bool {
    let outcome = Outcome::from_code(receipt.outcome);
    outcome.is_some_and(|outcome| !outcome.is_the_services_answer() && outcome != Outcome::Oversize)
}

impl ChargedAnswer {
    fn new(request: &CallRequest, (status, headers, body): (u16, &BTreeMap<String, String>, Bytes)) -> Self {
        let header = |name: &str| request.headers.get(name).cloned();
        let is_packed = headers.contains_key("content-encoding") && header("accept-encoding").is_some();
        Self {
            method: request.method.as_str(),
            accept: header("accept"),
            is_conditional: header("if-none-match").or_else(|| header("if-modified-since")).is_some(),
            path: request.path.clone(),
            status,
            media_type: headers.get("content-type").cloned(),
            body,
            is_readable: request.method != Method::Head && !is_packed,
        }
    }

    /// Describes in words how it breaks the description.
    async fn judged(self, service: Arc<KnownService>) -> Option<String> {
        if self.body.len() < BESIDE_BYTES_MIN {
            return self.judge(&service);
        }
        start_blocking(move || self.judge(&service)).await.unwrap_or_default()
    }

    fn judge(&self, service: &KnownService) -> Option<String> {
        if !self.is_readable {
            return None;
        }
        let api = service.api();
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
