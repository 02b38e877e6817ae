//! A thousand random operations, honest and not, against a model of the contract in plain arithmetic.
//!
//! Each step picks an operation, asks the model what must happen, sends it as a real transaction at a
//! known second, and then reads all channels and balances back. M1 to M3 must hold of what was read, without
//! the model; then success, books and money must be the model's to the unit. Channels are in two tokens: one
//! that bars accounts, as USDC may, and one that keeps a fee. Every run takes a seed of its own and prints it;
//! `FARTHING_TEST_SEED` repeats one.

use std::collections::{BTreeMap, BTreeSet};

use alloy::{
    primitives::{Address, B256, Bytes, U256},
    rpc::types::TransactionRequest,
    sol_types::SolCall as _,
};
use anyhow::{Context as _, Result, ensure};
use farthing_contract_tests::{
    HostileToken,
    PayChannels::{self, Channel, Claim},
    TestUsdc,
};

use self::{
    model::{Close, Model, Modelled, Token},
    setting::{channels, mint},
};
use crate::{
    consent::{close_consent, close_request},
    random::{Random, seed},
    world::{HOUR, NEVER, State, U40, World, key},
};

mod model;
mod setting;

const STEPS: u64 = 1_000;
const CHANNELS: usize = 9;
const PAYEES: usize = 3;
const WEALTH: u128 = 1_000_000;
/// Units that the second token keeps of every transfer.
const FEE: u128 = 3;

/// The model, the chain, and what has happened so far.
struct Run {
    world: World,
    model: Model,
    random: Random,
    time: u64,
    authorizations: u64,
    closes: Vec<SignedClose>,
    requests: Vec<SignedRequest>,
    counts: BTreeMap<&'static str, u64>,
}

/// A payee's word with what it was given for.
#[derive(Clone)]
struct SignedClose {
    index: usize,
    deposited: u128,
    round: u32,
    call: PayChannels::closeBySignatureCall,
}

/// The same of a payer or signer.
#[derive(Clone)]
struct SignedRequest {
    index: usize,
    round: u32,
    call: PayChannels::requestCloseBySignatureCall,
}

impl Run {
    async fn start(seed: u64) -> Result<Self> {
        let world = World::start().await?;
        let fee_token = world.chain.deploy(HostileToken::BYTECODE.clone()).await?;
        let channels = channels(&world, fee_token);
        let escrow = world.chain.channels;
        let mut tokens = BTreeMap::new();
        for (address, fee) in [(world.chain.usdc, 0), (fee_token, FEE)] {
            let mut balances = BTreeMap::from([(escrow, 0), (world.stranger.address(), WEALTH)]);
            for Modelled { terms, .. } in &channels {
                balances.insert(terms.payer, WEALTH);
                balances.insert(terms.payee, 0);
            }
            for (&to, &value) in balances.iter().filter(|(_, value)| **value > 0) {
                mint(&world, address, to, value).await?;
            }
            let minted = balances.values().sum();
            tokens.insert(address, Token { balances, minted, fee, kept: 0, barred: BTreeSet::new() });
        }
        let fee = HostileToken::setFeeCall { units: U256::from(FEE) };
        world.chain.send(world.stranger.address(), fee_token, &fee).await?;
        let time = world.chain.now().await? + HOUR;
        let model = Model { channels, tokens, escrow };
        let (authorizations, closes, requests, counts) = Default::default();
        Ok(Self { world, model, random: Random::new(seed), time, authorizations, closes, requests, counts })
    }

