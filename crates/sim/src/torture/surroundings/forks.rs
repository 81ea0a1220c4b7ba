//! Scenarios with `fork`: the child's copy of a handle is inert, whatever the child does with it
//! and however it ends, and the parent is not affected.
//!
//! Owns: the commands for each process. Never does: fork; actors do.

use super::scenario::{Scenario, Verdict, passed};
use super::stage::{Stage, wait_for_end};

/// The scenarios of this group.
pub(super) const SCENARIOS: &[Scenario] = &[
    ("fork-child-drops", |stage| one_child(stage, "drop")),
    ("fork-child-closes", |stage| one_child(stage, "close")),
    ("fork-child-writes", |stage| one_child(stage, "write")),
    ("fork-child-reads", |stage| one_child(stage, "read")),
    ("fork-child-exits", |stage| one_child(stage, "exit")),
    ("fork-child-exits-without-unwinding", |stage| one_child(stage, "_exit")),
    ("fork-child-unwinds", |stage| one_child(stage, "unwind")),
    ("fork-child-opens-the-same", |stage| one_child(stage, &format!("reopen {}", stage.at("db")))),
    ("fork-child-opens-its-own", child_opens_its_own),
    ("fork-parent-dies-first", parent_dies_first),
];

/// The parent writes, forks, and goes on; half of its acknowledgements after the fork are synced,
/// and then it is killed.
fn one_child(stage: &Stage, how: &str) -> Verdict {
    let mut parent = stage.holder(&stage.at("db"), "one")?;
    for command in ["write 1500", "flush", "write 200 synced"] {
        parent.does(command)?;
    }
    for _ in 0..3 {
        parent.does(&format!("fork {how}"))?;
        for command in ["check", "write 1000", "write 20 synced"] {
            parent.does(command)?;
        }
    }
    let acknowledged = parent.kill();
    stage.holds(&stage.at("db"), "one", acknowledged)?;
    passed(format!("{acknowledged} keys"))
}

fn child_opens_its_own(stage: &Stage) -> Verdict {
    let own = stage.at("own");
    one_child(stage, &format!("own {own}"))?;
    stage.holds(&own, "own", 1_500)?;
    passed("1500 keys of the children's own")
}

/// The directory is free as soon as its owner is dead, even if forked children live on, and nothing
/// that they do then has an effect.
fn parent_dies_first(stage: &Stage) -> Verdict {
    let (db, release) = (stage.at("db"), stage.at("release"));
    let mut parent = stage.holder(&db, "one")?;
    parent.does("write 1500")?;
    let child = parent.does(&format!("fork linger {release}"))?;
    parent.does("write 500")?;
    let acknowledged = parent.kill();
    let mut next = stage.actor()?;
    let found = next.does(&format!("open {db} one"))?;
    if found < acknowledged {
        return Err(format!("{found} keys of {acknowledged} acknowledged ones"));
    }
    next.does("write 500")?;
    std::fs::write(&release, "").map_err(|e| format!("{release}: {e}"))?;
    wait_for_end(child)?;
    next.does("write 500")?;
    next.does("close")?;
    let acknowledged = next.kill();
    stage.holds(&db, "one", acknowledged)?;
    passed(format!("{acknowledged} keys, opened while the child lived"))
}
