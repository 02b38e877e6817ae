//! Networks in namespaces: an internet, public hosts, and three routers with a LAN behind each.
//!
//! ```text
//!                       ┌─ boot1 20.1.0.2, boot2 20.2.0.2, boot3 20.3.0.2, public 20.40.0.2
//!                       ├─ line (a delay and some loss) ── far 20.50.0.2, or any other place with a public address
//!   internet (router) ──┼─ home     20.11.0.2 ── 192.168.10.1 ─┬─ owner 192.168.10.2
//!                       │           masquerade, may forward    └─ neighbour 192.168.10.3
//!                       ├─ plain    20.21.0.2 ── 192.168.20.1 ─── behind_plain 192.168.20.2
//!                       └─ symmetric 20.31.0.2 ─ 192.168.30.1 ─── behind_symmetric 192.168.30.2
//! ```
//!
//! The addresses outside look public, because nodes believe nothing that strangers say of private ones; no packet
//! leaves the namespaces. They are named for the process that made them, are removed when [`Lab`] is dropped, and
//! what a killed process left behind is removed by the next.

pub mod cases;
mod commands;
mod leftovers;
pub mod line;
pub mod passing;
pub mod router;
pub mod script;

use std::{
    env,
    net::{Ipv4Addr, Ipv6Addr},
    process,
    sync::atomic::{AtomicU32, Ordering},
};

use anyhow::{Result, ensure};

use self::{
    commands::{command_in, missing, output_in, run, run_in},
    line::{Line, LongLine},
    passing::Passed,
    router::{Forwarded, Translation},
    script::Script,
};
use crate::tell::tell;

/// A host, or a router.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    Internet,
    /// A public host; 1 to 3 in networks apart from each other.
    Boot(u8),
    /// A public host that nobody begins with.
    Public,
    /// A public host; at the other end of a [`line::Line`] unless that leads elsewhere.
    Far,
    /// Where that line runs.
    Line,
    /// The owner's router.
    Home,
    Owner,
    /// In the owner's LAN.
    Neighbour,
    PlainRouter,
    BehindPlain,
    SymmetricRouter,
    BehindSymmetric,
}

const PLACES: [Place; 14] = [
    Place::Internet,
    Place::Boot(1),
    Place::Boot(2),
    Place::Boot(3),
    Place::Public,
    Place::Far,
    Place::Line,
    Place::Home,
    Place::Owner,
    Place::Neighbour,
    Place::PlainRouter,
    Place::BehindPlain,
    Place::SymmetricRouter,
    Place::BehindSymmetric,
];

/// What stands between the owner and the internet. Nothing is forwarded unless [`Lab::forward`] says so.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HomeRouter {
    /// A router that keeps ports and lets in answers alone.
    #[default]
    Plain,
    /// The same, which lets in whoever the owner writes to from its port, from any port of theirs.
    FiltersByAddress,
    /// A router with another port for every connection.
    Symmetric,
    /// A plain router behind the provider's, which shares one address among customers.
    BehindProvider,
    /// A firewall of IPv6, which nodes use alone, that lets in answers.
    FirewallOfIpv6,
}

/// The home's address before and after its provider changes it.
pub const HOME_FIRST: Ipv4Addr = Ipv4Addr::new(20, 11, 0, 2);
pub const HOME_SECOND: Ipv4Addr = Ipv4Addr::new(20, 12, 0, 2);
pub const OWNER: Ipv4Addr = Ipv4Addr::new(192, 168, 10, 2);

/// Interfaces have one name in every namespace: towards the internet, and towards the LAN.
const WAN: &str = "wan";
const LAN: &str = "lan";

impl Place {
    fn name(self) -> String {
        match self {
            Self::Boot(n) => format!("boot{n}"),
            other => format!("{other:?}").to_lowercase(),
        }
    }

    /// The address on the internet, of the places that have one.
    pub const fn public(self) -> Option<Ipv4Addr> {
        match self {
            Self::Boot(n) => Some(Ipv4Addr::new(20, n, 0, 2)),
            Self::Public => Some(Ipv4Addr::new(20, 40, 0, 2)),
            Self::Far => Some(Ipv4Addr::new(20, 50, 0, 2)),
            Self::Home => Some(HOME_FIRST),
            Self::PlainRouter => Some(Ipv4Addr::new(20, 21, 0, 2)),
            Self::SymmetricRouter => Some(Ipv4Addr::new(20, 31, 0, 2)),
            _ => None,
        }
    }

