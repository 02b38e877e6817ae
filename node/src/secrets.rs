//! The consumer secrets that this node accepts, compared in constant time, and what each may do.
//!
//! Changes take effect with the next request: a secret is created, limited, rotated or revoked in the file first,
//! then here.

use std::collections::{BTreeMap, BTreeSet};

use farthing_control::types::{SecretLimits, ServiceIdText};
use farthing_os::clock;
use parking_lot::{Mutex, RwLock};

pub use crate::secret::file::DEFAULT_SECRET;
use crate::{
    consumer::spending::Grant,
    secret::{
        ConsumerSecret,
        file::{
            BadName, NAMED_MAX, NamedSecret, PINNED_MAX, SERVICES_MAX, SecretFile, SecretFileError,
            StoredSecrets, check_name,
        },
    },
};

/// The secrets this node accepts.
#[derive(Debug)]
pub struct Secrets {
    file: SecretFile,
    current: RwLock<StoredSecrets>,
    /// Changes are made one after the other; nobody who compares waits for the disk.
    changing: Mutex<()>,
    /// The time at which each was last presented, by name, in seconds since the Unix epoch.
    used: Mutex<BTreeMap<String, u64>>,
}

/// A secret as its owner may look at it, without the secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretFacts {
    pub name: String,
    /// `None` for the default one.
    pub created_secs: Option<u64>,
    pub limits: SecretLimits,
    /// Services whose operations an agent has as tools of their own.
    pub pinned: BTreeSet<ServiceIdText>,
    pub last_used_secs: Option<u64>,
}

/// An error that keeps a secret from being created, changed or shown.
#[derive(Debug, thiserror::Error)]
pub enum SecretsError {
    #[error(transparent)]
    Name(#[from] BadName),
    #[error("a secret `{0}` already exists")]
    Exists(String),
    #[error("there is no secret `{0}`")]
    NotFound(String),
    #[error("there are already {NAMED_MAX} secrets, the most allowed")]
    TooMany,
    #[error("`services` names more than {SERVICES_MAX} services")]
    TooManyServices,
    #[error("at most {PINNED_MAX} services can be pinned to a secret")]
    TooManyPinned,
    #[error("the default secret has the node's own limits and cannot be revoked")]
    IsDefault,
    #[error(transparent)]
    File(#[from] SecretFileError),
}

impl SecretsError {
    pub fn next_step(&self) -> &'static str {
        match self {
            Self::Name(_) => "Choose another name.",
            Self::Exists(_) => "Choose another name, or rotate that one.",
            Self::NotFound(_) => "`farthing secret list` shows them.",
            Self::TooMany => "Revoke one that is no longer used.",
            Self::TooManyServices => "Name fewer services, or none to allow every service.",
            Self::TooManyPinned => "Unpin one that the agent does not need.",
            Self::IsDefault => "Rotate it; `farthing spending limits` limits the node.",
            Self::File(error) => error.next_step(),
        }
    }
}

impl Secrets {
    /// `used`: when each was last presented, as far as that is known from before.
    pub const fn new(file: SecretFile, current: StoredSecrets, used: BTreeMap<String, u64>) -> Self {
        Self { file, current: RwLock::new(current), changing: Mutex::new(()), used: Mutex::new(used) }
    }

    /// Returns what the holder of the presented secret may do, if it is one. Every secret is compared, whichever fits.
    #[must_use]
    pub fn grant_of(&self, presented: &str) -> Option<Grant> {
        let current = self.current.read();
        let mut grant = current.default.matches(presented).then(|| Grant::unlimited(DEFAULT_SECRET));
        for (name, named) in &current.named {
            if named.secret.matches(presented) {
                grant = Some(grant_for(name, &named.limits, named.created_secs));
            }
        }
        drop(current);
        if let Some(grant) = &grant {
            let mut used = self.used.lock();
            used.insert(grant.name.clone(), clock::now_secs());
        }
        grant
    }

    /// Returns what the holder of a secret may do, for a program that names it and does not present it: one that may
    /// use the control socket.
    ///
    /// # Errors
    /// [`SecretsError::NotFound`].
    pub fn grant_named(&self, name: &str) -> Result<Grant, SecretsError> {
        let grant = if name == DEFAULT_SECRET {
            Grant::unlimited(DEFAULT_SECRET)
        } else {
            let current = self.current.read();
            let named = current.named.get(name).ok_or_else(|| SecretsError::NotFound(name.to_owned()))?;
            grant_for(name, &named.limits, named.created_secs)
        };
        self.used.lock().insert(grant.name.clone(), clock::now_secs());
        Ok(grant)
    }

    /// Every secret, the default one first.
    pub fn all(&self) -> Vec<SecretFacts> {
        let used = self.used();
        let current = self.current.read();
        let default = SecretFacts {
            name: DEFAULT_SECRET.to_owned(),
            created_secs: None,
            limits: SecretLimits::default(),
            pinned: BTreeSet::new(),
            last_used_secs: used.get(DEFAULT_SECRET).copied(),
        };
        let named = current.named.iter().map(|(name, named)| SecretFacts {
            name: name.clone(),
            created_secs: Some(named.created_secs),
            limits: named.limits.clone(),
            pinned: named.pinned.clone(),
            last_used_secs: used.get(name).copied(),
        });
        std::iter::once(default).chain(named).collect()
    }

