//! Sorts more pairs than memory holds: runs in temporary files, which are merged.
//!
//! Of pairs with the same key the last one is kept. The files have no name where the system allows
//! that, and vanish with the process.
//!
//! Owns: the form of those files. Never does: know a database.

use crate::failure::{Failure, Result};
use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// The number of runs of one rank that are merged into one of the next.
const RUNS_MAX: usize = 32;

/// The number of bytes that are read or written at a time, of each run.
const BUFFER_BYTES: usize = 256 << 10;

/// The memory that a pair takes besides its bytes.
const PAIR_BYTES: usize = size_of::<Place>();

/// The place of a pair in the bytes in memory.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    at: usize,
    key: u32,
    value: u32,
}

/// The pairs, in the order in which they come.
pub(crate) struct Sorter {
    dir: PathBuf,
    memory_bytes: usize,
    bytes: Vec<u8>,
    places: Vec<Place>,
    /// The runs, the oldest first; their ranks descend.
    runs: Vec<(u32, File)>,
}

impl Sorter {
    /// Makes a sorter that holds `memory_bytes` bytes, and puts the rest into files in `dir`.
    pub(crate) fn new(dir: &Path, memory_bytes: u64) -> Sorter {
        let memory_bytes = usize::try_from(memory_bytes).unwrap_or(usize::MAX);
        let (bytes, places, runs) = (Vec::new(), Vec::new(), Vec::new());
        Sorter { dir: dir.to_owned(), memory_bytes, bytes, places, runs }
    }

    /// Adds a pair, whose key and value have less than 4 GiB each.
    ///
    /// # Errors
    /// Those of writing a temporary file.
    pub(crate) fn push(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let held = self.bytes.len() + self.places.len() * PAIR_BYTES;
        if held + key.len() + value.len() + PAIR_BYTES > self.memory_bytes && held > 0 {
            self.spill()?;
        }
        let place = Place { at: self.bytes.len(), key: len(key), value: len(value) };
        self.bytes.extend_from_slice(key);
        self.bytes.extend_from_slice(value);
        self.places.push(place);
        Ok(())
    }

    /// Returns all pairs, sorted.
    ///
    /// # Errors
    /// Those of writing or reading a temporary file.
    pub(crate) fn finish(mut self) -> Result<Sorted> {
        if self.runs.is_empty() {
            self.sort();
            let Sorter { bytes, places, .. } = self;
            return Ok(Sorted::InMemory { bytes, places, next: 0 });
        }
        self.spill()?;
        let runs = self.runs.drain(..).map(|(_, file)| file).collect();
        Ok(Sorted::Runs(Merge::new(runs).map_err(|error| self.failed(&error))?))
    }

    fn failed(&self, error: &io::Error) -> Failure {
        Failure::file("sort by temporary files in", self.dir.display(), error)
    }

    /// Sorts the pairs in memory, and keeps the last pair of each key.
    fn sort(&mut self) {
        let bytes = &self.bytes;
        let key = |place: &Place| &bytes[place.at..place.at + place.key as usize];
        // The sort is stable: pairs of one key stay in the order in which they came.
        self.places.sort_by(|a, b| key(a).cmp(key(b)));
        let mut kept: usize = 0;
        for at in 0..self.places.len() {
            let place = self.places[at];
            let is_newer = kept > 0 && key(&self.places[kept - 1]) == key(&place);
            kept -= usize::from(is_newer);
            self.places[kept] = place;
            kept += 1;
        }
        self.places.truncate(kept);
    }

    /// Writes the pairs in memory to a run of their own.
    fn spill(&mut self) -> Result<()> {
        self.sort();
        let run = self.write_run().map_err(|error| self.failed(&error))?;
        self.bytes.clear();
        self.places.clear();
        self.runs.push((0, run));
        loop {
            let rank = self.runs.last().map_or(0, |(rank, _)| *rank);
            let from = self.runs.iter().position(|(of, _)| *of == rank).unwrap_or(0);
            if self.runs.len() - from < RUNS_MAX {
                return Ok(());
            }
            let runs = self.runs.drain(from..).map(|(_, file)| file).collect();
            let merged = self.merge(runs).map_err(|error| self.failed(&error))?;
            self.runs.push((rank + 1, merged));
        }
    }

    fn write_run(&self) -> io::Result<File> {
        let mut run = Run::new(&self.dir)?;
        for place in &self.places {
            let (key, value) = split(&self.bytes, *place);
            run.push(key, value)?;
        }
        run.finish()
    }

    fn merge(&self, runs: Vec<File>) -> io::Result<File> {
        let (mut merge, mut run) = (Merge::new(runs)?, Run::new(&self.dir)?);
        while merge.advance()? {
            run.push(&merge.key, &merge.value)?;
        }
        run.finish()
    }
}

fn len(bytes: &[u8]) -> u32 {
    u32::try_from(bytes.len()).expect("a key or value of less than 4 GiB")
}

fn split(bytes: &[u8], place: Place) -> (&[u8], &[u8]) {
    let end = place.at + place.key as usize + place.value as usize;
    bytes[place.at..end].split_at(place.key as usize)
}

/// A run that is written: of each pair both lengths, then key and value.
struct Run(BufWriter<File>);

impl Run {
    fn new(dir: &Path) -> io::Result<Run> {
        Ok(Run(BufWriter::with_capacity(BUFFER_BYTES, tempfile::tempfile_in(dir)?)))
    }

