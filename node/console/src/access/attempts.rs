//! A limit on guessing the password: a few tries at once, then slower and slower, and never a lock-out.
//!
//! Every attempt is booked as a failure before it is checked, so that many at once count; the right password
//! takes the booking back. Who was here before ([`DeviceId`]) waits for its own failures alone; all others wait for those
//! of their address, since one program of this machine looks like another. All addresses together share a pace, which
//! does not bind this machine's own and those from which the right password came before: a stranger's guesses
//! cannot keep the owner out.

use std::{
    collections::{HashMap, VecDeque},
    hash::Hash,
    net::IpAddr,
    time::{Duration, Instant},
};

use farthing_bounds::subscriber;

use super::devices::{DEVICES_MAX, DeviceId};

/// Wrong tries that cost no waiting: people mistype.
const FREE_FAILURES: u32 = 5;
const WAIT_MAX: Duration = Duration::from_secs(60);
/// After this long without a try one starts anew.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(3600);
/// Addresses remembered; a pool of more is held by the pace of all.
const ADDRESSES_MAX: usize = 1024;
const PROVEN_MAX: usize = 64;
/// Strangers together: this many at once, then one every two seconds.
const POOL: u32 = 30;
const POOL_REFILL: Duration = Duration::from_secs(2);

/// A record of wrong tries.
#[derive(Debug)]
pub struct Attempts {
    by_address: Buckets<IpAddr>,
    by_device: Buckets<DeviceId>,
    proven: VecDeque<IpAddr>,
    pool: u32,
    pool_at: Instant,
}

/// The device or address whose tries count together.
#[derive(Debug, Clone, Copy)]
pub enum Guesser {
    Device(DeviceId),
    Address(IpAddr),
}

#[derive(Debug, Clone, Copy)]
struct Failures {
    count: u32,
    last: Instant,
}

impl Attempts {
    pub fn new(now: Instant) -> Self {
        Self {
            by_address: Buckets::new(ADDRESSES_MAX),
            by_device: Buckets::new(DEVICES_MAX),
            proven: VecDeque::new(),
            pool: POOL,
            pool_at: now,
        }
    }

    /// Books an attempt, which counts as failed until [`Attempts::succeeded`].
    ///
    /// # Errors
    /// How long to wait before it may be made.
    pub fn book(&mut self, guesser: Guesser, now: Instant) -> Result<(), Duration> {
        let address = match guesser {
            Guesser::Device(device) => return self.by_device.book(device, now, || Ok(())),
            Guesser::Address(address) => subscriber(address),
        };
        let is_bound = !address.is_loopback() && !self.proven.contains(&address);
        let (pool, pool_at) = (&mut self.pool, &mut self.pool_at);
        let pace = || if is_bound { take(pool, pool_at, now) } else { Ok(()) };
        self.by_address.book(address, now, pace)
    }

    /// The attempt that was booked was the right password.
    pub fn succeeded(&mut self, guesser: Guesser) {
        let address = match guesser {
            Guesser::Device(device) => return self.by_device.forget(device),
            Guesser::Address(address) => subscriber(address),
        };
        self.by_address.forget(address);
        if !self.proven.contains(&address) {
            if self.proven.len() >= PROVEN_MAX {
                self.proven.pop_front();
            }
            self.proven.push_back(address);
        }
    }
}

/// One out of the pool, which fills up by and by.
fn take(pool: &mut u32, pool_at: &mut Instant, now: Instant) -> Result<(), Duration> {
    while *pool < POOL && now.duration_since(*pool_at) >= POOL_REFILL {
        *pool += 1;
        *pool_at += POOL_REFILL;
    }
    if *pool == POOL {
        *pool_at = now;
    }
    if *pool == 0 {
        return Err(POOL_REFILL.saturating_sub(now.duration_since(*pool_at)));
    }
    *pool -= 1;
    Ok(())
}

/// Failures by whose they are, a bounded number of them.
#[derive(Debug)]
struct Buckets<K> {
    max: usize,
    failures: HashMap<K, Failures>,
}

impl<K: Copy + Eq + Hash> Buckets<K> {
    fn new(max: usize) -> Self {
        Self { max, failures: HashMap::new() }
    }

    fn book(
        &mut self,
        key: K,
        now: Instant,
        pace: impl FnOnce() -> Result<(), Duration>,
    ) -> Result<(), Duration> {
        let known = self.failures.get(&key).copied();
        let known = known.filter(|failures| now.duration_since(failures.last) < FORGOTTEN_AFTER);
        let count = known.map_or(0, |failures| failures.count);
        if let Some(failures) = known {
            let since = now.duration_since(failures.last);
            if let Some(left) = wait_after(count).checked_sub(since).filter(|left| !left.is_zero()) {
                return Err(left);
            }
        }
        pace()?;
        if self.failures.len() >= self.max
            && !self.failures.contains_key(&key)
            && let Some(oldest) = self.failures.iter().min_by_key(|(_, failures)| failures.last)
        {
            let oldest = *oldest.0;
            self.failures.remove(&oldest);
        }
        self.failures.insert(key, Failures { count: count.saturating_add(1), last: now });
        Ok(())
    }

    fn forget(&mut self, key: K) {
        self.failures.remove(&key);
    }
}

