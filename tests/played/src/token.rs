//! The test token: what nodes and their tests ask of it, in the order in which `TestUsdc.sol` checks.

use std::collections::{BTreeMap, BTreeSet};

use alloy::{
    primitives::{Address, B256, Bytes, Log, U256},
    sol,
    sol_types::{
        Eip712Domain, SolError, SolEvent, SolInterface as _, SolStruct as _, SolValue as _, eip712_domain,
    },
};
use farthing_contract_tests::{ReceiveWithAuthorization, TestUsdc, rules::Token};

use crate::signed::signer_of;

sol! {
    /// The functions that are played.
    #[derive(Debug)]
    interface TokenCall {
        function name() external view returns (string);
        function version() external view returns (string);
        function decimals() external view returns (uint8);
        function DOMAIN_SEPARATOR() external view returns (bytes32);
        function balanceOf(address account) external view returns (uint256);
        function authorizationState(address authorizer, bytes32 nonce) external view returns (bool);
        function transfer(address to, uint256 value) external returns (bool);
        function approve(address spender, uint256 value) external returns (bool);
        function mint(address to, uint256 amount) external returns (bool);
        function blacklist(address account) external;
        function unBlacklist(address account) external;
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

    /// The message that EIP-3009 has the payer of a plain transfer sign.
    #[derive(Debug)]
    struct TransferWithAuthorization {
        address from;
        address to;
        uint256 value;
        uint256 validAfter;
        uint256 validBefore;
        bytes32 nonce;
    }
}

use self::TokenCall::TokenCallCalls;

/// Bytes that a contract reverts with.
pub(crate) type Revert = Bytes;

/// The caller of a contract, and the time of the block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame {
    pub caller: Address,
    pub now_secs: u64,
}

/// A transfer that its payer signed.
struct Authorized {
    from: Address,
    to: Address,
    value: U256,
    valid_after: U256,
    valid_before: U256,
    nonce: B256,
}

#[derive(Clone, Debug)]
pub(crate) struct TestToken {
    pub address: Address,
    pub books: Token,
    domain: Eip712Domain,
    name: String,
    version: String,
    minter: Address,
    allowances: BTreeMap<(Address, Address), U256>,
    used: BTreeSet<(Address, B256)>,
}

/// The bytes of an error.
pub(crate) fn encoded(error: &impl SolError) -> Revert {
    error.abi_encode().into()
}

pub(crate) fn revert<T>(error: &impl SolError) -> Result<T, Revert> {
    Err(encoded(error))
}

fn require(condition: bool, otherwise: &impl SolError) -> Result<(), Revert> {
    if condition { Ok(()) } else { revert(otherwise) }
}

pub(crate) fn log(address: Address, event: &impl SolEvent) -> Log {
    Log { address, data: event.encode_log_data() }
}

impl TestToken {
    pub(crate) fn new(address: Address, name: &str, minter: Address, chain_id: u64) -> Self {
        let (name, version) = (name.to_owned(), "2".to_owned());
        let domain = eip712_domain! {
            name: name.clone(),
            version: version.clone(),
            chain_id: chain_id,
            verifying_contract: address,
        };
        let (books, allowances, used) = Default::default();
        Self { address, books, domain, name, version, minter, allowances, used }
    }

    pub(crate) fn is_used(&self, authorizer: Address, nonce: B256) -> bool {
        self.used.contains(&(authorizer, nonce))
    }

    /// Carries out a call. After a refusal the caller throws this state away.
    pub(crate) fn call(&mut self, frame: Frame, data: &[u8], logs: &mut Vec<Log>) -> Result<Bytes, Revert> {
        let Ok(call) = TokenCallCalls::abi_decode(data) else { return Err(Revert::new()) };
        let output = match call {
            TokenCallCalls::name(_) => self.name.abi_encode(),
            TokenCallCalls::version(_) => self.version.abi_encode(),
            TokenCallCalls::decimals(_) => U256::from(6_u64).abi_encode(),
            TokenCallCalls::DOMAIN_SEPARATOR(_) => self.domain.separator().abi_encode(),
            TokenCallCalls::balanceOf(call) => U256::from(self.books.balance(call.account)).abi_encode(),
            TokenCallCalls::authorizationState(call) => {
                self.is_used(call.authorizer, call.nonce).abi_encode()
            }
            TokenCallCalls::transfer(call) => {
                self.transfer(frame.caller, call.to, call.value, logs)?;
                true.abi_encode()
            }
            TokenCallCalls::approve(call) => {
                self.approve(frame.caller, call.spender, call.value, logs)?;
                true.abi_encode()
            }
            TokenCallCalls::mint(call) => {
                self.mint(frame.caller, call.to, call.amount, logs)?;
                true.abi_encode()
            }
            TokenCallCalls::blacklist(call) => {
                require(frame.caller == self.minter, &TestUsdc::NotMinter {})?;
                self.books.barred.insert(call.account);
                logs.push(log(self.address, &TestUsdc::Blacklisted { account: call.account }));
                Vec::new()
            }
            TokenCallCalls::unBlacklist(call) => {
                require(frame.caller == self.minter, &TestUsdc::NotMinter {})?;
                self.books.barred.remove(&call.account);
                logs.push(log(self.address, &TestUsdc::UnBlacklisted { account: call.account }));
                Vec::new()
            }
            TokenCallCalls::transferWithAuthorization(call) => {
                self.transfer_authorized(&call, frame.now_secs, logs)?;
                Vec::new()
            }
        };
        Ok(output.into())
    }

