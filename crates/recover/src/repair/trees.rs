//! The trees that the manifest names: each damaged table is replaced, in its place, by tables of
//! its readable entries.
//!
//! Owns: that replacement, and how the tree of a database that is being repaired changes. Never
//! does: move a file to another level, so no order between files changes.

use super::findings::Findings;
use super::salvage::{Damaged, salvage};
use super::site::Site;
use crate::database::Database;
use crate::discovery::originals;
use std::sync::Arc;
use windrow_base::{Error, Result};
use windrow_format::names;
use windrow_plan::tree::{Edit, File};
use windrow_store::tree::Tree;

/// Repairs every tree.
///
/// # Errors
/// The errors of opening a file, and of writing.
pub(super) fn repair_all(
    site: &Site<'_>,
    findings: &mut Findings,
    database: &Arc<Database>,
) -> Result<()> {
    let trees: Vec<Arc<Tree>> = database.trees().iter().cloned().collect();
    trees.iter().try_for_each(|tree| repair_tree(site, findings, database, tree))
}

/// Verifies a keyspace's tables and replaces those that are damaged.
fn repair_tree(
    site: &Site<'_>,
    findings: &mut Findings,
    database: &Arc<Database>,
    tree: &Tree,
) -> Result<()> {
    let version = tree.version();
    let mut edit = Edit::default();
    for (level, part, file) in version.files() {
        let name = names::table(file.number);
        let mut path = site.table_path(file.number);
        let damage = match site.env.fs.exists(&path)? {
            true => site.check(tree, file)?,
            false => {
                let what = "a table that the manifest names is missing";
                let missing = Error::corruption(what).with_file(path.display().to_string());
                path = originals::place_in_lost(site.dir, &name);
                Some(missing)
            }
        };
        let Some(error) = damage else {
            findings.report.tables_kept += 1;
            continue;
        };
        findings.problem(error);
        edit.removed.push((level, part, file.number));
        let damaged = Damaged {
            path: &path,
            number: file.number,
            uid: file.uid,
            given_seq: file.given_seq(),
            counts: Some((file.entries, file.range_tombstones)),
            level,
        };
        let saved = salvage(site, findings, database, tree, &damaged)?;
        let at_place = |f: File| (level, part, Arc::new(File { epoch: file.epoch, ..f }));
        edit.added.extend(saved.into_iter().map(at_place));
        findings.keep_original(name);
    }
    apply(database, tree, edit)
}

/// Changes a tree. The manifest that the repair writes at its end has the change.
pub(super) fn apply(database: &Database, tree: &Tree, edit: Edit) -> Result<()> {
    let mut catalog = database.catalog.lock();
    tree.install(catalog.edit_unlogged(tree.id, |_| edit)?, None);
    Ok(())
}
