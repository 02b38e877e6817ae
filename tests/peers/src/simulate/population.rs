//! Nodes that join one after the other through a few that are there, and machines that fail under them.

use std::{path::PathBuf, time::Duration};

use anyhow::{Context, Result};
use farthing_catalog::Limits;
use farthing_network::{Network, NetworkConfig, NetworkHandle, NetworkLimits};
use farthing_protocol::{
    Address, SecretKey, keccak256,
    record::{FLAG_ACCEPTS_CALLS, FLAG_KEEPS_ALL},
    shards::Shards,
};
use farthing_simulation::Dice;
use tempfile::TempDir;
use tokio::runtime::{Builder, Handle, Runtime};

use super::{arrivals::Arrivals, holding::Holding, network_name};

/// Nodes that a newcomer is told of.
const INTRODUCERS: usize = 3;
/// Nodes that join at the same time. More would only wait for each other on two cores.
const JOINING_TOGETHER: usize = 16;
/// How long the next nodes wait until these have met somebody.
const JOIN_PATIENCE: Duration = Duration::from_secs(20);

/// One node.
#[derive(Debug)]
pub struct Member {
    /// In order of joining.
    pub number: usize,
    pub key: SecretKey,
    pub wallet: Address,
    pub handle: NetworkHandle,
    pub listening: String,
    /// The sequence number it published last.
    pub seq: u64,
    /// Its catalog, if nodes of its kind have one.
    pub holding: Option<Holding>,
}

/// Where nodes run: threads of their own, so that all nodes of one machine can fail at once.
#[derive(Debug)]
pub struct Machine {
    runtime: Option<Runtime>,
    stalled: Option<std::sync::mpsc::SyncSender<()>>,
}

impl Machine {
    pub fn new(threads: usize) -> Result<Self> {
        let runtime = Builder::new_multi_thread().worker_threads(threads).enable_all().build()?;
        Ok(Self { runtime: Some(runtime), stalled: None })
    }

    fn tasks(&self) -> Result<&Handle> {
        self.runtime.as_ref().map(Runtime::handle).context("the machine is gone")
    }

    /// The machine goes silent without closing anything, as when its power fails: connections stay open until
    /// somebody notices, and whoever dials its nodes waits. For machines of one thread.
    pub fn stall(&mut self) -> Result<()> {
        let (release, released) = std::sync::mpsc::sync_channel(0);
        // Every task of the machine waits for the thread that this one holds.
        self.tasks()?.spawn(async move { released.recv() });
        self.stalled = Some(release);
        Ok(())
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        // In this order: released first, its nodes would use the moment to say goodbye.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
        self.stalled = None;
    }
}

/// What nodes of one population have in common.
#[derive(Debug, Clone)]
pub struct Kind {
    pub gossip: bool,
    /// Whether they tell the network where they are, as owners do. Those who only buy need not.
    pub publishes: bool,
    /// Whether each keeps a catalog on disk and compares it with others. Without, it only takes note of what it hears.
    pub catalogs: bool,
    pub limits: NetworkLimits,
}

impl Kind {
    /// Nodes as they are shipped: with gossip, records, catalogs of all shards, and relays, which nobody needs where queues lead
    /// to everybody. The rendezvous is off: no node of a public DHT is in this process.
    pub(super) fn as_shipped() -> Self {
        Self { gossip: true, publishes: true, catalogs: true, limits: NetworkLimits::default() }
    }

    /// Of their records.
    const fn flags(&self) -> u32 {
        if self.catalogs { FLAG_ACCEPTS_CALLS | FLAG_KEEPS_ALL } else { FLAG_ACCEPTS_CALLS }
    }
}

/// All nodes that are alive and honest.
#[derive(Debug)]
pub struct Population {
    pub members: Vec<Member>,
    pub dice: Dice,
    pub(super) kind: Kind,
    /// Listings that the nodes heard of.
    pub arrivals: Arrivals,
    /// Where catalogs are. After the members, so that it is removed when they are gone.
    folder: Option<TempDir>,
}

