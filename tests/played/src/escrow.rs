//! `PayChannels`: who may ask for what, in the order in which `PayChannels.sol` checks; the sums are the shared rules.

use std::{collections::BTreeMap, sync::LazyLock};

use alloy::{
    primitives::{Address, B256, Bytes, Log, U256, keccak256},
    sol,
    sol_types::{Eip712Domain, SolInterface as _, SolStruct as _, SolValue as _, eip712_domain},
};
use farthing_contract_tests::{
    PayChannels::{self, Channel, Claim, Consent, PayChannelsCalls},
    ReceiveWithAuthorization, TestUsdc, Voucher, pay_channels_address,
    rules::{Parties, Refused, Slot},
};

use crate::{
    signed::recovered,
    token::{Frame, Revert, TestToken, encoded, log, revert},
};

sol! {
    /// A payee's word to close, for others to bring.
    #[derive(Debug)]
    struct Close { bytes32 channelId; uint128 amount; uint128 deposited; uint24 round; uint40 deadline; }

    /// The same of a payer or signer.
    #[derive(Debug)]
    struct RequestClose { bytes32 channelId; uint24 round; uint40 deadline; }
}

/// The address of the escrow; it takes a hash of the whole code.
static ADDRESS: LazyLock<Address> = LazyLock::new(pay_channels_address);

/// An hour and thirty days.
const CLOSE_DELAY_SECS: [u64; 2] = [3_600, 30 * 86_400];

/// Both contracts: the escrow, and the only token there is.
#[derive(Clone, Debug)]
pub(crate) struct Contracts {
    pub token: TestToken,
    slots: BTreeMap<B256, Slot>,
    domain: Eip712Domain,
}

/// The reason that a row of a claim pays nothing.
enum Unpaid {
    AboveVoucher,
    NothingToClaim,
    BadSignature,
}

impl From<Unpaid> for Revert {
    fn from(unpaid: Unpaid) -> Self {
        match unpaid {
            Unpaid::AboveVoucher => encoded(&PayChannels::AmountAboveVoucher {}),
            Unpaid::NothingToClaim => encoded(&PayChannels::NothingToClaim {}),
            Unpaid::BadSignature => encoded(&PayChannels::BadSignature {}),
        }
    }
}

fn refused(reason: Refused) -> Revert {
    match reason {
        Refused::NothingReceived => encoded(&PayChannels::NothingReceived {}),
        Refused::DepositTooLarge => encoded(&PayChannels::DepositTooLarge {}),
        Refused::NothingToClaim => encoded(&PayChannels::NothingToClaim {}),
        Refused::NotOpen => encoded(&PayChannels::NotOpen {}),
        Refused::CloseAlreadyRequested => encoded(&PayChannels::CloseAlreadyRequested {}),
        Refused::TooEarly => encoded(&PayChannels::TooEarly {}),
        Refused::TransferFailed => encoded(&PayChannels::TransferFailed {}),
    }
}

pub(crate) fn escrow_address() -> Address {
    *ADDRESS
}

fn word(value: u128) -> Vec<u8> {
    U256::from(value).abi_encode()
}

impl Contracts {
    pub(crate) fn new(token: TestToken, chain_id: u64) -> Self {
        let domain = eip712_domain! {
            name: "Farthing PayChannels",
            version: "1",
            chain_id: chain_id,
            verifying_contract: escrow_address(),
        };
        Self { token, slots: BTreeMap::new(), domain }
    }

    pub(crate) fn slot(&self, id: B256) -> Slot {
        self.slots.get(&id).copied().unwrap_or_default()
    }

    pub(crate) fn slots(&self) -> &BTreeMap<B256, Slot> {
        &self.slots
    }

    pub(crate) fn id(&self, channel: &Channel) -> B256 {
        channel.eip712_signing_hash(&self.domain)
    }

