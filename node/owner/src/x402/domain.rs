//! The EIP-712 domain of the token, kept for a while.
//!
//! Anybody may ask for terms, and each terms name the domain. So one request asks the chain for it, and all that come meanwhile
//! wait for that answer, also for a failed one: strangers make this node ask no more often than time passes.

use std::time::Duration;

use farthing_protocol::{Refusal, TokenDomain};
use parking_lot::Mutex;
use tokio::{sync::Mutex as AsyncMutex, time::Instant};

/// The domain is read again after this time: a lie about it must not outlive the endpoint that told it.
const KEPT: Duration = Duration::from_secs(600);
/// A failure holds for this time.
const FAILURE_KEPT: Duration = Duration::from_secs(1);

type DomainAnswer = Result<TokenDomain, Refusal>;

/// The domain as the chain told it last.
#[derive(Debug, Default)]
pub(super) struct KeptDomain {
    told: Mutex<Option<(Instant, DomainAnswer)>>,
    turn: AsyncMutex<()>,
}

impl KeptDomain {
    /// Returns the domain for a request that came at `now`. `asking` asks the chain for it, if it is not kept and nobody else asks.
    pub(super) async fn get(&self, now: Instant, asking: impl Future<Output = DomainAnswer>) -> DomainAnswer {
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
    pub(super) fn last(&self) -> Option<TokenDomain> {
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

    use farthing_protocol::{Address, RefusalCode};

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
        let away = Err(Refusal::new(RefusalCode::ChainStale, "away"));
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
