//! What a database looks like: `tree`, `stats`, `keyspaces`, `options`.

use crate::args::{KeyspacesArgs, StatsArgs, TreeArgs};
use crate::failure::{Failure, Result};
use crate::human::{self, Paint};
use crate::picture;
use crate::store::{self, Access, Opened};
use std::io::{self, Write};
use windrow::{Db, Settings};

pub(crate) fn tree(args: &TreeArgs) -> Result<()> {
    store::with(&args.open, Access::Read, |db| {
        if let Some(name) = &args.keyspace {
            store::keyspace(db, name)?;
        }
        let mut out = io::stdout().lock();
        for tree in picture::of(db) {
            if args.keyspace.as_ref().is_some_and(|name| *name != tree.keyspace) {
                continue;
            }
            write!(out, "{}", picture::draw(&tree, human::columns(), Paint::stdout()))?;
            if args.files {
                write!(out, "{}", picture::list(&tree))?;
            }
        }
        Ok(out.flush()?)
    })
}

/// Of a database that another process has open, what that wrote last.
pub(crate) fn stats(args: &StatsArgs) -> Result<()> {
    let print = |text: &str| -> Result<()> {
        let mut out = io::stdout().lock();
        writeln!(out, "{}", text.trim_end())?;
        Ok(out.flush()?)
    };
    let Opened { db, is_followed } = store::opened(&args.open, Access::Read)?;
    let running = if is_followed { Db::running_stats(&args.open.path)? } else { None };
    match running {
        Some(running) if args.json => print(&running.json),
        Some(running) => {
            print(&format!("of process {}, {}", running.process, age(running.written_ms)))?;
            print(&running.table)
        }
        None if is_followed => Err(Failure::failed(
            "another process has the database open, and has not written its statistics yet",
        )
        .hint(
            "it writes them every 10 seconds (stats_period_ms), if it is not told otherwise: try \
             again then",
        )),
        None => {
            let stats = db.stats();
            print(&if args.json { stats.to_json() } else { stats.to_string() })
        }
    }
}

/// How long ago a time is.
fn age(written_ms: u64) -> String {
    let now_ms = windrow::env::Env::os(1).clock.wall_ms();
    format!("{:.1} s ago", now_ms.saturating_sub(written_ms) as f64 / 1e3)
}

pub(crate) fn keyspaces(args: &KeyspacesArgs) -> Result<()> {
    let mut out = io::stdout().lock();
    for keyspace in store::keyspaces(&args.open)? {
        writeln!(out, "{}", keyspace.name)?;
    }
    Ok(out.flush()?)
}

/// The library's own table of settings, so that this list cannot grow old.
pub(crate) fn options() -> Result<()> {
    let paint = Paint::stdout();
    let mut out = io::stdout().lock();
    for row in Settings::table() {
        writeln!(out, "{} = {}", paint.bold(row.name), row.default_value())?;
        writeln!(out, "    {}", row.help)?;
        writeln!(out, "    {}", paint.dim(row.range.describe(row.unit)))?;
    }
    Ok(out.flush()?)
}
