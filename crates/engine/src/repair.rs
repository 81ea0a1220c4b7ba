//! Repair: an openable database from whatever can still be read.
//!
//! 1. The manifest, as far as it can be believed; without one, the tables
//!    and logs themselves say which keyspaces there are, and each one's tree
//!    is made of all its tables and all that the logs hold (`rebuild.rs`).
//! 2. Each table is verified. A damaged one is replaced, in its place, by a
//!    table of what can be read of it (a file of the same level, within the
//!    same bounds, so no order between files changes).
//! 3. Logs are replayed up to their first damage or gap. Without a manifest
//!    nothing says which logs are needed, and one that power loss brought back
//!    may lie before a gap: there the replay goes on behind it where something
//!    says that what is missing was durable (`open/replay.rs`, `Proof`).
//! 4. Damaged files, and logs of which something was not taken over, are linked
//!    into `lost/` (`originals.rs`).
//! 5. A new manifest is written and put in force; then the names go that it
//!    does not have.
//!
//! Until the last step nothing is taken away: a repair that dies leaves the
//! database as it was, and the next one begins again (`traces.rs`).
//!
//! Repair never invents data. What it cannot know: a tombstone in a damaged
//! block is gone like any entry, so a deleted key may be there again, and a
//! key whose newest value is gone shows an older one. Without a manifest,
//! tables that were merged away but not yet unlinked count again, so deleted
//! keys and dropped keyspaces may too; and the names and merge operators of
//! keyspaces but the default one are gone: they are called by their ids. So is
//! the order of a keyspace that no table was written of: it is the bytewise one.

mod named_logs;
mod originals;
mod report;
mod salvage;
pub(crate) mod traces;

pub use report::{DamagedLog, DamagedTable, LostRange, RepairReport};
pub(crate) use salvage::Known;

use crate::close::close;
use crate::core::Core;
use crate::latch::refuse_forked;
use crate::manifest::record::Record;
use crate::manifest::state::ManifestState;
use crate::mutants;
use crate::open::assemble::assemble;
use crate::open::found::{Folded, Found, fold_manifest, read_current, refuse_newer};
use crate::open::listing::Listing;
use crate::open::logs::{is_log, is_own};
use crate::open::remains::refuse_foreign;
use crate::open::replay::{Proof, Replay, Replayed, Salvaged};
use crate::open::start::start_writing;
use crate::options::Options;
use crate::place::{Place, enter};
use crate::repair::originals::Originals;
use crate::tree::Tree;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use windrow_base::{Error, FileNumber, KeyspaceId, Result, mutant};
use windrow_env::fs::{LockMode, ReadOptions};
use windrow_env::{Env, ReadFile};
use windrow_format::log::{Class, FILE_HEADER_BYTES, Length, LogKind, Mark, Reader};
use windrow_format::names;
use windrow_format::table::{self, Expect, Properties};
use windrow_plan::Policy;
use windrow_plan::tree::{Edit, File};

/// Makes the database in `dir` openable again, from what can be read of it.
///
/// Make a copy of the directory first if the data is precious.
///
/// # Errors
/// `Busy` if it is open; `InvalidArgument` if there is no database, a
/// comparator of it is not registered, or the options are read-only;
/// `NotSupported` if a newer version wrote it; `Io`, `NoSpace`.
pub fn repair(dir: impl AsRef<Path>, options: Options) -> Result<RepairReport> {
    let dir = dir.as_ref();
    options.validate()?;
    if options.read_only {
        return Err(Error::invalid("a repair writes: ask for it without read_only"));
    }
    let env = options.components.env_or_os(&options.settings);
    refuse_forked(&env)?;
    if !env.fs.exists(dir)? {
        return Err(no_database(dir));
    }
    let (env, dir) = enter(&env, dir)?;
    let dir = dir.as_path();
    refuse_newer(&env, dir)?;
    refuse_foreign(&env, dir)?;
    if !Listing::read(&env, dir)?.holds_database() {
        return Err(no_database(dir));
    }
    let lock = env.fs.lock(&dir.join(names::LOCK), LockMode::Exclusive)?;
    let place = Place::new(&env, dir, &*lock);
    let listing = Listing::read(&env, dir)?;
    let mut repair = Repair {
        env,
        dir,
        place,
        options: &options,
        listing,
        report: RepairReport::default(),
        originals: Originals::new(),
        looked_at: BTreeMap::new(),
        logs_in_doubt: false,
        proof: Proof::default(),
    };
    repair.run()?;
    repair.report.originals = repair.originals.kept;
    Ok(repair.report)
}

