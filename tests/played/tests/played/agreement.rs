//! The same random transactions, good and bad, on anvil and on the played chain. After each, receipt, logs, header, states of
//! channels, balances and nonces are compared as the node reads them, also those of earlier blocks; before each, what a
//! simulation says of it, a revert to its last byte. Every run takes a seed of its own; `FARTHING_TEST_SEED` repeats one.

use alloy::{
    primitives::{Address, B256, Bytes, U256, aliases::U40, keccak256},
    signers::{SignerSync as _, local::PrivateKeySigner},
    sol,
    sol_types::{Eip712Domain, SolCall as _, SolStruct as _, SolValue as _, eip712_domain},
};
use anyhow::{Context as _, Result};
use farthing_contract_tests::{
    CHAIN_ID,
    PayChannels::{self, Channel, Claim},
    ReceiveWithAuthorization, TestUsdc, pay_channels_address,
    rules::Slot,
};
use farthing_values::{TokenDomain, TransferAuthorization, Usdc};
use serde_json::json;

use crate::{
    people::{claim, close_consent, close_request, key, protocol_address, secret},
    random::{Random, seed},
    together::Together,
};

sol! {
    /// The form of the call that nodes use; the token has another one for signatures of accounts with code.
    #[derive(Debug)]
    interface Payments {
        function transferWithAuthorization(
            address from,
            address to,
            uint256 value,
            uint256 validAfter,
            uint256 validBefore,
            bytes32 nonce,
            uint8 v,
            bytes32 r,
            bytes32 s
        ) external;
    }
}

const STEPS: u64 = 200;
const CHANNELS: usize = 6;
const HOUR: u64 = 3_600;
const GWEI: u128 = 1_000_000_000;

/// A channel and the keys of its parties.
struct Kept {
    terms: Channel,
    payer: PrivateKeySigner,
    payee: PrivateKeySigner,
    signer: PrivateKeySigner,
}

/// A transaction to send: who sends it, where, and what it says.
type Operation = (PrivateKeySigner, Address, Vec<u8>);

struct Run {
    together: Together,
    random: Random,
    domain: Eip712Domain,
    token_domain: Eip712Domain,
    minter: PrivateKeySigner,
    stranger: PrivateKeySigner,
    channels: Vec<Kept>,
    /// The second of the next block, at least.
    next_time: u64,
    authorizations: u64,
    last_nonce: B256,
    succeeded: u64,
    refused: u64,
}

/// Two payers, two payees; a third of the channels is signed by a session key, and one has terms that nobody may open.
fn channels(usdc: Address) -> Vec<Kept> {
    let kept = |number: usize| {
        let payer = key(&format!("payer {}", number % 2));
        let payee = key(&format!("payee {}", number / 2 % 2));
        let signer = if number % 3 == 2 { key("a session key") } else { payer.clone() };
        let delay_secs = if number == 5 { 1 } else { HOUR * (1 + number as u64) };
        let terms = Channel {
            payer: payer.address(),
            payee: payee.address(),
            token: usdc,
            signer: signer.address(),
            closeDelay: U40::from(delay_secs),
            salt: keccak256(number.to_be_bytes()),
        };
        Kept { terms, payer, payee, signer }
    };
    (0..CHANNELS).map(kept).collect()
}

impl Run {
    async fn start(seed: u64) -> Result<Self> {
        let (minter, stranger) = (key("minter"), key("stranger"));
        let names = ["payer 0", "payer 1", "payee 0", "payee 1", "a session key"].map(key);
        let senders = names.iter().chain([&minter, &stranger]).map(PrivateKeySigner::address);
        let together = Together::start(minter.address(), &senders.collect::<Vec<_>>()).await?;
        let domain = eip712_domain! {
            name: "Farthing PayChannels",
            version: "1",
            chain_id: CHAIN_ID,
            verifying_contract: pay_channels_address(),
        };
        let token_domain = eip712_domain! {
            name: "USDC",
            version: "2",
            chain_id: CHAIN_ID,
            verifying_contract: together.usdc,
        };
        let channels = channels(together.usdc);
        let next_time = together.time + HOUR;
        let (authorizations, last_nonce, succeeded, refused) = Default::default();
        let random = Random::new(seed);
        let mut run = Self {
            together,
            random,
            domain,
            token_domain,
            minter,
            stranger,
            channels,
            next_time,
            authorizations,
            last_nonce,
            succeeded,
            refused,
        };
        let usdc = run.together.usdc;
        for payer in [key("payer 0"), key("payer 1")] {
            let mint = TestUsdc::mintCall { to: payer.address(), amount: U256::from(50_000_u64) };
            run.send((run.minter.clone(), usdc, mint.abi_encode())).await?;
            let approve = TestUsdc::approveCall { spender: pay_channels_address(), value: U256::MAX };
            run.send((payer, usdc, approve.abi_encode())).await?;
        }
        Ok(run)
    }

