//! [`FileSystem`] of the crash file system, and its open files.

use super::crash_fs::CrashFs;
use super::crash_state::{
    Attempt, Effect, Holders, State, all_or_nothing, flip_bit, normal, os_error,
};
use super::directory::{NameOp, Node};
use super::fault::Ops;
use crate::checksum::crc32c;
use crate::error::ends_early;
use crate::fs::{FileLock, LockMode, ReadOptions, ReadRequest, WriteOptions};
use crate::sync::{Arc, Mutex};
use crate::{FileSystem, LogFile, ReadFile, WriteFile};
use std::path::{Path, PathBuf};
use windrow_base::{Error, ErrorKind, Result};

/// An open file: what every kind of handle has.
struct Handle {
    shared: Arc<Mutex<State>>,
    node: Node,
    path: PathBuf,
    generation: u64,
    /// Counted while it lives: an open file takes a descriptor.
    _descriptor: Arc<()>,
}

impl Handle {
    fn write(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        let mut state = self.shared.lock();
        let attempt = Attempt {
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
        let effect = state.begin_on(self.generation, &Attempt::on(Ops::SYNC, &self.path))?;
        state.sync(&self.node, effect)
    }
}

struct CrashWriteFile {
    handle: Handle,
    len: u64,
    /// Failed or finished.
    closed: bool,
}

impl CrashWriteFile {
    fn check_open(&self) -> Result<()> {
        // As for real files: nothing is built on a file after an error.
        if self.closed { Err(os_error(9, &self.handle.path)) } else { Ok(()) }
    }
}

impl WriteFile for CrashWriteFile {
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.check_open()?;
        let result = self.handle.write(self.len, bytes);
        self.closed = result.is_err();
        self.len += bytes.len() as u64;
        result
    }

    fn len(&self) -> u64 {
        self.len
    }

    fn sync(&mut self) -> Result<()> {
        self.check_open()?;
        let result = self.handle.sync();
        self.closed = result.is_err();
        result
    }

    fn finish(&mut self) -> Result<()> {
        self.check_open()?;
        self.closed = true;
        self.handle.sync()
    }
}

impl LogFile for Handle {
    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        self.write(offset, bytes)
    }

    fn sync(&self) -> Result<()> {
        Handle::sync(self)
    }

    fn truncate(&self, len: u64) -> Result<()> {
        let mut state = self.shared.lock();
        let attempt = Attempt { offset: len, ..Attempt::on(Ops::SET_LEN, &self.path) };
        let (done, result) = all_or_nothing(state.begin_on(self.generation, &attempt)?);
        if done {
            self.node.lock().set_len(len);
        }
        result
    }
}

struct CrashReadFile {
    handle: Handle,
    len: u64,
}

impl ReadFile for CrashReadFile {
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        let Handle { shared, node, path, generation, .. } = &self.handle;
        let mut state = shared.lock();
        let len = buf.len() as u64;
        let attempt = Attempt { offset, len, ..Attempt::on(Ops::READ, path) };
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

/// A lock; `None` where there was no file to lock.
struct CrashLock(Option<(Arc<Mutex<State>>, PathBuf, u64)>);

impl FileLock for CrashLock {}

impl Drop for CrashLock {
    fn drop(&mut self) {
        let Some((shared, path, generation)) = &self.0 else { return };
        let mut state = shared.lock();
        if state.generation != *generation {
            return;
        }
        let last = state.locks.get_mut(path).is_some_and(|holders| {
            holders.count -= 1;
            holders.count == 0
        });
        if last {
            state.locks.remove(path);
        }
    }
}

impl CrashFs {
    fn handle(&self, state: &State, node: Node, path: &Path) -> Handle {
        Handle {
            shared: self.shared.clone(),
            node,
            path: path.to_path_buf(),
            generation: state.generation,
            _descriptor: Arc::clone(&state.descriptors),
        }
    }

    /// Runs an operation that changes names, or does not.
    fn change(
        &self,
        attempt: &Attempt<'_>,
        change: impl FnOnce(&mut State) -> Result<()>,
    ) -> Result<()> {
        let mut state = self.shared.lock();
        let (done, result) = all_or_nothing(state.begin(attempt)?);
        if done {
            change(&mut state)?;
        }
        result
    }

    /// Runs an operation that changes nothing.
    fn look<T>(
        &self,
        op: Ops,
        path: &Path,
        look: impl FnOnce(&mut State) -> Result<T>,
    ) -> Result<T> {
        let mut state = self.shared.lock();
        match state.begin(&Attempt::on(op, path))? {
            Effect::Part(_, error) => Err(error),
            _ => look(&mut state),
        }
    }

    fn create_file(&self, path: &Path, buffered: bool, len: u64) -> Result<Handle> {
        let mut state = self.shared.lock();
        let attempt = Attempt { len, ..Attempt::on(Ops::CREATE, path) };
        let (done, result) = all_or_nothing(state.begin(&attempt)?);
        state.check_descriptors(path)?;
        if done && len > state.free_bytes() {
            return Err(os_error(28, path));
        }
        if !done {
            return Err(result.err().unwrap_or_else(|| os_error(5, path)));
        }
        let node = state.create_node(path, buffered)?;
        node.lock().set_len(len);
        result.map(|()| self.handle(&state, node, path))
    }
}

impl FileSystem for CrashFs {
    fn create(&self, path: &Path, _options: WriteOptions) -> Result<Box<dyn WriteFile>> {
        let handle = self.create_file(path, true, 0)?;
        Ok(Box::new(CrashWriteFile { handle, len: 0, closed: false }))
    }

