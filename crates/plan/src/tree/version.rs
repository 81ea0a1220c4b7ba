//! The tree of one keyspace at one moment, as metadata, and the step from one
//! moment to the next.
//!
//! Owns: the levels and what the policies persist (lanes, cursors, L, epochs).
//! Never changes: an edit gives a new version, which shares every level that
//! the edit does not touch (I7).

use super::edit::Edit;
use super::file::{File, Part};
use super::level::Level;
use super::span::Span;
use alloc::format;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use windrow_base::key::{KEY_BYTES_MAX, SEQ_MAX};
use windrow_base::{Epoch, Error, FileNumber, KeyOrder, Result, SeqNo};

/// Most levels a tree can have. The last one has no capacity limit; at ratio 2
/// over a megabyte it lies in the petabytes.
pub const LEVELS_MAX: u32 = 32;

/// Bytes of files that one edit of a snapshot adds, about. It is encoded as a whole;
/// applying one takes time for all files of its levels, so they are not small.
const SNAPSHOT_EDIT_BYTES: usize = 1 << 20;

/// An immutable tree. Cheap to clone: an `Arc` per level.
#[derive(Clone, Debug)]
pub struct Version {
    /// Levels from 0; at least one, and the last is empty only if it is the only one.
    pub levels: Vec<Arc<Level>>,
    /// The number of levels that the shape plans for (Autumn's L); at least 1.
    pub shape_levels: u32,
    /// Epoch for the next file to enter a log; larger than every epoch in the tree.
    pub next_epoch: Epoch,
    /// Boundaries of level 0's lanes, ascending; empty for one lane.
    pub lanes: Arc<[Vec<u8>]>,
    /// Round-robin position by level: the next pick starts after this key.
    pub cursors: Vec<Option<Vec<u8>>>,
    /// Every entry up to this sequence number is in a table.
    pub flushed_through: SeqNo,
    /// Order of the keyspace's keys.
    pub order: KeyOrder,
}

impl Version {
    /// A tree without files.
    pub fn empty(order: KeyOrder) -> Version {
        Version {
            levels: vec![Arc::new(Level::default())],
            shape_levels: 1,
            next_epoch: 1,
            lanes: Arc::new([]),
            cursors: Vec::new(),
            flushed_through: 0,
            order,
        }
    }

    /// Every file with where it stands, in read order.
    pub fn files(&self) -> impl Iterator<Item = (u32, Part, &Arc<File>)> {
        self.levels.iter().enumerate().flat_map(|(n, level)| {
            let run = level.run.iter().map(move |f| (n as u32, Part::Run, f));
            run.chain(level.log.iter().map(move |f| (n as u32, Part::Log, f)))
        })
    }

    /// Number of files.
    pub fn file_count(&self) -> usize {
        self.levels.iter().map(|l| l.run.len() + l.log.len()).sum()
    }

    /// Bytes of all tables.
    pub fn bytes(&self) -> u64 {
        self.levels.iter().fold(0, |sum, l| sum.saturating_add(l.bytes()))
    }

    /// The deepest level that holds a file; `None` for an empty tree.
    pub fn deepest(&self) -> Option<u32> {
        self.levels.iter().rposition(|l| !l.is_empty()).map(|n| n as u32)
    }

    /// The level, if the tree reaches that deep.
    pub fn level(&self, level: u32) -> Option<&Arc<Level>> {
        self.levels.get(level as usize)
    }

    /// The files of half a level; none if the tree does not reach that deep.
    pub fn part(&self, level: u32, part: Part) -> &[Arc<File>] {
        self.level(level).map_or(&[], |l| l.part(part))
    }

    /// Bytes of half a level.
    pub fn part_bytes(&self, level: u32, part: Part) -> u64 {
        self.level(level).map_or(0, |l| l.part_bytes(part))
    }

    /// Where round-robin picking of `level` goes on.
    pub fn cursor(&self, level: u32) -> Option<&[u8]> {
        self.cursors.get(level as usize)?.as_deref()
    }

