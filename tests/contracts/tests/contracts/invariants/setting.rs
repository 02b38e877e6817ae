//! The channels that a run begins with, and money for their payers.

use super::*;

/// Three payers, three payees, two tokens; a third of the channels is signed by a session key.
pub(super) fn channels(world: &World, fee_token: Address) -> Vec<Modelled> {
    let session = key("a session key");
    let channel = |number: usize| {
        let payer = key(&format!("payer {}", number % 3));
        let payee = key(&format!("payee {}", number / 3 % PAYEES));
        let signer = if number % 3 == 2 { session.clone() } else { payer.clone() };
        let token = if number.is_multiple_of(2) { world.chain.usdc } else { fee_token };
        let terms = Channel {
            payer: payer.address(),
            payee: payee.address(),
            token,
            signer: signer.address(),
            closeDelay: U40::from(HOUR * (1 + number as u64)),
            salt: B256::from(U256::from(number)),
        };
        Modelled { terms, payer, payee, signer, state: State::default(), round: 0, signed: Vec::new() }
    };
    (0..CHANNELS).map(channel).collect()
}

pub(super) async fn mint(world: &World, token: Address, to: Address, value: u128) -> Result<()> {
    if token != world.chain.usdc {
        let call = HostileToken::mintCall { to, value: U256::from(value) };
        return world.chain.send(to, token, &call).await.map(drop);
    }
    world.mint(to, value).await?;
    let approve = TestUsdc::approveCall { spender: world.chain.channels, value: U256::MAX };
    world.usdc(to, &approve).await.map(drop)
}
