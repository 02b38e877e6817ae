//! Channels that this wallet promised something on, which the watcher follows whatever an endpoint says of them.

use std::collections::HashSet;

use farthing_chain::ChainHandle;
use farthing_ledger::{Ledger, PayerChannelRow};
use farthing_protocol::ChannelId;

/// Has each of them followed, once.
pub(super) async fn keep_what_is_used(chain: &ChainHandle, ledger: &Ledger, kept: &mut HashSet<ChannelId>) {
    let rows = ledger.payer_channels().unwrap_or_else(|error| {
        tracing::warn!(%error, "the ledger's channels cannot be read");
        Vec::new()
    });
    let domain = chain.domain();
    // Those of an earlier contract are on no chain that is followed.
    let is_of_now = |row: &PayerChannelRow| row.config.id(&domain) == row.id;
    for row in rows.into_iter().filter(|row| row.is_promised_on && is_of_now(row)) {
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
    use farthing_protocol::{Address, CallId, ChannelConfig, SecretKey, Usdc, Voucher, call::Payment};
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
        let config = |salt| ChannelConfig {
            payer: key.address(),
            payee: Address::from_bytes([9; 20]),
            token: chain.token,
            signer: key.address(),
            close_delay_secs: 86_400,
            salt: [salt; 32],
        };
        let [unused, used] = [1, 2].map(|salt| config(salt).id(&payer.domain()));
        for (salt, id) in [(1, unused), (2, used)] {
            let facts = PayerChannelFacts {
                id,
                config: config(salt),
                deposited: PRICE,
                claimed: Usdc::ZERO,
                round: Some(0),
                stopped: false,
            };
            ledger.put_payer_channel(facts).await.unwrap();
        }
        let signature = Voucher { channel: used, cumulative: PRICE }.sign(&payer.domain(), &key);
        let payment = Payment::Channel {
            channel: used,
            cumulative: PRICE,
            signature: Some(signature),
            receipted: None,
        };
        let promised = promise_of(CallId::from_bytes([1; 16]), Address::from_bytes([9; 20]), PRICE, payment);
        ledger.promise(promised).await.unwrap().await.unwrap();

        keep_what_is_used(&payer, &ledger, &mut HashSet::new()).await;
        for _ in 0..3 {
            payer.refresh().await.unwrap();
        }
        assert!(payer.channel(&used).is_some(), "something was promised on it");
        assert!(payer.channel(&unused).is_none(), "nothing was ever promised on it");
    }
}
