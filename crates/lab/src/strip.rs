//! A paper's policy and the default at work, as one picture: a few steps of each, the tree before
//! every step, with the files that it takes away and those that the step before has made.
//!
//! Owns: which policies and steps are shown, and the words for a step. Never does: I/O, or draw a
//! tree (`drawing.rs` does).

use crate::drawing::{self, Drawing, Frame, TEXT, fill, key};
use crate::play::{PlayedStep, play};
use crate::setup::Setup;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use windrow_base::{Error, Result};
use windrow_plan::filter_memory::curve::BUILT;
use windrow_plan::filter_memory::solver::{Load, solve};
use windrow_plan::tree::{File, Part, Version};

/// A paper's strip.
#[derive(Clone, Copy, Debug)]
pub struct Strip {
    /// The paper's name in commands; its file is `docs/papers/pictures/lab-NAME.svg`.
    pub name: &'static str,
    title: &'static str,
    /// The paper's policy in its own form, with sizes as [`Setup::parse`] takes them.
    policy: &'static str,
    /// Whether files are shaded by their filter bits, where the first third of the keys is asked in
    /// vain.
    shows_bits: bool,
}

/// All of them.
pub const STRIPS: [Strip; 4] = [
    Strip {
        name: "autumn",
        title: "Autumn: ratios that grow towards the top; a full last level grows and moves nothing",
        policy: "leveled shape=garnering(t=2,c=0.8,base=growing) memtable=4 base=8",
        shows_bits: false,
    },
    Strip {
        name: "l2sm",
        title: "L2SM: files go from a run to its SST-log without I/O, and leave it together",
        policy: "leveled pick=sst_log(paper,share=2.4,levels=2) shape=leveling(t=6) memtable=4 base=10",
        shows_bits: false,
    },
    Strip {
        name: "vlsm",
        title: "vLSM: a queue in level 0, one small job at a time",
        policy: "vlsm",
        shows_bits: false,
    },
    Strip {
        name: "mnemosyne",
        title: "Mnemosyne: filter bits where lookups are in vain (the first third of the keys)",
        policy: "leveled shape=leveling(t=4) memtable=4 base=16",
        shows_bits: true,
    },
];

/// The default, which each is next to.
const OURS: &str = "windrow";

/// Data, in units, and keys of a unit.
const UNITS: u32 = 200;
const UNIT_KEYS: u32 = 64;
/// Flushes that are played, and steps that are shown of them.
const FLUSHES: usize = 48;
const STEPS: usize = 5;
/// Filter bits of a key on average, and at most.
const BITS: f64 = 10.0;
const BITS_MAX: f64 = 24.0;

const WIDTH: f64 = 1120.0;
const HALF: f64 = WIDTH / 2.0;
const TOP: f64 = 40.0;
/// Colours of a file that a step has made, and of the edge of one that goes.
const NEW: &str = "#3b8f4a";
const GONE: &str = "#b3261e";

/// A file where it is.
type Seat = (u64, u32, Part);

impl Strip {
    /// Returns the strip of this name.
    ///
    /// # Errors
    /// `InvalidArgument` that lists the names.
    pub fn named(name: &str) -> Result<Strip> {
        let names = STRIPS.map(|strip| strip.name).join(", ");
        let found = STRIPS.into_iter().find(|strip| strip.name == name);
        found.ok_or_else(|| Error::invalid(format!("no paper `{name}`; they are {names}")))
    }

