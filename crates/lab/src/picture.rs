//! Pictures of simulated trees, as SVG: what a policy's own decisions make of the same updates.
//!
//! Owns: which trees the policy pages show, and how a tree is drawn. Never does: I/O.

use crate::setup::Setup;
use crate::simulator::Simulator;
use crate::workload::{Keys, Workload};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use windrow_base::Result;
use windrow_plan::filter_memory::curve::BUILT;
use windrow_plan::filter_memory::solver::{Load, solve};
use windrow_plan::tree::{File, Part, Version};

/// A picture of a policy page.
#[derive(Clone, Copy, Debug)]
pub struct Picture {
    /// Its file, `docs/policies/pictures/NAME.svg`.
    pub name: &'static str,
    /// The policy, with sizes as [`Setup::parse`] takes them.
    policy: &'static str,
    /// Above the tree.
    title: &'static str,
    workload: Workload,
    paint: Paint,
}

/// What colours say.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Paint {
    /// Runs and SST-logs.
    Parts,
    /// Bits of filter for each key, where all lookups of absent keys go to this part of the keys,
    /// the first ones; the same number for each file, or as Mnemosyne's solver has it.
    Bits { solved: bool, asked: f64 },
}

/// The pictures, as the pages come.
pub const PICTURES: [Picture; 9] = [
    of(
        "leveled",
        "leveled memtable=8 base=32",
        "leveled: flushes pile up in level 0, and go down together",
    ),
    of(
        "autumn",
        "shape=garnering(t=4,c=0.6) memtable=1 base=2",
        "autumn: ratios grow towards the top, so that fewer levels hold the data",
    ),
    of(
        "l2sm",
        "l2sm memtable=8 base=32",
        "l2sm: levels have SST-logs, from where files go down together",
    ),
    of(
        "vlsm",
        "vlsm",
        "vlsm: a queue of small flushes, and files of level 1 cut by what they overlap",
    ),
    of(
        "partitioned",
        "leveled level0=partitioned(lanes=16,k=4,depth=8) memtable=8 base=32",
        "partitioned level 0: each partition goes down by itself",
    ),
    Picture {
        paint: Paint::Bits { solved: true, asked: 1.0 },
        ..of(
            "monkey",
            "leveled memtable=8 base=32",
            "monkey: small runs get most bits a key, wherever the lookups are",
        )
    },
    Picture {
        paint: Paint::Bits { solved: false, asked: THIRD },
        ..of(
            "uniform",
            "leveled memtable=8 base=32",
            "uniform filters: every file has ten bits a key",
        )
    },
    Picture {
        paint: Paint::Bits { solved: true, asked: THIRD },
        ..of(
            "mnemosyne",
            "leveled memtable=8 base=32",
            "mnemosyne: the same memory, given to files that are asked in vain",
        )
    },
    of("windrow", "windrow", "windrow: all of them together"),
];

/// The part of the keys that is asked where lookups are not the same everywhere.
const THIRD: f64 = 1.0 / 3.0;

const fn of(name: &'static str, policy: &'static str, title: &'static str) -> Picture {
    Picture { name, policy, title, workload: Workload::Uniform, paint: Paint::Parts }
}

/// Data, in units, and keys of a unit: few, since nobody sees more in a picture.
const UNITS: u32 = 400;
const UNIT_KEYS: u32 = 64;
/// Number of flushes after the load. The tree is drawn behind that which left level 0 fullest.
const FLUSHES: u32 = 8;
/// Bits of filter that a key has on average.
const BITS: f64 = 10.0;
/// Most bits of filter for a key.
const BITS_MAX: f64 = 24.0;

const WIDTH: f64 = 800.0;
const LEFT: f64 = 112.0;
const PLOT: f64 = 540.0;
const ROW: f64 = 11.0;
const GAP: f64 = 3.0;
const TOP: f64 = 40.0;

/// Colours: of runs, of SST-logs, of text and of what is said in small letters.
const RUN: &str = "#3a6ea5";
const SST_LOG: &str = "#d08a2e";
const TEXT: &str = "#1c1c1c";
const SMALL: &str = "#555555";

impl Picture {
    /// Draws it.
    ///
    /// # Errors
    /// As [`crate::simulate`].
    pub fn svg(&self) -> Result<String> {
        let setup = self.setup()?;
        let tree = fullest(&setup)?;
        let bits = self.bits(&tree, setup.keys);
        Ok(Drawing::new(setup.keys, setup.unit_keys).draw(self, &tree, &bits))
    }