    /// Carries out a call of the escrow. After a refusal the caller throws this state away.
    pub(crate) fn call(&mut self, frame: Frame, data: &[u8], logs: &mut Vec<Log>) -> Result<Bytes, Revert> {
        use PayChannelsCalls as C;
        let Ok(call) = PayChannelsCalls::abi_decode(data) else { return Err(Revert::new()) };
        let output = match call {
            C::deposit(call) => self.deposit(frame, &call, logs)?,
            C::depositWithAuthorization(call) => self.deposit_authorized(frame, &call, logs)?,
            C::claim(call) => self.claim(frame, &call.claim_, logs)?,
            C::claimMany(call) => self.claim_many(frame, &call, logs)?,
            C::close(call) => {
                if frame.caller != call.claim_.channel.payee {
                    return revert(&PayChannels::NotPayee {});
                }
                self.close(&call.claim_, frame.now_secs, logs)?
            }
            C::closeBySignature(call) => self.close_signed(frame, &call.claim_, &call.consent, logs)?,
            C::requestClose(call) => {
                if ![call.channel.payer, call.channel.signer].contains(&frame.caller) {
                    return revert(&PayChannels::NotPayerOrSigner {});
                }
                self.request_close(&call.channel, frame.now_secs, logs)?
            }
            C::requestCloseBySignature(call) => {
                self.request_close_signed(frame, &call.channel, &call.consent, logs)?
            }
            C::withdraw(call) => self.withdraw(&call.channel, frame.now_secs, logs)?,
            C::channelId(call) => self.id(&call.channel).abi_encode(),
            C::state(call) => {
                let Slot { deposited, claimed, close_at, round } = self.slot(call.id);
                [deposited, claimed, close_at.into(), round.into()].map(word).concat()
            }
            C::DOMAIN_SEPARATOR(_) => self.domain.separator().abi_encode(),
            C::CLOSE_DELAY_MIN(_) => word(CLOSE_DELAY_SECS[0].into()),
            C::CLOSE_DELAY_MAX(_) => word(CLOSE_DELAY_SECS[1].into()),
        };
        Ok(output.into())
    }

    fn deposit(
        &mut self,
        frame: Frame,
        call: &PayChannels::depositCall,
        logs: &mut Vec<Log>,
    ) -> Result<Vec<u8>, Revert> {
        if frame.caller != call.channel.payer {
            return revert(&PayChannels::NotPayer {});
        }
        self.require_openable(&call.channel)?;
        let (payer, escrow) = (call.channel.payer, escrow_address());
        let moved = self.token.transfer_from(escrow, payer, escrow, U256::from(call.amount), logs);
        if moved.is_err() {
            return revert(&PayChannels::TransferFailed {});
        }
        self.credit(&call.channel, call.amount, logs)
    }

    fn deposit_authorized(
        &mut self,
        frame: Frame,
        call: &PayChannels::depositWithAuthorizationCall,
        logs: &mut Vec<Log>,
    ) -> Result<Vec<u8>, Revert> {
        self.require_openable(&call.channel)?;
        let message = ReceiveWithAuthorization {
            from: call.channel.payer,
            to: escrow_address(),
            value: U256::from(call.amount),
            validAfter: call.validAfter,
            validBefore: call.validBefore,
            nonce: keccak256((self.id(&call.channel), call.authSalt).abi_encode()),
        };
        let by_escrow = Frame { caller: escrow_address(), ..frame };
        self.token.receive_authorized(by_escrow, &message, &call.signature, logs)?;
        self.credit(&call.channel, call.amount, logs)
    }

    fn require_openable(&self, channel: &Channel) -> Result<(), Revert> {
        let Channel { payer, payee, token, signer, .. } = channel;
        let delay_secs = channel.closeDelay.to::<u64>();
        let is_delay = (CLOSE_DELAY_SECS[0]..=CLOSE_DELAY_SECS[1]).contains(&delay_secs);
        if [payer, payee, signer].contains(&&Address::ZERO) || !is_delay {
            return revert(&PayChannels::BadTerms {});
        }
        // No code is at any other address, so that a call of it reverts without a reason.
        if *token == self.token.address { Ok(()) } else { Err(Revert::new()) }
    }

