//! Option sets under which the same operations must give the same answers.
//!
//! Owns: the list, and how a set becomes `windrow::Options`. Never does: open anything.

use crate::model::{CASE_BLIND_ID, REVERSE_ID};
use std::cmp::Ordering;
use std::sync::Arc;
use windrow::settings::Settings;
use windrow::{Components, Options};
use windrow_base::{Comparator, Result};

/// The place of a variant's database, and the executor of its background work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ground {
    /// In memory, background work by the seeded stepper.
    Simulated,
    /// In memory, background work on real threads.
    SimulatedThreads,
    /// A temporary directory of the operating system, background work on real threads.
    System,
}

/// One option set.
#[derive(Clone, Copy, Debug)]
pub struct Variant {
    /// Its name in messages.
    pub name: &'static str,
    /// The settings that differ from [`SMALL`].
    pub settings: &'static [(&'static str, &'static str)],
    /// Its ground.
    pub ground: Ground,
}

/// The settings that every variant starts from: everything as small as it may be, so
/// that a few hundred operations make several levels.
const SMALL: &[(&str, &str)] = &[
    ("memory_bytes", "8MiB"),
    ("memtable_bytes", "64KiB"),
    ("file_bytes", "64KiB"),
    ("level_base_bytes", "128KiB"),
    ("block_bytes", "1KiB"),
    ("compression", "none"),
];

/// Bytes of `memory_bytes` in [`SMALL`].
pub const SMALL_MEMORY_BYTES: u64 = 8 << 20;

/// Policies that a database may be switched to: every preset, and every value
/// of every axis in a size that a few hundred operations fill.
pub const POLICIES: &[&str] = &[
    "leveled",
    "autumn",
    "l2sm",
    "vlsm",
    "mnemosyne",
    "windrow",
    AUTUMN,
    L2SM_PAPER,
    L2SM,
    VLSM,
    MNEMOSYNE,
    WINDROW,
    FROM_LAST,
    "shape=leveling(t=2) level0=tiered(k=1) pick=leveled(round_robin) filters=none",
];

const AUTUMN: &str = "autumn shape=garnering(t=2,c=0.8,base=growing) filters=monkey(bits=3)";
const L2SM_PAPER: &str =
    "l2sm shape=leveling(t=2) level0=tiered(k=2) pick=sst_log(paper,omega=0.3)";
const L2SM: &str = "l2sm shape=leveling(t=3) pick=sst_log(closed,omega=0.4,levels=3,depth=2)";
const VLSM: &str = "vlsm shape=leveling(t=2,phi=8) cut=overlap(f=2)";
const MNEMOSYNE: &str =
    "mnemosyne shape=leveling(t=2) level0=tiered(k=3) filters=mnemosyne(bits=2)";
const WINDROW: &str = "windrow shape=garnering(t=2,c=0.7) \
     level0=partitioned(lanes=4,k=2,depth=4) pick=sst_log(closed,omega=0.2,levels=2,depth=3) \
     cut=overlap(f=3) filters=mnemosyne(bits=4)";
const FROM_LAST: &str = "windrow use=measured shape=garnering(t=2,c=0.8,base=last) \
     level0=partitioned(lanes=4,k=dial,depth=4) pick=sst_log(columns,share=dial,levels=2,depth=3) \
     cut=overlap(f=3) filters=mnemosyne(bits=4)";

/// A level 1 that a handful of values fills: several levels, with their SST-logs.
const TINY: (&str, &str) = ("level_base_bytes", "4KiB");

/// Tables that a few values fill: SST-logs of several tables, which are merged down.
const TINY_TABLES: (&str, &str) = ("file_bytes", "4KiB");

const fn simulated(
    name: &'static str,
    settings: &'static [(&'static str, &'static str)],
) -> Variant {
    Variant { name, settings, ground: Ground::Simulated }
}

