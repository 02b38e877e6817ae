//! What goes wrong in a soak, one thing after the other in turns, each with a node that a seed chooses and to which nothing
//! else happens meanwhile.
//!
//! Only every second node is killed: the others live from the beginning to the end, so that a slow growth is seen in them.

use std::{
    fs, iter, mem,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use farthing_control::{
    endpoint,
    types::{BackupRequest, LimitsRequest, PriceRequest},
};
use farthing_protocol::{Usdc, wire::NetworkName};
use farthing_testnet::{NodeProcess, anvil::Anvil};
use farthing_tests::{chain_proxy::Mood, report::rounded, world::PRICE};
use serde::Serialize;
use tokio::{io::AsyncWriteExt, net::TcpStream, task::JoinSet};

use super::{
    network::{Member, Network},
    random::Random,
};
use crate::{
    crowd::{Crowd, Slow},
    flood::{Flood, Sort},
};

const PASSPHRASE: &str = "four random words here";
/// Never above the price at which the scripts buy.
const LOWER_PRICE: Usdc = Usdc::from_micros(1_500);
const PER_DAY: Usdc = Usdc::from_micros(90_000_000_000);
const CHAIN_DELAY: Duration = Duration::from_secs(1);
/// Slow wallets, and call streams of each.
const SLOW_WALLETS: usize = 2;
const SLOW_STREAMS: usize = 16;
/// Connections to the console that send a byte a second.
const VISITORS: usize = 16;
/// The head of a message of TLS that announces 8 KiB (RFC 8446, 5.1).
const TLS_HANDSHAKE: [u8; 5] = [0x16, 3, 1, 0x20, 0];
const A_BYTE_EVERY: Duration = Duration::from_secs(1);

/// What may happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    Kill,
    /// An owner's server answers every request with status 503.
    ServerOutage,
    ChainOutage,
    /// Floods of gossip, slow calls and slow visitors of the console.
    Strangers,
    Backup,
    Settings,
    /// An owner pauses its service.
    Pause,
}

const TURNS: [Kind; 8] = [
    Kind::Kill,
    Kind::ServerOutage,
    Kind::ChainOutage,
    Kind::Strangers,
    Kind::Kill,
    Kind::Backup,
    Kind::Settings,
    Kind::Pause,
];

/// What is to be undone, with the number of its node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    Down(usize),
    ServerOutage(usize),
    ChainOutage(usize),
    Paused(usize),
}

impl Fault {
    const fn node(self) -> usize {
        match self {
            Self::Down(number)
            | Self::ServerOutage(number)
            | Self::ChainOutage(number)
            | Self::Paused(number) => number,
        }
    }
}

/// How often each happened.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct Happened {
    pub kills: u64,
    pub server_outages: u64,
    pub chain_outages: u64,
    pub visits_of_strangers: u64,
    pub backups: u64,
    pub changed_settings: u64,
    pub pauses: u64,
}

/// What began at one moment.
#[derive(Debug, Clone, Serialize)]
pub struct Moment {
    /// Since the load began.
    pub at_secs: f64,
    pub what: Kind,
    /// The name of the node to which it happened.
    pub node: String,
}

/// What happens, and what is under way.
pub struct Faults {
    random: Random,
    every: Duration,
    began: Instant,
    next: Instant,
    turn: usize,
    running: Vec<(Instant, Fault)>,
    hostile: Option<Hostile>,
    happened: Happened,
    moments: Vec<Moment>,
}

impl Faults {
    pub fn new(seed: u64, every: Duration) -> Self {
        let began = Instant::now();
        Self {
            random: Random::new(seed),
            every,
            began,
            next: began,
            turn: 0,
            running: Vec::new(),
            hostile: None,
            happened: Happened::default(),
            moments: Vec::new(),
        }
    }

    pub const fn happened(&self) -> Happened {
        self.happened
    }

    /// All that happened, in its order.
    pub fn into_moments(self) -> Vec<Moment> {
        self.moments
    }

    /// Undoes what has lasted long enough, and begins the next thing when it is its turn.
    pub async fn step(&mut self, network: &mut Network) -> Result<()> {
        let now = Instant::now();
        let (due, running): (Vec<_>, Vec<_>) =
            mem::take(&mut self.running).into_iter().partition(|(until, _)| *until <= now);
        self.running = running;
        for (_, fault) in due {
            undo(fault, network).await?;
        }
        if now >= self.next {
            self.next = now + self.every;
            let kind = TURNS[self.turn % TURNS.len()];
            self.turn += 1;
            self.begin(kind, network).await.with_context(|| format!("{kind:?}"))?;
        }
        Ok(())
    }

    /// Undoes everything.
    pub async fn end(&mut self, network: &mut Network) -> Result<()> {
        self.hostile = None;
        for (_, fault) in mem::take(&mut self.running) {
            undo(fault, network).await?;
        }
        Ok(())
    }

