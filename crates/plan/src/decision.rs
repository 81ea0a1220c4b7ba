//! The decisions of a policy, with the reason as data.
//!
//! A decision is a value: the executor runs it, tests and reports print it. `Display` gives one
//! sentence with the job and its reason.
//!
//! Owns: the kinds of decision, the reasons, and the edit that each decision becomes. Never does:
//! decide, or apply an edit.

use crate::tree::{Edit, File, LEVELS_MAX, Part, Place, Span};
use alloc::collections::BTreeSet;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use core::fmt;
use windrow_base::{Epoch, FileNumber, SeqNo, invariant};

/// The next thing to do with a tree.
#[derive(Clone, Debug)]
pub enum Decision {
    /// Nothing, or nothing that is possible while other jobs run.
    Idle,
    /// Give a file another place without reading it.
    Move(Move),
    /// Rewrite files into one place.
    Merge(Merge),
    /// Take files away whose loss no read can see.
    Drop(Drop),
    /// Change the number of levels that the shape plans for (Autumn's L).
    Reshape(Reshape),
}

/// The reason for a decision. Its numbers are those that the decision was made on.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Reason {
    /// `depth` epochs of level 0 cover one point; `limit` is where merging starts.
    Level0Depth {
        /// Epochs over the deepest point.
        depth: u32,
        /// Depth at which level 0 is merged.
        limit: u32,
    },
    /// Level 0 is wide but not deep.
    Level0Bytes {
        /// Bytes in level 0.
        bytes: u64,
        /// Bytes at which level 0 is merged.
        limit: u64,
    },
    /// Level 0 is deep and the way down is busy: merge within it.
    Level0Blocked {
        /// Epochs over the deepest point.
        depth: u32,
        /// Epochs that become one.
        epochs: u32,
    },
    /// The device has no room for the merge that was due, but has room for this one.
    LittleRoom {
        /// Bytes that may be written.
        bytes: u64,
    },
    /// A run is larger than its level's capacity.
    LevelFull {
        /// Level of the run.
        level: u32,
        /// Its bytes.
        bytes: u64,
        /// Capacity in bytes.
        capacity: u64,
    },
    /// Level 0 is a queue, and its oldest flush goes next.
    Level0Queue {
        /// Epochs in level 0.
        epochs: u32,
    },
    /// Level 0 holds more than its partitions' share, and this partition holds the most.
    PartitionFull {
        /// The partition, from 0.
        partition: u32,
        /// Its bytes.
        bytes: u64,
        /// Bytes in all of level 0.
        level0_bytes: u64,
        /// Bytes in level 0 at which partitions are merged down.
        limit: u64,
    },
    /// A partition is deep, however small it is.
    PartitionDeep {
        /// The partition, from 0.
        partition: u32,
        /// Epochs over its deepest point.
        depth: u32,
        /// Depth at which it goes down.
        limit: u32,
    },
    /// A partition in its turn has small flushes, and a merge down would rewrite much: the newest are
    /// merged within level 0.
    PartitionOfSmallFlushes {
        /// The partition, from 0.
        partition: u32,
        /// Epochs over its deepest point.
        depth: u32,
        /// Epochs that become one.
        epochs: u32,
    },
    /// A run is larger than its level's capacity, and the level's SST-log has room.
    RunToSstLog {
        /// Level of the run.
        level: u32,
        /// Its bytes.
        bytes: u64,
        /// Capacity in bytes.
        capacity: u64,
    },
    /// An SST-log is larger than its limit.
    SstLogFull {
        /// Level of the SST-log.
        level: u32,
        /// Its bytes.
        bytes: u64,
        /// Limit in bytes.
        limit: u64,
    },
    /// Too many files of an SST-log cover one point.
    SstLogDeep {
        /// Level of the SST-log.
        level: u32,
        /// Files over the deepest point.
        depth: u32,
        /// Most there may be.
        limit: u32,
    },
    /// The last level is over its capacity: every level is given more.
    Grow {
        /// The new number of levels.
        levels: u32,
        /// Bytes of the last level.
        bytes: u64,
        /// Its capacity in bytes.
        capacity: u64,
    },
    /// The tree would fit in fewer levels with room to spare.
    Shrink {
        /// The new number of levels.
        levels: u32,
        /// Bytes of the tree.
        bytes: u64,
        /// Bytes that this number of levels can hold.
        capacity: u64,
    },
    /// Level 1 would hold more than it may: a level is inserted above it.
    InsertLevel {
        /// The new number of levels.
        levels: u32,
        /// Bytes that level 1 would hold, computed from the last level's.
        bytes: u64,
        /// The most bytes that it may hold.
        limit: u64,
    },
    /// Level 1 is of no use: without it, the next level would be as small.
    RemoveLevel {
        /// The new number of levels.
        levels: u32,
        /// Bytes that the level in its place would hold, computed from the last level's.
        bytes: u64,
        /// Bytes from which on level 1 is kept.
        limit: u64,
    },
    /// A log that this picker does not feed is emptied (I10).
    DrainSstLog {
        /// Level of the SST-log.
        level: u32,
        /// Bytes in it.
        bytes: u64,
    },
    /// Much of a file is tombstones, which slow scans and hold space.
    Tombstones {
        /// The file.
        file: FileNumber,
        /// Its point tombstones.
        tombstones: u64,
        /// Its entries.
        entries: u64,
    },
    /// A file holds range tombstones, which keep the space of the entries that they hide.
    RangeTombstones {
        /// The file.
        file: FileNumber,
        /// How many.
        tombstones: u64,
    },
    /// Entries of a file expired a while ago.
    Expired {
        /// The file.
        file: FileNumber,
        /// How long ago the first one did, in ms.
        since_ms: u64,
    },
    /// A file holds only tombstones, and nothing older is below it.
    OnlyTombstones {
        /// The file.
        file: FileNumber,
    },
    /// Range tombstones hide files whole, from everybody.
    Covered {
        /// How many.
        files: u32,
        /// Their bytes.
        bytes: u64,
    },
    /// Small neighbours of a level become one file.
    SmallFiles {
        /// The level.
        level: u32,
        /// How many files.
        files: u32,
        /// Their bytes together.
        bytes: u64,
    },
    /// Reads have met tables of an SST-log so often that they have paid for the merge.
    ReadOften {
        /// Level of the SST-log.
        level: u32,
        /// Bytes that could have been merged in the time that the tables have cost reads.
        cost: u64,
        /// Bytes of the merge.
        bytes: u64,
    },
    /// The user asked for it.
    Manual,
}