    /// The files of half a level that may hold a key of `[lo, hi]` (or `[lo, hi)`),
    /// in read order. Binary search in a run, a scan in a log.
    pub fn overlapping<'a>(
        &'a self,
        level: u32,
        part: Part,
        lo: &'a [u8],
        hi: &'a [u8],
        hi_exclusive: bool,
    ) -> impl Iterator<Item = &'a Arc<File>> {
        self.overlapping_span(level, part, Span { lo, hi, hi_exclusive }).map(|(_, file)| file)
    }

    /// As [`Version::overlapping`], with each file's index in its half.
    pub fn overlapping_span<'a>(
        &'a self,
        level: u32,
        part: Part,
        span: Span<'a>,
    ) -> impl Iterator<Item = (usize, &'a Arc<File>)> {
        let range = match (self.level(level), part) {
            (None, _) => 0..0,
            (Some(l), Part::Run) => l.run_overlapping(&self.order, &span),
            (Some(l), Part::Log) => 0..l.log.len(),
        };
        let files = &self.part(level, part)[range.clone()];
        range.zip(files).filter(move |(_, f)| f.overlaps(&self.order, &span))
    }

    /// Finds a file by number: where it stands and its index there.
    pub fn find(&self, number: FileNumber) -> Option<(u32, Part, usize)> {
        self.levels.iter().enumerate().find_map(|(n, level)| {
            [Part::Run, Part::Log]
                .into_iter()
                .find_map(|part| Some((n as u32, part, level.find(part, number)?)))
        })
    }

    /// The version after `edit`. Untouched levels are shared (`Arc::ptr_eq`).
    ///
    /// # Errors
    /// `Corruption` if the edit is impossible here (I1, I2, I4): edits may
    /// come from disk. Nothing is changed then.
    pub fn apply(&self, edit: &Edit) -> Result<Version> {
        let mut version = self.clone();
        self.check_numbers(edit)?;
        for n in touched(edit)? {
            let of_level = |part| {
                edit.added.iter().filter(move |a| a.0 == n && a.1 == part).map(|a| a.2.clone())
            };
            let run: Vec<_> = of_level(Part::Run).collect();
            if n == 0 && !run.is_empty() {
                return Err(Error::corruption("an edit puts a table into a run of level 0"));
            }
            let removed: Vec<_> =
                edit.removed.iter().filter(|r| r.0 == n).map(|r| (r.1, r.2)).collect();
            while version.levels.len() <= n as usize {
                version.levels.push(Arc::new(Level::default()));
            }
            let level = &mut version.levels[n as usize];
            let edited = level.edit(&self.order, &removed, run, of_level(Part::Log).collect());
            *level = Arc::new(edited.map_err(|e| e.context(format!("level {n}")))?);
        }
        while version.levels.len() > 1 && version.levels.last().is_some_and(|l| l.is_empty()) {
            version.levels.pop();
        }
        version.apply_fields(edit)?;
        #[cfg(debug_assertions)]
        if version.file_count() < 200 {
            version.check()?;
        }
        Ok(version)
    }

    /// I2: what is added is new, or moves.
    fn check_numbers(&self, edit: &Edit) -> Result<()> {
        let mut numbers: Vec<FileNumber> = edit.added.iter().map(|a| a.2.number).collect();
        numbers.sort_unstable();
        if let Some(pair) = numbers.windows(2).find(|w| w[0] == w[1]) {
            return Err(Error::corruption(format!("an edit adds table {} twice", pair[0])));
        }
        let mut gone: Vec<(FileNumber, u32, Part)> =
            edit.removed.iter().map(|r| (r.2, r.0, r.1)).collect();
        gone.sort_unstable();
        if let Some(pair) = gone.windows(2).find(|w| w[0].0 == w[1].0) {
            return Err(Error::corruption(format!("an edit removes table {} twice", pair[0].0)));
        }
        for (_, _, file) in &edit.added {
            let Ok(at) = gone.binary_search_by_key(&file.number, |g| g.0) else { continue };
            let (number, level, part) = gone[at];
            let old = self.level(level).and_then(|l| l.part(part).get(l.find(part, number)?));
            if old.is_some_and(|old| old.uid != file.uid || old.bytes != file.bytes) {
                return Err(Error::corruption(format!("the move of table {number} changes it")));
            }
        }
        numbers.retain(|n| gone.binary_search_by_key(n, |g| g.0).is_err());
        match self.levels.iter().find_map(|l| l.find_any(&numbers)) {
            None => Ok(()),
            Some(n) => Err(Error::corruption(format!("an edit adds table {n}, which is there"))),
        }
    }

    fn apply_fields(&mut self, edit: &Edit) -> Result<()> {
        if let Some(levels) = edit.shape_levels {
            if !(1..=LEVELS_MAX).contains(&levels) {
                return Err(Error::corruption(format!("an edit plans for {levels} levels")));
            }
            self.shape_levels = levels;
        }
        let newest = edit.added.iter().map(|a| a.2.epoch).max().unwrap_or(0);
        let after = newest
            .checked_add(1)
            .ok_or_else(|| Error::corruption("an edit uses the last epoch"))?;
        self.next_epoch = self.next_epoch.max(edit.next_epoch.unwrap_or(0)).max(after);
        if let Some(lanes) = &edit.lanes {
            self.lanes = lanes.clone();
            self.check_lanes()?;
        }
        for (level, key) in &edit.cursors {
            if *level >= LEVELS_MAX || key.as_ref().is_some_and(|k| k.len() > KEY_BYTES_MAX) {
                return Err(Error::corruption("an edit sets an impossible cursor"));
            }
            let at = *level as usize;
            if self.cursors.len() <= at {
                self.cursors.resize(at + 1, None);
            }
            self.cursors[at] = key.clone();
        }
        while self.cursors.last().is_some_and(Option::is_none) {
            self.cursors.pop();
        }
        if let Some(through) = edit.flushed_through {
            if through < self.flushed_through || through > SEQ_MAX {
                return Err(Error::corruption(format!(
                    "an edit moves the flushed sequence number from {} to {through}",
                    self.flushed_through
                )));
            }
            self.flushed_through = through;
        }
        Ok(())
    }

    pub(super) fn check_lanes(&self) -> Result<()> {
        let ascending = self.lanes.windows(2).all(|w| self.order.compare(&w[0], &w[1]).is_lt());
        if ascending && self.lanes.iter().all(|l| l.len() <= KEY_BYTES_MAX) {
            return Ok(());
        }
        Err(Error::corruption("the boundaries of the lanes do not ascend"))
    }

    /// This version as edits from [`Version::empty`]: one, or where files take more
    /// than `SNAPSHOT_EDIT_BYTES` to describe, several that add some each.
    pub fn snapshot_edits(&self) -> Vec<Edit> {
        let (mut edits, mut bytes) = (vec![Edit::default()], 0);
        for (n, part, file) in self.files() {
            if bytes >= SNAPSHOT_EDIT_BYTES {
                edits.push(Edit::default());
                bytes = 0;
            }
            bytes += file.memory_bytes();
            let edit = edits.last_mut().expect("one to begin with");
            edit.added.push((n, part, file.clone()));
        }
        let last = edits.last_mut().expect("one to begin with");
        *last = Edit { added: core::mem::take(&mut last.added), ..self.fields_edit() };
        edits
    }

    /// All but the files.
    fn fields_edit(&self) -> Edit {
        Edit {
            shape_levels: Some(self.shape_levels),
            next_epoch: Some(self.next_epoch),
            lanes: (!self.lanes.is_empty()).then(|| self.lanes.clone()),
            cursors: (0..)
                .zip(&self.cursors)
                .filter(|(_, key)| key.is_some())
                .map(|(n, key)| (n, key.clone()))
                .collect(),
            flushed_through: Some(self.flushed_through),
            ..Edit::default()
        }
    }
}

