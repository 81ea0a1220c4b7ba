//! One level: a run of disjoint files, and an SST-log of files that may overlap.
//!
//! Owns: the order of files within a level, and its cached sums: bytes, numbers, depth. Never does:
//! look at another level.

use super::file::{File, Part};
use super::span::Span;
use alloc::format;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Range;
use windrow_base::{Error, FileNumber, KeyOrder, Result, debug_invariant, invariant};

/// A level of a version. Immutable once built; built by [`Level::new`] and by
/// edits of a version, which keep the files in order and the cached sums true.
#[derive(Clone, Debug, Default)]
pub struct Level {
    /// Sorted, disjoint files (I1). Always empty in level 0.
    pub run: Vec<Arc<File>>,
    /// Newest epoch first, the files of one epoch by key (I4).
    pub sst_log: Vec<Arc<File>>,
    // Numbers apart from the files: looking one up scans eight bytes a file
    // instead of following ten thousand pointers.
    run_numbers: Vec<FileNumber>,
    sst_log_numbers: Vec<FileNumber>,
    run_bytes: u64,
    sst_log_bytes: u64,
    garbage_files: usize,
    sst_log_depth: u32,
}

/// The point of a set of files that most of them cover.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Deepest<'a> {
    /// How many files cover it.
    pub depth: u32,
    /// A key that this number of files covers.
    pub key: &'a [u8],
}

/// Finds the deepest point of `files`. Files of one epoch are disjoint, so
/// that for an SST-log this counts epochs (I10). O(n log n).
pub fn deepest_point<'a>(
    order: &KeyOrder,
    files: impl Iterator<Item = &'a Arc<File>>,
) -> Deepest<'a> {
    // At one key, open ends come before starts, and closed ends after them.
    let mut edges: Vec<(&'a [u8], u8)> = Vec::new();
    for file in files {
        edges.push((&file.smallest, 1));
        edges.push((&file.largest, if file.largest_exclusive { 0 } else { 2 }));
    }
    edges.sort_by(|a, b| order.compare(a.0, b.0).then(a.1.cmp(&b.1)));
    let mut best = Deepest::default();
    let mut open = 0u32;
    for (key, edge) in edges {
        if edge == 1 {
            open += 1;
            if open > best.depth {
                best = Deepest { depth: open, key };
            }
        } else {
            debug_invariant!(I1, open > 0, "a table ends that has not begun");
            open = open.saturating_sub(1);
        }
    }
    debug_invariant!(I1, open == 0, "{open} tables do not end");
    best
}

impl Level {
    /// Builds a level of these files, in any order.
    ///
    /// # Errors
    /// `Corruption` where they break I1 or I4.
    pub fn new(order: &KeyOrder, run: Vec<Arc<File>>, log: Vec<Arc<File>>) -> Result<Level> {
        Level::default().edit(order, &[], run, log)
    }

    /// The files of one half.
    #[inline]
    pub fn part(&self, part: Part) -> &[Arc<File>] {
        match part {
            Part::Run => &self.run,
            Part::SstLog => &self.sst_log,
        }
    }

    /// Bytes of run and SST-log.
    pub fn bytes(&self) -> u64 {
        self.run_bytes.saturating_add(self.sst_log_bytes)
    }

    /// Bytes of one half.
    pub fn part_bytes(&self, part: Part) -> u64 {
        match part {
            Part::Run => self.run_bytes,
            Part::SstLog => self.sst_log_bytes,
        }
    }

    /// How many epochs of the SST-log cover its deepest point.
    pub fn sst_log_depth(&self) -> u32 {
        self.sst_log_depth
    }

    /// Files that hold tombstones or expiring entries.
    pub fn garbage_files(&self) -> usize {
        self.garbage_files
    }

    /// Whether there is no file.
    pub fn is_empty(&self) -> bool {
        self.run.is_empty() && self.sst_log.is_empty()
    }

