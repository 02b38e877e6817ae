//! What `std` and `tokio` have for synchronisation: atomics of shuttle; waits of tokio, each with a point before it.

use real_std::{
    future::Future,
    ops::{Deref, DerefMut},
    pin::Pin,
    task::{Context, Poll},
};

use real_tokio::sync as real;

use crate::point;

pub use real_std::sync::{Arc, LazyLock, OnceLock, Weak};
pub use real_tokio::sync::{AcquireError, TryLockError, futures::Notified};

pub mod atomic {
    //! Atomics of shuttle.

    pub use shuttle::sync::atomic::*;
}

/// Places that are waited for in turn.
#[derive(Debug)]
pub struct Semaphore(Arc<real::Semaphore>);

impl Semaphore {
    pub fn new(permits: usize) -> Self {
        Self(Arc::new(real::Semaphore::new(permits)))
    }

    pub async fn acquire(&self) -> Result<real::SemaphorePermit<'_>, AcquireError> {
        point();
        let permit = self.0.acquire().await;
        point();
        permit
    }

    pub async fn acquire_owned(self: Arc<Self>) -> Result<OwnedSemaphorePermit, AcquireError> {
        point();
        let permit = Arc::clone(&self.0).acquire_owned().await?;
        point();
        Ok(OwnedSemaphorePermit { _permit: permit, _of: self })
    }

    pub fn add_permits(&self, more: usize) {
        point();
        self.0.add_permits(more);
    }

    pub fn close(&self) {
        point();
        self.0.close();
    }
}

/// A place, until dropped.
#[derive(Debug)]
pub struct OwnedSemaphorePermit {
    _permit: real::OwnedSemaphorePermit,
    _of: Arc<Semaphore>,
}

impl Drop for OwnedSemaphorePermit {
    fn drop(&mut self) {
        point();
    }
}

/// A lock that is held across waits.
#[derive(Debug, Default)]
pub struct Mutex<T>(Arc<real::Mutex<T>>);

impl<T> Mutex<T> {
    pub async fn lock(&self) -> MutexGuard<'_, T> {
        point();
        MutexGuard(self.0.lock().await)
    }

    pub async fn lock_owned(self: Arc<Self>) -> OwnedMutexGuard<T> {
        point();
        let guard = Arc::clone(&self.0).lock_owned().await;
        OwnedMutexGuard { guard, lock: self }
    }

    pub fn try_lock_owned(self: Arc<Self>) -> Result<OwnedMutexGuard<T>, TryLockError> {
        point();
        let guard = Arc::clone(&self.0).try_lock_owned()?;
        Ok(OwnedMutexGuard { guard, lock: self })
    }
}

/// The right to what a lock guards.
#[derive(Debug)]
pub struct MutexGuard<'a, T>(real::MutexGuard<'a, T>);

impl<T> Drop for MutexGuard<'_, T> {
    fn drop(&mut self) {
        point();
    }
}

/// The right to what a lock guards, which keeps the lock.
#[derive(Debug)]
pub struct OwnedMutexGuard<T> {
    guard: real::OwnedMutexGuard<T>,
    lock: Arc<Mutex<T>>,
}

impl<T> OwnedMutexGuard<T> {
    pub fn mutex(guard: &Self) -> &Arc<Mutex<T>> {
        &guard.lock
    }
}

impl<T> Deref for OwnedMutexGuard<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.guard
    }
}

impl<T> DerefMut for OwnedMutexGuard<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.guard
    }
}

impl<T> Drop for OwnedMutexGuard<T> {
    fn drop(&mut self) {
        point();
    }
}

/// News for those that wait.
#[derive(Debug, Default)]
pub struct Notify(real::Notify);

impl Notify {
    pub fn notified(&self) -> Notified<'_> {
        point();
        self.0.notified()
    }

    pub fn notify_waiters(&self) {
        point();
        self.0.notify_waiters();
    }
}

pub mod oneshot {
    //! One value from one to another.

    use super::{Context, Future, Pin, Poll, point, real};

    pub use real::oneshot::error;

    #[derive(Debug)]
    pub struct Sender<T>(real::oneshot::Sender<T>);

    #[derive(Debug)]
    pub struct Receiver<T>(real::oneshot::Receiver<T>);

    pub fn channel<T>() -> (Sender<T>, Receiver<T>) {
        let (sender, receiver) = real::oneshot::channel();
        (Sender(sender), Receiver(receiver))
    }

    impl<T> Sender<T> {
        pub fn send(self, value: T) -> Result<(), T> {
            point();
            self.0.send(value)
        }
    }

    impl<T> Future for Receiver<T> {
        type Output = Result<T, error::RecvError>;

        fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
            point();
            Pin::new(&mut self.0).poll(context)
        }
    }
}
