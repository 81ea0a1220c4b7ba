//! A frame of `top`: the figures of a running database, as lines of text.
//!
//! Owns: the layout. Never does: I/O.

use super::reading::{Level, Pause, Reading, Span, of_level, sum, tables_written};
use crate::bytes::printable;
use crate::human::{self, Paint};
use std::time::Duration;

/// The facts about the process besides its counters.
pub(super) struct WatchedProcess<'a> {
    /// The path as the user gave it.
    pub(super) database: &'a str,
    pub(super) process: u32,
    /// The time since its statistics were written.
    pub(super) age: Duration,
    pub(super) is_paused: bool,
}

/// Returns the lines of a frame.
pub(super) fn lines(source: &WatchedProcess<'_>, span: &Span<'_>, paint: Paint) -> Vec<String> {
    let mut lines = head(source, span, paint);
    lines.extend(operations(span, paint));
    lines.extend(bytes(span));
    lines.extend(waits(span));
    lines.push(memory(span.now));
    lines.push(String::new());
    lines.extend(levels(span, paint));
    lines
}

fn head(source: &WatchedProcess<'_>, span: &Span<'_>, paint: Paint) -> Vec<String> {
    let open = human::time(Duration::from_micros(span.now.uptime_us));
    let paused = if source.is_paused { "  PAUSED: space goes on" } else { "" };
    let over = match span.is_whole() {
        true => "since it was opened".to_owned(),
        false => format!("over the last {:.1} s", span.seconds),
    };
    vec![
        format!(
            "{}  process {}, open for {open}{paused}",
            paint.bold(source.database),
            source.process
        ),
        paint.dim(format!("rates {over}; as of {} ago", human::time(source.age))),
        String::new(),
    ]
}

/// Returns the table of operations: rates, and latencies.
fn operations(span: &Span<'_>, paint: Paint) -> Vec<String> {
    let row = |name: &str, rate: f64, of: &str, note: String| {
        let latency = span.now.latencies.iter().find(|l| l.of == of && l.count > 0);
        let times = latency.map_or_else(
            || format!("{:>10} {:>10} {:>10} {:>10}", "-", "-", "-", "-"),
            |l| {
                let times = [l.p50_ns, l.p99_ns, l.p999_ns, l.longest_ns];
                let times =
                    times.map(|ns| format!("{:>10}", human::time(Duration::from_nanos(ns))));
                times.join(" ")
            },
        );
        format!("{name:<10} {:>12} {times}  {note}", human::count(rate.round() as u64))
            .trim_end()
            .to_owned()
    };
    let found = span.share(|r| r.gets_found, |r| r.gets);
    let scanned = span.share(|r| r.entries_scanned, |r| r.seeks);
    let in_batch = span.share(|r| r.operations, |r| r.batches);
    let heads = format!(
        "{:<10} {:>12} {:>10} {:>10} {:>10} {:>10}  (times since it was opened)",
        "", "a second", "p50", "p99", "p99.9", "longest"
    );
    vec![
        paint.dim(heads),
        row(
            "gets",
            span.rate(|r| r.gets),
            "get",
            found.map_or(String::new(), |s| format!("{:.0} % found", s * 100.0)),
        ),
        row(
            "seeks",
            span.rate(|r| r.seeks),
            "seek",
            scanned.map_or(String::new(), |n| format!("{n:.1} entries each")),
        ),
        row(
            "commits",
            span.rate(|r| r.batches),
            "commit",
            in_batch.map_or(String::new(), |n| format!("{n:.1} writes each")),
        ),
        String::new(),
    ]
}

/// Returns the lines of bytes that are read and written.
fn bytes(span: &Span<'_>) -> Vec<String> {
    let size = |rate: f64| format!("{}/s", human::size(rate.round() as u64));
    let percent =
        |share: Option<f64>| share.map_or("-".to_owned(), |s| format!("{:.1} %", s * 100.0));
    let written = |r: &Reading| sum([r.wal_bytes, tables_written(r)]);
    let amplification = span.share(written, |r| r.user_bytes);
    vec![
        format!(
            "written    {} of keys and values; log {}, tables {}; {} bytes for each",
            size(span.rate(|r| r.user_bytes)),
            size(span.rate(|r| r.wal_bytes)),
            size(span.rate(tables_written)),
            amplification.map_or("-".to_owned(), |times| format!("{times:.2}")),
        ),
        format!(
            "read       {} in {:.0} blocks/s; {} of blocks from the cache; {} of filters said maybe in vain",
            size(span.rate(|r| r.blocks_read_bytes)),
            span.rate(|r| r.blocks_read),
            percent(span.share(|r| r.cache_hits, |r| sum([r.cache_hits, r.cache_misses]))),
            percent(span.share(|r| r.filter_false_positives, |r| r.filter_checks)),
        ),
        format!(
            "log        {} on disk, {:.1} syncs/s, {:.2} flushes/s; {} open, {} for followers, {} for changes",
            human::size(span.now.wal_live_bytes),
            span.rate(|r| r.wal_syncs),
            span.rate(|r| r.flushes),
            human::plural(span.now.readers_open, "snapshot"),
            human::plural(span.now.files_waiting, "file"),
            human::size(span.now.changes_bytes),
        ),
    ]
}

