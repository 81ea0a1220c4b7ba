//! [`FileSystem`] of the crash file system, and its open files.
//!
//! Owns: the handles, and their counts of descriptors. Never does: decide on a failure; the gate
//! does (`crash_state.rs`).

use super::crash_fs::CrashFs;
use super::crash_state::{
    CrashState, Effect, FileOperation, Holders, PathLockKey, all_or_nothing, flip_bit, normal,
    os_error, split,
};
use super::directory::{InodeRef, NameOp};
use super::fault::Ops;
use crate::checksum::crc32c;
use crate::error::ends_early;
use crate::fs::{
    FileId, FileLock, Lease, LeaseState, LockMode, ReadFileOptions, ReadRequest, Stamp,
    WriteOptions,
};
use crate::space::first_step;
use crate::sync::{Arc, Mutex};
use crate::{FileSystem, LogFile, ReadFile, WriteFile};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use windrow_base::{Error, ErrorKind, Result};

/// An open file: the common part of every kind of handle.
struct CrashHandle {
    shared: Arc<Mutex<CrashState>>,
    node: InodeRef,
    path: PathBuf,
    generation: u64,
    /// Counts as a descriptor while it lives.
    _descriptor: Arc<()>,
}

impl CrashHandle {
    fn write(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        let mut state = self.shared.lock();
        let attempt = FileOperation {
            op: Ops::WRITE,
            path: &self.path,
            offset,
            len: bytes.len() as u64,
            content: crc32c(bytes),
        };
        let effect = state.begin_on(self.generation, &attempt)?;
        state.write(&self.node, &self.path, effect, offset, bytes)
    }

    fn sync(&self) -> Result<()> {
        let mut state = self.shared.lock();
        let effect = state.begin_on(self.generation, &FileOperation::on(Ops::SYNC, &self.path))?;
        state.sync(&self.node, effect)
    }
}

struct CrashWriteFile {
    handle: CrashHandle,
    len: u64,
    /// The length at the last sync.
    synced_bytes: Option<u64>,
    failed: Option<Error>,
    finished: bool,
}

impl CrashWriteFile {
    fn check_open(&self) -> Result<()> {
        // As a real file, it refuses all calls after an error.
        match &self.failed {
            Some(first) => Err(follows(first, &self.handle.path)),
            None if self.finished => Err(os_error(9, &self.handle.path)),
            None => Ok(()),
        }
    }
}

/// The error of a call that real files refuse because of an earlier error.
fn follows(first: &Error, path: &Path) -> Error {
    Error::after(first, "an earlier write to the file failed (simulated)")
        .with_file(path.display().to_string())
}

impl WriteFile for CrashWriteFile {
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.check_open()?;
        let result = self.handle.write(self.len, bytes);
        self.failed = result.as_ref().err().cloned();
        self.len += bytes.len() as u64;
        result
    }

    fn len(&self) -> u64 {
        self.len
    }

    fn sync(&mut self) -> Result<()> {
        self.check_open()?;
        let result = self.handle.sync();
        self.failed = result.as_ref().err().cloned();
        self.synced_bytes = Some(self.len);
        result
    }

    fn finish(&mut self) -> Result<()> {
        self.check_open()?;
        self.finished = true;
        // As a real file, it does not sync twice.
        if self.synced_bytes == Some(self.len) { Ok(()) } else { self.handle.sync() }
    }
}

/// A log. As a real one, it refuses writes after a write that failed. After a sync that failed it
/// goes on, as the system does, so that a harness detects a repeated sync (rule R13).
struct CrashLogFile {
    handle: CrashHandle,
    failed: OnceLock<Error>,
}

impl CrashLogFile {
    fn check_usable(&self) -> Result<()> {
        self.failed.get().map_or(Ok(()), |first| Err(follows(first, &self.handle.path)))
    }
}

