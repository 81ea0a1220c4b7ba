//! `stats`: the contents of a database, and the counters of the process that has it open.
//!
//! A process that opens a database only to print has no counts worth printing: without another one,
//! the text has only the contents at rest.
//!
//! Owns: their output. Never does: count.

use crate::args::StatsArgs;
use crate::failure::{Failure, Result};
use crate::human::{self, Paint};
use crate::store::{self, Access};
use serde_json::{Value, json};
use std::io::{self, Write};
use windrow::inspect::{KeyspaceAtRest, TablesAtRest};
use windrow::stats::RunningStats;
use windrow::{Db, Stats};

pub(crate) fn run(args: &StatsArgs) -> Result<()> {
    store::with_opened(&args.open, Access::Read, |opened| {
        let running = match opened.is_followed {
            true => Db::running_stats(&args.open.path)?,
            false => None,
        };
        let (at_rest, stats) = (opened.db.at_rest()?, opened.db.stats());
        let mut out = io::stdout().lock();
        if args.json {
            writeln!(out, "{}", to_json(&at_rest, &stats, running.as_ref())?)?;
            return Ok(out.flush()?);
        }
        print_at_rest(&mut out, &at_rest, &stats)?;
        if let Some(running) = running {
            let (process, age) = (running.process, age(running.written_ms));
            writeln!(out, "\nof process {process}, {age}\n{}", running.table.trim_end())?;
        } else if opened.is_followed {
            store::warn(
                "the process that has the database open writes its statistics every 10 seconds \
                 (stats_period_ms), if it is not told otherwise: try again then",
            );
        } else if opened.is_session {
            writeln!(out, "\nof this session\n{}", stats.to_string().trim_end())?;
        }
        Ok(out.flush()?)
    })
}

/// Returns the age of a time.
fn age(written_ms: u64) -> String {
    let now_ms = windrow::env::Env::os(1).clock.wall_ms();
    format!("{:.1} s ago", now_ms.saturating_sub(written_ms) as f64 / 1e3)
}

/// Returns the counters, of the running process if there is one, and the contents at rest.
fn to_json(
    at_rest: &[KeyspaceAtRest],
    stats: &Stats,
    running: Option<&RunningStats>,
) -> Result<Value> {
    let text = running.map_or_else(|| stats.to_json(), |running| running.json.clone());
    let mut json: Value = serde_json::from_str(&text).map_err(|error| {
        Failure::failed(format!("the statistics of the running process cannot be read: {error}"))
            .hint("another version of windrow may have written them: use that one")
    })?;
    let process =
        running.map(|running| json!({ "id": running.process, "written_ms": running.written_ms }));
    json["process"] = json!(process);
    json["at_rest"] = at_rest.iter().map(keyspace_to_json).collect();
    Ok(json)
}

fn keyspace_to_json(keyspace: &KeyspaceAtRest) -> Value {
    let levels: Vec<Value> = (0..)
        .zip(&keyspace.levels)
        .map(|(number, tables)| {
            let mut level = tables_to_json(tables);
            level["level"] = json!(number);
            level
        })
        .collect();
    json!({
        "name": keyspace.name,
        "memtable_entries": keyspace.memtable_entries,
        "memtable_bytes": keyspace.memtable_bytes,
        "total": tables_to_json(&keyspace.tables()),
        "levels": levels,
    })
}

fn tables_to_json(tables: &TablesAtRest) -> Value {
    json!({
        "tables": tables.tables,
        "bytes": tables.bytes,
        "entries": tables.entries,
        "tombstones": tables.tombstones,
        "range_tombstones": tables.range_tombstones,
        "expiring_entries": tables.expiring_entries,
        "key_bytes": tables.key_bytes,
        "value_bytes": tables.value_bytes,
        "data_bytes": tables.data_bytes,
        "index_bytes": tables.index_bytes,
        "filter_bytes": tables.filter_bytes,
        "compression_ratio": tables.compression_ratio(),
    })
}

fn print_at_rest(out: &mut impl Write, at_rest: &[KeyspaceAtRest], stats: &Stats) -> Result<()> {
    let paint = Paint::stdout();
    for (n, keyspace) in at_rest.iter().enumerate() {
        if n > 0 {
            writeln!(out)?;
        }
        let policy = stats.keyspaces.iter().find(|of| of.name == keyspace.name);
        let policy = policy.map_or("", |of| of.policy.as_str());
        writeln!(out, "keyspace {}", paint.bold(&keyspace.name))?;
        if keyspace.memtable_entries > 0 {
            let entries = human::plural(keyspace.memtable_entries, "entry");
            writeln!(
                out,
                "  {entries} in no table yet, in {}",
                human::size(keyspace.memtable_bytes)
            )?;
        }
        let heads = ["level", "tables", "on disk", "entries", "tombstones", "ranges", "ratio"];
        writeln!(out, "{}", paint.dim(columns(&heads.map(str::to_owned))))?;
        for (level, tables) in keyspace.levels.iter().enumerate().filter(|of| of.1.tables > 0) {
            writeln!(out, "{}", row(&level.to_string(), tables))?;
        }
        let total = keyspace.tables();
        writeln!(out, "{}", row("all", &total))?;
        let (keys, values) = (human::size(total.key_bytes), human::size(total.value_bytes));
        let (data, index, filters) = (
            human::size(total.data_bytes),
            human::size(total.index_bytes),
            human::size(total.filter_bytes),
        );
        writeln!(
            out,
            "  keys {keys} and values {values} in data blocks of {data}; indexes {index}, \
             filters {filters}; {} that expire",
            human::plural(total.expiring_entries, "entry"),
        )?;
        writeln!(out, "  policy {policy}")?;
    }
    Ok(())
}

fn row(name: &str, tables: &TablesAtRest) -> String {
    columns(&[
        name.to_owned(),
        human::count(tables.tables),
        human::size(tables.bytes),
        human::count(tables.entries),
        human::count(tables.tombstones),
        human::count(tables.range_tombstones),
        format!("{:.2}", tables.compression_ratio()),
    ])
}

fn columns(cells: &[String; 7]) -> String {
    let [level, tables, bytes, entries, tombstones, ranges, ratio] = cells;
    format!(
        "{level:>7} {tables:>7} {bytes:>11} {entries:>14} {tombstones:>12} {ranges:>8} {ratio:>6}"
    )
}
