//! The EIP-712 domain of the token, kept for a while.
//!
//! Each payment of the token is signed with it, and the terms of x402 clients name it, for which anybody may ask. So one request
//! asks the chain for it, and all that come meanwhile wait for that answer, also for a failed one: strangers make this node ask
//! no more often than time passes.
//!
//! A lie about it holds up payments and costs nobody anything: only name and version are told, and the token takes no signature
//! that was made with others.

use std::time::Duration;

use farthing_values::TokenDomain;
use parking_lot::Mutex;
use tokio::{sync::Mutex as AsyncMutex, time::Instant};

use super::ChainHandle;
use crate::{error::ChainError, verify};

/// The domain is read again after this time: a lie about it must not outlive the endpoint that told it.
const KEPT: Duration = Duration::from_secs(600);
/// A failure holds for this time.
const FAILURE_KEPT: Duration = Duration::from_secs(1);

/// The longest name and version of a token: both go out with each offer, and an endpoint can say what it likes.
const TOKEN_TEXT_BYTES_MAX: usize = 64;

type DomainAnswer = Result<TokenDomain, ChainError>;

impl ChainHandle {
    /// The token's EIP-712 domain, which is proven against its separator. The token is asked for it once in ten minutes.
    ///
    /// # Errors
    /// See [`ChainError`]; for a second, everyone who asks is told the same one.
    pub async fn token_domain(&self) -> Result<TokenDomain, ChainError> {
        self.0.token.get(Instant::now(), self.read_token_domain()).await
    }

    /// The domain as it was told last, however long ago, without a request. `None` if it was not asked for, or could not be read.
    pub fn token_domain_told_last(&self) -> Option<TokenDomain> {
        self.0.token.last()
    }

    async fn read_token_domain(&self) -> DomainAnswer {
        let (reader, spec) = (&self.0.reader, self.spec());
        let domain = verify::token(reader).await.map_err(|unfit| unfit.told(&spec.name))?;
        let (name, version) = (domain.name().to_owned(), domain.version().to_owned());
        if name.len().max(version.len()) > TOKEN_TEXT_BYTES_MAX {
            let reason = "the token's name or version is longer than any that USDC has".to_owned();
            return Err(ChainError::Refused { chain: spec.name.clone(), reason });
        }
        Ok(TokenDomain { name, version, chain_id: spec.chain_id, token: spec.token })
    }
}

/// The domain as the chain told it last.
#[derive(Debug, Default)]
pub(super) struct KeptDomain {
    told: Mutex<Option<(Instant, DomainAnswer)>>,
    turn: AsyncMutex<()>,
}

impl KeptDomain {
    /// Returns the domain for a request that came at `now`. `asking` asks the chain for it, if it is not kept and nobody else asks.
    async fn get(&self, now: Instant, asking: impl Future<Output = DomainAnswer>) -> DomainAnswer {
        if let Some(told) = self.kept(now) {
            return told;
        }
        let _turn = self.turn.lock().await;
        if let Some(told) = self.kept(now) {
            return told;
        }
        let told = asking.await;
        // The chain may have taken long.
        *self.told.lock() = Some((Instant::now().max(now), told.clone()));
        told
    }

    /// Returns the domain that was told last, however long ago.
    fn last(&self) -> Option<TokenDomain> {
        let told = self.told.lock();
        told.as_ref().and_then(|(_, domain)| domain.as_ref().ok().cloned())
    }

    fn kept(&self, now: Instant) -> Option<DomainAnswer> {
        let told = self.told.lock();
        let (since, domain) = told.as_ref()?;
        let kept = if domain.is_ok() { KEPT } else { FAILURE_KEPT };
        (now.saturating_duration_since(*since) < kept).then(|| domain.clone())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use farthing_values::Address;

    use super::*;

    /// Has fifty requests ask at once, and returns what each was told. `asked` counts the questions to the chain.
    async fn fifty(
        domain: &KeptDomain,
        (now, asked): (Instant, &AtomicU32),
        answer: &DomainAnswer,
    ) -> Vec<DomainAnswer> {
        let asking = (0..50).map(|_| {
            domain.get(now, async {
                asked.fetch_add(1, Ordering::Relaxed);
                // All others come meanwhile.
                tokio::task::yield_now().await;
                answer.clone()
            })
        });
        futures::future::join_all(asking).await
    }

    #[tokio::test]
    async fn requests_at_once_ask_the_chain_once_for_the_domain_and_once_for_a_failure() {
        let (kept, asked, now) = (KeptDomain::default(), AtomicU32::new(0), Instant::now());
        let away = Err(ChainError::Unreachable { chain: "base".to_owned(), reason: "away".to_owned() });
        assert_eq!(fifty(&kept, (now, &asked), &away).await, vec![away.clone(); 50]);
        assert_eq!(asked.load(Ordering::Relaxed), 1);

        let (name, version, token) = ("USDC".to_owned(), "2".to_owned(), Address::from_bytes([9; 20]));
        let answer = Ok(TokenDomain { name, version, chain_id: 8_453, token });
        let later = now + KEPT;
        assert_eq!(fifty(&kept, (later, &asked), &answer).await, vec![answer.clone(); 50]);
        assert_eq!(asked.load(Ordering::Relaxed), 2, "a failure is not kept for long");

        fifty(&kept, (later + KEPT, &asked), &answer).await;
        assert_eq!(asked.load(Ordering::Relaxed), 3, "it is read again, once");
    }
}
