//! The state of a crash file system, and the gate that every operation passes: it counts and traces
//! the operation, and decides whether it fails, and how.
//!
//! Owns: names, files, locks, counters and faults. Never does: damage anything by itself
//! (`power_loss.rs`).

use super::directory::{Directory, InodeRef, NameOp};
use super::fault::{Fault, FaultId, FaultKind, Ops, When};
use super::inode::Inode;
use super::random::Rng;
use crate::error::io_error;
use crate::fs::{EntryKind, FileId, Stamp};
use crate::lock_ranks;
use crate::space::next_step;
use crate::sync::{Arc, Mutex};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use windrow_base::{Error, ErrorKind, Result};

/// The gate's decision on an operation.
pub(super) enum Effect {
    Whole,
    /// A part of it happens, drawn from the number, and then this error.
    Part(u64, Error),
    LoseSync,
    /// All of it happens, but only in the cache.
    LoseWrite,
    /// All of it happens, with one bit flipped, drawn from the number.
    FlipBit(u64),
    /// All of it happens, with one sector in another place, drawn from the number.
    Misdirect(u64),
    /// A part of the bytes is read, drawn from the number.
    ShortRead(u64),
}

/// One operation at the gate.
pub(super) struct FileOperation<'a> {
    pub(super) op: Ops,
    pub(super) path: &'a Path,
    pub(super) offset: u64,
    pub(super) len: u64,
    /// Checksum of what is written, for the trace.
    pub(super) content: u32,
}

impl<'a> FileOperation<'a> {
    pub(super) fn on(op: Ops, path: &'a Path) -> FileOperation<'a> {
        FileOperation { op, path, offset: 0, len: 0, content: 0 }
    }
}

pub(super) struct Injected {
    pub(super) id: FaultId,
    pub(super) fault: Fault,
    /// The number of operations that have matched.
    pub(super) matched: u64,
}

/// An action of another process just before a file is opened.
pub(super) struct Visit {
    /// The text that the opened paths contain.
    pub(super) path: String,
    /// The number of files to open before.
    pub(super) opens_left: u64,
    pub(super) act: Box<dyn FnOnce() + Send>,
}

/// A directory that is held open: the path that it was opened by, and its id.
pub(super) type CrashAnchor = (PathBuf, u64);

/// The object of a lock: a name in a directory, under any name of the directory.
pub(super) type PathLockKey = (u64, String);

/// The holders of the lock on a path.
#[derive(Clone, Copy)]
pub(super) struct Holders {
    pub(super) exclusive: bool,
    pub(super) count: u32,
}

pub(super) struct CrashState {
    pub(super) dirs: BTreeMap<PathBuf, Directory>,
    pub(super) locks: BTreeMap<PathLockKey, Holders>,
    pub(super) faults: Vec<Injected>,
    pub(super) visits: Vec<Visit>,
    /// Whether faults do not strike, and descriptors are not counted.
    pub(super) quiet: bool,
    /// Handles of an earlier generation are dead.
    pub(super) generation: u64,
    pub(super) next_id: u64,
    pub(super) operations: u64,
    pub(super) reads: u64,
    pub(super) syncs: u64,
    pub(super) crash_at: Option<u64>,
    /// Whether everything fails until `crash` or `kill`.
    pub(super) dead: bool,
    pub(super) capacity_bytes: Option<u64>,
    pub(super) open_files_max: usize,
    /// The most files that may be open at a time; `None`: any number.
    pub(super) descriptors_max: Option<usize>,
    /// Counts the files that are open in this process: each handle holds a clone.
    pub(super) descriptors: Arc<()>,
    pub(super) trace: u64,
    pub(super) rng: Rng,
}

impl CrashState {
    pub(super) fn new(seed: u64) -> CrashState {
        let root = |(path, id)| (PathBuf::from(path), Directory { id, ..Directory::default() });
        let roots = [("", 1), ("/", 2)].map(root);
        CrashState {
            dirs: BTreeMap::from(roots),
            locks: BTreeMap::new(),
            faults: Vec::new(),
            visits: Vec::new(),
            quiet: false,
            generation: 0,
            next_id: 2,
            operations: 0,
            reads: 0,
            syncs: 0,
            crash_at: None,
            dead: false,
            capacity_bytes: None,
            open_files_max: 1_000,
            descriptors_max: None,
            descriptors: Arc::default(),
            trace: 0,
            rng: Rng::new(seed),
        }
    }

