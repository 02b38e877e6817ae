//! The channel contract on the chain: whether it is there, the cost of putting it there, and its deployment.
//!
//! Anyone may deploy it, once: its address and its code are the same whoever does (docs/contracts.md).

use alloy::primitives::{Bytes, hex, keccak256};

use super::{
    ChainHandle, TxReport,
    operations::{report, require},
};
use crate::{
    contracts::{CREATE2_PROXY, from_eth, pay_channels_address, pay_channels_code, pay_channels_deployment},
    error::ChainError,
    fees,
    intent::Intent,
    reader::At,
    rpc::RpcError,
    verify::{self, ContractCode},
};

/// The code at the contract's address, beside the code that belongs there. Hashes are keccak-256, `0x…`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContractFound {
    pub code: ContractCode,
    pub hash_expected: String,
    /// `None` where no code is.
    pub hash_found: Option<String>,
}

/// The cost of a deployment at the gas price of now, beside what the wallet has; nothing where it is deployed already.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeploymentCost {
    pub gas: u64,
    /// The cost with what layer 1 charges an OP-stack chain included.
    pub cost_wei: u128,
    /// The wallet has to hold so much, because gas may become dearer until the transaction is mined.
    pub need_wei: u128,
    pub have_wei: u128,
}

impl ChainHandle {
    /// Asks the chain for the code at the contract's address.
    pub async fn contract_found(&self) -> Result<ContractFound, ChainError> {
        let found = self.0.reader.code(self.spec().contract).await.map_err(|error| self.unread(error))?;
        let hash = |code: &Bytes| hex::encode_prefixed(keccak256(code));
        Ok(ContractFound {
            code: ContractCode::of(&found),
            hash_expected: hash(pay_channels_code()),
            hash_found: (!found.is_empty()).then(|| hash(&found)),
        })
    }

    /// Computes the cost of [`ChainHandle::deploy_contract`]. Nothing is sent.
    ///
    /// # Errors
    /// See [`ChainError`]; [`ChainError::InsufficientEth`] when the wallet cannot pay,
    /// [`ChainError::DeployerMissing`] where nobody can deploy it.
    pub async fn deployment_cost(&self) -> Result<DeploymentCost, ChainError> {
        let (reader, spec, wallet) = (&self.0.reader, self.spec(), self.0.wallet);
        let unread = |error| self.unread(error);
        let is_left = self.is_left_to_deploy().await?;
        let have_wei = reader.balances(wallet, At::Latest).await.map_err(unread)?.eth_wei;
        if !is_left {
            return Ok(DeploymentCost { have_wei, ..DeploymentCost::default() });
        }
        let chain = || spec.name.clone();
        let poor = |need_wei| ChainError::InsufficientEth { chain: chain(), wallet, need_wei, have_wei };
        let data = pay_channels_deployment();
        let (gas, head, tip_wei, layer_1) = tokio::join!(
            reader.estimate(wallet, Some(CREATE2_PROXY), 0, &data),
            reader.head(),
            reader.tip_wei(),
            reader.l1_fees_wei([data.clone(), Bytes::new()]),
        );
        let gas = match gas {
            Ok(gas) => gas,
            // Many endpoints refuse to estimate for an empty wallet; then the money is the reason.
            Err(RpcError::Refused(_)) if have_wei == 0 => return Err(poor(1)),
            Err(RpcError::Refused(refusal)) if refusal.is_revert() => {
                let what = Intent::DeployContract.what();
                return Err(ChainError::Reverted { what, reason: refusal.reason() });
            }
            Err(error) => return Err(unread(error)),
        };
        let base_fee_wei = head.map_err(unread)?.base_fee_wei();
        let [layer_1_wei, _] = layer_1.map_err(unread)?;
        let (gas_price_wei, cap_wei) = (base_fee_wei, spec.gas_price_cap_wei);
        let fees = fees::bid(spec, base_fee_wei, tip_wei.map_err(unread)?);
        let fees = fees.ok_or_else(|| ChainError::GasTooDear { chain: chain(), gas_price_wei, cap_wei })?;
        let of_gas =
            |price_wei: u128, gas: u64| price_wei.saturating_mul(u128::from(gas)).saturating_add(layer_1_wei);
        let cost_wei = of_gas(base_fee_wei.saturating_add(fees.tip_wei), gas);
        let need_wei = of_gas(fees.max_wei, fees::gas_limit(gas));
        if need_wei > have_wei {
            return Err(poor(need_wei));
        }
        Ok(DeploymentCost { gas, cost_wei, need_wei, have_wei })
    }

    /// Deploys the contract through the deterministic deployer, at this wallet's cost. Where it is already nothing is
    /// sent.
    pub async fn deploy_contract(&self) -> Result<TxReport, ChainError> {
        if !self.is_left_to_deploy().await? {
            return Ok(TxReport::default());
        }
        self.operate(Intent::DeployContract).await.map(|outcome| report(&outcome))
    }

    /// Returns whether the contract is left to deploy; an error where it cannot be deployed at its address.
    async fn is_left_to_deploy(&self) -> Result<bool, ChainError> {
        let (spec, contract) = (self.spec(), self.spec().contract);
        match self.contract_found().await?.code {
            ContractCode::Right => return Ok(false),
            ContractCode::Missing => {}
            ContractCode::Other => {
                let (chain, reason) = (spec.name.clone(), verify::other_code(contract));
                return Err(ChainError::Refused { chain, reason });
            }
        }
        let other = "`chain.contract` has an address that cannot be deployed to; remove the setting";
        require(contract == pay_channels_address(), other)?;
        let deployer = from_eth(CREATE2_PROXY);
        let code = self.0.reader.code(deployer).await.map_err(|error| self.unread(error))?;
        if code.is_empty() {
            return Err(ChainError::DeployerMissing { chain: spec.name.clone(), deployer });
        }
        Ok(true)
    }
}
