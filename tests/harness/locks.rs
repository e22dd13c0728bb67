//! A lock that another test's panic does not poison.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// A panic elsewhere has been reported already; it must not hide behind a poisoned lock.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