    /// Index of file `number` in one half.
    pub fn find(&self, part: Part, number: FileNumber) -> Option<usize> {
        let at = self.numbers(part).iter().position(|&n| n == number);
        let is_it = at.is_none_or(|i| self.part(part)[i].number == number);
        debug_invariant!(I2, is_it, "table {number} is not where its number is");
        at
    }

    fn numbers(&self, part: Part) -> &[FileNumber] {
        match part {
            Part::Run => &self.run_numbers,
            Part::SstLog => &self.sst_log_numbers,
        }
    }

    /// Returns one of the `sorted` numbers that is in the level, if any is.
    pub(super) fn find_any(&self, sorted: &[FileNumber]) -> Option<FileNumber> {
        let (&first, &last) = (sorted.first()?, sorted.last()?);
        debug_invariant!(I2, sorted.is_sorted(), "numbers to search in are not sorted");
        let hit = |n: &&FileNumber| (first..=last).contains(*n) && sorted.binary_search(n).is_ok();
        self.run_numbers.iter().find(hit).or_else(|| self.sst_log_numbers.iter().find(hit)).copied()
    }

    /// Indices of the run's files that overlap `span`. O(log n).
    pub fn run_overlapping(&self, order: &KeyOrder, span: &Span<'_>) -> Range<usize> {
        let start = self.run.partition_point(|f| f.span().ends_before(order, span.lo));
        let more = self.run[start..].partition_point(|f| !span.ends_before(order, &f.smallest));
        debug_invariant!(
            I1,
            self.run[start..start + more].iter().all(|file| file.overlaps(order, span)),
            "a table among those that overlap does not"
        );
        let outside = [start.checked_sub(1), Some(start + more)];
        let mut next = outside.into_iter().flatten().filter_map(|i| self.run.get(i));
        let missed = !span.is_empty(order) && next.any(|file| file.overlaps(order, span));
        debug_invariant!(I1, !missed, "a table that overlaps is left out");
        start..start + more
    }

    /// Bytes of the run's files that overlap `span`.
    pub fn run_bytes_overlapping(&self, order: &KeyOrder, span: &Span<'_>) -> u64 {
        self.run[self.run_overlapping(order, span)].iter().map(|f| f.bytes).sum()
    }

    /// Returns the level without the files `removed` (numbers with their half) and with those
    /// added. The neighbours of each added file are checked, so that a level that was in order
    /// stays so; the rest is copied.
    ///
    /// # Errors
    /// `Corruption` if a removed file is not there or an added one breaks I1 or I4.
    pub(super) fn edit(
        &self,
        order: &KeyOrder,
        removed: &[(Part, FileNumber)],
        mut run_added: Vec<Arc<File>>,
        mut log_added: Vec<Arc<File>>,
    ) -> Result<Level> {
        for file in &run_added {
            file.check(order, Part::Run)?;
        }
        for file in &log_added {
            file.check(order, Part::SstLog)?;
        }
        let run_gone = self.indices(removed, Part::Run)?;
        let log_gone = self.indices(removed, Part::SstLog)?;
        run_added.sort_by(|a, b| order.compare(&a.smallest, &b.smallest));
        log_added.sort_by(|a, b| log_order(order, a, b));
        let mut level = Level {
            run_bytes: self.run_bytes,
            sst_log_bytes: self.sst_log_bytes,
            garbage_files: self.garbage_files,
            sst_log_depth: self.sst_log_depth,
            ..Level::default()
        };
        let count = |files: &[Arc<File>], gone: &[usize], added: &[Arc<File>]| {
            files.len() - gone.len() + added.len()
        };
        let run_count = count(&self.run, &run_gone, &run_added);
        let log_count = count(&self.sst_log, &log_gone, &log_added);
        level.account(&self.run, &run_gone, &run_added, Part::Run);
        level.account(&self.sst_log, &log_gone, &log_added, Part::SstLog);
        let log_changed = !log_gone.is_empty() || !log_added.is_empty();
        (level.run, level.run_numbers) = splice(
            (&self.run, &self.run_numbers),
            &run_gone,
            run_added,
            |old, new| order.compare(&old.smallest, &new.smallest).is_lt(),
            |a, b| disjoint(order, a, b),
        )?;
        (level.sst_log, level.sst_log_numbers) = splice(
            (&self.sst_log, &self.sst_log_numbers),
            &log_gone,
            log_added,
            |old, new| log_order(order, old, new).is_lt(),
            |a, b| a.epoch != b.epoch || disjoint(order, a, b),
        )?;
        let counts = (level.run.len(), level.sst_log.len());
        invariant!(
            I2,
            counts == (run_count, log_count),
            "an edit leaves {counts:?} tables, where {run_count} and {log_count} are due"
        );
        let numbers = (level.run_numbers.len(), level.sst_log_numbers.len());
        invariant!(I2, numbers == counts, "{numbers:?} numbers of {counts:?} tables");
        level.run_numbers.shrink_to_fit();
        level.sst_log_numbers.shrink_to_fit();
        if log_changed {
            level.sst_log_depth = deepest_point(order, level.sst_log.iter()).depth;
        }
        let (depth, files) = (level.sst_log_depth as usize, counts.1);
        invariant!(I4, depth <= files, "{depth} of {files} tables of an SST-log over one point");
        invariant!(I4, (depth == 0) == (files == 0), "{files} tables over no point");
        let (garbage, files) = (level.garbage_files, counts.0 + counts.1);
        invariant!(I2, garbage <= files, "{garbage} of {files} tables hold tombstones");
        Ok(level)
    }

