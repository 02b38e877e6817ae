//! Sending money away: what and to whom, a look at it, and then once and never twice.
//!
//! An order is kept in memory between the look and the button. The button takes it: whoever presses it again, or
//! loads the page anew, is shown what came of the first time.

use askama::Template;
use axum::{
    extract::{Path, State},
    response::{IntoResponse, Redirect},
};
use farthing_control::{
    ControlError, endpoint,
    types::{Eth, ProblemName, SendAmount, SendRequest, Sent, Text},
};
use farthing_values::{Address, Usdc, identity::ParseAddressError};
use http::StatusCode;
use serde::Deserialize;
use tokio::time::timeout;

use crate::{
    ConsoleState,
    access::SessionId,
    failure::{Failure, Page},
    form::{Form, NoFields},
    frame::{Frame, Section, Visit},
    page::{Rendered, SOON},
    session_store::{Bounds, SessionStore},
    show,
    texts::{self, sentence},
};

const BOUNDS: Bounds = Bounds { entries_max: 64, per_session_max: 4, bytes_max: 64 };
const ADDRESS: &str = "/panel/finance/send";

/// One sending, from the look at it to its end.
#[derive(Debug, Clone)]
struct Order {
    to: Address,
    amount: SendAmount,
    stage: Stage,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Stage {
    Asked,
    UnderWay,
    Sent(Sent),
    NotSent(String),
    /// Nobody knows yet whether it was sent.
    Unknown(String),
}

impl Stage {
    fn is_asked(&self) -> bool {
        *self == Self::Asked
    }

    fn is_under_way(&self) -> bool {
        *self == Self::UnderWay
    }
}

#[derive(Debug)]
pub(crate) struct Orders(SessionStore<Order>);

impl Default for Orders {
    fn default() -> Self {
        Self(SessionStore::new(BOUNDS))
    }
}

impl Orders {
    fn of(&self, session: SessionId, name: &str) -> Result<Order, Failure> {
        self.0.get(session, name).ok_or_else(gone)
    }
}

fn gone() -> Failure {
    Failure::gone("This transfer", "Check the transactions first: they show what was sent before.")
}

#[derive(Template)]
#[template(path = "finance-send.html")]
struct SendTemplate {
    frame: Frame,
    to: String,
    amount: String,
    is_eth: bool,
    problem: Option<String>,
}

pub(in crate::pages) async fn show(visit: Visit) -> Page {
    let frame = visit.frame(Section::Finance).await?;
    let page = SendTemplate { frame, to: String::new(), amount: String::new(), is_eth: false, problem: None };
    Ok(Rendered(&page).into_response())
}

#[derive(Deserialize)]
pub(in crate::pages) struct SendFields {
    to: String,
    amount: String,
    coin: String,
}

/// Takes what was typed, to be looked at.
pub(in crate::pages) async fn ask(form: Form<SendFields>) -> Page {
    let Form { visit, fields, .. } = form;
    let frame = visit.frame(Section::Finance).await?;
    let has = |(to, amount)| {
        let balance = &frame.status.balance;
        let is_enough = match amount {
            SendAmount::Usdc(usdc) => balance.usdc.is_none_or(|has| has.0 >= usdc.0),
            SendAmount::Eth(eth) => balance.eth.is_none_or(|has| has.0 >= eth.0),
        };
        is_enough
            .then_some((to, amount))
            .ok_or("Amount is more than the wallet has. Send less, or add money to the wallet first.")
    };
    match read(&fields, frame.status.address.0).and_then(has) {
        Ok((to, amount)) => {
            let order = Order { to, amount, stage: Stage::Asked };
            let name = visit.panel.orders().0.put(visit.session.id(), 1, order);
            let name = name.map_err(|_| Failure::broken("The system provides no random numbers."))?;
            Ok(Redirect::to(&format!("{ADDRESS}/{name}")).into_response())
        }
        Err(problem) => {
            let is_eth = fields.coin == "eth";
            let page = SendTemplate {
                frame,
                to: fields.to,
                amount: fields.amount,
                is_eth,
                problem: Some(problem.to_owned()),
            };
            Ok((StatusCode::UNPROCESSABLE_ENTITY, Rendered(&page)).into_response())
        }
    }
}

fn read(fields: &SendFields, own: Address) -> Result<(Address, SendAmount), &'static str> {
    let to: Address = fields.to.trim().parse().map_err(|error| match error {
        ParseAddressError::Checksum => texts::WRONG_CHARACTER,
        ParseAddressError::Malformed => {
            "To is not an address: an address is 0x and then 40 characters from 0 to 9 and a to f."
        }
    })?;
    if to == own {
        return Err("To is this wallet's own address. Enter another.");
    }
    if to == Address::ZERO {
        return Err("To is the zero address, and nobody can get money back from it. Enter another.");
    }
    let amount = fields.amount.trim();
    let amount =
        match fields.coin.as_str() {
            "usdc" => SendAmount::Usdc(Text(amount.parse().map_err(
                |_| "Amount is not an amount of USDC: write it like 1.50, with at most 6 decimals.",
            )?)),
            "eth" => SendAmount::Eth(Text(amount.parse().map_err(
                |_| "Amount is not an amount of ETH: write it like 0.001, with at most 18 decimals.",
            )?)),
            _ => return Err("Coin is neither USDC nor ETH."),
        };
    match amount {
        SendAmount::Usdc(Text(Usdc::ZERO)) | SendAmount::Eth(Text(Eth { wei: 0 })) => {
            Err("Amount is zero. Enter how much to send.")
        }
        amount => Ok((to, amount)),
    }
}

