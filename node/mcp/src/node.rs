//! The node as the tools ask it: over its control socket, or from inside the same program.

use farthing_control::{
    ControlClient, ControlError, Local, RawAnswer,
    endpoint::{Endpoint, Raw, Target},
};
use serde::{Serialize, de::DeserializeOwned};

/// A node to ask.
#[derive(Debug, Clone)]
pub enum AskedNode {
    Socket(ControlClient),
    Inside(Local),
}

impl AskedNode {
    pub(crate) async fn ask<E>(&self, at: impl Into<Target<E>>) -> Result<E::Response, ControlError>
    where
        E: Endpoint<Request = (), Response: DeserializeOwned>,
    {
        match self {
            Self::Socket(node) => node.ask(at).await,
            Self::Inside(node) => node.ask(at).await,
        }
    }

    pub(crate) async fn tell<E>(
        &self,
        at: impl Into<Target<E>>,
        request: &E::Request,
    ) -> Result<E::Response, ControlError>
    where
        E: Endpoint<Request: Serialize, Response: DeserializeOwned>,
    {
        match self {
            Self::Socket(node) => node.tell(at, request).await,
            Self::Inside(node) => node.tell(at, request).await,
        }
    }

    /// The answer as it came, whatever its status.
    pub(crate) async fn tell_raw<E>(
        &self,
        at: impl Into<Target<E>>,
        request: &E::Request,
    ) -> Result<RawAnswer, ControlError>
    where
        E: Endpoint<Request: Serialize, Response = Raw>,
    {
        match self {
            Self::Socket(node) => node.tell_raw(at, request).await,
            Self::Inside(node) => node.tell_raw(at, request).await,
        }
    }
}
