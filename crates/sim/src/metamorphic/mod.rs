//! A comparison of the same operations under different options, which must give the same answers
//! (P4 among others): databases in lockstep, each with options of its own that change meanwhile,
//! one sequence of operations, every answer compared.
//!
//! The model of `testkit` judges a few dozen keys, since it keeps every version of each. Here the
//! databases judge each other, so there may be thousands of keys and trees of many tables. All of
//! them could be wrong alike about the constancy of iterators and snapshots, so those are judged by
//! their contents when they were made.
//!
//! Owns: the loop and its count. Never does: decide about durability (`crash` does); approximate
//! measures are not compared.

mod moment;
mod swarm;
mod workload;

use moment::Moments;
use std::fmt::Write as _;
use swarm::Swarm;
use windrow_env::testing::Rng;
use windrow_testkit::op::{Answer, Op, Subject};
use windrow_testkit::subject::Database;
use windrow_testkit::text;
use windrow_testkit::variant::Ground;
use windrow_testkit::world::World;
use workload::{Action, Workload};

/// Databases in lockstep.
const DATABASES: usize = 3;

/// One seed in this number has a database on the operating system's files, with direct I/O and
/// background work on real threads.
const SYSTEM_ONE_IN: u64 = 16;

/// The operations that were run and compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Operations, once for all databases.
    pub operations: u64,
    /// Steps of cursors and entries of scans, in all databases.
    pub iterator_steps: u64,
    /// The part of them by cursors or at snapshots whose answers were known since they were made.
    pub judged_steps: u64,
    /// Changes of options, while running and by reopening.
    pub switches: u64,
}

impl Count {
    /// Sums two counts.
    #[must_use]
    pub fn plus(self, other: Count) -> Count {
        Count {
            operations: self.operations + other.operations,
            iterator_steps: self.iterator_steps + other.iterator_steps,
            judged_steps: self.judged_steps + other.judged_steps,
            switches: self.switches + other.switches,
        }
    }
}

/// One of the databases, with its options.
struct Runner {
    database: Database,
    swarm: Swarm,
}

/// All databases.
struct Lockstep {
    runners: Vec<Runner>,
    moments: Moments,
    count: Count,
}

/// Runs one seed for this number of operations.
///
/// # Errors
/// The first difference: the operation, the answers, and each database's options.
pub fn run(seed: u64, operations: u64) -> Result<Count, String> {
    let mut rng = Rng::new(seed);
    let mut lockstep = Lockstep::open(&mut rng, seed)?;
    let mut workload = Workload::new(rng.next_u64());
    for op in Workload::setup() {
        lockstep.step(&op)?;
    }
    for _ in 0..operations {
        match workload.draw() {
            Action::Same(op) => lockstep.step(&op)?,
            Action::SwitchPolicies => lockstep.switch_policies(&mut rng)?,
            Action::Reopen { close } => {
                workload.restarted();
                lockstep.reopen(close, &mut rng)?;
            }
        }
    }
    lockstep.step(&Op::Dump)?;
    lockstep.step(&Op::Verify)?;
    lockstep.reopen(true, &mut rng)?;
    lockstep.step(&Op::Dump)?;
    lockstep.step(&Op::Verify)?;
    Ok(lockstep.count)
}

impl Lockstep {
    fn open(rng: &mut Rng, seed: u64) -> Result<Lockstep, String> {
        let on_system = rng.below(SYSTEM_ONE_IN) == 0;
        let mut runners = Vec::new();
        for index in 0..DATABASES {
            let ground = if on_system && index == 0 { Ground::System } else { Ground::Simulated };
            let mut swarm = Swarm::new(ground);
            let world = World::new(ground, seed.wrapping_mul(31).wrapping_add(index as u64));
            let database = Database::open(world, swarm.draw(rng))
                .map_err(|e| format!("open: {e}\n{}", swarm.text()))?;
            runners.push(Runner { database, swarm });
        }
        Ok(Lockstep { runners, moments: Moments::default(), count: Count::default() })
    }

