//! Pictures of simulated trees, as SVG: what a policy's own decisions make of the same updates.
//!
//! Owns: which trees the policy pages show. Never does: I/O, or draw a tree (`drawing.rs` does).

use crate::drawing::{self, Drawing, Frame, TEXT, fill, key};
use crate::setup::Setup;
use crate::simulator::Simulator;
use crate::workload::{KeyStream, Workload};
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

/// The meaning of colours.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Paint {
    /// Runs and SST-logs.
    Parts,
    /// Bits of filter for each key, where all lookups of absent keys are taken to go to this part
    /// of the keys, the first ones; the same number for each file, or as Mnemosyne's solver has it.
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
const FRAME: Frame = Frame { x: 12.0, left: 112.0, plot: 540.0, top: 40.0 };

impl Picture {
    /// Draws it.
    ///
    /// # Errors
    /// As [`crate::simulate`].
    pub fn svg(&self) -> Result<String> {
        let setup = self.setup()?;
        let tree = fullest(&setup)?;
        let bits = self.bits(&tree, setup.keys);
        Ok(self.draw(&tree, &bits))
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

    /// Returns the bits a key of each file, by its number, where the picture shows them.
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

/// Returns the tree after every key was written once and updated twice, at the one of the next
/// flushes that leaves most in level 0.
fn fullest(setup: &Setup) -> Result<Version> {
    let memtable = setup.settings().memtable_bytes;
    let mut keys = KeyStream::new(setup.workload, setup.keys, setup.seed);
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

impl Picture {
    fn draw(&self, tree: &Version, bits: &[(u64, f64)]) -> String {
        let mut drawing = Drawing::new(UNITS * UNIT_KEYS, UNIT_KEYS, FRAME);
        drawing.tree(tree, &|part, file| {
            let bits = bits.iter().find(|(number, _)| *number == file.number);
            fill(part, bits.map_or(0.85, |(_, bits)| 0.08 + 0.92 * (bits / BITS_MAX).min(1.0)))
        });
        self.asked(&mut drawing);
        self.legend(&mut drawing);
        drawing::file(WIDTH, drawing.y + 10.0, self.title, &drawing.text)
    }

    /// Draws a brace under the keys that are asked for in vain.
    fn asked(&self, drawing: &mut Drawing) {
        if self.paint == Paint::Parts {
            return;
        }
        let (from, to) = (drawing.x(0.0), drawing.x(f64::from(UNITS * UNIT_KEYS) / 3.0));
        let y = drawing.y + 4.0;
        let _ = writeln!(
            drawing.text,
            "<path d=\"M{from:.1} {y:.1} v4 H{to:.1} v-4\" fill=\"none\" stroke=\"{TEXT}\"/>"
        );
        drawing.small(from, y + 18.0, "all lookups of absent keys are here");
        drawing.y += 24.0;
    }

    fn legend(&self, drawing: &mut Drawing) {
        drawing.y += 14.0;
        let keys = match self.paint {
            Paint::Parts => {
                "From left to right: the keys. From top to bottom: what is read first. A box: a file."
            }
            Paint::Bits { .. } => {
                "The darker a file, the more bits of filter its keys have (white: none; full: 24)."
            }
        };
        drawing.small(12.0, drawing.y, keys);
        let made = format!(
            "A simulated tree of {UNITS} units (a unit: 8 MB) after two uniform updates of every key,"
        );
        for line in [made, format!("by `windrow lab` under the policy {}", self.policy)] {
            drawing.y += 15.0;
            drawing.small(12.0, drawing.y, &line);
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

    /// The claim of the pages about the pictures.
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
