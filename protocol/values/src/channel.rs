//! Payment channels: configuration, vouchers, receipts (EIP-712), and the pure rules of acceptance.
//!
//! A consumer escrows USDC for one owner, then signs *vouchers*: each promises a cumulative amount, so only
//! the highest matters and order does not. The owner serves while what it has charged, has in progress and is
//! about to charge stays within the best voucher, and every voucher within the confirmed deposit. The
//! contract that holds the escrow is `protocol/contracts/PayChannels.sol`.
//!
//! Invariant O1: claimed ≤ spent ≤ best ≤ deposited.

use minicbor::{CborLen, Decode, Encode};

use crate::{
    Address, CallId, Domain, Hash, Outcome, Usdc,
    bytes::{byte_array, from_hex},
    eip712,
    refusal::RefusalCode,
};

const CHANNEL_TYPE: &str =
    "Channel(address payer,address payee,address token,address signer,uint40 closeDelay,bytes32 salt)";
const VOUCHER_TYPE: &str = "Voucher(bytes32 channelId,uint128 cumulative)";
const RECEIPT_TYPE: &str = "Receipt(bytes32 channelId,bytes16 callId,bytes32 requestHash,bytes32 responseHash,\
                            uint8 outcome,uint128 charged,uint128 spentTotal,uint64 time)";

byte_array!(
    /// The EIP-712 digest of a [`ChannelConfig`]; binds chain and contract.
    ChannelId[32]
);

impl ChannelId {
    /// Stands where a call is free and no channel exists.
    pub const NONE: Self = Self([0; 32]);
}

impl std::fmt::Display for ChannelId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("0x")?;
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl std::fmt::Debug for ChannelId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(self, f)
    }
}

/// The text is no channel id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a channel id is 0x followed by 64 hexadecimal digits")]
pub struct ParseChannelIdError;

impl std::str::FromStr for ChannelId {
    type Err = ParseChannelIdError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.strip_prefix("0x").and_then(from_hex).map(Self).ok_or(ParseChannelIdError)
    }
}

/// The fixed terms of a channel. Two channels between one pair differ in their salt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Encode, Decode, CborLen)]
#[cbor(map)]
pub struct ChannelConfig {
    #[n(0)]
    pub payer: Address,
    #[n(1)]
    pub payee: Address,
    #[n(2)]
    pub token: Address,
    /// The address whose signature makes a voucher; usually the payer.
    #[n(3)]
    pub signer: Address,
    /// Time between the payer's request to close and its withdrawal.
    #[n(4)]
    pub close_delay_secs: u64,
    #[cbor(n(5), with = "minicbor::bytes")]
    pub salt: [u8; 32],
}

impl ChannelConfig {
    pub fn id(&self, domain: &Domain) -> ChannelId {
        static TYPE_HASH: eip712::TypeHash = eip712::TypeHash::new(|| eip712::type_hash(CHANNEL_TYPE));
        let struct_hash = eip712::hash_struct(
            &TYPE_HASH,
            &[
                eip712::address(self.payer),
                eip712::address(self.payee),
                eip712::address(self.token),
                eip712::address(self.signer),
                eip712::uint(u128::from(self.close_delay_secs)),
                self.salt,
            ],
        );
        ChannelId(eip712::digest(domain.separator(), &struct_hash))
    }
}

/// The place of channels: one token in one contract on one chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Escrow {
    pub chain_id: u64,
    pub contract: Address,
    pub token: Address,
}

impl Escrow {
    /// Returns the domain that its channels' ids are of.
    pub fn domain(&self) -> Domain {
        Domain::new(self.chain_id, self.contract)
    }

    /// Tells whether the channel of this id and these terms lies here: the id binds chain and contract, the terms name the
    /// token.
    pub fn holds(&self, id: ChannelId, config: &ChannelConfig) -> bool {
        config.token == self.token && config.id(&self.domain()) == id
    }
}

/// A promise that up to `cumulative` of the channel's deposit may be claimed, ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Voucher {
    pub channel: ChannelId,
    pub cumulative: Usdc,
}

eip712::signed_words!(Voucher, VOUCHER_TYPE, "`signer`, the channel's,", |voucher| [
    *voucher.channel.as_bytes(),
    eip712::uint(voucher.cumulative.into()),
]);

