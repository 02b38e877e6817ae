//! Money for the wallet: where to send it, and word of its arrival.

use askama::Template;
use axum::response::IntoResponse;

use crate::{
    failure::Page,
    frame::{Frame, Section, Visit},
    markup::{Markup, qr_code},
    page::Rendered,
};

use super::SetupStep;

#[derive(Template)]
#[template(path = "setup-fund.html")]
struct FundTemplate {
    frame: Frame,
    step: SetupStep,
    qr: Markup,
    address: String,
    coins: [Coin; 2],
}

/// One kind of money.
struct Coin {
    name: &'static str,
    what_for: &'static str,
    /// `None` while the chain does not say.
    has: Option<bool>,
    amount: String,
}

pub(in crate::pages) async fn show(visit: Visit) -> Page {
    let frame = visit.frame(Section::Home).await?;
    let balance = &frame.status.balance;
    let in_channels = !balance.in_channels.0.is_zero();
    let address = frame.status.address.to_string();
    let page = FundTemplate {
        coins: [
            Coin {
                name: "USDC",
                what_for: "pays for calls",
                has: balance.usdc.map(|usdc| in_channels || !usdc.0.is_zero()),
                amount: frame.usdc(),
            },
            Coin {
                name: "ETH",
                what_for: "is optional: you need it if you sell, or if an owner does not pay the chain's fee for you",
                has: balance.eth.as_ref().map(|eth| eth.0.wei > 0),
                amount: frame.eth(),
            },
        ],
        qr: qr_code(&address, "The wallet's address"),
        address,
        step: SetupStep::Fund,
        frame,
    };
    Ok(Rendered(&page).into_response())
}

impl FundTemplate {
    fn is_funded(&self) -> bool {
        // Owners pay the fees of those who have USDC alone.
        self.coins[0].has == Some(true)
    }
}