    /// The gateway's address of IPv6 and its own, of the places that have one.
    fn public_ipv6(self) -> Option<[Ipv6Addr; 2]> {
        let [_, network, ..] = self.public()?.octets();
        Some([1, 2].map(|host| Ipv6Addr::new(0x2a00, u16::from(network), 0, 0, 0, 0, 0, host)))
    }

    /// The address of IPv6 on the internet, of the places that have one.
    pub fn ipv6(self) -> Option<Ipv6Addr> {
        self.public_ipv6().map(|[_, own]| own)
    }

    /// The router in front, the name of its interface, and the own address in its LAN.
    const fn behind(self) -> Option<(Self, &'static str, Ipv4Addr)> {
        match self {
            Self::Owner => Some((Self::Home, "owner", OWNER)),
            Self::Neighbour => Some((Self::Home, "neighbour", Ipv4Addr::new(192, 168, 10, 3))),
            Self::BehindPlain => Some((Self::PlainRouter, "host", Ipv4Addr::new(192, 168, 20, 2))),
            Self::BehindSymmetric => Some((Self::SymmetricRouter, "host", Ipv4Addr::new(192, 168, 30, 2))),
            _ => None,
        }
    }
}

/// The networks.
#[derive(Debug)]
pub struct Lab {
    /// Of every namespace's name: this process and the lab's number in it.
    prefix: String,
    /// Where the long line leads.
    far: Place,
}

impl Lab {
    /// `None`, and a loud word, where there can be no lab; there the test has nothing to say.
    pub fn build() -> Result<Option<Self>> {
        Self::with_line_to(Place::Far)
    }

    /// The same, where the long line leads to this place, which has a public address.
    pub fn with_line_to(far: Place) -> Result<Option<Self>> {
        static BUILT: AtomicU32 = AtomicU32::new(0);
        if let Some(missing) = missing() {
            let required = env::var_os("CI").is_some() && !missing.is_for_root();
            ensure!(!required, "{missing}");
            tell(&format!("\n  SKIPPED: a case of the NAT laboratory, because {missing}\n"));
            return Ok(None);
        }
        leftovers::remove()?;
        let number = BUILT.fetch_add(1, Ordering::Relaxed);
        let lab = Self { prefix: format!("{}{}-{number}-", leftovers::PREFIX, process::id()), far };
        lab.lay_out()?;
        Ok(Some(lab))
    }

    /// What starts a program at a place.
    pub fn launcher(&self, place: Place) -> Vec<String> {
        command_in(&self.namespace(place))
    }

    /// What the owner's router forwards from now on.
    pub fn forward(&self, forwarded: Forwarded) -> Result<()> {
        self.translate(Place::Home, Translation::KeepsPorts, Some((OWNER, forwarded)))
    }

    /// From now on this stands between the owner and the internet.
    pub fn put_owner_behind(&self, home: HomeRouter) -> Result<()> {
        match home {
            HomeRouter::Plain => Ok(()),
            HomeRouter::FiltersByAddress => self.nft(Place::Home, &router::rules_by_address(WAN, OWNER)),
            HomeRouter::Symmetric => self.translate(Place::Home, Translation::RandomPorts, None),
            HomeRouter::BehindProvider => {
                let rules = router::rules_of_provider(&Place::Home.name(), HOME_FIRST, gateway(HOME_SECOND));
                self.nft(Place::Internet, &rules)
            }
            HomeRouter::FirewallOfIpv6 => self.lay_out_ipv6(),
        }
    }

    /// Carries what goes to and from the place that the long line leads to; nothing arrives there otherwise. `None`, and
    /// a loud word, where there is no Python to run it.
    pub fn carry(&self, long: LongLine) -> Result<Option<Line>> {
        let [line, near, far] = [Place::Line, Place::Internet, self.far].map(|place| self.namespace(place));
        Line::open(&line, [(&near, &self.far.name()), (&far, WAN)], long)
    }