/// 1, 2, 4 … 60 seconds once the free tries are used up.
fn wait_after(failures: u32) -> Duration {
    match failures.checked_sub(FREE_FAILURES) {
        None => Duration::ZERO,
        Some(more) => Duration::from_secs(1 << more.min(6)).min(WAIT_MAX),
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv6Addr;

    use crate::access::devices::{DeviceKey, Devices};

    use super::*;

    const HERE: Guesser = Guesser::Address(IpAddr::V6(Ipv6Addr::LOCALHOST));

    fn stranger(number: u16) -> Guesser {
        at(Ipv6Addr::new(0x2001, 0xdb8, 0, number, 0, 0, 0, 1).into())
    }

    fn at(address: IpAddr) -> Guesser {
        Guesser::Address(address)
    }

    fn device(devices: &mut Devices) -> Guesser {
        Guesser::Device(devices.add(&DeviceKey::generate().unwrap(), 0))
    }

    #[test]
    fn a_few_tries_are_free_then_each_waits_longer_and_none_for_ever() {
        let start = Instant::now();
        let mut attempts = Attempts::new(start);
        for _ in 0..FREE_FAILURES {
            attempts.book(HERE, start).unwrap();
        }
        let mut now = start;
        for secs in [1, 2, 4, 8, 16, 32, 60, 60, 60] {
            assert_eq!(attempts.book(HERE, now), Err(Duration::from_secs(secs)));
            now += Duration::from_secs(secs);
            attempts.book(HERE, now).unwrap();
        }
        attempts.succeeded(HERE);
        for _ in 0..FREE_FAILURES {
            attempts.book(HERE, now).unwrap();
        }
    }

    #[test]
    fn tries_of_one_network_count_together_and_are_forgotten_in_time() {
        let start = Instant::now();
        let mut attempts = Attempts::new(start);
        for host in 0..FREE_FAILURES {
            let address = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, u16::try_from(host).unwrap());
            attempts.book(at(address.into()), start).unwrap();
        }
        assert!(attempts.book(stranger(0), start).is_err());
        attempts.book(stranger(0), start + FORGOTTEN_AFTER).unwrap();
        attempts.book(stranger(0), start + FORGOTTEN_AFTER).unwrap();
    }

    #[test]
    fn a_program_of_this_machine_guesses_as_one_from_whichever_of_its_addresses() {
        let start = Instant::now();
        let mut attempts = Attempts::new(start);
        for host in 1..=u8::try_from(FREE_FAILURES).unwrap() {
            attempts.book(at([127, 0, 0, host].into()), start).unwrap();
        }
        for other in ["127.0.0.99", "127.255.255.254", "::1", "::ffff:127.9.9.9"] {
            assert!(
                attempts.book(at(other.parse().unwrap()), start).is_err(),
                "{other} has tries of its own"
            );
        }
    }

    #[test]
    fn strangers_share_a_pace_that_does_not_bind_those_who_knew_the_password() {
        let start = Instant::now();
        let mut attempts = Attempts::new(start);
        attempts.succeeded(stranger(9_999));
        for number in 0..u16::try_from(POOL).unwrap() {
            attempts.book(stranger(number), start).unwrap();
        }
        assert_eq!(attempts.book(stranger(5_000), start), Err(POOL_REFILL));
        attempts.book(stranger(9_999), start).unwrap();
        attempts.book(HERE, start).unwrap();
        attempts.book(stranger(5_000), start + POOL_REFILL).unwrap();
        assert!(attempts.book(stranger(5_001), start + POOL_REFILL).is_err());
    }

    #[test]
    fn whoever_was_here_before_waits_for_its_own_wrong_tries_alone() {
        let start = Instant::now();
        let (mut attempts, mut devices) = (Attempts::new(start), Devices::default());
        let (owner, thief) = (device(&mut devices), device(&mut devices));
        for _ in 0..FREE_FAILURES {
            attempts.book(HERE, start).unwrap();
            attempts.book(thief, start).unwrap();
        }
        assert_eq!(attempts.book(HERE, start), Err(Duration::from_secs(1)));
        assert_eq!(attempts.book(thief, start), Err(Duration::from_secs(1)), "its own are as slow");
        for number in 0..u16::try_from(POOL).unwrap() {
            attempts.book(stranger(number), start).unwrap();
        }
        for _ in 0..FREE_FAILURES {
            attempts.book(owner, start).unwrap();
        }
        assert!(attempts.book(owner, start).is_err());
        attempts.succeeded(owner);
        attempts.book(owner, start).unwrap();
        assert!(attempts.book(HERE, start).is_err(), "who guesses gains nothing from a log-in of another");
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let start = Instant::now();
        let mut attempts = Attempts::new(start);
        for number in 0..2_000_u16 {
            let later = start + POOL_REFILL * u32::from(number);
            attempts.book(stranger(number), later).unwrap();
            attempts.succeeded(stranger(number));
            attempts.book(stranger(number), later).unwrap();
        }
        let mut devices = Devices::default();
        for _ in 0..2 * DEVICES_MAX {
            attempts.book(device(&mut devices), start).unwrap();
        }
        assert!(attempts.by_address.failures.len() <= ADDRESSES_MAX && attempts.proven.len() <= PROVEN_MAX);
        assert!(attempts.by_device.failures.len() <= DEVICES_MAX);
    }
}