    /// Returns the time at which each secret was last presented.
    pub fn used(&self) -> BTreeMap<String, u64> {
        self.used.lock().clone()
    }

    /// A secret, for the user who asked to see it.
    ///
    /// # Errors
    /// [`SecretsError::NotFound`].
    pub fn show(&self, name: &str) -> Result<ConsumerSecret, SecretsError> {
        let current = self.current.read();
        if name == DEFAULT_SECRET {
            return Ok(current.default.clone());
        }
        let named = current.named.get(name).map(|named| named.secret.clone());
        named.ok_or_else(|| SecretsError::NotFound(name.to_owned()))
    }

    /// Creates a secret. It is accepted at once. Waits for the disk, like every change.
    ///
    /// # Errors
    /// [`SecretsError`]; nothing was changed then.
    pub fn create(&self, name: &str, limits: SecretLimits) -> Result<ConsumerSecret, SecretsError> {
        check_name(name)?;
        check_limits(&limits)?;
        let secret = self.file.fresh()?;
        self.change(|stored| {
            if name == DEFAULT_SECRET || stored.named.contains_key(name) {
                return Err(SecretsError::Exists(name.to_owned()));
            }
            if stored.named.len() >= NAMED_MAX {
                return Err(SecretsError::TooMany);
            }
            let (secret, created_secs) = (secret.clone(), clock::now_secs());
            let named = NamedSecret { secret, created_secs, limits, pinned: BTreeSet::new() };
            stored.named.insert(name.to_owned(), named);
            Ok(())
        })?;
        // An earlier secret of this name is forgotten.
        self.used.lock().remove(name);
        Ok(secret)
    }

    /// Replaces what a secret may do.
    ///
    /// # Errors
    /// [`SecretsError`]; nothing was changed then.
    pub fn limit(&self, name: &str, limits: SecretLimits) -> Result<(), SecretsError> {
        check_limits(&limits)?;
        self.change(|stored| {
            named_mut(stored, name)?.limits = limits;
            Ok(())
        })
    }

    /// Replaces the services that are pinned to a secret. They change what an agent is shown, and nothing of what it may do.
    ///
    /// # Errors
    /// [`SecretsError`]; nothing was changed then.
    pub fn pin(&self, name: &str, services: BTreeSet<ServiceIdText>) -> Result<(), SecretsError> {
        if services.len() > PINNED_MAX {
            return Err(SecretsError::TooManyPinned);
        }
        self.change(|stored| {
            named_mut(stored, name)?.pinned = services;
            Ok(())
        })
    }

    /// Replaces a secret; the old one stops working at once.
    ///
    /// # Errors
    /// [`SecretsError`]; the old one stays then.
    pub fn rotate(&self, name: &str) -> Result<ConsumerSecret, SecretsError> {
        let fresh = self.file.fresh()?;
        self.change(|stored| {
            let secret = if name == DEFAULT_SECRET {
                &mut stored.default
            } else {
                &mut named_mut(stored, name)?.secret
            };
            *secret = fresh.clone();
            Ok(())
        })?;
        Ok(fresh)
    }

    /// Ends a secret at once.
    ///
    /// # Errors
    /// [`SecretsError`]; it stays then.
    pub fn revoke(&self, name: &str) -> Result<(), SecretsError> {
        self.change(|stored| {
            named_mut(stored, name)?;
            stored.named.remove(name);
            Ok(())
        })
    }

    fn change(
        &self,
        edit: impl FnOnce(&mut StoredSecrets) -> Result<(), SecretsError>,
    ) -> Result<(), SecretsError> {
        let _alone = self.changing.lock();
        let mut changed = self.current.read().clone();
        edit(&mut changed)?;
        self.file.replace(&changed)?;
        *self.current.write() = changed;
        Ok(())
    }
}

fn named_mut<'a>(stored: &'a mut StoredSecrets, name: &str) -> Result<&'a mut NamedSecret, SecretsError> {
    if name == DEFAULT_SECRET {
        return Err(SecretsError::IsDefault);
    }
    stored.named.get_mut(name).ok_or_else(|| SecretsError::NotFound(name.to_owned()))
}

fn check_limits(limits: &SecretLimits) -> Result<(), SecretsError> {
    if limits.services.as_ref().is_some_and(|services| services.len() > SERVICES_MAX) {
        return Err(SecretsError::TooManyServices);
    }
    Ok(())
}

fn grant_for(name: &str, limits: &SecretLimits, since_secs: u64) -> Grant {
    // Only the agents' tools ask for confirmations: a script has no user to ask.
    let SecretLimits { price_max, per_day, services, confirm_above: _ } = limits;
    Grant {
        name: name.to_owned(),
        price_max: price_max.map(|price| price.0),
        per_day: per_day.map(|amount| amount.0),
        services: services.as_ref().map(|services| services.iter().map(|id| id.0).collect()),
        since_secs,
    }
}