    /// Takes the action that is due before a file is opened now.
    pub(super) fn take_visit(&mut self, path: &Path) -> Option<Box<dyn FnOnce() + Send>> {
        let text = path.to_string_lossy();
        let at = self.visits.iter().position(|visit| text.contains(&visit.path))?;
        match self.visits[at].opens_left.checked_sub(1) {
            Some(left) => {
                self.visits[at].opens_left = left;
                None
            }
            None => Some(self.visits.remove(at).act),
        }
    }

    /// Counts and traces an operation, and decides its effect.
    pub(super) fn begin(&mut self, attempt: &FileOperation<'_>) -> Result<Effect> {
        if self.dead {
            return Err(power_is_off(attempt.path));
        }
        let reading = attempt.op.intersects(Ops::READING);
        let counter = if reading { &mut self.reads } else { &mut self.operations };
        let index = *counter;
        *counter += 1;
        self.syncs += u64::from(attempt.op.intersects(Ops::SYNC | Ops::SYNC_DIR));
        self.fold(attempt);
        if !reading && self.crash_at.is_some_and(|at| at <= index) {
            self.dead = true;
            return Ok(Effect::Part(self.rng.next_u64(), power_is_off(attempt.path)));
        }
        let Some(kind) = self.strike(attempt, index) else { return Ok(Effect::Whole) };
        self.trace = mix(self.trace, 1 + kind as u64);
        let errno = match kind {
            FaultKind::Io => 5,
            FaultKind::NoSpace => 28,
            FaultKind::TooManyFiles => 24,
            FaultKind::Interrupted => 4,
            FaultKind::ShortRead => return Ok(Effect::ShortRead(self.rng.next_u64())),
            FaultKind::LostSync => return Ok(Effect::LoseSync),
            FaultKind::LostWrite => return Ok(Effect::LoseWrite),
            FaultKind::FlipBit => return Ok(Effect::FlipBit(self.rng.next_u64())),
            FaultKind::Misdirect => return Ok(Effect::Misdirect(self.rng.next_u64())),
            FaultKind::Panic => panic!("a fault at {} (simulated)", attempt.path.display()),
            FaultKind::NotSupported => return Ok(Effect::Part(0, not_supported(attempt.path))),
        };
        Ok(Effect::Part(self.rng.next_u64(), os_error(errno, attempt.path)))
    }

    /// As [`CrashState::begin`], for an operation through a handle.
    pub(super) fn begin_on(
        &mut self,
        generation: u64,
        attempt: &FileOperation<'_>,
    ) -> Result<Effect> {
        if generation != self.generation {
            return Err(power_is_off(attempt.path).context("the handle is from before a crash"));
        }
        self.begin(attempt)
    }

    /// Whether one more file may be opened.
    pub(super) fn check_descriptors(&self, path: &Path) -> Result<()> {
        // The state holds one clone itself.
        let open = Arc::strong_count(&self.descriptors) - 1;
        match self.descriptors_max {
            Some(max) if open >= max && !self.quiet => Err(os_error(24, path)),
            _ => Ok(()),
        }
    }

    fn strike(&mut self, attempt: &FileOperation<'_>, index: u64) -> Option<FaultKind> {
        let mut struck = None;
        if self.quiet {
            return struck;
        }
        for injected in &mut self.faults {
            let fault = &injected.fault;
            if !fault.on.intersects(attempt.op) || !fault.names(attempt.path) {
                continue;
            }
            let nth = injected.matched;
            injected.matched += 1;
            let hit = match fault.when {
                When::Matching(n) => nth == n,
                When::MatchingFrom(n) => nth >= n,
                When::Operation(n) => index == n,
                When::OperationFrom(n) => index >= n,
                When::Probability(p) => self.rng.chance(p),
            };
            if hit {
                struck = struck.or(Some(fault.kind));
            }
        }
        struck
    }