/// Returns the share of the time that writers waited, by reason.
fn waits(span: &Span<'_>) -> Vec<String> {
    let of = |reason: &str| {
        let reason = reason.to_owned();
        move |r: &Reading| {
            let pauses = r.pauses.iter().filter(|pause| pause.reason == reason);
            sum(pauses.map(|pause| pause.total_us))
        }
    };
    let waited = |pause: &Pause| {
        let us = span.grown(of(&pause.reason));
        let share = us as f64 / 1e4 / span.seconds;
        let reason = printable(pause.reason.replace('_', " ").as_bytes());
        (us > 0).then(|| format!("{reason} {share:.1} %"))
    };
    let waits: Vec<String> = span.now.pauses.iter().filter_map(waited).collect();
    let told = if waits.is_empty() { "none".to_owned() } else { waits.join(", ") };
    vec![format!("pauses     of writers, in the time of one: {told}")]
}

fn memory(now: &Reading) -> String {
    let memory = &now.memory;
    let parts = [
        ("memtables", memory.memtables_bytes),
        ("block cache", memory.cache_bytes),
        ("indexes and filters", memory.tables_bytes),
        ("merges", memory.merge_bytes),
        ("readers", memory.readers_bytes),
        ("transactions", memory.transactions_bytes),
        ("the program", memory.outside_bytes),
    ];
    let parts = parts.iter().filter(|(_, bytes)| *bytes > 0);
    let told: Vec<String> =
        parts.map(|(name, bytes)| format!("{name} {}", human::size(*bytes))).collect();
    let of = human::size(memory.budget_bytes);
    format!("memory     {} of {of}: {}", human::size(memory.used_bytes()), told.join(", "))
}

/// Returns a row for each level that has or had something.
fn levels(span: &Span<'_>, paint: Paint) -> Vec<String> {
    let heads = format!(
        "{:>5} {:>8} {:>8} {:>12} {:>14} {:>14} {:>10}",
        "level", "in runs", "in logs", "bytes", "read for it", "written to it", "merges/s"
    );
    let mut lines = vec![paint.dim(heads)];
    for level in &span.now.levels {
        let Level { run_files, log_files, bytes, .. } = *level;
        let rate = |figure: fn(&Level) -> u64| span.rate(of_level(level.level, figure));
        let size = |rate: f64| format!("{}/s", human::size(rate.round() as u64));
        lines.push(format!(
            "{:>5} {:>8} {:>8} {:>12} {:>14} {:>14} {:>10.2}",
            level.level,
            human::count(run_files),
            human::count(log_files),
            human::size(bytes),
            size(rate(|l| l.read_bytes)),
            size(rate(|l| l.written_bytes)),
            rate(|l| l.merges),
        ));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::super::reading::{Latency, Memory};
    use super::*;

    fn reading(uptime_s: u64, gets: u64, written: u64, waited_us: u64) -> Reading {
        Reading {
            uptime_us: uptime_s * 1_000_000,
            gets,
            gets_found: gets / 4,
            batches: gets / 10,
            operations: gets / 5,
            user_bytes: written / 2,
            levels: vec![Level {
                level: 1,
                run_files: 3,
                bytes: 4096,
                written_bytes: written,
                ..Level::default()
            }],
            pauses: vec![Pause { reason: "level0_deep".to_owned(), count: 1, total_us: waited_us }],
            latencies: vec![Latency {
                of: "get".to_owned(),
                count: 1,
                p50_ns: 1_500,
                ..Latency::default()
            }],
            memory: Memory { budget_bytes: 1 << 20, cache_bytes: 1 << 19, ..Memory::default() },
            ..Reading::default()
        }
    }

    #[test]
    fn a_frame_tells_what_happened_between_two_readings() {
        let (before, now) = (reading(10, 1_000, 1 << 20, 0), reading(12, 25_000, 5 << 20, 100_000));
        let source = WatchedProcess {
            database: "words.db",
            process: 7,
            age: Duration::from_millis(1_500),
            is_paused: false,
        };
        let text = lines(&source, &Span::new(Some(&before), &now), Paint::plain()).join("\n");
        for part in [
            "words.db  process 7, open for 12.0 s\n",
            "rates over the last 2.0 s; as of 1.50 s ago",
            "gets             12,000    1.50 µs",
            "25 % found",
            "2.0 writes each",
            "written    1.0 MiB/s of keys and values; log 0 B/s, tables 2.0 MiB/s; 2.00 bytes for each",
            "in the time of one: level0 deep 5.0 %",
            "memory     512.0 KiB of 1.0 MiB: block cache 512.0 KiB",
            "    1        3        0      4.0 KiB          0 B/s      2.0 MiB/s       0.00",
        ] {
            assert!(text.contains(part), "{part}\n{text}");
        }
        // The statistics are another process's file, and may have any content.
        let mut hostile = reading(u64::MAX / 1_000_000, u64::MAX, u64::MAX, u64::MAX);
        (hostile.wal_bytes, hostile.cache_hits, hostile.cache_misses) = (u64::MAX, u64::MAX, 1);
        hostile.levels.push(hostile.levels[0]);
        hostile.memory.memtables_bytes = u64::MAX;
        hostile.pauses.push(Pause { reason: "\x1b[31mred".to_owned(), count: 1, total_us: 1 });
        let text = lines(&source, &Span::new(None, &hostile), Paint::plain()).join("\n");
        assert!(!text.contains('\x1b') && text.contains("red"), "{text}");
        let text = lines(&source, &Span::new(None, &now), Paint::plain()).join("\n");
        assert!(text.contains("rates since it was opened"), "{text}");
        assert!(text.contains("gets              2,083"), "{text}");
    }
}
