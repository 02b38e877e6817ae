//! A thousand random operations, honest and not, against a model of the contract in plain arithmetic.
//!
//! Each step picks an operation, asks the model what must happen, sends it as a real transaction at a
//! known second, and then reads all channels and balances back: success, books and money must be the
//! model's to the unit, and M1 to M3 must hold of what was read. `FARTHING_TEST_SEED` repeats a run.

use std::{collections::BTreeMap, env};

use alloy::{
    primitives::{Address, B256, Bytes, U256},
    rpc::types::TransactionRequest,
    signers::local::PrivateKeySigner,
    sol_types::SolCall as _,
};
use anyhow::{Context as _, Result, ensure};
use farthing_tests::anvil::contracts::{
    PayChannels::{self, Channel, Claim},
    TestUsdc,
};

use self::model::{Close, Model, Modelled, Random};
use crate::world::{HOUR, NEVER, State, U40, World, key};

pub(crate) mod model;

const STEPS: u64 = 1_000;
const CHANNELS: usize = 6;
const WEALTH: u128 = 1_000_000;
const DEFAULT_SEED: u64 = 0x00FA_4717;

/// The model, the chain, and what has happened so far.
struct Run {
    world: World,
    model: Model,
    random: Random,
    time: u64,
    authorizations: u64,
    counts: BTreeMap<&'static str, u64>,
}

impl Run {
    async fn start(seed: u64) -> Result<Self> {
        let world = World::start().await?;
        let session = key("a session key");
        let mut channels = Vec::new();
        for number in 0..CHANNELS {
            // Three payers and two payees; every third channel is signed by a session key.
            let payer =
                if number % 3 == 0 { world.payer.clone() } else { key(&format!("payer {}", number % 3)) };
            let payee = if number % 2 == 0 { world.payee.clone() } else { key("payee 1") };
            let signer = if number % 3 == 2 { session.clone() } else { payer.clone() };
            let terms = Channel {
                payer: payer.address(),
                payee: payee.address(),
                token: world.chain.usdc,
                signer: signer.address(),
                closeDelay: U40::from(HOUR * (1 + number as u64)),
                salt: B256::from(U256::from(number)),
            };
            channels.push(Modelled { terms, signer, state: State::default(), signed: Vec::new() });
        }
        let escrow = world.chain.channels;
        let mut balances = BTreeMap::from([(escrow, 0), (world.stranger.address(), WEALTH)]);
        for Modelled { terms, .. } in &channels {
            balances.insert(terms.payer, WEALTH);
            balances.insert(terms.payee, 0);
        }
        for (&account, &wealth) in &balances {
            if wealth > 0 {
                world.mint(account, wealth).await?;
                let approve = TestUsdc::approveCall { spender: escrow, value: U256::MAX };
                world.usdc(account, &approve).await?;
            }
        }
        let time = world.chain.now().await? + HOUR;
        let model = Model { channels, balances, blacklisted: None, escrow };
        Ok(Self { world, model, random: Random(seed), time, authorizations: 0, counts: BTreeMap::new() })
    }

    async fn step(&mut self) -> Result<()> {
        self.time += 1 + self.random.below(HOUR / 4);
        let index = self.random.index(CHANNELS);
        match self.random.below(100) {
            0..15 => self.deposit(index).await,
            15..30 => self.authorized_deposit(index).await,
            30..50 => self.claim(index).await,
            50..56 => self.claim_many(index).await,
            56..61 => self.close(index).await,
            61..75 => self.request_close(index).await,
            75..90 => self.withdraw(index).await,
            90..94 => self.blacklist(index).await,
            94..95 => self.donate().await,
            _ => self.attack(index).await,
        }
    }

    fn count(&mut self, what: &'static str) {
        *self.counts.entry(what).or_default() += 1;
    }

    fn count_either(&mut self, worked: bool, yes: &'static str, no: &'static str) {
        self.count(if worked { yes } else { no });
    }

    // -------------------------------------------------------------- operations

