//! A policy at work, step by step.
//!
//! Owns: which steps are kept. Never does: decide, or draw.

use crate::setup::Setup;
use crate::simulator::Simulator;
use crate::workload::KeyStream;
use windrow_base::{Error, Result};
use windrow_plan::tree::Version;

/// A flush, or a decision that was run.
#[derive(Clone, Debug)]
pub struct PlayedStep {
    /// The number of the flush that it is, or that it follows.
    pub flush: usize,
    /// The decision, with its reason.
    pub text: String,
    /// The tree after it.
    pub tree: Version,
}

/// Writes every key once, and then plays this number of flushes of updates: each with all that the
/// policy does after it.
///
/// # Errors
/// As [`crate::simulate`].
pub fn play(setup: &Setup, flushes: usize) -> Result<Vec<PlayedStep>> {
    let memtable = setup.settings().memtable_bytes;
    if setup.keys == 0 || memtable == 0 {
        return Err(Error::invalid("there must be keys, and a memtable that takes some"));
    }
    let mut keys = KeyStream::new(setup.workload, setup.keys, setup.seed);
    let mut simulator = Simulator::new(setup);
    simulator.update(&mut keys, setup.keys.into())?;
    let mut steps = Vec::new();
    for flush in 0..flushes {
        simulator.film = Some(Vec::new());
        simulator.update(&mut keys, memtable)?;
        let film = simulator.film.take().unwrap_or_default();
        steps.extend(film.into_iter().map(|(text, tree)| PlayedStep { flush, text, tree }));
    }
    Ok(steps)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_flush_is_followed_by_what_the_policy_decides() {
        let setup = Setup { keys: 20_000, unit_keys: 64, ..Setup::parse("leveled").unwrap() };
        let steps = play(&setup, 5).unwrap();
        let flushes = steps.iter().filter(|step| step.text.starts_with("flush")).count();
        assert_eq!(flushes, 5);
        assert!(steps.len() > 5, "nothing was merged");
        assert!(steps.windows(2).all(|pair| pair[0].flush <= pair[1].flush));
        assert!(steps.iter().all(|step| step.tree.files().count() > 0));
    }
}
