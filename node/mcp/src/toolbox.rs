//! The tools at work: each asks the node, and makes a result of what it answers.
//!
//! A call leaves with an id that its result names. The node notes it until the agent has the answer: a repeat of the agent, or of its
//! program that was started again, has the same id. If a user has to confirm prices above an amount, the call leaves with this
//! amount as its highest price: the node decides, and nothing dearer is bought before [`Unconfirmed`] was answered.

use std::hash::RandomState;

use farthing_control::{
    ControlError, RawAnswer, endpoint,
    types::{ApprovalRequest, ApprovalState, CallRequest, EndedAgentCall, HEADER_PRICE, ServiceIdText},
};
use farthing_values::Usdc;
use parking_lot::Mutex;
use serde_json::json;

use crate::{
    Arguments, ToolAnswer, Trouble,
    arguments::{
        CallArguments, Fingerprint, NoArguments, ReadArguments, SearchArguments, ServiceArguments, read,
    },
    catalog,
    kept::{BegunCall, Kept},
    money,
    node::AskedNode,
    paid::{self, BoughtAnswer},
    pinned::{self, PinnedTool},
    text::{as_json, line},
    tools::ToolName,
};

/// The longest name of a service that a user is shown.
const NAME_BYTES_MAX: usize = 200;

/// The node's tools, for all agents of one door.
#[derive(Debug)]
pub struct Toolbox {
    node: AskedNode,
    kept: Mutex<Kept>,
    keys: RandomState,
}

/// An agent that uses a tool.
pub struct Caller<'a> {
    /// Name of the consumer secret whose limits apply.
    pub secret: &'a str,
    /// The text by which what is kept for the holder of that secret is found: another one may have had its name before.
    pub holder: &'a str,
    /// The token of the question that the user answered with yes. No argument of a tool is one.
    pub token: Option<String>,
    /// Gets the id of a call whose end is known: its note ends once the agent has the answer ([`Toolbox::end`]).
    pub ended: &'a mut Option<String>,
}

/// The reason that a tool has no result.
#[derive(Debug)]
pub enum NotDone {
    Failed(Trouble),
    Unconfirmed(Unconfirmed),
}

/// A call that is not bought until a user confirms its price.
#[derive(Debug)]
pub struct Unconfirmed {
    pub call_id: String,
    pub price: Usdc,
    pub above: Usdc,
    pub token: String,
    /// `None` if the node does not know it.
    pub service_name: Option<String>,
    /// The call, without its id and its highest price.
    pub request: Box<CallRequest>,
}

impl From<Trouble> for NotDone {
    fn from(trouble: Trouble) -> Self {
        Self::Failed(trouble)
    }
}

impl From<ControlError> for NotDone {
    fn from(error: ControlError) -> Self {
        Self::Failed(error.into())
    }
}

impl Unconfirmed {
    /// The question in words for the user. The node's words come first. Those of the owner and of the agent stand as JSON, each on
    /// one line, so that they cannot pass for the node's.
    pub fn question(&self) -> String {
        let Self { price, above, service_name, request, .. } = self;
        let CallRequest { api_id_public, method, path, params, body, .. } = &**request;
        let name = service_name.as_ref().map_or_else(|| "unknown".to_owned(), |name| as_json(&json!(name)));
        let path = as_json(&json!(path));
        let params = as_json(&json!(params));
        let body = body.as_ref().map_or_else(|| "none".to_owned(), as_json);
        format!(
            "Buy one call for {price} USDC? You confirm calls that cost more than {above} USDC.\n\
             Service: {name}, id {api_id_public}. Anybody can choose any name.\n\
             The following lines are the agent's words. They may contain text from strangers.\n\
             Method: {method}\nPath: {path}\nParameters: {params}\nBody: {body}"
        )
    }

    /// The trouble of a user that did not agree.
    pub fn refused(self) -> Trouble {
        Trouble::of_refusal().of_call(&self.call_id, Some(false))
    }
}

/// The prices that count for one call.
#[derive(Debug, Clone, Copy)]
struct CallPrices {
    /// The most that the agent allows.
    max: Usdc,
    /// The most that the node may pay now: no more than was confirmed.
    most: Usdc,
    /// The price above which a user is asked.
    above: Usdc,
}

impl Toolbox {
    pub fn of(node: AskedNode) -> Self {
        Self { node, kept: Mutex::default(), keys: RandomState::new() }
    }

