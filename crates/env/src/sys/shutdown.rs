//! The forced shutdown of a mounted file system, which has the effect of a power cut. The call is
//! from XFS; ext4 has the same number for it.
//!
//! Owns: the call. Never does: run outside of tests.

use crate::error::io_error;
use rustix::fs::{Mode, OFlags};
use rustix::ioctl::{Opcode, Setter};
use std::path::Path;
use windrow_base::Result;

/// `_IOR('X', 125, __u32)`: `XFS_IOC_GOINGDOWN`, `EXT4_IOC_SHUTDOWN`.
const SHUTDOWN: Opcode = 0x8004_587d;

/// The writes that the file system still does before it refuses all calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shutdown {
    /// Writes out all data, as if the power failed a moment later.
    FlushAll = 0,
    /// Writes out the journal, not the files' bytes.
    FlushJournal = 1,
    /// Writes nothing: data that has not reached the device is lost.
    FlushNothing = 2,
}

/// Shuts down the file system of `dir`: from here on nothing reaches its device until it is mounted
/// again. Needs the right to administer the system.
///
/// # Errors
/// `Io`, also if the file system does not have the call.
pub fn shut_down_file_system(dir: &Path, how: Shutdown) -> Result<()> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let fd = rustix::fs::open(dir, flags, Mode::empty())
        .map_err(|errno| io_error("open the directory", dir, errno))?;
    // SAFETY: the call reads one `u32` through its pointer and writes nothing, and a `Setter` of a
    // `u32` passes such a pointer.
    unsafe { rustix::ioctl::ioctl(&fd, Setter::<SHUTDOWN, u32>::new(how as u32)) }
        .map_err(|errno| io_error("shut down the file system of", dir, errno))
}
