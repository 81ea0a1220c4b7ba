//! A comparison of the same operations under different options, which must give the same answers
//! (P4 among others): databases in lockstep, each with options of its own that change meanwhile,
//! one sequence of operations, every answer compared with the model's.
//!
//! The cases of `testkit` have a few dozen keys and a few hundred operations. Here there are up to
//! thousands of both, trees of many tables, and snapshots and cursors that stay open over hundreds
//! of operations.
//!
//! Owns: the loop and its count. Never does: decide about durability (`crash` does); approximate
//! measures are not compared.

mod swarm;

use std::fmt::Write as _;
use swarm::Swarm;
use windrow_env::testing::Rng;
use windrow_testkit::compose::{Composer, Kinds, Raw, respell};
use windrow_testkit::model::Model;
use windrow_testkit::op::{Answer, Op, Subject};
use windrow_testkit::subject::Database;
use windrow_testkit::variant::Ground;
use windrow_testkit::world::World;
use windrow_testkit::{script, text};

/// Databases in lockstep.
const DATABASES: usize = 3;

/// One seed in this number has a database on the operating system's files, with direct I/O and
/// background work on real threads.
const SYSTEM_ONE_IN: u64 = 16;

/// Kinds of operations and how often each is drawn.
const WEIGHTS: &str = "put=300 put_large=10 put_ttl=20 delete=40 single_delete=20 merge=50 \
     delete_range=12 batch=60 ingest=4 get=150 multi_get=20 scan=60 prefix=10 dump=1 \
     open_cursor=12 walk=150 refresh=6 snapshot=3 release=1 flush=10 compact_range=2 compact=1 \
     wait=4 sync=4 verify=1 checkpoint=1 clock=4 policy=6 reopen=2 kill=2 create_keyspace=2 \
     drop_keyspace=1";

/// The operations that were run and compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Operations, once for all databases.
    pub operations: u64,
    /// Steps of cursors and entries of scans, in all databases.
    pub iterator_steps: u64,
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
            switches: self.switches + other.switches,
        }
    }
}

/// One of the databases, with its options.
struct Runner {
    database: Database,
    swarm: Swarm,
}

/// All databases, and the model that they must agree with.
struct Lockstep {
    runners: Vec<Runner>,
    model: Model,
    count: Count,
}

/// Runs one seed for this number of operations.
///
/// # Errors
/// The first difference: the operation, the answers, and the database's options.
pub fn run(seed: u64, operations: u64) -> Result<Count, String> {
    let mut rng = Rng::new(seed);
    let mut lockstep = Lockstep::open(&mut rng, seed)?;
    let mut composer = Composer::of_many_keys(rng.next_u64());
    let kinds = draw_kinds(&mut rng)?;
    // In every other seed one keyspace ignores case.
    let is_blind = seed % 2 == 1;
    for op in if is_blind { Composer::setup_blind() } else { Composer::setup() } {
        lockstep.step(&op)?;
    }
    for _ in 0..operations {
        let raw = Raw::draw(&mut rng);
        let kind = choose(&kinds, &mut rng);
        let Some(mut op) = composer.compose_of(kind, raw, &lockstep.model) else { continue };
        if is_blind {
            respell(&mut op, raw.kind);
        }
        match op {
            Op::Policy { .. } => lockstep.switch_policies(&mut rng)?,
            Op::Reopen | Op::Kill => lockstep.reopen(&op, &mut rng)?,
            op => lockstep.step(&op)?,
        }
    }
    lockstep.step(&Op::Dump)?;
    lockstep.step(&Op::Verify)?;
    lockstep.reopen(&Op::Reopen, &mut rng)?;
    lockstep.step(&Op::Dump)?;
    lockstep.step(&Op::Verify)?;
    Ok(lockstep.count)
}

