//! The way between the contracts' types (`farthing_contracts`) and the protocol's.

use alloy::{
    primitives::{Address as EthAddress, B256, Bytes, U256, address, b256, keccak256},
    sol_types::{SolCall as _, SolInterface as _},
};
pub(crate) use farthing_contracts::{
    Eip3009, GasPriceOracle, Multicall3,
    PayChannels::{self, Channel, Claim, Consent},
    ReceiveWithAuthorization, TestUsdc,
};
use farthing_values::{
    Address, ChannelConfig, CloseRequest, DepositAuthorization, Signature, SignedDeposit, SignedTransfer,
    sponsor::SponsorAsked,
};

/// The address of the oracle, on every OP-stack chain; nothing is there on others.
pub(crate) const GAS_PRICE_ORACLE: EthAddress = address!("420000000000000000000000000000000000000F");

/// The address of Multicall3, on every usual chain.
pub(crate) const MULTICALL3: EthAddress = address!("cA11bde05977b3631167028862bE2a173976CA11");
/// Of its code; whatever else is there is not asked.
pub(crate) const MULTICALL3_CODE_HASH: B256 =
    b256!("d5c15df687b16f2ff992fc8d767b4216323184a2bbc6ee2f9c398c318e770891");

/// Deploys any init code at an address that salt and code alone decide (Arachnid's deterministic
/// deployment proxy, present on every usual chain and on anvil).
pub(crate) const CREATE2_PROXY: EthAddress = address!("4e59b44847b379578588920cA78FbF26c0B4956C");

/// Returns the address of `PayChannels` on every chain: decided by its init code, the salt zero and the CREATE2 proxy.
pub fn pay_channels_address() -> Address {
    from_eth(CREATE2_PROXY.create2(B256::ZERO, keccak256(&PayChannels::BYTECODE)))
}

/// The call data that has the proxy deploy `PayChannels`: the salt, then the init code.
pub(crate) fn pay_channels_deployment() -> Bytes {
    [B256::ZERO.as_slice(), &PayChannels::BYTECODE].concat().into()
}

/// The code a chain must hold at the contract's address.
pub(crate) fn pay_channels_code() -> &'static Bytes {
    &PayChannels::DEPLOYED_BYTECODE
}

pub(crate) fn to_eth(address: Address) -> EthAddress {
    EthAddress::from(*address.as_bytes())
}

pub(crate) fn from_eth(address: EthAddress) -> Address {
    Address::from_bytes(address.into_array())
}

pub(crate) fn to_channel(config: &ChannelConfig) -> Channel {
    Channel {
        payer: to_eth(config.payer),
        payee: to_eth(config.payee),
        token: to_eth(config.token),
        signer: to_eth(config.signer),
        // The contract refuses more than 30 days, which fits; a larger one becomes a value it refuses.
        closeDelay: config.close_delay_secs.try_into().unwrap_or_default(),
        salt: config.salt.into(),
    }
}

/// `r` and `vs` of EIP-2098: the recovery bit moves into the highest bit of s.
pub(crate) fn compact(signature: &Signature) -> (B256, B256) {
    let bytes = signature.as_bytes();
    let (mut r, mut vs) = ([0; 32], [0; 32]);
    r.copy_from_slice(&bytes[..32]);
    vs.copy_from_slice(&bytes[32..64]);
    if bytes[64] == 28 {
        vs[0] |= 0x80;
    }
    (r.into(), vs.into())
}

/// The reason that no payment of an address with code is taken. The token asks this code and not the key, and the code can tell a
/// trial from a block: it could have each transaction fail, at the cost of who sends it.
pub(crate) const PAYER_HAS_CODE: &str =
    "the paying address has code (a smart wallet or EIP-7702), which may refuse later what it allows now";

/// The transaction that takes a payment.
pub(crate) fn transfer_call(payment: &SignedTransfer) -> Eip3009::transferWithAuthorizationCall {
    let SignedTransfer { authorization, signature } = payment;
    let bytes = signature.as_bytes();
    let word = |from: usize| B256::from_slice(&bytes[from..from + 32]);
    Eip3009::transferWithAuthorizationCall {
        from: to_eth(authorization.from),
        to: to_eth(authorization.to),
        value: U256::from(authorization.value.micros()),
        validAfter: U256::from(authorization.valid_after_secs),
        validBefore: U256::from(authorization.valid_before_secs),
        nonce: authorization.nonce.into(),
        v: bytes[64],
        r: word(0),
        s: word(32),
    }
}

/// A signed word with its deadline; a deadline beyond `uint40` becomes one that has passed.
pub(crate) fn to_consent(deadline_secs: u64, signature: &Signature) -> Consent {
    let (r, vs) = compact(signature);
    Consent { deadline: deadline_secs.try_into().unwrap_or_default(), r, vs }
}

