//! A tree as SVG: a row for each run, rows for an SST-log, files as boxes over the keys.
//!
//! Owns: where boxes and words lie. Never does: say which tree, or in which colours.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;
use windrow_plan::tree::{File, Part, Version};

const ROW: f64 = 11.0;
const GAP: f64 = 3.0;

/// Colours: of runs, of SST-logs, of text and of small text.
pub(crate) const RUN: &str = "#3a6ea5";
pub(crate) const SST_LOG: &str = "#d08a2e";
pub(crate) const TEXT: &str = "#1c1c1c";
pub(crate) const SMALL: &str = "#555555";

/// Where a tree is drawn: names of its parts begin at `x`, boxes at `left`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame {
    pub(crate) x: f64,
    pub(crate) left: f64,
    /// Width of all keys.
    pub(crate) plot: f64,
    pub(crate) top: f64,
}

/// Attributes of a file's box.
pub(crate) type Look<'a> = &'a dyn Fn(Part, &File) -> String;

/// The fill of a part's files.
pub(crate) fn fill(part: Part, opacity: f64) -> String {
    let colour = if part == Part::Run { RUN } else { SST_LOG };
    format!("fill=\"{colour}\" fill-opacity=\"{opacity:.2}\"")
}

/// A tree that grows downwards.
pub(crate) struct Drawing {
    frame: Frame,
    keys: u32,
    unit_keys: u32,
    /// The lower end of the drawing.
    pub(crate) y: f64,
    pub(crate) text: String,
}

impl Drawing {
    pub(crate) fn new(keys: u32, unit_keys: u32, frame: Frame) -> Drawing {
        Drawing { frame, keys, unit_keys, y: frame.top, text: String::new() }
    }

    /// All levels, from level 0 on.
    pub(crate) fn tree(&mut self, tree: &Version, look: Look<'_>) {
        for level in 0..tree.levels.len() as u32 {
            for part in [Part::Run, Part::SstLog] {
                self.part(level, part, tree.part(level, part), look);
            }
            if level == 0 {
                self.boundaries(tree);
            }
            self.y += GAP;
        }
    }

    pub(crate) fn small(&mut self, x: f64, y: f64, text: &str) {
        let _ = writeln!(
            self.text,
            "<text x=\"{x:.1}\" y=\"{y:.1}\" font-size=\"11\" fill=\"{SMALL}\">{text}</text>"
        );
    }

    /// Where a key lies.
    pub(crate) fn x(&self, key: f64) -> f64 {
        self.frame.left + key / f64::from(self.keys) * self.frame.plot
    }

    /// The files of a part, newest first from the top, none over another.
    fn part(&mut self, level: u32, part: Part, files: &[Arc<File>], look: Look<'_>) {
        if files.is_empty() {
            return;
        }
        let top = self.y;
        let mut rows: Vec<Vec<(f64, f64)>> = Vec::new();
        // Those that look alike in one path.
        let mut boxes: BTreeMap<String, String> = BTreeMap::new();
        for file in files {
            let (from, to) = (self.x(key(&file.smallest)), self.x(key(&file.largest)));
            // Below every newer file that overlaps it.
            let is_over = |row: &Vec<(f64, f64)>| row.iter().any(|&(f, t)| f < to && from < t);
            let row = rows.iter().rposition(is_over).map_or(0, |row| row + 1);
            if row == rows.len() {
                rows.push(Vec::new());
            }
            rows[row].push((from, to));
            let (y, wide) = (top + row as f64 * (ROW + 1.0), (to - from - 0.6).max(0.6));
            let boxes = boxes.entry(look(part, file)).or_default();
            let _ = write!(boxes, "M{from:.1} {y:.0}h{wide:.1}v{ROW}h-{wide:.1}z");
        }
        for (look, boxes) in boxes {
            let _ = writeln!(self.text, "<path {look} d=\"{boxes}\"/>");
        }
        let middle = top + rows.len() as f64 * (ROW + 1.0) / 2.0 + 4.0;
        let name = match (level, part) {
            // Its tables are in one list.
            (0, _) => "level 0".to_owned(),
            (level, Part::Run) => format!("level {level}, run"),
            (level, Part::SstLog) => format!("level {level}, SST-log"),
        };
        let Frame { x, left, plot, .. } = self.frame;
        self.small(x, middle, &name);
        let units: u64 = files.iter().map(|file| file.bytes).sum();
        let units = units as f64 / f64::from(self.unit_keys);
        let plural = if files.len() == 1 { "" } else { "s" };
        let words = format!("{} file{plural}, {units:.0} units", files.len());
        self.small(left + plot + 10.0, middle, &words);
        self.y = top + rows.len() as f64 * (ROW + 1.0) + GAP;
    }

    /// Where level 0 is parted.
    fn boundaries(&mut self, tree: &Version) {
        for boundary in tree.boundaries.iter() {
            let (x, bottom) = (self.x(key(boundary)), self.y);
            let _ = writeln!(
                self.text,
                "<line x1=\"{x:.1}\" y1=\"{:.1}\" x2=\"{x:.1}\" y2=\"{bottom:.1}\" stroke=\"{SMALL}\" \
                 stroke-width=\"0.6\" stroke-dasharray=\"2 2\"/>",
                self.frame.top - 4.0,
            );
        }
    }
}

/// A key as the simulator has them.
pub(crate) fn key(bytes: &[u8]) -> f64 {
    f64::from(u32::from_be_bytes(bytes.try_into().unwrap_or_default()))
}

/// A picture of this size, named `title`, which is also written on it.
pub(crate) fn file(width: f64, height: f64, title: &str, body: &str) -> String {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height:.0}\" width=\"{width}\" \
         height=\"{height:.0}\" font-family=\"sans-serif\">\n\
         <title>{title}</title>\n\
         <rect width=\"{width}\" height=\"{height:.0}\" rx=\"6\" fill=\"#ffffff\"/>\n\
         <text x=\"12\" y=\"24\" font-size=\"15\" font-weight=\"bold\" fill=\"{TEXT}\">{title}</text>\n\
         {body}</svg>\n"
    )
}