    fn setup(&self) -> Result<Setup> {
        let parsed = Setup::parse(self.policy)?;
        Ok(Setup {
            keys: UNITS * UNIT_KEYS,
            unit_keys: UNIT_KEYS,
            workload: self.workload,
            ..parsed
        })
    }

    /// Bits a key of each file, by its number, where they are what is shown.
    fn bits(&self, tree: &Version, keys: u32) -> Vec<(u64, f64)> {
        let Paint::Bits { solved, asked } = self.paint else { return Vec::new() };
        let files: Vec<&File> = tree.files().map(|(_, _, file)| &**file).collect();
        let loads: Vec<Load> =
            files.iter().map(|file| load(file, f64::from(keys) * asked)).collect();
        let entries: f64 = loads.iter().map(|load| load.entries).sum();
        let bits = match solved {
            true => solve(&BUILT, &loads, BITS * entries, BITS_MAX).bits,
            false => vec![BITS; files.len()],
        };
        files.iter().map(|file| file.number).zip(bits).collect()
    }
}

/// The lookups in vain of a file, where the first `asked` keys are asked alike.
fn load(file: &File, asked: f64) -> Load {
    let (first, last) = (key(&file.smallest), key(&file.largest));
    Load { entries: file.entries as f64, empty: (last.min(asked) - first).max(0.0) }
}

fn key(bytes: &[u8]) -> f64 {
    f64::from(u32::from_be_bytes(bytes.try_into().unwrap_or_default()))
}

/// The tree after every key was written once and updated twice, at the one of the next flushes that
/// leaves most in level 0.
fn fullest(setup: &Setup) -> Result<Version> {
    let memtable = setup.settings().memtable_bytes;
    let mut keys = Keys::new(setup.workload, setup.keys, setup.seed);
    let mut simulator = Simulator::new(setup);
    simulator.update(&mut keys, 3 * u64::from(setup.keys))?;
    let level0 =
        |tree: &Version| tree.part(0, Part::SstLog).iter().map(|file| file.bytes).sum::<u64>();
    let mut best = simulator.version.clone();
    for _ in 0..FLUSHES {
        simulator.update(&mut keys, memtable)?;
        if level0(&simulator.version) > level0(&best) {
            best = simulator.version.clone();
        }
    }
    Ok(best)
}

/// An SVG that grows downwards.
struct Drawing {
    keys: u32,
    unit_keys: u32,
    y: f64,
    text: String,
}

impl Drawing {
    fn new(keys: u32, unit_keys: u32) -> Drawing {
        Drawing { keys, unit_keys, y: TOP, text: String::new() }
    }

