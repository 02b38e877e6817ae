//! What is told of a history: its steps, and the books of both sides.

use super::{World, short};
use crate::books::{bought, line, sold};

impl World {
    /// What happened so far, a line each; nothing unless that was wanted.
    pub fn log(&self) -> String {
        self.log.as_ref().map_or_else(String::new, |log| log.borrow().clone())
    }

    /// The chain, and on both sides what is in memory and in the ledger.
    pub fn books(&self) -> String {
        let channel = self.terms.channel;
        let mut lines = vec![line("chain", &self.chain), "the consumer".to_owned()];
        lines.push(line("in memory", &self.payer.channels.get(channel)));
        lines.extend(self.payer.works.iter().map(|(id, work)| line(&number("works on", *id), &work.next)));
        lines.push(line("forgotten", &self.payer.forgotten.iter().map(|id| short(*id)).collect::<Vec<_>>()));
        lines.extend(bought(&self.payer.ledger));
        lines.push("the owner".to_owned());
        lines.push(line("in memory", &self.payee.book.get(channel)));
        lines.push(line("serves", &self.payee.serving().iter().map(|id| short(*id)).collect::<Vec<_>>()));
        lines.extend(sold(&self.payee.ledger, self.terms.payer.address()));
        lines.join("\n")
    }
}

fn number(what: &str, id: farthing_protocol::CallId) -> String {
    format!("{what} {}", short(id))
}