    async fn step(&mut self) -> Result<()> {
        let index = self.random.below(CHANNELS);
        let operation = match self.random.u64_below(100) {
            0..25 => self.of_token(index),
            25..50 => self.deposit(index),
            50..72 => self.claim(index),
            72..86 => self.close(index),
            _ => self.leave(index),
        };
        self.send(operation).await?;
        self.compare(index).await
    }

    async fn send(&mut self, (signer, to, data): Operation) -> Result<()> {
        self.together.agree_on_call(signer.address(), to, &data, "latest").await?;
        let time = self.next_time.max(self.together.time + 1);
        self.next_time = time + 1 + self.random.u64_below(HOUR / 4);
        let base_fee_wei = GWEI + u128::from(self.random.u64_below(20_000_000_000));
        let tip_wei = u128::from(self.random.u64_below(1_500_000_000));
        let fees = (time, base_fee_wei, tip_wei);
        let succeeded = self.together.transact(&signer, to, data, fees).await?;
        *(if succeeded { &mut self.succeeded } else { &mut self.refused }) += 1;
        Ok(())
    }

    // -------------------------------------------------------------- operations

    fn of_token(&mut self, index: usize) -> Operation {
        let Channel { payer, payee, .. } = self.channels[index].terms;
        let usdc = self.together.usdc;
        let amount = U256::from(self.random.u64_below(4_000));
        let to = [payer, payee, Address::ZERO, pay_channels_address()][self.random.below(4)];
        let by_minter = if self.random.one_in(8) { &self.stranger } else { &self.minter }.clone();
        let payer_key = self.channels[index].payer.clone();
        match self.random.u64_below(6) {
            0 => (by_minter, usdc, TestUsdc::mintCall { to, amount }.abi_encode()),
            1 => (payer_key, usdc, TestUsdc::transferCall { to, value: amount }.abi_encode()),
            2 => {
                let value = if self.random.one_in(2) { U256::MAX } else { amount };
                let approve = TestUsdc::approveCall { spender: pay_channels_address(), value };
                (payer_key, usdc, approve.abi_encode())
            }
            3 => (by_minter, usdc, TestUsdc::blacklistCall { account: payer }.abi_encode()),
            4 => (by_minter, usdc, TestUsdc::unBlacklistCall { account: payer }.abi_encode()),
            _ => self.payment(&payer_key, to),
        }
    }

    /// A payment as x402 clients sign them, brought by a stranger; now and then with another's signature, or used before.
    fn payment(&mut self, payer: &PrivateKeySigner, to: Address) -> Operation {
        let token = protocol_address(self.together.usdc);
        let (name, version) = ("USDC".to_owned(), "2".to_owned());
        let domain = TokenDomain { name, version, chain_id: CHAIN_ID, token };
        let nonce = if self.random.one_in(4) { self.last_nonce } else { self.new_nonce(B256::ZERO) };
        let value = Usdc::from_micros(self.random.u64_below(2_000));
        let valid_before_secs = self.next_time + self.random.u64_below(HOUR);
        let authorization = TransferAuthorization {
            from: protocol_address(payer.address()),
            to: protocol_address(to),
            value,
            valid_after_secs: 0,
            valid_before_secs,
            nonce: nonce.0,
        };
        let by = if self.random.one_in(6) { &self.stranger } else { payer };
        let signature = secret(by).sign(&authorization.digest(&domain));
        let bytes = signature.as_bytes();
        let call = Payments::transferWithAuthorizationCall {
            from: payer.address(),
            to,
            value: U256::from(value.micros()),
            validAfter: U256::ZERO,
            validBefore: U256::from(valid_before_secs),
            nonce,
            v: bytes[64],
            r: B256::from_slice(&bytes[..32]),
            s: B256::from_slice(&bytes[32..64]),
        };
        (self.stranger.clone(), self.together.usdc, call.abi_encode())
    }