/// The transaction that makes a deposit which its payer has signed.
pub(crate) fn deposit_call(signed: &SignedDeposit) -> PayChannels::depositWithAuthorizationCall {
    let DepositAuthorization { config, amount, valid_before_secs, salt } = signed.deposit;
    PayChannels::depositWithAuthorizationCall {
        channel: to_channel(&config),
        amount: amount.into(),
        validAfter: U256::ZERO,
        validBefore: U256::from(valid_before_secs),
        authSalt: salt.into(),
        signature: signed.signature.as_bytes().to_vec().into(),
    }
}

/// The transaction that brings a payer's signed request to close.
pub(crate) fn request_close_call(
    config: &ChannelConfig,
    request: &CloseRequest,
    signature: &Signature,
) -> PayChannels::requestCloseBySignatureCall {
    let consent = to_consent(request.deadline_secs, signature);
    PayChannels::requestCloseBySignatureCall { channel: to_channel(config), consent }
}

/// The transaction that a payer asks this wallet to pay the gas of.
pub(crate) fn sponsored_call(asked: &SponsorAsked) -> Bytes {
    match asked {
        SponsorAsked::Deposit(signed) => deposit_call(signed).abi_encode(),
        SponsorAsked::RequestClose(config, request, signature) => {
            request_close_call(config, request, signature).abi_encode()
        }
        SponsorAsked::Withdraw(config) => {
            PayChannels::withdrawCall { channel: to_channel(config) }.abi_encode()
        }
    }
    .into()
}

/// Returns the data of a transaction to the contract that brings what a payer has signed: `0x` and hexadecimal digits.
pub fn call_data(asked: &SponsorAsked) -> String {
    sponsored_call(asked).to_string()
}

/// The `uint256` of a token as `u128`; more than that is no amount of USDC.
pub(crate) fn to_u128(value: U256) -> u128 {
    value.try_into().unwrap_or(u128::MAX)
}

/// A revert in words: the name of the contract's or token's own error, a `require` text, or the bytes.
pub(crate) fn revert_reason(data: &[u8]) -> String {
    if let Ok(error) = PayChannels::PayChannelsErrors::abi_decode(data) {
        return pay_channels_reason(&error).to_owned();
    }
    if let Ok(error) = TestUsdc::TestUsdcErrors::abi_decode(data) {
        return format!("the token refused: {}", name_of(&format!("{error:?}")));
    }
    // `Error(string)` and `Panic(uint256)`, which is how Circle's USDC speaks.
    if let Some(text) = alloy::sol_types::decode_revert_reason(data) {
        return text.chars().filter(|c| !c.is_control()).take(200).collect();
    }
    match data.len() {
        0 => "no reason given".to_owned(),
        _ => format!("0x{}", alloy::primitives::hex::encode(&data[..data.len().min(36)])),
    }
}

/// `AccountBlacklisted(AccountBlacklisted { account: 0x… })` → `AccountBlacklisted`.
fn name_of(debug: &str) -> &str {
    debug.split(['(', ' ']).next().unwrap_or(debug)
}

fn pay_channels_reason(error: &PayChannels::PayChannelsErrors) -> &'static str {
    use PayChannels::PayChannelsErrors as E;
    match error {
        E::NotPayer(_) => "only the channel's payer may do this (NotPayer)",
        E::NotPayee(_) => "only the channel's payee may do this (NotPayee)",
        E::NotPayerOrSigner(_) => "only the channel's payer or signer may do this (NotPayerOrSigner)",
        E::Expired(_) => "the signed message is past its deadline (Expired)",
        E::Outdated(_) => "more was claimed than the signed close says (Outdated)",
        E::BadConsent(_) => {
            "the signature does not allow this for the channel as it is now: the channel was topped up or emptied \
             since, or somebody else signed (BadConsent)"
        }
        E::BadTerms(_) => "the contract does not accept these channel terms (BadTerms)",
        E::NothingReceived(_) => "the token transferred nothing (NothingReceived)",
        E::DepositTooLarge(_) => "the deposit is too large for the contract (DepositTooLarge)",
        E::AmountAboveVoucher(_) => "the claim is above its voucher (AmountAboveVoucher)",
        E::NothingToClaim(_) => "there is nothing left to claim (NothingToClaim)",
        E::BadSignature(_) => "the voucher is not signed by the channel's signer (BadSignature)",
        E::NotOpen(_) => "the channel is not open (NotOpen)",
        E::CloseAlreadyRequested(_) => "a close is already pending (CloseAlreadyRequested)",
        E::TooEarly(_) => "the channel's delay is not over yet (TooEarly)",
        E::TransferFailed(_) => "the token refused the transfer (TransferFailed)",
        E::Reentered(_) => "the token called back into the contract (Reentered)",
    }
}
