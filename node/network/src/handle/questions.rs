//! Free questions, on a stream of their own each.

use std::sync::Arc;

use farthing_protocol::{
    Address,
    info::{InfoRequest, InfoResponse},
};
use tokio::time::timeout;

use super::Inner;
use crate::{
    CallFailure, Interrupted, NotStarted,
    command::Protocol,
    info::{self, INFO_DEADLINE},
    line::Line,
};

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