    /// Draws it.
    ///
    /// # Errors
    /// As [`crate::simulate`].
    pub fn svg(&self) -> Result<String> {
        let columns = [self.column(self.policy)?, self.column(OURS)?];
        let mut body = String::new();
        let heads = ["the paper's policy", "windrow, the default"];
        for (column, head) in heads.into_iter().enumerate() {
            let x = column as f64 * HALF + 12.0;
            let _ = writeln!(
                body,
                "<text x=\"{x:.1}\" y=\"{:.1}\" font-size=\"12\" font-weight=\"bold\" fill=\"{TEXT}\">{head}</text>",
                TOP + 8.0
            );
        }
        let mut top = TOP + 20.0;
        for step in 0..STEPS {
            let mut bottom = top;
            for (column, steps) in columns.iter().enumerate() {
                let Some(before) = steps.get(step + 1) else { continue };
                let x = column as f64 * HALF + 12.0;
                let panel = Panel {
                    strip: self,
                    earlier: &steps[step].tree,
                    before: &before.tree,
                    after: &steps[step + 2],
                };
                let frame = Frame { x, left: x + 92.0, plot: HALF - 230.0, top: top + 18.0 };
                let drawing = panel.draw(step + 1, frame);
                body += &drawing.text;
                bottom = bottom.max(drawing.y);
            }
            top = bottom + 14.0;
        }
        let mut legend = Drawing::new(1, 1, Frame { x: 12.0, left: 12.0, plot: 1.0, top });
        let lines = [
            "The tree before each step. Green: made by the step before. Red edge: taken away by this step. Blue: runs, orange: SST-logs.".to_owned(),
            format!(
                "From left to right: the keys; from top to bottom: what is read first; a box: a file. Dashed: the partitions of level 0.{}",
                if self.shows_bits { " The darker, the more bits a key." } else { "" }
            ),
            format!(
                "Simulated by `windrow lab --paper {}`: {UNITS} units (a unit: 8 MB) of uniform updates, under {}.",
                self.name, self.policy
            ),
        ];
        for line in lines {
            legend.y += 15.0;
            let y = legend.y;
            legend.small(12.0, y, &line);
        }
        body += &legend.text;
        Ok(drawing::file(WIDTH, legend.y + 12.0, self.title, &body))
    }

    /// Returns the steps of a policy that are shown, and the two trees before them.
    fn column(&self, policy: &str) -> Result<Vec<PlayedStep>> {
        let parsed = Setup::parse(policy)?;
        let setup = Setup { keys: UNITS * UNIT_KEYS, unit_keys: UNIT_KEYS, ..parsed };
        let steps = play(&setup, FLUSHES)?;
        let begin = most_telling(&steps);
        Ok(steps.into_iter().skip(begin).take(STEPS + 2).collect())
    }
}

/// Returns where the stretch of steps begins that has most kinds of them.
fn most_telling(steps: &[PlayedStep]) -> usize {
    let stretches = steps.windows(STEPS + 2).enumerate();
    let kinds = |stretch: &[PlayedStep]| {
        let mut kinds: Vec<String> = stretch[1..]
            .windows(2)
            .map(|pair| TreeChange::of(&pair[0].tree, &pair[1].tree).kind())
            .collect();
        kinds.sort_unstable();
        kinds.dedup();
        kinds.len()
    };
    // The last of the best: the tree has had most updates then.
    stretches.max_by_key(|(_, stretch)| kinds(stretch)).map_or(0, |(begin, _)| begin)
}

fn seats(tree: &Version) -> Vec<Seat> {
    tree.files().map(|(level, part, file)| (file.number, level, part)).collect()
}

/// The change that a step made to a tree.
struct TreeChange {
    gone: Vec<Seat>,
    new: Vec<Seat>,
    written: u64,
}

impl TreeChange {
    fn of(before: &Version, after: &Version) -> TreeChange {
        let (old, now) = (seats(before), seats(after));
        let known = |number: u64| old.iter().any(|seat| seat.0 == number);
        let written = after.files().filter(|(_, _, file)| !known(file.number));
        TreeChange {
            gone: old.iter().filter(|seat| !now.contains(seat)).copied().collect(),
            new: now.iter().filter(|seat| !old.contains(seat)).copied().collect(),
            written: written.map(|(_, _, file)| file.bytes).sum(),
        }
    }

