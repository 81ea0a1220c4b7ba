//! The unsafe rim of the environment: aligned memory, mapped log windows,
//! the io_uring submission, and a few system calls that have no safe wrapper.
//!
//! Its functions are safe to call in any order.
//!
//! Owns: every `unsafe` block of this crate, each with the promise that it relies on. Never does:
//! decide anything.

#![allow(unsafe_code)]

pub(crate) mod aligned;
pub(crate) mod buffer;
#[cfg(any(test, feature = "testing"))]
pub(crate) mod fork;
#[cfg(any(test, feature = "testing"))]
pub(crate) mod heap;
mod mapping;
mod mapping_pool;
pub(crate) mod prefetch;
pub(crate) mod process;
mod region;
mod region_pool;
pub(crate) mod ring;
pub(crate) mod sched;
#[cfg(any(test, feature = "testing"))]
pub(crate) mod shutdown;
pub(crate) mod threads;
pub(crate) mod window;
pub(crate) mod writeback;