/// Draws a swarm: each kind but the first is left out one time in four.
fn draw_kinds(rng: &mut Rng) -> Result<Vec<(Kinds, u64)>, String> {
    let mut kinds = Vec::new();
    for word in WEIGHTS.split_whitespace() {
        let (name, weight) = word.split_once('=').ok_or("a weight is missing")?;
        let kind = (Kinds::parse([name])?, weight.parse().map_err(|_| "no weight")?);
        if kinds.is_empty() || !rng.chance(0.25) {
            kinds.push(kind);
        }
    }
    Ok(kinds)
}

fn choose(kinds: &[(Kinds, u64)], rng: &mut Rng) -> Kinds {
    let mut left = rng.below(kinds.iter().map(|(_, weight)| weight).sum());
    for (kind, weight) in kinds {
        if left < *weight {
            return *kind;
        }
        left -= weight;
    }
    Kinds::NONE
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
        Ok(Lockstep { runners, model: script::model(), count: Count::default() })
    }

    /// Runs the operation on every database, and compares.
    fn step(&mut self, op: &Op) -> Result<(), String> {
        let want = self.model.apply(op);
        for (index, runner) in self.runners.iter_mut().enumerate() {
            let answer = runner.database.apply(op);
            if answer != want {
                return Err(runner.difference(op, index, &answer, &want));
            }
        }
        self.count.operations += 1;
        self.count.iterator_steps += iterator_steps(&want) * DATABASES as u64;
        Ok(())
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
    fn reopen(&mut self, how: &Op, rng: &mut Rng) -> Result<(), String> {
        for runner in &mut self.runners {
            let options = runner.swarm.draw(rng);
            runner.database.set_options(options);
            self.count.switches += 1;
        }
        self.step(how)
    }
}

impl Runner {
    fn difference(&self, op: &Op, index: usize, answer: &Answer, want: &Answer) -> String {
        let mut out = format!("{}\n", text::op_text(op));
        let error = self.database.last_error().map(ToString::to_string).unwrap_or_default();
        let _ = writeln!(
            out,
            "database {index} answered\n{}{error}\ninstead of\n{}\nunder\n{}",
            text::answer_text(answer),
            text::answer_text(want),
            self.swarm.text()
        );
        out
    }
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
    use windrow_testkit::op::{DEFAULT, Direction, Span};

    fn lockstep(seed: u64) -> Lockstep {
        let mut lockstep = Lockstep::open(&mut Rng::new(seed), seed).unwrap();
        Composer::setup().iter().for_each(|op| lockstep.step(op).unwrap());
        lockstep
    }

    /// A harness that compares nothing would pass everything.
    #[test]
    fn one_lost_write_is_found() {
        let mut lockstep = lockstep(1);
        lockstep.runners[1].database.db().put("only here", "1").unwrap();
        let found = lockstep.step(&Op::Dump).unwrap_err();
        assert!(found.contains("database 1 answered"), "{found}");
    }

    /// All databases move a snapshot alike: only the model reveals that.
    #[test]
    fn a_snapshot_that_moves_is_found() {
        let mut lockstep = lockstep(2);
        let snapshot = Op::Snapshot { name: "s0".to_owned() };
        lockstep.step(&snapshot).unwrap();
        for runner in &mut lockstep.runners {
            runner.database.db().put("later", "1").unwrap();
            runner.database.apply(&snapshot);
        }
        let at = Some("s0".to_owned());
        let span = Span { keyspace: DEFAULT.to_owned(), at, ..Span::default() };
        let found = lockstep.step(&Op::Scan { span, direction: Direction::Forward }).unwrap_err();
        assert!(found.contains("database 0 answered"), "{found}");
    }

    /// Mistakes in the text of the weights would be found by one seed in some.
    #[test]
    fn every_kind_is_drawn() {
        let drawn: Vec<&str> =
            WEIGHTS.split_whitespace().filter_map(|word| Some(word.split_once('=')?.0)).collect();
        assert_eq!(Kinds::parse(drawn), Ok(Kinds::ALL));
    }
}
