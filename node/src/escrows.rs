//! The places of channels: the one that the settings name, and those that this node knows of besides.
//!
//! Chain and contract cannot be read from a channel's id; they are known where a chain and a contract that this node knows of
//! make the same id. So those that the settings name are noted in the ledger at each start, where they are found after the
//! settings were changed.

use std::collections::BTreeSet;

use farthing_chain::{pay_channels_address, preset, preset_names};
use farthing_ledger::{Ledger, LedgerError, Namespace};
use farthing_protocol::{Address, ChannelConfig, ChannelId, Domain, Escrow, wire};

/// A document with each chain and contract that the settings have named.
const USED_KEY: &[u8] = b"escrows-used";

/// Chain and contract; the token is in a channel's terms.
type ChainAndContract = (u64, Address);

/// The place of channels that the settings name, and all that a channel of the ledger may be of.
#[derive(Clone, Debug)]
pub struct Escrows {
    pub configured: Escrow,
    known: BTreeSet<ChainAndContract>,
}

impl Escrows {
    /// Knows of `configured` alone, and of its contract and the usual one on each of `chains` and of the presets.
    pub fn new(configured: Escrow, chains: &BTreeSet<u64>) -> Self {
        let presets = preset_names().filter_map(preset).map(|spec| spec.chain_id);
        let mut all = chains.clone();
        all.extend(presets.chain([configured.chain_id]));
        let contracts = [configured.contract, pay_channels_address()];
        let known = all.into_iter().flat_map(|chain_id| contracts.map(|contract| (chain_id, contract)));
        Self { configured, known: known.collect() }
    }

    /// Knows of those in the ledger as well, and notes the present one there. One that cannot be noted is told in the log.
    pub async fn note(
        ledger: &Ledger,
        configured: Escrow,
        chains: &BTreeSet<u64>,
    ) -> Result<Self, LedgerError> {
        let mut used = used(ledger)?;
        if used.insert((configured.chain_id, configured.contract)) {
            let noted = ledger.put(Namespace::Settings, USED_KEY, wire::encode(&used)).await;
            if let Err(error) = noted {
                tracing::warn!(%error, "the contract in use is not noted, and not known after a change of the settings");
            }
        }
        let mut escrows = Self::new(configured, chains);
        escrows.known.extend(used);
        Ok(escrows)
    }

    /// Finds the place of a channel; `None` where nothing that this node knows of makes its id.
    pub fn find(&self, id: ChannelId, config: &ChannelConfig) -> Option<Escrow> {
        let known = self.known.iter();
        let mut escrows = known.map(|(chain_id, contract)| Escrow {
            chain_id: *chain_id,
            contract: *contract,
            token: config.token,
        });
        escrows.find(|escrow| escrow.holds(id, config))
    }

    /// The settings that have to be as they were for a channel of that place and token, with what they were.
    pub fn back_to(&self, place: Option<Escrow>, token: Address) -> String {
        let configured = self.configured;
        let mut settings = Vec::new();
        match place {
            None => settings.push(
                "`chain.preset`, `chain.chain_id` and `chain.contract` back to what they were".to_owned(),
            ),
            Some(former) => {
                if former.chain_id != configured.chain_id {
                    let is_it =
                        |name: &&str| preset(name).is_some_and(|spec| spec.chain_id == former.chain_id);
                    settings.push(match preset_names().find(is_it) {
                        Some(name) => format!("`chain.preset` back to {name}"),
                        None => {
                            let id = former.chain_id;
                            format!(
                                "`chain.preset`, `chain.chain_id` and `chain.rpc_urls` back to those of chain {id}"
                            )
                        }
                    });
                }
                if former.contract != configured.contract {
                    settings.push(format!("`chain.contract` back to {}", former.contract));
                }
            }
        }
        if token != configured.token {
            settings.push(format!("`chain.token` back to {token}"));
        }
        settings.join(", ")
    }
}

/// The domains of all chains and contracts that were noted in a ledger.
pub fn domains(ledger: &Ledger) -> Result<Vec<Domain>, LedgerError> {
    Ok(used(ledger)?.into_iter().map(|(chain_id, contract)| Domain::new(chain_id, contract)).collect())
}

fn used(ledger: &Ledger) -> Result<BTreeSet<ChainAndContract>, LedgerError> {
    let stored = ledger.get(Namespace::Settings, USED_KEY)?;
    Ok(stored.map_or_else(BTreeSet::new, |stored| {
        wire::decode(&stored).unwrap_or_else(|_| lines_of_before(&String::from_utf8_lossy(&stored)))
    }))
}

/// Reads the document as programs of before wrote it, a line for each. A line that no program wrote is none.
fn lines_of_before(text: &str) -> BTreeSet<ChainAndContract> {
    let of_line = |line: &str| {
        let (chain_id, contract) = line.split_once(' ')?;
        Some((chain_id.parse::<u64>().ok()?, contract.parse::<Address>().ok()?))
    };
    text.lines().filter_map(of_line).collect()
}

#[cfg(test)]
mod tests {
    use redb::backends::InMemoryBackend;

    use super::*;

    #[tokio::test]
    async fn a_contract_that_the_settings_named_once_is_known_after_they_name_another() {
        let [payer, payee, token, by_hand, later] = [1, 2, 3, 4, 5].map(|n| Address::from_bytes([n; 20]));
        let config = ChannelConfig { payer, payee, token, signer: payer, close_delay_secs: 1, salt: [0; 32] };
        let ledger = Ledger::with_backend(InMemoryBackend::new()).unwrap();
        let chains = BTreeSet::new();
        let was = Escrow { chain_id: 777, contract: by_hand, token };
        let id = config.id(&was.domain());
        Escrows::note(&ledger, was, &chains).await.unwrap();
        for now in [Escrow { contract: later, ..was }, Escrow { chain_id: 1, contract: later, token }] {
            assert_eq!(Escrows::new(now, &chains).find(id, &config), None, "nothing else tells of it");
            let escrows = Escrows::note(&ledger, now, &chains).await.unwrap();
            assert_eq!(escrows.find(id, &config), Some(was), "{now:?}");
            let back = escrows.back_to(Some(was), token);
            assert!(back.ends_with(&format!("`chain.contract` back to {by_hand}")), "{back}");
            assert_eq!(back.contains("back to those of chain 777"), now.chain_id == 1, "{back}");
        }
        assert_eq!(used(&ledger).unwrap().len(), 3, "each once");
    }

    #[tokio::test]
    async fn contracts_that_a_program_of_before_noted_in_lines_are_known_and_stay_so() {
        let [token, by_hand, now] = [3, 4, 5].map(|n| Address::from_bytes([n; 20]));
        let ledger = Ledger::with_backend(InMemoryBackend::new()).unwrap();
        let lines = format!("777 {by_hand}\n777\nsome words\n1 0x12");
        ledger.put(Namespace::Settings, USED_KEY, lines).await.unwrap();
        assert_eq!(used(&ledger).unwrap(), BTreeSet::from([(777, by_hand)]));
        let configured = Escrow { chain_id: 1, contract: now, token };
        for _ in 0..2 {
            Escrows::note(&ledger, configured, &BTreeSet::new()).await.unwrap();
            assert_eq!(used(&ledger).unwrap(), BTreeSet::from([(1, now), (777, by_hand)]));
        }
    }
}
