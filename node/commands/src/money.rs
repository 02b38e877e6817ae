//! The wallet, the channels and their settlement.

use axum::{
    Json,
    extract::{Path, Query, State},
};
use farthing_chain::{ChainError, call_data};
use farthing_control::types::{
    Channel, ChannelRole, ChannelState, CloseQuery, OpenRequest, SendRequest, Sent, Settled,
    SignedCloseRequest, Text, WalletBalance,
};
use farthing_discovery::Asker;
use farthing_node::{
    consumer::{BuyError, channels::PayerChannel, funding::SignedRequest},
    handles::Handles,
    settlement::{Closed, SettlementError},
    transfers::{self, TransferError},
};
use farthing_protocol::{ChannelId, sponsor::SponsorAsked};

use super::{Failed, Reply};

answer!(Wallet: wallet);
async fn wallet(State(node): State<Handles>) -> Json<WalletBalance> {
    Json(node.balance())
}

answer!(SendMoney: send);
async fn send(State(node): State<Handles>, Json(request): Json<SendRequest>) -> Reply<Sent> {
    let sent = transfers::send(&node.chain, &node.funding, request.to.0, request.amount).await?;
    Ok(Json(Sent {
        transaction: sent.tx_hash.map(|hash| hash.to_string()).unwrap_or_default(),
        block: sent.tx_hash.map(|_| sent.block),
    }))
}

answer!(Channels: channels);
async fn channels(State(node): State<Handles>) -> Json<Vec<Channel>> {
    Json(all_channels(&node))
}

fn all_channels(node: &Handles) -> Vec<Channel> {
    let payer = node.channels.all().into_iter().map(|channel| {
        let (state, until_secs) = payer_state(node, &channel);
        Channel {
            id: channel.id.into(),
            role: ChannelRole::Payer,
            peer: channel.config.payee.into(),
            state,
            until_secs,
            stopped: channel.state.stopped,
            deposited: channel.state.deposited.into(),
            spent: channel.state.acknowledged.into(),
            signed: channel.state.signed.into(),
            claimed: channel.claimed.into(),
        }
    });
    let payee = node.book.all().into_iter().map(|(id, channel)| Channel {
        id: id.into(),
        role: ChannelRole::Payee,
        peer: channel.config.payer.into(),
        state: if channel.state.deposited <= channel.state.claimed {
            ChannelState::Closed
        } else if channel.state.closing {
            ChannelState::Closing
        } else {
            ChannelState::Open
        },
        until_secs: None,
        stopped: false,
        deposited: channel.state.deposited.into(),
        spent: channel.state.spent.into(),
        signed: channel.state.best.into(),
        claimed: channel.state.claimed.into(),
    });
    let mut all: Vec<Channel> = payer.chain(payee).collect();
    all.sort_by_key(|channel| (channel.peer.0, channel.id.0));
    all
}

/// Returns the state of a channel that this node pays on, and until when it lasts.
fn payer_state(node: &Handles, channel: &PayerChannel) -> (ChannelState, Option<u64>) {
    match channel.close_at_secs {
        _ if !channel.holds_deposit() => (ChannelState::Closed, None),
        Some(at) => (ChannelState::CloseRequested, Some(at)),
        None if channel.state.stopped => (ChannelState::Stopped, None),
        None => match node.settlement.promised_until(channel.id) {
            Some(until_secs) => (ChannelState::ClosePromised, Some(until_secs)),
            None => (ChannelState::Open, None),
        },
    }
}

const fn closed_state(closed: Closed) -> (ChannelState, Option<u64>) {
    match closed {
        Closed::Already => (ChannelState::Closed, None),
        Closed::Withdrawn => (ChannelState::Withdrawn, None),
        Closed::Brought => (ChannelState::CloseBrought, None),
        Closed::Promised { until_secs } => (ChannelState::ClosePromised, Some(until_secs)),
        Closed::Requested { withdrawable_secs } => (ChannelState::CloseRequested, withdrawable_secs),
    }
}