fn no_database(dir: &Path) -> Error {
    Error::invalid(format!("there is no database in {}: check the path", dir.display()))
}

/// Bytes read at a time to see whether there is anything.
const BLANK_CHUNK_BYTES: usize = 1 << 20;

/// A repair under way.
pub(crate) struct Repair<'a> {
    pub(crate) env: Env,
    pub(crate) dir: &'a Path,
    pub(crate) place: Arc<Place>,
    pub(crate) options: &'a Options,
    pub(crate) listing: Listing,
    pub(crate) report: RepairReport,
    pub(crate) originals: Originals,
    /// What each table says of itself, where there is no manifest; `None`: nothing.
    pub(crate) looked_at: BTreeMap<FileNumber, Option<Properties>>,
    /// Not all that the logs hold was taken over: they are kept.
    pub(crate) logs_in_doubt: bool,
    /// What says, where there is no manifest, that a gap in the logs is no end.
    pub(crate) proof: Proof,
}

impl Repair<'_> {
    fn run(&mut self) -> Result<()> {
        let number_max = self.listing.number_max();
        let begun = traces::forget(&self.env, self.dir, &mut self.listing)?;
        let mut found = match self.best_manifest()? {
            Some(found) => found,
            None => self.rebuild()?,
        };
        // Without it nothing says which operands count twice.
        for operator in
            found.state.keyspaces.values().filter_map(|k| k.record.merge_operator.as_ref())
        {
            self.options.components.merge_operator(operator)?;
        }
        // Also above what was just removed (R8).
        let next = found.state.next_file.max(number_max + 1);
        found.state.next_file = next + 1;
        if begun.is_none() {
            traces::leave(&self.env, self.dir, next)?;
        }
        let policy = Policy::parse(&self.options.settings.preset)?;
        let core = assemble(
            self.env.clone(),
            self.place.clone(),
            self.options,
            &self.listing,
            found,
            &policy,
        )?;
        let replayed = match self.report.manifest_rebuilt {
            true => self.gather(&core)?,
            false => self.repair_trees(&core)?,
        };
        self.originals.link(&self.env, self.dir)?;
        // Open needs none of the old files: what is not live goes.
        let mut listing = Listing::read(&self.env, self.dir)?;
        self.originals.spare(&mut listing);
        start_writing(&core, &listing, &replayed)?;
        // Whatever becomes of them: nothing may run on without the lock.
        let moved = self.originals.finish(&self.env, self.dir);
        let closed = close(&core);
        moved.and(closed)
    }

    /// Repairs what the manifest names.
    fn repair_trees(&mut self, core: &Arc<Core>) -> Result<Replayed> {
        let trees: Vec<Arc<Tree>> = core.trees().iter().cloned().collect();
        for tree in &trees {
            self.repair_tree(core, tree)?;
        }
        let state = core.catalog.state();
        let salvaged = self.replay(Replay::tolerant(core, &state), &state, state.log_number)?;
        Ok(salvaged.replayed)
    }

    /// The state that the manifest in force gives: the one that CURRENT names,
    /// or, where CURRENT cannot be read, the newest. `None` if it is damaged or
    /// shorter than the logs remember it: cut short it names files that are
    /// gone and misses others, and an older one does so all the more. What is
    /// there is then told better by the tables.
    fn best_manifest(&mut self) -> Result<Option<Found>> {
        let newest = self.listing.manifests.last().copied();
        let (number, uid, database_uid) = match read_current(&self.env, self.dir) {
            Ok(current) => {
                (Some(current.manifest_number), Some(current.manifest_uid), current.database_uid)
            }
            Err(error) => {
                self.report.problems.push(error);
                (newest, None, self.env.random.next_u64())
            }
        };
        let Some(number) = number else { return Ok(None) };
        let mut state = ManifestState::default();
        let order_of = |id: &str| self.options.components.key_order(id);
        let fold = |record: &Record| state.apply(record, &order_of);
        let folded = fold_manifest(&self.env, self.dir, number, uid, fold)
            .and_then(|folded| self.check_witnesses(&state, &folded));
        match folded {
            Ok(()) if state.keyspaces.contains_key(&KeyspaceId::DEFAULT) => {
                let (manifest, current, left_out) = (None, None, Vec::new());
                Ok(Some(Found { state, database_uid, manifest, current, left_out }))
            }
            Ok(()) => Ok(None),
            Err(error) if error.is_corruption() => {
                self.report.problems.push(error);
                Ok(None)
            }
            // A manifest that cannot be read now may be whole: made anew from the
            // tables it would lose the names of keyspaces.
            Err(error) => Err(error),
        }
    }

    /// Whether the manifest is what every log that can be read remembers of it.
    fn check_witnesses(&self, state: &ManifestState, manifest: &Folded) -> Result<()> {
        for &number in &self.listing.wals {
            let path = self.dir.join(names::wal(number));
            let file = self.env.fs.open(&path, ReadOptions::default())?;
            let Ok(mut reader) = Reader::open(file, LogKind::Wal, None) else { continue };
            let header = reader.header();
            let known = state.wals.get(&number);
            if !is_log(header, number, known)
                || known.is_none() && !is_own(&self.env, self.dir, header, Some(manifest))?
            {
                continue;
            }
            let (seen, bytes) = (header.manifest_number, header.manifest_durable_bytes);
            manifest.check(self.dir, Length { number: seen, bytes }, number)?;
            while let Ok(Some(record)) = reader.next() {
                if record.class == Class::Mark {
                    let mark = Mark::decode(record.payload);
                    mark.and_then(|mark| manifest.check(self.dir, mark.manifest, number))?;
                }
            }
        }
        Ok(())
    }

    pub(crate) fn table_path(&self, number: FileNumber) -> PathBuf {
        self.dir.join(names::table(number))
    }

    /// Verifies a keyspace's tables and replaces those that are damaged.
    fn repair_tree(&mut self, core: &Arc<Core>, tree: &Tree) -> Result<()> {
        let version = tree.version();
        let mut edit = Edit::default();
        for (level, part, file) in version.files() {
            let name = names::table(file.number);
            let mut path = self.table_path(file.number);
            let damage = match self.env.fs.exists(&path)? {
                true => self.check(tree, file)?,
                false => {
                    let what = "a table that the manifest names is missing";
                    let missing = Error::corruption(what).with_file(path.display().to_string());
                    path = originals::place_in_lost(self.dir, &name);
                    Some(missing)
                }
            };
            let Some(error) = damage else {
                self.report.tables_kept += 1;
                continue;
            };
            self.report.problems.push(error);
            edit.removed.push((level, part, file.number));
            let known = Known {
                number: file.number,
                uid: file.uid,
                counts: Some((file.entries, file.range_tombstones)),
            };
            let saved = self.salvage(core, tree, &path, &known, level)?;
            let at_place = |f: File| (level, part, Arc::new(File { epoch: file.epoch, ..f }));
            edit.added.extend(saved.into_iter().map(at_place));
            self.keep_original(name)?;
        }
        self.apply(core, tree, edit)
    }

    pub(crate) fn count_saved(&mut self, saved: &[File]) {
        match saved.is_empty() {
            true => self.report.tables_lost += 1,
            false => self.report.tables_salvaged += 1,
        }
        self.report.entries_salvaged += saved.iter().map(|f| f.entries).sum::<u64>();
    }

    /// What is wrong with a table, if something is.
    ///
    /// # Errors
    /// What kept it from being opened: it may be whole.
    pub(crate) fn check(&self, tree: &Tree, file: &File) -> Result<Option<Error>> {
        if mutant!(RepairTrustsTables) {
            return Ok(None);
        }
        let raw = self.env.fs.open(&self.table_path(file.number), ReadOptions::default())?;
        let expect = Expect { file_bytes: file.bytes, uid: file.uid, order: tree.order.clone() };
        Ok(table::verify(&raw, expect).err())
    }

    pub(crate) fn apply(&self, core: &Core, tree: &Tree, edit: Edit) -> Result<()> {
        let mut catalog = core.catalog.lock();
        tree.install(catalog.edit_unlogged(tree.id, |_| edit)?, None);
        Ok(())
    }

    /// Replays the logs from number `from` on as far as they go. Those of which
    /// something was not taken over are kept.
    pub(crate) fn replay(
        &mut self,
        replay: Replay<'_>,
        state: &ManifestState,
        from: FileNumber,
    ) -> Result<Salvaged> {
        let mut paths: BTreeMap<FileNumber, PathBuf> = BTreeMap::new();
        for &number in self.listing.wals.range(from..) {
            let path = self.dir.join(names::wal(number));
            // One that cannot be opened now may be whole.
            let file = self.env.fs.open(&path, ReadOptions::default())?;
            if !self.was_never_begun(file, number, state) {
                paths.insert(number, path);
            }
        }
        // A repair of an earlier version moved them before it was done.
        for &number in state.wals.keys().filter(|&&number| from <= number) {
            let moved = originals::place_in_lost(self.dir, &names::wal(number));
            if !paths.contains_key(&number) && self.env.fs.exists(&moved)? {
                paths.insert(number, moved);
            }
        }
        let mut salvaged = replay.run_tolerant(&paths)?;
        self.report.batches_replayed = salvaged.replayed.batches;
        for (number, error) in salvaged.problems.drain(..) {
            let bytes = self.env.fs.len(Path::new(error.file().unwrap_or_default()));
            self.report.logs.push(DamagedLog {
                file: names::wal(number),
                from_byte: error.offset().unwrap_or(0),
                bytes: bytes.unwrap_or(0),
            });
            self.keep_original(names::wal(number))?;
            self.report.problems.push(error);
        }
        for (&number, wal) in state.wals.range(from..) {
            // That of a clean close holds nothing.
            if state.clean_close.is_none_or(|(closed, _)| closed != number) {
                let found = paths.get(&number).map(|path| (&**path, salvaged.ends.get(&number)));
                self.account_for_log(number, wal, found)?;
            }
        }
        Ok(salvaged)
    }

    /// Whether a log was made and never written to: its header is not there, and
    /// no record can be, since the manifest names a log before one goes in.
    fn was_never_begun(
        &self,
        file: Arc<dyn ReadFile>,
        number: FileNumber,
        state: &ManifestState,
    ) -> bool {
        let has_header = Reader::open(file.clone(), LogKind::Wal, None).is_ok();
        match self.report.manifest_rebuilt {
            false => !has_header && !state.wals.contains_key(&number),
            // Nothing says which logs there were: behind a header there is no record.
            true => !has_header && is_blank(&*file, FILE_HEADER_BYTES as u64),
        }
    }

    /// Has a file of which not everything was taken over kept in `lost/`.
    pub(crate) fn keep_original(&mut self, name: String) -> Result<()> {
        if mutant!(RepairMovesFirst) {
            return mutants::move_to_lost(&self.env, self.dir, &name);
        }
        self.originals.add(name);
        Ok(())
    }
}

/// Whether a file is all zeros from a place on, as space that is set aside.
pub(crate) fn is_blank(file: &dyn ReadFile, from: u64) -> bool {
    let mut bytes = vec![0; BLANK_CHUNK_BYTES];
    let mut at = from;
    while at < file.len() {
        let chunk = BLANK_CHUNK_BYTES.min((file.len() - at) as usize);
        let read = file.read_at(at, &mut bytes[..chunk]);
        if read.is_err() || bytes[..chunk].iter().any(|byte| *byte != 0) {
            return false;
        }
        at += chunk as u64;
    }
    true
}
