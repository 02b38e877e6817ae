//! A chain with three people on it, and the sentences tests are made of.

use alloy::{
    primitives::{Address, B256, Bytes, U256, keccak256},
    rpc::types::TransactionReceipt,
    signers::{SignerSync as _, local::PrivateKeySigner},
    sol_types::{SolCall, SolError, SolStruct as _, SolValue as _},
};
use anyhow::{Result, bail};
use farthing_contract_tests::{
    Chain, MINTER,
    PayChannels::{self, Channel, Claim},
    ReceiveWithAuthorization, Reverted, TestUsdc, Voucher,
};

pub(crate) use alloy::primitives::aliases::U40;

pub(crate) const HOUR: u64 = 3_600;
pub(crate) const DAY: u64 = 24 * HOUR;
/// Later than any test's clock.
pub(crate) const NEVER: u64 = 100_000_000_000;

/// What the contract keeps per channel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct State {
    pub(crate) deposited: u128,
    pub(crate) claimed: u128,
    /// 0 when no close is pending.
    pub(crate) close_at: u64,
}

impl From<PayChannels::stateReturn> for State {
    fn from(state: PayChannels::stateReturn) -> Self {
        Self { deposited: state.deposited, claimed: state.claimed, close_at: state.closeAt.to() }
    }
}

pub(crate) struct World {
    pub(crate) chain: Chain,
    pub(crate) payer: PrivateKeySigner,
    pub(crate) payee: PrivateKeySigner,
    /// Somebody who has no part in any channel.
    pub(crate) stranger: PrivateKeySigner,
}

impl World {
    pub(crate) async fn start() -> Result<Self> {
        Ok(Self {
            chain: Chain::start().await?,
            payer: key("payer"),
            payee: key("payee"),
            stranger: key("stranger"),
        })
    }

    /// A world with one open channel.
    pub(crate) async fn with_channel(deposit: u128) -> Result<(Self, Channel)> {
        let world = Self::start().await?;
        let terms = world.terms();
        world.open(&terms, deposit).await?;
        Ok((world, terms))
    }

    /// The usual terms: the payer signs its vouchers itself, a day to close.
    pub(crate) fn terms(&self) -> Channel {
        Channel {
            payer: self.payer.address(),
            payee: self.payee.address(),
            token: self.chain.usdc,
            signer: self.payer.address(),
            closeDelay: U40::from(DAY),
            salt: B256::ZERO,
        }
    }

    /// The same terms under another salt.
    pub(crate) fn terms_number(&self, number: u64) -> Channel {
        Channel { salt: salt(number), ..self.terms() }
    }

    pub(crate) fn id(&self, terms: &Channel) -> B256 {
        terms.eip712_signing_hash(&self.chain.domain())
    }

    // ------------------------------------------------------------ on the chain

    /// A call to the channel contract that must succeed.
    pub(crate) async fn send<C: SolCall>(&self, from: Address, call: &C) -> Result<TransactionReceipt> {
        self.chain.send(from, self.chain.channels, call).await
    }

    /// A call to the token that must succeed.
    pub(crate) async fn usdc<C: SolCall>(&self, from: Address, call: &C) -> Result<TransactionReceipt> {
        self.chain.send(from, self.chain.usdc, call).await
    }

    /// What a call to the channel contract returns, without sending it.
    pub(crate) async fn view<C: SolCall>(&self, from: Address, call: &C) -> Result<C::Return> {
        Ok(self.chain.call(from, self.chain.channels, call).await??)
    }

    /// Demands that the channel contract refuses a call with this very error.
    pub(crate) async fn refuses<E: SolError>(&self, from: Address, call: &impl SolCall) -> Result<()> {
        self.refuses_at::<E>(self.chain.channels, from, call).await
    }

    /// The same for any contract.
    pub(crate) async fn refuses_at<E: SolError>(
        &self,
        contract: Address,
        from: Address,
        call: &impl SolCall,
    ) -> Result<()> {
        match self.chain.call(from, contract, call).await? {
            Err(Reverted(data)) if data.starts_with(&E::SELECTOR) => Ok(()),
            Err(reverted) => bail!("expected {}, was refused with {reverted}", E::SIGNATURE),
            Ok(_) => bail!("expected {}, was accepted", E::SIGNATURE),
        }
    }

    pub(crate) async fn mint(&self, to: Address, value: u128) -> Result<()> {
        self.usdc(MINTER, &TestUsdc::mintCall { to, amount: U256::from(value) }).await.map(drop)
    }

    /// Gives the payer the money and the contract the allowance for it.
    pub(crate) async fn prepare_deposit(&self, value: u128) -> Result<()> {
        self.mint(self.payer.address(), value).await?;
        let approve = TestUsdc::approveCall { spender: self.chain.channels, value: U256::from(value) };
        self.usdc(self.payer.address(), &approve).await.map(drop)
    }

    pub(crate) async fn open(&self, terms: &Channel, amount: u128) -> Result<TransactionReceipt> {
        self.prepare_deposit(amount).await?;
        self.send(terms.payer, &PayChannels::depositCall { channel: terms.clone(), amount }).await
    }

    pub(crate) async fn request_close(&self, terms: &Channel) -> Result<u64> {
        self.send(terms.payer, &PayChannels::requestCloseCall { channel: terms.clone() }).await?;
        Ok(self.state(terms).await?.close_at)
    }

