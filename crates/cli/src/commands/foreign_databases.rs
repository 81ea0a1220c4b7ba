//! `load --from` and `export --to`: databases of LevelDB and RocksDB, by their own libraries.
//!
//! Owns: its messages and its progress. Never does: copy (`windrow-import` does).

use crate::args::{ExportArgs, ForeignStore, LoadArgs};
use crate::failure::{Failure, Result};
use crate::human::{self, Stopwatch};
use crate::progress::Progress;
use crate::stop;
use crate::store::{self, Access};
use std::path::Path;
use windrow::{Error, ErrorKind};
use windrow_import::{Kind, Source, Step};

impl ForeignStore {
    fn kind(self) -> Kind {
        match self {
            ForeignStore::Leveldb => Kind::LevelDb,
            ForeignStore::Rocksdb => Kind::RocksDb,
        }
    }
}

/// The progress of a copy, and whether it was stopped.
struct Told {
    quiet: bool,
    step: Option<Step>,
    progress: Option<Progress>,
    is_stopped: bool,
}

impl Told {
    fn new(quiet: bool) -> Told {
        Told { quiet, step: None, progress: None, is_stopped: false }
    }

    fn at(&mut self, step: Step, pairs: u64) -> windrow::Result<()> {
        if self.step != Some(step) {
            self.progress = None;
            let what = if step == Step::Copying { "pairs copied" } else { "pairs compared" };
            self.progress = Some(Progress::counting(self.quiet, what));
            self.step = Some(step);
        }
        if let Some(progress) = &self.progress {
            progress.at(pairs);
        }
        self.is_stopped = stop::check().is_err();
        match self.is_stopped {
            true => Err(Error::new(ErrorKind::Closed, "stopped")),
            false => Ok(()),
        }
    }

    /// A stop is reported as one, whatever error the copy returned.
    fn outcome<T>(&self, result: windrow::Result<T>) -> Result<T> {
        if self.is_stopped {
            stop::check()?;
        }
        Ok(result?)
    }
}

/// Copies all column families of another store's database.
pub(super) fn import(args: &LoadArgs, from: ForeignStore, quiet: bool) -> Result<()> {
    let usage = || Failure::usage("--from needs the other database's directory behind DB");
    let dir = args.file.as_deref().ok_or_else(usage)?;
    if !dir.is_dir() {
        return Err(Failure::failed(format!("{} is not a directory", dir.display())));
    }
    let watch = Stopwatch::start();
    // Before the database is created: a wrong directory must not leave one.
    let source = Source::open(from.kind(), dir)?;
    let copied = store::with(&args.open, Access::Create, |db| {
        let mut told = Told::new(quiet);
        let copied = windrow_import::import(&source, db, &mut |step, pairs| told.at(step, pairs));
        told.outcome(copied)
    })?;
    if quiet {
        return Ok(());
    }
    for of in &copied {
        let how = if of.was_there { "was there already, compared" } else { "copied and compared" };
        eprintln!("{}: {}, {how}", of.keyspace, human::plural(of.pairs, "pair"));
    }
    eprintln!("in {}", human::time(watch.elapsed()));
    Ok(())
}

/// Writes a keyspace as a new database of another store.
pub(super) fn export(args: &ExportArgs, to: ForeignStore, dir: &Path, quiet: bool) -> Result<()> {
    store::with(&args.open, Access::Read, |db| {
        let keyspace = store::keyspace(db, &args.data.keyspace)?;
        let mut told = Told::new(quiet);
        let progress = &mut |step, pairs| told.at(step, pairs);
        let exported = windrow_import::export(&keyspace, to.kind(), dir, progress);
        let pairs = told.outcome(exported)?;
        if !quiet {
            told.progress = None;
            eprintln!("{}: {}, copied and compared", dir.display(), human::plural(pairs, "pair"));
        }
        Ok(())
    })
}
