//! Tables of live handles.
//!
//! Java holds a number: the slot of a table, and the generation of the handle in that slot. A number whose handle was
//! closed finds another generation in the slot, or nothing, and is an error, not a pointer to freed memory. This holds
//! whichever thread closes the handle, and when: a call that found the handle before keeps it until the call returns.
//!
//! Rejected: a pointer with a flag in Java. Between a thread's check of the flag and its use of the pointer another
//! thread may close the handle, unless every call takes a lock, which a close then waits for.
//!
//! Owns: the slots. Never does: use a handle.

#![allow(clippy::disallowed_types, reason = "live for a moment, by code that calls nobody")]

use crate::failure::{Failure, Outcome};
use jni_sys::jlong;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};
use windrow::{Error, ErrorKind};

/// The number of slots that are allocated at once. They are never freed.
const CHUNK: usize = 256;
const CHUNKS: usize = 4096;

/// Handles of one kind.
pub(crate) struct Table<T> {
    /// The name of the kind in messages.
    what: &'static str,
    chunks: [OnceLock<Box<[Slot<T>]>>; CHUNKS],
    free: Mutex<Free>,
}

/// A slot has two cache lines to itself, so that threads with different handles do not share a line.
#[repr(align(128))]
struct Slot<T>(RwLock<Live<T>>);

struct Live<T> {
    generation: u32,
    handle: Option<Arc<T>>,
}

struct Free {
    slots: Vec<u32>,
    /// The first slot that was never used.
    next: u32,
}

impl<T> Table<T> {
    pub(crate) const fn new(what: &'static str) -> Table<T> {
        let free = Mutex::new(Free { slots: Vec::new(), next: 0 });
        Table { what, chunks: [const { OnceLock::new() }; CHUNKS], free }
    }

    /// Adds a handle. Returns its number for Java, which is not 0.
    pub(crate) fn add(&self, handle: T) -> Outcome<jlong> {
        let at = self.take_slot()?;
        let slot = &self.chunk(at)[at as usize % CHUNK];
        let mut live = slot.0.write().unwrap_or_else(PoisonError::into_inner);
        live.generation += 1;
        live.handle = Some(Arc::new(handle));
        Ok(i64::from(live.generation) << 32 | i64::from(at))
    }

    fn take_slot(&self) -> Outcome<u32> {
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(slot) = free.slots.pop() {
            return Ok(slot);
        }
        if free.next as usize == CHUNK * CHUNKS {
            let text = format!("{} of the kind {} are open: close some", free.next, self.what);
            return Err(Error::new(ErrorKind::Busy, text).into());
        }
        free.next += 1;
        Ok(free.next - 1)
    }

    fn chunk(&self, at: u32) -> &[Slot<T>] {
        let slot = |_| Slot(RwLock::new(Live { generation: 0, handle: None }));
        self.chunks[at as usize / CHUNK].get_or_init(|| (0..CHUNK).map(slot).collect())
    }

    fn slot(&self, number: jlong) -> Option<(&Slot<T>, u32)> {
        let at = (number & 0xffff_ffff) as usize;
        let chunk = self.chunks.get(at / CHUNK)?.get()?;
        Some((&chunk[at % CHUNK], (number >> 32) as u32))
    }

    /// Returns the handle of a number.
    ///
    /// # Errors
    /// `Closed`.
    #[inline]
    pub(crate) fn get(&self, number: jlong) -> Outcome<Arc<T>> {
        if let Some((slot, generation)) = self.slot(number) {
            let live = slot.0.read().unwrap_or_else(PoisonError::into_inner);
            if live.generation == generation
                && let Some(handle) = &live.handle
            {
                return Ok(handle.clone());
            }
        }
        Err(self.closed())
    }

    #[cold]
    fn closed(&self) -> Failure {
        Error::new(ErrorKind::Closed, format!("the {} is closed", self.what)).into()
    }

    /// Removes a handle and returns it; `None` where it was removed before.
    pub(crate) fn remove(&self, number: jlong) -> Option<Arc<T>> {
        let (slot, generation) = self.slot(number)?;
        let mut live = slot.0.write().unwrap_or_else(PoisonError::into_inner);
        if live.generation != generation {
            return None;
        }
        let handle = live.handle.take()?;
        drop(live);
        // After the last generation the slot is not used again.
        if generation < i32::MAX as u32 {
            let at = (number & 0xffff_ffff) as u32;
            self.free.lock().unwrap_or_else(PoisonError::into_inner).slots.push(at);
        }
        Some(handle)
    }

    /// Ends a handle that Java closes or forgets.
    pub(crate) fn end(&self, number: jlong) -> Outcome<()> {
        drop(self.remove(number));
        Ok(())
    }
}

/// A value that one thread uses at a time. A second thread is refused instead of waiting: the first may be waiting for
/// the second.
pub(crate) struct Alone<T>(Mutex<T>);

impl<T> Alone<T> {
    pub(crate) fn new(of: T) -> Alone<T> {
        Alone(Mutex::new(of))
    }

    /// # Errors
    /// `Busy` while another thread uses it; errors of `run`.
    pub(crate) fn with<R>(&self, run: impl FnOnce(&mut T) -> Outcome<R>) -> Outcome<R> {
        use std::sync::TryLockError;
        match self.0.try_lock() {
            Ok(mut of) => run(&mut of),
            Err(TryLockError::Poisoned(of)) => run(&mut of.into_inner()),
            Err(TryLockError::WouldBlock) => {
                let text = "it is in use by another thread: it is for one at a time";
                Err(Error::new(ErrorKind::Busy, text).into())
            }
        }
    }
}