/// Files of half a level that go into a job.
#[derive(Clone, Debug, PartialEq)]
pub struct Input {
    /// Level they are in.
    pub level: u32,
    /// Half they are in.
    pub part: Part,
    /// A run's by key; a log's newest epoch first, by key within an epoch.
    pub files: Vec<Arc<File>>,
}

/// Rewrite `inputs` into one place.
#[derive(Clone, Debug, PartialEq)]
pub struct Merge {
    /// Newest in read order first.
    pub inputs: Vec<Input>,
    /// Level of the output.
    pub output_level: u32,
    /// Half of the output.
    pub output_part: Part,
    /// Epoch of the outputs: the newest input's for a log (I5), 0 for a run.
    pub output_epoch: Epoch,
    /// Hull of the inputs: first key, last key, whether that one is exclusive.
    pub bounds: (Vec<u8>, Vec<u8>, bool),
    /// Why.
    pub reason: Reason,
    /// Round-robin cursor to store with the edit: level and key.
    pub cursor: Option<(u32, Vec<u8>)>,
}

/// Give `file` another place; no byte of data moves (I7).
#[derive(Clone, Debug, PartialEq)]
pub struct Move {
    /// The file as it is now.
    pub file: Arc<File>,
    /// Where it is.
    pub from: (u32, Part),
    /// Where it goes.
    pub to: (u32, Part),
    /// Its epoch there: a new one in an SST-log, 0 in a run.
    pub epoch: Epoch,
    /// Why.
    pub reason: Reason,
    /// Round-robin cursor to store with the edit: level and key.
    pub cursor: Option<(u32, Vec<u8>)>,
}

