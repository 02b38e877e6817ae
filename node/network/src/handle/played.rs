//! The handle of a node without a swarm, and its calls.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use farthing_bounds::HeldBytes;
use farthing_protocol::{Address, CallMessage, CallReply};
use tokio::{
    sync::{mpsc, watch},
    time::Instant,
};

use super::{Calls, Inner, NetworkHandle};
use crate::{
    CallFailure, CallTiming, Interrupted, NetworkConfig, NetworkStatus, NotStarted, Played, PlayedCall,
    admission::Admission,
    call::KeptStreams,
    partners::Partners,
    records::{Records, SharedRecords},
    report::Reporter,
};

/// Messages that wait for whoever plays.
const CALLS_MAX: usize = 1_024;

impl NetworkHandle {
    /// A node without a swarm: its messages come out of the queue, and whoever takes them plays the network. What else a network
    /// does is answered as by one that has stopped.
    #[must_use]
    pub fn played(config: &NetworkConfig) -> (Self, Played, mpsc::Receiver<PlayedCall>) {
        let (calls, messages) = mpsc::channel(CALLS_MAX);
        let (limits, partners) = (&config.limits, Partners::default());
        let played = Played::new(calls, partners.clone());
        let records = Records::new(config.key.address(), limits.records_max, partners.clone());
        let (commands, _) = mpsc::channel(1);
        let (_, status) = watch::channel(NetworkStatus::default());
        let (reporter, _) = Reporter::new();
        let calls = Calls {
            calling: Admission::new(limits.outbound_calls_per_peer_max, limits.outbound_calls_max),
            kept: Arc::new(KeptStreams::new(limits.stream_rest_max)),
            partners,
            played: Some(played.clone()),
        };
        let handle =
            Self::new(commands, status, SharedRecords::new(records), Arc::default(), calls, reporter, config);
        (handle, played, messages)
    }
}

impl Inner {
    /// One call over a line that is played. What this node checks before and after is its own.
    pub(super) async fn call_played(
        &self,
        line: &Played,
        owner: Address,
        (message, body): (&CallMessage, &Bytes),
        deadline: Duration,
        room: HeldBytes,
    ) -> Result<(CallReply, Bytes, CallTiming), CallFailure> {
        if owner == self.own {
            return Err(CallFailure::NeverStarted(NotStarted::OwnWallet(owner)));
        }
        let started = Instant::now();
        let carried = line.carry(owner, message.clone(), body.clone(), deadline).await;
        let answer = carried.and_then(|(reply, body)| Ok((reply, held(body, room)?)));
        self.missed.note(message, &answer);
        let (reply, body) = answer?;
        let timing = CallTiming { connect: Duration::ZERO, exchange: started.elapsed(), warm: true };
        Ok((reply, body, timing))
    }
}

/// An answer's body, if there is room for it.
fn held(body: Bytes, mut room: HeldBytes) -> Result<Bytes, CallFailure> {
    let bytes = body.len();
    if !room.grow(bytes.saturating_sub(room.bytes())) {
        return Err(CallFailure::Unknown(Interrupted::NoRoom { bytes }));
    }
    room.keep(bytes);
    Ok(room.attach(body))
}