    fn create_log(&self, path: &Path, capacity_bytes: u64) -> Result<Arc<dyn LogFile>> {
        Ok(Arc::new(self.create_file(path, false, capacity_bytes)?))
    }

    fn open(&self, path: &Path, _options: ReadOptions) -> Result<Arc<dyn ReadFile>> {
        let handle = self.look(Ops::OPEN, path, |state| {
            let node = state.node(path)?;
            state.check_descriptors(path)?;
            Ok(self.handle(state, node, path))
        })?;
        let len = handle.node.lock().visible.len();
        Ok(Arc::new(CrashReadFile { handle, len }))
    }

    fn read_all(&self, path: &Path) -> Result<Vec<u8>> {
        let file = self.open(path, ReadOptions::default())?;
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
        self.look(Ops::LOOK, dir, |state| {
            let mut names: Vec<String> = state.dir(dir)?.visible.keys().cloned().collect();
            let parent = normal(dir);
            for (path, child) in &state.dirs {
                if !child.removed && path.parent() == Some(&parent) {
                    names.extend(path.file_name().and_then(|n| n.to_str()).map(str::to_string));
                }
            }
            Ok(names)
        })
    }

    fn exists(&self, path: &Path) -> Result<bool> {
        self.look(Ops::LOOK, path, |state| Ok(state.is_dir(path) || state.node(path).is_ok()))
    }

    fn len(&self, path: &Path) -> Result<u64> {
        self.look(Ops::LOOK, path, |state| Ok(state.node(path)?.lock().visible.len()))
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        let content = crc32c(to.as_os_str().as_encoded_bytes());
        self.change(&Attempt { content, ..Attempt::on(Ops::RENAME, from) }, |state| {
            let node = state.node(from)?;
            if state.is_dir(to) {
                return Err(os_error(21, to));
            }
            if normal(from).parent() == normal(to).parent() {
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
        })
    }

    fn remove(&self, path: &Path) -> Result<()> {
        self.change(&Attempt::on(Ops::REMOVE, path), |state| {
            state.node(path)?;
            let (dir, name) = state.place(path)?;
            dir.change(NameOp::Unlink(name));
            Ok(())
        })
    }

    fn link(&self, from: &Path, to: &Path) -> Result<()> {
        let content = crc32c(to.as_os_str().as_encoded_bytes());
        self.change(&Attempt { content, ..Attempt::on(Ops::LINK, from) }, |state| {
            let node = state.node(from)?;
            if state.is_dir(to) || state.node(to).is_ok() {
                return Err(os_error(17, to));
            }
            let (dir, name) = state.place(to)?;
            dir.change(NameOp::Link(name, node));
            Ok(())
        })
    }

    fn create_dir(&self, dir: &Path) -> Result<()> {
        self.change(&Attempt::on(Ops::CREATE_DIR, dir), |state| {
            let path = normal(dir);
            if path.ancestors().any(|ancestor| state.node(ancestor).is_ok()) {
                return Err(os_error(17, dir));
            }
            state.make_dirs(&path);
            Ok(())
        })
    }

    fn remove_dir(&self, dir: &Path) -> Result<()> {
        self.change(&Attempt::on(Ops::REMOVE_DIR, dir), |state| {
            let path = normal(dir);
            let has_child =
                state.dirs.iter().any(|(p, child)| !child.removed && p.parent() == Some(&path));
            let place = state.dir(dir)?;
            if has_child || !place.visible.is_empty() {
                return Err(os_error(39, dir));
            }
            place.removed = true;
            Ok(())
        })
    }

    fn sync_dir(&self, dir: &Path) -> Result<()> {
        let mut state = self.shared.lock();
        match state.begin(&Attempt::on(Ops::SYNC_DIR, dir))? {
            Effect::Part(_, error) => {
                // Nothing says that a failed sync of names forgets them; a
                // power loss decides about what is pending.
                state.dir(dir)?;
                Err(error)
            }
            Effect::LoseSync => Ok(()),
            _ => {
                state.dir(dir)?.sync();
                let parent = normal(dir);
                state.dirs.retain(|path, child| !(child.removed && path.parent() == Some(&parent)));
                Ok(())
            }
        }
    }

    fn lock(&self, path: &Path, mode: LockMode) -> Result<Box<dyn FileLock>> {
        let exclusive = mode == LockMode::Exclusive;
        let mut state = self.shared.lock();
        let op = if exclusive { Ops::LOCK } else { Ops::LOOK };
        if let Effect::Part(_, error) = state.begin(&Attempt::on(op, path))? {
            return Err(error);
        }
        let key = normal(path);
        let held = state.locks.get(&key).copied();
        if let Some(holders) = held
            && (exclusive || holders.exclusive)
        {
            let who = if holders.exclusive { "process 1" } else { "another process, for reading" };
            return Err(Error::new(ErrorKind::Busy, format!("database is open in {who}"))
                .with_file(path.display().to_string()));
        }
        if exclusive {
            let node = state.create_node(path, false)?;
            node.lock().write(0, b"1\n");
        } else if let Err(error) = state.node(path) {
            let absent = crate::fs::is_not_found(&error);
            return if absent { Ok(Box::new(CrashLock(None))) } else { Err(error) };
        }
        let count = held.map_or(0, |holders| holders.count) + 1;
        state.locks.insert(key.clone(), Holders { exclusive, count });
        Ok(Box::new(CrashLock(Some((self.shared.clone(), key, state.generation)))))
    }

    fn open_files_max(&self) -> usize {
        self.shared.lock().open_files_max
    }

    fn free_bytes(&self, dir: &Path) -> Result<u64> {
        self.look(Ops::LOOK, dir, |state| {
            state.dir(dir)?;
            Ok(state.free_bytes())
        })
    }
}