    fn credit(&mut self, channel: &Channel, amount: u128, logs: &mut Vec<Log>) -> Result<Vec<u8>, Revert> {
        let id = self.id(channel);
        let deposited = self.slots.entry(id).or_default().credit(amount).map_err(refused)?;
        let event = PayChannels::Deposited {
            payer: channel.payer,
            payee: channel.payee,
            token: channel.token,
            channelId: id,
            signer: channel.signer,
            closeDelay: channel.closeDelay,
            salt: channel.salt,
            amount,
            deposited,
        };
        logs.push(log(escrow_address(), &event));
        Ok(id.abi_encode())
    }

    /// The channel of a row that pays something.
    fn payable(&self, claim: &Claim) -> Result<B256, Unpaid> {
        if claim.amount > claim.cumulative {
            return Err(Unpaid::AboveVoucher);
        }
        let id = self.id(&claim.channel);
        if self.slot(id).due(claim.amount) == 0 {
            return Err(Unpaid::NothingToClaim);
        }
        let voucher = Voucher { channelId: id, cumulative: claim.cumulative };
        let signer = recovered(voucher.eip712_signing_hash(&self.domain), claim.r, claim.vs);
        if signer == Some(claim.channel.signer) { Ok(id) } else { Err(Unpaid::BadSignature) }
    }

    fn claim(&mut self, frame: Frame, claim: &Claim, logs: &mut Vec<Log>) -> Result<Vec<u8>, Revert> {
        if frame.caller != claim.channel.payee {
            return revert(&PayChannels::NotPayee {});
        }
        let id = self.payable(claim)?;
        let slot = self.slots.entry(id).or_default();
        let paid = slot.claim(&mut self.token.books, parties(&claim.channel), claim.amount);
        let paid = paid.map_err(refused)?;
        self.note_claimed(&claim.channel, paid, logs);
        self.note_moved(claim.channel.payee, paid, logs);
        Ok(word(paid))
    }

    fn claim_many(
        &mut self,
        frame: Frame,
        call: &PayChannels::claimManyCall,
        logs: &mut Vec<Log>,
    ) -> Result<Vec<u8>, Revert> {
        let is_own =
            |claim: &&Claim| claim.channel.token == call.token && claim.channel.payee == frame.caller;
        let mut total = 0;
        for claim in call.claims.iter().filter(is_own) {
            let Ok(id) = self.payable(claim) else { continue };
            let paid = self.slots.entry(id).or_default().settle(claim.amount);
            self.note_claimed(&claim.channel, paid, logs);
            total += paid;
        }
        if total > 0 {
            if !self.token.books.pays(escrow_address(), frame.caller, total) {
                return revert(&PayChannels::TransferFailed {});
            }
            self.note_moved(frame.caller, total, logs);
        }
        Ok(word(total))
    }

    fn close(&mut self, claim: &Claim, now_secs: u64, logs: &mut Vec<Log>) -> Result<Vec<u8>, Revert> {
        // A claim that adds nothing needs no signature.
        match self.payable(claim) {
            Ok(_) | Err(Unpaid::NothingToClaim) => {}
            Err(unpaid) => return Err(unpaid.into()),
        }
        let Channel { payer, payee, token, .. } = claim.channel;
        let id = self.id(&claim.channel);
        let mut slot = self.slot(id);
        let closed = slot.close(&mut self.token.books, parties(&claim.channel), claim.amount, now_secs);
        let closed = closed.map_err(refused)?;
        self.slots.insert(id, slot);
        if closed.paid > 0 {
            self.note_claimed(&claim.channel, closed.paid, logs);
            self.note_moved(payee, closed.paid, logs);
        }
        let refund = closed.refund;
        if closed.is_kept {
            let event = PayChannels::RefundKept { payer, payee, token, channelId: id, refund };
            logs.push(log(escrow_address(), &event));
            return Ok([closed.paid, 0].map(word).concat());
        }
        if refund > 0 {
            self.note_moved(payer, refund, logs);
        }
        let event = PayChannels::Closed { payer, payee, token, channelId: id, refund };
        logs.push(log(escrow_address(), &event));
        Ok([closed.paid, refund].map(word).concat())
    }