    async fn deposit(&mut self, index: usize) -> Result<()> {
        let amount = u128::from(self.random.below(4_000));
        let channel = self.model.channels[index].terms.clone();
        let payer = channel.payer;
        let expected = self.model.deposit(index, amount);
        self.count_either(expected, "deposits", "deposits refused");
        self.expect(payer, &PayChannels::depositCall { channel, amount }.abi_encode(), expected).await
    }

    async fn authorized_deposit(&mut self, index: usize) -> Result<()> {
        self.authorizations += 1;
        let amount = u128::from(self.random.below(4_000));
        let terms = self.model.channels[index].terms.clone();
        let payer = self.payer_key(index);
        let call = self.world.authorize_by(&payer, &terms, amount, self.authorizations, 0, NEVER).await?;
        let expected = self.model.deposit(index, amount);
        self.count_either(expected, "authorized deposits", "authorized deposits refused");
        self.expect(self.world.stranger.address(), &call.abi_encode(), expected).await?;
        // The same words again are worth nothing.
        self.time += 1;
        self.expect(self.world.stranger.address(), &call.abi_encode(), false).await
    }

    /// A voucher the channel's signer really signed: usually a new one, sometimes an old one, sometimes far
    /// above the deposit. The claimed part is mostly all of it, and one in twelve asks for more than that.
    fn any_claim(&mut self, index: usize) -> Result<Claim> {
        let random = &mut self.random;
        let channel = &mut self.model.channels[index];
        let cumulative = match random.below(10) {
            0 if !channel.signed.is_empty() => channel.signed[random.index(channel.signed.len())],
            1 if random.one_in(3) => channel.state.deposited + u128::from(random.below(1_000)),
            _ => channel.state.claimed + u128::from(random.below(600)),
        };
        channel.signed.push(cumulative);
        let amount = match random.below(12) {
            0 => cumulative + 1,
            1..4 => cumulative.saturating_sub(u128::from(random.below(300))),
            _ => cumulative,
        };
        self.world.voucher_by(&channel.signer, &channel.terms, cumulative, amount)
    }

    async fn claim(&mut self, index: usize) -> Result<()> {
        let claim_ = self.any_claim(index)?;
        let payee = claim_.channel.payee;
        let expected = claim_.amount <= claim_.cumulative && self.model.claim(index, claim_.amount) > 0;
        self.count_either(expected, "claims", "claims refused");
        self.expect(payee, &PayChannels::claimCall { claim_ }.abi_encode(), expected).await
    }

    /// One row for every channel, whoever its payee is: foreign and unpayable rows must be skipped.
    async fn claim_many(&mut self, index: usize) -> Result<()> {
        let payee = self.model.channels[index].terms.payee;
        let mut claims = Vec::new();
        let mut rows_paid = 0;
        for row in 0..CHANNELS {
            let mut claim = self.any_claim(row)?;
            let forged = self.random.one_in(6);
            if forged {
                claim.vs = claim.r;
            }
            let valid = !forged && claim.amount <= claim.cumulative && claim.channel.payee == payee;
            rows_paid += u64::from(valid && self.model.claim(row, claim.amount) > 0);
            claims.push(claim);
        }
        self.count("batches");
        *self.counts.entry("batch rows paid").or_default() += rows_paid;
        *self.counts.entry("batch rows skipped").or_default() += CHANNELS as u64 - rows_paid;
        let call = PayChannels::claimManyCall { token: self.world.chain.usdc, claims };
        self.expect(payee, &call.abi_encode(), true).await
    }

    async fn close(&mut self, index: usize) -> Result<()> {
        let barred = |channel: &Modelled| self.model.blacklisted == Some(channel.terms.payer);
        let index = self.model.channels.iter().position(barred).unwrap_or(index);
        let claim_ = self.any_claim(index)?;
        let payee = claim_.channel.payee;
        let closed = if claim_.amount <= claim_.cumulative {
            self.model.close(index, claim_.amount, self.time)
        } else {
            None
        };
        self.count(match closed {
            Some(Close::Refunded) => "closes",
            Some(Close::Kept) => "closes with the refund kept",
            None => "closes refused",
        });
        self.expect(payee, &PayChannels::closeCall { claim_ }.abi_encode(), closed.is_some()).await
    }

