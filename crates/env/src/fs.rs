//! What the engine asks of a file system, and what it may rely on.
//!
//! Paths are `&Path`; every error names the path it was about. A file's name
//! is durable only after [`FileSystem::sync_dir`] of its directory: syncing a
//! file never makes its name durable.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use windrow_base::{Error, Result};

/// Alignment of offsets, lengths and buffers of direct writes, in bytes, and of
/// direct reads where the system does not say that less will do
/// ([`ReadFile::direct_align`]).
pub const DIRECT_ALIGN_BYTES: usize = 4096;

/// Whether an error says that a file or directory was absent.
pub fn is_not_found(error: &Error) -> bool {
    cause_of(error) == Some(std::io::ErrorKind::NotFound)
}

/// Whether an error says that a name is taken.
pub fn is_taken(error: &Error) -> bool {
    cause_of(error) == Some(std::io::ErrorKind::AlreadyExists)
}

fn cause_of(error: &Error) -> Option<std::io::ErrorKind> {
    use std::error::Error as _;
    let source = error.source()?.downcast_ref::<std::io::Error>()?;
    Some(source.kind())
}

/// Whether an error says that the process or the system is short of
/// descriptors or memory, which may pass. Nothing was done then; but of a sync
/// that failed for want of memory that is not known.
pub fn is_shortage(error: &Error) -> bool {
    // ENOMEM, ENFILE, EMFILE: the same numbers on every Linux.
    system_number(error).is_some_and(|number| matches!(number, 12 | 23 | 24))
}

/// Whether an error says that no descriptor was to be had: whatever was to be
/// done to the file was not even begun.
pub fn is_out_of_descriptors(error: &Error) -> bool {
    system_number(error).is_some_and(|number| matches!(number, 23 | 24))
}

fn system_number(error: &Error) -> Option<i32> {
    use std::error::Error as _;
    error.source()?.downcast_ref::<std::io::Error>()?.raw_os_error()
}

/// How a file that is written once, front to back, is created.
#[derive(Clone, Copy, Debug, Default)]
pub struct WriteOptions {
    /// Bypass the page cache (falls back to buffered where the file system refuses).
    pub direct: bool,
    /// Bytes to preallocate; a hint, not part of the file's length.
    pub preallocate_bytes: u64,
}

/// How a file is opened for reading.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReadOptions {
    /// Bypass the page cache (falls back to buffered where the file system refuses).
    pub direct: bool,
}

/// Which file an open file or a name is, whatever names it has: two are equal
/// for one file, for as long as it is open or has a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileId {
    /// The device it is on.
    pub device: u64,
    /// Its number there.
    pub inode: u64,
}

/// What a name may stand for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link, which was not followed.
    Link,
    /// A pipe, a socket, a device.
    Other,
}

/// What is under a name, and its state now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// What it is.
    pub kind: EntryKind,
    /// Which one it is.
    pub id: FileId,
    /// Its length in bytes.
    pub bytes: u64,
    /// When it was last changed, in ns since some moment. Two changes may share
    /// one; a change that others see here need not be one of its bytes.
    pub changed_ns: u64,
}

