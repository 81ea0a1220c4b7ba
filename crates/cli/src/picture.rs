//! The tree as a picture in text: a row for each run and each epoch of an SST-log, files as boxes
//! over the keys, level under level.
//!
//! The horizontal axis gives each stretch of keys between the boundaries of files as much room as
//! it has data, as far as sizes and bounds tell.
//!
//! Owns: the drawing. Never does: I/O.

use crate::bytes;
use crate::human::{self, Paint};
use std::fmt::Write;

/// The most rows drawn for one SST-log.
const LOG_ROWS_MAX: usize = 8;

/// Columns left of the boxes, and right of them.
const LEFT_COLUMNS: usize = 14;
const RIGHT_COLUMNS: usize = 26;

/// A file as the picture needs it.
#[derive(Clone, Debug)]
pub(crate) struct FileView {
    pub(crate) number: u64,
    /// The epoch: files of one epoch of an SST-log are disjoint, as those of a run are.
    pub(crate) epoch: u64,
    pub(crate) bytes: u64,
    pub(crate) entries: u64,
    pub(crate) tombstones: u64,
    pub(crate) smallest: Vec<u8>,
    pub(crate) largest: Vec<u8>,
}

/// A level: its run by key, its SST-log newest first.
#[derive(Clone, Debug, Default)]
pub(crate) struct LevelView {
    pub(crate) run: Vec<FileView>,
    pub(crate) sst_log: Vec<FileView>,
}

impl LevelView {
    fn files(&self) -> impl Iterator<Item = &FileView> {
        self.run.iter().chain(&self.sst_log)
    }

    fn is_empty(&self) -> bool {
        self.run.is_empty() && self.sst_log.is_empty()
    }
}

/// A keyspace's tree.
#[derive(Clone, Debug)]
pub(crate) struct TreeView {
    pub(crate) keyspace: String,
    pub(crate) levels: Vec<LevelView>,
}

impl TreeView {
    pub(crate) fn files(&self) -> impl Iterator<Item = &FileView> {
        self.levels.iter().flat_map(LevelView::files)
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.files().map(|file| file.bytes).sum()
    }
}

/// Returns every keyspace's tree of an open database.
pub(crate) fn of(db: &windrow::Db) -> Vec<TreeView> {
    let mut trees = Vec::new();
    for (keyspace, version) in windrow::inspect::trees(db) {
        let mut levels: Vec<LevelView> = Vec::new();
        for (level, part, file) in version.files() {
            let level = level as usize;
            if levels.len() <= level {
                levels.resize_with(level + 1, LevelView::default);
            }
            let view = FileView {
                number: file.number,
                epoch: file.epoch,
                bytes: file.bytes,
                entries: file.entries,
                tombstones: file.point_tombstones + file.range_tombstones,
                smallest: file.smallest.to_vec(),
                largest: file.largest.to_vec(),
            };
            let level = &mut levels[level];
            if part.name() == "run" { level.run.push(view) } else { level.sst_log.push(view) }
        }
        trees.push(TreeView { keyspace, levels });
    }
    trees
}

/// The place of keys on the line: the boundaries between stretches of keys, and the share of the
/// data before each.
struct Axis<'a> {
    /// The smallest keys of all files, ascending: stretch `i` runs from boundary
    /// `i` to the next.
    boundaries: Vec<&'a [u8]>,
    /// Bytes before each stretch, and at the end those of all stretches.
    bytes_before: Vec<f64>,
}