#[derive(Template)]
#[template(path = "finance-order.html")]
struct OrderPage {
    frame: Frame,
    name: String,
    to: String,
    fingerprint: String,
    amount: String,
    balance: String,
    stage: Stage,
}

pub(in crate::pages) async fn show_order(visit: Visit, Path(name): Path<String>) -> Page {
    let order = visit.panel.orders().of(visit.session.id(), &name)?;
    let frame = visit.frame(Section::Finance).await?;
    let balance = &frame.status.balance;
    let balance = match order.amount {
        SendAmount::Usdc(_) => balance.usdc.map(|usdc| format!("{} USDC", show::usdc(usdc.0))),
        SendAmount::Eth(_) => balance.eth.map(|eth| format!("{} ETH", show::eth(&eth.0))),
    };
    let page = OrderPage {
        name,
        to: order.to.to_string(),
        fingerprint: show::fingerprint(order.to),
        amount: words(order.amount),
        balance: balance.unwrap_or_else(|| "unknown: the chain has not answered yet".to_owned()),
        stage: order.stage,
        frame,
    };
    Ok(Rendered(&page).into_response())
}

fn words(amount: SendAmount) -> String {
    match amount {
        SendAmount::Usdc(usdc) => format!("{} USDC", show::usdc(usdc.0)),
        // To the last wei: this is what leaves.
        SendAmount::Eth(eth) => format!("{} ETH", eth.0),
    }
}

/// Sends, once.
pub(in crate::pages) async fn send(
    State(panel): State<ConsoleState>,
    Path(name): Path<String>,
    form: Form<NoFields>,
) -> Page {
    let place = format!("{ADDRESS}/{name}");
    let _ = form.confirmed()?;
    let session = form.visit.session.id();
    let order = panel.orders().0.change(session, &name, |order| {
        let before = order.clone();
        if order.stage.is_asked() {
            order.stage = Stage::UnderWay;
        }
        before
    });
    let order = order.ok_or_else(gone)?;
    if order.stage.is_asked() {
        // Once begun it goes on, whether or not the browser waits.
        let task = tokio::spawn(carry_out(panel.clone(), session, name, order));
        // What takes longer is waited for by the page, which changes when it has ended.
        if let Ok(Err(_)) = timeout(SOON, task).await {
            return Err(Failure::broken("Sending failed unexpectedly. Check the transactions."));
        }
    }
    Ok(Redirect::to(&place).into_response())
}

async fn carry_out(panel: ConsoleState, session: SessionId, name: String, order: Order) {
    let request = SendRequest { to: order.to.into(), amount: order.amount };
    let outcome = panel.node().tell(endpoint::SendMoney, &request).await;
    let stage = match outcome {
        Ok(sent) => Stage::Sent(sent),
        // What the node refuses before it asks the chain, and a chain that did not answer before anything was signed.
        Err(ControlError::Refused(problem))
            if matches!(problem.status, 400..=499 | 502 | 503)
                && !problem.is(ProblemName::MayHaveBeenMade) =>
        {
            Stage::NotSent(sentence(&problem.detail))
        }
        Err(error) => Stage::Unknown(sentence(&error.to_string())),
    };
    panel.orders().0.change(session, &name, |order| order.stage = stage);
    panel.changed();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_can_be_sent_is_looked_at() {
        const TO: &str = "0x7E5F4552091A69125d5DfCb7b8C2659029395Bdf";
        let own: Address = "0x2B5AD5c4795c026514f8317c7a215E218DcCD6cF".parse().unwrap();
        let read = |to: &str, amount: &str, coin: &str| {
            let fields = SendFields { to: to.to_owned(), amount: amount.to_owned(), coin: coin.to_owned() };
            read(&fields, own).map(|(_, amount)| words(amount))
        };
        assert_eq!(read(&format!(" {TO} "), "1.5", "usdc"), Ok("1.50 USDC".to_owned()));
        assert_eq!(read(TO, "0.0000000000000000010", "eth").ok(), None);
        assert_eq!(read(TO, "0.000000000000000001", "eth"), Ok("0.000000000000000001 ETH".to_owned()));
        for (to, amount, coin, word) in [
            ("", "1", "usdc", "not an address"),
            (&TO.replace("7E5F", "7e5F"), "1", "usdc", "checksum"),
            (&own.to_string(), "1", "usdc", "own"),
            (&Address::ZERO.to_string(), "1", "usdc", "zero address"),
            (TO, "1,5", "usdc", "not an amount of USDC"),
            (TO, "0", "usdc", "is zero"),
            (TO, "0.0", "eth", "is zero"),
            (TO, "1", "doge", "neither"),
        ] {
            let problem = read(to, amount, coin).unwrap_err();
            assert!(problem.contains(word), "{problem}");
        }
    }
}