    async fn step(&mut self) -> Result<()> {
        self.time += 1 + self.random.u64_below(HOUR / 4);
        let index = self.random.below(CHANNELS);
        match self.random.u64_below(100) {
            0..15 => self.deposit(index).await,
            15..30 => self.authorized_deposit(index).await,
            30..46 => self.claim(index).await,
            46..52 => self.claim_many(index).await,
            52..57 => self.close(index).await,
            57..64 => self.close_by_signature(index).await,
            64..70 => self.request_close(index).await,
            70..76 => self.request_close_by_signature(index).await,
            76..90 => self.withdraw(index).await,
            90..94 => self.bar(index).await,
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
        let amount = u128::from(self.random.u64_below(4_000));
        let channel = self.model.channels[index].terms.clone();
        let payer = channel.payer;
        let expected = self.model.deposit(index, amount);
        self.count_either(expected, "deposits", "deposits refused");
        self.expect(payer, &PayChannels::depositCall { channel, amount }.abi_encode(), expected).await
    }

    async fn authorized_deposit(&mut self, index: usize) -> Result<()> {
        if self.model.channels[index].terms.token != self.world.chain.usdc {
            // The token with the fee checks no signature.
            return self.deposit(index).await;
        }
        self.authorizations += 1;
        let amount = u128::from(self.random.u64_below(4_000));
        let Modelled { terms, payer, .. } = &self.model.channels[index];
        let call = self.world.authorize_by(payer, terms, amount, self.authorizations, 0, NEVER).await?;
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
        let cumulative = match random.u64_below(10) {
            0 if !channel.signed.is_empty() => channel.signed[random.below(channel.signed.len())],
            1 if random.one_in(3) => channel.state.deposited + u128::from(random.u64_below(1_000)),
            _ => channel.state.claimed + u128::from(random.u64_below(600)),
        };
        channel.signed.push(cumulative);
        let amount = match random.u64_below(12) {
            0 => cumulative + 1,
            1..4 => cumulative.saturating_sub(u128::from(random.u64_below(300))),
            _ => cumulative,
        };
        self.world.voucher_by(&channel.signer, &channel.terms, cumulative, amount)
    }

    async fn claim(&mut self, index: usize) -> Result<()> {
        let claim_ = self.any_claim(index)?;
        let payee = claim_.channel.payee;
        let expected = claim_.amount <= claim_.cumulative && self.model.claim(index, claim_.amount);
        self.count_either(expected, "claims", "claims refused");
        self.expect(payee, &PayChannels::claimCall { claim_ }.abi_encode(), expected).await
    }

    /// One row for every channel, whoever its payee and whatever its token is: foreign and unpayable rows must
    /// be skipped, and only a payee that may not be paid at all makes the batch fail.
    async fn claim_many(&mut self, index: usize) -> Result<()> {
        let Channel { payee, token, .. } = self.model.channels[index].terms;
        let (mut claims, mut valid) = (Vec::new(), Vec::new());
        for row in 0..CHANNELS {
            let mut claim = self.any_claim(row)?;
            let forged = self.random.one_in(6);
            if forged {
                claim.vs = claim.r;
            }
            let is_own = claim.channel.payee == payee && claim.channel.token == token;
            if !forged && claim.amount <= claim.cumulative && is_own {
                valid.push((row, claim.amount));
            }
            claims.push(claim);
        }
        let rows_paid = self.model.claim_many(&valid);
        self.count_either(rows_paid.is_some(), "batches", "batches refused by the token");
        *self.counts.entry("batch rows paid").or_default() += rows_paid.unwrap_or(0);
        let call = PayChannels::claimManyCall { token, claims };
        self.expect(payee, &call.abi_encode(), rows_paid.is_some()).await
    }

    async fn close(&mut self, index: usize) -> Result<()> {
        let barred = |channel: &Modelled| {
            self.model.tokens[&channel.terms.token].barred.contains(&channel.terms.payer)
        };
        let index = self.model.channels.iter().position(barred).unwrap_or(index);
        let claim_ = self.any_claim(index)?;
        let payee = claim_.channel.payee;
        let closed = if claim_.amount <= claim_.cumulative {
            self.model.close(index, claim_.amount, self.time)
        } else {
            None
        };
        self.count_close(&closed, "closes", "closes refused");
        self.expect(payee, &PayChannels::closeCall { claim_ }.abi_encode(), closed.is_some()).await
    }

    fn count_close(&mut self, closed: &Option<Close>, yes: &'static str, no: &'static str) {
        self.count(match closed {
            Some(Close::Refunded) => yes,
            Some(Close::Kept) => "closes with the refund kept",
            None => no,
        });
    }

    /// The payee's word on the channel as it is now, or one from before, brought by anyone.
    async fn close_by_signature(&mut self, index: usize) -> Result<()> {
        let is_old = !self.closes.is_empty() && self.random.one_in(2);
        let word = if is_old {
            self.closes[self.random.below(self.closes.len())].clone()
        } else {
            self.sign_close(index)?
        };
        let SignedClose { index, deposited, round, call } = word;
        let channel = &self.model.channels[index];
        let Claim { cumulative, amount, .. } = call.claim_;
        let counts = call.consent.deadline.to::<u64>() >= self.time
            && channel.state.claimed <= amount
            && (channel.state.deposited, channel.round) == (deposited, round)
            && amount <= cumulative;
        let closed = if counts { self.model.close(index, amount, self.time) } else { None };
        let refused = if is_old { "old signed closes refused" } else { "signed closes refused" };
        self.count_close(&closed, "signed closes", refused);
        let caller = self.anyone(index);
        self.expect(caller, &call.abi_encode(), closed.is_some()).await
    }

    fn sign_close(&mut self, index: usize) -> Result<SignedClose> {
        let claim_ = self.any_claim(index)?;
        let deadline_secs = self.time + self.random.u64_below(6 * HOUR);
        let Modelled { terms, payee, state, round, .. } = &self.model.channels[index];
        let (deposited, round) = (state.deposited, *round);
        let consent =
            close_consent(&self.world, payee, terms, claim_.amount, (*state, round), deadline_secs)?;
        let call = PayChannels::closeBySignatureCall { claim_, consent };
        let word = SignedClose { index, deposited, round, call };
        self.closes.push(word.clone());
        Ok(word)
    }

    async fn request_close(&mut self, index: usize) -> Result<()> {
        let terms = &self.model.channels[index].terms;
        let caller = if self.random.one_in(2) { terms.payer } else { terms.signer };
        let expected = self.model.request_close(index, self.time);
        self.count_either(expected, "close requests", "close requests refused");
        let channel = self.model.channels[index].terms.clone();
        self.expect(caller, &PayChannels::requestCloseCall { channel }.abi_encode(), expected).await
    }

    async fn request_close_by_signature(&mut self, index: usize) -> Result<()> {
        let is_old = !self.requests.is_empty() && self.random.one_in(2);
        let word = if is_old {
            self.requests[self.random.below(self.requests.len())].clone()
        } else {
            self.sign_request(index)?
        };
        let SignedRequest { index, round, call } = word;
        let in_time = call.consent.deadline.to::<u64>() >= self.time;
        let counts = in_time && self.model.channels[index].round == round;
        let expected = counts && self.model.request_close(index, self.time);
        let refused = if is_old { "old signed requests refused" } else { "signed requests refused" };
        self.count_either(expected, "signed close requests", refused);
        let caller = self.anyone(index);
        self.expect(caller, &call.abi_encode(), expected).await
    }

    fn sign_request(&mut self, index: usize) -> Result<SignedRequest> {
        let deadline_secs = self.time + self.random.u64_below(24 * HOUR);
        let Modelled { terms, payer, signer, round, .. } = &self.model.channels[index];
        let by = if self.random.one_in(2) { payer } else { signer };
        let call = close_request(&self.world, by, terms, *round, deadline_secs)?;
        let word = SignedRequest { index, round: *round, call };
        self.requests.push(word.clone());
        Ok(word)
    }

    /// Mostly waits for the end of a pending delay, to the very second or one second short of it.
    async fn withdraw(&mut self, index: usize) -> Result<()> {
        let pending = self.model.channels.iter().position(|channel| channel.state.close_at != 0);
        let index = if self.random.one_in(6) { index } else { pending.unwrap_or(index) };
        let close_at = self.model.channels[index].state.close_at;
        let early = u64::from(self.random.one_in(4));
        self.time = self.time.max(close_at.saturating_sub(early));
        let caller = self.anyone(index);
        let refund = self.model.withdraw(index, self.time);
        self.count(match refund {
            Some(0) => "withdrawals of nothing",
            Some(_) => "withdrawals",
            None => "withdrawals refused",
        });
        let channel = self.model.channels[index].terms.clone();
        self.expect(caller, &PayChannels::withdrawCall { channel }.abi_encode(), refund.is_some()).await
    }

    /// At most one payer or payee at a time is barred; the next turn frees it.
    async fn bar(&mut self, index: usize) -> Result<()> {
        self.count("accounts barred or freed");
        let usdc = self.world.chain.usdc;
        let Channel { payer, payee, .. } = self.model.channels[index].terms;
        let account = if self.random.one_in(3) { payee } else { payer };
        let barred = &mut self.model.tokens.get_mut(&usdc).context("the token that bars")?.barred;
        match barred.pop_first() {
            Some(account) => self.world.unblacklist(account).await,
            None => {
                barred.insert(account);
                self.world.blacklist(account).await
            }
        }
    }

    async fn donate(&mut self) -> Result<()> {
        self.count("gifts to the escrow");
        let (from, to, usdc) = (self.world.stranger.address(), self.model.escrow, self.world.chain.usdc);
        self.model.tokens.get_mut(&usdc).context("a known token")?.moves(from, to, 5);
        self.world.usdc(from, &TestUsdc::transferCall { to, value: U256::from(5) }).await.map(drop)
    }

    /// Something that must fail whatever the state is.
    async fn attack(&mut self, index: usize) -> Result<()> {
        self.count("attacks refused");
        let claim_ = self.any_claim(index)?;
        let channel = claim_.channel.clone();
        let (payer, payee, stranger) = (channel.payer, channel.payee, self.world.stranger.address());
        let forged = self.world.voucher_by(&self.world.stranger, &channel, u128::MAX, u128::MAX)?;
        let Modelled { state, round, .. } = &self.model.channels[index];
        let forged_pays = self.model.channels[index].due(u128::MAX) > 0;
        let by_stranger = &self.world.stranger;
        let (caller, data) = match self.random.u64_below(8) {
            0 => (stranger, PayChannels::claimCall { claim_ }.abi_encode()),
            1 => (payer, PayChannels::closeCall { claim_ }.abi_encode()),
            2 => {
                let word = (*state, *round);
                let consent = close_consent(&self.world, by_stranger, &channel, claim_.amount, word, NEVER)?;
                (payer, PayChannels::closeBySignatureCall { claim_, consent }.abi_encode())
            }
            3 => (payee, PayChannels::requestCloseCall { channel }.abi_encode()),
            4 => {
                let payee_key = &self.model.channels[index].payee;
                (payee, close_request(&self.world, payee_key, &channel, *round, NEVER)?.abi_encode())
            }
            5 => (stranger, PayChannels::depositCall { channel, amount: 1 }.abi_encode()),
            // A drained channel may still be closed by its payee, so the forgery asks for a claim there.
            6 if forged_pays => (payee, PayChannels::closeCall { claim_: forged }.abi_encode()),
            _ => (payee, PayChannels::claimCall { claim_: forged }.abi_encode()),
        };
        self.expect(caller, &data, false).await
    }

    fn anyone(&mut self, index: usize) -> Address {
        let terms = &self.model.channels[index].terms;
        [terms.payer, terms.payee, terms.signer, self.world.stranger.address()][self.random.below(4)]
    }

    // ------------------------------------------------------------------ checks

    /// Sends a transaction at the model's time, whatever becomes of it.
    async fn expect(&self, from: Address, data: &[u8], success: bool) -> Result<()> {
        self.world.chain.request::<_, ()>("evm_setNextBlockTimestamp", (self.time,)).await?;
        let transaction = TransactionRequest::default()
            .from(from)
            .to(self.world.chain.channels)
            .gas_limit(3_000_000)
            .input(Bytes::copy_from_slice(data).into());
        let receipt = self.world.chain.mine(transaction).await?;
        ensure!(receipt.status() == success, "expected success = {success} of {}", receipt.transaction_hash);
        Ok(())
    }

    /// Reads everything back and holds it against M1 to M3, then against the model.
    async fn check(&self, before: &[State]) -> Result<Vec<State>> {
        let (states, rounds) = self.read_channels().await?;
        let channels = || states.iter().zip(&self.model.channels);
        for (state, channel) in channels() {
            ensure!(state.claimed <= channel.highest_signed(), "M3: claimed more than was signed");
            ensure!(state.claimed <= state.deposited, "M3: claimed more than was deposited");
        }
        for (state, before) in states.iter().zip(before) {
            ensure!(state.claimed >= before.claimed, "M3: claimed went down");
        }
        for (&address, token) in &self.model.tokens {
            let accounts: Vec<Address> = token.balances.keys().copied().collect();
            let balances = self.read_balances(address, &accounts).await?;
            let minted = token.minted;
            let total = balances.iter().sum::<u128>() + token.kept;
            ensure!(total == minted, "M1: of {minted} units of {address} {total} are there");
            let owed: u128 = channels()
                .filter(|(_, channel)| channel.terms.token == address)
                .map(|(state, _)| state.deposited - state.claimed)
                .sum();
            let escrow = self.read_balances(address, &[self.model.escrow]).await?[0];
            ensure!(escrow >= owed, "M2: the escrow has {escrow} units of {address} and owes {owed}");
            ensure!(balances.iter().eq(token.balances.values()), "a balance differs from the model");
        }
        for ((state, channel), round) in channels().zip(rounds) {
            let (chain, model) = ((*state, round), (channel.state, channel.round));
            ensure!(chain == model, "the chain has {chain:?}, the model {model:?}");
        }
        Ok(states)
    }

    async fn read_channels(&self) -> Result<(Vec<State>, Vec<u32>)> {
        let chain = &self.world.chain;
        let ids = self.model.channels.iter().map(|channel| self.world.id(&channel.terms));
        let calls = ids.map(|id| PayChannels::stateCall { id });
        let mut read = (Vec::new(), Vec::new());
        for state in chain.call_all(Address::ZERO, chain.channels, calls).await? {
            let state = state?;
            read.1.push(state.round.to());
            read.0.push(State::from(state));
        }
        Ok(read)
    }

    async fn read_balances(&self, token: Address, accounts: &[Address]) -> Result<Vec<u128>> {
        let calls = accounts.iter().copied().map(TestUsdc::balanceOfCall);
        let answers = self.world.chain.call_all(Address::ZERO, token, calls).await?;
        answers.into_iter().map(|balance| Ok(balance?.to())).collect()
    }
}

#[tokio::test]
async fn money_is_conserved_and_claims_are_bounded_over_a_thousand_random_operations() -> Result<()> {
    let seed = seed();
    let mut run = Run::start(seed).await?;
    let mut states = run.check(&[]).await?;
    for step in 0..STEPS {
        run.step().await.with_context(|| format!("step {step} of seed {seed}"))?;
        states = run.check(&states).await.with_context(|| format!("after step {step} of seed {seed}"))?;
    }

    println!("{STEPS} operations, seed {seed}:");
    for (what, count) in &run.counts {
        println!("  {count:5} {what}");
    }
    // Enough of everything to mean something; about half of what most seeds give.
    for (what, least) in [
        ("deposits", 50),
        ("authorized deposits", 30),
        ("claims", 30),
        ("batch rows paid", 20),
        ("closes", 5),
        ("signed closes", 3),
        ("old signed closes refused", 5),
        ("close requests", 8),
        ("signed close requests", 4),
        ("old signed requests refused", 5),
        ("withdrawals", 15),
        ("attacks refused", 15),
    ] {
        let count = run.counts.get(what).copied().unwrap_or(0);
        assert!(count >= least, "only {count} {what} with seed {seed}: the run proves little");
    }
    Ok(())
}