/// Every option set, the fastest first.
pub const VARIANTS: &[Variant] = &[
    simulated("small", &[]),
    simulated("tiny blocks", &[("block_bytes", "256")]),
    simulated("lz4", &[("compression", "lz4")]),
    simulated("lz4 below level 0", &[("compression", "none,lz4"), ("block_bytes", "4KiB")]),
    simulated("no filters", &[("preset", "leveled filters=none")]),
    simulated("thin filters", &[("preset", "leveled filters=uniform(bits=1.5)")]),
    simulated("no hash index", &[("hash_index", "off")]),
    simulated("partitioned index", &[("partition_bytes", "4KiB"), ("block_bytes", "256")]),
    simulated("no cache to speak of", &[("cache_bytes", "64KiB"), ("readahead_bytes", "0")]),
    simulated("shallow level 0", &[("level0_slowdown_files", "2"), ("level0_stop_files", "3")]),
    // One variant for each preset, by its name.
    simulated("leveled", &[("preset", "leveled"), TINY]),
    simulated("autumn", &[("preset", AUTUMN), TINY]),
    simulated("l2sm", &[("preset", L2SM), TINY, TINY_TABLES]),
    simulated("l2sm as in its paper", &[("preset", L2SM_PAPER), TINY, TINY_TABLES]),
    simulated("vlsm", &[("preset", VLSM), TINY]),
    simulated("mnemosyne", &[("preset", MNEMOSYNE), TINY, ("partition_bytes", "4KiB")]),
    simulated("windrow", &[("preset", WINDROW), TINY, TINY_TABLES]),
    simulated("from the last level", &[("preset", FROM_LAST), TINY, TINY_TABLES]),
    simulated("few open files", &[("open_files_max", "16"), ("verify_on_open", "on")]),
    simulated(
        "partitions",
        &[(
            "preset",
            "leveled shape=garnering(t=2,c=0.7) level0=partitioned(8,k=2) cut=overlap(2)",
        )],
    ),
    simulated(
        "queue",
        &[("preset", "vlsm shape=leveling(t=2,phi=4) level0=fifo"), ("level_base_bytes", "256KiB")],
    ),
    // The defaults, in the least memory that is allowed: nothing is flushed on its own.
    simulated(
        "defaults",
        &[
            ("memtable_bytes", "0"),
            ("file_bytes", "8MiB"),
            ("level_base_bytes", "0"),
            ("block_bytes", "4KiB"),
            ("compression", "lz4"),
        ],
    ),
    Variant { name: "threads", settings: &[], ground: Ground::SimulatedThreads },
    Variant {
        name: "system files",
        settings: &[("compression", "lz4"), ("background_threads", "2")],
        ground: Ground::System,
    },
    Variant {
        name: "system files, direct I/O",
        settings: &[("direct_io", "on"), ("block_bytes", "4KiB"), ("cache_bytes", "64KiB")],
        ground: Ground::System,
    },
];

impl Variant {
    /// Returns the options of this set, without an environment.
    ///
    /// # Errors
    /// `InvalidArgument` if a setting is unknown or its value out of range.
    pub fn options(&self) -> Result<Options> {
        options_of(self.settings.iter().copied())
    }

    /// Returns the variant of a name.
    ///
    /// # Panics
    /// If there is none.
    pub fn named(name: &str) -> &'static Variant {
        let found = VARIANTS.iter().find(|variant| variant.name == name);
        found.unwrap_or_else(|| panic!("there is no variant {name}"))
    }

    /// Returns the variants that run in memory on the stepper.
    pub fn simulated() -> impl Iterator<Item = &'static Variant> {
        VARIANTS.iter().filter(|v| v.ground == Ground::Simulated)
    }
}

/// Returns the smallest options with these settings changed, without an environment.
///
/// # Errors
/// As [`Variant::options`].
pub fn options_of<'a>(settings: impl Iterator<Item = (&'a str, &'a str)>) -> Result<Options> {
    let mut all = Settings::default();
    for (name, value) in SMALL.iter().copied().chain(settings) {
        all.set(name, value)?;
    }
    let comparators: Vec<Arc<dyn Comparator>> = vec![Arc::new(Reverse), Arc::new(CaseBlind)];
    let components = Components { comparators, ..Components::default() };
    Ok(Options { settings: all, components, ..Options::default() })
}

/// The bytewise order, backwards; its id is [`REVERSE_ID`].
pub struct Reverse;

impl Comparator for Reverse {
    fn id(&self) -> &str {
        REVERSE_ID
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        b.cmp(a)
    }
}

/// The bytewise order without regard to the case of ASCII letters.
struct CaseBlind;

impl Comparator for CaseBlind {
    fn id(&self) -> &str {
        CASE_BLIND_ID
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        let lower = |key: &'_ [u8]| key.to_ascii_lowercase();
        lower(a).cmp(&lower(b))
    }

    fn equality_is_bytewise(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_variant_is_valid() {
        for variant in VARIANTS {
            variant.options().and_then(|o| o.validate()).unwrap_or_else(|error| {
                panic!("{}: {error}", variant.name);
            });
        }
    }
}