    async fn begin(&mut self, kind: Kind, network: &mut Network) -> Result<()> {
        let Some(number) = self.choose(kind, network) else { return Ok(()) };
        let Some(member) = network.members.get_mut(number) else { return Ok(()) };
        let at_secs = rounded(self.began.elapsed().as_secs_f64());
        self.moments.push(Moment { at_secs, what: kind, node: member.name.clone() });
        let fault = match kind {
            Kind::Kill => {
                member.kill().await?;
                self.happened.kills += 1;
                Fault::Down(number)
            }
            Kind::ServerOutage => {
                member.sells.iter().for_each(|sells| sells.upstream.fail(true));
                self.happened.server_outages += 1;
                Fault::ServerOutage(number)
            }
            Kind::ChainOutage => {
                let moods = [Mood::Refuse, Mood::Hang, Mood::Fail, Mood::Delay(CHAIN_DELAY)];
                member.chain.set(moods[self.random.below(moods.len())]);
                self.happened.chain_outages += 1;
                Fault::ChainOutage(number)
            }
            Kind::Pause => {
                if let Some(sells) = &member.sells {
                    member.node.control().ask(endpoint::PauseApi.of(sells.service)).await?;
                }
                self.happened.pauses += 1;
                Fault::Paused(number)
            }
            Kind::Strangers => {
                // Those before them leave first.
                self.hostile = None;
                self.hostile = Some(Hostile::at(member)?);
                self.happened.visits_of_strangers += 1;
                return Ok(());
            }
            Kind::Backup => {
                back_up(&member.node).await?;
                self.happened.backups += 1;
                return Ok(());
            }
            Kind::Settings => {
                change_settings(member, self.random.one_in(2)).await?;
                self.happened.changed_settings += 1;
                return Ok(());
            }
        };
        let lasts = match fault {
            // As soon as it is dead, or a while later.
            Fault::Down(_) => self.every * u32::from(self.random.one_in(2)),
            _ => self.every * 2,
        };
        self.running.push((Instant::now() + lasts, fault));
        Ok(())
    }

    /// A node to which it may happen, and nothing else happens now.
    fn choose(&mut self, kind: Kind, network: &Network) -> Option<usize> {
        let fits = |number: usize, member: &Member| match kind {
            Kind::Kill => !number.is_multiple_of(2),
            Kind::ServerOutage | Kind::Pause => member.sells.is_some(),
            Kind::ChainOutage | Kind::Strangers | Kind::Backup | Kind::Settings => true,
        };
        let is_free = |number: usize| self.running.iter().all(|(_, fault)| fault.node() != number);
        let members = network.members.iter().enumerate();
        let free = members.filter(|(number, member)| is_free(*number) && fits(*number, member));
        let mut numbers: Vec<usize> = free.map(|(number, _)| number).collect();
        self.random.take(&mut numbers)
    }
}

async fn undo(fault: Fault, network: &mut Network) -> Result<()> {
    let Some(member) = network.members.get_mut(fault.node()) else { return Ok(()) };
    match fault {
        Fault::Down(_) => member.start_again().await?,
        Fault::ServerOutage(_) => member.sells.iter().for_each(|sells| sells.upstream.fail(false)),
        Fault::ChainOutage(_) => member.chain.set(Mood::Pass),
        Fault::Paused(_) => {
            if let Some(sells) = &member.sells {
                member.node.control().ask(endpoint::ResumeApi.of(sells.service)).await?;
            }
        }
    }
    Ok(())
}

/// Makes a backup and opens it. It does not stay: disks are to be filled by calls alone.
async fn back_up(node: &NodeProcess) -> Result<()> {
    let request = BackupRequest { passphrase: PASSPHRASE.to_owned() };
    let backup = node.control().tell(endpoint::CreateBackup, &request).await?;
    node.control().tell(endpoint::VerifyBackup.of(&backup.name), &request).await?;
    fs::remove_file(&backup.path).with_context(|| backup.path)
}

/// An owner changes its price, a consumer its limits; either reads its settings again.
async fn change_settings(member: &Member, lower: bool) -> Result<()> {
    member.node.ask_to_read_again()?;
    let control = member.node.control();
    if let Some(sells) = &member.sells {
        let price = if lower { LOWER_PRICE } else { PRICE };
        let request = PriceRequest { price: price.into(), operation: None };
        control.tell(endpoint::PriceApi.of(sells.service), &request).await?;
    } else {
        let per_day = lower.then_some(PER_DAY.into());
        let request = LimitsRequest { per_day, reset: !lower, ..LimitsRequest::default() };
        control.tell(endpoint::LimitSpending, &request).await?;
    }
    Ok(())
}

/// Strangers at one node; they leave when this is dropped.
struct Hostile {
    _flood: Flood,
    _crowd: Crowd,
    _visitors: JoinSet<()>,
}

impl Hostile {
    fn at(member: &Member) -> Result<Self> {
        let network = NetworkName::new(Anvil::CHAIN_ID.to_string())?;
        let to = member.address.clone();
        let sorts = vec![Sort::News, Sort::Crammed, Sort::Signed];
        let flood = Flood::start(to.clone(), network.clone(), sorts)?;
        let crowd = Crowd::start(Slow { to, network, wallets: SLOW_WALLETS, streams: SLOW_STREAMS })?;
        let mut visitors = JoinSet::new();
        for _ in 0..VISITORS {
            visitors.spawn(visit_slowly(member.panel_port));
        }
        Ok(Self { _flood: flood, _crowd: crowd, _visitors: visitors })
    }
}

/// Connects again and again, and sends a message that is never complete.
async fn visit_slowly(port: u16) {
    loop {
        if let Ok(mut stream) = TcpStream::connect(("127.0.0.1", port)).await {
            for byte in TLS_HANDSHAKE.into_iter().chain(iter::repeat(0)) {
                if stream.write_all(&[byte]).await.is_err() {
                    break;
                }
                tokio::time::sleep(A_BYTE_EVERY).await;
            }
        }
        tokio::time::sleep(A_BYTE_EVERY).await;
    }
}