    /// The tools for the services that the user pinned to a secret; none while the node does not answer.
    pub async fn pinned(&self, secret: &str) -> Vec<PinnedTool> {
        let Ok(secrets) = self.node.ask(endpoint::Secrets).await else { return Vec::new() };
        let secret = secrets.into_iter().find(|one| one.name == secret);
        let mut services = Vec::new();
        for service in secret.map(|secret| secret.pinned).unwrap_or_default() {
            if let Ok(service) = self.node.ask(endpoint::CatalogService.of(service)).await {
                services.push(service);
            }
        }
        pinned::tools_of(&services)
    }

    /// Uses a tool.
    ///
    /// # Errors
    /// [`NotDone`].
    pub async fn answer(
        &self,
        caller: Caller<'_>,
        tool: ToolName,
        arguments: Option<Arguments>,
    ) -> Result<ToolAnswer, NotDone> {
        match tool {
            ToolName::SearchCatalog => {
                let query = read::<SearchArguments>(tool, arguments)?.query();
                Ok(catalog::found(&self.node.tell(endpoint::CatalogSearch, &query).await?))
            }
            ToolName::DescribeService => {
                let asked: ServiceArguments = read(tool, arguments)?;
                self.describe(&asked).await
            }
            ToolName::GetSample => {
                let asked: ServiceArguments = read(tool, arguments)?;
                let wanted = asked.operation()?;
                let samples = self.node.ask(endpoint::CatalogSamples.of(asked.service)).await?;
                Ok(catalog::sampled(&samples, wanted.as_ref())?)
            }
            ToolName::SpendingStatus => {
                let NoArguments {} = read(tool, arguments)?;
                let secrets = self.node.ask(endpoint::Secrets).await?;
                let state = self.node.ask(endpoint::Spending).await?;
                Ok(money::status(&secrets, &state, caller.secret)?)
            }
            ToolName::CallService => self.call(caller, read(tool, arguments)?).await,
            ToolName::ReadAnswer => {
                let ReadArguments { call_id, offset } = read(tool, arguments)?;
                let body = self.kept.lock().body(caller.holder, &call_id);
                Ok(paid::further(body.as_deref(), &call_id, offset)?)
            }
        }
    }

    /// Asks the user in the console, for an agent whose program cannot ask. Returns the token of the question once the user has
    /// approved this call; the node then counts the approval as used.
    ///
    /// # Errors
    /// [`Trouble`] as long as the user has not approved the call, or once the user has refused it.
    pub async fn approved(&self, secret: &str, unconfirmed: Unconfirmed) -> Result<String, Trouble> {
        let Unconfirmed { call_id, price, above, token, request, .. } = unconfirmed;
        let request = ApprovalRequest { call: *request, price: price.into(), above: above.into() };
        let trouble = match self.node.tell(endpoint::AskApproval.of(secret), &request).await {
            Ok(approval) => match approval.state {
                ApprovalState::Approved => return Ok(token),
                ApprovalState::Waiting => Trouble::of_question((price, above), &approval.id, &approval.url),
                ApprovalState::Refused => Trouble::of_refusal(),
            },
            Err(error) => error.into(),
        };
        Err(trouble.of_call(&call_id, Some(false)))
    }

    /// Notes that the user answered the question of this token with no.
    pub fn decline(&self, holder: &str, token: &str) -> Trouble {
        let declined = self.kept.lock().decline(holder, token);
        let trouble = Trouble::of_refusal();
        match declined {
            Some(call_id) => trouble.of_call(&call_id, Some(false)),
            None => trouble,
        }
    }

    async fn describe(&self, asked: &ServiceArguments) -> Result<ToolAnswer, NotDone> {
        // An x402 server has no listing, so no other node is asked for one.
        let servers = self.node.ask(endpoint::X402Servers).await?;
        if let Some(server) = servers.iter().find(|server| server.id == asked.service) {
            return Ok(catalog::described_server(server));
        }
        match asked.operation()? {
            None => Ok(catalog::described(&self.node.ask(endpoint::CatalogService.of(asked.service)).await?)),
            Some((method, path)) => {
                let at =
                    endpoint::CatalogReference.of(asked.service).with("method", method).with("path", path);
                Ok(catalog::in_full(&self.node.ask(at).await?))
            }
        }
    }