    /// From now on the owner's router speaks UPnP, and forwards what it is asked to. `None`, and a loud word, where
    /// there is no Python to run it.
    pub fn speak_upnp(&self) -> Result<Option<Script>> {
        let words = [gateway(OWNER), HOME_FIRST].map(|address| address.to_string());
        Script::start(&self.namespace(Place::Home), "igd.py", &words, "searchable")
    }

    /// The owner's router forgets whom the owner wrote to, where it lets those in.
    pub fn forget_written_to(&self) -> Result<()> {
        self.nft(Place::Home, &router::forgetting_addresses())
    }

    /// From now on the bytes that pass at a place are counted, but for those of the port `aside`.
    pub fn count(&self, place: Place, aside: u16) -> Result<()> {
        self.nft(place, &passing::rules(aside))
    }

    /// What has passed at a place since [`Self::count`].
    pub fn passed(&self, place: Place) -> Result<Passed> {
        passing::read(&output_in(&self.namespace(place), &passing::ASKED, "")?)
    }

    /// The owner's router has `to` for its address and no longer `from`, the other one of two; what is sent there gets lost.
    pub fn move_home(&self, from: Ipv4Addr, to: Ipv4Addr) -> Result<()> {
        self.ip(Place::Internet, &format!("route flush {to}/32\nroute add blackhole {from}/32\n"))?;
        let commands = format!(
            "address delete {from}/24 dev {WAN}\naddress add {to}/24 dev {WAN}\n\
             route add default via {}\n",
            gateway(to)
        );
        self.ip(Place::Home, &commands)
    }

    /// Nothing passes between the owner's router and the internet, and nobody is told.
    pub fn cut_home_off(&self) -> Result<()> {
        let home = Place::Home.name();
        let rules = format!(
            "table ip outage {{ chain forward {{ type filter hook forward priority -10\n\
             iifname {home} drop\noifname {home} drop\n}}\n}}\n"
        );
        self.nft(Place::Internet, &rules)
    }

    /// Nothing passes between the node at a public place and any other, and nobody is told. Other programs there go on.
    pub fn silence(&self, place: Place) -> Result<()> {
        let (at, port) = (place.name(), router::PORT);
        let rules = format!(
            "table ip silence {{ chain forward {{ type filter hook forward priority -10\n\
             iifname {at} th sport {port} drop\noifname {at} th dport {port} drop\n}}\n}}\n"
        );
        self.nft(Place::Internet, &rules)
    }

    /// The end of [`Self::cut_home_off`].
    pub fn reconnect_home(&self) -> Result<()> {
        self.nft(Place::Internet, "delete table ip outage\n")
    }

    fn lay_out(&self) -> Result<()> {
        let names = PLACES.map(|place| format!("netns add {}\n", self.namespace(place)));
        run(&["ip", "-batch", "-"], &names.concat())?;
        for place in PLACES {
            self.ip(place, "link set lo up\n")?;
        }
        for place in PLACES {
            if let Some(address) = place.public() {
                self.connect_to_internet(place, address)?;
            }
        }
        for router in [Place::Home, Place::PlainRouter, Place::SymmetricRouter] {
            self.ip(router, &format!("link add {LAN} type bridge\nlink set {LAN} up\n"))?;
        }
        for place in PLACES {
            if let Some((router, port, address)) = place.behind() {
                self.connect_to_lan(place, router, port, address)?;
            }
        }
        for router in [Place::Internet, Place::Home, Place::PlainRouter, Place::SymmetricRouter] {
            let forwarding = ["sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward"];
            run_in(&self.namespace(router), &forwarding, "")?;
        }
        // The address that the home will move to.
        let second = format!("address add {}/24 dev {}\n", gateway(HOME_SECOND), Place::Home.name());
        self.ip(Place::Internet, &second)?;
        self.translate(Place::PlainRouter, Translation::KeepsPorts, None)?;
        self.translate(Place::SymmetricRouter, Translation::RandomPorts, None)?;
        self.forward(Forwarded::NOTHING)
    }

