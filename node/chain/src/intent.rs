//! The purpose of a transaction. An intent is kept with its transaction, so that after a restart the chain can
//! be asked whether it has come true.

use farthing_values::{
    Address, ChannelConfig, ChannelId, CloseConsent, CloseRequest, Domain, Hash, Signature, SignedDeposit,
    SignedTransfer, Usdc,
};
use minicbor::{Decode, Encode};

use crate::{
    journal::{Mined, TransactionPurpose, TxHash},
    reader::Receipt,
    token::Authorization,
};

/// One channel's part of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub struct ClaimRow {
    #[n(0)]
    pub config: ChannelConfig,
    /// The total that the voucher promises.
    #[n(1)]
    pub cumulative: Usdc,
    /// The total that the owner charged so far, at most `cumulative`; the contract pays the part not yet claimed.
    #[n(2)]
    pub amount: Usdc,
    /// The voucher's.
    #[n(3)]
    pub signature: Signature,
}

/// The part of an EIP-3009 authorization that the channel does not already determine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub(crate) struct DepositTerms {
    #[n(0)]
    pub amount: Usdc,
    #[n(1)]
    pub valid_before_secs: u64,
    #[cbor(n(2), with = "minicbor::bytes")]
    pub salt: Hash,
}

#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub(crate) enum Intent {
    /// Bring the channel's deposit to at least `target`, with at most `amount_max`: a close that the caller
    /// had not seen yet must not make it pay what was refunded.
    #[n(0)]
    Deposit {
        #[n(0)]
        config: ChannelConfig,
        #[n(1)]
        target: Usdc,
        #[n(3)]
        amount_max: Usdc,
        /// Fixed by the first transaction and kept for every later one, so that the token itself refuses to
        /// pay twice.
        #[n(2)]
        terms: Option<DepositTerms>,
        /// The round of the channel in which it was decided; `None` in journals of before.
        #[n(4)]
        round: Option<u32>,
    },
    #[n(1)]
    Claim {
        #[n(0)]
        rows: Vec<ClaimRow>,
    },
    #[n(2)]
    Close {
        #[n(0)]
        row: ClaimRow,
    },
    #[n(3)]
    RequestClose {
        #[n(0)]
        config: ChannelConfig,
    },
    #[n(4)]
    Withdraw {
        #[n(0)]
        config: ChannelConfig,
    },
    #[n(5)]
    SendUsdc {
        #[n(0)]
        to: Address,
        #[n(1)]
        amount: Usdc,
    },
    #[n(6)]
    SendEth {
        #[n(0)]
        to: Address,
        /// Big-endian.
        #[cbor(n(1), with = "minicbor::bytes")]
        wei: [u8; 16],
    },
    /// Put the contract on the chain, at the address that it has everywhere.
    #[n(7)]
    DeployContract,
    /// Bring the payee's signed close to the chain.
    #[n(8)]
    RelayClose {
        #[n(0)]
        row: ClaimRow,
        #[n(1)]
        consent: CloseConsent,
        /// The payee's, on the consent.
        #[n(2)]
        signature: Signature,
    },
    // 9 was a signed request to close, which nothing ever asked for.
    /// Take a payment that its payer authorized by EIP-3009.
    #[n(10)]
    TakePayment {
        #[n(0)]
        payment: SignedTransfer,
    },
    /// Make a deposit that its payer signed and has no gas for.
    #[n(11)]
    SponsorDeposit {
        #[n(0)]
        signed: SignedDeposit,
    },
    /// Bring the request to close that a payer signed and has no gas for.
    #[n(12)]
    SponsorRequest {
        #[n(0)]
        config: ChannelConfig,
        #[n(1)]
        request: CloseRequest,
        /// The payer's, on the request.
        #[n(2)]
        signature: Signature,
    },
}

impl Intent {
    /// The channel that a deposit is for, what it holds, and what it is to hold then.
    pub(crate) const fn deposit(&self) -> Option<(ChannelConfig, Usdc, Usdc)> {
        match self {
            Self::Deposit { config, target, amount_max, .. } => {
                Some((*config, target.saturating_sub(*amount_max), *target))
            }
            _ => None,
        }
    }