    fn draw(mut self, picture: &Picture, tree: &Version, bits: &[(u64, f64)]) -> String {
        for level in 0..tree.levels.len() as u32 {
            for part in [Part::Run, Part::SstLog] {
                self.part(level, part, tree.part(level, part), bits);
            }
            if level == 0 {
                self.boundaries(tree);
            }
            self.y += GAP;
        }
        self.asked(picture);
        self.legend(picture);
        let (height, body) = (self.y + 10.0, &self.text);
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height:.0}\" width=\"{WIDTH}\" \
             height=\"{height:.0}\" font-family=\"sans-serif\">\n\
             <title>{0}</title>\n\
             <rect width=\"{WIDTH}\" height=\"{height:.0}\" rx=\"6\" fill=\"#ffffff\"/>\n\
             <text x=\"12\" y=\"24\" font-size=\"15\" font-weight=\"bold\" fill=\"{TEXT}\">{0}</text>\n\
             {body}</svg>\n",
            picture.title,
        )
    }

    fn small(&mut self, x: f64, y: f64, text: &str) {
        let _ = writeln!(
            self.text,
            "<text x=\"{x:.1}\" y=\"{y:.1}\" font-size=\"11\" fill=\"{SMALL}\">{text}</text>"
        );
    }

    fn x(&self, key: f64) -> f64 {
        LEFT + key / f64::from(self.keys) * PLOT
    }

    /// The files of a part, newest first from the top, none over another.
    fn part(
        &mut self,
        level: u32,
        part: Part,
        files: &[std::sync::Arc<File>],
        bits: &[(u64, f64)],
    ) {
        if files.is_empty() {
            return;
        }
        let (name, colour) = match part {
            Part::Run => ("run", RUN),
            Part::SstLog => ("SST-log", SST_LOG),
        };
        let top = self.y;
        let mut rows: Vec<Vec<(f64, f64)>> = Vec::new();
        // Those of one shade in one path.
        let mut boxes: BTreeMap<String, String> = BTreeMap::new();
        for file in files {
            let (from, to) = (self.x(key(&file.smallest)), self.x(key(&file.largest)));
            // Below whatever newer overlaps it.
            let is_over = |row: &Vec<(f64, f64)>| row.iter().any(|&(f, t)| f < to && from < t);
            let row = rows.iter().rposition(is_over).map_or(0, |row| row + 1);
            if row == rows.len() {
                rows.push(Vec::new());
            }
            rows[row].push((from, to));
            let opacity = match bits.iter().find(|(number, _)| *number == file.number) {
                Some((_, bits)) => 0.08 + 0.92 * (bits / BITS_MAX).min(1.0),
                None => 0.85,
            };
            let (y, wide) = (top + row as f64 * (ROW + 1.0), (to - from - 0.6).max(0.6));
            let boxes = boxes.entry(format!("{opacity:.2}")).or_default();
            let _ = write!(boxes, "M{from:.1} {y:.0}h{wide:.1}v{ROW}h-{wide:.1}z");
        }
        for (opacity, boxes) in boxes {
            let _ = writeln!(
                self.text,
                "<path fill=\"{colour}\" fill-opacity=\"{opacity}\" d=\"{boxes}\"/>"
            );
        }
        let middle = top + rows.len() as f64 * (ROW + 1.0) / 2.0 + 4.0;
        self.small(12.0, middle, &format!("level {level}, {name}"));
        let units: u64 = files.iter().map(|file| file.bytes).sum();
        let units = units as f64 / f64::from(self.unit_keys);
        let plural = if files.len() == 1 { "" } else { "s" };
        self.small(
            LEFT + PLOT + 10.0,
            middle,
            &format!("{} file{plural}, {units:.0} units", files.len()),
        );
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
                TOP - 4.0,
            );
        }
    }

    /// A brace under the keys that are asked for in vain.
    fn asked(&mut self, picture: &Picture) {
        if picture.paint == Paint::Parts {
            return;
        }
        let (from, to, y) = (LEFT, self.x(f64::from(self.keys) / 3.0), self.y + 4.0);
        let _ = writeln!(
            self.text,
            "<path d=\"M{from:.1} {y:.1} v4 H{to:.1} v-4\" fill=\"none\" stroke=\"{TEXT}\"/>"
        );
        self.small(from, y + 18.0, "all lookups of absent keys are here");
        self.y += 24.0;
    }

    fn legend(&mut self, picture: &Picture) {
        self.y += 14.0;
        let keys = match picture.paint {
            Paint::Parts => {
                "From left to right: the keys. From top to bottom: what is read first. A box: a file."
            }
            Paint::Bits { .. } => {
                "The darker a file, the more bits of filter its keys have (white: none; full: 24)."
            }
        };
        let y = self.y;
        self.small(12.0, y, keys);
        let made = format!(
            "A simulated tree of {UNITS} units (a unit: 8 MB) after two uniform updates of every key,"
        );
        for line in [made, format!("by `windrow lab` under the policy {}", picture.policy)] {
            self.y += 15.0;
            let y = self.y;
            self.small(12.0, y, &line);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_picture_shows_a_tree_and_is_the_same_again() {
        for picture in PICTURES {
            let svg = picture.svg().unwrap();
            assert_eq!(svg, picture.svg().unwrap(), "{}", picture.name);
            assert!(svg.matches('z').count() > 50, "{}", picture.name);
            assert!(svg.len() < 30_000, "{}: {} bytes", picture.name, svg.len());
        }
    }

    /// What pages say of the pictures.
    #[test]
    fn files_that_are_asked_in_vain_have_the_bits() {
        let of = |name: &str| PICTURES.into_iter().find(|picture| picture.name == name).unwrap();
        let picture = of("mnemosyne");
        let setup = picture.setup().unwrap();
        let tree = fullest(&setup).unwrap();
        let bits = picture.bits(&tree, setup.keys);
        let mean = |asked: bool| {
            let of = |file: &File| load(file, f64::from(setup.keys) * THIRD).empty > 0.0;
            let files: Vec<&File> =
                tree.files().map(|(_, _, file)| &**file).filter(|f| of(f) == asked).collect();
            let sum: f64 = files
                .iter()
                .map(|file| {
                    bits.iter().find(|(number, _)| *number == file.number).unwrap().1
                        * file.entries as f64
                })
                .sum();
            sum / files.iter().map(|file| file.entries as f64).sum::<f64>()
        };
        assert!(mean(true) > 15.0 && mean(false) == 0.0, "{} {}", mean(true), mean(false));
    }
}
