//! Finding out that a connection is dead while somebody waits for an answer over it.
//!
//! A line that fails says nothing: TCP goes on for minutes, and pings find out within 50 s. Whoever waits for an
//! answer should not wait for that. When nothing moves for a few seconds, the peer is asked something small over the
//! same connection; one that does not answer that either is not there, and the connection is given up.

use std::{convert::Infallible, sync::Arc, time::Duration};

use farthing_protocol::{Address, info::InfoRequest};
use tokio::time::{sleep, timeout};

use crate::{
    command::{Command, Protocol},
    handle::Inner,
    info,
    line::Traffic,
};

/// Silence after which the line is looked at; doubled each time it turns out to be alive.
const SILENCE: Duration = Duration::from_secs(3);
/// The longest time for an answer of a few bytes. A second is much for a round trip; a lost packet costs one or two.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);
/// The rate at which a request's body adds to the silence: a question waits behind it in buffers while it travels.
const BODY_BYTES_PER_SEC: usize = 32 * 1024;

impl Inner {
    /// Waits for `work`, which a dead connection would keep waiting, and gives the connection up when it is dead; the
    /// work then ends by itself.
    pub(crate) async fn over_watched_line<T>(
        self: &Arc<Self>,
        peer: Address,
        line: Traffic,
        body_bytes: usize,
        work: impl Future<Output = T>,
    ) -> T {
        let silence = SILENCE + Duration::from_secs((body_bytes / BODY_BYTES_PER_SEC) as u64);
        tokio::select! {
            biased;
            done = work => done,
            never = self.watch_line(peer, &line, silence) => match never {},
        }
    }

    async fn watch_line(
        self: &Arc<Self>,
        peer: Address,
        line: &Traffic,
        mut silence: Duration,
    ) -> Infallible {
        loop {
            let before = line.moved();
            sleep(silence).await;
            if line.moved() != before {
                continue;
            }
            if self.answers(peer, line).await || line.moved() != before {
                silence *= 2;
            } else {
                tracing::debug!(%peer, "nothing arrives on a connection; closing it");
                // An error means that the network has stopped, and with it the connection.
                let _ = self.send(Command::GiveUp { connection: line.connection }).await;
                return std::future::pending().await;
            }
        }
    }

    /// Returns whether the peer answers a question over this connection; true as well when it cannot be asked there:
    /// nothing speaks against the connection then.
    async fn answers(self: &Arc<Self>, peer: Address, line: &Traffic) -> bool {
        let Ok(Some(question)) = self.open(peer, Protocol::Info).await else { return true };
        if question.traffic().connection != line.connection {
            return true;
        }
        let nothing = InfoRequest::Records(Vec::new());
        timeout(ANSWER_WITHIN, info::exchange(question, &nothing, &self.budget)).await.is_ok()
    }
}