    fn fold(&mut self, attempt: &FileOperation<'_>) {
        let path = crate::checksum::crc32c(attempt.path.as_os_str().as_encoded_bytes());
        for word in [
            u64::from(attempt.op.bits()) << 32 | u64::from(path),
            attempt.offset,
            attempt.len << 32 | u64::from(attempt.content),
        ] {
            self.trace = mix(self.trace, word);
        }
    }

    /// Resolves a path under directories that are held open: a path that begins with the path of
    /// such a directory leads into it, wherever it is now.
    pub(super) fn resolve(&self, anchors: &[CrashAnchor], path: &Path) -> PathBuf {
        let path = normal(path);
        let within = anchors.iter().filter(|(anchor, _)| path.starts_with(anchor));
        let Some((anchor, id)) = within.max_by_key(|(anchor, _)| anchor.as_os_str().len()) else {
            return path;
        };
        let stays = self.dirs.get(anchor).is_some_and(|dir| dir.id == *id);
        if stays {
            return path;
        }
        let rest = path.strip_prefix(anchor).expect("filtered by it");
        match self.dirs.iter().find(|(_, dir)| dir.id == *id) {
            Some((moved, _)) => normal(&moved.join(rest)),
            // The directory was removed, and everything in it.
            None => PathBuf::from("/directory that was removed").join(rest),
        }
    }

    /// The entry of a name.
    pub(super) fn stamp(&mut self, path: &Path) -> Option<Stamp> {
        let entry = |kind, inode, bytes, changed_ns| {
            Some(Stamp { kind, id: FileId { device: 1, inode }, bytes, changed_ns })
        };
        if let Ok(dir) = self.dir(path) {
            return entry(EntryKind::Directory, dir.id, 0, 0);
        }
        let node = self.node(path).ok()?;
        let inode = node.lock();
        entry(EntryKind::File, inode.id, inode.visible.len(), inode.changes)
    }

    /// The directory and name of a path.
    pub(super) fn place(&mut self, path: &Path) -> Result<(&mut Directory, String)> {
        let (parent, name) = split(path)?;
        match self.dirs.get_mut(&parent) {
            Some(dir) if !dir.removed => Ok((dir, name)),
            _ => Err(os_error(2, path)),
        }
    }

    pub(super) fn dir(&mut self, path: &Path) -> Result<&mut Directory> {
        match self.dirs.get_mut(&normal(path)) {
            Some(dir) if !dir.removed => Ok(dir),
            _ => Err(os_error(2, path)),
        }
    }

    pub(super) fn is_dir(&self, path: &Path) -> bool {
        self.dirs.get(&normal(path)).is_some_and(|dir| !dir.removed)
    }

    /// The file of this name.
    pub(super) fn node(&mut self, path: &Path) -> Result<InodeRef> {
        if self.is_dir(path) {
            return Err(os_error(21, path));
        }
        let (dir, name) = self.place(path)?;
        dir.visible.get(&name).cloned().ok_or_else(|| os_error(2, path))
    }

    /// A new file of this name.
    pub(super) fn create_node(&mut self, path: &Path, buffered: bool) -> Result<InodeRef> {
        match self.node(path) {
            Ok(_) => Err(os_error(17, path)),
            Err(error) if !crate::fs::is_not_found(&error) => Err(error),
            Err(_) => {
                self.next_id += 1;
                let node = Arc::new(Mutex::new(
                    lock_ranks::CRASH_FILE,
                    Inode::new(self.next_id, buffered),
                ));
                let (dir, name) = self.place(path)?;
                dir.change(NameOp::Link(name, node.clone()));
                Ok(node)
            }
        }
    }

    /// Bytes of all files that have a name.
    pub(super) fn used_bytes(&self) -> u64 {
        let mut seen = BTreeSet::new();
        let nodes = self.dirs.values().flat_map(|dir| dir.visible.values());
        nodes
            .map(|node| {
                let inode = node.lock();
                if seen.insert(inode.id) { inode.used_bytes() } else { 0 }
            })
            .sum()
    }

    pub(super) fn free_bytes(&self) -> u64 {
        match self.capacity_bytes {
            Some(capacity) => capacity.saturating_sub(self.used_bytes()),
            None => u64::MAX,
        }
    }