    fn deposit(&mut self, index: usize) -> Operation {
        let amount = u128::from(self.random.u64_below(4_000));
        let channel = self.channels[index].terms.clone();
        if self.random.one_in(3) {
            let by = if self.random.one_in(8) { &self.stranger } else { &self.channels[index].payer }.clone();
            return (by, pay_channels_address(), PayChannels::depositCall { channel, amount }.abi_encode());
        }
        let salt = keccak256(self.authorizations.to_be_bytes());
        let nonce = self.new_nonce(keccak256((self.id(index), salt).abi_encode()));
        let valid_before = U256::from(self.next_time + self.random.u64_below(HOUR));
        let message = ReceiveWithAuthorization {
            from: channel.payer,
            to: pay_channels_address(),
            value: U256::from(amount),
            validAfter: U256::ZERO,
            validBefore: valid_before,
            nonce,
        };
        let by = if self.random.one_in(8) { &self.stranger } else { &self.channels[index].payer };
        let digest = message.eip712_signing_hash(&self.token_domain);
        let signature = by.sign_hash_sync(&digest).expect("a key signs");
        let call = PayChannels::depositWithAuthorizationCall {
            channel,
            amount,
            validAfter: U256::ZERO,
            validBefore: valid_before,
            authSalt: salt,
            signature: Bytes::copy_from_slice(&signature.as_bytes()),
        };
        (self.stranger.clone(), pay_channels_address(), call.abi_encode())
    }

    /// A number that no authorization had before: the given one, or if that is nothing any.
    fn new_nonce(&mut self, given: B256) -> B256 {
        self.authorizations += 1;
        let any = keccak256([b"any".as_slice(), &self.authorizations.to_be_bytes()].concat());
        self.last_nonce = if given.is_zero() { any } else { given };
        self.last_nonce
    }

    /// Mostly a claim that pays; one in twelve is above its voucher, and one in eight is signed by somebody else.
    fn any_claim(&mut self, index: usize) -> Claim {
        let Slot { deposited, claimed, .. } = self.slot(index);
        let random = &mut self.random;
        let cumulative = match random.one_in(6) {
            true => deposited + u128::from(random.u64_below(1_000)),
            false => claimed + u128::from(random.u64_below(600)),
        };
        let amount = match random.u64_below(12) {
            0 => cumulative + 1,
            1..4 => cumulative.saturating_sub(u128::from(random.u64_below(300))),
            _ => cumulative,
        };
        let by = if random.one_in(8) { &self.stranger } else { &self.channels[index].signer };
        claim(by, &self.domain, &self.channels[index].terms, cumulative, amount)
    }

    fn claim(&mut self, index: usize) -> Operation {
        let payee = self.by_or_stranger(|kept| &kept.payee, index);
        if self.random.one_in(2) {
            let claim_ = self.any_claim(index);
            return (payee, pay_channels_address(), PayChannels::claimCall { claim_ }.abi_encode());
        }
        let claims = (0..CHANNELS).map(|row| self.any_claim(row)).collect();
        let call = PayChannels::claimManyCall { token: self.together.usdc, claims };
        (payee, pay_channels_address(), call.abi_encode())
    }

    fn close(&mut self, index: usize) -> Operation {
        let claim_ = self.any_claim(index);
        if self.random.one_in(2) {
            let payee = self.by_or_stranger(|kept| &kept.payee, index);
            return (payee, pay_channels_address(), PayChannels::closeCall { claim_ }.abi_encode());
        }
        let Slot { deposited, round, .. } = self.slot(index);
        // Now and then of another round, or past its deadline.
        let round = round + u32::from(self.random.one_in(6));
        let deadline_secs = self.next_time + HOUR * self.random.u64_below(4);
        let deadline_secs = if self.random.one_in(8) { self.together.time - 1 } else { deadline_secs };
        let payee = &self.channels[index].payee;
        let consent = close_consent(payee, self.id(index), claim_.amount, (deposited, round), deadline_secs);
        let call = PayChannels::closeBySignatureCall { claim_, consent };
        (self.stranger.clone(), pay_channels_address(), call.abi_encode())
    }