/// A file system. All methods may be called from any thread.
pub trait FileSystem: Send + Sync + 'static {
    /// The path from the root on, made of a relative one by where the process
    /// is now: it means the same after a change of directory.
    ///
    /// # Errors
    /// `Io` where the process's own directory is gone.
    fn absolute(&self, path: &Path) -> Result<PathBuf>;

    /// This file system with the directory `dir` held open: every path that
    /// begins with `dir`, as it is written here, leads into that directory,
    /// wherever it is moved to and whatever is in its place later. Anchors
    /// of before stay.
    ///
    /// # Errors
    /// `Io` if it is absent, no directory, or cannot be opened.
    fn anchor(&self, dir: &Path) -> Result<Arc<dyn FileSystem>>;

    /// What is under a name; `None` if nothing is. Links are not followed.
    ///
    /// # Errors
    /// `Io` where it cannot be told.
    fn stamp(&self, path: &Path) -> Result<Option<Stamp>>;

    /// Creates a file to be written front to back. One of this name, a link
    /// included, is never touched.
    ///
    /// # Errors
    /// `Io` if the name is taken; `NoSpace` on a full device or quota.
    fn create(&self, path: &Path, options: WriteOptions) -> Result<Box<dyn WriteFile>>;

    /// Creates a log file of `len_bytes` zeros, as [`FileSystem::create`] does.
    /// A first step of it is reserved on the device: the rest is a hole that
    /// [`LogFile::reserve`] and [`LogFile::write_at`] fill in growing steps.
    ///
    /// # Errors
    /// `Io` if the name is taken; `NoSpace` if the first step cannot be
    /// reserved. A file that was created is removed then.
    fn create_log(&self, path: &Path, len_bytes: u64) -> Result<Arc<dyn LogFile>>;

    /// Finishes files ([`WriteFile::finish`]), at the same time where the system
    /// can: it answers many syncs with one flush of the device.
    ///
    /// # Errors
    /// The first failure. All files must be discarded then.
    fn finish_all(&self, files: Vec<Box<dyn WriteFile>>) -> Result<()> {
        files.into_iter().try_for_each(|mut file| file.finish())
    }

    /// Opens a regular file for positional reads. Never waits for a writer of a pipe.
    ///
    /// # Errors
    /// `Io` (its source's kind says whether it was absent).
    fn open(&self, path: &Path, options: ReadOptions) -> Result<Arc<dyn ReadFile>>;

    /// Reads a whole file. For small files only (CURRENT, tests).
    ///
    /// # Errors
    /// As [`FileSystem::open`].
    fn read_all(&self, path: &Path) -> Result<Vec<u8>>;

    /// Fills every request, all at once where the system can (one submission,
    /// device depth = number of requests). Each request gets its own result.
    fn read_many(&self, requests: &mut [ReadRequest<'_>]);

    /// Names of the entries of a directory, in no order.
    ///
    /// # Errors
    /// `Io`.
    fn list(&self, dir: &Path) -> Result<Vec<String>>;

    /// Whether a file or directory of this name exists.
    ///
    /// # Errors
    /// `Io` where it cannot be told.
    fn exists(&self, path: &Path) -> Result<bool>;

    /// Length of a file in bytes.
    ///
    /// # Errors
    /// `Io`.
    fn len(&self, path: &Path) -> Result<u64>;

    /// Renames a file, replacing the target. Durable after `sync_dir`.
    ///
    /// # Errors
    /// `Io`, `NoSpace`.
    fn rename(&self, from: &Path, to: &Path) -> Result<()>;

    /// Removes a file's name.
    ///
    /// # Errors
    /// `Io`.
    fn remove(&self, path: &Path) -> Result<()>;

    /// Makes a hard link. `NotSupported` where the file system has none.
    ///
    /// # Errors
    /// `Io`, `NoSpace`, `NotSupported`.
    fn link(&self, from: &Path, to: &Path) -> Result<()>;

    /// Creates a directory and its missing parents (each durable when this returns).
    ///
    /// # Errors
    /// `Io`, `NoSpace`.
    fn create_dir(&self, dir: &Path) -> Result<()>;

    /// Removes an empty directory.
    ///
    /// # Errors
    /// `Io`.
    fn remove_dir(&self, dir: &Path) -> Result<()>;

    /// Makes the directory's entries durable.
    ///
    /// # Errors
    /// `Io`. Never retried by callers (rule R13).
    fn sync_dir(&self, dir: &Path) -> Result<()>;

    /// Takes an advisory lock on `path`, creating the file. Exclusive holders
    /// write their pid into it. Released when the guard drops or the process dies.
    /// Locks the file of that name, not one that a link leads to.
    ///
    /// # Errors
    /// `Busy`, naming the holder's pid, if somebody else (this process
    /// included) holds it, by whatever path; `Io` if it is no regular file.
    fn lock(&self, path: &Path, mode: LockMode) -> Result<Box<dyn FileLock>>;

    /// Takes the lease at `path`, creating its file. It ends when the guard drops or the
    /// process dies; the file stays, with what was written to it last.
    ///
    /// # Errors
    /// `Busy` if somebody else (this process included) holds it; `Io` if it is no regular
    /// file, or cannot be made.
    fn lease(&self, path: &Path) -> Result<Box<dyn Lease>>;

    /// Whether somebody holds the lease at `path`. Writes nothing.
    ///
    /// # Errors
    /// `Io` where it cannot be told.
    fn lease_state(&self, path: &Path) -> Result<LeaseState>;

    /// Most files this process may hold open, less a reserve for others.
    fn open_files_max(&self) -> usize;

    /// Memory that the process keeps for [`Buffer`](crate::Buffer)s beyond those in use, in bytes:
    /// the part of it that is due to who holds `bytes` of them. None in simulation, where a
    /// run must not depend on others in its process.
    fn spare_memory(&self, bytes: u64) -> u64 {
        _ = bytes;
        0
    }

    /// Bytes free for unprivileged users on the device of `dir`.
    ///
    /// # Errors
    /// `Io`.
    fn free_bytes(&self, dir: &Path) -> Result<u64>;
}

/// Who may hold a lock at the same time as its holder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockMode {
    /// Nobody: a writer. Creates the file and writes the pid.
    Exclusive,
    /// Other readers: a read-only open. Creates and writes nothing; an absent
    /// lock file counts as held by nobody.
    Shared,
}

