//! Free questions, on a stream of their own each.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use farthing_protocol::{
    Address,
    info::{InfoRequest, InfoResponse},
};
use tokio::time::timeout;

use super::{Inner, NetworkHandle};
use crate::{
    CallFailure, Interrupted, NotStarted,
    command::Protocol,
    info::{self, INFO_DEADLINE},
    line::Line,
};

impl NetworkHandle {
    /// Asks `peer` one free question.
    ///
    /// # Errors
    /// [`CallFailure`], of which both kinds are harmless here: questions have no effect.
    pub async fn ask(&self, peer: Address, request: InfoRequest) -> Result<InfoResponse, CallFailure> {
        self.0.ask(peer, &request).await
    }

    /// Asks `peer` one free question if it is connected. Nobody is dialled for it: what nobody waits for is asked this
    /// way, because a record may name the addresses of anybody.
    ///
    /// # Errors
    /// As [`Self::ask`], and [`NotStarted::NotConnected`].
    pub async fn ask_connected(
        &self,
        peer: Address,
        request: InfoRequest,
    ) -> Result<InfoResponse, CallFailure> {
        self.0.ask_connected(peer, &request).await
    }

    /// Asks `peer` for the records of these wallets, at most [`farthing_protocol::limits::INFO_ITEMS_MAX`], and keeps those
    /// that are newer than what is known. Returns how many were.
    pub async fn fetch_records(&self, peer: Address, wallets: Vec<Address>) -> Result<usize, CallFailure> {
        let asked = wallets.len();
        let answer = self.0.ask(peer, &InfoRequest::Records(wallets)).await?;
        let InfoResponse::Records(records) = answer else { return Ok(0) };
        let take = |record| {
            info::take_record(&self.0.records, &self.0.network, &self.0.counters, record, (peer, None))
        };
        Ok(records.into_iter().take(asked).map(take).filter(Result::is_ok).count())
    }

    /// The round trip of a question to `peer`, over a connection that is there or made first.
    pub async fn ping(&self, peer: Address) -> Result<Duration, CallFailure> {
        let nothing = InfoRequest::Records(Vec::new());
        // The first question may have to find and dial the peer; the second measures.
        self.0.ask(peer, &nothing).await?;
        let started = Instant::now();
        self.0.ask(peer, &nothing).await?;
        Ok(started.elapsed())
    }
}

impl Inner {
    pub(crate) async fn ask(
        self: &Arc<Self>,
        peer: Address,
        request: &InfoRequest,
    ) -> Result<InfoResponse, CallFailure> {
        let (stream, _) = self.stream(peer, Protocol::Info).await.map_err(CallFailure::NeverStarted)?;
        self.ask_on(stream, request).await
    }

    pub(crate) async fn ask_connected(
        &self,
        peer: Address,
        request: &InfoRequest,
    ) -> Result<InfoResponse, CallFailure> {
        let stream = self.open(peer, Protocol::Info).await.map_err(CallFailure::NeverStarted)?;
        let stream = stream.ok_or(CallFailure::NeverStarted(NotStarted::NotConnected(peer)))?;
        self.ask_on(stream, request).await
    }

    async fn ask_on(&self, stream: Line, request: &InfoRequest) -> Result<InfoResponse, CallFailure> {
        let answer = timeout(INFO_DEADLINE, info::exchange(stream, request, &self.budget)).await;
        answer.unwrap_or(Err(Interrupted::Deadline)).map_err(CallFailure::Unknown)
    }
}