/// The owner's signed word on what was served and charged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode, CborLen)]
#[cbor(map)]
pub struct Receipt {
    /// [`ChannelId::NONE`] for a free call.
    #[n(0)]
    pub channel: ChannelId,
    #[n(1)]
    pub call_id: CallId,
    #[cbor(n(2), with = "minicbor::bytes")]
    pub request_hash: Hash,
    #[cbor(n(3), with = "minicbor::bytes")]
    pub response_hash: Hash,
    /// [`crate::Outcome::code`].
    #[n(4)]
    pub outcome: u8,
    #[n(5)]
    pub charged: Usdc,
    /// Everything charged on this channel so far, this call included.
    #[n(6)]
    pub spent_total: Usdc,
    /// Seconds since the Unix epoch, on the owner's clock.
    #[n(7)]
    pub time_secs: u64,
}

eip712::signed_words!(Receipt, RECEIPT_TYPE, "`signer`, the owner,", |receipt| [
    *receipt.channel.as_bytes(),
    eip712::bytes16(receipt.call_id.as_bytes()),
    receipt.request_hash,
    receipt.response_hash,
    eip712::uint(u128::from(receipt.outcome)),
    eip712::uint(receipt.charged.into()),
    eip712::uint(receipt.spent_total.into()),
    eip712::uint(u128::from(receipt.time_secs)),
]);

impl Receipt {
    /// Returns whether the owner never serves the call again: the service answered, or something was charged. After a
    /// failure that cost nothing, the same call may be tried anew.
    pub fn is_final(&self) -> bool {
        !self.charged.is_zero()
            || Outcome::from_code(self.outcome).is_some_and(Outcome::is_the_services_answer)
    }
}

/// The owner's view of one channel, in memory; its durable part is the ledger's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PayeeState {
    /// Confirmed on chain.
    pub deposited: Usdc,
    /// Paid out on chain.
    pub claimed: Usdc,
    /// The highest verified voucher.
    pub best: Usdc,
    /// Sum of all charges.
    pub spent: Usdc,
    /// Prices of the calls in progress.
    pub reserved: Usdc,
    /// The payer asked to close; nothing new is served.
    pub closing: bool,
}

impl PayeeState {
    /// Reserves `price` for a call that brings a voucher for `cumulative`, or relies on the best one.
    ///
    /// The rule is `spent + reserved + price ≤ min(max(best, cumulative), deposited)`. It asks for headroom
    /// of the *price*, not for mere growth, and counts calls in progress, so parallel calls cannot share one
    /// promise. A late, lower voucher is harmless. A new best voucher must lie within the deposit; an old one
    /// may lie above it once the payer has withdrawn and deposited less, and then counts as far as the
    /// deposit goes, as in the contract. On refusal the state is unchanged.
    ///
    /// # Errors
    /// The [`RefusalCode`] that tells the consumer what to do.
    pub fn admit(&mut self, cumulative: Option<Usdc>, price: Usdc) -> Result<(), RefusalCode> {
        if self.closing {
            return Err(RefusalCode::ChannelClosing);
        }
        let best = cumulative.map_or(self.best, |new| self.best.max(new));
        if best > self.best && best > self.deposited {
            return Err(RefusalCode::VoucherAboveDeposit);
        }
        let needed = self
            .spent
            .checked_add(self.reserved)
            .and_then(|sum| sum.checked_add(price))
            .filter(|needed| *needed <= best)
            .ok_or(RefusalCode::InsufficientVoucher)?;
        if needed > self.deposited {
            return Err(RefusalCode::VoucherAboveDeposit);
        }
        self.best = best;
        self.reserved = self.reserved.saturating_add(price);
        Ok(())
    }

    /// Ends a call: what was reserved becomes `charge`, at most its price.
    pub fn settle(&mut self, price: Usdc, charge: Usdc) {
        assert!(charge <= price && price <= self.reserved, "a charge is within what was reserved");
        self.reserved = self.reserved.saturating_sub(price);
        self.spent = self.spent.saturating_add(charge);
        debug_assert!(self.spent <= self.best, "O1 violated: {self:?}");
    }

    /// Counts what the chain has paid out and no call here explains, with the voucher that was claimed by. Calls in
    /// progress may lose their cover by it; nothing is admitted then until they have ended.
    pub fn carry(&mut self, carried: Usdc, best: Usdc) {
        self.spent = self.spent.saturating_add(carried);
        self.best = self.best.max(best);
    }

    /// Takes back what was carried, because the chain took back what showed it. `best` is what vouchers and payouts prove
    /// without it.
    pub fn let_go(&mut self, carried: Usdc, best: Usdc) {
        self.spent = self.spent.saturating_sub(carried);
        self.best = best.max(self.spent);
    }

    /// Returns what the owner has earned and can still claim: the contract pays no further than the deposit goes.
    pub fn unclaimed(&self) -> Usdc {
        self.spent.min(self.deposited).saturating_sub(self.claimed)
    }