    /// IPv6 beside IPv4: for nodes to begin with, and behind two routers that translate nothing and let in answers alone.
    fn lay_out_ipv6(&self) -> Result<()> {
        let forwarding = ["sh", "-c", "echo 1 > /proc/sys/net/ipv6/conf/all/forwarding"];
        run_in(&self.namespace(Place::Internet), &forwarding, "")?;
        let routers = [(Place::Home, Place::Owner), (Place::PlainRouter, Place::BehindPlain)];
        let boots = [Place::Boot(1), Place::Boot(2), Place::Boot(3)];
        for place in boots.into_iter().chain(routers.map(|(router, _)| router)) {
            let Some([gateway, own]) = place.public_ipv6() else { continue };
            let port = place.name();
            self.ip(Place::Internet, &format!("address add {gateway}/64 dev {port} nodad\n"))?;
            self.ip(
                place,
                &format!("address add {own}/64 dev {WAN} nodad\nroute add default via {gateway}\n"),
            )?;
        }
        for (router, host) in routers {
            let Some([_, outer]) = router.public_ipv6() else { continue };
            let [gateway, own] = [1, 2].map(|n| in_lan(outer, n));
            run_in(&self.namespace(router), &forwarding, "")?;
            self.ip(router, &format!("address add {gateway}/64 dev {LAN} nodad\n"))?;
            self.ip(
                host,
                &format!("address add {own}/64 dev {LAN} nodad\nroute add default via {gateway}\n"),
            )?;
            let network = in_lan(outer, 0);
            self.ip(Place::Internet, &format!("route add {network}/64 via {outer}\n"))?;
            self.nft(router, &router::firewall_of_ipv6(WAN))?;
        }
        Ok(())
    }

    fn connect_to_internet(&self, place: Place, address: Ipv4Addr) -> Result<()> {
        let port = place.name();
        if place == self.far {
            self.cable(place, WAN, Place::Line, line::FAR)?;
            self.cable(Place::Line, line::NEAR, Place::Internet, &port)?;
            self.ip(Place::Line, &format!("link set {} up\nlink set {} up\n", line::NEAR, line::FAR))?;
        } else {
            self.cable(place, WAN, Place::Internet, &port)?;
        }
        let gateway = gateway(address);
        self.ip(Place::Internet, &format!("address add {gateway}/24 dev {port}\nlink set {port} up\n"))?;
        self.ip(
            place,
            &format!(
                "address add {address}/24 dev {WAN}\nlink set {WAN} up\nroute add default via {gateway}\n"
            ),
        )
    }

    fn connect_to_lan(&self, place: Place, router: Place, port: &str, address: Ipv4Addr) -> Result<()> {
        self.cable(place, LAN, router, port)?;
        let gateway = gateway(address);
        self.ip(
            router,
            &format!("link set {port} master {LAN} up\naddress replace {gateway}/24 dev {LAN}\n"),
        )?;
        self.ip(
            place,
            &format!(
                "address add {address}/24 dev {LAN}\nlink set {LAN} up\nroute add default via {gateway}\n"
            ),
        )
    }

    fn cable(&self, one: Place, one_end: &str, other: Place, other_end: &str) -> Result<()> {
        let (one, other) = (self.namespace(one), self.namespace(other));
        let link = format!("link add {one_end} netns {one} type veth peer name {other_end} netns {other}\n");
        run(&["ip", "-batch", "-"], &link)
    }

    fn translate(
        &self,
        router: Place,
        translation: Translation,
        forward: Option<(Ipv4Addr, Forwarded)>,
    ) -> Result<()> {
        self.nft(router, &router::rules(WAN, translation, forward))
    }

    fn namespace(&self, place: Place) -> String {
        format!("{}{}", self.prefix, place.name())
    }

    fn ip(&self, place: Place, commands: &str) -> Result<()> {
        run(&["ip", "-netns", &self.namespace(place), "-batch", "-"], commands)
    }

    fn nft(&self, place: Place, rules: &str) -> Result<()> {
        run_in(&self.namespace(place), &["nft", "-f", "-"], rules)
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        // What cannot be removed now is removed by the next lab of another process.
        for place in PLACES {
            let _ = run(&["ip", "netns", "delete", &self.namespace(place)], "");
        }
    }
}

/// An address in the LAN behind a router with this one outside.
const fn in_lan(router: Ipv6Addr, host: u16) -> Ipv6Addr {
    let [a, b, ..] = router.segments();
    Ipv6Addr::new(a, b, 1, 0, 0, 0, 0, host)
}

/// The router of a network has the first address in it.
const fn gateway(address: Ipv4Addr) -> Ipv4Addr {
    let [a, b, c, _] = address.octets();
    Ipv4Addr::new(a, b, c, 1)
}
