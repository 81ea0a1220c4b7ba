//! The damages of a sweep: all of a kind, or an even part of them.
//!
//! Bits and lengths are counted and not listed, so that a plan of a million
//! cases takes no memory; the others are listed.
//!
//! Owns: the enumeration. Never does: damage anything.

use super::damage::{Case, Damage, Donor, Source};
use super::specimen::Specimen;
use std::ops::Range;
use windrow_env::testing::Rng;

/// The size of a write that a device makes whole or not at all, in bytes.
const SECTOR_BYTES: u64 = 512;
/// In a long run of zeros, which are all alike, a thin sweep takes one byte in this number.
const ZEROS_STEP: usize = 97;

/// The part of the damages that are done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Density {
    /// Every bit, every length, every sector and every pair of sectors.
    Full,
    /// All of these, but only one bit of each byte of preallocated zeros.
    FullButZeros,
    /// One bit of each byte and every length, but only a part of preallocated zeros; one sector
    /// pair in a given number.
    Thin {
        /// One pair of sectors in this number is swapped.
        pairs_step: u64,
    },
}

/// Flips and cuts of a file, by their offsets.
struct Bytes {
    file: String,
    offsets: Vec<u64>,
    /// Flips at each offset: all eight bits, or one.
    bits: u64,
}

/// The damages that are done to a specimen.
pub struct Plan {
    bytes: Vec<Bytes>,
    others: Vec<Case>,
}

impl Plan {
    /// Lists the damages of this density.
    pub fn new(specimen: &Specimen, density: Density) -> Plan {
        let bytes = specimen.files().flat_map(|(file, _)| {
            let of = |(bits, offsets)| Bytes { file: file.to_owned(), offsets, bits };
            flips(specimen.bytes(file), density).into_iter().map(of)
        });
        let mut plan = Plan { bytes: bytes.collect(), others: Vec::new() };
        plan.add_files(specimen);
        plan.add_sectors(specimen);
        let step = match density {
            Density::Full | Density::FullButZeros => 1,
            Density::Thin { pairs_step } => pairs_step.max(1),
        };
        plan.add_pairs(specimen, step);
        plan
    }

    /// Returns the number of damages.
    pub fn len(&self) -> u64 {
        self.others.len() as u64 + self.bytes.iter().map(Bytes::len).sum::<u64>()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the damage of this index.
    ///
    /// # Panics
    /// If there are fewer.
    pub fn case(&self, index: u64) -> Case {
        let mut left = index;
        for bytes in &self.bytes {
            if left < bytes.len() {
                return bytes.case(left);
            }
            left -= bytes.len();
        }
        self.others[left as usize].clone()
    }

    /// Returns the indexes of the damages to whole files.
    pub fn whole_files(&self) -> Range<u64> {
        let is_whole = |case: &&Case| matches!(case.damage, Damage::Gone | Damage::Replace(_));
        let first = self.bytes.iter().map(Bytes::len).sum();
        first..first + self.others.iter().take_while(is_whole).count() as u64
    }

    /// Adds damages of whole files: gone, older, or another database's.
    fn add_files(&mut self, specimen: &Specimen) {
        for (file, _) in specimen.files() {
            let mut add = |damage| self.others.push(Case { file: file.to_owned(), damage });
            add(Damage::Gone);
            add(Damage::Replace(Source::Other));
            for image in 0..specimen.stale_images() {
                add(Damage::Replace(Source::Stale(image)));
            }
        }
    }

    /// Adds damages of sectors: zeroed, or with earlier contents.
    fn add_sectors(&mut self, specimen: &Specimen) {
        for (file, len) in specimen.files() {
            let file = file.to_owned();
            let mut add = |damage| self.others.push(Case { file: file.clone(), damage });
            for sector in sectors(len) {
                add(Damage::Zero(sector.clone()));
                let older = (0..specimen.stale_images()).map(Source::Stale);
                for source in older.chain([Source::Other]) {
                    let donor = Donor { source, file: file.clone(), range: sector.clone() };
                    add(Damage::Graft { at: sector.start, donor });
                }
            }
        }
    }

    /// Adds swaps of sectors, within files and between them.
    fn add_pairs(&mut self, specimen: &Specimen, step: u64) {
        let all: Vec<(String, Range<u64>)> = specimen
            .files()
            .flat_map(|(file, len)| sectors(len).map(move |sector| (file.to_owned(), sector)))
            .filter(|(file, sector)| telling(specimen.bytes(file), sector))
            .collect();
        let mut count = 0;
        for (i, (file, sector)) in all.iter().enumerate() {
            for (other, range) in &all[i + 1..] {
                count += 1;
                if count % step != 0 || range.end - range.start != sector.end - sector.start {
                    continue;
                }
                let donor =
                    Donor { source: Source::Same, file: other.clone(), range: range.clone() };
                let damage = Damage::Swap { at: sector.start, donor };
                self.others.push(Case { file: file.clone(), damage });
            }
        }
    }
}

impl Bytes {
    fn len(&self) -> u64 {
        self.offsets.len() as u64 * (self.bits + 1)
    }

