//! A file system in memory that gives weaker guarantees than ext4: the test's interface to it.
//!
//! Bytes are durable after their file was synced, names after their directory was;
//! [`CrashFs::crash`] may damage everything else. Operations are counted, so that a test can crash
//! or fail at exactly the n-th, and traced, so that two runs can be shown to be equal.
//!
//! Owns: crashes, injected faults, and the test's direct changes. Never does: touch the real file
//! system, or a clock.

use super::crash_state::{CrashAnchor, CrashState, Injected, Visit, normal, split};
use super::directory::{Directory, InodeRef};
use super::fault::{Fault, FaultId};
use super::image::Image;
use super::inode::Inode;
use super::power_loss::{NameDamage, PowerLoss, damage_file, damage_names};
use super::random::Rng;
use crate::lock_ranks;
use crate::sync::{Arc, Mutex};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The file system; clones share it.
#[derive(Clone)]
pub struct CrashFs {
    pub(super) shared: Arc<Mutex<CrashState>>,
    /// Directories that this handle holds open.
    pub(super) anchors: Vec<CrashAnchor>,
}

impl CrashFs {
    /// An empty file system with the directory `/` (and `.`, for relative paths). The seed draws
    /// the effects of partial failures.
    pub fn new(seed: u64) -> CrashFs {
        CrashFs {
            shared: Arc::new(Mutex::new(lock_ranks::CRASH_FS, CrashState::new(seed))),
            anchors: Vec::new(),
        }
    }

    /// The number of mutating operations attempted so far.
    pub fn operations(&self) -> u64 {
        self.shared.lock().operations
    }

    /// The number of reading operations attempted so far.
    pub fn reads(&self) -> u64 {
        self.shared.lock().reads
    }

    /// The number of syncs of files and directories attempted so far.
    pub fn syncs(&self) -> u64 {
        self.shared.lock().syncs
    }

    /// A hash over every operation with its path, place and contents.
    pub fn trace_hash(&self) -> u64 {
        self.shared.lock().trace
    }

    /// From the mutating operation with this index (from 0, as
    /// [`CrashFs::operations`] counts) on everything fails, until
    /// [`CrashFs::crash`] or [`CrashFs::kill`]. That operation itself may have
    /// taken effect, in part or whole, unacknowledged.
    pub fn crash_at(&self, operation: u64) {
        self.shared.lock().crash_at = Some(operation);
    }

    /// From now on everything fails, as after the operation of [`CrashFs::crash_at`].
    pub fn halt(&self) {
        self.shared.lock().dead = true;
    }

    /// Whether the operation of [`CrashFs::crash_at`] was reached.
    pub fn is_dead(&self) -> bool {
        self.shared.lock().dead
    }

    /// Loses power: damages everything that was not synced, as drawn from the seed. Handles and
    /// locks from before are dead. Faults stay injected.
    pub fn crash(&self, seed: u64) {
        self.crash_with(PowerLoss { seed, ..PowerLoss::default() });
    }

    /// Loses power with a chosen kind of damage.
    pub fn crash_with(&self, loss: PowerLoss) {
        let mut state = self.shared.lock();
        state.restart();
        let mut rng = Rng::new(loss.seed);
        state.lose_dirs(&loss, &mut rng);
        let mut nodes: BTreeMap<u64, InodeRef> = BTreeMap::new();
        for dir in state.dirs.values_mut() {
            damage_names(dir, &loss, &mut rng);
            nodes.extend(dir.visible.values().map(|node| (node.lock().id, node.clone())));
        }
        // In the order of their creation, so that a seed always means the same.
        let nodes: Vec<InodeRef> = nodes.into_values().collect();
        for node in &nodes {
            let draw = rng.next_u64();
            if node.lock().pending.is_empty() {
                // A failed sync leaves a cache that differs from the device.
                let mut inode = node.lock();
                inode.visible = inode.durable.clone();
                continue;
            }
            let donor = &nodes[(draw % nodes.len() as u64) as usize];
            let donor = (!Arc::ptr_eq(donor, node)).then(|| donor.lock().durable.clone());
            damage_file(&mut node.lock(), &loss, &mut rng, donor.as_ref());
        }
    }

    /// Kills the process, not the machine: bytes that reached the kernel stay visible and stay
    /// unsynced; files written through a buffer may lose their tail. Handles and locks from before
    /// are dead.
    pub fn kill(&self, seed: u64) {
        let mut state = self.shared.lock();
        state.restart();
        let mut rng = Rng::new(seed);
        let mut nodes: BTreeMap<u64, InodeRef> = BTreeMap::new();
        for dir in state.dirs.values() {
            nodes.extend(dir.visible.values().map(|node| (node.lock().id, node.clone())));
        }
        for node in nodes.into_values() {
            let mut inode = node.lock();
            if !inode.buffered || inode.pending.is_empty() {
                continue;
            }
            let kept = rng.below(inode.pending.len() as u64 + 1) as usize;
            inode.pending.truncate(kept);
            let mut visible = inode.durable.clone();
            inode.pending.iter().for_each(|op| op.apply(&mut visible));
            inode.visible = visible;
        }
    }