/// Take `files` away.
#[derive(Clone, Debug, PartialEq)]
pub struct Drop {
    /// The files and where they are.
    pub files: Vec<(u32, Part, Arc<File>)>,
    /// Of each file the oldest of the range tombstones that hide it together; empty where the files
    /// hold only tombstones.
    pub under: Vec<SeqNo>,
    /// Why.
    pub reason: Reason,
}

/// Plan for another number of levels; no byte of data moves (I7).
#[derive(Clone, Debug, PartialEq)]
pub struct Reshape {
    /// The new L.
    pub levels: u32,
    /// Files whose level gets another number, with where they are now: all of some
    /// level and of those below it. Epochs stay.
    pub renamed: Vec<(u32, Part, Arc<File>)>,
    /// They are one level lower afterwards, with an empty one above them. Else they are one
    /// level higher, in place of an empty one.
    pub is_insertion: bool,
    /// Where round-robin picking goes on, by level under its new number.
    pub cursors: Vec<(u32, Option<Vec<u8>>)>,
    /// Why.
    pub reason: Reason,
}

impl Decision {
    /// Whether there is nothing to do.
    pub fn is_idle(&self) -> bool {
        matches!(self, Decision::Idle)
    }

    /// Why, unless idle.
    pub fn reason(&self) -> Option<&Reason> {
        match self {
            Decision::Idle => None,
            Decision::Move(m) => Some(&m.reason),
            Decision::Merge(m) => Some(&m.reason),
            Decision::Drop(d) => Some(&d.reason),
            Decision::Reshape(r) => Some(&r.reason),
        }
    }

    /// Every file it takes, with where it is, newest in read order first.
    pub fn files(&self) -> Vec<(u32, Part, Arc<File>)> {
        match self {
            Decision::Idle => Vec::new(),
            Decision::Move(m) => vec![(m.from.0, m.from.1, m.file.clone())],
            Decision::Merge(m) => m.files().map(|(n, p, f)| (n, p, f.clone())).collect(),
            Decision::Drop(d) => d.files.clone(),
            Decision::Reshape(r) => r.renamed.clone(),
        }
    }
}

impl Merge {
    /// Every input file with where it is.
    pub fn files(&self) -> impl Iterator<Item = (u32, Part, &Arc<File>)> {
        self.inputs.iter().flat_map(|i| i.files.iter().map(move |f| (i.level, i.part, f)))
    }

    /// Bytes of all inputs: the job reads these, and writes about as many at most.
    pub fn input_bytes(&self) -> u64 {
        self.files().map(|(_, _, f)| f.bytes).sum()
    }

    /// The hull of the inputs.
    pub fn span(&self) -> Span<'_> {
        Span::of(&self.bounds)
    }

    /// The output's place in read order.
    pub fn output_place(&self) -> Place {
        is_epoch_of(self.output_part, self.output_epoch);
        match self.output_part {
            Part::Run => Place::run(self.output_level),
            Part::SstLog => Place::sst_log(self.output_level, self.output_epoch),
        }
    }

    /// The edit that replaces the inputs by `outputs`, which get the job's epoch.
    pub fn edit(&self, outputs: Vec<File>) -> Edit {
        let epoch = self.output_epoch;
        is_epoch_of(self.output_part, epoch);
        self.fits(&outputs);
        Edit {
            removed: self.files().map(|(n, part, f)| (n, part, f.number)).collect(),
            added: outputs
                .into_iter()
                .map(|f| (self.output_level, self.output_part, Arc::new(File { epoch, ..f })))
                .collect(),
            cursors: cursors(&self.cursor),
            ..Edit::default()
        }
    }

    /// Checks that the outputs are new tables, and hold nothing that the inputs did not.
    fn fits(&self, outputs: &[File]) {
        let inputs: BTreeSet<FileNumber> = self.files().map(|(_, _, f)| f.number).collect();
        let mut numbers = inputs.clone();
        let twice = outputs.iter().map(|f| f.number).find(|&number| !numbers.insert(number));
        invariant!(I2, twice.is_none(), "a merge of {inputs:?} writes table {twice:?} again");
        let newest = |files: &mut dyn Iterator<Item = &File>| files.map(|f| f.seq_max).max();
        let read = newest(&mut self.files().map(|(_, _, f)| &**f));
        let written = newest(&mut outputs.iter());
        invariant!(I3, written <= read, "a merge writes entries up to {written:?} of {read:?}");
    }
}