impl<'a> Axis<'a> {
    fn new(tree: &'a TreeView) -> Axis<'a> {
        let mut boundaries: Vec<&[u8]> =
            tree.files().map(|file| file.smallest.as_slice()).collect();
        boundaries.sort_unstable();
        boundaries.dedup();
        let mut axis = Axis { bytes_before: vec![0.0; boundaries.len() + 1], boundaries };
        let mut bytes = vec![0.0; axis.boundaries.len()];
        for file in tree.files() {
            let (first, end) = axis.stretches(file);
            let ends =
                axis.boundaries[first + 1..end].iter().map(|boundary| share_before(boundary, file));
            let mut from = 0.0;
            for (bytes, to) in bytes[first..end].iter_mut().zip(ends.chain([1.0])) {
                *bytes += file.bytes.max(1) as f64 * (to - from).max(1e-6);
                from = to;
            }
        }
        for (i, bytes) in bytes.iter().enumerate() {
            axis.bytes_before[i + 1] = axis.bytes_before[i] + bytes;
        }
        axis
    }

    /// Returns the stretches a file covers; at least the one it begins.
    fn stretches(&self, file: &FileView) -> (usize, usize) {
        let first =
            self.boundaries.partition_point(|boundary| *boundary < file.smallest.as_slice());
        let end = self.boundaries.partition_point(|boundary| *boundary <= file.largest.as_slice());
        (first, end.max(first + 1))
    }

    /// Returns the columns of a file, out of `width`; at least one.
    fn columns(&self, file: &FileView, width: usize) -> (usize, usize) {
        let (first, end) = self.stretches(file);
        let total = self.bytes_before.last().copied().unwrap_or(1.0);
        let column = |stretch: usize| {
            ((self.bytes_before[stretch] / total * width as f64).round() as usize).min(width)
        };
        let start = column(first).min(width - 1);
        (start, column(end).max(start + 1))
    }
}

/// Estimates the share of a file's data that lies before a key in it: by distance, with keys as
/// numbers after the common prefix of the file's bounds.
fn share_before(key: &[u8], file: &FileView) -> f64 {
    let (low, high) = (file.smallest.as_slice(), file.largest.as_slice());
    let common = low.iter().zip(high).take_while(|(a, b)| a == b).count();
    let number = |key: &[u8]| {
        let mut head = [0; 8];
        let rest = key.get(common..).unwrap_or_default();
        let n = rest.len().min(head.len());
        head[..n].copy_from_slice(&rest[..n]);
        u64::from_be_bytes(head) as f64
    };
    ((number(key) - number(low)) / (number(high) - number(low)).max(1.0)).clamp(0.0, 1.0)
}

/// Draws a tree into `columns` columns, in lines that each end with a line feed.
pub(crate) fn draw(tree: &TreeView, columns: usize, paint: Paint) -> String {
    let mut out = String::new();
    let files = tree.files().count() as u64;
    let entries: u64 = tree.files().map(|file| file.entries).sum();
    let _ = writeln!(
        out,
        "{}  {}",
        paint.bold(&tree.keyspace),
        paint.dim(format!(
            "{}, {}, {}",
            human::plural(files, "file"),
            human::size(tree.bytes()),
            human::plural(entries, "entry")
        )),
    );
    if files == 0 {
        let _ = writeln!(
            out,
            "  {}",
            paint.dim(
                "no files: what it holds, if anything, is in memory and in the write-ahead log"
            )
        );
        return out;
    }
    let axis = Axis::new(tree);
    let width = columns.saturating_sub(LEFT_COLUMNS + RIGHT_COLUMNS).max(16);
    for (n, level) in tree.levels.iter().enumerate() {
        draw_level(&mut out, &axis, n, level, width, paint);
    }
    draw_ends(&mut out, tree, width, paint);
    out
}

fn draw_level(
    out: &mut String,
    axis: &Axis<'_>,
    n: usize,
    level: &LevelView,
    width: usize,
    paint: Paint,
) {
    if level.is_empty() {
        let _ = writeln!(out, "  L{n:<10} {}", paint.dim("·".repeat(width)));
        return;
    }
    let mut row = |label: &str, files: &[FileView]| {
        let _ =
            writeln!(out, "  {label:<11} {}  {}", boxes(axis, files, width, paint), totals(files));
    };
    if !level.run.is_empty() {
        row(&format!("L{n} run"), &level.run);
    }
    let epochs: Vec<&[FileView]> = level.sst_log.chunk_by(|a, b| a.epoch == b.epoch).collect();
    for (i, files) in epochs.iter().take(LOG_ROWS_MAX).enumerate() {
        row(&if i == 0 { format!("L{n} SST-log") } else { String::new() }, files);
    }
    let older = epochs.get(LOG_ROWS_MAX..).unwrap_or_default().concat();
    if !older.is_empty() {
        let _ = writeln!(out, "{:LEFT_COLUMNS$}and older ones: {}", "", totals(&older));
    }
}

fn totals(files: &[FileView]) -> String {
    let bytes = files.iter().map(|file| file.bytes).sum();
    format!("{}, {}", human::plural(files.len() as u64, "file"), human::size(bytes))
}

/// The contents of one column.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Cell {
    Empty,
    /// One file, by its index, and the sign that draws it.
    File(usize, char),
    /// More files than can be told apart.
    Many,
}

/// Draws a row of files, the boundaries between neighbours visible with and without colour.
fn boxes(axis: &Axis<'_>, files: &[FileView], width: usize, paint: Paint) -> String {
    let mut cells = vec![Cell::Empty; width];
    for (i, file) in files.iter().enumerate() {
        let (start, end) = axis.columns(file, width);
        let end = end.min(width);
        let last = end.saturating_sub(1);
        for (column, cell) in (start..end).zip(&mut cells[start..end]) {
            let mark = if column == last { '▌' } else { '█' };
            *cell = if *cell == Cell::Empty { Cell::File(i, mark) } else { Cell::Many };
        }
    }
    let mut row = String::new();
    let mut rest = cells.as_slice();
    while let Some(&head) = rest.first() {
        let same = |cell: &Cell| match (head, *cell) {
            (Cell::File(a, _), Cell::File(b, _)) => a == b,
            (a, b) => a == b,
        };
        let (run, after) = rest.split_at(rest.iter().take_while(|cell| same(cell)).count());
        rest = after;
        let text: String = run
            .iter()
            .map(|cell| match cell {
                Cell::Empty => '·',
                Cell::File(_, mark) => *mark,
                Cell::Many => '▓',
            })
            .collect();
        row.push_str(&match head {
            Cell::Empty => paint.dim(text),
            Cell::File(i, _) => paint.nth(i, text),
            Cell::Many => text,
        });
    }
    row
}

