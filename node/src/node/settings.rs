//! Options of the parts of the node, from the configuration.

use farthing_bounds::ByteBudget;
use farthing_catalog as store;
use farthing_chain::ChainSpec;
use farthing_config::Config;
use farthing_owner::{
    load,
    sponsor::SponsorRules,
    terms::Terms,
    uncharged::UnchargedLimits,
    upstream::{OwnPorts, UpstreamOptions},
};
use farthing_protocol::{
    Address,
    listing::{Accept, SCHEME_CHANNEL},
    shards::Shards,
};

use crate::{
    consumer::{
        PurchaseSettings, conduct, deposits::DepositPolicy, rest::RestLimits, shares::ForNothing, spending,
    },
    settlement::policy::Policy,
};

/// Returns the terms for the channels that this owner serves.
pub(super) fn terms(config: &Config) -> Terms {
    let settlement = &config.settlement;
    Terms {
        deposit_min: settlement.channel_min,
        close_delay_secs: config.chain.close_delay_secs,
        unsafe_max: settlement.unsafe_max,
        without_gas_max: settlement.without_gas_max,
    }
}

/// Reads the limits within which gas is paid for buyers without ETH.
pub(super) fn sponsor_rules(config: &Config) -> SponsorRules {
    let settlement = &config.settlement;
    SponsorRules {
        is_on: settlement.sponsor,
        gas_factor: settlement.sponsor_gas_factor,
        gas_per_day: settlement.sponsor_gas_per_day,
        per_hour: settlement.sponsor_per_hour,
    }
}

/// The one way to pay this owner.
pub(super) fn accept(spec: &ChainSpec, pay_to: Address, terms: Terms) -> Accept {
    Accept {
        scheme: SCHEME_CHANNEL.to_owned(),
        chain_id: spec.chain_id,
        asset: spec.token,
        pay_to,
        contract: spec.contract,
        min_deposit: terms.deposit_min,
        close_delay_secs: terms.close_delay_secs,
    }
}

/// Reads how much of the network's listings is kept.
pub(super) fn catalog_options(config: &Config, network: &str, own: Address) -> store::Options {
    store::Options {
        shards: Shards::of_node(own, config.catalog.shards),
        limits: store::Limits::for_listings(config.catalog.listings_max),
        ..store::Options::new(network, own)
    }
}

pub(super) fn policy(config: &Config) -> Policy {
    let settlement = &config.settlement;
    Policy {
        claim_min: settlement.claim_min,
        claim_gas_factor: settlement.claim_gas_factor,
        claim_age_secs: settlement.claim_age.as_secs(),
        claim_age_gas_factor: settlement.claim_age_gas_factor,
        claim_deposit_percent: settlement.claim_deposit_percent,
        gas_price_factor_max: settlement.gas_price_factor_max,
        idle_close_secs: settlement.idle_close.as_secs(),
        close_answer_secs: settlement.close_answer.as_secs(),
        close_promise_secs: settlement.close_promise.as_secs(),
    }
}

/// Reads how much goes into channels, from the section `[spending]`.
pub(super) fn deposits(config: &Config) -> DepositPolicy {
    let spending = &config.spending;
    DepositPolicy {
        deposit_min: spending.deposit_min,
        deposit_max: spending.deposit_max,
        deposit_prices: spending.deposit_prices,
        topup_prices: spending.topup_prices,
        topup_percent: spending.topup_percent,
    }
}

pub(super) fn spending_limits(config: &Config) -> spending::SpendingCaps {
    let spending = &config.spending;
    spending::SpendingCaps {
        price_max: spending.price_max,
        per_day: spending.per_day,
        per_secret_day: spending.per_secret_day,
    }
}

/// Reads what becomes of services that are flagged.
pub(super) fn flagging(config: &Config) -> conduct::ConductSettings {
    let spending = &config.spending;
    conduct::ConductSettings { rule: spending.flagged, trial_after_secs: spending.flagged_trial.as_secs() }
}

/// Reads how much may lie in channels.
pub(super) fn rest_limits(config: &Config) -> RestLimits {
    let spending = &config.spending;
    RestLimits { per_owner: spending.at_rest_per_owner, in_all: spending.at_rest_max }
}

/// Reads how long calls may take, what this node's secrets share of what owners do for nothing, as much as it does itself,
/// and how much owners may leave undecided.
pub(super) fn purchases(config: &Config) -> PurchaseSettings {
    let limits = &config.limits;
    let for_nothing =
        ForNothing { per_operation: limits.uncharged_per_minute, in_all: limits.uncharged_in_all };
    let undecided_max = config.spending.undecided_max;
    PurchaseSettings { call_deadline: limits.call_total, for_nothing, undecided_max }
}

pub(super) fn load_limits(config: &Config) -> load::LoadLimits {
    let limits = &config.limits;
    load::LoadLimits {
        calls_max: limits.calls_max,
        per_payer_max: limits.calls_per_payer_max,
        per_service_max: limits.calls_per_service_max,
        waiting_max: limits.calls_waiting_max,
        uncharged: UnchargedLimits {
            per_minute: limits.uncharged_per_minute,
            in_all: limits.uncharged_in_all,
            trial: limits.uncharged_trial,
        },
    }
}

pub(super) fn upstream_options(
    config: &Config,
    budget: &ByteBudget,
    own_ports: &OwnPorts,
) -> UpstreamOptions {
    let limits = &config.limits;
    UpstreamOptions {
        connect: limits.upstream_connect,
        first_byte: limits.upstream_first_byte,
        idle: limits.upstream_idle,
        total: limits.upstream_total,
        body_bytes_max: limits.response_bytes_max,
        budget: budget.clone(),
        own_ports: own_ports.clone(),
        ..UpstreamOptions::default()
    }
}
