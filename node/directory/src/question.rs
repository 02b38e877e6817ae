//! One question to one peer, and the proof that it was answered.

use std::time::Duration;

use crate::{
    Contact, Key,
    wire::{Request, Response},
};

/// The pause before a peer is asked to which our own limits kept a question back. The second time it is left out.
pub(crate) const DENIED_PAUSE: Duration = Duration::from_millis(450);

/// The reason that a question has no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// This node's own limits kept the question back. It says nothing of the peer.
    Denied,
    /// No answer came in time. The peer may be there.
    TimedOut,
    /// Nobody could be reached at any of its addresses, or somebody else was.
    Unreachable,
    /// The answer was no answer to the question.
    Malformed,
}

/// A question under way.
#[derive(Clone, Debug)]
pub(crate) struct Question {
    pub(crate) number: u32,
    pub(crate) contact: Contact,
    pub(crate) request: Request,
    /// The peer has to be dialled first.
    pub(crate) is_dial: bool,
    /// From then on the peer counts as silent.
    pub(crate) slow_at: Duration,
    pub(crate) deadline: Duration,
    /// The line of the look-up, and who named the peer.
    pub(crate) line: usize,
    pub(crate) named_by: Option<Key>,
}

/// A peer that answered a question, with addresses that it was reached at or says itself. There is no other way to one than a
/// question and its answer.
#[derive(Clone, Debug)]
pub(crate) struct AnsweringPeer(Contact);

impl Question {
    /// Ends the question with an answer that fits it, of a peer that is connected as `connected`.
    ///
    /// # Errors
    /// If it is the answer to something else.
    pub(crate) fn answered(
        &self,
        response: &Response,
        connected: Option<&Contact>,
    ) -> Result<AnsweringPeer, Failure> {
        let fits = match (&self.request, response) {
            (Request::FindNode { .. }, Response::FindNode { .. }) => true,
            (Request::GetValue { name }, Response::GetValue { found, .. }) => {
                found.as_ref().is_none_or(|found| found.name == *name)
            }
            (Request::PutValue(put), Response::PutValue(kept)) => put == kept,
            _ => false,
        };
        // Whoever named it may have named a wrong place, at which it was not dialled because it was connected.
        let contact = connected.unwrap_or(&self.contact);
        if fits { Ok(AnsweringPeer(contact.clone())) } else { Err(Failure::Malformed) }
    }
}

impl AnsweringPeer {
    pub(crate) const fn contact(&self) -> &Contact {
        &self.0
    }

    pub(crate) fn into_contact(self) -> Contact {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        testing::{contact, filed, place, question},
        wire::Filed,
    };

    #[test]
    fn an_answer_to_something_else_is_none() {
        let name = filed(1, b"a").name;
        let find = Request::FindNode { name: name.clone() };
        let get = Request::GetValue { name };
        let put = Request::PutValue(filed(1, b"a"));
        let got = |found: Option<Filed>| Response::GetValue { found, closer: Vec::new() };
        let none = || Response::FindNode { closer: Vec::new() };
        for (request, response, fits) in [
            (&find, none(), true),
            (&find, got(None), false),
            (&get, got(None), true),
            (&get, got(Some(filed(1, b"a"))), true),
            (&get, got(Some(filed(2, b"a"))), false),
            (&get, none(), false),
            (&put, Response::PutValue(filed(1, b"a")), true),
            (&put, Response::PutValue(filed(1, b"b")), false),
            (&put, none(), false),
        ] {
            let question = question(contact(1, place(1)), request.clone());
            assert_eq!(question.answered(&response, None).is_ok(), fits, "{request:?} {response:?}");
        }
    }
}