impl Move {
    /// The edit that moves the file: it removes and adds the same number (I2).
    pub fn edit(&self) -> Edit {
        is_epoch_of(self.to.1, self.epoch);
        let number = self.file.number;
        invariant!(I2, self.from != self.to, "table {number} moves to where it is");
        let file = match self.file.epoch == self.epoch {
            true => self.file.clone(),
            false => Arc::new(self.file.at_epoch(self.epoch)),
        };
        Edit {
            removed: vec![(self.from.0, self.from.1, self.file.number)],
            added: vec![(self.to.0, self.to.1, file)],
            cursors: cursors(&self.cursor),
            ..Edit::default()
        }
    }
}

impl Drop {
    /// The edit that takes the files away.
    pub fn edit(&self) -> Edit {
        let number = self.needed();
        invariant!(I6, number.is_none(), "table {number:?} is dropped, and has entries");
        let removed = self.files.iter().map(|(n, part, f)| (*n, *part, f.number)).collect();
        Edit { removed, ..Edit::default() }
    }

    /// Returns a file that holds more than tombstones, and that no range tombstone hides whole.
    pub(crate) fn needed(&self) -> Option<FileNumber> {
        let is_hidden =
            |i: usize, file: &File| self.under.get(i).is_some_and(|&seq| file.seq_max < seq);
        let mut files = self.files.iter().enumerate().map(|(i, (_, _, file))| (i, file));
        let needed = files.find(|(i, f)| f.point_tombstones != f.entries && !is_hidden(*i, f));
        needed.map(|(_, file)| file.number)
    }
}

impl Reshape {
    /// The edit that changes L, and with it the names of levels.
    pub fn edit(&self) -> Edit {
        let odd = self.renamed.iter().map(|r| self.renamed_to(r.0)).find(|to| *to == Some(0));
        invariant!(I3, odd.is_none(), "tables of level 1 come to level 0");
        let added = |(level, part, file): &(u32, Part, Arc<File>)| {
            Some((self.renamed_to(*level)?, *part, file.clone()))
        };
        Edit {
            removed: self.renamed.iter().map(|(n, part, f)| (*n, *part, f.number)).collect(),
            added: self.renamed.iter().filter_map(added).collect(),
            shape_levels: Some(self.levels),
            cursors: self.cursors.clone(),
            ..Edit::default()
        }
    }

    /// The number that `level` gets; `None` for level 0, which keeps its own.
    pub(crate) fn renamed_to(&self, level: u32) -> Option<u32> {
        match self.is_insertion {
            true => Some(level + 1),
            false => level.checked_sub(1),
        }
    }
}

/// Checks that a file of this half of a level can have this epoch.
fn is_epoch_of(part: Part, epoch: Epoch) {
    let fits = (part == Part::Run) == (epoch == 0);
    invariant!(I4, fits, "epoch {epoch} of a {}", part.name());
}

fn cursors(cursor: &Option<(u32, Vec<u8>)>) -> Vec<(u32, Option<Vec<u8>>)> {
    let level = cursor.as_ref().map(|(level, _)| *level);
    invariant!(I10, level.is_none_or(|n| (1..LEVELS_MAX).contains(&n)), "level {level:?} goes on");
    cursor.iter().map(|(level, key)| (*level, Some(key.clone()))).collect()
}