    /// Reserves space for a log up to `end` at least; `false` if there is no space.
    pub(super) fn reserve(&mut self, node: &InodeRef, end: u64) -> bool {
        let free_bytes = self.free_bytes();
        let mut inode = node.lock();
        let Some(reserved) = inode.reserved.filter(|&reserved| reserved < end) else {
            return true;
        };
        let ahead = next_step(reserved, end, inode.visible.len(), free_bytes);
        let fitting = if ahead - reserved <= free_bytes { ahead } else { end };
        let fits = fitting - reserved <= free_bytes;
        if fits {
            inode.reserved = Some(fitting);
        }
        fits
    }

    /// Writes the bytes that the effect and the capacity allow.
    pub(super) fn write(
        &mut self,
        node: &InodeRef,
        path: &Path,
        effect: Effect,
        offset: u64,
        bytes: &[u8],
    ) -> Result<()> {
        let end = offset + bytes.len() as u64;
        if !self.reserve(node, end) {
            return Err(os_error(28, path));
        }
        let free_bytes = self.free_bytes();
        let mut inode = node.lock();
        let is_log = inode.reserved.is_some();
        let growth = if is_log { 0 } else { end.saturating_sub(inode.visible.len()) };
        if growth > free_bytes {
            let fitting = (bytes.len() as u64).saturating_sub(growth - free_bytes);
            inode.write(offset, &bytes[..fitting as usize]);
            return Err(os_error(28, path));
        }
        match effect {
            Effect::Whole | Effect::LoseSync | Effect::ShortRead(_) => inode.write(offset, bytes),
            Effect::LoseWrite => inode.visible.write(offset, bytes),
            Effect::Misdirect(draw) => inode.write_misdirected(offset, bytes, draw),
            Effect::FlipBit(at) => {
                let mut wrong = bytes.to_vec();
                flip_bit(&mut wrong, at);
                inode.write(offset, &wrong);
            }
            Effect::Part(draw, error) => {
                let kept = draw % (bytes.len() as u64 + 1);
                inode.write(offset, &bytes[..kept as usize]);
                return Err(error);
            }
        }
        Ok(())
    }

    pub(super) fn sync(&mut self, node: &InodeRef, effect: Effect) -> Result<()> {
        let mut inode = node.lock();
        match effect {
            Effect::Part(_, error) => {
                // After a crash during the sync, a power loss may still damage the pending changes.
                if !self.dead {
                    inode.sync_failed();
                }
                Err(error)
            }
            Effect::LoseSync => Ok(()),
            _ => {
                inode.sync();
                Ok(())
            }
        }
    }
}

/// For a change that happens wholly or not at all: returns whether it happens, and its result.
pub(super) fn all_or_nothing(effect: Effect) -> (bool, Result<()>) {
    match effect {
        Effect::Part(draw, error) => (draw & 1 == 1, Err(error)),
        _ => (true, Ok(())),
    }
}

pub(super) fn flip_bit(bytes: &mut [u8], draw: u64) {
    if !bytes.is_empty() {
        let bit = draw % (bytes.len() as u64 * 8);
        bytes[(bit / 8) as usize] ^= 1 << (bit % 8);
    }
}

/// The path without `.` and doubled or trailing slashes.
pub(super) fn normal(path: &Path) -> PathBuf {
    path.components().filter(|c| !matches!(c, std::path::Component::CurDir)).collect()
}

pub(super) fn split(path: &Path) -> Result<(PathBuf, String)> {
    let path = normal(path);
    match (path.parent(), path.file_name().and_then(|name| name.to_str())) {
        (Some(parent), Some(name)) => Ok((parent.to_path_buf(), name.to_string())),
        _ => Err(os_error(22, &path)),
    }
}

pub(super) fn os_error(errno: i32, path: &Path) -> Error {
    io_error("do this (simulated)", path, io::Error::from_raw_os_error(errno))
}

fn not_supported(path: &Path) -> Error {
    let error = Error::new(ErrorKind::NotSupported, "the file system cannot do this (simulated)");
    error.with_file(path.display().to_string())
}

fn power_is_off(path: &Path) -> Error {
    io_error("do this (simulated)", path, io::Error::other("the power is off"))
}

fn mix(hash: u64, word: u64) -> u64 {
    (hash.rotate_left(23) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}