    fn transfer(
        &mut self,
        from: Address,
        to: Address,
        value: U256,
        logs: &mut Vec<Log>,
    ) -> Result<(), Revert> {
        self.require_free(from)?;
        self.require_free(to)?;
        require(to != Address::ZERO, &TestUsdc::ZeroAddress {})?;
        let amount = u128::try_from(value).ok().filter(|amount| self.books.can_move(from, to, *amount));
        let Some(amount) = amount else { return revert(&TestUsdc::InsufficientBalance {}) };
        self.books.moves(from, to, amount);
        logs.push(log(self.address, &TestUsdc::Transfer { from, to, value }));
        Ok(())
    }

    /// Moves what `from` allowed the caller to move.
    pub(crate) fn transfer_from(
        &mut self,
        caller: Address,
        from: Address,
        to: Address,
        value: U256,
        logs: &mut Vec<Log>,
    ) -> Result<(), Revert> {
        self.require_free(caller)?;
        let allowed = self.allowances.entry((from, caller)).or_default();
        let Some(left) = allowed.checked_sub(value) else {
            return revert(&TestUsdc::InsufficientAllowance {});
        };
        *allowed = left;
        self.transfer(from, to, value, logs)
    }

    fn approve(
        &mut self,
        owner: Address,
        spender: Address,
        value: U256,
        logs: &mut Vec<Log>,
    ) -> Result<(), Revert> {
        self.require_free(owner)?;
        self.require_free(spender)?;
        require(spender != Address::ZERO, &TestUsdc::ZeroAddress {})?;
        self.allowances.insert((owner, spender), value);
        logs.push(log(self.address, &TestUsdc::Approval { owner, spender, value }));
        Ok(())
    }

    fn mint(
        &mut self,
        minter: Address,
        to: Address,
        amount: U256,
        logs: &mut Vec<Log>,
    ) -> Result<(), Revert> {
        require(minter == self.minter, &TestUsdc::NotMinter {})?;
        self.require_free(to)?;
        require(to != Address::ZERO, &TestUsdc::ZeroAddress {})?;
        let micros = u128::try_from(amount).ok();
        let minted = micros.and_then(|micros| self.books.minted.checked_add(micros));
        let Some((micros, minted)) = micros.zip(minted) else {
            return revert(&TestUsdc::SupplyTooLarge {});
        };
        self.books.minted = minted;
        *self.books.balances.entry(to).or_default() += micros;
        logs.push(log(self.address, &TestUsdc::Mint { minter, to, amount }));
        logs.push(log(self.address, &TestUsdc::Transfer { from: Address::ZERO, to, value: amount }));
        Ok(())
    }

    /// Takes a deposit that its payer signed for the contract, `frame.caller`.
    pub(crate) fn receive_authorized(
        &mut self,
        frame: Frame,
        message: &ReceiveWithAuthorization,
        signature: &[u8],
        logs: &mut Vec<Log>,
    ) -> Result<(), Revert> {
        let &ReceiveWithAuthorization {
            from,
            to,
            value,
            validAfter: valid_after,
            validBefore: valid_before,
            nonce,
        } = message;
        require(frame.caller == to, &TestUsdc::CallerNotRecipient {})?;
        let digest = message.eip712_signing_hash(&self.domain);
        let authorized = Authorized { from, to, value, valid_after, valid_before, nonce };
        self.take(&authorized, digest, signature, frame.now_secs, logs)
    }

    fn transfer_authorized(
        &mut self,
        call: &TokenCall::transferWithAuthorizationCall,
        now_secs: u64,
        logs: &mut Vec<Log>,
    ) -> Result<(), Revert> {
        let &TokenCall::transferWithAuthorizationCall {
            from,
            to,
            value,
            validAfter: valid_after,
            validBefore: valid_before,
            nonce,
            v,
            r,
            s,
        } = call;
        let message = TransferWithAuthorization {
            from,
            to,
            value,
            validAfter: valid_after,
            validBefore: valid_before,
            nonce,
        };
        let digest = message.eip712_signing_hash(&self.domain);
        let signature = [r.as_slice(), s.as_slice(), &[v]].concat();
        let authorized = Authorized { from, to, value, valid_after, valid_before, nonce };
        self.take(&authorized, digest, &signature, now_secs, logs)
    }

    fn take(
        &mut self,
        authorized: &Authorized,
        digest: B256,
        signature: &[u8],
        now_secs: u64,
        logs: &mut Vec<Log>,
    ) -> Result<(), Revert> {
        let &Authorized { from, to, value, valid_after, valid_before, nonce } = authorized;
        let now = U256::from(now_secs);
        require(now > valid_after, &TestUsdc::AuthorizationNotYetValid {})?;
        require(now < valid_before, &TestUsdc::AuthorizationExpired {})?;
        require(!self.is_used(from, nonce), &TestUsdc::AuthorizationUsedOrCanceled {})?;
        let signer = signature.try_into().ok().and_then(|signature| signer_of(digest, signature));
        require(signer == Some(from), &TestUsdc::InvalidSignature {})?;
        self.used.insert((from, nonce));
        logs.push(log(self.address, &TestUsdc::AuthorizationUsed { authorizer: from, nonce }));
        self.transfer(from, to, value, logs)
    }

    fn require_free(&self, account: Address) -> Result<(), Revert> {
        require(!self.books.barred.contains(&account), &TestUsdc::AccountBlacklisted { account })
    }
}