/// A number of bytes, printed with a unit.
pub(crate) struct Bytes(pub(crate) u64);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
        let mut value = self.0 as f64;
        let mut unit = 0;
        while value >= 1024.0 && unit + 1 < UNITS.len() {
            value /= 1024.0;
            unit += 1;
        }
        if unit == 0 || value >= 99.95 || value == libm::trunc(value) {
            write!(f, "{value:.0} {}", UNITS[unit])
        } else {
            write!(f, "{value:.1} {}", UNITS[unit])
        }
    }
}

impl Reason {
    /// Writes the reasons that level 0 gives.
    fn fmt_level0(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::Level0Depth { depth, limit } => {
                write!(f, "{depth} epochs of level 0 cover one point, and {limit} start a merge")
            }
            Reason::Level0Bytes { bytes, limit } => {
                write!(f, "level 0 holds {}, and {} start a merge", Bytes(*bytes), Bytes(*limit))
            }
            Reason::Level0Blocked { depth, epochs } => write!(
                f,
                "{depth} epochs of level 0 cover one point and the way down is busy: \
                 {epochs} of them become one"
            ),
            Reason::Level0Queue { epochs } => {
                write!(f, "level 0 holds {epochs} epochs and the oldest goes next")
            }
            Reason::PartitionFull { partition, bytes, level0_bytes, limit } => write!(
                f,
                "partition {partition} of level 0 holds {} of its {}, and {} start a merge",
                Bytes(*bytes),
                Bytes(*level0_bytes),
                Bytes(*limit)
            ),
            Reason::PartitionDeep { partition, depth, limit } => {
                write!(
                    f,
                    "{depth} epochs of partition {partition} of level 0 cover one point, and {limit} start a merge"
                )
            }
            Reason::PartitionOfSmallFlushes { partition, depth, epochs } => write!(
                f,
                "{depth} epochs of partition {partition} of level 0 cover one point, and are small: \
                 {epochs} of them become one"
            ),
            _ => Ok(()),
        }
    }

    /// Writes the reasons for which files enter or leave SST-logs.
    fn fmt_sst_log(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::RunToSstLog { level, bytes, capacity } => write!(
                f,
                "run {level} holds {} of {}, and its SST-log has room",
                Bytes(*bytes),
                Bytes(*capacity)
            ),
            Reason::SstLogFull { level, bytes, limit } => {
                write!(f, "SST-log {level} holds {} of {}", Bytes(*bytes), Bytes(*limit))
            }
            Reason::SstLogDeep { level, depth, limit } => {
                write!(f, "{depth} files of SST-log {level} cover one point, and {limit} may")
            }
            Reason::DrainSstLog { level, bytes } => {
                write!(f, "SST-log {level} holds {} to drain", Bytes(*bytes))
            }
            Reason::ReadOften { level, cost, bytes } => write!(
                f,
                "tables of SST-log {level} have cost reads as much as merging {}, and {} are to be merged",
                Bytes(*cost),
                Bytes(*bytes)
            ),
            _ => Ok(()),
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::Level0Depth { .. }
            | Reason::Level0Bytes { .. }
            | Reason::Level0Blocked { .. }
            | Reason::Level0Queue { .. }
            | Reason::PartitionFull { .. }
            | Reason::PartitionDeep { .. }
            | Reason::PartitionOfSmallFlushes { .. } => self.fmt_level0(f),
            Reason::RunToSstLog { .. }
            | Reason::SstLogFull { .. }
            | Reason::SstLogDeep { .. }
            | Reason::DrainSstLog { .. }
            | Reason::ReadOften { .. } => self.fmt_sst_log(f),
            Reason::LittleRoom { bytes } => {
                write!(f, "the device has room for {}, and not for what is due", Bytes(*bytes))
            }
            Reason::LevelFull { level, bytes, capacity } => {
                write!(f, "level {level} holds {} of {}", Bytes(*bytes), Bytes(*capacity))
            }
            Reason::InsertLevel { levels, bytes, limit } => write!(
                f,
                "level 1 would hold {} of {}: a level is inserted above it, {levels} in all",
                Bytes(*bytes),
                Bytes(*limit)
            ),
            Reason::RemoveLevel { levels, bytes, limit } => write!(
                f,
                "level 2 would do for level 1, with {}, less than {}: level 1 is removed, which leaves {levels}",
                Bytes(*bytes),
                Bytes(*limit)
            ),
            Reason::Grow { levels, bytes, capacity } => write!(
                f,
                "the last level holds {} of {}: plan for {levels} levels",
                Bytes(*bytes),
                Bytes(*capacity)
            ),
            Reason::Shrink { levels, bytes, capacity } => write!(
                f,
                "the tree holds {}, and {levels} levels hold {}",
                Bytes(*bytes),
                Bytes(*capacity)
            ),
            Reason::Tombstones { file, tombstones, entries } => {
                write!(f, "{tombstones} of {entries} entries of table {file} are tombstones")
            }
            Reason::RangeTombstones { file, tombstones } => {
                write!(f, "table {file} holds {tombstones} range tombstones")
            }
            Reason::Expired { file, since_ms } => {
                write!(f, "entries of table {file} expired {} s ago", since_ms / 1000)
            }
            Reason::OnlyTombstones { file } => {
                write!(f, "table {file} holds only tombstones and nothing older is below it")
            }
            Reason::Covered { files, bytes } => {
                write!(f, "range tombstones hide {files} tables of {} whole", Bytes(*bytes))
            }
            Reason::SmallFiles { level, files, bytes } => {
                write!(f, "{files} small neighbours of level {level} hold {}", Bytes(*bytes))
            }
            Reason::Manual => write!(f, "asked for"),
        }
    }
}