/// The levels an edit touches, ascending.
fn touched(edit: &Edit) -> Result<Vec<u32>> {
    let levels = edit.removed.iter().map(|r| r.0).chain(edit.added.iter().map(|a| a.0));
    let mut levels: Vec<u32> = levels.collect();
    levels.sort_unstable();
    levels.dedup();
    match levels.last() {
        Some(&n) if n >= LEVELS_MAX => {
            Err(Error::corruption(format!("an edit names level {n} of at most {LEVELS_MAX}")))
        }
        _ => Ok(levels),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A snapshot of tables with long bounds was one edit, encoded in one piece.
    #[test]
    fn a_snapshot_of_long_bounds_is_several_edits() {
        let key = |n: u64| [&n.to_be_bytes()[..], &[7; KEY_BYTES_MAX - 8]].concat();
        let file = |(level, part, number): (u32, Part, u64)| {
            let file = File {
                number,
                uid: number,
                bytes: 1 << 24,
                entries: 200,
                smallest: key(number * 2).into(),
                largest: key(number * 2 + 1).into(),
                seq_min: 1000 - number,
                seq_max: 1000 - number,
                epoch: if part == Part::Log { number } else { 0 },
                ..File::default()
            };
            (level, part, Arc::new(file))
        };
        let places = (1..=20).map(|number| match number {
            1..=5 => (0, Part::Log, number),
            6..=10 => (1, Part::Run, number),
            _ => (3, Part::Run, number),
        });
        let edit = Edit {
            added: places.map(file).collect(),
            shape_levels: Some(3),
            lanes: Some(Arc::new([key(30)])),
            cursors: vec![(1, Some(key(12)))],
            flushed_through: Some(5000),
            ..Edit::default()
        };
        let version = Version::empty(KeyOrder::Bytewise).apply(&edit).unwrap();
        let edits = version.snapshot_edits();
        for edit in &edits {
            let bytes: usize = edit.added.iter().map(|(_, _, file)| file.memory_bytes()).sum();
            assert!(bytes <= SNAPSHOT_EDIT_BYTES + 3 * KEY_BYTES_MAX, "{bytes}");
        }
        assert!(edits.len() > 2);
        let empty = Version::empty(KeyOrder::Bytewise);
        let again = edits.iter().fold(empty, |version, edit| version.apply(edit).unwrap());
        assert!(again.files().eq(version.files()));
        assert_eq!(again.fields_edit(), version.fields_edit());
    }
}
