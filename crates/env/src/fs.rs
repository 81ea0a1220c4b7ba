//! The file system traits: the calls of the engine, and the guarantees that it may rely on.
//!
//! Paths are `&Path`; every error names its path. A file's name is durable only after
//! [`FileSystem::sync_dir`] of its directory: syncing a file never makes its name durable.
//!
//! Owns: the traits, the kinds of errors that callers tell apart, and the filling of the pieces of one
//! read. Never does: call the system (`os`, `testing`).

use crate::Buffer;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use windrow_base::{Error, Result};

/// Alignment of offsets, lengths and buffers of direct writes, in bytes, and of direct reads unless
/// the system says that less is enough ([`ReadFile::direct_align`]).
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

/// Whether an error says that the process or the system is short of descriptors or memory, which
/// may pass. The call did nothing then, except that a sync that failed for want of memory may have
/// done something.
pub fn is_shortage(error: &Error) -> bool {
    // ENOMEM, ENFILE, EMFILE: the same numbers on every Linux.
    system_number(error).is_some_and(|number| matches!(number, 12 | 23 | 24))
}

/// Whether an error says that no descriptor was available: the operation on the file did not even
/// begin.
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
pub struct ReadFileOptions {
    /// Bypass the page cache (falls back to buffered where the file system refuses).
    pub direct: bool,
}

/// The identity of a file, independent of its names: two are equal for one file, for as long as it
/// is open or has a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileId {
    /// The device that holds the file.
    pub device: u64,
    /// The file's number on the device.
    pub inode: u64,
}

/// The kinds of directory entries.
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

/// The state of a directory entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// Its kind.
    pub kind: EntryKind,
    /// Its identity.
    pub id: FileId,
    /// Its length in bytes.
    pub bytes: u64,
    /// The time of its last change, in ns since some moment. Two changes may share one time, and
    /// not every change is one of its bytes.
    pub changed_ns: u64,
}

