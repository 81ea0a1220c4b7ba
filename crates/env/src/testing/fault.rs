//! Faults to inject: the operations, paths, moments and kinds of failures.
//!
//! Owns: the description of a fault. Never does: strike (`crash_state.rs`).

use std::ops::BitOr;
use std::path::Path;

/// A set of kinds of operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ops(u32);

impl Ops {
    /// Creating a file, logs included.
    pub const CREATE: Ops = Ops(1);
    /// Opening a file for reading.
    pub const OPEN: Ops = Ops(1 << 1);
    /// Reading from a file.
    pub const READ: Ops = Ops(1 << 2);
    /// Appending to a file, or writing to a log.
    pub const WRITE: Ops = Ops(1 << 3);
    /// Syncing a file, finishing it included.
    pub const SYNC: Ops = Ops(1 << 4);
    /// Syncing a directory.
    pub const SYNC_DIR: Ops = Ops(1 << 5);
    /// Renaming a file.
    pub const RENAME: Ops = Ops(1 << 6);
    /// Removing a file.
    pub const REMOVE: Ops = Ops(1 << 7);
    /// Making a hard link.
    pub const LINK: Ops = Ops(1 << 8);
    /// Creating a directory.
    pub const CREATE_DIR: Ops = Ops(1 << 10);
    /// Removing a directory.
    pub const REMOVE_DIR: Ops = Ops(1 << 11);
    /// Taking an exclusive lock, which writes the pid.
    pub const LOCK: Ops = Ops(1 << 12);
    /// Listing a directory, asking whether a file exists and how long it is.
    pub const LOOK: Ops = Ops(1 << 13);
    /// Reserving space for a log ahead of a write.
    pub const RESERVE: Ops = Ops(1 << 14);
    /// All operations that change nothing: counted by `CrashFs::reads`.
    pub const READING: Ops = Ops(Ops::OPEN.0 | Ops::READ.0 | Ops::LOOK.0);
    /// All other operations: counted by `CrashFs::operations`.
    pub const MUTATING: Ops = Ops(Ops::ALL.0 & !Ops::READING.0);
    /// All operations.
    pub const ALL: Ops = Ops((1 << 15) - 1);

    /// Whether the two have a kind in common.
    pub fn intersects(self, other: Ops) -> bool {
        self.0 & other.0 != 0
    }

    pub(super) fn bits(self) -> u32 {
        self.0
    }
}

impl BitOr for Ops {
    type Output = Ops;

    fn bitor(self, other: Ops) -> Ops {
        Ops(self.0 | other.0)
    }
}

/// How an operation fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// `EIO`. A write may have reached the file in part. A sync has lost the unsynced bytes, and
    /// the next one succeeds.
    Io,
    /// `ENOSPC`, otherwise as [`FaultKind::Io`].
    NoSpace,
    /// `EMFILE`: no descriptors left.
    TooManyFiles,
    /// `EINTR` that no lower layer has retried, otherwise as [`FaultKind::Io`].
    Interrupted,
    /// A read returns a part of the bytes, as at the end of a shorter file.
    ShortRead,
    /// A sync reports success and does nothing, as with a device that lies. The changes stay
    /// pending.
    LostSync,
    /// A write reports success, and the cache shows it; the device never gets it, not even by later
    /// syncs.
    LostWrite,
    /// One bit is flipped in the bytes that are read or written.
    FlipBit,
    /// One sector of a write goes to another place of the file, a few sectors further on or back.
    /// It overwrites the bytes there, and the sector's own place keeps its old bytes.
    Misdirect,
    /// The operation panics before it does anything, as if by a defect of its caller.
    Panic,
    /// The file system has no such operation, as some have no links.
    NotSupported,
}

/// The moment at which a fault strikes. Indexes are from 0.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum When {
    /// At the n-th operation that matches, counted from the injection; once.
    Matching(u64),
    /// At the n-th operation that matches, and every later one.
    MatchingFrom(u64),
    /// At the operation with this index (of `CrashFs::operations` if it is
    /// mutating, else of `CrashFs::reads`), if it matches; once.
    Operation(u64),
    /// At that operation and every later one that matches.
    OperationFrom(u64),
    /// At each operation that matches, with this probability.
    Probability(f64),
}

/// A fault to inject.
#[derive(Clone, Debug)]
pub struct Fault {
    /// The kind of failure.
    pub kind: FaultKind,
    /// The operations that it strikes.
    pub on: Ops,
    /// The text that the struck paths contain; empty for all paths.
    pub path: String,
    /// The moment at which it strikes.
    pub when: When,
}

impl Fault {
    /// A fault on operations of any path.
    pub fn new(kind: FaultKind, on: Ops, when: When) -> Fault {
        Fault { kind, on, path: String::new(), when }
    }

    pub(super) fn names(&self, path: &Path) -> bool {
        self.path.is_empty() || path.to_string_lossy().contains(&self.path)
    }

    /// Limits the fault to paths that contain `text`.
    #[must_use]
    pub fn on_path(mut self, text: &str) -> Fault {
        self.path = text.to_string();
        self
    }
}

/// The id of an injected fault, to remove it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FaultId(pub(super) u64);