impl Population {
    pub fn new(kind: Kind, seed: u64) -> Self {
        Self { members: Vec::new(), dice: Dice::new(seed), kind, arrivals: Arrivals::default(), folder: None }
    }

    /// Adds a node for every entry of `machines`, on that machine. Each joins through a few nodes that are
    /// there already and publishes its record, if its kind does. Returns how many had met nobody when the next ones joined; they
    /// stay and go on trying.
    pub async fn grow(&mut self, machines: &[&Machine]) -> Result<usize> {
        let mut alone = 0;
        if self.kind.catalogs && self.folder.is_none() {
            self.folder = Some(tempfile::tempdir()?);
        }
        // The first node meets nobody, so it cannot be joined by those that start with it.
        let (first, rest) = machines.split_at(usize::from(self.members.is_empty()).min(machines.len()));
        for together in std::iter::once(first).chain(rest.chunks(JOINING_TOGETHER)) {
            let mut joined = Vec::new();
            for machine in together {
                let number = self.members.len() + joined.len();
                let config = self.config(number);
                let folder = self.folder.as_ref().map(|folder| folder.path().join(number.to_string()));
                joined.push(start(number, config, machine, &self.arrivals, folder).await?);
            }
            for member in &mut joined {
                if !self.members.is_empty() {
                    alone += usize::from(!meets_somebody(member).await);
                }
                if self.kind.publishes {
                    member.seq = member.handle.publish(self.kind.flags(), 0, [0; 32]).await?;
                }
            }
            self.members.append(&mut joined);
        }
        Ok(alone)
    }

    fn config(&mut self, number: usize) -> NetworkConfig {
        NetworkConfig {
            listen: vec!["/memory/0".to_owned()],
            bootstrap: self.introducers(),
            allow_private: true,
            gossip: self.kind.gossip,
            limits: self.kind.limits.clone(),
            ..NetworkConfig::new(key("member", number), network_name())
        }
    }

    /// Addresses of some nodes that are there, each once.
    pub fn introducers(&mut self) -> Vec<String> {
        let there = self.members.len();
        let mut some: Vec<usize> = (0..INTRODUCERS.min(there)).map(|_| self.dice.index(there)).collect();
        some.sort_unstable();
        some.dedup();
        some.into_iter().map(|index| self.members[index].listening.clone()).collect()
    }

    /// No longer counts on the nodes that ran on a machine that failed.
    pub fn forget(&mut self, is_gone: impl Fn(usize) -> bool) {
        self.members.retain(|member| !is_gone(member.number));
    }
}

/// A key that belongs to this number alone.
///
/// # Panics
/// Never in practice: one hash in 2^128 is not a key.
pub fn key(kind: &str, number: usize) -> SecretKey {
    let hash = keccak256(&[kind.as_bytes(), &number.to_be_bytes()]);
    SecretKey::from_bytes(&hash).expect("a hash is almost always a key")
}

async fn start(
    number: usize,
    config: NetworkConfig,
    machine: &Machine,
    arrivals: &Arrivals,
    folder: Option<PathBuf>,
) -> Result<Member> {
    let key = config.key.clone();
    let (handle, inbound) = machine.tasks()?.spawn(Network::start(config)).await??;
    let holding = match folder {
        Some(folder) => {
            let (key, arrivals) = (key.clone(), arrivals.clone());
            let limits = Limits::default();
            let opening = Holding::open(folder, key, handle.clone(), inbound, arrivals, Shards::ALL, limits);
            Some(machine.tasks()?.spawn(opening).await??)
        }
        None => {
            machine.tasks()?.spawn(arrivals.clone().note_all(inbound));
            None
        }
    };
    let listening = handle.status().borrow().listening.first().cloned().context("no address")?;
    Ok(Member { number, wallet: key.address(), key, handle, listening, seq: 0, holding })
}

async fn meets_somebody(member: &Member) -> bool {
    let mut status = member.handle.status();
    let met = status.wait_for(|status| status.peers > 0);
    tokio::time::timeout(JOIN_PATIENCE, met).await.is_ok_and(|met| met.is_ok())
}