    /// A request to close, or a withdrawal: mostly at the very second from which it may be, or one before.
    fn leave(&mut self, index: usize) -> Operation {
        let channel = self.channels[index].terms.clone();
        let Slot { close_at, round, .. } = self.slot(index);
        if close_at != 0 && !self.random.one_in(4) {
            let early = u64::from(self.random.one_in(4));
            self.next_time = self.next_time.max(close_at - early);
            let call = PayChannels::withdrawCall { channel };
            return (self.stranger.clone(), pay_channels_address(), call.abi_encode());
        }
        if self.random.one_in(2) {
            let by = self.by_or_stranger(|kept| &kept.signer, index);
            return (by, pay_channels_address(), PayChannels::requestCloseCall { channel }.abi_encode());
        }
        let by = self.by_or_stranger(|kept| &kept.payer, index);
        let consent = close_request(&by, self.id(index), round, self.next_time + HOUR);
        let call = PayChannels::requestCloseBySignatureCall { channel, consent };
        (self.stranger.clone(), pay_channels_address(), call.abi_encode())
    }

    fn by_or_stranger(&mut self, own: fn(&Kept) -> &PrivateKeySigner, index: usize) -> PrivateKeySigner {
        if self.random.one_in(8) { self.stranger.clone() } else { own(&self.channels[index]).clone() }
    }

    fn id(&self, index: usize) -> B256 {
        self.channels[index].terms.eip712_signing_hash(&self.domain)
    }

    fn slot(&self, index: usize) -> Slot {
        let id = self.id(index);
        self.together.played.with(|machine| machine.head().books.slot(id))
    }

    // ------------------------------------------------------------------ checks

    /// Asks both chains what the node asks, about what the last transaction may have touched.
    async fn compare(&mut self, index: usize) -> Result<()> {
        let head = self.together.head();
        let earlier = self.together.first + self.random.u64_below(head - self.together.first + 1);
        let earlier = format!("{earlier:#x}");
        let Channel { payer, payee, token, .. } = self.channels[index].terms;
        let (escrow, nobody) = (pay_channels_address(), Address::ZERO);
        for row in [index, self.random.below(CHANNELS)] {
            let call = PayChannels::stateCall { id: self.id(row) }.abi_encode();
            for at in ["latest", &earlier] {
                self.together.agree_on_call(nobody, escrow, &call, at).await?;
            }
        }
        for account in [payer, payee, escrow] {
            let call = TestUsdc::balanceOfCall(account).abi_encode();
            self.together.agree_on_call(nobody, token, &call, "latest").await?;
        }
        for at in ["latest", "pending", &earlier] {
            self.together.agree("eth_getTransactionCount", &json!([payer, at])).await?;
        }
        let call = TestUsdc::authorizationStateCall { authorizer: payer, nonce: self.last_nonce };
        self.together.agree_on_call(nobody, token, &call.abi_encode(), "latest").await?;
        let word = |address: Address| B256::left_padding_from(address.as_slice());
        let wallet = word(if self.random.one_in(2) { payer } else { payee });
        let to = format!("{head:#x}");
        for topics in [json!([null, wallet, null, word(token)]), json!([null, null, wallet, word(token)])] {
            let filter = json!({ "address": escrow, "fromBlock": earlier, "toBlock": to, "topics": topics });
            self.together.agree_on_logs(&filter).await?;
        }
        Ok(())
    }
}

#[tokio::test]
async fn a_played_chain_is_as_anvil_is_after_each_of_two_hundred_random_transactions() -> Result<()> {
    let seed = seed();
    let mut run = Run::start(seed).await.with_context(|| format!("at the start of seed {seed}"))?;
    run.together.agree_on_the_code().await?;
    for call in [
        TestUsdc::nameCall {}.abi_encode(),
        TestUsdc::versionCall {}.abi_encode(),
        TestUsdc::decimalsCall {}.abi_encode(),
        TestUsdc::DOMAIN_SEPARATORCall {}.abi_encode(),
    ] {
        run.together.agree_on_call(Address::ZERO, run.together.usdc, &call, "latest").await?;
    }
    for step in 0..STEPS {
        run.step().await.with_context(|| format!("step {step} of seed {seed}"))?;
    }
    let (succeeded, refused) = (run.succeeded, run.refused);
    assert!(succeeded >= 40 && refused >= 20, "{succeeded} and {refused} with seed {seed} prove little");
    Ok(())
}
