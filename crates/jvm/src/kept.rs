//! What code of Java's threw while the engine called it.
//!
//! A comparator or merge operator runs somewhere inside of the engine, which passes no exception on. It becomes the
//! cause of the exception that the native method throws, if it is on the same thread, and of the one that says why a
//! database's writing is off.
//!
//! Owns: the two places. Never does: throw.

#![allow(clippy::disallowed_types, reason = "held for a moment, by code that calls nobody")]

use crate::jvm::Global;
use std::cell::RefCell;
use std::sync::{Arc, Mutex, PoisonError};

thread_local! {
    static OF_THIS_CALL: RefCell<Option<Arc<Global>>> = const { RefCell::new(None) };
}

/// A native method begins: what was kept for another one is none of its business.
pub(crate) fn begin() {
    let before = OF_THIS_CALL.with(|kept| kept.borrow_mut().take());
    drop(before);
}

/// What was thrown since the native method began.
pub(crate) fn of_this_call() -> Option<Arc<Global>> {
    OF_THIS_CALL.with(|kept| kept.borrow_mut().take())
}

/// What the code of one database threw last.
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
