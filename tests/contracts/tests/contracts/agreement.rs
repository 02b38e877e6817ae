//! Node and contract agree on vouchers: what the one accepts the other pays, and nothing else.
//!
//! Vouchers are signed, then damaged in every way that bytes, amounts and signers can be, or signed for more than the
//! channel holds. For each the node's own rules, signature and [`PayeeState::admit`], and the contract's simulated claim
//! must come to the same answer.

use alloy::{
    primitives::{Signature, U256},
    signers::{SignerSync as _, local::PrivateKeySigner},
    sol_types::SolStruct as _,
};
use anyhow::Result;
use farthing_contract_tests::{
    CHAIN_ID,
    PayChannels::{self, Channel},
    Voucher,
};
use farthing_values::{Address, ChannelId, Domain, Usdc, channel::PayeeState};

use crate::{
    claim::ORDER,
    random::{Random, seed},
    world::{World, with_signature},
};

const VOUCHERS: usize = 3_000;
const DEPOSIT: u64 = 1_000_000;

/// What a stranger sends: an amount on a channel, and 65 bytes that may be a signature.
struct Offer {
    cumulative: u64,
    signature: [u8; 65],
}

impl Offer {
    fn random(world: &World, terms: &Channel, random: &mut Random) -> Result<Self> {
        let damage = random.u64_below(14);
        let signed =
            if damage == 10 { DEPOSIT + random.u64_below(3) } else { 1 + random.u64_below(DEPOSIT - 1) };
        let channel = if damage == 0 { world.terms_number(9) } else { terms.clone() };
        let signer: &PrivateKeySigner = if damage == 1 { &world.stranger } else { &world.payer };
        let voucher = Voucher { channelId: world.id(&channel), cumulative: u128::from(signed) };
        let good = signer.sign_hash_sync(&voucher.eip712_signing_hash(&world.chain.domain()))?;
        let mut offer = Self { cumulative: signed, signature: good.as_bytes() };
        match damage {
            2 => offer.cumulative += 1,
            3 => offer.cumulative -= 1,
            4..6 => {
                let bit = random.below(512);
                offer.signature[bit / 8] ^= 1 << (bit % 8);
            }
            6 => offer.signature[64] = 27 + 28 - offer.signature[64],
            7 => offer.signature[64] = u8::try_from(random.u64_below(256))?,
            8 => offer.signature = Signature::new(good.r(), ORDER - good.s(), !good.v()).as_bytes(),
            9 => {
                let odd = [U256::ZERO, U256::from(1), ORDER, ORDER >> 1, U256::MAX][random.below(5)];
                let half = 32 * random.below(2);
                offer.signature[half..half + 32].copy_from_slice(&odd.to_be_bytes::<32>());
            }
            _ => {}
        }
        Ok(offer)
    }

    fn node_accepts(&self, world: &World, terms: &Channel) -> bool {
        let address = |a: alloy::primitives::Address| Address::from_bytes(a.into_array());
        let voucher = farthing_values::Voucher {
            channel: ChannelId::from_bytes(world.id(terms).0),
            cumulative: Usdc::from_micros(self.cumulative),
        };
        let domain = Domain::new(CHAIN_ID, address(world.chain.channels));
        let signature = farthing_values::Signature::from_bytes(self.signature);
        let Ok(voucher) = voucher.verify(&domain, signature, address(terms.signer)) else { return false };
        // A call that takes all that is promised.
        let deposited = Usdc::from_micros(DEPOSIT);
        PayeeState { deposited, ..PayeeState::default() }
            .admit(Some(voucher.cumulative), voucher.cumulative)
            .is_ok()
    }

    /// The claim as a node would send it, or nothing when these bytes have no compact form.
    fn claim(&self, terms: &Channel) -> Option<PayChannels::claimCall> {
        let mut compact = [0; 64];
        compact.copy_from_slice(&self.signature[..64]);
        let parity = self.signature[64].checked_sub(27).filter(|parity| *parity <= 1)?;
        if compact[32] & 0x80 != 0 {
            return None;
        }
        compact[32] |= parity << 7;
        let cumulative = u128::from(self.cumulative);
        Some(PayChannels::claimCall { claim_: with_signature(terms, cumulative, cumulative, &compact) })
    }
}

#[tokio::test]
async fn the_node_accepts_a_voucher_exactly_when_the_contract_pays_it() -> Result<()> {
    let (world, terms) = World::with_channel(DEPOSIT.into()).await?;
    let mut random = Random::new(seed());
    let (mut accepted, mut refused, mut without_a_claim) = (0, 0, 0);
    for _ in 0..VOUCHERS / 100 {
        let offers: Vec<Offer> =
            (0..100).map(|_| Offer::random(&world, &terms, &mut random)).collect::<Result<_>>()?;
        let (claims, claimless): (Vec<_>, Vec<_>) =
            offers.iter().map(|offer| (offer, offer.claim(&terms))).partition(|(_, claim)| claim.is_some());
        for (offer, _) in &claimless {
            assert!(!offer.node_accepts(&world, &terms), "accepted without a claim: {:?}", offer.signature);
        }
        without_a_claim += claimless.len();
        let calls = claims.iter().filter_map(|(_, claim)| claim.clone());
        let answers = world.chain.call_all(terms.payee, world.chain.channels, calls).await?;
        for ((offer, _), answer) in claims.iter().zip(answers) {
            let node = offer.node_accepts(&world, &terms);
            // Of a voucher above the deposit the contract pays what is there, and the node takes none.
            let is_paid = answer.is_ok_and(|paid| paid == u128::from(offer.cumulative));
            assert_eq!(node, is_paid, "{} with {:?}", offer.cumulative, offer.signature);
            *(if node { &mut accepted } else { &mut refused }) += 1;
        }
    }
    println!("{VOUCHERS} vouchers: {accepted} accepted and paid, {refused} refused by both,");
    println!("{without_a_claim} refused by the node because no claim could carry them");
    assert!(accepted > VOUCHERS / 10 && refused > VOUCHERS / 4 && without_a_claim > VOUCHERS / 20);
    Ok(())
}