    /// Buys a call, within what was confirmed.
    async fn call(&self, caller: Caller<'_>, arguments: CallArguments) -> Result<ToolAnswer, NotDone> {
        let max = arguments.max_price();
        let mut request = arguments.request()?;
        let print = Fingerprint::of(caller.holder, &request, &self.keys);
        let begun = self.begin((caller.secret, caller.token.as_deref()), &print, &mut request).await?;
        let BegunCall { call_id, is_repeat, .. } = &begun;
        let done = match self.prices(caller.secret, max, &begun).await {
            Err(error) => Err(paid::not_brought(error, call_id, *is_repeat).into()),
            Ok(prices) => {
                let most = Some(prices.most.into());
                let request = CallRequest { call_id: Some(call_id.clone()), max_price: most, ..request };
                let answer = self.node.tell_raw(endpoint::CallWithSecret.of(caller.secret), &request).await;
                match answer {
                    // The service's answer has its price, also one that is free; anything else is the network's.
                    Ok(answer) if !answer.headers.contains_key(HEADER_PRICE) => {
                        Err(self.refused(&answer, (&print, &request), &begun, prices).await)
                    }
                    Ok(answer) => Ok(self.keep(paid::bought(&answer, call_id), caller.holder, call_id)),
                    Err(error) => Err(paid::unanswered(error, call_id, *is_repeat).into()),
                }
            }
        };
        match &done {
            // Nothing was bought.
            Err(NotDone::Unconfirmed(_)) => self.end(caller.secret, call_id.clone()).await,
            Err(NotDone::Failed(trouble)) if !trouble.is_of_known_end() => {}
            Ok(_) | Err(NotDone::Failed(_)) => *caller.ended = Some(call_id.clone()),
        }
        done
    }

    /// Ends the note of a call, at the node: the agent has the answer, or the call cost nothing.
    pub async fn end(&self, secret: &str, call_id: String) {
        // If the node does not hear it, a repeat soon after gets the same answer, which costs nothing more.
        let _ = self.node.tell(endpoint::EndAgentCall.of(secret), &EndedAgentCall { call_id }).await;
    }

    /// Notes a call at the node, which answers with its id: that of the question that the token answers, or the one that the agent
    /// names. Without both it is that of the newest same call without an answer, so that an agent that asks again pays once.
    async fn begin(
        &self,
        (secret, token): (&str, Option<&str>),
        print: &Fingerprint,
        request: &mut CallRequest,
    ) -> Result<BegunCall, Trouble> {
        let agreed = match token {
            Some(token) => Some(self.kept.lock().confirm(print, token, request.call_id.as_deref())?),
            None => None,
        };
        if let Some(agreed) = &agreed {
            request.call_id = Some(agreed.call_id.clone());
        }
        let is_repeat = agreed.as_ref().map_or(request.call_id.is_some(), |agreed| agreed.is_repeat);
        let noted = match self.node.tell(endpoint::BeginAgentCall.of(secret), &*request).await {
            Ok(noted) => noted,
            // Without an id, the node alone knows whether this repeats a call that may have been charged.
            Err(error) => {
                return Err(match &request.call_id {
                    Some(call_id) => paid::not_brought(error, call_id, is_repeat),
                    None => error.into(),
                });
            }
        };
        Ok(agreed.unwrap_or_else(|| BegunCall {
            is_repeat: is_repeat || noted.was_noted,
            confirmed: self.kept.lock().confirmed(print, &noted.call_id),
            call_id: noted.call_id,
        }))
    }

    /// The prices that count for a call, by the settings as they are now.
    async fn prices(&self, secret: &str, max: Usdc, begun: &BegunCall) -> Result<CallPrices, ControlError> {
        let secrets = self.node.ask(endpoint::Secrets).await?;
        let state = self.node.ask(endpoint::Spending).await?;
        let above = money::confirm_above(&secrets, &state, secret).unwrap_or(max);
        let allowed = begun.confirmed.map_or(above, |confirmed| confirmed.max(above));
        Ok(CallPrices { max, most: max.min(allowed), above })
    }

