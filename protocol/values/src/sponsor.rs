//! Transactions that a payer signs for and an owner pays the gas of, so that a wallet without ETH can buy, and leave.
//!
//! A deposit travels as the payer's authorization for the token, whose nonce binds the money to one channel; a request to
//! close travels as the payer's word for the contract. Both are signed in full: whoever brings them can only do what the
//! payer wants, or nothing. A withdrawal needs no signature, because its money goes to the payer.

use minicbor::{CborLen, Decode, Encode};

use crate::{
    Address, ChannelConfig, CloseRequest, Domain, Hash, SecretKey, Signature, TokenDomain, Usdc, eip712,
    keccak256, signature::SignatureError,
};

const RECEIVE_TYPE: &str = "ReceiveWithAuthorization(address from,address to,uint256 value,uint256 validAfter,\
                            uint256 validBefore,bytes32 nonce)";

/// Permission to move USDC of a channel's payer into the channel, once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode, CborLen)]
#[cbor(map)]
pub struct DepositAuthorization {
    #[n(0)]
    pub config: ChannelConfig,
    #[n(1)]
    pub amount: Usdc,
    /// The second, on the chain's clock, before which it counts.
    #[n(2)]
    pub valid_before_secs: u64,
    /// Tells apart the deposits into one channel; the nonce is made of it and of the channel.
    #[cbor(n(3), with = "minicbor::bytes")]
    pub salt: Hash,
}

impl DepositAuthorization {
    /// Computes the number by which the token knows it, and which it takes once: `keccak256(abi.encode(channelId, authSalt))`.
    #[must_use]
    pub fn nonce(&self, domain: &Domain) -> Hash {
        keccak256(&[self.config.id(domain).as_bytes(), &self.salt])
    }

    /// Computes the hash that the payer signs for `token`, whose USDC goes to the channels' `contract`.
    #[must_use]
    pub fn digest(&self, token: &TokenDomain, contract: Address) -> Hash {
        let words = [
            eip712::address(self.config.payer),
            eip712::address(contract),
            eip712::uint(self.amount.into()),
            eip712::uint(0),
            eip712::uint(self.valid_before_secs.into()),
            self.nonce(&Domain::new(token.chain_id, contract)),
        ];
        eip712::digest(&token.separator(), &eip712::hash_struct(&eip712::type_hash(RECEIVE_TYPE), &words))
    }

    /// Signs it with the payer's key.
    #[must_use]
    pub fn sign(self, token: &TokenDomain, contract: Address, key: &SecretKey) -> SignedDeposit {
        SignedDeposit { deposit: self, signature: key.sign(&self.digest(token, contract)) }
    }
}

/// An authorization to deposit, and what is said to be the payer's signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode, CborLen)]
#[cbor(map)]
pub struct SignedDeposit {
    #[n(0)]
    pub deposit: DepositAuthorization,
    #[n(1)]
    pub signature: Signature,
}

impl SignedDeposit {
    /// Checks that the payer's own key signed exactly this.
    ///
    /// # Errors
    /// [`SignatureError`] otherwise.
    pub fn verify(&self, token: &TokenDomain, contract: Address) -> Result<(), SignatureError> {
        let signer = self.signature.signer(&self.deposit.digest(token, contract))?;
        let expected = self.deposit.config.payer;
        if signer == expected { Ok(()) } else { Err(SignatureError::WrongSigner { signer, expected }) }
    }
}