    /// Injects a fault; several may be active.
    pub fn inject(&self, fault: Fault) -> FaultId {
        let mut state = self.shared.lock();
        state.next_id += 1;
        let id = FaultId(state.next_id);
        state.faults.push(Injected { id, fault, matched: 0 });
        id
    }

    /// Removes a fault.
    pub fn remove_fault(&self, id: FaultId) {
        self.shared.lock().faults.retain(|injected| injected.id != id);
    }

    /// Runs `act` once, just before a file whose path contains `text` is opened for reading, after
    /// `opens` others of such a path: it acts as another process between two opens of a reader. No
    /// lock of the file system is held then.
    pub fn before_open(&self, text: &str, opens: u64, act: impl FnOnce() + Send + 'static) {
        let visit = Visit { path: text.to_owned(), opens_left: opens, act: Box::new(act) };
        self.shared.lock().visits.push(visit);
    }

    /// Removes all faults.
    pub fn clear_faults(&self) {
        self.shared.lock().faults.clear();
    }

    /// While the file system is quiet no fault strikes and descriptors do not run out, so that a
    /// harness can examine its files.
    pub fn set_quiet(&self, quiet: bool) {
        self.shared.lock().quiet = quiet;
    }

    /// The bytes that fit on the device; `None`: any number.
    pub fn capacity_bytes(&self) -> Option<u64> {
        self.shared.lock().capacity_bytes
    }

    /// Limits the device to this many bytes of file lengths; `None` is endless.
    pub fn set_capacity(&self, capacity_bytes: Option<u64>) {
        self.shared.lock().capacity_bytes = capacity_bytes;
    }

    /// The bytes of all files that have a name.
    pub fn used_bytes(&self) -> u64 {
        self.shared.lock().used_bytes()
    }

    /// Sets the result of `open_files_max` (1,000 at first). It is not enforced;
    /// [`CrashFs::set_descriptors_max`] sets a limit that is.
    pub fn set_open_files_max(&self, count: usize) {
        self.shared.lock().open_files_max = count;
    }

    /// Limits the number of files that may be open at a time; opening one more gives `EMFILE`.
    /// `None` is no limit. Locks and directories count as none.
    pub fn set_descriptors_max(&self, count: Option<usize>) {
        self.shared.lock().descriptors_max = count;
    }

    /// The number of files that are open now.
    pub fn descriptors(&self) -> usize {
        Arc::strong_count(&self.shared.lock().descriptors) - 1
    }

    /// A separate copy, with the same files, unsynced changes, counters and faults. Open handles
    /// stay with the original.
    #[must_use]
    pub fn fork(&self) -> CrashFs {
        let state = self.shared.lock();
        let mut copies: BTreeMap<u64, InodeRef> = BTreeMap::new();
        let mut dirs = state.dirs.clone();
        for dir in dirs.values_mut() {
            for node in dir.nodes_mut() {
                let inode = node.lock().clone();
                let copy = copies
                    .entry(inode.id)
                    .or_insert_with(|| Arc::new(Mutex::new(lock_ranks::CRASH_FILE, inode)))
                    .clone();
                *node = copy;
            }
        }
        let faults = state
            .faults
            .iter()
            .map(|i| Injected { id: i.id, fault: i.fault.clone(), matched: i.matched })
            .collect();
        let copy = CrashState {
            dirs,
            locks: BTreeMap::new(),
            faults,
            visits: Vec::new(),
            // No handle of the original works on the copy, nor vice versa.
            generation: state.generation,
            descriptors: Arc::default(),
            rng: state.rng.clone(),
            ..*state
        };
        CrashFs {
            shared: Arc::new(Mutex::new(lock_ranks::CRASH_FS, copy)),
            anchors: self.anchors.clone(),
        }
    }

    /// Names of the files of a directory, sorted; none if there is no such directory.
    pub fn files(&self, dir: &Path) -> Vec<String> {
        let mut state = self.shared.lock();
        state.dir(dir).map(|dir| dir.visible.keys().cloned().collect()).unwrap_or_default()
    }

    /// A file's bytes as processes see them. It does not count as an operation.
    pub fn read_file(&self, path: &Path) -> Option<Vec<u8>> {
        self.shared.lock().node(path).ok().map(|node| node.lock().visible.to_vec())
    }

