//! Requests at the door, and their answers.

use std::collections::BTreeMap;

use bytes::Bytes;
use farthing_bounds::{ByteBudget, HeldBytes, SharedBudget};
use farthing_bridge::description::Place;
use farthing_discovery::PlanError;
use farthing_protocol::{
    Address, CallId, CallRequest, Hash, Outcome, Refusal, RefusalCode, ServiceId, Usdc,
    call::{Method, Payment},
    keccak256, limits, wire,
};
use farthing_x402::{InvalidPayment, Terms};

use crate::{
    admit::{misfit, run_blocking},
    registry::Registered,
};

/// A larger body is hashed off the threads that all calls share.
const HASHED_BYTES_AT_ONCE_MAX: usize = 16 * 1024;
/// The headers that say what a client sends and can read. Answers are neither packed nor conditional here.
const PASSED_ON: [&str; 3] = ["accept", "accept-language", "content-type"];

/// Memory of the requests that bring payments. Their work goes on when their clients have hung up, and from then on the port counts
/// them no more.
const REQUESTS_BYTES_MAX: usize = 64 * 1024 * 1024;
/// The part of it that any request takes beside its body: its head, and the work on it.
const REQUEST_BYTES: usize = 32 * 1024;

/// The room for requests that bring payments. Copies of one payment wait for each other, so no payer takes more of it than it leaves
/// free. A request whose payment its payer did not sign holds its room for a moment.
#[derive(Debug)]
pub(super) struct CallRoom(SharedBudget<Address>);

impl Default for CallRoom {
    fn default() -> Self {
        Self(SharedBudget::new(ByteBudget::new(REQUESTS_BYTES_MAX)))
    }
}

impl CallRoom {
    /// Takes the room of one request, until dropped.
    ///
    /// # Errors
    /// A `Busy` refusal when there is too little.
    pub(super) fn take(&self, payer: Address, call: &DoorCall) -> Result<HeldBytes, Refusal> {
        self.0.of(payer).take(REQUEST_BYTES + call.body.len()).ok_or_else(|| {
            let detail = "the owner's node works on as many requests as it has room for";
            Refusal::new(RefusalCode::Busy, detail).retry_after_ms(1_000)
        })
    }
}

/// A request at the door.
#[derive(Clone, Debug)]
pub struct DoorCall {
    pub service: ServiceId,
    pub method: Method,
    pub path: String,
    /// Without its question mark.
    pub query: String,
    /// Names in lower case.
    pub headers: BTreeMap<String, String>,
    pub body: Bytes,
}

/// The answer to it.
#[derive(Clone, Debug)]
pub enum DoorAnswer {
    /// It has to be paid, on these terms; `invalid` is the reason that the payment which came does not.
    Due { terms: Terms, invalid: Option<InvalidPayment> },
    /// It is not served, and nothing is paid.
    Refused(Refusal),
    /// The service's own answer.
    Said(SoldAnswer),
    /// The service gave no answer, and nothing is paid.
    Failed(Outcome),
    /// The answer waits for its payment. With a reason, the chain has refused the payment; without one, it may be taken yet.
    Unpaid { payer: Address, reason: Option<String> },
}

/// An answer of a service.
#[derive(Clone, Debug)]
pub struct SoldAnswer {
    pub call_id: CallId,
    pub payer: Address,
    pub price: Usdc,
    pub status: u16,
    pub headers: BTreeMap<String, String>,
    pub body: Bytes,
    /// The transaction that paid it; `None` for an answer that costs nothing.
    pub paid_by: Option<Hash>,
    /// True if its sale had ended before this request.
    pub is_copy: bool,
}

impl DoorCall {
    /// Computes the hash of what it asks for, with these headers: a copy of its payment has to ask for the same.
    pub(super) async fn hash(&self, header_names: &[String]) -> Result<Hash, Refusal> {
        let content_type = self.headers.get("content-type");
        let named: Vec<_> = header_names.iter().map(|name| (name, self.headers.get(name))).collect();
        let asked = wire::encode(&(self.service, self.method, &self.path, &self.query, content_type, named));
        let hash = move |body: &[u8]| keccak256(&[b"farthing x402 request\0", &asked, &keccak256(&[body])]);
        if self.body.len() <= HASHED_BYTES_AT_ONCE_MAX {
            return Ok(hash(&self.body));
        }
        let body = self.body.clone();
        run_blocking(move || hash(&body)).await
    }

