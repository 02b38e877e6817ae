//! This node's public address, as strangers of the DHT see it. Pure.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
};

use crate::addresses;

/// Networks of the DHT's nodes that must see this one at the same IP: one could lie.
const WITNESSES_MIN: usize = 2;

/// The IPs under which nodes of the DHT see this one, with the networks they look from.
#[derive(Debug, Default)]
pub(super) struct Glimpses(BTreeMap<IpAddr, BTreeSet<IpAddr>>);

impl Glimpses {
    pub(super) fn note(&mut self, own: IpAddr, observer: IpAddr) {
        if addresses::is_global(own) && addresses::is_global(observer) {
            self.0.entry(own).or_default().insert(addresses::network_of(observer));
        }
    }

    /// Of each family the one that most see, if they are enough.
    pub(super) fn agreed(&self) -> Vec<IpAddr> {
        let best = |is_of_family: fn(&IpAddr) -> bool| {
            let of_family = self.0.iter().filter(|(own, _)| is_of_family(own));
            let (own, by) = of_family.max_by_key(|(_, by)| by.len())?;
            (by.len() >= WITNESSES_MIN).then_some(*own)
        };
        [best(IpAddr::is_ipv4), best(IpAddr::is_ipv6)].into_iter().flatten().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_own_address_is_believed_when_two_networks_see_it() {
        let ip = |text: &str| text.parse::<IpAddr>().unwrap();
        let mut glimpses = Glimpses::default();
        glimpses.note(ip("9.9.9.9"), ip("8.8.8.8"));
        glimpses.note(ip("9.9.9.9"), ip("8.8.1.1"));
        assert_eq!(glimpses.agreed(), [] as [IpAddr; 0], "both are of one network");
        glimpses.note(ip("9.9.9.9"), ip("1.1.1.1"));
        glimpses.note(ip("7.7.7.7"), ip("1.1.1.1"));
        glimpses.note(ip("2620:fe::9"), ip("2606:4700::1"));
        assert_eq!(glimpses.agreed(), [ip("9.9.9.9")]);
        for (own, observer) in [("192.168.1.2", "8.8.8.8"), ("10.0.0.1", "9.9.9.9"), ("7.7.7.7", "10.0.0.2")]
        {
            glimpses.note(ip(own), ip(observer));
        }
        assert_eq!(glimpses.agreed(), [ip("9.9.9.9")], "nobody outside is seen by, or at, a private address");
    }
}