    fn close_signed(
        &mut self,
        frame: Frame,
        claim: &Claim,
        consent: &Consent,
        logs: &mut Vec<Log>,
    ) -> Result<Vec<u8>, Revert> {
        let id = self.id(&claim.channel);
        let slot = self.slot(id);
        if slot.claimed > claim.amount {
            return revert(&PayChannels::Outdated {});
        }
        let signed = Close {
            channelId: id,
            amount: claim.amount,
            deposited: slot.deposited,
            round: u64::from(slot.round).try_into().unwrap_or_default(),
            deadline: consent.deadline,
        };
        let digest = signed.eip712_signing_hash(&self.domain);
        if consenter(frame, digest, consent)? != claim.channel.payee {
            return revert(&PayChannels::BadConsent {});
        }
        self.close(claim, frame.now_secs, logs)
    }

    fn request_close(
        &mut self,
        channel: &Channel,
        now_secs: u64,
        logs: &mut Vec<Log>,
    ) -> Result<Vec<u8>, Revert> {
        let id = self.id(channel);
        let mut slot = self.slot(id);
        let close_at = slot.request_close(channel.closeDelay.to::<u64>(), now_secs).map_err(refused)?;
        self.slots.insert(id, slot);
        let &Channel { payer, payee, token, .. } = channel;
        let at = close_at.try_into().unwrap_or_default();
        let event = PayChannels::CloseRequested { payer, payee, token, channelId: id, closeAt: at };
        logs.push(log(escrow_address(), &event));
        Ok(word(close_at.into()))
    }

    fn request_close_signed(
        &mut self,
        frame: Frame,
        channel: &Channel,
        consent: &Consent,
        logs: &mut Vec<Log>,
    ) -> Result<Vec<u8>, Revert> {
        let id = self.id(channel);
        let round = u64::from(self.slot(id).round).try_into().unwrap_or_default();
        let signed = RequestClose { channelId: id, round, deadline: consent.deadline };
        let signer = consenter(frame, signed.eip712_signing_hash(&self.domain), consent)?;
        if ![channel.payer, channel.signer].contains(&signer) {
            return revert(&PayChannels::BadConsent {});
        }
        self.request_close(channel, frame.now_secs, logs)
    }

    fn withdraw(&mut self, channel: &Channel, now_secs: u64, logs: &mut Vec<Log>) -> Result<Vec<u8>, Revert> {
        let id = self.id(channel);
        let mut slot = self.slot(id);
        let refund = slot.withdraw(&mut self.token.books, parties(channel), now_secs).map_err(refused)?;
        self.slots.insert(id, slot);
        let &Channel { payer, payee, token, .. } = channel;
        let event = PayChannels::Withdrawn { payer, payee, token, channelId: id, refund };
        logs.push(log(escrow_address(), &event));
        if refund > 0 {
            self.note_moved(payer, refund, logs);
        }
        Ok(word(refund))
    }

    fn note_claimed(&self, channel: &Channel, amount: u128, logs: &mut Vec<Log>) {
        let id = self.id(channel);
        let &Channel { payer, payee, token, .. } = channel;
        let claimed = self.slot(id).claimed;
        let event = PayChannels::Claimed { payer, payee, token, channelId: id, amount, claimed };
        logs.push(log(escrow_address(), &event));
    }

    /// The token's own event of money that has left the escrow.
    fn note_moved(&self, to: Address, amount: u128, logs: &mut Vec<Log>) {
        let from = escrow_address();
        let event = TestUsdc::Transfer { from, to, value: U256::from(amount) };
        logs.push(log(self.token.address, &event));
    }
}

fn parties(channel: &Channel) -> Parties {
    Parties { payer: channel.payer, payee: channel.payee, escrow: escrow_address() }
}

/// The signer of a consent that has not expired.
fn consenter(frame: Frame, digest: B256, consent: &Consent) -> Result<Address, Revert> {
    if frame.now_secs > consent.deadline.to::<u64>() {
        return revert(&PayChannels::Expired {});
    }
    match recovered(digest, consent.r, consent.vs) {
        Some(signer) => Ok(signer),
        None => revert(&PayChannels::BadConsent {}),
    }
}