    fn account(&mut self, old: &[Arc<File>], gone: &[usize], added: &[Arc<File>], part: Part) {
        let sum = match part {
            Part::Run => &mut self.run_bytes,
            Part::SstLog => &mut self.sst_log_bytes,
        };
        for &i in gone {
            *sum = sum.saturating_sub(old[i].bytes);
            let garbage = old[i].may_hold_garbage() as usize;
            debug_invariant!(I2, self.garbage_files >= garbage, "too few tables with tombstones");
            self.garbage_files -= garbage;
        }
        for file in added {
            *sum = sum.saturating_add(file.bytes);
            self.garbage_files += file.may_hold_garbage() as usize;
        }
    }

    /// How many of these tables, ascending and each once, are in one half.
    pub(crate) fn count(&self, part: Part, sorted: &[FileNumber]) -> usize {
        let (Some(first), Some(last)) = (sorted.first(), sorted.last()) else { return 0 };
        debug_invariant!(I2, sorted.windows(2).all(|w| w[0] < w[1]), "tables are counted twice");
        let is_one =
            |n: &&FileNumber| (first..=last).contains(n) && sorted.binary_search(n).is_ok();
        self.numbers(part).iter().filter(is_one).count()
    }

    /// Indices of the removed files of one half, ascending.
    fn indices(&self, removed: &[(Part, FileNumber)], part: Part) -> Result<Vec<usize>> {
        let mut wanted: Vec<FileNumber> =
            removed.iter().filter(|r| r.0 == part).map(|r| r.1).collect();
        wanted.sort_unstable();
        let (Some(&first), Some(&last)) = (wanted.first(), wanted.last()) else {
            return Ok(Vec::new());
        };
        let mut found = Vec::with_capacity(wanted.len());
        for (i, number) in self.numbers(part).iter().enumerate() {
            if (first..=last).contains(number) && wanted.binary_search(number).is_ok() {
                found.push(i);
            }
        }
        if found.len() == wanted.len() {
            debug_invariant!(I2, found.is_sorted(), "indices do not ascend");
            return Ok(found);
        }
        let missing = wanted.iter().find(|n| self.find(part, **n).is_none());
        Err(Error::corruption(match missing {
            Some(number) => format!("an edit removes table {number}, which is not there"),
            None => format!("an edit removes one of tables {first} to {last} twice"),
        }))
    }