/// A file system. All methods may be called from any thread.
pub trait FileSystem: Send + Sync + 'static {
    /// Makes a relative path absolute, by the process's current directory, so that it means the
    /// same after a change of directory.
    ///
    /// # Errors
    /// `Io` where the process's own directory is gone.
    fn absolute(&self, path: &Path) -> Result<PathBuf>;

    /// Returns this file system with the directory `dir` held open: every path that begins with
    /// `dir`, as it is written here, leads into that directory, even after it is moved or another
    /// takes its place. Earlier anchors stay.
    ///
    /// # Errors
    /// `Io` if it is absent, no directory, or cannot be opened.
    fn anchor(&self, dir: &Path) -> Result<Arc<dyn FileSystem>>;

    /// Returns the entry of a name; `None` if there is none. Links are not followed.
    ///
    /// # Errors
    /// `Io` if the system does not tell.
    fn stamp(&self, path: &Path) -> Result<Option<Stamp>>;

    /// Creates a file for writing front to back. An existing entry of this name, a link included,
    /// is never touched.
    ///
    /// # Errors
    /// `Io` if the name is taken; `NoSpace` on a full device or quota.
    fn create(&self, path: &Path, options: WriteOptions) -> Result<Box<dyn WriteFile>>;

    /// Creates a log file of `len_bytes` zeros, as [`FileSystem::create`] does. Its first step is
    /// reserved on the device; the rest is a hole that [`LogFile::reserve`] and
    /// [`LogFile::write_at`] fill in growing steps.
    ///
    /// # Errors
    /// `Io` if the name is taken; `NoSpace` if the first step cannot be reserved. The file that was
    /// created is removed then.
    fn create_log(&self, path: &Path, len_bytes: u64) -> Result<Arc<dyn LogFile>>;

    /// Finishes files ([`WriteFile::finish`]), concurrently where the system can, which answers
    /// many syncs with one flush of the device.
    ///
    /// # Errors
    /// The first failure. All files must be discarded after it.
    fn finish_all(&self, files: Vec<Box<dyn WriteFile>>) -> Result<()> {
        files.into_iter().try_for_each(|mut file| file.finish())
    }

    /// Opens a regular file for positional reads. Never waits for a writer of a pipe.
    ///
    /// # Errors
    /// `Io` (its source's kind says whether the file was absent).
    fn open(&self, path: &Path, options: ReadFileOptions) -> Result<Arc<dyn ReadFile>>;

    /// Reads a whole file. For small files only (CURRENT, tests).
    ///
    /// # Errors
    /// As [`FileSystem::open`].
    fn read_all(&self, path: &Path) -> Result<Vec<u8>>;

    /// Runs every request, all at once where the system can (one submission, device depth = number
    /// of requests). Each request gets its own result.
    fn read_many(&self, requests: &mut [ReadRequest<'_>]);

    /// Names of the entries of a directory, in no order.
    ///
    /// # Errors
    /// `Io`.
    fn list(&self, dir: &Path) -> Result<Vec<String>>;

    /// Whether a file or directory of this name exists.
    ///
    /// # Errors
    /// `Io` if the system does not tell.
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

    /// Takes an advisory lock on `path`, creating the file. Exclusive holders write their pid into
    /// it. The lock ends when the guard drops or the process dies. A link of that name is not
    /// followed.
    ///
    /// # Errors
    /// `Busy`, naming the holder's pid, if another holder (this process included) has it, by any
    /// path; `Io` if it is no regular file.
    fn lock(&self, path: &Path, mode: LockMode) -> Result<Box<dyn FileLock>>;

    /// Takes the lease at `path`, creating its file. The lease ends when the guard drops or the
    /// process dies; the file stays, with its last content.
    ///
    /// # Errors
    /// `Busy` if another holder (this process included) has it; `Io` if it is no regular file, or
    /// cannot be created.
    fn lease(&self, path: &Path) -> Result<Box<dyn Lease>>;

    /// Returns whether the lease at `path` is held. Writes nothing.
    ///
    /// # Errors
    /// `Io` if the system does not tell.
    fn lease_state(&self, path: &Path) -> Result<LeaseState>;

    /// The most files that the database may hold open: the process's limit, less a reserve for the
    /// rest of the process.
    fn open_files_max(&self) -> usize;

    /// The memory that the process keeps for [`Buffer`]s beyond those in use, in
    /// bytes: the part in proportion to a holder of `bytes` of them. 0 in simulation, where a run
    /// must not depend on others in its process.
    fn spare_memory(&self, bytes: u64) -> u64 {
        _ = bytes;
        0
    }

    /// The bytes free for unprivileged users on the device of `dir`.
    ///
    /// # Errors
    /// `Io`.
    fn free_bytes(&self, dir: &Path) -> Result<u64>;
}

/// The modes of a lock, by the other holders that it admits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockMode {
    /// Admits no other holder: for a writer. Creates the file and writes the pid.
    Exclusive,
    /// Admits other readers: for a read-only open. Creates and writes nothing; an absent lock file
    /// counts as free.
    Shared,
}

/// A held lock; dropping it releases it.
pub trait FileLock: Send + Sync {
    /// The file that is locked; `None` if there was none to lock.
    fn id(&self) -> Option<FileId>;
}

/// The states of a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseState {
    /// The file does not exist.
    Absent,
    /// It has no holder, or its holder died.
    Free,
    /// It is held.
    Live,
}

/// A small file that this process holds until it drops the lease or dies, and through which it
/// tells other processes its state.
pub trait Lease: Send + Sync {
    /// Overwrites the first bytes of the file. A reader may see a partial write.
    ///
    /// # Errors
    /// `Io`, `NoSpace`.
    fn write(&self, bytes: &[u8]) -> Result<()>;

    /// The identity of the file: its name may belong to another one, or to none, by now.
    fn id(&self) -> FileId;
}

/// A file written once, front to back, by one owner.
pub trait WriteFile: Send {
    /// Appends bytes (buffered in the process where that is faster; `sync` and `finish` flush).
    ///
    /// # Errors
    /// `NoSpace`, `Io`. After any error the file must be discarded.
    fn append(&mut self, bytes: &[u8]) -> Result<()>;

    /// The bytes appended so far.
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

    /// Hands all bytes to the system and frees the buffer: for a complete file that is finished
    /// later, with others. Makes nothing durable.
    ///
    /// # Errors
    /// `Io`, `NoSpace`.
    fn write_out(&mut self) -> Result<()> {
        Ok(())
    }