impl LogFile for CrashLogFile {
    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        self.check_usable()?;
        let written = self.handle.write(offset, bytes);
        written.inspect_err(|error| _ = self.failed.set(error.clone()))
    }

    fn reserved_bytes(&self) -> u64 {
        self.handle.node.lock().reserved.unwrap_or(u64::MAX)
    }

    fn reserve(&self, end: u64) -> Result<()> {
        if end <= self.reserved_bytes() {
            return Ok(());
        }
        let CrashHandle { shared, node, path, generation, .. } = &self.handle;
        let mut state = shared.lock();
        let attempt = FileOperation { offset: end, ..FileOperation::on(Ops::RESERVE, path) };
        let (done, result) = all_or_nothing(state.begin_on(*generation, &attempt)?);
        if done && !state.reserve(node, end) {
            return Err(os_error(28, path));
        }
        result
    }

    fn release(&self, end: u64) {
        let CrashHandle { shared, node, generation, .. } = &self.handle;
        let state = shared.lock();
        if state.generation == *generation && !state.dead {
            let mut inode = node.lock();
            inode.reserved = inode.reserved.map(|reserved| reserved.min(end));
        }
    }

    fn sync(&self) -> Result<()> {
        self.check_usable()?;
        self.handle.sync()
    }
}

struct CrashReadFile {
    handle: CrashHandle,
    len: u64,
}

impl ReadFile for CrashReadFile {
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        let CrashHandle { shared, node, path, generation, .. } = &self.handle;
        let mut state = shared.lock();
        let len = buf.len() as u64;
        let attempt = FileOperation { offset, len, ..FileOperation::on(Ops::READ, path) };
        let effect = state.begin_on(*generation, &attempt)?;
        let got = node.lock().visible.read(offset, buf);
        match effect {
            Effect::Part(_, error) => return Err(error.with_offset(offset)),
            Effect::ShortRead(draw) => {
                return Err(ends_early(path, offset, buf.len(), (draw % len.max(1)) as usize));
            }
            Effect::FlipBit(draw) => flip_bit(&mut buf[..got], draw),
            Effect::Whole | Effect::LoseSync | Effect::LoseWrite | Effect::Misdirect(_) => {}
        }
        if got < buf.len() {
            return Err(ends_early(path, offset, buf.len(), got));
        }
        Ok(())
    }

    fn len(&self) -> u64 {
        self.len
    }

    fn path(&self) -> &Path {
        &self.handle.path
    }
}

struct LockedFile {
    shared: Arc<Mutex<CrashState>>,
    key: PathLockKey,
    generation: u64,
    id: FileId,
}

/// A lock; `None` if there was no file to lock.
struct CrashLock(Option<LockedFile>);

impl FileLock for CrashLock {
    fn id(&self) -> Option<FileId> {
        self.0.as_ref().map(|locked| locked.id)
    }
}

impl Drop for CrashLock {
    fn drop(&mut self) {
        let Some(LockedFile { shared, key, generation, .. }) = &self.0 else { return };
        let mut state = shared.lock();
        if state.generation != *generation {
            return;
        }
        let last = state.locks.get_mut(key).is_some_and(|holders| {
            holders.count -= 1;
            holders.count == 0
        });
        if last {
            state.locks.remove(key);
        }
    }
}

/// A lease: its lock, and the file that it writes to.
struct CrashLease {
    handle: CrashHandle,
    id: FileId,
    _lock: CrashLock,
}

/// The key of a lease's lock: the file, under any name. A lock file is locked by its place.
fn lease_key(node: &InodeRef) -> PathLockKey {
    (node.lock().id, String::new())
}

impl Lease for CrashLease {
    fn write(&self, bytes: &[u8]) -> Result<()> {
        self.handle.write(0, bytes)
    }

    fn id(&self) -> FileId {
        self.id
    }
}

impl CrashFs {
    /// As [`FileSystem::anchor`].
    ///
    /// # Errors
    /// As there.
    pub fn anchored(&self, dir: &Path) -> Result<CrashFs> {
        let id = self.look(Ops::LOOK, dir, |state, place| Ok(state.dir(place)?.id))?;
        let mut anchored = self.clone();
        anchored.anchors.push((normal(dir), id));
        Ok(anchored)
    }

