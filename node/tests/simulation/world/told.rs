//! What is told of a history: its steps, and the books of both sides.

use std::fmt::Debug;

use farthing_ledger::{Ledger, PurchaseEnd};

use super::{World, short};

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
        lines.extend(self.payee.ledger.payee_channels().unwrap().iter().map(|row| line("channel", row)));
        lines.extend(self.payee.recorded_calls().values().map(|call| {
            let (number, price, outcome) = (short(call.call_id), call.price, call.outcome);
            format!("  call {number} at {price}: {outcome:?}, {} charged", call.charged)
        }));
        lines.extend(violations(&self.payee.ledger));
        lines.join("\n")
    }
}

/// The consumer's rows.
fn bought(ledger: &Ledger) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    lines.extend(ledger.payer_channels().unwrap().iter().map(|row| line("channel", row)));
    lines.extend(ledger.unresolved().unwrap().iter().map(|promise| {
        let (number, price) = (short(promise.request.call_id), promise.request.price);
        format!("  call {number} at {price}: open")
    }));
    lines.extend(ledger.purchases(usize::MAX).unwrap().iter().map(|purchase| {
        let (number, price) = (short(purchase.call_id), purchase.price);
        let end = match &purchase.end {
            PurchaseEnd::Acknowledged { outcome, .. } => format!("{outcome:?}"),
            PurchaseEnd::Transferred { status, .. } => format!("transferred, {status}"),
            PurchaseEnd::Released { reason, in_doubt, .. } => format!("{reason}, in doubt: {in_doubt}"),
        };
        format!("  call {number} at {price}: {end}, {} charged", purchase.charged)
    }));
    lines.extend(violations(ledger));
    lines
}

fn violations(ledger: &Ledger) -> Vec<String> {
    let audit = ledger.audit(None).unwrap();
    audit.violations.iter().map(|violation| line("violation", violation)).collect()
}

fn number(what: &str, id: farthing_protocol::CallId) -> String {
    format!("{what} {}", short(id))
}

fn line(what: &str, value: &impl Debug) -> String {
    format!("  {what}: {value:?}")
}