    /// Checks order and bounds of every file, and the cached sums (I1, I4).
    ///
    /// # Errors
    /// `Corruption` naming the files at fault.
    pub(super) fn check(&self, order: &KeyOrder) -> Result<()> {
        let rebuilt = Level::new(order, self.run.clone(), self.sst_log.clone())?;
        let same = |a: &[Arc<File>], b: &[Arc<File>]| {
            a.iter().map(|f| f.number).eq(b.iter().map(|f| f.number))
        };
        if !same(&rebuilt.run, &self.run) || !same(&rebuilt.sst_log, &self.sst_log) {
            return Err(Error::corruption("the files of a level are out of order"));
        }
        let sums = |l: &Level| (l.run_bytes, l.sst_log_bytes, l.garbage_files, l.sst_log_depth);
        if sums(&rebuilt) != sums(self)
            || rebuilt.run_numbers != self.run_numbers
            || rebuilt.sst_log_numbers != self.sst_log_numbers
        {
            return Err(Error::corruption("the sums kept of a level are wrong"));
        }
        Ok(())
    }
}

/// Order of a log's files: newest epoch first, then by key.
fn log_order(order: &KeyOrder, a: &File, b: &File) -> core::cmp::Ordering {
    b.epoch.cmp(&a.epoch).then_with(|| order.compare(&a.smallest, &b.smallest))
}

/// Whether `a` ends before `b` starts.
fn disjoint(order: &KeyOrder, a: &File, b: &File) -> bool {
    a.span().ends_before(order, &b.smallest)
}

type Spliced = (Vec<Arc<File>>, Vec<FileNumber>);

/// Returns `old` without the indices `gone`, with `added` (sorted) put in where `before` says;
/// every new file must agree with its neighbours.
fn splice(
    (old, old_numbers): (&[Arc<File>], &[FileNumber]),
    gone: &[usize],
    added: Vec<Arc<File>>,
    before: impl Fn(&File, &File) -> bool,
    agree: impl Fn(&File, &File) -> bool,
) -> Result<Spliced> {
    invariant!(I2, old.len() == old_numbers.len(), "{} tables", old_numbers.len());
    invariant!(I2, gone.len() <= old.len(), "{} of {} tables go", gone.len(), old.len());
    let count = old.len() - gone.len() + added.len();
    let mut files: Vec<Arc<File>> = Vec::with_capacity(count);
    let mut numbers: Vec<FileNumber> = Vec::with_capacity(count);
    let mut gone = gone.iter().copied().peekable();
    let mut taken = 0;
    let mut copy_to = |files: &mut Vec<Arc<File>>, numbers: &mut Vec<FileNumber>, end: usize| {
        while taken < end {
            let stop = gone.peek().map_or(end, |&g| g.min(end));
            files.extend_from_slice(&old[taken..stop]);
            numbers.extend_from_slice(&old_numbers[taken..stop]);
            taken = stop;
            if gone.next_if_eq(&taken).is_some() {
                taken += 1;
            }
        }
    };
    let mut placed: Vec<usize> = Vec::with_capacity(added.len());
    for file in added {
        copy_to(&mut files, &mut numbers, old.partition_point(|o| before(o, &file)));
        placed.push(files.len());
        numbers.push(file.number);
        files.push(file);
    }
    copy_to(&mut files, &mut numbers, old.len());
    debug_invariant!(I2, files.len() == count, "{} of {count} tables are put in", files.len());
    let same = files.iter().map(|file| &file.number).eq(&numbers);
    debug_invariant!(I2, same, "tables and their numbers are in two orders");
    for i in placed {
        let neighbours = [(i.checked_sub(1), Some(i)), (Some(i), Some(i + 1))];
        for (a, b) in neighbours {
            let pair = (a.and_then(|a| files.get(a)), b.and_then(|b| files.get(b)));
            if let (Some(a), Some(b)) = pair
                && !agree(a, b)
            {
                return Err(Error::corruption(format!(
                    "tables {} and {} of one run or epoch overlap",
                    a.number, b.number
                )));
            }
        }
    }
    Ok((files, numbers))
}