    /// Returns what the owner has earned and the payer has withdrawn. It can be claimed again if the payer fills the
    /// same channel.
    pub fn lost(&self) -> Usdc {
        self.spent.saturating_sub(self.deposited.max(self.claimed))
    }
}

/// The consumer's view of one channel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PayerState {
    /// Confirmed on chain.
    pub deposited: Usdc,
    /// Sum of the charges of verified receipts.
    pub acknowledged: Usdc,
    /// Prices of calls sent and not yet resolved, unknown ones included.
    pub in_flight: Usdc,
    /// The highest cumulative amount ever signed.
    pub signed: Usdc,
    /// Closed, closing or distrusted: no new voucher is signed.
    pub stopped: bool,
}

impl PayerState {
    /// Reserves `price` and answers the cumulative amount to sign: `acknowledged + in flight + price`.
    /// `None` when the deposit does not cover it or the channel is stopped; the state is then unchanged.
    pub fn reserve(&mut self, price: Usdc) -> Option<Usdc> {
        let in_flight = self.in_flight.checked_add(price)?;
        let cumulative = self.acknowledged.checked_add(in_flight)?;
        if self.stopped || cumulative > self.deposited {
            return None;
        }
        self.in_flight = in_flight;
        self.signed = self.signed.max(cumulative);
        Some(cumulative)
    }

    /// Ends a call that never started, or was not charged.
    pub fn release(&mut self, price: Usdc) {
        assert!(price <= self.in_flight, "released more than was in flight");
        self.in_flight = self.in_flight.saturating_sub(price);
    }

    /// Ends a call with its verified receipt. Concurrent calls may have been charged before their receipts
    /// arrived here, so `spent_total` may exceed what is acknowledged by at most what is in flight.
    ///
    /// # Errors
    /// [`ReceiptMismatch`] when the owner charged more than the price, or counts what it cannot have served as far
    /// as is known here. The call is acknowledged in the second case, and the difference has to be explained.
    pub fn acknowledge(
        &mut self,
        price: Usdc,
        charged: Usdc,
        spent_total: Usdc,
    ) -> Result<(), ReceiptMismatch> {
        if charged > price {
            return Err(ReceiptMismatch::ChargedAbovePrice { charged, price });
        }
        self.release(price);
        let acknowledged = self.acknowledged.saturating_add(charged);
        self.acknowledged = acknowledged;
        if !self.unexplained(spent_total).is_zero() {
            let explained = acknowledged.saturating_add(self.in_flight);
            return Err(ReceiptMismatch::UnexplainedTotal { spent_total, explained });
        }
        Ok(())
    }

    /// Counts a call that was released and turns out to have been charged. Its headroom may be in use again, so
    /// what is acknowledged and in flight may exceed the deposit for a while; nothing is reserved then.
    pub fn acknowledge_late(&mut self, charged: Usdc) {
        self.acknowledged = self.acknowledged.saturating_add(charged);
    }

    /// Returns the part of a total of the owner that neither receipts nor calls in progress explain.
    pub fn unexplained(&self, spent_total: Usdc) -> Usdc {
        spent_total.saturating_sub(self.acknowledged).saturating_sub(self.in_flight)
    }

    /// Returns the amount that can still be promised.
    pub fn available(&self) -> Usdc {
        self.deposited.saturating_sub(self.acknowledged).saturating_sub(self.in_flight)
    }
}

/// A receipt that contradicts what this node knows it bought.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReceiptMismatch {
    #[error("charged {charged} USDC for a call priced {price} USDC")]
    ChargedAbovePrice { charged: Usdc, price: Usdc },
    #[error("the owner counts {spent_total} USDC spent, receipts explain {explained} USDC")]
    UnexplainedTotal { spent_total: Usdc, explained: Usdc },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_channel_lies_on_its_chain_in_its_contract_and_of_its_token_alone() {
        let [payer, payee, contract, token, other] = [1, 2, 3, 4, 5].map(|n| Address::from_bytes([n; 20]));
        let escrow = Escrow { chain_id: 1, contract, token };
        let config = ChannelConfig { payer, payee, token, signer: payer, close_delay_secs: 1, salt: [0; 32] };
        let id = config.id(&escrow.domain());
        assert!(escrow.holds(id, &config));
        for elsewhere in [
            Escrow { chain_id: 2, ..escrow },
            Escrow { contract: other, ..escrow },
            Escrow { token: other, ..escrow },
        ] {
            assert!(!elsewhere.holds(id, &config), "{elsewhere:?}");
        }
    }
}
