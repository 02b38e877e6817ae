//! `/farthing/<net>/reach/1`: dialling peers back when they ask for it.
//!
//! The order of checks: places, size, form, where the asker is connected from, how often it asked. Only then
//! is anything dialled, and only addresses of the asker itself.

use std::{
    net::IpAddr,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use bytes::Bytes;
use farthing_protocol::{
    Address, limits,
    reach::{DialBack, ReachRequest, ReachResponse, dial_back_key},
    wire,
};
use futures::{AsyncWriteExt, future::join_all};
use libp2p::{Multiaddr, PeerId, Stream};
use tokio::{
    sync::{mpsc::WeakSender, oneshot},
    time::timeout,
};

use super::{dialer::dial_back, limiter::Limiter, place};
use crate::{
    ReachConfig, addresses,
    admission::Admission,
    frame::{self, FrameError},
    report::{Reporter, Strike},
    status::Counters,
    swarm::Command,
};

/// Requests being served, per peer and in all; each dials at most eight addresses.
const REQUESTS_PER_PEER_MAX: usize = 1;
const REQUESTS_MAX: usize = 8;
/// What a request takes besides its dials: two frames on a slow line.
const FRAMES_DEADLINE: Duration = Duration::from_secs(5);

/// Who a connected peer is, and where its connections come from.
#[derive(Debug)]
pub(crate) struct Asker {
    pub(crate) id: PeerId,
    pub(crate) ips: Vec<IpAddr>,
}

/// Sends one request and reads its answer, at most as long as an honest peer takes.
pub(crate) async fn exchange(
    mut stream: Stream,
    request: &ReachRequest,
    dial_deadline: Duration,
) -> Result<ReachResponse, String> {
    let patience = dial_deadline + 2 * FRAMES_DEADLINE;
    let exchange = async {
        frame::write_frame(&mut stream, &wire::encode(request), &Bytes::new(), FRAMES_DEADLINE).await?;
        frame::read_head(&mut stream, limits::REACH_FRAME_BYTES_MAX, patience).await
    };
    let head = timeout(patience, exchange).await.map_err(|_| "it did not answer".to_owned())?;
    let head = head.map_err(|error: FrameError| error.to_string())?;
    wire::decode(&head).map_err(|error| error.to_string())
}

/// Dials peers that ask for it.
#[derive(Debug)]
pub(crate) struct ReachServer {
    admission: Arc<Admission>,
    limiter: Mutex<Limiter>,
    /// The swarm's task, which knows where peers are connected from. Weak: it must end without us.
    commands: WeakSender<Command>,
    dial_deadline: Duration,
    allow_private: bool,
    reporter: Reporter,
    counters: Arc<Counters>,
}

impl ReachServer {
    pub(crate) fn new(
        config: &ReachConfig,
        allow_private: bool,
        commands: WeakSender<Command>,
        reporter: Reporter,
        counters: Arc<Counters>,
    ) -> Arc<Self> {
        Arc::new(Self {
            admission: Admission::new(REQUESTS_PER_PEER_MAX, REQUESTS_MAX),
            limiter: Mutex::new(Limiter::new(config.asker_interval)),
            commands,
            dial_deadline: config.dial_deadline,
            allow_private,
            reporter,
            counters,
        })
    }

    /// Takes a stream that `peer` opened. Runs on its own task from here.
    pub(crate) fn accept(self: &Arc<Self>, peer: Address, stream: Stream) {
        let Some(permit) = self.admission.admit(peer) else {
            return Counters::add(&self.counters.streams_reset);
        };
        let server = Arc::clone(self);
        tokio::spawn(async move {
            server.serve(peer, stream).await;
            drop(permit);
        });
    }

    async fn serve(&self, peer: Address, mut stream: Stream) {
        let head = frame::read_head(&mut stream, limits::REACH_FRAME_BYTES_MAX, FRAMES_DEADLINE);
        let response = match timeout(FRAMES_DEADLINE, head).await {
            Ok(Ok(head)) => self.answer(peer, &head).await,
            Ok(Err(error @ FrameError::TooLarge { .. })) => {
                self.reporter.strike(peer, Strike::TooLarge);
                ReachResponse::Refused(error.to_string())
            }
            // A peer that is too slow, or gone, finds its stream closed.
            Ok(Err(_)) | Err(_) => return,
        };
        if !matches!(response, ReachResponse::Dialled(_)) {
            Counters::add(&self.counters.dial_backs_refused);
        }
        let head = wire::encode(&response);
        if frame::write_frame(&mut stream, &head, &Bytes::new(), FRAMES_DEADLINE).await.is_ok() {
            let _ = timeout(FRAMES_DEADLINE, stream.close()).await;
        }
    }

    async fn answer(&self, peer: Address, head: &[u8]) -> ReachResponse {
        let request: ReachRequest = match wire::decode(head) {
            Ok(request) => request,
            Err(error) => {
                self.reporter.strike(peer, Strike::Malformed);
                return ReachResponse::Refused(error.to_string());
            }
        };
        if request.addresses.len() > limits::REACH_ADDRESSES_MAX {
            self.reporter.strike(peer, Strike::TooLarge);
            return ReachResponse::Refused(format!("at most {} addresses", limits::REACH_ADDRESSES_MAX));
        }
        let Some(asker) = self.asker(peer).await else {
            return ReachResponse::Refused("you are not connected".to_owned());
        };
        let admitted = {
            // The maps are changed by single operations, so a panic elsewhere leaves them whole.
            let mut limiter = self.limiter.lock().unwrap_or_else(PoisonError::into_inner);
            limiter.admit(peer, &asker.ips, Instant::now())
        };
        match admitted {
            Ok(()) => {
                let dials = (0..).zip(&request.addresses).map(|(index, bytes)| {
                    let (asker, nonce) = (&asker, &request.nonce);
                    async move {
                        match self.dial(asker, nonce, index, bytes).await {
                            Ok(()) => DialBack::Reached,
                            Err(why) => DialBack::Failed(cut(&why)),
                        }
                    }
                });
                ReachResponse::Dialled(join_all(dials).await)
            }
            Err(wait) => ReachResponse::TooSoon { retry_after_secs: wait.as_secs() + 1 },
        }
    }

    async fn asker(&self, peer: Address) -> Option<Asker> {
        let (reply, answer) = oneshot::channel();
        let commands = self.commands.upgrade()?;
        commands.send(Command::Asker { peer, reply }).await.ok()?;
        answer.await.ok()?
    }

    async fn dial(
        &self,
        asker: &Asker,
        nonce: &farthing_protocol::Hash,
        index: u8,
        address: &[u8],
    ) -> Result<(), String> {
        let address = Multiaddr::try_from(address.to_vec())
            .map(|address| addresses::without_peer(&address))
            .map_err(|_| "this is no multiaddress".to_owned())?;
        if !place::may_be_dialled(&address, &asker.ips, self.allow_private) {
            let ips: Vec<String> = asker.ips.iter().map(ToString::to_string).collect();
            return Err(format!("not dialled: you are connected from {}", ips.join(", ")));
        }
        let key = dial_back_key(nonce, index).ok_or_else(|| "this nonce makes no key".to_owned())?;
        Counters::add(&self.counters.dial_backs);
        dial_back(address, asker.id, &key, self.dial_deadline).await
    }
}

fn cut(reason: &str) -> String {
    reason.chars().take(limits::REACH_REASON_CHARS_MAX).collect()
}