#[cfg(test)]
mod tests {
    use farthing_protocol::{ServiceId, Usdc};

    use super::*;

    fn secrets(folder: &tempfile::TempDir) -> Secrets {
        let file = SecretFile::in_folder(folder.path());
        let stored = file.load_or_create().unwrap();
        Secrets::new(file, stored, BTreeMap::new())
    }

    #[test]
    fn a_secret_works_from_its_making_to_its_end_and_restarts_change_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let kept = secrets(&folder);
        let limits = SecretLimits {
            price_max: Some(Usdc::from_micros(5).into()),
            services: Some([ServiceId::from_bytes([1; 16]).into()].into()),
            ..SecretLimits::default()
        };
        let one = kept.create("one", limits.clone()).unwrap();
        let since_secs = kept.all()[1].created_secs.unwrap();
        let grant = grant_for("one", &limits, since_secs);
        assert_eq!(kept.grant_of(one.expose()), Some(grant.clone()));
        assert_eq!(secrets(&folder).grant_of(one.expose()), Some(grant));

        assert_eq!(kept.grant_named("one").ok(), kept.grant_of(one.expose()), "named or presented");
        assert!(matches!(kept.grant_named("two"), Err(SecretsError::NotFound(_))));

        kept.limit("one", SecretLimits::default()).unwrap();
        let unlimited = Grant { since_secs, ..Grant::unlimited("one") };
        assert_eq!(kept.grant_of(one.expose()), Some(unlimited.clone()));
        let two = kept.rotate("one").unwrap();
        assert_eq!(kept.grant_of(one.expose()), None, "the old one ends at once");
        assert_eq!(kept.grant_of(two.expose()), Some(unlimited), "a rotated one has the same holder");
        assert!(kept.show("one").unwrap().matches(two.expose()));
        kept.revoke("one").unwrap();
        assert_eq!(kept.grant_of(two.expose()), None);
        assert_eq!(secrets(&folder).grant_of(two.expose()), None);
        assert!(matches!(kept.show("one"), Err(SecretsError::NotFound(_))));
    }

    #[test]
    fn the_default_secret_is_rotated_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let kept = secrets(&folder);
        let old = kept.show(DEFAULT_SECRET).unwrap();
        let fresh = kept.rotate(DEFAULT_SECRET).unwrap();
        assert_eq!(kept.grant_of(old.expose()), None);
        assert_eq!(kept.grant_of(fresh.expose()), Some(Grant::unlimited(DEFAULT_SECRET)));
        assert!(matches!(kept.revoke(DEFAULT_SECRET), Err(SecretsError::IsDefault)));
        assert!(matches!(kept.limit(DEFAULT_SECRET, SecretLimits::default()), Err(SecretsError::IsDefault)));
        let taken = kept.create(DEFAULT_SECRET, SecretLimits::default());
        assert!(matches!(taken, Err(SecretsError::Exists(_))));
        assert!(secrets(&folder).grant_of(fresh.expose()).is_some());
    }

    #[test]
    fn there_is_a_bound_on_secrets_and_on_their_services() {
        let folder = tempfile::tempdir().unwrap();
        let kept = secrets(&folder);
        for n in 0..NAMED_MAX {
            kept.create(&format!("s{n}"), SecretLimits::default()).unwrap();
        }
        assert!(matches!(kept.create("more", SecretLimits::default()), Err(SecretsError::TooMany)));
        assert_eq!(kept.all().len(), NAMED_MAX + 1);
        let service = |n: usize| ServiceId::from_bytes([u8::try_from(n % 251).unwrap(); 16]);
        let ids: Vec<_> = (0..=SERVICES_MAX)
            .map(|n| {
                let mut bytes = *service(n).as_bytes();
                bytes[..8].copy_from_slice(&(n as u64).to_be_bytes());
                ServiceId::from_bytes(bytes)
            })
            .collect();
        let of = |n: usize| SecretLimits {
            services: Some(ids[..n].iter().copied().map(Into::into).collect()),
            ..SecretLimits::default()
        };
        kept.limit("s0", of(SERVICES_MAX)).unwrap();
        assert!(matches!(kept.limit("s0", of(SERVICES_MAX + 1)), Err(SecretsError::TooManyServices)));
    }

    #[test]
    fn a_secret_knows_when_it_was_used() {
        let folder = tempfile::tempdir().unwrap();
        let kept = secrets(&folder);
        kept.create("one", SecretLimits::default()).unwrap();
        let used = |kept: &Secrets| {
            kept.all().iter().map(|facts| facts.last_used_secs.is_some()).collect::<Vec<_>>()
        };
        assert_eq!(used(&kept), [false, false]);
        assert!(kept.grant_of("farthing_sk_wrong").is_none());
        assert_eq!(used(&kept), [false, false]);
        kept.grant_of(kept.show("one").unwrap().expose()).unwrap();
        assert_eq!(used(&kept), [false, true]);
        kept.grant_named(DEFAULT_SECRET).unwrap();
        assert_eq!(used(&kept), [true, true]);
    }
}
