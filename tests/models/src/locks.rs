//! The locks of `parking_lot`, over shuttle's.

use real_std::{
    fmt,
    ops::{Deref, DerefMut},
    sync::{
        PoisonError,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
};

use crate::{point, time::Instant};

/// A lock that nobody poisons.
#[derive(Default)]
pub struct Mutex<T>(shuttle::sync::Mutex<T>);

/// The right to what a lock guards.
pub struct MutexGuard<'a, T> {
    lock: &'a Mutex<T>,
    /// `None` while a wait has unlocked it.
    guard: Option<shuttle::sync::MutexGuard<'a, T>>,
}

impl<T> Mutex<T> {
    pub const fn new(value: T) -> Self {
        Self(shuttle::sync::Mutex::new(value))
    }

    pub fn lock(&self) -> MutexGuard<'_, T> {
        MutexGuard { lock: self, guard: Some(self.0.lock().unwrap_or_else(PoisonError::into_inner)) }
    }
}

impl<T: fmt::Debug> fmt::Debug for Mutex<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.lock().fmt(f)
    }
}

impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.guard.as_ref().expect("nobody waits with it")
    }
}

impl<T> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.guard.as_mut().expect("nobody waits with it")
    }
}

impl<T: fmt::Debug> fmt::Debug for MutexGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

/// Waits of threads that hold a lock. One thread waits at a time.
#[derive(Default)]
pub struct Condvar {
    news: shuttle::sync::Condvar,
    told: AtomicUsize,
}

impl Condvar {
    pub fn wait<T>(&self, guard: &mut MutexGuard<'_, T>) {
        let held = guard.guard.take().expect("nobody waits with it");
        guard.guard = Some(self.news.wait(held).unwrap_or_else(PoisonError::into_inner));
    }

    /// Waits for news or until `deadline`. A thread that waits so may go on whenever the scheduler wants, because the other
    /// threads may be as slow as they like: without news, the time has come then. Tells whether it has.
    pub fn wait_until<T>(&self, guard: &mut MutexGuard<'_, T>, deadline: Instant) -> bool {
        let before = self.told.load(Relaxed);
        guard.guard = None;
        point();
        let again = guard.lock.0.lock().unwrap_or_else(PoisonError::into_inner);
        guard.guard = Some(again);
        let has_come = self.told.load(Relaxed) == before;
        if has_come {
            deadline.comes();
        }
        has_come
    }

    pub fn notify_one(&self) {
        self.news.notify_one();
        self.told.fetch_add(1, Relaxed);
    }
}

impl fmt::Debug for Condvar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Condvar")
    }
}

/// A lock of many readers that nobody poisons.
#[derive(Debug, Default)]
pub struct RwLock<T>(shuttle::sync::RwLock<T>);

impl<T> RwLock<T> {
    pub const fn new(value: T) -> Self {
        Self(shuttle::sync::RwLock::new(value))
    }

    pub fn read(&self) -> shuttle::sync::RwLockReadGuard<'_, T> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn write(&self) -> shuttle::sync::RwLockWriteGuard<'_, T> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}
