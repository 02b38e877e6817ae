//! The password, as argon2id (RFC 9106) in the text form that names its own parameters.
//!
//! Hashing takes 19 MiB and some tens of milliseconds by design, so only a few run at once, off the async threads, and
//! only a few wait for their turn.

use argon2::{
    Argon2, PasswordHasher, PasswordVerifier,
    password_hash::{self, phc::PasswordHash},
};
use farthing_control::types::PASSWORD_CHARS_MIN;
use farthing_os::secret::SecretText;
use tokio::sync::{Semaphore, SemaphorePermit};

use super::strength::chars_to_guess;

/// Longer than any pass phrase; hashing time does not depend on it.
const PASSWORD_BYTES_MAX: usize = 1024;
/// As many signs chosen at random take years to guess at the pace of argon2id.
const CHARS_TO_GUESS_MIN: usize = 8;
/// 38 MiB at the most, and a core for everything else.
const HASHED_AT_ONCE: usize = 2;
/// Passwords that are compared or wait for it, of strangers and again of those who were here before: the last one waits
/// for a fraction of a second.
const PLACES: usize = 10;

/// The reason that a new password is not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    #[error(
        "The password is too short: at least {PASSWORD_CHARS_MIN} characters, such as four random words."
    )]
    Short,
    #[error("The password is too long: at most {PASSWORD_BYTES_MAX} bytes.")]
    Long,
    #[error(
        "The password is easy to guess: repeated characters, keyboard rows and common words add little strength. Choose \
         four unrelated words."
    )]
    Weak,
    #[error("The password must not be the setup code, which the node prints. Choose another one.")]
    Printed,
}

/// Checks whether `password` may become the password.
///
/// # Errors
/// [`Unfit`], worded for whoever chose it.
pub fn fit(password: &SecretText) -> Result<(), Unfit> {
    let text = password.expose();
    if text.chars().count() < PASSWORD_CHARS_MIN {
        return Err(Unfit::Short);
    }
    if text.len() > PASSWORD_BYTES_MAX {
        return Err(Unfit::Long);
    }
    if chars_to_guess(text) < CHARS_TO_GUESS_MIN { Err(Unfit::Weak) } else { Ok(()) }
}

/// Hashes and compares, a few at a time.
#[derive(Debug)]
pub struct Hasher {
    turns: Semaphore,
    strangers: Semaphore,
    known: Semaphore,
}

impl Default for Hasher {
    fn default() -> Self {
        Self {
            turns: Semaphore::new(HASHED_AT_ONCE),
            strangers: Semaphore::new(PLACES),
            known: Semaphore::new(PLACES),
        }
    }
}

/// A password may be compared.
#[derive(Debug)]
pub struct HashingPlace<'h> {
    hasher: &'h Hasher,
    _held: SemaphorePermit<'h>,
}

impl HashingPlace<'_> {
    /// Returns whether `password` is the one that `stored` was made from.
    pub async fn matches(self, password: SecretText, stored: String) -> bool {
        if password.expose().len() > PASSWORD_BYTES_MAX {
            return false;
        }
        let _turn = self.hasher.turns.acquire().await;
        run(move || Argon2::default().verify_password(password.expose().as_bytes(), stored.as_str()).is_ok())
            .await
    }
}

impl Hasher {
    /// The form in which `password` is stored.
    ///
    /// # Errors
    /// When the system has no randomness or memory to give.
    pub async fn hash(&self, password: SecretText) -> Result<String, password_hash::Error> {
        let _turn = self.turns.acquire().await;
        run(move || hash_now(&password)).await
    }

    /// A place to have a password compared; `None` when too many wait already. Who was here before has places of its own.
    pub fn place(&self, is_known: bool) -> Option<HashingPlace<'_>> {
        let places = if is_known { &self.known } else { &self.strangers };
        places.try_acquire().ok().map(|held| HashingPlace { hasher: self, _held: held })
    }
}

/// As [`Hasher::hash`], on the caller's thread.
pub fn hash_now(password: &SecretText) -> Result<String, password_hash::Error> {
    let mut salt = [0; 16];
    getrandom::fill(&mut salt).map_err(|_| password_hash::Error::Crypto)?;
    let hash: PasswordHash =
        Argon2::default().hash_password_with_salt(password.expose().as_bytes(), &salt)?;
    Ok(hash.to_string())
}

async fn run<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(panic) => std::panic::resume_unwind(panic.into_panic()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn only_the_password_matches_what_is_stored_of_it() {
        let hasher = Hasher::default();
        let password = || SecretText::new("correct horse battery");
        let matches = async |password, stored| hasher.place(false).unwrap().matches(password, stored).await;
        let stored = hasher.hash(password()).await.unwrap();
        assert!(stored.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{stored}");
        assert!(matches(password(), stored.clone()).await);
        assert!(!matches(SecretText::new("correct horse batterz"), stored.clone()).await);
        assert!(!matches(SecretText::new(""), stored.clone()).await);
        assert!(!matches(password(), "no hash".to_owned()).await);
        assert_ne!(hasher.hash(password()).await.unwrap(), stored, "every hash has its own salt");
    }

    #[test]
    fn few_wait_and_strangers_take_no_place_of_those_who_were_here() {
        let hasher = Hasher::default();
        let held: Vec<_> = std::iter::from_fn(|| hasher.place(false)).take(100).collect();
        assert_eq!(held.len(), PLACES);
        assert!(hasher.place(true).is_some());
        drop(held);
        assert!(hasher.place(false).is_some());
    }

    #[test]
    fn a_new_password_is_long_enough_and_hard_to_guess() {
        let fit = |text: &str| fit(&SecretText::new(text));
        assert_eq!(fit("x7Kq9mPz2"), Err(Unfit::Short));
        assert_eq!(fit(&"ä".repeat(9)), Err(Unfit::Short));
        assert_eq!(fit("x7Kq9mPz2r"), Ok(()));
        for weak in ["aaaaaaaaaa", "1234567890", "farthing farthing", "Passw0rd2026", "a1a1a1a1a1a1a1"] {
            assert_eq!(fit(weak), Err(Unfit::Weak), "{weak}");
        }
        let long = |bytes: usize| format!("four random words{}", "a".repeat(bytes - 17));
        assert_eq!((fit(&long(1024)), fit(&long(1025))), (Ok(()), Err(Unfit::Long)));
    }
}
