//! Handles of the engine in objects of Python.
//!
//! Owns: the rule that no handle is dropped with the interpreter's lock held. Never does: call the engine in any other
//! way.

#![allow(clippy::disallowed_types, reason = "a lock that is never waited for")]

use pyo3::Python;
use std::ops::{Deref, DerefMut};
use std::sync::{Mutex, PoisonError};

/// A handle. Its drop may close a database, which waits for jobs, which may wait for the interpreter's lock.
pub(crate) struct Handle<T: Send>(Option<T>);

impl<T: Send> Handle<T> {
    pub(crate) fn new(handle: T) -> Handle<T> {
        Handle(Some(handle))
    }
}

impl<T: Send> Deref for Handle<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.0.as_ref().expect("it is there until the end")
    }
}

impl<T: Send> DerefMut for Handle<T> {
    fn deref_mut(&mut self) -> &mut T {
        self.0.as_mut().expect("it is there until the end")
    }
}

impl<T: Send> Drop for Handle<T> {
    fn drop(&mut self) {
        let handle = self.0.take();
        // While the interpreter ends, the handle is dropped without it: no job waits for the lock any more.
        let _ = Python::try_attach(|py| py.detach(|| drop(handle)));
    }
}

/// A value for one thread at a time, which Python may pass from thread to thread: it is reached through `&mut` alone.
pub(crate) struct Alone<T: Send>(Mutex<T>);

impl<T: Send> Alone<T> {
    pub(crate) fn new(of: T) -> Alone<T> {
        Alone(Mutex::new(of))
    }

    pub(crate) fn get(&mut self) -> &mut T {
        self.0.get_mut().unwrap_or_else(PoisonError::into_inner)
    }
}
