//! Rebuild: repair where the manifest is lost.
//!
//! Without the manifest nothing says which tables are part of a tree, which of them is newer, and
//! which entries of the logs are in tables. So all tables of a keyspace and all entries of the logs
//! are merged into one run, key by key in the order of sequence numbers. `lineage` decides which
//! entries count.
//!
//! That tables reach up to some sequence number proves nothing about the logs: a flush writes its
//! tables one by one, and may have been cut short.
//!
//! Owns: that merge. Never does: delete a file, or decide which keyspaces there are (`evidence.rs`
//! does).

use super::evidence::FileEvidence;
use super::findings::Findings;
use super::logs::{is_blank, replay};
use super::report::DamagedTable;
use super::salvage::{Damaged, salvage};
use super::site::Site;
use super::trees::apply;
use crate::database::Database;
use crate::log::logs_at_rest::Replayed;
use crate::open::replay::Replay;
use crate::repair::lineage::{Lineage, Origin, OriginEntry};
use std::collections::BTreeSet;
use std::sync::Arc;
use windrow_base::{Error, FileNumber, Result, SeqNo, key};
use windrow_env::fs::ReadFileOptions;
use windrow_format::names;
use windrow_plan::tree::{Edit, File, Part};
use windrow_read::read::level_iter::LevelIter;
use windrow_read::read::merge_iter::{MergeIter, MergeSource};
use windrow_read::read::table_iter::TableIterOptions;
use windrow_read::read::view::{SortedRun, VersionFile};
use windrow_store::merge::dropper::Sink;
use windrow_store::merge::raw_tables::{describe, newest_tombstones, outputs};
use windrow_store::tree::Tree;

/// A table that is merged: of the database, of the entries saved from a table, or of a log.
struct Gathered {
    file: File,
    origin: Origin,
}

/// A rebuild in progress.
pub(super) struct Rebuild<'a> {
    pub(super) site: &'a Site<'a>,
    pub(super) findings: &'a mut Findings,
    pub(super) evidence: FileEvidence,
    pub(super) database: &'a Arc<Database>,
}