/// Draws the smallest and the largest key, under the ends of the line.
fn draw_ends(out: &mut String, tree: &TreeView, width: usize, paint: Paint) {
    let smallest = tree.files().map(|file| file.smallest.as_slice()).min().unwrap_or_default();
    let largest = tree.files().map(|file| file.largest.as_slice()).max().unwrap_or_default();
    let bytes_max = width / 2 - 2;
    let left = bytes::shown(smallest, bytes_max);
    let right = bytes::shown(largest, bytes_max);
    let gap = width.saturating_sub(left.chars().count() + right.chars().count()).max(1);
    let _ = writeln!(
        out,
        "{:LEFT_COLUMNS$}{}",
        "",
        paint.dim(format!("{left}{}{right}", " ".repeat(gap)))
    );
}

/// Returns the meaning of the signs of a picture.
pub(crate) fn legend(paint: Paint) -> String {
    let lines = [
        "From left to right: the keys, in order; the more data, the wider. From top to bottom: what is",
        "read first. `█▌` is a file, over its keys; `▓` more files than can be told apart; `·` none.",
        "The files of a run do not overlap. Those of an SST-log may: a row for each of its parts, newest first.",
    ];
    lines.map(|line| format!("{}\n", paint.dim(line))).concat()
}

/// Returns one line for each file, in read order.
pub(crate) fn list(tree: &TreeView) -> String {
    let mut out = String::new();
    for (n, level) in tree.levels.iter().enumerate() {
        for (part, file) in level
            .run
            .iter()
            .map(|file| ("run", file))
            .chain(level.sst_log.iter().map(|file| ("SST-log", file)))
        {
            let _ = writeln!(
                out,
                "  L{n} {part:<7} {:06}.sst {:>10} {:>12} {:>16}  {} .. {}",
                file.number,
                human::size(file.bytes),
                human::plural(file.entries, "entry"),
                human::plural(file.tombstones, "tombstone"),
                bytes::shown(&file.smallest, 24),
                bytes::shown(&file.largest, 24),
            );
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(number: u64, bytes: u64, smallest: &str, largest: &str) -> FileView {
        let (smallest, largest) = (smallest.as_bytes().to_vec(), largest.as_bytes().to_vec());
        FileView { number, epoch: number, bytes, entries: 10, tombstones: 0, smallest, largest }
    }

    #[test]
    fn files_are_over_their_keys() {
        let level0 = LevelView {
            run: vec![],
            sst_log: vec![file(9, 100, "a", "z"), file(8, 100, "a", "f")],
        };
        let level2 = LevelView {
            run: vec![file(1, 400, "a", "f"), file(2, 400, "g", "m"), file(3, 400, "n", "z")],
            sst_log: vec![],
        };
        let tree = TreeView {
            keyspace: "default".into(),
            levels: vec![level0, LevelView::default(), level2],
        };
        let text = draw(&tree, LEFT_COLUMNS + 30 + RIGHT_COLUMNS, Paint::plain());
        let expected = "\
default  5 files, 1.4 KiB, 50 entries
  L0 SST-log  █████████████████████████████▌  1 file, 100 B
              ██████████▌···················  1 file, 100 B
  L1          ······························
  L2 run      ██████████▌████████▌█████████▌  3 files, 1.2 KiB
              a                            z
";
        assert_eq!(text, expected, "\n{text}");
    }

    #[test]
    fn a_stretch_without_data_takes_no_room() {
        let log = vec![file(2, 100, "0010", "fff0"), file(1, 100, "0001", "fffe")];
        let tree = TreeView {
            keyspace: "k".into(),
            levels: vec![LevelView { run: vec![], sst_log: log }],
        };
        let full = format!("{}▌", "█".repeat(29));
        let text = draw(&tree, LEFT_COLUMNS + 30 + RIGHT_COLUMNS, Paint::plain());
        assert_eq!(text.matches(&full).count(), 2, "{text}");
    }

    #[test]
    fn more_files_than_columns_and_none_at_all() {
        let run = (0..1000).map(|i| file(i, 1, &format!("{i:04}"), &format!("{i:04}x"))).collect();
        let tree =
            TreeView { keyspace: "k".into(), levels: vec![LevelView { run, sst_log: vec![] }] };
        let text = draw(&tree, 64, Paint::plain());
        assert!(text.contains(&"▓".repeat(24)), "{text}");
        let empty = TreeView { keyspace: "k".into(), levels: vec![] };
        assert!(draw(&empty, 80, Paint::plain()).contains("no files"));
        let log = (0..20).map(|i| file(i, 1, "a", "b")).collect();
        let deep = TreeView {
            keyspace: "k".into(),
            levels: vec![LevelView { run: vec![], sst_log: log }],
        };
        assert!(draw(&deep, 80, Paint::plain()).contains("and older ones: 12 files, 12 B"));
    }
}