    async fn request_close(&mut self, index: usize) -> Result<()> {
        let caller = self.payer_or_signer(index);
        let expected = self.model.request_close(index, self.time);
        self.count_either(expected, "close requests", "close requests refused");
        let channel = self.model.channels[index].terms.clone();
        self.expect(caller, &PayChannels::requestCloseCall { channel }.abi_encode(), expected).await
    }

    /// Mostly waits for the end of a pending delay, to the very second or one second short of it.
    async fn withdraw(&mut self, index: usize) -> Result<()> {
        let pending = self.model.channels.iter().position(|channel| channel.state.close_at != 0);
        let index = if self.random.one_in(6) { index } else { pending.unwrap_or(index) };
        let close_at = self.model.channels[index].state.close_at;
        let early = u64::from(self.random.one_in(4));
        self.time = self.time.max(close_at.saturating_sub(early));
        let caller = self.payer_or_signer(index);
        let refund = self.model.withdraw(index, self.time);
        self.count(match refund {
            Some(0) => "withdrawals of nothing",
            Some(_) => "withdrawals",
            None => "withdrawals refused",
        });
        let channel = self.model.channels[index].terms.clone();
        self.expect(caller, &PayChannels::withdrawCall { channel }.abi_encode(), refund.is_some()).await
    }

    /// At most one payer at a time is blacklisted; the next turn frees it.
    async fn blacklist(&mut self, index: usize) -> Result<()> {
        self.count("blacklist changes");
        if let Some(account) = self.model.blacklisted.take() {
            self.world.unblacklist(account).await
        } else {
            let account = self.model.channels[index].terms.payer;
            self.model.blacklisted = Some(account);
            self.world.blacklist(account).await
        }
    }

    async fn donate(&mut self) -> Result<()> {
        self.count("gifts to the escrow");
        let (from, to) = (self.world.stranger.address(), self.model.escrow);
        self.model.moves(from, to, 5);
        self.world.usdc(from, &TestUsdc::transferCall { to, value: U256::from(5) }).await.map(drop)
    }

    /// Something that must fail whatever the state is.
    async fn attack(&mut self, index: usize) -> Result<()> {
        self.count("attacks refused");
        let claim_ = self.any_claim(index)?;
        let channel = claim_.channel.clone();
        let (payer, payee, stranger) = (channel.payer, channel.payee, self.world.stranger.address());
        let forged = self.world.voucher_by(&self.world.stranger, &channel, u128::MAX, u128::MAX)?;
        let forged_pays = self.model.channels[index].due(u128::MAX) > 0;
        let (caller, data) = match self.random.below(8) {
            0 => (stranger, PayChannels::claimCall { claim_ }.abi_encode()),
            1 => (payer, PayChannels::closeCall { claim_ }.abi_encode()),
            2 => (stranger, PayChannels::withdrawCall { channel }.abi_encode()),
            3 => (payee, PayChannels::requestCloseCall { channel }.abi_encode()),
            4 => (payee, PayChannels::withdrawCall { channel }.abi_encode()),
            5 => (stranger, PayChannels::depositCall { channel, amount: 1 }.abi_encode()),
            // A drained channel may still be closed by its payee, so the forgery asks for a claim there.
            6 if forged_pays => (payee, PayChannels::closeCall { claim_: forged }.abi_encode()),
            _ => (payee, PayChannels::claimCall { claim_: forged }.abi_encode()),
        };
        self.expect(caller, &data, false).await
    }

    fn payer_or_signer(&mut self, index: usize) -> Address {
        let terms = &self.model.channels[index].terms;
        if self.random.one_in(2) { terms.payer } else { terms.signer }
    }

    fn payer_key(&self, index: usize) -> PrivateKeySigner {
        if index.is_multiple_of(3) { self.world.payer.clone() } else { key(&format!("payer {}", index % 3)) }
    }

    // ------------------------------------------------------------------ checks