    /// Runs the operation on every database, and compares.
    fn step(&mut self, op: &Op) -> Result<(), String> {
        let answers: Vec<Answer> =
            self.runners.iter_mut().map(|runner| runner.database.apply(op)).collect();
        if let Some(other) = answers.iter().position(|answer| *answer != answers[0]) {
            return Err(self.difference(op, &answers, other));
        }
        let answer = &answers[0];
        if let Some(error) = unexpected(op, answer) {
            return Err(self.difference(op, &answers, 0) + error);
        }
        let steps = iterator_steps(answer);
        self.count.operations += 1;
        self.count.iterator_steps += steps * DATABASES as u64;
        match self.moments.judge(op, answer) {
            Ok(true) => self.count.judged_steps += steps * DATABASES as u64,
            Ok(false) => {}
            Err(want) => {
                let text = text::answer_text(&want);
                return Err(self.difference(op, &answers, 0) + "all alike, but it was\n" + &text);
            }
        }
        // The contents that it must show as long as it is open.
        match op {
            Op::Snapshot { name } => {
                let contents = self.runners[0].database.apply(&Op::Dump);
                self.moments.snapshot(name, contents);
            }
            Op::OpenCursor { cursor, span } => {
                let scan = moment::scan_of(span);
                let contents = self.runners[0].database.apply(&scan);
                self.moments.cursor(cursor, span, contents);
            }
            _ => {}
        }
        Ok(())
    }

    fn difference(&self, op: &Op, answers: &[Answer], other: usize) -> String {
        let mut out = format!("{}\n", text::op_text(op));
        let indices = if other == 0 { vec![0] } else { vec![0, other] };
        for index in indices {
            let runner = &self.runners[index];
            let error = runner.database.last_error().map(ToString::to_string).unwrap_or_default();
            let _ = writeln!(
                out,
                "database {index} answered\n{}{error}\nunder\n{}",
                text::answer_text(&answers[index]),
                runner.swarm.text()
            );
        }
        out
    }

    /// Gives each database a policy of its own, while everything stays open.
    fn switch_policies(&mut self, rng: &mut Rng) -> Result<(), String> {
        for runner in &mut self.runners {
            let policy = runner.swarm.draw_policy(rng);
            let answer = runner.database.apply(&Op::Policy { policy });
            if answer != Answer::Done {
                return Err(format!("set_policy: {answer:?}\n{}", runner.swarm.text()));
            }
            self.count.switches += 1;
        }
        Ok(())
    }

    /// Opens each database again, under new options of its own.
    fn reopen(&mut self, close: bool, rng: &mut Rng) -> Result<(), String> {
        self.moments = Moments::default();
        for runner in &mut self.runners {
            let options = runner.swarm.draw(rng);
            runner.database.set_options(options);
            self.count.switches += 1;
        }
        self.step(if close { &Op::Reopen } else { &Op::Kill })
    }
}

/// Returns the fault of an answer that all databases agree on: nothing here may fail.
fn unexpected(op: &Op, answer: &Answer) -> Option<&'static str> {
    let failed = match answer {
        Answer::Error(_) | Answer::Pairs(_, Some(_)) => true,
        Answer::Values(values) => values.iter().any(Result::is_err),
        Answer::Steps(steps) => steps.iter().any(Result::is_err),
        Answer::Missing => !matches!(op, Op::Walk { .. } | Op::CloseCursor { .. }),
        _ => false,
    };
    failed.then_some("and must not fail")
}

fn iterator_steps(answer: &Answer) -> u64 {
    match answer {
        Answer::Pairs(pairs, _) => pairs.len() as u64 + 1,
        Answer::Steps(steps) => steps.len() as u64,
        Answer::Dump(spaces) => spaces.iter().map(|(_, pairs)| pairs.len() as u64 + 1).sum(),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A harness that compares nothing would pass everything.
    #[test]
    fn one_lost_write_is_found() {
        let mut rng = Rng::new(1);
        let mut lockstep = Lockstep::open(&mut rng, 1).unwrap();
        Workload::setup().iter().for_each(|op| lockstep.step(op).unwrap());
        lockstep.runners[1].database.db().put("only here", "1").unwrap();
        let found = lockstep.step(&Op::Dump).unwrap_err();
        assert!(found.contains("database 1 answered"), "{found}");
    }

    /// All databases move a snapshot alike: only its earlier contents reveal that.
    #[test]
    fn a_snapshot_that_moves_is_found() {
        let mut rng = Rng::new(2);
        let mut lockstep = Lockstep::open(&mut rng, 2).unwrap();
        Workload::setup().iter().for_each(|op| lockstep.step(op).unwrap());
        let snapshot = Op::Snapshot { name: "s0".to_owned() };
        lockstep.step(&snapshot).unwrap();
        for runner in &mut lockstep.runners {
            runner.database.db().put("later", "1").unwrap();
            runner.database.apply(&snapshot);
        }
        let span = windrow_testkit::op::Span {
            keyspace: windrow_testkit::op::DEFAULT.to_owned(),
            at: Some("s0".to_owned()),
            ..Default::default()
        };
        let scan = Op::Scan { span, direction: windrow_testkit::op::Direction::Forward };
        let found = lockstep.step(&scan).unwrap_err();
        assert!(found.contains("all alike"), "{found}");
    }
}
