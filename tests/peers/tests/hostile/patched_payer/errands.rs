//! Errands of payers that an owner pays no gas for: deposits that fail, channels of others, and floods.

use farthing_protocol::{
    CloseRequest, DepositAuthorization, SignedDeposit,
    sponsor::{NotSponsored, SponsorAsked, SponsorReply},
};
use farthing_testnet::rpc;

use super::*;

impl Payer {
    /// Asks once.
    async fn errand(&self, errand: SponsorAsked) -> Result<SponsorReply> {
        match self.network.call(self.owner, CallMessage::Sponsor(errand), Bytes::new(), DEADLINE).await? {
            (CallReply::Sponsor(reply), ..) => Ok(reply),
            (other, ..) => bail!("an answer to another question: {other:?}"),
        }
    }

    async fn expect_refused(&self, errand: SponsorAsked, expected: NotSponsored) -> Result<()> {
        match self.errand(errand).await? {
            SponsorReply::Refused { why, detail, .. } if why == expected && !detail.is_empty() => Ok(()),
            other => bail!("{other:?}, expected {expected:?}"),
        }
    }

    /// The authorization of a deposit onto what the channel holds.
    async fn authorization(&self, amount: Usdc) -> Result<DepositAuthorization> {
        let known = self.chain.channel(&self.channel);
        let before = known.map_or((0, Usdc::ZERO), |view| (view.round, view.deposited));
        Ok(self.chain.deposit_to_sign(self.config, before, amount).await?)
    }

    async fn signed(&self, world: &World, deposit: DepositAuthorization) -> Result<SignedDeposit> {
        Ok(deposit.sign(&self.chain.token_domain().await?, world.chain.contract, &self.key))
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_owner_sends_nothing_that_would_fail_or_is_of_another_channel_and_a_good_deposit_once()
-> Result<()> {
    let world = World::start().await?;
    let payer = Payer::join(&world, 0x6a, cost(10)).await?;
    let url = world.chain.rpc_url();
    let (sent, own) = (
        rpc::transactions_of(&url, world.owner_wallet).await?,
        rpc::transactions_of(&url, payer.key.address()).await?,
    );
    let good = payer.authorization(cost(5)).await?;
    let more_than_it_has = DepositAuthorization { amount: Usdc::from_micros(FUNDS.micros() * 2), ..good };
    let errand = SponsorAsked::Deposit(payer.signed(&world, more_than_it_has).await?);
    payer.expect_refused(errand, NotSponsored::WouldFail).await?;
    let other = ChannelConfig { payer: world.consumer_wallet, ..payer.config };
    let of_another = DepositAuthorization { config: other, ..good };
    let errand = SponsorAsked::Deposit(payer.signed(&world, of_another).await?);
    payer.expect_refused(errand, NotSponsored::OtherChannel).await?;
    payer.expect_refused(SponsorAsked::Withdraw(other), NotSponsored::OtherChannel).await?;
    payer.expect_refused(SponsorAsked::Withdraw(payer.config), NotSponsored::WouldFail).await?;
    let request = CloseRequest { channel: payer.channel, round: 0, deadline_secs: u64::from(u32::MAX) };
    let forged = request.sign(&payer.chain.domain(), &SecretKey::from_bytes(&[0x6b; 32])?);
    let errand = SponsorAsked::RequestClose(payer.config, request, forged);
    payer.expect_refused(errand, NotSponsored::OtherChannel).await?;
    // Strangers name channels that nobody has opened: no signature is verified for these.
    let unknown = ChannelConfig { salt: [0x6b; 32], ..payer.config };
    let SponsorReply::Refused { detail, .. } =
        payer.errand(SponsorAsked::RequestClose(unknown, request, forged)).await?
    else {
        bail!("it was not refused");
    };
    ensure!(detail.contains("does not know the channel"), "{detail}");
    assert_eq!(rpc::transactions_of(&url, world.owner_wallet).await?, sent, "nothing was sent");

    let errand = SponsorAsked::Deposit(payer.signed(&world, good).await?);
    let reply = payer.errand(errand).await?;
    ensure!(matches!(reply, SponsorReply::Sent { .. }), "{reply:?}");
    payer.until_known(payer.config, cost(15)).await?;
    payer.expect_refused(errand, NotSponsored::WouldFail).await?;
    assert_eq!(rpc::transactions_of(&url, world.owner_wallet).await?, sent + 1, "once");
    assert_eq!(rpc::transactions_of(&url, payer.key.address()).await?, own, "the owner pays the gas");
    let left = world.chain.usdc_of(payer.key.address()).await?;
    assert_eq!(left.checked_add(cost(15)), Some(FUNDS));
    Ok(())
}

/// Lines about refused errands in a minute, and a few for a second minute that begins during the test.
const REFUSED_LINES_MAX: usize = 2 * 30;

/// The lines about errands in the log of a world's owner.
fn errand_lines(world: &World) -> usize {
    world.owner.log().matches("asked this node to pay its gas").count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_payer_that_floods_an_owner_with_errands_is_refused_and_another_one_is_not() -> Result<()> {
    let owner_settings = setting("settlement.sponsor_per_hour", "3");
    let world = World::with(Setup { owner_settings, ..Setup::default() }).await?;
    let payers = [Payer::join(&world, 0x6c, cost(10)).await?, Payer::join(&world, 0x6d, cost(10)).await?];
    let [flooding, other] = &payers;
    for _ in 0..3 {
        let errand = SponsorAsked::Withdraw(flooding.config);
        flooding.expect_refused(errand, NotSponsored::WouldFail).await?;
    }
    for _ in 0..200 {
        let reply = flooding.errand(SponsorAsked::Withdraw(flooding.config)).await?;
        let SponsorReply::Refused { why, retry_after_secs, .. } = reply else { bail!("{reply:?}") };
        assert_eq!(why, NotSponsored::TooMany);
        ensure!(retry_after_secs.is_some_and(|secs| secs > 3_000), "{retry_after_secs:?}");
    }
    let told = errand_lines(&world);
    ensure!((1..=REFUSED_LINES_MAX).contains(&told), "{told} lines about 203 refused errands");
    let good = other.authorization(cost(5)).await?;
    let reply = other.errand(SponsorAsked::Deposit(other.signed(&world, good).await?)).await?;
    ensure!(matches!(reply, SponsorReply::Sent { .. }), "{reply:?}");
    other.until_known(other.config, cost(15)).await?;
    eventually("the one that was brought is told", async || Ok(errand_lines(&world) > told)).await
}
