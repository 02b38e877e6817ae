//! The key under which the nodes of a network are listed. Pure.

use farthing_protocol::wire::NetworkName;
use libp2p::kad::RecordKey;
use sha2::{Digest, Sha256};

/// The multihash of SHA-256, and its length: providers are listed under multihashes, and what is none is refused.
const MULTIHASH_OF_SHA256: [u8; 2] = [0x12, 32];

/// Returns `sha2-256("farthing/" network "/" chain)` as a multihash. A network that nobody named is called as its chain.
pub(super) fn of(network: &NetworkName) -> RecordKey {
    let (name, chain_id) = network.parts();
    let chain = chain_id.map_or_else(String::new, |chain_id| chain_id.to_string());
    let digest = Sha256::digest(format!("farthing/{}/{chain}", name.unwrap_or(&chain)));
    RecordKey::from([&MULTIHASH_OF_SHA256[..], &digest[..]].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_is_the_multihash_of_what_anybody_can_compute_who_knows_network_and_chain() {
        // By `printf farthing/8453/8453 | sha256sum` and the like.
        for (chosen, chain_id, digest) in [
            (None, 8453, "d6d24faa885644ef4a61e66cce6b3103be2ef9c20b5e77e26445994029356c65"),
            (Some("lab"), 31_337, "0332eae9f856cfbedb5ee0dea0f49998d132ade2bbf29931ef39cdf74cd2b22f"),
        ] {
            let key = of(&NetworkName::on_chain(chosen, chain_id).unwrap()).to_vec();
            let written: String = key.iter().map(|byte| format!("{byte:02x}")).collect();
            assert_eq!(written, format!("1220{digest}"));
        }
    }
}