    /// Lists the headers that are parameters of its operation, in lower case.
    pub(super) fn header_names(&self, service: &Registered) -> Vec<String> {
        let operation = service.known().api().operation_at(self.method.as_str(), &self.path);
        let parameters = operation.into_iter().flat_map(|operation| &operation.parameters);
        let of_headers = parameters.filter(|parameter| parameter.place == Place::Header);
        of_headers.map(|parameter| parameter.name.to_ascii_lowercase()).collect()
    }

    /// Builds the call as the network's would be.
    pub(super) fn request(&self, service: &Registered, call_id: CallId) -> Result<CallRequest, Refusal> {
        let api = service.known().api();
        let params = api.params_of(self.method.as_str(), &self.path, &self.query);
        let mut params = params.map_err(|error| misfit(PlanError::from(error)))?;
        let operation = api.operation_at(self.method.as_str(), &self.path);
        let parameters = operation.into_iter().flat_map(|operation| &operation.parameters);
        for parameter in parameters.filter(|parameter| parameter.place == Place::Header) {
            if let Some(value) = self.headers.get(&parameter.name.to_ascii_lowercase()) {
                params.insert(parameter.name.clone(), value.clone());
            }
        }
        let passed_on = PASSED_ON.into_iter();
        let headers = passed_on.filter_map(|name| Some((name.to_owned(), self.headers.get(name)?.clone())));
        let request = CallRequest {
            call_id,
            service: self.service,
            listing_version: service.listing().seq,
            method: self.method,
            path: self.path.clone(),
            params,
            headers: headers.collect(),
            body_bytes: self.body.len() as u64,
            price: Usdc::ZERO,
            deadline_ms: limits::CALL_DEADLINE_MS_DEFAULT,
            payment: Payment::Free,
        };
        let bounds = request.check_bounds();
        bounds.map_err(|error| Refusal::new(RefusalCode::TooLarge, error.to_string()))?;
        Ok(request)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(body_bytes: usize) -> DoorCall {
        DoorCall {
            service: ServiceId::from_bytes([1; 16]),
            method: Method::Post,
            path: "/ok".to_owned(),
            query: String::new(),
            headers: BTreeMap::new(),
            body: vec![0_u8; body_bytes].into(),
        }
    }

    #[tokio::test]
    async fn a_copy_asks_for_the_same_only_with_the_same_headers_that_are_parameters() {
        let asked = |place: &str, trace: &str| {
            let headers = [("x-place", place), ("traceparent", trace)];
            let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned()));
            DoorCall { headers: headers.into(), ..call(0) }
        };
        let names = ["x-place".to_owned()];
        let first = asked("home", "1").hash(&names).await.unwrap();
        assert_eq!(asked("home", "2").hash(&names).await.unwrap(), first);
        assert_ne!(asked("away", "1").hash(&names).await.unwrap(), first);
        assert_ne!(call(0).hash(&names).await.unwrap(), first);
    }

    #[test]
    fn requests_whose_clients_may_have_hung_up_hold_so_much_memory_and_those_of_one_payer_half_of_it() {
        let [payer, other] = [1, 2].map(|n| Address::from_bytes([n; 20]));
        for (body_bytes, most, most_of_other) in [(0, 1_024, 512), (4 * 1024 * 1024, 7, 4)] {
            let (room, call) = (CallRoom::default(), call(body_bytes));
            let mut taken: Vec<_> = (0..most).map(|_| room.take(payer, &call).unwrap()).collect();
            assert_eq!(room.take(payer, &call).unwrap_err().code, RefusalCode::Busy, "{body_bytes} bytes");
            let others: Vec<_> = (0..most_of_other).map(|_| room.take(other, &call).unwrap()).collect();
            assert!(room.take(other, &call).is_err(), "{body_bytes} bytes");
            drop(others);
            taken.pop();
            assert!(room.take(payer, &call).is_ok(), "the end of one makes room");
        }
    }
}
