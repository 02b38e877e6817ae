//! The endpoints of a played chain, and what is wrong with each.

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::{
    answer::{answer, is_broadcast},
    faults::Faults,
    machine::{Genesis, Machine},
};

/// The answer of an endpoint, and the time that it takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said {
    pub after: Duration,
    /// `None` when the connection ends without an answer.
    pub body: Option<Vec<u8>>,
}

#[derive(Debug)]
struct Inner {
    machine: Machine,
    faults: Vec<Faults>,
}

/// A chain with its endpoints. Copies are handles of the same one.
#[derive(Clone, Debug)]
pub struct PlayedChain(Arc<Mutex<Inner>>);

impl PlayedChain {
    pub fn new(genesis: &Genesis, endpoints: usize) -> Self {
        let faults = vec![Faults::default(); endpoints];
        Self(Arc::new(Mutex::new(Inner { machine: Machine::new(genesis), faults })))
    }

    /// Asks an endpoint, as a node does. Nothing waits here: whoever asks waits for as long as the answer takes.
    pub fn ask(&self, endpoint: usize, body: &str) -> Said {
        let mut inner = self.0.lock();
        let Inner { machine, faults } = &mut *inner;
        let Some(faults) = faults.get_mut(endpoint).filter(|faults| !faults.is_down) else {
            return Said { after: Duration::ZERO, body: None };
        };
        let after = faults.late;
        let said = answer(machine, faults, body).to_string().into_bytes();
        if faults.unanswered_broadcasts > 0 && is_broadcast(body) {
            faults.unanswered_broadcasts -= 1;
            return Said { after, body: None };
        }
        Said { after, body: Some(said) }
    }

    /// A request of the test itself, to the chain as it is.
    ///
    /// # Errors
    /// The error as the chain's servers tell it.
    pub fn request(&self, method: &str, params: &Value) -> Result<Value, Value> {
        let body = json!({ "jsonrpc": "2.0", "id": 0, "method": method, "params": params }).to_string();
        let mut said = answer(&mut self.0.lock().machine, &mut Faults::default(), &body);
        match said.get("error") {
            Some(error) => Err(error.clone()),
            None => Ok(said["result"].take()),
        }
    }

    /// Changes what is wrong with an endpoint; one that is not there stays so.
    pub fn change_faults(&self, endpoint: usize, change: impl FnOnce(&mut Faults)) {
        if let Some(faults) = self.0.lock().faults.get_mut(endpoint) {
            change(faults);
        }
    }

    /// Looks at the chain, or tells it what to do.
    pub fn with<T>(&self, act: impl FnOnce(&mut Machine) -> T) -> T {
        act(&mut self.0.lock().machine)
    }
}
