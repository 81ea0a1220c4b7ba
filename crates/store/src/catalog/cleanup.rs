//! Deletion of files: after visibility, and only while the manifest is sound.
//!
//! Table files come here when their last reader has let go; logs and old manifests when the
//! manifest no longer needs them. Deletion is a background job, as urgent as merges: when it came
//! after them, a load that always had a merge due kept every file that it had merged, four times
//! its data. A file that cannot be deleted is left: the next open removes files that no manifest
//! names.
//!
//! A file may still be needed by a process that reads next to this one (`readers.rs`). It waits
//! until that process has read on. Once more than `followers_keep_bytes` wait, the reader that has
//! read least loses its lease, then the next one, until less waits.
//!
//! Owns: the files that wait to be removed, and those that are kept until another manifest is in
//! force. Never does: remove a file while writing is off (R7), or decide that a file is unneeded.

use crate::catalog::durable_manifest::DurableManifest;
use crate::host::Host;
use crate::host::readers::Readers;
use crate::host::workers::Workers;
use std::sync::Arc;
use windrow_base::{FileNumber, debug_invariant};
use windrow_env::jobs::Urgency;
use windrow_env::sync::Mutex;
use windrow_env::sync::atomic::{AtomicBool, Ordering};
use windrow_format::log::Length;
use windrow_format::names::{self, FileKind};
use windrow_read::events::Event;
use windrow_read::lock_ranks;

/// A file that may go.
struct Unneeded {
    name: String,
    /// Its number, if it is a table.
    table: Option<FileNumber>,
    /// A reader that has read the manifest up to there no longer needs the file.
    since: Length,
    /// Its length, once it waits.
    bytes: Option<u64>,
}

impl Unneeded {
    fn bytes(&mut self, host: &Host) -> u64 {
        let path = host.dir.join(&self.name);
        *self.bytes.get_or_insert_with(|| host.env.fs.len(&path).unwrap_or(0))
    }
}

/// The files that may go, and the leases of those that may still read them.
pub struct Cleanup {
    host: Arc<Host>,
    workers: Arc<Workers>,
    durable: Arc<DurableManifest>,
    waiting: Mutex<Vec<Unneeded>>,
    /// Files that a failure left, which the manifest on disk may name, by name; with the number of
    /// each that is a table.
    kept: Mutex<Vec<(String, Option<FileNumber>)>>,
    /// Held while leases are looked at, and while they are removed.
    readers: Mutex<Readers>,
    armed: AtomicBool,
}

impl Cleanup {
    /// Removes files that the records of this manifest have made unneeded. `durable` is its length.
    pub fn new(
        host: Arc<Host>,
        workers: Arc<Workers>,
        durable: Arc<DurableManifest>,
    ) -> Arc<Cleanup> {
        let waiting = Mutex::new(lock_ranks::CLEANUP_WAITING, Vec::new());
        let kept = Mutex::new(lock_ranks::CLEANUP_KEPT, Vec::new());
        let readers = Mutex::new(lock_ranks::CLEANUP_READERS, Readers::default());
        let armed = AtomicBool::new(false);
        Arc::new(Cleanup { host, workers, durable, waiting, kept, readers, armed })
    }

    /// Lets deletions begin. Before this nothing is removed, as recovery must be able to fail
    /// without a trace.
    pub fn arm(&self) {
        self.armed.store(true, Ordering::Release);
    }

    /// Removes a log or manifest that is no longer needed.
    pub fn unlink(self: &Arc<Cleanup>, name: &str) {
        self.add(name.to_owned(), None);
    }

    /// Removes a table whose last reader is gone, or that was not finished.
    pub fn unlink_table(self: &Arc<Cleanup>, number: FileNumber) {
        self.add(names::table(number), Some(number));
    }

    /// Removes tables that did not become part of a tree.
    pub fn unlink_tables(self: &Arc<Cleanup>, numbers: &[FileNumber]) {
        numbers.iter().for_each(|&number| self.unlink_table(number));
    }

    /// Keeps a file that may be in force until another manifest is.
    pub fn keep(&self, name: &str) {
        let is_ours = names::parse(name).is_some();
        debug_invariant!(R7, is_ours, "{name} is kept, and nothing removes it again");
        self.kept.lock().push((name.to_owned(), None));
    }

    /// Keeps a table that may be in force until another manifest is.
    pub(crate) fn keep_table(&self, number: FileNumber) {
        self.kept.lock().push((names::table(number), Some(number)));
    }

    /// Lets the kept files go: another manifest is in force.
    pub fn let_go(&self) {
        let since = self.durable.length();
        let kept = std::mem::take(&mut *self.kept.lock());
        let kept =
            kept.into_iter().map(|(name, table)| Unneeded { name, table, since, bytes: None });
        self.waiting.lock().extend(kept);
    }

    /// Holds a file that no manifest from this one on names, and that a process reads.
    pub fn hold(&self, name: String, manifest: FileNumber) {
        let since = Length { number: manifest, bytes: 0 };
        self.waiting.lock().push(Unneeded { name, table: None, since, bytes: None });
    }

