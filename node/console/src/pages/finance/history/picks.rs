//! Services and wallets to narrow the history to, by name. Pure.

use std::collections::BTreeMap;

use farthing_control::types::{Activity, Api};

use crate::{
    pages::{activity::named, petnames::PeerNames},
    show,
};

/// Of each list; whoever looks for another gives its id.
const EACH_MAX: usize = 25;

/// PickList of one list, under a title.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct PickList {
    pub(super) title: &'static str,
    /// Id and words.
    pub(super) list: Vec<(String, String)>,
}

/// Lists the own services and those that were bought of late; `chosen` is among them in any case.
pub(super) fn services(activity: &Activity, own: &[Api], chosen: &str) -> Vec<PickList> {
    let own = own.iter().map(|api| (api.id.to_string(), show::visible(&api.name)));
    let bought = activity.bought.iter().map(|call| (call.service.to_string(), named(&call.name)));
    lists([("My services", own.collect()), ("Services I bought", bought.collect())], chosen)
}

/// Lists the wallets that calls were bought from and served for of late, each owner with a service of its own.
pub(super) fn wallets(activity: &Activity, names: &PeerNames, chosen: &str) -> Vec<PickList> {
    let owners = activity.bought.iter().map(|call| {
        let words = format!("{}, owner of {}", names.short(call.owner.0), named(&call.name));
        (call.owner.to_string(), words)
    });
    let payers = activity.served.iter().map(|call| (call.payer.to_string(), names.short(call.payer.0)));
    lists([("Owners I bought from", owners.collect()), ("Payers I served", payers.collect())], chosen)
}

/// Sorts each list by its words, and has the chosen id stand in one.
fn lists(all: [(&'static str, BTreeMap<String, String>); 2], chosen: &str) -> Vec<PickList> {
    let mut choices: Vec<PickList> = all
        .into_iter()
        .map(|(title, found)| {
            let mut list: Vec<(String, String)> = found.into_iter().collect();
            list.sort_by(|(_, one), (_, other)| one.cmp(other));
            list.truncate(EACH_MAX);
            PickList { title, list }
        })
        .filter(|choices| !choices.list.is_empty())
        .collect();
    let is_listed = choices.iter().flat_map(|choices| &choices.list).any(|(id, _)| id == chosen);
    if !chosen.is_empty() && !is_listed {
        let list = vec![(chosen.to_owned(), chosen.to_owned())];
        choices.push(PickList { title: "By id", list });
    }
    choices
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const ONE: &str = "0b5f2a3e-6a3c-4c39-9a65-6a1c3f1d2e4b";
    const OTHER: &str = "1b5f2a3e-6a3c-4c39-9a65-6a1c3f1d2e4b";
    const OWNER: &str = "0x7E5F4552091A69125d5DfCb7b8C2659029395Bdf";

    fn activity() -> Activity {
        let call = |service: &str, name: &str| {
            json!({ "call_id": "00000000-0000-4000-8000-000000000001", "service": service, "name": name, "owner": OWNER,
                "operation": "GET /a", "time_secs": 1, "status": 200, "outcome": "answered", "reason": null, "charged": "0.002",
                "total_us": 1, "owner_us": 1, "upstream_us": 1 })
        };
        let bought = [call(ONE, "Zebras"), call(OTHER, "Ants\u{202e}"), call(ONE, "Zebras")];
        serde_json::from_value(json!({ "bought": bought, "served": [] })).unwrap()
    }

    #[test]
    fn services_are_chosen_by_name_each_once_and_an_id_is_taken_as_well() {
        let list = |id: &str, words: &str| (id.to_owned(), words.to_owned());
        let bought = vec![list(OTHER, "Ants"), list(ONE, "Zebras")];
        let found = services(&activity(), &[], ONE);
        assert_eq!(found, [PickList { title: "Services I bought", list: bought }]);
        let found = services(&activity(), &[], "2b5f2a3e-6a3c-4c39-9a65-6a1c3f1d2e4b");
        assert_eq!((found.len(), found[1].title), (2, "By id"));
    }

    #[test]
    fn owners_are_named_by_what_they_offer() {
        let found = wallets(&activity(), &PeerNames::default(), "");
        let (id, words) = &found[0].list[0];
        assert!(id == OWNER && words.starts_with("0x7E5F…5Bdf, owner of "), "{words}");
        assert_eq!(found[0].list.len(), 1);
    }
}