    /// Flushes, cuts preallocation to the length, makes bytes and length durable, and closes.
    ///
    /// # Errors
    /// `Io`, `NoSpace`.
    fn finish(&mut self) -> Result<()>;
}

/// A write-ahead log segment: positional writes from many threads into preallocated space. When
/// `write_at` returns, its bytes have reached the kernel (they survive the death of the process,
/// not of the machine).
pub trait LogFile: Send + Sync {
    /// Writes bytes at an offset. Writers own disjoint ranges. Extends the
    /// reserved space where needed.
    ///
    /// # Errors
    /// `NoSpace`, `Io`.
    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<()>;

    /// The end of the reserved space, in bytes from the start. `u64::MAX` where the file system
    /// reserves nothing.
    fn reserved_bytes(&self) -> u64 {
        u64::MAX
    }

    /// Reserves space up to `end` at least, and ahead of it where there is room.
    ///
    /// # Errors
    /// `NoSpace`, `Io`. Nothing is written then, and the log is still usable.
    fn reserve(&self, _end: u64) -> Result<()> {
        Ok(())
    }

    /// Frees the reserved space beyond `end`, if the file system can; the length stays. No thread
    /// may write there any more. A failure costs only space.
    fn release(&self, _end: u64) {}

    /// Makes all bytes written so far durable (`fdatasync`). Never retried.
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

    /// Fills buffers, one after the other, with the bytes from `offset` on: one read.
    ///
    /// # Errors
    /// As [`ReadFile::read_at`], of the range of all of them.
    fn read_pieces_at(&self, offset: u64, pieces: &mut [Buffer]) -> Result<()> {
        let mut all = Buffer::new(pieces.iter().map(|piece| piece.len()).sum());
        self.read_at(offset, &mut all)?;
        scatter(&all, pieces);
        Ok(())
    }

    /// The length in bytes when the file was opened.
    fn len(&self) -> u64;

    /// Whether the file was empty when opened.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Tells the system that `len` bytes from `offset` will be read soon.
    fn read_ahead(&self, _offset: u64, _len: u64) {}

    /// The path that it was opened by, for messages.
    fn path(&self) -> &Path;

    /// The file descriptor, if there is one that `read_many` can submit: open for reading, for as
    /// long as this value lives.
    fn raw_fd(&self) -> Option<i32> {
        None
    }

    /// The alignment of offsets, lengths and buffers for a direct read without a copy, at most
    /// [`DIRECT_ALIGN_BYTES`]. `None` where reads go through the page cache.
    fn direct_align(&self) -> Option<usize> {
        None
    }
}

/// Fills pieces, one after the other, with bytes that come bit by bit.
pub(crate) struct PiecesWriter<'a> {
    /// The rest of the piece at hand.
    rest: &'a mut [u8],
    pieces: std::slice::IterMut<'a, Buffer>,
}

impl<'a> PiecesWriter<'a> {
    pub(crate) fn new(pieces: &'a mut [Buffer]) -> PiecesWriter<'a> {
        PiecesWriter { rest: &mut [], pieces: pieces.iter_mut() }
    }

    /// Puts the next bytes, at most as many as the pieces still take.
    pub(crate) fn put(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            if self.rest.is_empty() {
                self.rest = self.pieces.next().expect("the pieces take all bytes");
            }
            let (head, rest) = bytes.split_at(bytes.len().min(self.rest.len()));
            self.rest.split_off_mut(..head.len()).expect("no longer").copy_from_slice(head);
            bytes = rest;
        }
    }
}

/// Fills pieces, one after the other, with the bytes that were read for all of them.
pub fn scatter(bytes: &[u8], pieces: &mut [Buffer]) {
    PiecesWriter::new(pieces).put(bytes);
}

/// One read of [`FileSystem::read_many`].
pub struct ReadRequest<'a> {
    /// The file.
    pub file: &'a dyn ReadFile,
    /// The offset in the file.
    pub offset: u64,
    /// Filled on success.
    pub buf: &'a mut [u8],
    /// The request's own result; `Ok` before it is run.
    pub result: Result<()>,
}
