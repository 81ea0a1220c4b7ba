//! Keys and values that are read in place, in direct buffers of Java.
//!
//! Owns: the checks of a buffer. Never does: keep its address after the call.

use crate::failure::{Failure, Outcome};
use crate::jvm::Env;
use jni_sys::{jint, jobject};
use std::slice;
use windrow::Error;

/// A part of a direct buffer, which the native method's frame keeps alive.
pub(crate) struct Direct {
    address: *mut u8,
    len: usize,
}

impl Direct {
    /// # Errors
    /// `InvalidArgument` for a buffer that is not direct, and a part that is not in it.
    pub(crate) fn new(
        env: Env,
        what: &'static str,
        buffer: jobject,
        position: jint,
        len: jint,
    ) -> Outcome<Direct> {
        if buffer.is_null() {
            return Err(Failure::Null(what));
        }
        let Some((address, capacity)) = env.direct(buffer) else {
            let text = format!("the {what} is not a direct buffer: make it by allocateDirect");
            return Err(Error::invalid(text).into());
        };
        let part = usize::try_from(position).ok().zip(usize::try_from(len).ok());
        match part {
            Some((position, len))
                if position.checked_add(len).is_some_and(|end| end <= capacity) =>
            {
                // SAFETY: the position is in the buffer.
                Ok(Direct { address: unsafe { address.add(position) }, len })
            }
            _ => Err(Error::invalid(format!("the {what} is not within its buffer")).into()),
        }
    }

    /// The bytes. Java must not change them during the call, as the documentation of `Keyspace`
    /// says.
    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: the buffer is as large, and alive while the native method has a reference to it.
        unsafe { slice::from_raw_parts(self.address, self.len) }
    }

    /// Writes the bytes that there is room for.
    pub(crate) fn fill(&mut self, bytes: &[u8]) {
        let len = bytes.len().min(self.len);
        // SAFETY: as above; Java's memory and the engine's do not overlap.
        unsafe { self.address.copy_from_nonoverlapping(bytes.as_ptr(), len) };
    }
}
