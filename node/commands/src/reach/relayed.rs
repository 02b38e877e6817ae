//! Relays in plain words, beside those of addresses. Pure.

use farthing_network::RelayUse;

/// Says through which relays callers reach this node, or why through none, and what to do. Nothing while none is wanted.
pub(super) fn sentence(relays: &RelayUse) -> String {
    let mut words = String::new();
    if !relays.through.is_empty() {
        let name = if relays.through.len() == 1 { "the relay" } else { "the relays" };
        let through = relays.through.iter().map(ToString::to_string).collect::<Vec<_>>().join(" and ");
        words = format!(" Callers reach this node through {name} {through}{LIMITS}");
    } else if relays.is_sought && relays.asked > 0 {
        words.push_str(" Your node is asking and testing a relay for callers.");
    } else if relays.is_sought && relays.failed > 0 {
        words.push_str(
            " No relay works yet: the relays refused, or no call arrived. Your node asks others automatically. \
             Until one works nobody can call this node, so forward the port.",
        );
    } else if relays.is_sought {
        words.push_str(
            " No connected node is a relay, so nobody can call this node: forward the port, or connect to more nodes.",
        );
    }
    words
}

const LIMITS: &str = ", and directly if your router and theirs allow it. Through a relay a request or an answer has at \
                      most 64 KiB.";

#[cfg(test)]
mod tests {
    use farthing_protocol::Address;

    use super::*;

    #[test]
    fn an_owner_that_nobody_can_connect_to_is_told_how_it_is_reached_or_why_not() {
        let sought = || RelayUse { is_sought: true, ..RelayUse::default() };
        let [one, other] = [1, 2].map(|n| Address::from_bytes([n; 20]));
        let past = "and directly if your router and theirs allow it. Through a relay a request or an answer has at most \
                    64 KiB.";
        for (used, words) in [
            (RelayUse::default(), String::new()),
            (
                RelayUse { through: vec![one], asked: 1, ..sought() },
                format!(" Callers reach this node through the relay {one}, {past}"),
            ),
            (
                RelayUse { through: vec![one, other], ..sought() },
                format!(" Callers reach this node through the relays {one} and {other}, {past}"),
            ),
            (
                RelayUse { asked: 1, failed: 3, ..sought() },
                " Your node is asking and testing a relay for callers.".to_owned(),
            ),
        ] {
            assert_eq!(sentence(&used), words);
        }
        let refused = sentence(&RelayUse { failed: 1, ..sought() });
        assert!(refused.contains("No relay works yet") && refused.contains("forward the port"), "{refused}");
        let alone = sentence(&sought());
        assert!(alone.contains("No connected node is a relay") && alone.contains("forward"), "{alone}");
    }
}