    fn case(&self, index: u64) -> Case {
        let offset = self.offsets[(index / (self.bits + 1)) as usize];
        let damage = match index % (self.bits + 1) {
            0 => Damage::Cut(offset),
            // One bit of a byte: each bit is used in turn from byte to byte.
            _ if self.bits == 1 => Damage::Flip { offset, mask: 1 << (offset % 8) },
            bit => Damage::Flip { offset, mask: 1 << (bit - 1) },
        };
        Case { file: self.file.clone(), damage }
    }
}

/// Returns the sectors of a file of this length, the last one possibly shorter.
fn sectors(len: u64) -> impl Iterator<Item = Range<u64>> {
    (0..len).step_by(SECTOR_BYTES as usize).map(move |at| at..(at + SECTOR_BYTES).min(len))
}

/// Whether a range has anything but zeros.
fn telling(bytes: &[u8], range: &Range<u64>) -> bool {
    bytes[range.start as usize..range.end as usize].iter().any(|&b| b != 0)
}

/// Returns the offsets of a file's flips, and how many bits are flipped at each.
fn flips(contents: &[u8], density: Density) -> Vec<(u64, Vec<u64>)> {
    let offsets = |zeros, step| offsets(contents, zeros, step);
    match density {
        Density::Full => vec![(8, (0..contents.len() as u64).collect())],
        Density::FullButZeros => vec![(8, offsets(false, 1)), (1, offsets(true, 1))],
        Density::Thin { .. } => {
            let zeros = offsets(true, ZEROS_STEP);
            vec![(1, offsets(false, 1)), (1, zeros)]
        }
    }
}

/// Returns the offsets, `step` apart within a sector, of preallocated zeros or of all other bytes.
/// The first sector of a run of zeros counts with the bytes before it: a reader still looks at the
/// end of the data.
fn offsets(contents: &[u8], zeros: bool, step: usize) -> Vec<u64> {
    let is_zero = |chunk: &[u8]| chunk.iter().all(|&b| b == 0);
    let sector = SECTOR_BYTES as usize;
    let mut before_is_zero = false;
    let mut offsets = Vec::new();
    for (i, chunk) in contents.chunks(sector).enumerate() {
        let deep = is_zero(chunk) && before_is_zero;
        before_is_zero = is_zero(chunk);
        if deep == zeros {
            let places = (i * sector..i * sector + chunk.len()).step_by(step);
            offsets.extend(places.map(|at| at as u64));
        }
    }
    offsets
}

/// Draws a misplaced write from a seed: a record, a block-sized piece or a sector of any image,
/// anywhere in a file, at the start of another piece or at any byte (P6).
pub fn misplaced(specimen: &Specimen, seed: u64) -> Case {
    let mut rng = Rng::new(seed);
    if rng.below(4) == 0
        && let Some(case) = draw_blocks(specimen, &mut rng)
    {
        return case;
    }
    let (file, at) = draw_place(specimen, &mut rng);
    let (donor_file, range) = loop {
        let (file, start) = draw_place(specimen, &mut rng);
        let len = [64, 128, 256, SECTOR_BYTES, 1024, 4096][rng.below(6) as usize];
        let records = specimen.log_places(&file);
        let record = records.into_iter().find(|place| place.start == start);
        let end = record.map_or(start + len, |place| place.end);
        let len = specimen.bytes(&file).len() as u64;
        if start < len {
            break (file, start..end.min(len));
        }
    };
    let source = match rng.below(4) {
        0 => Source::Other,
        1 if specimen.stale_images() > 0 => {
            Source::Stale(rng.below(specimen.stale_images() as u64) as usize)
        }
        _ => Source::Same,
    };
    let donor = Donor { source, file: donor_file, range };
    let damage = match source {
        Source::Same if rng.chance(0.5) => Damage::Swap { at, donor },
        _ => Damage::Graft { at, donor },
    };
    Case { file, damage }
}

/// Draws two data blocks of a table with the same length, which change places: only their places
/// are wrong. `None` if the table has no two such.
fn draw_blocks(specimen: &Specimen, rng: &mut Rng) -> Option<Case> {
    let tables = specimen.block_places();
    let (file, blocks) = tables.iter().nth(rng.below(tables.len() as u64) as usize)?;
    let one = blocks.get(rng.below(blocks.len().max(1) as u64) as usize)?;
    let bytes = one.end - one.start;
    let alike = |other: &&Range<u64>| *other != one && other.end - other.start == bytes;
    let alike: Vec<&Range<u64>> = blocks.iter().filter(alike).collect();
    let other = *alike.get(rng.below(alike.len().max(1) as u64) as usize)?;
    let donor = Donor { source: Source::Same, file: file.clone(), range: other.clone() };
    Some(Case { file: file.clone(), damage: Damage::Swap { at: one.start, donor } })
}

fn draw_place(specimen: &Specimen, rng: &mut Rng) -> (String, u64) {
    let files: Vec<(&str, u64)> = specimen.files().filter(|(_, len)| *len > 0).collect();
    let (file, len) = files[rng.below(files.len() as u64) as usize];
    let records = specimen.log_places(file);
    let at = match rng.below(3) {
        0 if !records.is_empty() => records[rng.below(records.len() as u64) as usize].start,
        0 | 1 => rng.below(len) / SECTOR_BYTES * SECTOR_BYTES,
        _ => rng.below(len),
    };
    (file.to_owned(), at)
}