    pub(crate) async fn claim(&self, claim: Claim) -> Result<TransactionReceipt> {
        self.send(claim.channel.payee, &PayChannels::claimCall { claim_: claim }).await
    }

    pub(crate) async fn state(&self, terms: &Channel) -> Result<State> {
        let call = PayChannels::stateCall { id: self.id(terms) };
        self.chain.read(self.chain.channels, &call).await.map(State::from)
    }

    /// How often the channel was emptied.
    pub(crate) async fn round(&self, terms: &Channel) -> Result<u32> {
        let call = PayChannels::stateCall { id: self.id(terms) };
        Ok(self.chain.read(self.chain.channels, &call).await?.round.to())
    }

    pub(crate) async fn balance(&self, account: Address) -> Result<u128> {
        Ok(self.chain.read(self.chain.usdc, &TestUsdc::balanceOfCall(account)).await?.to())
    }

    /// Payer, payee and escrow.
    pub(crate) async fn balances(&self) -> Result<(u128, u128, u128)> {
        Ok((
            self.balance(self.payer.address()).await?,
            self.balance(self.payee.address()).await?,
            self.balance(self.chain.channels).await?,
        ))
    }

    pub(crate) async fn blacklist(&self, account: Address) -> Result<()> {
        self.usdc(MINTER, &TestUsdc::blacklistCall { account }).await.map(drop)
    }

    pub(crate) async fn unblacklist(&self, account: Address) -> Result<()> {
        self.usdc(MINTER, &TestUsdc::unBlacklistCall { account }).await.map(drop)
    }

    // ------------------------------------------------------------ off the chain

    /// A claim of `amount` on a voucher for `cumulative`, signed by the payer.
    pub(crate) fn voucher(&self, terms: &Channel, cumulative: u128, amount: u128) -> Result<Claim> {
        self.voucher_by(&self.payer, terms, cumulative, amount)
    }

    pub(crate) fn voucher_by(
        &self,
        signer: &PrivateKeySigner,
        terms: &Channel,
        cumulative: u128,
        amount: u128,
    ) -> Result<Claim> {
        let voucher = Voucher { channelId: self.id(terms), cumulative };
        let signature = signer.sign_hash_sync(&voucher.eip712_signing_hash(&self.chain.domain()))?;
        Ok(with_signature(terms, cumulative, amount, &signature.as_erc2098()))
    }

    /// The payer's signed deposit, ready for anyone to relay.
    pub(crate) async fn authorize(
        &self,
        terms: &Channel,
        amount: u128,
        number: u64,
    ) -> Result<PayChannels::depositWithAuthorizationCall> {
        self.authorize_by(&self.payer, terms, amount, number, 0, NEVER).await
    }

    /// The same by any payer, valid only after one second and before another.
    pub(crate) async fn authorize_by(
        &self,
        payer: &PrivateKeySigner,
        terms: &Channel,
        amount: u128,
        number: u64,
        valid_after: u64,
        valid_before: u64,
    ) -> Result<PayChannels::depositWithAuthorizationCall> {
        let auth_salt = salt(number);
        let message = ReceiveWithAuthorization {
            from: terms.payer,
            to: self.chain.channels,
            value: U256::from(amount),
            validAfter: U256::from(valid_after),
            validBefore: U256::from(valid_before),
            nonce: self.authorization_nonce(terms, number),
        };
        let separator = self.chain.read(terms.token, &TestUsdc::DOMAIN_SEPARATORCall {}).await?;
        let signature = payer.sign_hash_sync(&digest(separator, message.eip712_hash_struct()))?;
        Ok(PayChannels::depositWithAuthorizationCall {
            channel: terms.clone(),
            amount,
            validAfter: U256::from(valid_after),
            validBefore: U256::from(valid_before),
            authSalt: auth_salt,
            signature: Bytes::from(signature.as_bytes()),
        })
    }

    /// The nonce that binds a deposit to its channel.
    pub(crate) fn authorization_nonce(&self, terms: &Channel, number: u64) -> B256 {
        keccak256((self.id(terms), salt(number)).abi_encode())
    }
}

/// The digest of EIP-712.
pub(crate) fn digest(separator: B256, struct_hash: B256) -> B256 {
    keccak256([b"\x19\x01".as_slice(), separator.as_slice(), struct_hash.as_slice()].concat())
}

/// A salt as a node draws them: 32 bytes, hardly any of them zero, which decides what they cost.
pub(crate) fn salt(number: u64) -> B256 {
    keccak256(number.to_be_bytes())
}

/// A claim with a compact signature (EIP-2098) as it is.
pub(crate) fn with_signature(terms: &Channel, cumulative: u128, amount: u128, compact: &[u8; 64]) -> Claim {
    let (r, vs) = compact.split_at(32);
    Claim { channel: terms.clone(), cumulative, amount, r: B256::from_slice(r), vs: B256::from_slice(vs) }
}

/// The same key for the same name in every run, so that gas figures repeat.
pub(crate) fn key(name: &str) -> PrivateKeySigner {
    PrivateKeySigner::from_bytes(&keccak256(name)).expect("the digest of a name is a valid key")
}