fn place(level: u32, part: Part) -> impl fmt::Display {
    struct Name(u32, Part);
    impl fmt::Display for Name {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "L{}.{}", self.0, self.1.name())
        }
    }
    Name(level, part)
}

fn numbers<'a>(
    f: &mut fmt::Formatter<'_>,
    files: impl Iterator<Item = &'a Arc<File>>,
) -> fmt::Result {
    const SHOWN: usize = 12;
    let mut more = 0usize;
    for (i, file) in files.enumerate() {
        match i {
            0 => write!(f, "{}", file.number)?,
            i if i < SHOWN => write!(f, " {}", file.number)?,
            _ => more += 1,
        }
    }
    if more > 0 { write!(f, " and {more} more") } else { Ok(()) }
}

impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Decision::Idle => write!(f, "idle"),
            Decision::Move(m) => write!(
                f,
                "move {} ({}) from {} to {}: {}",
                m.file.number,
                Bytes(m.file.bytes),
                place(m.from.0, m.from.1),
                place(m.to.0, m.to.1),
                m.reason
            ),
            Decision::Merge(m) => m.fmt(f),
            Decision::Drop(d) => {
                write!(f, "drop ")?;
                numbers(f, d.files.iter().map(|(_, _, file)| file))?;
                write!(f, ": {}", d.reason)
            }
            Decision::Reshape(r) => {
                let levels: BTreeSet<u32> = r.renamed.iter().map(|(level, _, _)| *level).collect();
                for (i, &level) in levels.iter().enumerate() {
                    let to = r.renamed_to(level).unwrap_or(level);
                    write!(f, "{} {level} to {to}", if i > 0 { "," } else { "rename level" })?;
                }
                if !levels.is_empty() {
                    write!(f, ": ")?;
                }
                write!(f, "{}", r.reason)
            }
        }
    }
}

impl fmt::Display for Merge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "merge ")?;
        for (i, input) in self.inputs.iter().enumerate() {
            if i > 0 {
                write!(f, " + ")?;
            }
            write!(f, "{}[", place(input.level, input.part))?;
            numbers(f, input.files.iter())?;
            write!(f, "]")?;
        }
        write!(
            f,
            " ({}) into {}",
            Bytes(self.input_bytes()),
            place(self.output_level, self.output_part)
        )?;
        if self.output_part == Part::SstLog {
            write!(f, "@{}", self.output_epoch)?;
        }
        write!(f, ": {}", self.reason)
    }
}