    /// For messages: "the deposit would fail …".
    pub(crate) const fn what(&self) -> &'static str {
        match self {
            Self::Deposit { .. } | Self::SponsorDeposit { .. } => "the deposit",
            Self::Claim { .. } => "the claim",
            Self::Close { .. } | Self::RelayClose { .. } => "the close",
            Self::RequestClose { .. } | Self::SponsorRequest { .. } => "the request to close",
            Self::Withdraw { .. } => "the withdrawal",
            Self::SendUsdc { .. } => "the USDC transfer",
            Self::SendEth { .. } => "the ETH transfer",
            Self::DeployContract => "the deployment",
            Self::TakePayment { .. } => "the payment",
        }
    }

    /// For the history, once it is in a block.
    pub(crate) fn mined(&self, chain_id: u64, domain: &Domain, receipt: &Receipt) -> Mined {
        let mined = |purpose| Mined {
            chain_id,
            hash: TxHash(receipt.transaction_hash.0),
            block: receipt.block(),
            purpose,
            channel: None,
            claims_on: None,
            peer: None,
            amount: Usdc::ZERO,
            wei: 0,
            fee_wei: receipt.fee_wei(),
        };
        let of_channel = |purpose, config: &ChannelConfig, peer: Address| Mined {
            channel: Some(config.id(domain)),
            peer: Some(peer),
            ..mined(purpose)
        };
        match self {
            Self::Deposit { config, amount_max, terms, .. } => Mined {
                amount: terms.map_or(*amount_max, |terms| terms.amount),
                ..of_channel(TransactionPurpose::Deposit, config, config.payee)
            },
            Self::Claim { rows } => {
                let claim = match rows.as_slice() {
                    [row] => of_channel(TransactionPurpose::Claim, &row.config, row.config.payer),
                    _ => mined(TransactionPurpose::Claim),
                };
                Mined { claims_on: rows.first().map(|row| row.id(domain)), ..claim }
            }
            Self::Close { row } => of_channel(TransactionPurpose::Close, &row.config, row.config.payer),
            Self::RelayClose { row, .. } => {
                of_channel(TransactionPurpose::Close, &row.config, row.config.payee)
            }
            Self::RequestClose { config } => {
                of_channel(TransactionPurpose::RequestClose, config, config.payee)
            }
            Self::Withdraw { config } => of_channel(TransactionPurpose::Withdrawal, config, config.payee),
            Self::SendUsdc { to, amount } => {
                Mined { peer: Some(*to), amount: *amount, ..mined(TransactionPurpose::Transfer) }
            }
            Self::SendEth { to, wei } => Mined {
                peer: Some(*to),
                wei: u128::from_be_bytes(*wei),
                ..mined(TransactionPurpose::Transfer)
            },
            Self::DeployContract => mined(TransactionPurpose::Deployment),
            Self::TakePayment { payment } => {
                Mined { peer: Some(payment.authorization.from), ..mined(TransactionPurpose::Payment) }
            }
            // Its money is the payer's.
            Self::SponsorDeposit { signed } => {
                let config = &signed.deposit.config;
                of_channel(TransactionPurpose::SponsoredDeposit, config, config.payer)
            }
            Self::SponsorRequest { config, .. } => {
                of_channel(TransactionPurpose::SponsoredRequest, config, config.payer)
            }
        }
    }

    /// Tells whether strangers ask for it, so that it leaves room for this wallet's own transactions.
    pub(crate) const fn is_for_others(&self) -> bool {
        matches!(self, Self::TakePayment { .. } | Self::SponsorDeposit { .. } | Self::SponsorRequest { .. })
    }

    /// Doing it again changes nothing, because the chain's state shows that it was done.
    pub(crate) const fn is_idempotent(&self) -> bool {
        !matches!(self, Self::SendUsdc { .. } | Self::SendEth { .. })
    }
}

impl DepositTerms {
    pub(crate) fn authorization(&self, payer: Address, channel: ChannelId) -> Authorization {
        let Self { amount, valid_before_secs, salt } = *self;
        Authorization { payer, channel, amount, valid_before_secs, salt }
    }
}

impl ClaimRow {
    pub(crate) fn id(&self, domain: &Domain) -> ChannelId {
        self.config.id(domain)
    }
}
