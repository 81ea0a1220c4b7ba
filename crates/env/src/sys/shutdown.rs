//! The forced shutdown of a mounted file system: a power cut without the
//! machine. XFS invented the call, ext4 answers to the same number.

use crate::error::io_error;
use rustix::fs::{Mode, OFlags};
use rustix::ioctl::{Opcode, Setter};
use std::path::Path;
use windrow_base::Result;

/// `_IOR('X', 125, __u32)`: `XFS_IOC_GOINGDOWN`, `EXT4_IOC_SHUTDOWN`.
const SHUTDOWN: Opcode = 0x8004_587d;

/// What the file system still does before it refuses everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shutdown {
    /// Writes out all it has: the plug is pulled a moment too late.
    FlushAll = 0,
    /// Writes out its journal, not the files' bytes.
    FlushJournal = 1,
    /// Nothing: what has not reached the device is gone.
    FlushNothing = 2,
}

/// Ends the file system that `dir` lies on: from here on nothing reaches its
/// device until it is mounted again. Needs the right to administer the system.
///
/// # Errors
/// `Io`, also where the file system does not know the call.
pub fn shut_down_file_system(dir: &Path, how: Shutdown) -> Result<()> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let fd = rustix::fs::open(dir, flags, Mode::empty())
        .map_err(|errno| io_error("open the directory", dir, errno))?;
    // SAFETY: the call reads one `u32` through its pointer and writes nothing,
    // which is what a `Setter` of a `u32` passes.
    unsafe { rustix::ioctl::ioctl(&fd, Setter::<SHUTDOWN, u32>::new(how as u32)) }
        .map_err(|errno| io_error("shut down the file system of", dir, errno))
}