    /// Removes the leases of readers that are gone.
    pub fn remove_leases(&self) {
        // One that stays is taken by the next reader, or goes the next time.
        _ = self.readers.lock().remove_free(&self.host.env, &self.host.dir);
    }

    /// Whether a process may read by a manifest older than the one that has just come into force.
    pub fn is_read_by_older(&self) -> bool {
        // If the leases cannot be read, a reader is assumed.
        let live = self.readers.lock().live(&self.host.env, &self.host.dir);
        live.map_or(true, |live| !live.is_empty())
    }

    /// How many files wait to be removed.
    pub fn waiting(&self) -> usize {
        self.waiting.lock().len()
    }

    /// Removes the files that waited for readers that have gone or read on, and the leases of those
    /// that have gone. Returns whether to look again.
    pub fn look_again(self: &Arc<Cleanup>) -> bool {
        let has_left = || self.readers.lock().any_free(&self.host.env, &self.host.dir);
        if self.waiting() > 0 || has_left() {
            self.submit();
        }
        !self.workers.gate.is_closing()
    }

    fn add(self: &Arc<Cleanup>, name: String, table: Option<FileNumber>) {
        let kind = names::parse(&name);
        let is_table = matches!(kind, Some((FileKind::Table, number)) if table == Some(number));
        let is_log =
            matches!(kind, Some((FileKind::Wal | FileKind::Changes | FileKind::Manifest, _)));
        debug_invariant!(R7, is_table || table.is_none() && is_log, "{name} is to be removed");
        // The record by which the file left the tree was durable before.
        let since = self.durable.length();
        self.waiting.lock().push(Unneeded { name, table, since, bytes: None });
        self.submit();
    }

    fn submit(self: &Arc<Cleanup>) {
        // A database that closes removes the waiting files itself, and the next open removes later
        // ones: a job would outlive the close.
        if self.armed.load(Ordering::Acquire)
            && let Ok(underway) = self.workers.begin()
        {
            let cleanup = self.clone();
            let run = move || cleanup.run(cleanup.host.write_state.cause().is_some());
            underway.submit(Urgency::Normal, run);
        }
    }

    /// Removes the files that wait. Keeps all of them if writing is off, since the manifest on disk
    /// may then name any of them (rule R7).
    pub fn run(&self, writing_off: bool) {
        if writing_off {
            return;
        }
        let mut waiting = std::mem::take(&mut *self.waiting.lock());
        if cfg!(debug_assertions) {
            let kept = self.kept.lock();
            let is_kept = |file: &&Unneeded| kept.iter().any(|(name, _)| *name == file.name);
            let both = waiting.iter().find(is_kept).map(|file| &file.name);
            debug_invariant!(R7, both.is_none(), "{both:?} is kept, and is to be removed");
        }
        if !waiting.is_empty() {
            waiting = self.unread(waiting);
        }
        if self.armed.load(Ordering::Acquire) {
            self.remove_leases();
        }
        for Unneeded { name, table, .. } in waiting {
            // A backup that was restored here has files of the same names.
            if let Err(error) = self.host.place.check() {
                if self.armed.load(Ordering::Acquire) {
                    self.host.set_background_error(&error);
                }
                return;
            }
            let (fs, path) = (&self.host.env.fs, self.host.dir.join(&name));
            let bytes = if table.is_some() { fs.len(&path).unwrap_or(0) } else { 0 };
            // A file that stays is removed by the next open.
            if fs.remove(&path).is_err() {
                continue;
            }
            if let Some(file) = table {
                self.host.counters.tables_deleted.add(1);
                self.host.events.send(&Event::TableDeleted { file, bytes });
            }
        }
    }
    /// Returns the files that nobody reads. The others wait on.
    fn unread(&self, waiting: Vec<Unneeded>) -> Vec<Unneeded> {
        let (env, dir) = (&self.host.env, &self.host.dir);
        let mut readers = self.readers.lock();
        // If the leases cannot be read, a reader that has read nothing is assumed.
        let Ok(mut live) = readers.live(env, dir) else {
            self.waiting.lock().extend(waiting);
            return Vec::new();
        };
        let (mut held, mut gone) = (waiting, Vec::new());
        loop {
            let read = live.iter().map(|reader| reader.read).min();
            let is_held = |file: &Unneeded| read.is_some_and(|read| read < file.since);
            let (needed, free): (Vec<_>, Vec<_>) = held.into_iter().partition(is_held);
            held = needed;
            gone.extend(free);
            let bytes = held.iter_mut().map(|file| file.bytes(&self.host)).sum::<u64>();
            let most = match self.host.settings.followers_keep_bytes {
                0 => u64::MAX,
                most => most,
            };
            if bytes <= most {
                break;
            }
            // A reader that has read nothing has usually just begun: it comes last.
            live.sort_by_key(|reader| (reader.read == Length::default(), reader.read));
            let furthest = live.remove(0);
            if readers.void(env, dir, furthest).is_err() {
                break;
            }
            self.host.events.send(&Event::FollowerLeftBehind { kept_bytes: bytes });
        }
        drop(readers);
        self.waiting.lock().extend(held);
        gone
    }
}
