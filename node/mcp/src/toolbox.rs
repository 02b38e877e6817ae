//! The tools at work: each asks the node, and makes a result of what it answers.
//!
//! A call leaves with an id that its result names. If a user has to confirm prices above an amount, the call leaves with this
//! amount as its highest price: the node decides, and nothing dearer is bought before [`Unconfirmed`] was answered.

use std::hash::RandomState;

use farthing_control::{
    ControlError, RawAnswer, endpoint,
    types::{ApprovalRequest, ApprovalState, CallRequest, HEADER_PRICE},
};
use farthing_values::Usdc;
use parking_lot::Mutex;

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
    text::line,
    tools::ToolName,
};

/// The longest operation that a user is shown.
const OPERATION_BYTES_MAX: usize = 200;

/// The node's tools, for all agents of one door.
#[derive(Debug)]
pub struct Toolbox {
    node: AskedNode,
    kept: Mutex<Kept>,
    keys: RandomState,
}

/// An agent that uses a tool.
pub struct Caller<'a, Awaited> {
    /// Name of the consumer secret whose limits apply.
    pub secret: &'a str,
    /// The text by which what is kept for the holder of that secret is found: another one may have had its name before.
    pub holder: &'a str,
    /// The token of the question that the user answered with yes. No argument of a tool is one.
    pub token: Option<String>,
    /// Tells whether the agent still waits.
    pub is_awaited: Awaited,
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
    /// The call, in words for the user.
    pub call: String,
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
    /// The question in words for the user.
    pub fn question(&self) -> String {
        let Self { price, above, call, .. } = self;
        format!("Buy {call} for {price} USDC? You confirm calls that cost more than {above} USDC.")
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
        caller: Caller<'_, impl Fn() -> bool>,
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
                ApprovalState::Waiting => Trouble::of_question(price, above, &approval.url),
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
    async fn call(
        &self,
        caller: Caller<'_, impl Fn() -> bool>,
        arguments: CallArguments,
    ) -> Result<ToolAnswer, NotDone> {
        let max = arguments.max_price();
        let request = arguments.request()?;
        let print = Fingerprint::of(caller.holder, &request, &self.keys);
        let begun = self.kept.lock().begin(&print, caller.token.as_deref(), request.call_id.as_deref())?;
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
                        Err(self.refused(&answer, (&print, &request), &begun, prices))
                    }
                    Ok(answer) => Ok(self.keep(paid::bought(&answer, call_id), caller.holder, call_id)),
                    Err(error) => Err(paid::unanswered(error, call_id, *is_repeat).into()),
                }
            }
        };
        let is_open = matches!(&done, Err(NotDone::Failed(trouble)) if !trouble.is_of_known_end());
        if (caller.is_awaited)() && !is_open {
            self.kept.lock().close(&print, call_id);
        }
        done
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
    fn refused(
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
        let token = self.kept.lock().ask(print, call_id, price);
        let operation = format!("{} {}", request.method, request.path);
        let call = format!("{} of service {}", line(&operation, OPERATION_BYTES_MAX), request.api_id_public);
        NotDone::Unconfirmed(Unconfirmed {
            call_id: call_id.clone(),
            price,
            above: prices.above,
            token,
            call,
            request: Box::new(request.clone()),
        })
    }

    fn keep(&self, bought: BoughtAnswer, holder: &str, call_id: &str) -> ToolAnswer {
        if let Some(rest) = bought.rest {
            self.kept.lock().keep(holder, call_id, rest);
        }
        bought.answer
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_is_asked_about_the_price_of_one_call_and_a_no_costs_nothing() {
        let request = serde_json::json!({
            "api_id_public": "0b5f2a3e-6a3c-4c39-9a65-6a1c3f1d2e4b", "method": "GET", "path": "/a",
        });
        let asked = || Unconfirmed {
            call_id: "c1".to_owned(),
            price: Usdc::from_micros(2_000),
            above: Usdc::from_micros(1_000),
            token: "t1".to_owned(),
            call: "GET /a of service s".to_owned(),
            request: serde_json::from_value(request.clone()).unwrap(),
        };
        assert_eq!(
            asked().question(),
            "Buy GET /a of service s for 0.002 USDC? You confirm calls that cost more than 0.001 USDC."
        );
        let refused = asked().refused();
        assert_eq!((refused.code.as_str(), &refused.question), ("not-confirmed", &None));
        assert_eq!(refused.call.unwrap().charged, Some(false));
    }
}