/// A held lock; dropping it releases.
pub trait FileLock: Send + Sync {
    /// Which file is locked; `None` where there was none to lock.
    fn id(&self) -> Option<FileId>;
}

/// What becomes of a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseState {
    /// There is no file.
    Absent,
    /// Nobody holds it, or its holder died.
    Free,
    /// Somebody holds it.
    Live,
}

/// A small file that is this process's for as long as the process lives, in which it
/// tells others something. Dropping it gives the lease up.
pub trait Lease: Send + Sync {
    /// Overwrites the first bytes of the file. A reader may see a part of them.
    ///
    /// # Errors
    /// `Io`, `NoSpace`.
    fn write(&self, bytes: &[u8]) -> Result<()>;

    /// Which file it is: another one, or none, may have its name by now.
    fn id(&self) -> FileId;
}

/// A file written once, front to back, by one owner.
pub trait WriteFile: Send {
    /// Appends bytes (buffered in the process where that is faster; `sync` and `finish` flush).
    ///
    /// # Errors
    /// `NoSpace`, `Io`. After any error the file must be discarded.
    fn append(&mut self, bytes: &[u8]) -> Result<()>;

    /// Bytes appended so far.
    fn len(&self) -> u64;

    /// Whether nothing was appended yet.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Makes all appended bytes and the length durable (`fdatasync`). Never retried.
    ///
    /// # Errors
    /// `Io`, `NoSpace`.
    fn sync(&mut self) -> Result<()>;

    /// Hands everything to the system and lets go of the buffer: for a file to
    /// which nothing will be appended, and which is finished later, with others.
    /// Makes nothing durable.
    ///
    /// # Errors
    /// `Io`, `NoSpace`.
    fn write_out(&mut self) -> Result<()> {
        Ok(())
    }

    /// Flushes, cuts preallocation to the length, makes both durable, and closes.
    ///
    /// # Errors
    /// `Io`, `NoSpace`.
    fn finish(&mut self) -> Result<()>;
}

/// A write-ahead log segment: positional writes from many threads into
/// preallocated space. What `write_at` returned from has reached the kernel
/// (it survives the death of the process, not of the machine).
pub trait LogFile: Send + Sync {
    /// Writes bytes at an offset. Writers own disjoint ranges. Extends the
    /// reserved space where needed.
    ///
    /// # Errors
    /// `NoSpace`, `Io`.
    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<()>;

    /// Up to where a write finds space, in bytes from the start.
    /// `u64::MAX` where the file system reserves nothing.
    fn reserved_bytes(&self) -> u64 {
        u64::MAX
    }

    /// Reserves space up to `end` at least, and ahead of it where there is room.
    ///
    /// # Errors
    /// `NoSpace`, `Io`. Nothing is written then, and the log is as sound as before.
    fn reserve(&self, _end: u64) -> Result<()> {
        Ok(())
    }

    /// Gives back what is reserved beyond `end`, if the file system can; the
    /// length stays. Nobody writes there any more. A failure costs only space.
    fn release(&self, _end: u64) {}

    /// Makes everything written so far durable (`fdatasync`). Never retried.
    ///
    /// # Errors
    /// `Io`.
    fn sync(&self) -> Result<()>;
}

/// A file open for positional reads.
pub trait ReadFile: Send + Sync {
    /// Fills `buf` from `offset`.
    ///
    /// # Errors
    /// `Corruption` if the file ends before `buf` is full (it is shorter than
    /// its metadata says), `Io` otherwise.
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()>;

    /// Length in bytes when it was opened.
    fn len(&self) -> u64;

    /// Whether it was empty when opened.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Tells the system that `len` bytes from `offset` will be read soon.
    fn read_ahead(&self, _offset: u64, _len: u64) {}

    /// The path it was opened by, for messages.
    fn path(&self) -> &Path;

    /// The file descriptor, where there is one that `read_many` can submit:
    /// open for reading, and for as long as this value lives.
    fn raw_fd(&self) -> Option<i32> {
        None
    }

    /// Where reads bypass the page cache: what offsets, lengths and buffers must
    /// be multiples of for a read without a copy, at most
    /// [`DIRECT_ALIGN_BYTES`]. `None` where reads go through it.
    fn direct_align(&self) -> Option<usize> {
        None
    }
}

/// One read of [`FileSystem::read_many`].
pub struct ReadRequest<'a> {
    /// The file.
    pub file: &'a dyn ReadFile,
    /// Where to read.
    pub offset: u64,
    /// Filled on success.
    pub buf: &'a mut [u8],
    /// The request's own outcome; `Ok` before it was run.
    pub result: Result<()>,
}