    fn handle(&self, state: &CrashState, node: InodeRef, path: &Path) -> CrashHandle {
        CrashHandle {
            shared: self.shared.clone(),
            node,
            path: path.to_path_buf(),
            generation: state.generation,
            _descriptor: Arc::clone(&state.descriptors),
        }
    }

    /// Runs an operation that changes names, wholly or not at all. It gets the resolved path.
    fn change(
        &self,
        attempt: &FileOperation<'_>,
        change: impl FnOnce(&mut CrashState, &Path) -> Result<()>,
    ) -> Result<()> {
        let mut state = self.shared.lock();
        let (done, result) = all_or_nothing(state.begin(attempt)?);
        if done {
            let place = state.resolve(&self.anchors, attempt.path);
            change(&mut state, &place)?;
        }
        result
    }

    /// Runs an operation that changes nothing. It gets the resolved path.
    fn look<T>(
        &self,
        op: Ops,
        path: &Path,
        look: impl FnOnce(&mut CrashState, &Path) -> Result<T>,
    ) -> Result<T> {
        let mut state = self.shared.lock();
        match state.begin(&FileOperation::on(op, path))? {
            Effect::Part(_, error) => Err(error),
            _ => {
                let place = state.resolve(&self.anchors, path);
                look(&mut state, &place)
            }
        }
    }

    /// Creates a file: a log of this length, or an empty one.
    fn create_file(&self, path: &Path, log_bytes: Option<u64>) -> Result<CrashHandle> {
        let len = log_bytes.unwrap_or(0);
        let mut state = self.shared.lock();
        let reserved = log_bytes.map(|len| first_step(len, state.free_bytes()));
        let attempt = FileOperation { len, ..FileOperation::on(Ops::CREATE, path) };
        let (done, result) = all_or_nothing(state.begin(&attempt)?);
        state.check_descriptors(path)?;
        if done && reserved.unwrap_or(0) > state.free_bytes() {
            return Err(os_error(28, path));
        }
        if !done {
            return Err(result.err().unwrap_or_else(|| os_error(5, path)));
        }
        let place = state.resolve(&self.anchors, path);
        let node = state.create_node(&place, log_bytes.is_none())?;
        let mut inode = node.lock();
        inode.set_len(len);
        inode.reserved = reserved;
        drop(inode);
        result.map(|()| self.handle(&state, node, path))
    }
}

impl FileSystem for CrashFs {
    /// Returns the path unchanged: relative paths have a root of their own, and there is no current
    /// directory to change.
    fn absolute(&self, path: &Path) -> Result<PathBuf> {
        Ok(path.to_path_buf())
    }

    fn anchor(&self, dir: &Path) -> Result<Arc<dyn FileSystem>> {
        Ok(Arc::new(self.anchored(dir)?))
    }

    fn stamp(&self, path: &Path) -> Result<Option<Stamp>> {
        self.look(Ops::LOOK, path, |state, place| Ok(state.stamp(place)))
    }

    fn create(&self, path: &Path, _options: WriteOptions) -> Result<Box<dyn WriteFile>> {
        let handle = self.create_file(path, None)?;
        Ok(Box::new(CrashWriteFile {
            handle,
            len: 0,
            synced_bytes: None,
            failed: None,
            finished: false,
        }))
    }

    fn create_log(&self, path: &Path, len_bytes: u64) -> Result<Arc<dyn LogFile>> {
        let handle = self.create_file(path, Some(len_bytes))?;
        Ok(Arc::new(CrashLogFile { handle, failed: OnceLock::new() }))
    }

    fn open(&self, path: &Path, _options: ReadFileOptions) -> Result<Arc<dyn ReadFile>> {
        let visit = self.shared.lock().take_visit(path);
        visit.into_iter().for_each(|act| act());
        let handle = self.look(Ops::OPEN, path, |state, place| {
            let node = state.node(place)?;
            state.check_descriptors(path)?;
            Ok(self.handle(state, node, path))
        })?;
        let len = handle.node.lock().visible.len();
        Ok(Arc::new(CrashReadFile { handle, len }))
    }

