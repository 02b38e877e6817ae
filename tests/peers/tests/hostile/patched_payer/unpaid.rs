//! What is done for calls that bring no money, or do not fit.

use super::*;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_call_asks_is_looked_at_after_its_price_and_channel_and_counts_when_it_does_not_fit()
-> Result<()> {
    let owner_settings = setting("limits.uncharged_trial_ms", "60000");
    let world = World::with(Setup { owner_settings, ..Setup::default() }).await?;
    let payer = Payer::join(&world, 0x64, cost(10)).await?;
    let misfit = |id: &str| CallRequest {
        headers: BTreeMap::from([("x-not-passed-on".to_owned(), "1".to_owned())]),
        ..payer.request(id, cost(1))
    };
    let free = CallRequest { payment: Payment::Free, ..misfit("free") };
    payer.refused("without a payment", free, RefusalCode::PaymentRequired).await?;
    let unknown = ChannelId::from_bytes([9; 32]);
    let payment = payer.pays(unknown, cost(1), Some(payer.voucher(unknown, cost(1))));
    let elsewhere = CallRequest { payment, ..misfit("elsewhere") };
    payer.refused("from a channel that nobody knows", elsewhere, RefusalCode::UnknownChannel).await?;
    for price in [Usdc::ZERO, cost(2)] {
        let cheap = CallRequest { price, ..misfit("cheap") };
        payer.refused("at another price", cheap, RefusalCode::PriceChanged).await?;
    }
    // None of these counted: they cost next to nothing.
    for n in 0..20 {
        payer.refused("with a channel", misfit(&format!("{n}")), RefusalCode::BadParameter).await?;
    }
    payer.refused("one too many", misfit("last"), RefusalCode::RateLimited).await?;
    expect_paid(&world, 0).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_voucher_that_its_payer_did_not_sign_counts_as_work_for_nothing() -> Result<()> {
    let owner_settings = setting("limits.uncharged_trial_ms", "60000");
    let world = World::with(Setup { owner_settings, ..Setup::default() }).await?;
    let payer = Payer::join(&world, 0x65, cost(10)).await?;
    let stranger = SecretKey::from_bytes(&[0x77; 32])?;
    let domain = payer.chain.domain();
    let forged = Voucher { channel: payer.channel, cumulative: cost(1) }.sign(&domain, &stranger);
    let unsigned = |id: &str| CallRequest {
        payment: payer.pays(payer.channel, cost(1), Some(forged)),
        ..payer.request(id, cost(1))
    };
    for n in 0..20 {
        payer.refused("forged", unsigned(&format!("{n}")), RefusalCode::BadSignature).await?;
    }
    payer.refused("one too many", unsigned("last"), RefusalCode::RateLimited).await?;
    expect_paid(&world, 0).await
}