    /// Replaces a file's bytes, on the device too, or creates a durable file (and its directory).
    /// It does not count as an operation.
    ///
    /// # Panics
    /// If the path names no file.
    pub fn write_file(&self, path: &Path, bytes: &[u8]) {
        let mut state = self.shared.lock();
        let image = Image::from_bytes(bytes);
        if let Ok(node) = state.node(path) {
            node.lock().replace(image);
            return;
        }
        let (parent, name) = split(path).expect("a path that ends in a file's name");
        state.make_dirs(&parent);
        state.next_id += 1;
        let mut inode = Inode::new(state.next_id, false);
        inode.replace(image);
        let node = Arc::new(Mutex::new(lock_ranks::CRASH_FILE, inode));
        let dir = state.dirs.get_mut(&parent).expect("made above");
        dir.visible.insert(name.clone(), node.clone());
        dir.durable.insert(name, node);
    }

    /// Moves a directory with its contents, on the device too, as another process does. It does not
    /// count as an operation.
    ///
    /// # Panics
    /// If there is no such directory, or there is one of the new name.
    pub fn move_dir(&self, from: &Path, to: &Path) {
        let (from, to) = (normal(from), normal(to));
        let mut state = self.shared.lock();
        assert!(state.is_dir(&from) && !state.is_dir(&to), "{} moved", from.display());
        state.dirs.remove(&to);
        let moved: Vec<PathBuf> =
            state.dirs.keys().filter(|path| path.starts_with(&from)).cloned().collect();
        for path in moved {
            let dir = state.dirs.remove(&path).expect("listed");
            let rest = path.strip_prefix(&from).expect("filtered by it");
            state.dirs.insert(normal(&to.join(rest)), dir);
        }
    }

    /// Removes a file, from the device too. It does not count as an operation.
    pub fn remove_file(&self, path: &Path) {
        if let Ok((dir, name)) = self.shared.lock().place(path) {
            // Pending changes may refer to it: apply them first.
            dir.sync();
            dir.visible.remove(&name);
            dir.durable.remove(&name);
        }
    }

    /// Flips the bits of `mask` in one byte, in the cache and on the device. It does not count as
    /// an operation.
    ///
    /// # Panics
    /// If there is no such byte.
    pub fn flip(&self, path: &Path, offset: u64, mask: u8) {
        let node = self.shared.lock().node(path).expect("a file to flip bits of");
        let mut inode = node.lock();
        let Inode { visible, durable, .. } = &mut *inode;
        assert!(offset < visible.len(), "no byte {offset} in {}", path.display());
        for image in [visible, durable] {
            let mut byte = [0u8];
            if image.read(offset, &mut byte) == 1 {
                image.write(offset, &[byte[0] ^ mask]);
            }
        }
    }

    /// Cuts or extends a file, on the device too. It does not count as an operation.
    ///
    /// # Panics
    /// If there is no such file.
    pub fn truncate(&self, path: &Path, len: u64) {
        let node = self.shared.lock().node(path).expect("a file to truncate");
        let mut inode = node.lock();
        inode.sync();
        let mut image = inode.visible.clone();
        image.set_len(len);
        inode.replace(image);
    }
}

impl CrashState {
    /// Begins a new session: no earlier handle works, and nothing is locked.
    fn restart(&mut self) {
        self.generation += 1;
        self.descriptors = Arc::default();
        self.locks.clear();
        self.crash_at = None;
        self.dead = false;
    }

    /// Decides which removed directories stay gone.
    fn lose_dirs(&mut self, loss: &PowerLoss, rng: &mut Rng) {
        let mut gone: Vec<PathBuf> = Vec::new();
        for (path, dir) in &mut self.dirs {
            let orphaned = path.parent().is_some_and(|parent| gone.iter().any(|g| g == parent));
            if !dir.removed && !orphaned {
                continue;
            }
            let stays_gone = match loss.names {
                Some(NameDamage::KeepAll) => true,
                Some(NameDamage::DropAll) => false,
                _ => rng.chance(0.5),
            };
            if stays_gone || orphaned {
                gone.push(path.clone());
            } else {
                dir.removed = false;
            }
        }
        self.dirs.retain(|path, _| !gone.contains(path));
    }

    /// Creates a directory with its parents, all durable at once.
    pub(super) fn make_dirs(&mut self, path: &Path) {
        let path = normal(path);
        for ancestor in path.ancestors() {
            if !self.is_dir(ancestor) {
                self.next_id += 1;
                let dir = Directory { id: self.next_id, ..Directory::default() };
                self.dirs.insert(ancestor.to_path_buf(), dir);
            }
        }
    }
}
