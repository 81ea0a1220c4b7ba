//! The order of a workload's units.
//!
//! Never does: run them.

use crate::workload::Workload;

/// One unit's place in a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) contender: String,
    /// 0 is what is done once, before all rounds.
    pub(super) round: u32,
    /// First phase, and the one after the last.
    pub(super) phases: (usize, usize),
    /// Whether it begins with an empty directory.
    pub(super) is_fresh: bool,
}

/// What is done once by each contender, then the rounds with contenders in
/// turn: A B C, then C B A, so that none always runs on another's heat.
pub(super) fn units(workload: &Workload, contenders: &[String], rounds: u32) -> Vec<Place> {
    let (once, all) = (workload.once(), workload.phases.len());
    let mut places = Vec::new();
    for round in 0..=rounds {
        let phases = if round == 0 { (0, once) } else { (once, all) };
        if phases.0 == phases.1 {
            continue;
        }
        let mut order: Vec<&String> = contenders.iter().collect();
        if round > 0 && round.is_multiple_of(2) {
            order.reverse();
        }
        places.extend(order.into_iter().map(|contender| Place {
            contender: contender.clone(),
            round,
            phases,
            is_fresh: phases.0 == 0,
        }));
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

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
        Workload::parse("w", &text).unwrap()
    }

    fn order(once: bool) -> Vec<(String, u32, (usize, usize), bool)> {
        let names = ["a".to_owned(), "b".to_owned()];
        let places = units(&workload(once), &names, 2).into_iter();
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