    /// Sends a transaction at the model's time, whatever becomes of it.
    async fn expect(&self, from: Address, data: &[u8], success: bool) -> Result<()> {
        self.world.chain.request::<_, ()>("evm_setNextBlockTimestamp", (self.time,)).await?;
        let transaction = TransactionRequest::default()
            .from(from)
            .to(self.world.chain.channels)
            .gas_limit(2_000_000)
            .input(Bytes::copy_from_slice(data).into());
        let receipt = self.world.chain.mine(transaction).await?;
        ensure!(receipt.status() == success, "expected success = {success} of {}", receipt.transaction_hash);
        Ok(())
    }

    /// Reads everything back and holds it against the model and M1 to M3.
    async fn check(&self, before: &[State], supply: u128) -> Result<Vec<State>> {
        let chain = &self.world.chain;
        let ids = self.model.channels.iter().map(|channel| self.world.id(&channel.terms));
        let states: Vec<State> = chain
            .call_all(Address::ZERO, chain.channels, ids.map(|id| PayChannels::stateCall { id }))
            .await?
            .into_iter()
            .map(|state| state.map(State::from))
            .collect::<Result<_, _>>()?;
        let accounts = self.model.balances.keys().copied();
        let balances: Vec<u128> = chain
            .call_all(Address::ZERO, chain.usdc, accounts.map(TestUsdc::balanceOfCall))
            .await?
            .into_iter()
            .map(|balance| balance.map(|balance| balance.to()))
            .collect::<Result<_, _>>()?;

        for (state, channel) in states.iter().zip(&self.model.channels) {
            ensure!(*state == channel.state, "the chain has {state:?}, the model {:?}", channel.state);
            ensure!(state.claimed <= channel.highest_signed(), "M3: claimed more than was signed");
            ensure!(state.claimed <= state.deposited, "M3: claimed more than was deposited");
        }
        for (state, before) in states.iter().zip(before) {
            ensure!(state.claimed >= before.claimed, "M3: claimed went down");
        }
        ensure!(balances.iter().eq(self.model.balances.values()), "a balance differs from the model");
        ensure!(balances.iter().sum::<u128>() == supply, "M1: money appeared or vanished");
        let owed: u128 = states.iter().map(|state| state.deposited - state.claimed).sum();
        ensure!(self.world.balance(self.model.escrow).await? >= owed, "M2: the escrow owes {owed}");
        Ok(states)
    }
}

pub(crate) fn seed() -> Result<u64> {
    env::var("FARTHING_TEST_SEED")
        .map_or(Ok(DEFAULT_SEED), |text| text.parse().context("FARTHING_TEST_SEED must be a whole number"))
}

#[tokio::test]
async fn money_is_conserved_and_claims_are_bounded_over_a_thousand_random_operations() -> Result<()> {
    let seed = seed()?;
    let mut run = Run::start(seed).await?;
    let supply = run.model.balances.values().sum();
    let minted = run.world.chain.read(run.world.chain.usdc, &TestUsdc::totalSupplyCall {}).await?;
    assert_eq!(minted, U256::from(supply));

    let mut states = run.check(&[], supply).await?;
    for step in 0..STEPS {
        run.step().await.with_context(|| format!("step {step} of seed {seed}"))?;
        states =
            run.check(&states, supply).await.with_context(|| format!("after step {step} of seed {seed}"))?;
    }

    println!("{STEPS} operations, seed {seed}:");
    for (what, count) in &run.counts {
        println!("  {count:5} {what}");
    }
    // Enough of everything to mean something; about half of what most seeds give.
    for (what, least) in [
        ("deposits", 50),
        ("authorized deposits", 50),
        ("claims", 40),
        ("batch rows paid", 30),
        ("closes", 8),
        ("closes with the refund kept", 1),
        ("close requests", 35),
        ("withdrawals", 30),
        ("attacks refused", 20),
    ] {
        let count = run.counts.get(what).copied().unwrap_or(0);
        assert!(count >= least, "only {count} {what}: the run proves little");
    }
    Ok(())
}