    fn verb(&self) -> &'static str {
        match (self.gone.is_empty(), self.written) {
            (true, 0) => "nothing moves",
            (true, _) => "flush",
            (false, 0) => "move",
            (false, _) => "merge",
        }
    }

    /// Steps of one kind look alike.
    fn kind(&self) -> String {
        let places = |seats: &[Seat]| {
            seats
                .iter()
                .map(|(_, level, part)| (*level, part.name()))
                .min()
                .map_or(String::new(), |p| format!("{p:?}"))
        };
        format!("{} {} {}", self.verb(), places(&self.gone), places(&self.new))
    }

    /// Describes the step in words, with the units that it wrote.
    fn words(&self) -> String {
        let places = |seats: &[Seat]| {
            let mut counts: BTreeMap<(u32, &str), usize> = BTreeMap::new();
            seats.iter().for_each(|(_, level, part)| {
                *counts.entry((*level, part.name())).or_default() += 1
            });
            let words = counts.iter().map(|((level, part), count)| match (level, *part) {
                (0, _) => format!("{count} of level 0"),
                (_, "run") => format!("{count} of run {level}"),
                _ => format!("{count} of SST-log {level}"),
            });
            words.collect::<Vec<_>>().join(", ")
        };
        let written = self.written as f64 / f64::from(UNIT_KEYS);
        match self.verb() {
            "flush" => format!("flush: {} ({written:.0} units written)", places(&self.new)),
            "move" => format!(
                "move: {} becomes {} (nothing written)",
                places(&self.gone),
                places(&self.new)
            ),
            "merge" => format!(
                "merge: {} become {} ({written:.0} units written)",
                places(&self.gone),
                places(&self.new)
            ),
            verb => verb.to_owned(),
        }
    }
}

/// One step.
struct Panel<'a> {
    strip: &'a Strip,
    earlier: &'a Version,
    before: &'a Version,
    after: &'a PlayedStep,
}

impl Panel<'_> {
    fn draw(&self, number: usize, frame: Frame) -> Drawing {
        let change = TreeChange::of(self.before, &self.after.tree);
        let made = TreeChange::of(self.earlier, self.before).new;
        let bits = if self.strip.shows_bits { bits(self.before) } else { BTreeMap::new() };
        let mut drawing = Drawing::new(UNITS * UNIT_KEYS, UNIT_KEYS, frame);
        drawing.small(frame.x, frame.top - 8.0, &format!("{number}. {}", change.words()));
        drawing.tree(self.before, &|part, file| {
            let is_in =
                |seats: &[Seat]| seats.iter().any(|seat| seat.0 == file.number && seat.2 == part);
            let opacity =
                bits.get(&file.number).map_or(0.8, |bits| 0.08 + 0.92 * (bits / BITS_MAX).min(1.0));
            let mut look = match is_in(&made) {
                true => format!("fill=\"{NEW}\" fill-opacity=\"{opacity:.2}\""),
                false => fill(part, opacity),
            };
            if is_in(&change.gone) {
                look += &format!(" stroke=\"{GONE}\" stroke-width=\"1.6\"");
            }
            look
        });
        drawing
    }
}

/// Returns Mnemosyne's bits of each file, by number.
fn bits(tree: &Version) -> BTreeMap<u64, f64> {
    let asked = f64::from(UNITS * UNIT_KEYS) / 3.0;
    let files: Vec<&File> = tree.files().map(|(_, _, file)| &**file).collect();
    let load = |file: &&File| {
        let (first, last) = (key(&file.smallest), key(&file.largest));
        Load { entries: file.entries as f64, empty: (last.min(asked) - first).max(0.0) }
    };
    let loads: Vec<Load> = files.iter().map(load).collect();
    let entries: f64 = loads.iter().map(|load| load.entries).sum();
    let bits = solve(&BUILT, &loads, BITS * entries, BITS_MAX).bits;
    files.iter().map(|file| file.number).zip(bits).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_strip_shows_steps_of_both_and_is_the_same_again() {
        for strip in STRIPS {
            let svg = strip.svg().unwrap();
            assert_eq!(svg, strip.svg().unwrap(), "{}", strip.name);
            assert_eq!(
                svg.matches("units written").count() + svg.matches("nothing written").count(),
                2 * STEPS,
                "{}",
                strip.name
            );
            assert!(svg.contains(NEW) && svg.contains(GONE), "{}", strip.name);
            assert!(svg.len() < 150_000, "{}: {} bytes", strip.name, svg.len());
        }
        assert!(Strip::named("l2sm").is_ok());
        let problem = Strip::named("wisckey").unwrap_err();
        assert!(problem.message().contains("autumn, l2sm, vlsm, mnemosyne"), "{problem}");
    }

    #[test]
    fn a_paper_shows_what_its_title_says() {
        let svg = |name: &str| Strip::named(name).unwrap().svg().unwrap();
        assert!(svg("l2sm").contains("of SST-log 1 (nothing written)"));
        assert!(svg("l2sm").contains("merge: "));
        assert!(svg("vlsm").contains("merge: 1 of level 0"));
    }
}
