//! How an edit of a tree becomes part of the database. Flushes, merges, statistics and ingestions
//! all go this way, and no other:
//!
//! 1. The tables that it adds, and their names, are durable (the caller's part, R7).
//! 2. The catalog is locked, and the edit is made from the version that is in it: epochs are given
//!    out under this lock (I4).
//! 3. The next version is made, and the record is folded on a copy of the state. A record that
//!    cannot be folded is not written.
//! 4. The record is appended and synced: all edits of it, or none, are durable. A record that only
//!    relocates tables is not synced: if it is lost with the power, the tree is as before it.
//! 5. The state takes it over.
//! 6. The views of the trees show it, so that readers see only versions that are in the manifest.
//! 7. Files that left a tree go at their last unpin (the caller's part, after the lock).
//!
//! If 4 fails, writing is off, and nothing was installed. The manifest may still have the record,
//! so the tables that it adds are kept until another manifest is in force.
//!
//! Owns: steps 2 to 6. Never does: make an edit, or decide what else a record says.

use crate::catalog::LockedCatalog;
use crate::manifest::record::Field;
use crate::tree::Tree;
use std::collections::BTreeSet;
use std::sync::Arc;
use windrow_base::{Error, FileNumber, KeyspaceId, Result, check_invariant, debug_invariant};
use windrow_env::sync::atomic::Ordering;
use windrow_plan::tree::{Edit, Version};
use windrow_read::memtable::Memtable;

/// An edit of a tree, to install.
pub struct TreeEdit<'a> {
    pub tree: &'a Tree,
    /// Made from [`LockedCatalog::version`].
    pub edit: Edit,
    /// The memtable that is in its tables, if it is a flush.
    pub flushed: Option<&'a Arc<Memtable>>,
}

/// The version that an edit makes, and which one it was made from.
struct Made<'a> {
    tree: &'a Tree,
    before: Arc<Version>,
    version: Arc<Version>,
    flushed: Option<&'a Arc<Memtable>>,
    outputs: Vec<FileNumber>,
}

impl LockedCatalog<'_> {
    /// The version of a tree from which its next edit must be made; `None` if it was dropped.
    pub fn version(&self, id: KeyspaceId) -> Option<&Arc<Version>> {
        self.state().keyspaces.get(&id).map(|keyspace| &keyspace.version)
    }

    /// Installs edits in one record, together with `fields`. After a failure, `on_failure` runs
    /// before the error is reported.
    ///
    /// # Errors
    /// `Internal` if an edit does not fit; or an error of the manifest. Nothing is installed,
    /// and writing is off.
    pub fn install(
        &mut self,
        fields: Vec<Field>,
        edits: Vec<TreeEdit<'_>>,
        on_failure: impl FnOnce(),
    ) -> Result<()> {
        let next = self.next_file().load(Ordering::Relaxed);
        let is_durable = !fields.is_empty() || !edits.iter().all(|it| it.edit.only_relocates());
        let mut record = vec![Field::NextFile(next)];
        record.extend(fields);
        let made = match self.make(edits, next) {
            Ok(made) => made,
            Err(error) => {
                on_failure();
                return Err(self.refuse(error));
            }
        };
        let (edits, made): (Vec<_>, Vec<_>) = made.into_iter().unzip();
        let versions = made.iter().map(|made| (made.tree.id, made.version.clone()));
        let versions = edits.into_iter().zip(versions).collect();
        self.append_edits(record, versions, is_durable, on_failure)
            .inspect_err(|_| made.iter().for_each(|made| self.keep_outputs(made)))?;
        for Made { tree, version, flushed, .. } in made {
            tree.install(version.clone(), flushed);
            let is_shown = Arc::ptr_eq(&tree.version(), &version);
            debug_invariant!(I7, is_shown, "readers of `{}` see another version", tree.name);
        }
        Ok(())
    }

    /// Makes the versions of edits. Each tree has at most one edit, and no edit names a table whose
    /// number can be given out again.
    fn make<'a>(
        &self,
        edits: Vec<TreeEdit<'a>>,
        next_file: FileNumber,
    ) -> Result<Vec<(Edit, Made<'a>)>> {
        let mut trees = BTreeSet::new();
        let make = |TreeEdit { tree, edit, flushed }| {
            check_invariant!(I7, trees.insert(tree.id), "`{}` is edited twice", tree.name);
            let before = self.version(tree.id).cloned();
            let before = before.ok_or_else(|| {
                Error::corruption(format!("`{}` is edited, and was dropped", tree.name))
            });
            let before = before.map_err(Error::of_our_making)?;
            let (seen, logged) = (tree.version().file_count(), before.file_count());
            debug_invariant!(I7, seen == logged, "readers see {seen} tables, {logged} are logged");
            let newest = edit.added.iter().map(|(_, _, file)| file.number).max();
            let is_free = newest < Some(next_file);
            check_invariant!(R8, is_free, "table {newest:?}, where {next_file} is next");
            let gone = edit.obsolete().count();
            let is_move = edit.only_relocates();
            check_invariant!(R7, !is_move || gone == 0, "a move takes {gone} tables away");
            let version = Arc::new(before.apply(&edit).map_err(Error::of_our_making)?);
            let outputs = edit.added.iter().map(|(_, _, file)| file.number).collect();
            Ok((edit, Made { tree, before, version, flushed, outputs }))
        };
        edits.into_iter().map(make).collect()
    }

    /// Keeps the tables that an edit adds: the manifest may name them. Those that it only moves are
    /// in the tree already.
    fn keep_outputs(&self, made: &Made<'_>) {
        let is_new = |number: &FileNumber| made.before.files().all(|(_, _, f)| f.number != *number);
        let new = made.outputs.iter().filter(|number| is_new(number));
        new.for_each(|&number| self.cleanup().keep_table(number));
    }
}