    fn read_all(&self, path: &Path) -> Result<Vec<u8>> {
        let file = self.open(path, ReadFileOptions::default())?;
        let mut bytes = vec![0; file.len() as usize];
        file.read_at(0, &mut bytes)?;
        Ok(bytes)
    }

    fn read_many(&self, requests: &mut [ReadRequest<'_>]) {
        for request in requests {
            request.result = request.file.read_at(request.offset, request.buf);
        }
    }

    fn list(&self, dir: &Path) -> Result<Vec<String>> {
        self.look(Ops::LOOK, dir, |state, place| {
            let mut names: Vec<String> = state.dir(place)?.visible.keys().cloned().collect();
            for (path, child) in &state.dirs {
                if !child.removed && path.parent() == Some(place) {
                    names.extend(path.file_name().and_then(|n| n.to_str()).map(str::to_string));
                }
            }
            Ok(names)
        })
    }

    fn exists(&self, path: &Path) -> Result<bool> {
        self.look(Ops::LOOK, path, |state, place| {
            Ok(state.is_dir(place) || state.node(place).is_ok())
        })
    }

    fn len(&self, path: &Path) -> Result<u64> {
        self.look(Ops::LOOK, path, |state, place| Ok(state.node(place)?.lock().visible.len()))
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        let content = crc32c(to.as_os_str().as_encoded_bytes());
        self.change(
            &FileOperation { content, ..FileOperation::on(Ops::RENAME, from) },
            |state, from| {
                let to = &state.resolve(&self.anchors, to);
                let node = state.node(from)?;
                if state.is_dir(to) {
                    return Err(os_error(21, to));
                }
                if from.parent() == to.parent() {
                    let to_name = state.place(to)?.1;
                    let (dir, from_name) = state.place(from)?;
                    if from_name != to_name {
                        dir.change(NameOp::Rename { from: from_name, to: to_name, node });
                    }
                    return Ok(());
                }
                let (dir, name) = state.place(to)?;
                dir.change(NameOp::Link(name, node));
                let (dir, name) = state.place(from)?;
                dir.change(NameOp::Unlink(name));
                Ok(())
            },
        )
    }

    fn remove(&self, path: &Path) -> Result<()> {
        self.change(&FileOperation::on(Ops::REMOVE, path), |state, place| {
            state.node(place)?;
            let (dir, name) = state.place(place)?;
            dir.change(NameOp::Unlink(name));
            Ok(())
        })
    }

    fn link(&self, from: &Path, to: &Path) -> Result<()> {
        let content = crc32c(to.as_os_str().as_encoded_bytes());
        self.change(
            &FileOperation { content, ..FileOperation::on(Ops::LINK, from) },
            |state, from| {
                let to = &state.resolve(&self.anchors, to);
                let node = state.node(from)?;
                if state.is_dir(to) || state.node(to).is_ok() {
                    return Err(os_error(17, to));
                }
                let (dir, name) = state.place(to)?;
                dir.change(NameOp::Link(name, node));
                Ok(())
            },
        )
    }

    fn create_dir(&self, dir: &Path) -> Result<()> {
        self.change(&FileOperation::on(Ops::CREATE_DIR, dir), |state, path| {
            if path.ancestors().any(|ancestor| state.node(ancestor).is_ok()) {
                return Err(os_error(17, dir));
            }
            state.make_dirs(path);
            Ok(())
        })
    }

    fn remove_dir(&self, dir: &Path) -> Result<()> {
        self.change(&FileOperation::on(Ops::REMOVE_DIR, dir), |state, path| {
            if path != normal(dir) {
                // The directory was moved: another may have its name.
                return Err(os_error(2, dir));
            }
            let has_child =
                state.dirs.iter().any(|(p, child)| !child.removed && p.parent() == Some(path));
            let place = state.dir(path)?;
            if has_child || !place.visible.is_empty() {
                return Err(os_error(39, dir));
            }
            place.removed = true;
            Ok(())
        })
    }

    fn sync_dir(&self, dir: &Path) -> Result<()> {
        let mut state = self.shared.lock();
        let effect = state.begin(&FileOperation::on(Ops::SYNC_DIR, dir))?;
        let place = state.resolve(&self.anchors, dir);
        match effect {
            Effect::Part(_, error) => {
                // A failed sync of names need not drop them: a power loss decides on the pending
                // ones.
                state.dir(&place)?;
                Err(error)
            }
            Effect::LoseSync => Ok(()),
            _ => {
                state.dir(&place)?.sync();
                state.dirs.retain(|path, child| !(child.removed && path.parent() == Some(&place)));
                Ok(())
            }
        }
    }

    fn lock(&self, path: &Path, mode: LockMode) -> Result<Box<dyn FileLock>> {
        let exclusive = mode == LockMode::Exclusive;
        let mut state = self.shared.lock();
        let op = if exclusive { Ops::LOCK } else { Ops::LOOK };
        if let Effect::Part(_, error) = state.begin(&FileOperation::on(op, path))? {
            return Err(error);
        }
        let place = state.resolve(&self.anchors, path);
        let (parent, name) = split(&place)?;
        let key = (state.dir(&parent)?.id, name);
        let held = state.locks.get(&key).copied();
        if let Some(holders) = held
            && (exclusive || holders.exclusive)
        {
            let who = if holders.exclusive { "process 1" } else { "another process, for reading" };
            return Err(Error::new(ErrorKind::Busy, format!("database is open in {who}"))
                .with_file(path.display().to_string()));
        }
        let node = match state.node(&place) {
            Err(error) if !crate::fs::is_not_found(&error) => return Err(error),
            Err(_) if !exclusive => return Ok(Box::new(CrashLock(None))),
            Err(_) => state.create_node(&place, false)?,
            Ok(node) => node,
        };
        let mut inode = node.lock();
        if exclusive {
            inode.set_len(0);
            inode.write(0, b"1\n");
        }
        let id = FileId { device: 1, inode: inode.id };
        drop(inode);
        let count = held.map_or(0, |holders| holders.count) + 1;
        state.locks.insert(key.clone(), Holders { exclusive, count });
        let (shared, generation) = (self.shared.clone(), state.generation);
        Ok(Box::new(CrashLock(Some(LockedFile { shared, key, generation, id }))))
    }

    fn lease(&self, path: &Path) -> Result<Box<dyn Lease>> {
        let mut state = self.shared.lock();
        let (done, result) = all_or_nothing(state.begin(&FileOperation::on(Ops::LOCK, path))?);
        if !done {
            return Err(result.err().unwrap_or_else(|| os_error(5, path)));
        }
        let place = state.resolve(&self.anchors, path);
        let node = match state.node(&place) {
            Ok(node) => node,
            Err(error) if !crate::fs::is_not_found(&error) => return Err(error),
            Err(_) => state.create_node(&place, false)?,
        };
        let key = lease_key(&node);
        if state.locks.contains_key(&key) {
            let busy = Error::new(ErrorKind::Busy, "somebody holds the lease");
            return Err(busy.with_file(path.display().to_string()));
        }
        result?;
        let id = FileId { device: 1, inode: node.lock().id };
        state.locks.insert(key.clone(), Holders { exclusive: true, count: 1 });
        let (shared, generation) = (self.shared.clone(), state.generation);
        let lock = CrashLock(Some(LockedFile { shared, key, generation, id }));
        Ok(Box::new(CrashLease { handle: self.handle(&state, node, path), id, _lock: lock }))
    }

    fn lease_state(&self, path: &Path) -> Result<LeaseState> {
        self.look(Ops::LOOK, path, |state, place| {
            Ok(match state.node(place) {
                Ok(node) if state.locks.contains_key(&lease_key(&node)) => LeaseState::Live,
                Ok(_) => LeaseState::Free,
                Err(_) => LeaseState::Absent,
            })
        })
    }

    fn open_files_max(&self) -> usize {
        self.shared.lock().open_files_max
    }

    fn free_bytes(&self, dir: &Path) -> Result<u64> {
        self.look(Ops::LOOK, dir, |state, place| {
            state.dir(place)?;
            Ok(state.free_bytes())
        })
    }
}
