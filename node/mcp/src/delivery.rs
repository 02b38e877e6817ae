//! The delivery of answers on standard input and output.
//!
//! 1. A tool has an answer that ends the note of a call ([`Conversation::ends_call`]).
//! 2. The transport writes it. The note ends if that succeeds, and if the agent had not closed its end before.
//! 3. A request that comes while a note ends waits for it ([`Conversation::delivered`]), so that an agent that has the answer of a call
//!    makes a new one.
//!
//! Invariant: an answer that nobody can read ends no note, so a repeat gets it and pays nothing more.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use parking_lot::Mutex;
use rmcp::{
    RoleServer,
    model::{JsonRpcMessage, RequestId},
    service::{RxJsonRpcMessage, TxJsonRpcMessage},
    transport::Transport,
};
use tokio::sync::RwLock;

use crate::{PresentedSecret, toolbox::Toolbox};

/// One conversation with an agent.
#[derive(Debug)]
pub struct Conversation {
    toolbox: Arc<Toolbox>,
    secret: PresentedSecret,
    /// Ids of calls, by the requests whose answers are not written.
    unwritten: Mutex<HashMap<RequestId, String>>,
    /// True once the agent has closed its end: it ends, and reads no answer any more.
    is_closed: AtomicBool,
    /// Read by each answer from before it is written until the note of its call has ended.
    deliveries: RwLock<()>,
}

impl Conversation {
    pub fn new(toolbox: Arc<Toolbox>, secret: PresentedSecret) -> Self {
        Self {
            toolbox,
            secret,
            unwritten: Mutex::default(),
            is_closed: AtomicBool::new(false),
            deliveries: RwLock::new(()),
        }
    }

    pub const fn secret(&self) -> &PresentedSecret {
        &self.secret
    }

    /// Notes that the answer to a request ends the note of a call, once it is written.
    pub fn ends_call(&self, request: RequestId, call_id: String) {
        self.unwritten.lock().insert(request, call_id);
    }

    /// Waits for the end of the notes whose answers the agent may have.
    pub async fn delivered(&self) {
        drop(self.deliveries.write().await);
    }

    /// Writes the answer to a request, and ends the note of its call if the agent has it then.
    async fn deliver<E>(
        &self,
        request: &RequestId,
        write: impl Future<Output = Result<(), E>>,
    ) -> Result<(), E> {
        let ended = self.unwritten.lock().remove(request);
        let Some(call_id) = ended else { return write.await };
        let _delivery = self.deliveries.read().await;
        let was_open = !self.is_closed.load(Ordering::Relaxed);
        let written = write.await;
        if written.is_ok() && was_open {
            self.toolbox.end(&self.secret.name, call_id).await;
        }
        written
    }
}

/// The transport of a conversation, which tells it what was written and when the agent closes its end.
#[derive(Debug)]
pub struct ConversationTransport<T> {
    transport: T,
    conversation: Arc<Conversation>,
}

impl<T> ConversationTransport<T> {
    pub const fn new(transport: T, conversation: Arc<Conversation>) -> Self {
        Self { transport, conversation }
    }
}

impl<T: Transport<RoleServer> + 'static> Transport<RoleServer> for ConversationTransport<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let answered = match &message {
            JsonRpcMessage::Response(response) => Some(response.id.clone()),
            _ => None,
        };
        let conversation = Arc::clone(&self.conversation);
        let write = self.transport.send(message);
        async move {
            match answered {
                Some(request) => conversation.deliver(&request, write).await,
                None => write.await,
            }
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        let message = self.transport.receive().await;
        if message.is_none() {
            self.conversation.is_closed.store(true, Ordering::Relaxed);
        }
        message
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.transport.close().await
    }
}

#[cfg(test)]
mod tests {
    use std::{future::ready, path::Path, pin::pin};

    use farthing_control::ControlClient;
    use tokio::{select, sync::oneshot};

    use super::*;
    use crate::node::AskedNode;

    #[tokio::test]
    async fn a_request_waits_for_the_end_of_a_note_whose_answer_the_agent_may_have() {
        let node = AskedNode::Socket(ControlClient::in_folder(Path::new("/nowhere")));
        let secret = PresentedSecret { name: "a".to_owned(), since_secs: 0 };
        let conversation = Conversation::new(Arc::new(Toolbox::of(node)), secret);
        conversation.delivered().await;
        let request = RequestId::Number(2);
        conversation.ends_call(request.clone(), "c1".to_owned());
        let (is_written, write) = oneshot::channel::<()>();
        let mut delivery = pin!(conversation.deliver(&request, write));
        let mut next = pin!(conversation.delivered());
        select! {
            biased;
            done = &mut delivery => panic!("it is not written: {done:?}"),
            () = &mut next => panic!("it waits"),
            () = ready(()) => {}
        }
        is_written.send(()).unwrap();
        delivery.await.unwrap();
        next.await;
        assert!(conversation.unwritten.lock().is_empty());
    }
}
