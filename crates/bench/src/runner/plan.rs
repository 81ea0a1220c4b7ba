//! The order of a workload's units.
//!
//! Owns: the rounds, and the contenders' turns in them. Never does: run a unit.

use crate::workload::{Phase, Workload};

/// One unit's place in a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct UnitPlace {
    pub(super) contender: String,
    /// The round, from 1; 0 for the phases that run once, before all rounds.
    pub(super) round: u32,
    /// First phase, and the one after the last.
    pub(super) phases: (usize, usize),
    /// Whether it begins with an empty directory.
    pub(super) is_fresh: bool,
    /// Whether it begins with a copy of the database after the phases that run
    /// once; the copy is removed afterwards.
    pub(super) is_branch: bool,
}

/// Returns the phases that each contender runs once, then the rounds with
/// contenders in turn: A B C, then C B A, so that none always runs on a machine
/// that another has heated.
pub(super) fn units(workload: &Workload, rounds: u32) -> Vec<UnitPlace> {
    let once = workload.once();
    let mut places = Vec::new();
    for round in 0..=rounds {
        let parts = if round == 0 { vec![(0, once)] } else { branches(&workload.phases, once) };
        for phases in parts.into_iter().filter(|(first, end)| first < end) {
            let mut order: Vec<_> = workload.contenders.iter().collect();
            if round > 0 && round.is_multiple_of(2) {
                order.reverse();
            }
            places.extend(order.into_iter().map(|contender| UnitPlace {
                contender: contender.name.clone(),
                round,
                phases,
                is_fresh: phases.0 == 0,
                is_branch: workload.phases[phases.0].branch.is_some(),
            }));
        }
    }
    places
}

/// Returns the phases after the first `once` ones, cut where the branch
/// changes.
fn branches(phases: &[Phase], once: usize) -> Vec<(usize, usize)> {
    let rest = phases[once..].chunk_by(|a, b| a.branch == b.branch);
    let mut begin = once;
    rest.map(|chunk| {
        let part = (begin, begin + chunk.len());
        begin = part.1;
        part
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::workload::{self, Scale};

    fn workload(once: bool) -> Workload {
        let text = format!(
            r#"
            title = "t"
            family = "f"
            about = "a"
            rounds = 1
            [data]
            records = 10
            value_bytes = "100"
            [[phase]]
            name = "load"
            once = {once}
            mix = {{ insert = 1 }}
            [[phase]]
            name = "read"
            mix = {{ get = 1 }}
        "#
        );
        let text = text + "[[contender]]\nname = \"a\"\n[[contender]]\nname = \"b\"\n";
        workload::parse("w", &text, Scale::Quick).unwrap().remove(0)
    }

    #[test]
    fn branches_are_units_of_their_own() {
        let mut workload = workload(true);
        let read = workload.phases[1].clone();
        for (name, branch) in [("b", "x"), ("c", "x"), ("d", "y")] {
            let branch = Some(branch.to_owned());
            workload.phases.push(Phase { name: name.to_owned(), branch, ..read.clone() });
        }
        assert_eq!(branches(&workload.phases, 1), [(1, 2), (2, 4), (4, 5)]);
        let places = units(&workload, 1);
        let of_a = places.iter().filter(|place| place.contender == "a");
        let parts: Vec<_> = of_a.map(|p| (p.round, p.phases, p.is_branch)).collect();
        let expected =
            [(0, (0, 1), false), (1, (1, 2), false), (1, (2, 4), true), (1, (4, 5), true)];
        assert_eq!(parts, expected);
    }

    fn order(once: bool) -> Vec<(String, u32, (usize, usize), bool)> {
        let places = units(&workload(once), 2).into_iter();
        places.map(|p| (p.contender, p.round, p.phases, p.is_fresh)).collect()
    }

    #[test]
    fn contenders_take_turns() {
        let at = |name: &str, round, phases, fresh| (name.to_owned(), round, phases, fresh);
        assert_eq!(
            order(false),
            [
                at("a", 1, (0, 2), true),
                at("b", 1, (0, 2), true),
                at("b", 2, (0, 2), true),
                at("a", 2, (0, 2), true),
            ]
        );
        assert_eq!(
            order(true),
            [
                at("a", 0, (0, 1), true),
                at("b", 0, (0, 1), true),
                at("a", 1, (1, 2), false),
                at("b", 1, (1, 2), false),
                at("b", 2, (1, 2), false),
                at("a", 2, (1, 2), false),
            ]
        );
    }
}
