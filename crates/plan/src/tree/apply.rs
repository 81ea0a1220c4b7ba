//! The step from one version to the next.
//!
//! Owns: the effect of an edit on a tree, the edits that are refused, the edit of a flush, and the
//! edits that make a tree from nothing. Never does: change a version; an edit gives a new one,
//! which shares every level that the edit does not touch (I7).

use super::check;
use super::edit::Edit;
use super::file::{File, Part};
use super::level::Level;
use super::version::{LEVELS_MAX, Version};
use alloc::format;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use windrow_base::key::{KEY_BYTES_MAX, SEQ_MAX};
use windrow_base::{Error, FileNumber, Result, SeqNo, debug_invariant, invariant};

/// Bytes of files that one edit of a snapshot adds, about. It is encoded as a whole;
/// applying one takes time for all files of its levels, so they are not small.
const SNAPSHOT_EDIT_BYTES: usize = 1 << 20;

impl Edit {
    /// The edit that installs a flushed memtable: `files` (one memtable cut in
    /// disjoint pieces, or none if all of it was dropped) enter level 0 with
    /// the next epoch, and everything up to `through` is in tables.
    ///
    /// Build it against the version it will be applied to, in the order in
    /// which the memtables were frozen (I4).
    pub fn flush(current: &Version, files: Vec<File>, through: SeqNo) -> Edit {
        let epoch = current.next_epoch;
        invariant!(I4, epoch > 0, "the first flush has no epoch");
        invariant!(I4, through <= SEQ_MAX, "a flush through sequence number {through}");
        debug_invariant!(
            I4,
            files.iter().all(|file| file.seq_max <= through),
            "a flush through {through} has newer entries"
        );
        Edit {
            added: files
                .into_iter()
                .map(|f| (0, Part::SstLog, Arc::new(File { epoch, ..f })))
                .collect(),
            next_epoch: Some(epoch + 1),
            flushed_through: Some(through.max(current.flushed_through)),
            ..Edit::default()
        }
    }

    /// Whether the edit changes nothing.
    pub fn is_empty(&self) -> bool {
        *self == Edit::default()
    }

    /// Whether no file comes or goes: files change their places, or their
    /// metadata, or L changes.
    pub fn only_relocates(&self) -> bool {
        let mut gone: Vec<FileNumber> = self.removed.iter().map(|r| r.2).collect();
        let mut added: Vec<FileNumber> = self.added.iter().map(|a| a.2.number).collect();
        gone.sort_unstable();
        added.sort_unstable();
        gone == added && self.flushed_through.is_none()
    }

    /// Numbers of the files whose data goes with this edit: removed and not added again. A file
    /// that a move takes and puts back stays on disk (I2).
    pub fn obsolete(&self) -> impl Iterator<Item = FileNumber> + '_ {
        // Sorted: an edit that renames levels has every file of the tree.
        let mut kept: Vec<FileNumber> = self.added.iter().map(|a| a.2.number).collect();
        kept.sort_unstable();
        self.removed.iter().map(|r| r.2).filter(move |n| kept.binary_search(n).is_err())
    }
}

impl Version {
    /// Returns the version after `edit`. Untouched levels are shared (`Arc::ptr_eq`).
    ///
    /// # Errors
    /// `Corruption` if the edit is impossible here (I1, I2, I4): edits may
    /// come from disk. Nothing is changed then.
    pub fn apply(&self, edit: &Edit) -> Result<Version> {
        let mut version = self.clone();
        self.check_numbers(edit)?;
        let touched = touched(edit)?;
        for &n in &touched {
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
            let edited = level.edit(&self.order, &removed, run, of_level(Part::SstLog).collect());
            *level = Arc::new(edited.map_err(|e| e.context(format!("level {n}")))?);
        }
        while version.levels.len() > 1 && version.levels.last().is_some_and(|l| l.is_empty()) {
            version.levels.pop();
        }
        version.apply_fields(edit)?;
        let due = (self.file_count() + edit.added.len()).checked_sub(edit.removed.len());
        let count = version.file_count();
        invariant!(I2, due == Some(count), "an edit leaves {count} tables of {due:?}");
        invariant!(
            I4,
            version.next_epoch >= self.next_epoch && version.next_epoch > 0,
            "the next epoch goes from {} back to {}",
            self.next_epoch,
            version.next_epoch
        );
        invariant!(
            I4,
            version.flushed_through >= self.flushed_through,
            "what is in tables goes back from {} to {}",
            self.flushed_through,
            version.flushed_through
        );
        let untouched = (0..).zip(&self.levels).all(|(n, level)| {
            touched.contains(&n) || version.level(n).is_none_or(|now| Arc::ptr_eq(now, level))
        });
        invariant!(I7, untouched, "an edit copies a level that it does not touch");
        #[cfg(debug_assertions)]
        if version.file_count() < 200 {
            check::all(&version)?;
        }
        Ok(version)
    }

    /// I2: an added file is new, or moves.
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
        if let Some(boundaries) = &edit.boundaries {
            self.boundaries = boundaries.clone();
            check::boundaries(self)?;
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

    /// Checks I1, I2 and I4, and I3 where metadata can refute it.
    /// O(n log n) in the number of files.
    ///
    /// # Errors
    /// `Corruption` naming the level and files at fault.
    pub fn check(&self) -> Result<()> {
        check::all(self)
    }

    /// Returns this version as edits from [`Version::empty`]: one, or where files take more than
    /// `SNAPSHOT_EDIT_BYTES` to describe, several that add some each.
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
        let (files, due) = (edits.iter().map(|e| e.added.len()).sum::<usize>(), self.file_count());
        invariant!(I2, files == due, "a snapshot of {files} tables, where there are {due}");
        edits
    }

    /// Returns an edit of all but the files.
    fn fields_edit(&self) -> Edit {
        Edit {
            shape_levels: Some(self.shape_levels),
            next_epoch: Some(self.next_epoch),
            boundaries: (!self.boundaries.is_empty()).then(|| self.boundaries.clone()),
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
    debug_invariant!(I2, levels.windows(2).all(|w| w[0] < w[1]), "a level is edited twice");
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
    use windrow_base::KeyOrder;

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
                epoch: if part == Part::SstLog { number } else { 0 },
                ..File::default()
            };
            (level, part, Arc::new(file))
        };
        let places = (1..=20).map(|number| match number {
            1..=5 => (0, Part::SstLog, number),
            6..=10 => (1, Part::Run, number),
            _ => (3, Part::Run, number),
        });
        let edit = Edit {
            added: places.map(file).collect(),
            shape_levels: Some(3),
            boundaries: Some(Arc::new([key(30)])),
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