    /// The reason that a call was not bought, which the network answered and not the service. One that costs more than was confirmed and no
    /// more than the agent allows waits for its user.
    async fn refused(
        &self,
        answer: &RawAnswer,
        (print, request): (&Fingerprint, &CallRequest),
        begun: &BegunCall,
        prices: CallPrices,
    ) -> NotDone {
        let BegunCall { call_id, is_repeat, .. } = begun;
        let trouble = paid::refused(answer, call_id, *is_repeat);
        let price = answer.problem().price_usdc.map(|price| price.0).filter(|price| *price > prices.most);
        let Some(price) = price.filter(|_| trouble.is_of_known_end()) else { return trouble.into() };
        if price > prices.max {
            return paid::above_max_price(price, prices.max).of_call(call_id, Some(false)).into();
        }
        let request = match to_confirm(request) {
            Ok(request) => request,
            Err(trouble) => return trouble.of_call(call_id, Some(false)).into(),
        };
        let service_name = self.service_name(request.api_id_public).await;
        let token = self.kept.lock().ask(print, call_id, price);
        NotDone::Unconfirmed(Unconfirmed {
            call_id: call_id.clone(),
            price,
            above: prices.above,
            token,
            service_name,
            request,
        })
    }

    /// The name of a service, or the address of an x402 server.
    async fn service_name(&self, service: ServiceIdText) -> Option<String> {
        let servers = self.node.ask(endpoint::X402Servers).await.ok()?;
        if let Some(server) = servers.into_iter().find(|server| server.id == service) {
            return Some(server.url);
        }
        let known = self.node.ask(endpoint::CatalogService.of(service)).await.ok()?;
        Some(line(&known.hit.name, NAME_BYTES_MAX))
    }

    fn keep(&self, bought: BoughtAnswer, holder: &str, call_id: &str) -> ToolAnswer {
        if let Some(rest) = bought.rest {
            self.kept.lock().keep(holder, call_id, rest);
        }
        bought.answer
    }
}

/// The call that a user is asked about, whole.
fn to_confirm(request: &CallRequest) -> Result<Box<CallRequest>, Trouble> {
    request.to_approve().map(Box::new).ok_or_else(Trouble::of_long_call)
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    const ID: &str = "0b5f2a3e-6a3c-4c39-9a65-6a1c3f1d2e4b";

    fn asked(path: &str, service_name: &str, body: &Value) -> Unconfirmed {
        let request = json!({
            "api_id_public": ID, "method": "POST", "path": path, "params": { "n": "5" }, "body": body,
            "max_price": "1", "call_id": "c1",
        });
        Unconfirmed {
            call_id: "c1".to_owned(),
            price: Usdc::from_micros(2_000),
            above: Usdc::from_micros(1_000),
            token: "t1".to_owned(),
            service_name: Some(service_name.to_owned()),
            request: to_confirm(&serde_json::from_value(request).unwrap()).unwrap(),
        }
    }

    #[test]
    fn a_user_is_asked_about_all_of_one_call_and_a_no_costs_nothing() {
        let asked = asked("/a", "Tides", &json!({ "to": "b" }));
        assert_eq!((&asked.request.call_id, asked.request.max_price), (&None, None));
        assert_eq!(
            asked.question(),
            format!(
                "Buy one call for 0.002 USDC? You confirm calls that cost more than 0.001 USDC.\n\
                 Service: \"Tides\", id {ID}. Anybody can choose any name.\n\
                 The following lines are the agent's words. They may contain text from strangers.\n\
                 Method: POST\nPath: \"/a\"\nParameters: {{\"n\":\"5\"}}\nBody: {{\"to\":\"b\"}}"
            )
        );
        let refused = asked.refused();
        assert_eq!((refused.code.as_str(), &refused.question), ("not-confirmed", &None));
        assert_eq!(refused.call.unwrap().charged, Some(false));
    }

    #[test]
    fn no_words_of_an_agent_or_an_owner_pass_for_those_of_the_node() {
        let hostile = "/x\" for 0.00 USDC.\nNothing is bought; press accept.\u{202e}\u{2028}Ref ";
        let question = asked(hostile, hostile, &json!(hostile)).question();
        assert_eq!(question.lines().count(), 7, "{question}");
        assert!(question.starts_with("Buy one call for 0.002 USDC?"), "{question}");
        let quoted = r#""/x\" for 0.00 USDC.\nNothing is bought; press accept.\u{202e}\u{2028}Ref ""#;
        assert_eq!(question.matches(quoted).count(), 3, "{question}");
    }

    #[test]
    fn no_user_is_asked_about_a_call_too_long_to_read() {
        let request = |bytes: usize| -> CallRequest {
            let call =
                json!({ "api_id_public": ID, "method": "POST", "path": "/a", "body": "x".repeat(bytes) });
            serde_json::from_value(call).unwrap()
        };
        assert!(to_confirm(&request(15 * 1024)).is_ok());
        assert_eq!(to_confirm(&request(16 * 1024)).unwrap_err().code, "too-large");
    }
}
