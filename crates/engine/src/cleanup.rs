//! Deletion of files: after visibility, and only while the manifest is sound.
//!
//! Table files come here when their last reader has let go; logs and old
//! manifests when the manifest no longer needs them. Deleting is a background
//! job, as urgent as merges: when it came after them, a load that always had
//! a merge due kept every file that it had merged, four times its data. A
//! file that cannot be deleted is left: the next open removes what no manifest
//! names.

use crate::events::Event;
use crate::host::Host;
use crate::lock_ranks;
use crate::workers::Workers;
use std::sync::Arc;
use windrow_base::{FileNumber, debug_invariant};
use windrow_env::jobs::Urgency;
use windrow_env::sync::Mutex;
use windrow_env::sync::atomic::{AtomicBool, Ordering};
use windrow_format::names::{self, FileKind};

/// The names that may go, and who removes them.
pub(crate) struct Cleanup {
    host: Arc<Host>,
    workers: Arc<Workers>,
    /// Names, and the number where the file is a table.
    waiting: Mutex<Vec<(String, Option<FileNumber>)>>,
    /// The same of files that a failure left, which the manifest on disk may name.
    kept: Mutex<Vec<(String, Option<FileNumber>)>>,
    armed: AtomicBool,
}

impl Cleanup {
    pub(crate) fn new(host: Arc<Host>, workers: Arc<Workers>) -> Arc<Cleanup> {
        let waiting = Mutex::new(lock_ranks::CLEANUP_WAITING, Vec::new());
        let kept = Mutex::new(lock_ranks::CLEANUP_KEPT, Vec::new());
        Arc::new(Cleanup { host, workers, waiting, kept, armed: AtomicBool::new(false) })
    }

    /// Begins to delete: before this nothing is removed, as recovery must be
    /// able to fail without a trace.
    pub(crate) fn arm(&self) {
        self.armed.store(true, Ordering::Release);
    }

    /// A log or manifest that is no longer needed.
    pub(crate) fn unlink(self: &Arc<Cleanup>, name: &str) {
        self.add(name.to_owned(), None);
    }

    /// A table whose last reader is gone, or that was not finished.
    pub(crate) fn unlink_table(self: &Arc<Cleanup>, number: FileNumber) {
        self.add(names::table(number), Some(number));
    }

    /// Tables that did not become part of a tree.
    pub(crate) fn unlink_tables(self: &Arc<Cleanup>, numbers: &[FileNumber]) {
        numbers.iter().for_each(|&number| self.unlink_table(number));
    }

    /// A file that may be in force until another manifest is.
    pub(crate) fn keep(&self, name: &str) {
        let is_ours = names::parse(name).is_some();
        debug_invariant!(R7, is_ours, "{name} is kept, and nothing removes it again");
        self.kept.lock().push((name.to_owned(), None));
    }

    /// The same, where the file is a table.
    pub(crate) fn keep_table(&self, number: FileNumber) {
        self.kept.lock().push((names::table(number), Some(number)));
    }

    /// Another manifest is in force: what was kept may go.
    pub(crate) fn let_go(&self) {
        let kept = std::mem::take(&mut *self.kept.lock());
        self.waiting.lock().extend(kept);
    }

    fn add(self: &Arc<Cleanup>, name: String, table: Option<FileNumber>) {
        let kind = names::parse(&name);
        let is_table = matches!(kind, Some((FileKind::Table, number)) if table == Some(number));
        let is_log = matches!(kind, Some((FileKind::Wal | FileKind::Manifest, _)));
        debug_invariant!(R7, is_table || table.is_none() && is_log, "{name} is to be removed");
        self.waiting.lock().push((name, table));
        // A database that closes runs what waits itself, and the next open
        // removes what comes later: a job would outlive the close.
        if self.armed.load(Ordering::Acquire)
            && let Ok(underway) = self.workers.begin()
        {
            let cleanup = self.clone();
            let run = move || cleanup.run(cleanup.host.write_state.cause().is_some());
            underway.submit(Urgency::Normal, run);
        }
    }

    /// Removes what waits; keeps everything if writing is off, since
    /// the manifest on disk may then name any of it (rule R7).
    pub(crate) fn run(&self, writing_off: bool) {
        if writing_off {
            return;
        }
        let waiting = std::mem::take(&mut *self.waiting.lock());
        if cfg!(debug_assertions) {
            let kept = self.kept.lock();
            let both = waiting.iter().find(|name| kept.contains(name));
            debug_invariant!(R7, both.is_none(), "{both:?} is kept, and is to be removed");
        }
        for (name, table) in waiting {
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
}
