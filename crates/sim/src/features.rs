//! The workloads of the exhaustive loops: one for each feature, of a few
//! hundred operations on files, as scripts (`crates/sim/features`).
//!
//! Owns: reading them, and the words that a script of the corpus lacks, because their effects are
//! judged otherwise: `checkpoint`, `repair`, `resume`, and `reopen` under other settings. Never
//! does: run one.

use windrow_testkit::op::Op;
use windrow_testkit::text;

/// A step of a workload.
#[derive(Clone, Debug)]
pub enum Deed {
    /// An operation.
    Op(Op),
    /// A checkpoint, which is then opened.
    Checkpoint,
    /// Turns writing on again, if it went off.
    Resume,
    /// A close, and a repair of the closed database.
    Repair,
    /// A close, and an open with these settings changed.
    Reopen(Vec<(String, String)>),
}

/// A workload.
#[derive(Clone, Copy, Debug)]
pub struct Feature {
    /// The feature that it exercises.
    pub name: &'static str,
    script: &'static str,
}

macro_rules! features {
    ($($name:literal)*) => {
        &[$(Feature {
            name: $name,
            script: include_str!(concat!("../features/", $name, ".txt")),
        }),*]
    };
}

/// Every workload.
pub const FEATURES: &[Feature] = features!(
    "everything" "batches" "flush_and_merge" "keyspaces" "checkpoints" "repairs" "switches"
    "range_deletes" "expiry" "merges" "closes" "manifests" "resumes" "ingestions"
    "small_flushes"
);

impl Feature {
    /// Returns its steps.
    ///
    /// # Errors
    /// A sentence about the line that cannot be read.
    pub fn deeds(&self) -> Result<Vec<Deed>, String> {
        let mut deeds = Vec::new();
        let mut plain = String::new();
        for line in self.script.lines() {
            let mut words = line.split_whitespace();
            let deed = match words.next() {
                Some("checkpoint") => Deed::Checkpoint,
                Some("repair") => Deed::Repair,
                Some("resume") => Deed::Resume,
                Some("reopen") => {
                    let pair = |word: &str| {
                        let (name, value) = word.split_once('=')?;
                        Some((name.to_owned(), value.to_owned()))
                    };
                    let pairs: Option<Vec<_>> = words.map(pair).collect();
                    Deed::Reopen(pairs.ok_or(format!("`{line}` changes no setting"))?)
                }
                _ => {
                    plain.push_str(line);
                    plain.push('\n');
                    continue;
                }
            };
            flush(&mut plain, &mut deeds)?;
            deeds.push(deed);
        }
        flush(&mut plain, &mut deeds)?;
        Ok(deeds)
    }
}

fn flush(plain: &mut String, deeds: &mut Vec<Deed>) -> Result<(), String> {
    let lines = text::parse(&std::mem::take(plain))?;
    deeds.extend(lines.into_iter().map(|line| Deed::Op(line.op)));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_script_reads() {
        for feature in FEATURES {
            let deeds = feature.deeds().unwrap_or_else(|e| panic!("{}: {e}", feature.name));
            assert!(deeds.len() > 12, "{}", feature.name);
        }
    }
}
