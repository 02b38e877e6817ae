//! Asking an x402 server for its terms, and choosing the offer of its answer that this node would pay.
//!
//! A person asks for the terms of a server, and each call of one asks before it pays. Both keep what they heard, with the reason if this
//! node pays no offer.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use bytes::Bytes;
use farthing_chain::ChainError;
use farthing_protocol::{CallId, ServiceId, TokenDomain, call::Method};
use farthing_x402::{NoOffer, Offer, Offers};
use tokio::time::Instant;
use url::Url;

use super::{
    ForeignCalls,
    exchange::{Exchange, ForeignAnswer, PAYMENT_REQUIRED},
    servers::ForeignServerError,
    terms::{ForeignOffer, ForeignTerms},
};
use crate::consumer::{BuyError, ForeignError, Order, spending::Grant};

/// The longest that a server is asked for its terms: a person waits for them.
const TERMS_TIME: Duration = Duration::from_secs(8);

/// The offer of an answer that this node would pay, and the domain of the token that it pays in.
#[derive(Debug)]
pub(super) struct Chosen {
    pub(super) offer: Offer,
    pub(super) token: TokenDomain,
}

/// The reason that none is chosen.
#[derive(Debug, thiserror::Error)]
pub(super) enum NotChosen {
    #[error(transparent)]
    Offer(#[from] NoOffer),
    #[error(transparent)]
    Chain(#[from] ChainError),
}

impl From<NotChosen> for BuyError {
    fn from(reason: NotChosen) -> Self {
        match reason {
            NotChosen::Offer(reason) => ForeignError::Offer(reason).into(),
            NotChosen::Chain(error) => error.into(),
        }
    }
}

impl ForeignCalls {
    /// Asks what a GET costs at the address of a server, known or not, or of a path of it. Nothing is paid.
    ///
    /// # Errors
    /// [`ForeignServerError`].
    pub async fn ask(&self, address: &str) -> Result<ForeignTerms, ForeignServerError> {
        let url = self.0.servers.checked(address).await?;
        let client = self.0.servers.client(&url).await.map_err(|_| ForeignServerError::Forbidden)?;
        let order = question();
        let exchange = Exchange {
            client,
            url: url.clone(),
            order: &order,
            budget: self.0.parts.upstream.budget.clone(),
            body_bytes_max: None,
            deadline: Instant::now() + TERMS_TIME,
        };
        let answer = exchange.send(None).await.map_err(ForeignServerError::Unreachable)?;
        let terms = if answer.status == PAYMENT_REQUIRED {
            self.choose(&url, &answer).await.0
        } else {
            ForeignTerms::answered(&url, answer.status)
        };
        if let Some(id) = self.0.servers.at(&url) {
            self.0.servers.hear(id, terms.clone());
        }
        Ok(terms)
    }

    /// Chooses the offer of an answer that asks for a payment. The terms say which, or why none.
    pub(super) async fn choose(
        &self,
        url: &Url,
        answer: &ForeignAnswer,
    ) -> (ForeignTerms, Result<Chosen, NotChosen>) {
        let mut terms = ForeignTerms::answered(url, answer.status);
        let chosen = self.chosen(answer, &mut terms).await;
        match &chosen {
            Ok(Chosen { offer, .. }) => terms.offer = Some(shown(offer)),
            Err(reason) => terms.refused = Some(reason.to_string()),
        }
        (terms, chosen)
    }

    async fn chosen(&self, answer: &ForeignAnswer, terms: &mut ForeignTerms) -> Result<Chosen, NotChosen> {
        let offers = Offers::read(answer.required.as_deref(), &answer.body)?;
        terms.description = offers.description().map(str::to_owned);
        let token = self.0.parts.chain.token_domain().await?;
        let offer = offers.choose_for(self.0.parts.signer.address(), &token)?;
        Ok(Chosen { offer, token })
    }
}

fn shown(offer: &Offer) -> ForeignOffer {
    ForeignOffer { price: offer.price, network: offer.network().to_owned(), pay_to: offer.pay_to }
}

/// The order of nobody, with which a server is asked for its terms.
fn question() -> Order {
    Order {
        grant: Arc::new(Grant::unlimited("")),
        call_id: CallId::from_bytes([0; 16]),
        service: ServiceId::from_bytes([0; 16]),
        method: Method::Get,
        path: String::new(),
        params: BTreeMap::new(),
        headers: BTreeMap::new(),
        body: Bytes::new(),
        max_price: None,
    }
}
