//! Channels of the settings' chain, contract and token that this wallet promised something on, which the watcher follows
//! whatever an endpoint says of them.

use std::collections::HashSet;

use farthing_chain::ChainHandle;
use farthing_ledger::Ledger;
use farthing_protocol::ChannelId;

/// Has each of them followed, once.
pub(super) async fn keep_what_is_used(chain: &ChainHandle, ledger: &Ledger, kept: &mut HashSet<ChannelId>) {
    let rows = ledger.payer_channels().unwrap_or_else(|error| {
        tracing::warn!(%error, "the ledger's channels cannot be read");
        Vec::new()
    });
    let escrow = chain.spec().escrow();
    for row in rows.into_iter().filter(|row| row.is_promised_on && escrow.holds(row.id, &row.config)) {
        if kept.insert(row.id) {
            // It fails only when the chain is shut down.
            let _ = chain.track(row.config).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use farthing_chain::{Chain, ChainSpec, MemoryJournal};
    use farthing_ledger::PayerChannelFacts;
    use farthing_protocol::{
        Address, CallId, ChannelConfig, Escrow, SecretKey, Usdc, Voucher, call::Payment,
    };
    use farthing_testnet::{LocalChain, anvil::Anvil};
    use redb::backends::InMemoryBackend;

    use super::*;
    use crate::consumer::accounts::tests::promise_of;

    const PRICE: Usdc = Usdc::from_micros(1_000);

    #[tokio::test(flavor = "multi_thread")]
    async fn a_channel_that_was_promised_on_is_followed_although_the_chain_shows_nothing_of_it() {
        let chain = LocalChain::start().await.unwrap();
        let key = SecretKey::from_bytes(&[1; 32]).unwrap();
        let spec = farthing_chain::local(chain.rpc_url(), Anvil::CHAIN_ID, chain.token);
        let spec = ChainSpec { poll_interval_ms: 50, absent_forgotten_ms: 0, ..spec };
        let payer = Chain::start(spec, key.clone(), Arc::new(MemoryJournal::default())).await.unwrap();
        let ledger = Ledger::with_backend(InMemoryBackend::new()).unwrap();
        let [owner, other] = [9, 8].map(|n| Address::from_bytes([n; 20]));
        let here = payer.spec().escrow();
        let facts = |escrow: Escrow, salt| {
            let (payer, token) = (key.address(), escrow.token);
            let salt = [salt; 32];
            let config =
                ChannelConfig { payer, payee: owner, token, signer: payer, close_delay_secs: 86_400, salt };
            let (id, claimed, round) = (config.id(&escrow.domain()), Usdc::ZERO, Some(0));
            PayerChannelFacts { id, config, deposited: PRICE, claimed, round, stopped: false }
        };
        let former = [
            Escrow { chain_id: 1, ..here },
            Escrow { contract: other, ..here },
            Escrow { token: other, ..here },
        ];
        let [unused, used] = [1, 2].map(|salt| facts(here, salt));
        ledger.put_payer_channel(unused).await.unwrap();
        for (n, facts) in (1..).zip([used].into_iter().chain(former.map(|escrow| facts(escrow, 3)))) {
            ledger.put_payer_channel(facts).await.unwrap();
            let (channel, cumulative) = (facts.id, PRICE);
            let signature = Some(Voucher { channel, cumulative }.sign(&payer.domain(), &key));
            let payment = Payment::Channel { channel, cumulative, signature, receipted: None };
            let promised = promise_of(CallId::from_bytes([n; 16]), owner, PRICE, payment);
            ledger.promise(promised).await.unwrap().await.unwrap();
        }

        let mut kept = HashSet::new();
        keep_what_is_used(&payer, &ledger, &mut kept).await;
        assert_eq!(kept, HashSet::from([used.id]), "and none of another chain, contract or token");
        for _ in 0..3 {
            payer.refresh().await.unwrap();
        }
        assert!(payer.channel(&used.id).is_some(), "something was promised on it");
        assert!(payer.channel(&unused.id).is_none(), "nothing was ever promised on it");
    }
}