fn channel(node: &Handles, id: ChannelId) -> Reply<Channel> {
    let found = all_channels(node).into_iter().find(|channel| channel.id.0 == id);
    found.map(Json).ok_or_else(|| SettlementError::NoSuchChannel(id).into())
}

answer!(OpenChannel: open_channel);
async fn open_channel(State(node): State<Handles>, Json(request): Json<OpenRequest>) -> Reply<Channel> {
    node.consumer.may_spend()?;
    let service = node.catalog.service(request.service.0, &Asker::USER).await.map_err(BuyError::from)?;
    let listing = service.listing();
    let accept = node.funding.choose(&listing.accepts, listing.owner)?;
    let (funding, accept, price) = (node.funding.clone(), accept.clone(), listing.price);
    // A deposit that was begun goes on when whoever asked for it has gone.
    let funded = tokio::spawn(async move {
        match request.deposit {
            Some(amount) => funding.deposit_now(&accept, amount.0).await,
            None => funding.ensure(&accept, price).await,
        }
    });
    funded.await.map_err(|_| BuyError::Failed)?.map_err(unopened)?;
    let opened =
        node.channels.in_use(listing.owner).ok_or(SettlementError::NoSuchChannel(ChannelId::NONE))?;
    channel(&node, opened.id)
}

/// The node stops while the chain has the deposit, and a second one would be made as well.
fn unopened(error: BuyError) -> Failed {
    match error {
        BuyError::OpenFailed(error @ ChainError::UnderWay { .. }) => TransferError::from(error).into(),
        error => error.into(),
    }
}

answer!(CloseChannel: close_channel);
async fn close_channel(
    State(node): State<Handles>,
    Path(id): Path<Text<ChannelId>>,
    Query(CloseQuery { force }): Query<CloseQuery>,
) -> Reply<Channel> {
    match node.channels.get(id.0) {
        Some(mine) => {
            let closed = node.settlement.close_as_payer(mine.id, force).await?;
            let (state, until_secs) = closed_state(closed);
            return channel(&node, id.0).map(|Json(channel)| Json(Channel { state, until_secs, ..channel }));
        }
        None if node.book.get(id.0).is_some() => node.settlement.close_as_payee(id.0).await?,
        None => return Err(SettlementError::NoSuchChannel(id.0).into()),
    }
    channel(&node, id.0)
}

answer!(SignClose: sign_close);
async fn sign_close(
    State(node): State<Handles>,
    Path(id): Path<Text<ChannelId>>,
) -> Reply<SignedCloseRequest> {
    let SignedRequest { config, request, signature } = node.settlement.sign_request(id.0).await?;
    let spec = node.chain.spec();
    Ok(Json(SignedCloseRequest {
        channel: id,
        chain_id: spec.chain_id,
        contract: spec.contract.into(),
        request_data: call_data(&SponsorAsked::RequestClose(config, request, signature)),
        deadline_secs: request.deadline_secs,
        close_delay_secs: config.close_delay_secs,
        withdraw_data: call_data(&SponsorAsked::Withdraw(config)),
    }))
}

answer!(ResumeChannel: resume_channel);
async fn resume_channel(State(node): State<Handles>, Path(id): Path<Text<ChannelId>>) -> Reply<Channel> {
    node.consumer.trust_again(id.0).await?;
    channel(&node, id.0)
}

answer!(Settle: settle);
async fn settle(State(node): State<Handles>) -> Reply<Settled> {
    let claimed = node.settlement.claim().await?;
    Ok(Json(Settled {
        claimed: claimed.amount.into(),
        channels: claimed.paid.len() as u64,
        refused: claimed
            .refused
            .into_iter()
            .map(|(id, reason)| farthing_control::types::RefusedClaim { channel: Text(id), reason })
            .collect(),
        transactions: claimed
            .transactions
            .iter()
            .filter_map(|report| report.tx_hash.map(|hash| hash.to_string()))
            .collect(),
    }))
}