impl Rebuild<'_> {
    /// Makes every keyspace's tree.
    ///
    /// # Errors
    /// The errors of opening a file, and of writing.
    pub(super) fn run(mut self) -> Result<Replayed> {
        let (site, database) = (self.site, self.database);
        let state = database.catalog.state();
        let logs = Replay::of_rebuild(database, &state, self.evidence.proof);
        let salvaged = replay(site, self.findings, logs, &state, 0)?;
        let (mut replayed, mut raw) = (salvaged.replayed, salvaged.raw);
        let log_end = replayed.last_seq;
        let trees: Vec<Arc<Tree>> = database.trees().iter().cloned().collect();
        for tree in &trees {
            let mut gathered: Vec<Gathered> = raw
                .remove(&tree.id)
                .unwrap_or_default()
                .into_iter()
                .map(|(chain, file)| Gathered { file, origin: Origin::Log { chain } })
                .collect();
            let damaged = self.gather_tables(tree, &mut gathered)?;
            let through = gathered.iter().map(|g| g.file.seq_max).max().unwrap_or(0).max(log_end);
            replayed.last_seq = replayed.last_seq.max(through);
            let merged = self.merge_all(tree, gathered)?;
            let edit = Edit {
                added: merged.into_iter().map(|f| (1, Part::Run, Arc::new(f))).collect(),
                flushed_through: Some(through),
                ..Edit::default()
            };
            apply(database, tree, edit)?;
            for number in damaged {
                self.findings.keep_original(names::table(number));
            }
        }
        self.give_up_unknown()?;
        self.findings.keep_logs_in_doubt(site);
        Ok(replayed)
    }

    /// Verifies every table of a keyspace. Of damaged tables it takes the readable entries, and
    /// returns their numbers.
    fn gather_tables(
        &mut self,
        tree: &Tree,
        gathered: &mut Vec<Gathered>,
    ) -> Result<Vec<FileNumber>> {
        let site = self.site;
        let mut damaged = Vec::new();
        for (&number, properties) in &self.evidence.tables {
            let Some(properties) = properties.as_ref().filter(|p| p.keyspace == tree.id) else {
                continue;
            };
            let path = site.table_path(number);
            let file = describe(number, properties, site.env.fs.len(&path)?);
            let (uid, given_seq) = (file.uid, file.given_seq());
            let counts = Some((file.entries, file.range_tombstones));
            let made_of = properties.made_of.clone();
            let (files, whole) = match site.check(tree, &file)? {
                None => {
                    self.findings.report.tables_kept += 1;
                    (vec![file], true)
                }
                Some(error) => {
                    self.findings.problem(error);
                    let known = Damaged { path: &path, number, uid, given_seq, counts, level: 1 };
                    let saved = salvage(site, self.findings, self.database, tree, &known)?;
                    damaged.push(number);
                    (saved, false)
                }
            };
            let origin = || Origin::Table { number, made_of: made_of.clone(), whole };
            gathered.extend(files.into_iter().map(|file| Gathered { file, origin: origin() }));
        }
        Ok(damaged)
    }

    /// Merges tables, each with its origin, into new ones. Tables that may hold more than was taken
    /// from them are moved away.
    fn merge_all(&mut self, tree: &Tree, gathered: Vec<Gathered>) -> Result<Vec<File>> {
        let database = self.database;
        let mut open = Vec::new();
        let (mut sources, mut origins, mut made_of) = (Vec::new(), Vec::new(), Vec::new());
        for Gathered { file, origin } in gathered {
            let file = Arc::new(file);
            let table = database.caches.tables.handle(&file, &tree.reads.order);
            open.push(database.caches.tables.open(&table)?);
            made_of.push((file.clone(), file.number));
            if let Origin::Table { number, .. } = &origin {
                made_of.push((file.clone(), *number));
            }
            let run =
                Arc::new(SortedRun::new(1, vec![VersionFile { file, table }], &tree.reads.order));
            let options = TableIterOptions::sequential(256 << 10);
            sources.push(MergeSource::Level(LevelIter::new(run, tree.reads.clone(), options)));
            origins.push(origin);
        }
        let mut iter = MergeIter::new(sources, tree.reads.order.clone(), database.env.fs.clone());
        let all = open.iter().flat_map(|open| open.table.tombstones().rejoined());
        let mut outputs = outputs(database, tree, 1, &newest_tombstones(tree, all));
        outputs.made_of = Some(made_of);
        let (mut key, mut entries, mut doubts) = (Vec::new(), Vec::new(), BTreeSet::new());
        iter.seek_first()?;
        while iter.valid() {
            key.clear();
            key.extend_from_slice(iter.user_key());
            read_key(&mut iter, tree, &key, &mut entries)?;
            let operator = tree.reads.operator.as_deref();
            let lineage = Lineage { key: &key, entries: &entries, origins: &origins, operator };
            for (i, entry) in lineage.choose(&mut doubts).into_iter().enumerate() {
                outputs.keep(&key, entry.trailer, &entry.value, i == 0)?;
            }
        }
        iter.status()?;
        let files = outputs.finish(0)?;
        for origin in doubts {
            self.report_doubt(&origins[origin])?;
        }
        Ok(files)
    }

    /// Reports and keeps the file whose merge operands were left out.
    fn report_doubt(&mut self, origin: &Origin) -> Result<()> {
        let site = self.site;
        let Origin::Table { number, .. } = origin else {
            let what = "merge operands in the logs may be in tables too, and were left out";
            let dir = site.dir.display().to_string();
            self.findings.problem(Error::corruption(what).with_file(dir));
            self.findings.doubt_logs(site);
            return Ok(());
        };
        let what = "merge operands in the table may be in newer tables too, and were left out";
        let path = site.table_path(*number).display().to_string();
        self.findings.problem(Error::corruption(what).with_file(path));
        let name = names::table(*number);
        match self.findings.report.tables.iter_mut().find(|table| table.file == name) {
            Some(table) => table.in_doubt = true,
            None => self.findings.report.tables.push(DamagedTable {
                file: name.clone(),
                in_doubt: true,
                ..DamagedTable::default()
            }),
        }
        self.findings.keep_original(name);
        Ok(())
    }

    /// Keeps the tables whose keyspace is not known. A flush or merge that was cut short leaves
    /// such tables too, so they are no problem by themselves.
    fn give_up_unknown(&mut self) -> Result<()> {
        let site = self.site;
        for (number, _) in self.evidence.tables.iter().filter(|(_, known)| known.is_none()) {
            let file = site.env.fs.open(&site.table_path(*number), ReadFileOptions::default())?;
            if is_blank(&*file, 0) {
                continue;
            }
            let name = names::table(*number);
            self.findings.report.tables_lost += 1;
            self.findings
                .report
                .tables
                .push(DamagedTable { file: name.clone(), ..Default::default() });
            self.findings.keep_original(name);
        }
        Ok(())
    }
}

/// Reads the entries of the current key, down to the first that ends a search (and others of its
/// sequence number).
fn read_key(
    iter: &mut MergeIter,
    tree: &Tree,
    key: &[u8],
    entries: &mut Vec<OriginEntry>,
) -> Result<()> {
    entries.clear();
    let mut end: SeqNo = 0;
    while iter.valid() && tree.reads.order.equal(iter.user_key(), key) {
        let (trailer, origin) = (iter.trailer(), iter.source_index());
        let seq = key::trailer_seq(trailer);
        if end <= seq {
            let entry = OriginEntry { trailer, value: iter.value_slice(), origin };
            if entry.ends_search() {
                end = seq;
            }
            entries.push(entry);
        }
        iter.next()?;
    }
    Ok(())
}
