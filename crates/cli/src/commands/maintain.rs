//! Care of a database: `verify`, `repair`, `compact`, `checkpoint`, `destroy`.

use crate::args::{CheckpointArgs, CompactArgs, DestroyArgs, RepairArgs, VerifyArgs};
use crate::failure::{Failure, Result};
use crate::human::{self, Stopwatch};
use crate::picture;
use crate::progress::Progress;
use crate::store::{self, Access};
use std::io::{self, IsTerminal, Write};
use windrow::{Db, VerifyReport};

pub(crate) fn verify(args: &VerifyArgs, quiet: bool) -> Result<()> {
    let report = store::with(&args.open, Access::Read, |db| {
        let _progress = Progress::waiting(quiet, "verifying");
        Ok(db.verify()?)
    })?;
    let printed = print_verified(&report);
    // First: damage is a failure whether or not anybody reads what it is.
    report.into_result()?;
    printed
}

fn print_verified(report: &VerifyReport) -> Result<()> {
    let mut out = io::stdout().lock();
    for problem in &report.problems {
        writeln!(out, "{problem}")?;
    }
    writeln!(
        out,
        "{} of {}, {} entries: {}",
        human::plural(report.tables, "table"),
        human::size(report.bytes),
        human::count(report.entries),
        if report.is_ok() { "sound" } else { "damaged" },
    )?;
    Ok(out.flush()?)
}

pub(crate) fn repair(args: &RepairArgs, quiet: bool) -> Result<()> {
    store::must_exist(&args.open.path)?;
    let options = store::repair_options(&args.open)?;
    let progress = Progress::waiting(quiet, "repairing");
    let report = windrow::repair(&args.open.path, options)?;
    drop(progress);
    let mut out = io::stdout().lock();
    for problem in &report.problems {
        writeln!(out, "{problem}")?;
    }
    if report.manifest_rebuilt {
        writeln!(out, "the manifest was made anew from the tables")?;
    }
    writeln!(
        out,
        "{} kept whole, {} saved in part ({} entries), {} lost; {} replayed from logs",
        human::plural(report.tables_kept, "table"),
        human::count(report.tables_salvaged),
        human::count(report.entries_salvaged),
        human::count(report.tables_lost),
        human::plural(report.batches_replayed, "batch"),
    )?;
    Ok(out.flush()?)
}

pub(crate) fn compact(args: &CompactArgs, quiet: bool) -> Result<()> {
    store::with(&args.open, Access::Change, |db| {
        let (before, watch) = (tables_bytes(db), Stopwatch::start());
        let progress = Progress::waiting(quiet, "compacting");
        match &args.keyspace {
            Some(name) => store::keyspace(db, name)?.compact_range(None, None)?,
            None => db.compact()?,
        }
        drop(progress);
        if !quiet {
            let (before, after) = (human::size(before), human::size(tables_bytes(db)));
            let time = human::time(watch.elapsed());
            let _ = writeln!(
                io::stderr(),
                "compacted in {time}: tables {before} before, {after} after"
            );
        }
        Ok(())
    })
}

fn tables_bytes(db: &Db) -> u64 {
    picture::of(db).iter().map(picture::TreeView::bytes).sum()
}

pub(crate) fn checkpoint(args: &CheckpointArgs, quiet: bool) -> Result<()> {
    store::with(&args.open, Access::Change, |db| {
        let _progress = Progress::waiting(quiet, "copying");
        Ok(db.checkpoint(&args.target)?)
    })
}

/// Asks on a terminal, since there is no way back; a script has decided.
pub(crate) fn destroy(args: &DestroyArgs) -> Result<()> {
    store::must_exist(&args.path)?;
    let shown = args.path.display();
    if !args.yes && io::stdin().is_terminal() {
        let mut err = io::stderr().lock();
        let _ = write!(err, "Delete the database {shown} for good? Type yes: ");
        let _ = err.flush();
        let mut answer = String::new();
        io::stdin()
            .read_line(&mut answer)
            .map_err(|error| Failure::file("read", "the answer", &error))?;
        if answer.trim() != "yes" {
            return Err(Failure::failed(format!("{shown} is left as it is")));
        }
    }
    Ok(Db::destroy(&args.path)?)
}