/// A transaction that a payer asks the owner of its channel to pay the gas of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode, CborLen)]
pub enum SponsorAsked {
    #[n(0)]
    Deposit(#[n(0)] SignedDeposit),
    /// The payer's request to close the channel with these terms, and its signature.
    #[n(1)]
    RequestClose(#[n(0)] ChannelConfig, #[n(1)] CloseRequest, #[n(2)] Signature),
    /// The rest of the channel with these terms goes back to its payer: its delay is over.
    #[n(2)]
    Withdraw(#[n(0)] ChannelConfig),
}

impl SponsorAsked {
    /// The terms of the channel that it is about.
    #[must_use]
    pub const fn config(&self) -> &ChannelConfig {
        match self {
            Self::Deposit(signed) => &signed.deposit.config,
            Self::RequestClose(config, ..) | Self::Withdraw(config) => config,
        }
    }
}

/// The owner's answer. Only the chain shows that it is true.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, CborLen)]
pub enum SponsorReply {
    /// It is on its way to a block, or in one.
    #[n(0)]
    Sent {
        #[cbor(n(0), with = "minicbor::bytes")]
        transaction: Hash,
    },
    /// The chain shows already what was asked for.
    #[n(1)]
    Done,
    #[n(2)]
    Refused {
        #[n(0)]
        why: NotSponsored,
        /// One line for a person.
        #[n(1)]
        detail: String,
        /// The time after which trying again may help.
        #[n(2)]
        retry_after_secs: Option<u64>,
    },
}

impl SponsorReply {
    pub fn refused(why: NotSponsored, detail: impl Into<String>, retry_after_secs: Option<u64>) -> Self {
        Self::Refused { why, detail: detail.into(), retry_after_secs }
    }
}

/// The reason that an owner does not pay the gas. The numbers are part of the protocol and never change meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Encode, Decode, CborLen)]
#[cbor(index_only)]
pub enum NotSponsored {
    /// The owner pays gas for nobody.
    #[n(0)]
    Off,
    /// The channel is not one that the asking payer has, or may open, with this owner.
    #[n(1)]
    OtherChannel,
    /// The sum is too small for the gas.
    #[n(2)]
    TooSmall,
    /// The chain would refuse the transaction.
    #[n(3)]
    WouldFail,
    /// The owner has spent what it spends on gas for others in a day.
    #[n(4)]
    DayIsSpent,
    /// Too many of the same origin, or at once.
    #[n(5)]
    TooMany,
    /// The owner cannot reach the chain, or its wallet cannot pay the gas.
    #[n(6)]
    Unable,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(n: u8) -> SecretKey {
        SecretKey::from_bytes(&[n; 32]).unwrap()
    }

    fn token() -> TokenDomain {
        let token = Address::from_bytes([9; 20]);
        TokenDomain { name: "USD Coin".to_owned(), version: "2".to_owned(), chain_id: 8453, token }
    }

    const CONTRACT: Address = Address::from_bytes([8; 20]);

    fn deposit() -> DepositAuthorization {
        let payer = key(1).address();
        let config = ChannelConfig {
            payer,
            payee: Address::from_bytes([2; 20]),
            token: token().token,
            signer: payer,
            close_delay_secs: 86_400,
            salt: [0; 32],
        };
        let (amount, valid_before_secs) = (Usdc::from_micros(400_000), 20);
        DepositAuthorization { config, amount, valid_before_secs, salt: [7; 32] }
    }

    #[test]
    fn a_signed_deposit_holds_for_its_channel_its_contract_and_every_word_of_it() {
        let signed = deposit().sign(&token(), CONTRACT, &key(1));
        assert!(signed.verify(&token(), CONTRACT).is_ok());
        let changed = |change: fn(&mut DepositAuthorization)| {
            let mut other = signed;
            change(&mut other.deposit);
            other.verify(&token(), CONTRACT)
        };
        for refused in [
            changed(|other| other.config.payee = Address::from_bytes([3; 20])),
            changed(|other| other.config.close_delay_secs += 1),
            changed(|other| other.amount = Usdc::from_micros(400_001)),
            changed(|other| other.valid_before_secs = 21),
            changed(|other| other.salt = [6; 32]),
            signed.verify(&token(), Address::from_bytes([4; 20])),
            signed.verify(&TokenDomain { chain_id: 1, ..token() }, CONTRACT),
            deposit().sign(&token(), CONTRACT, &key(2)).verify(&token(), CONTRACT),
        ] {
            assert!(refused.is_err(), "{refused:?}");
        }
    }
}