    fn push(&mut self, key: &[u8], value: &[u8]) -> io::Result<()> {
        self.0.write_all(&len(key).to_le_bytes())?;
        self.0.write_all(&len(value).to_le_bytes())?;
        self.0.write_all(key)?;
        self.0.write_all(value)
    }

    fn finish(self) -> io::Result<File> {
        let mut file = self.0.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.seek(SeekFrom::Start(0))?;
        Ok(file)
    }
}

/// The current pair of a run.
struct Head {
    key: Vec<u8>,
    value: Vec<u8>,
    /// The number of the run: the larger, the later its pairs came.
    run: usize,
}

impl Head {
    fn read(run: usize, file: &mut BufReader<File>) -> io::Result<Option<Head>> {
        if file.fill_buf()?.is_empty() {
            return Ok(None);
        }
        let mut lens = [[0; 4]; 2];
        file.read_exact(lens.as_flattened_mut())?;
        let [key, value] = lens.map(|len| vec![0; u32::from_le_bytes(len) as usize]);
        let mut head = Head { key, value, run };
        file.read_exact(&mut head.key)?;
        file.read_exact(&mut head.value)?;
        Ok(Some(head))
    }
}

impl Ord for Head {
    /// The greatest head comes next: it has the smallest key, and is of the last run with that key.
    fn cmp(&self, other: &Head) -> Ordering {
        other.key.cmp(&self.key).then(self.run.cmp(&other.run))
    }
}

impl PartialOrd for Head {
    fn partial_cmp(&self, other: &Head) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Head {
    fn eq(&self, other: &Head) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Head {}

/// Runs that are read together.
pub(crate) struct Merge {
    runs: Vec<BufReader<File>>,
    heads: BinaryHeap<Head>,
    key: Vec<u8>,
    value: Vec<u8>,
}

impl Merge {
    fn new(runs: Vec<File>) -> io::Result<Merge> {
        let reader = |run| BufReader::with_capacity(BUFFER_BYTES, run);
        let mut runs: Vec<_> = runs.into_iter().map(reader).collect();
        let mut heads = BinaryHeap::with_capacity(runs.len());
        for (run, file) in runs.iter_mut().enumerate() {
            heads.extend(Head::read(run, file)?);
        }
        Ok(Merge { runs, heads, key: Vec::new(), value: Vec::new() })
    }

    /// Moves to the next key. Returns whether there is one.
    fn advance(&mut self) -> io::Result<bool> {
        let Some(head) = self.pop()? else { return Ok(false) };
        (self.key, self.value) = (head.key, head.value);
        while self.heads.peek().is_some_and(|older| older.key == self.key) {
            self.pop()?;
        }
        Ok(true)
    }

    fn pop(&mut self) -> io::Result<Option<Head>> {
        let Some(head) = self.heads.pop() else { return Ok(None) };
        let next = Head::read(head.run, &mut self.runs[head.run])?;
        self.heads.extend(next);
        Ok(Some(head))
    }
}

/// Pairs in the order of their keys, each key once.
pub(crate) enum Sorted {
    /// All of them fit in memory.
    InMemory { bytes: Vec<u8>, places: Vec<Place>, next: usize },
    /// They are in files.
    Runs(Merge),
}

impl Sorted {
    /// Returns the next pair.
    ///
    /// # Errors
    /// Those of reading a temporary file.
    pub(crate) fn next(&mut self) -> io::Result<Option<(&[u8], &[u8])>> {
        match self {
            Sorted::InMemory { bytes, places, next } => {
                let place = places.get(*next).copied();
                *next += 1;
                Ok(place.map(|place| split(bytes, place)))
            }
            Sorted::Runs(merge) => {
                let is_there = merge.advance()?;
                Ok(is_there.then_some((&merge.key[..], &merge.value[..])))
            }
        }
    }
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "the directory is the test's")]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    /// With memory for some ten pairs, thousands make runs of several ranks.
    #[test]
    fn pairs_come_sorted_with_the_last_value_of_each_key() {
        let dir = tempfile::tempdir().unwrap();
        for (count, memory_bytes) in [(0, 1), (1, 1), (500, 1 << 20), (500, 400), (15_000, 300)] {
            let mut sorter = Sorter::new(dir.path(), memory_bytes);
            let mut expected = BTreeMap::new();
            let mut seed = 7u64;
            for number in 0..count {
                seed = seed
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                let key = format!("{:x}", (seed >> 33) % (count / 2 + 1)).into_bytes();
                let value = vec![b'v'; (number % 50) as usize];
                sorter.push(&key, &value).unwrap();
                expected.insert(key, value);
            }
            let ranks = sorter.runs.iter().map(|(rank, _)| *rank).max();
            let rank = if count == 15_000 { Some(2) } else { None };
            assert!(
                ranks >= rank && ranks.is_some() == (memory_bytes < 500 && count > 1),
                "{ranks:?}"
            );
            let (mut sorted, mut found) = (sorter.finish().unwrap(), Vec::new());
            while let Some((key, value)) = sorted.next().unwrap() {
                found.push((key.to_vec(), value.to_vec()));
            }
            assert!(found.iter().cloned().eq(expected), "{count} in {memory_bytes} bytes");
        }
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "files are left");
    }
}
