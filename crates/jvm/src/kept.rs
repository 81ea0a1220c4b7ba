//! Exceptions that Java code threw while the engine called it.
//!
//! A comparator or merge operator runs inside the engine, which passes no exception on. The exception becomes the cause
//! of the one that the native method throws, if that is on the same thread, and of the one that says why a database's
//! writing is off.
//!
//! Owns: the two places that keep an exception, the thread's and the database's. Never does: throw.

#![allow(clippy::disallowed_types, reason = "held for a moment, by code that calls nobody")]

use crate::jvm::Global;
use std::cell::RefCell;
use std::sync::{Arc, Mutex, PoisonError};

thread_local! {
    static OF_THIS_CALL: RefCell<Option<Arc<Global>>> = const { RefCell::new(None) };
}

/// Begins a native method: drops the exception that an earlier method on this thread left.
pub(crate) fn begin() {
    let before = OF_THIS_CALL.with(|kept| kept.borrow_mut().take());
    drop(before);
}

/// Takes the exception that a callback threw since the native method began.
pub(crate) fn of_this_call() -> Option<Arc<Global>> {
    OF_THIS_CALL.with(|kept| kept.borrow_mut().take())
}

/// The exception that the callbacks of one database threw last.
#[derive(Default)]
pub(crate) struct Kept(Mutex<Option<Arc<Global>>>);

impl Kept {
    pub(crate) fn keep(&self, thrown: Global) {
        let thrown = Arc::new(thrown);
        // A thread at its very end keeps nothing.
        let _ = OF_THIS_CALL.try_with(|kept| kept.borrow_mut().replace(thrown.clone()));
        let before = self.0.lock().unwrap_or_else(PoisonError::into_inner).replace(thrown);
        drop(before);
    }

    pub(crate) fn last(&self) -> Option<Arc<Global>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
