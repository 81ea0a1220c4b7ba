//! One random case: numbers become operations, the model and a database run
//! them, and every answer must be the same.
//!
//! Owns: the loop that `tests/it/property.rs` and `tests/it/switching.rs` share.
//! Never does: draw a number.

use crate::compose::{Composer, Raw, respell};
use crate::model::Model;
use crate::op::{Op, Subject};
use crate::script;
use crate::subject::Database;
use crate::text;
use crate::variant::{Ground, POLICIES, Variant};
use crate::world::World;

/// The times at which a case changes the policy, in addition to the composed
/// changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Switching {
    /// Never.
    No,
    /// At every reopen, and every few operations while it runs.
    Always,
}

/// A case's database, its model, and the operations that were run.
struct Case {
    name: &'static str,
    model: Model,
    database: Database,
    done: Vec<Op>,
}

impl Case {
    fn step(&mut self, op: Op) -> Result<(), String> {
        let want = text::answer_text(&self.model.apply(&op));
        let answer = self.database.apply(&op);
        self.done.push(op);
        let got = text::answer_text(&answer);
        if got == want {
            return Ok(());
        }
        let error = self.database.last_error().map(ToString::to_string).unwrap_or_default();
        Err(format!(
            "{}\n{}answered\n{got}{error}\ninstead of\n{want}",
            self.name,
            text::script_text(&self.done)
        ))
    }

    fn switch(&mut self, to: usize) -> Result<(), String> {
        let policy = POLICIES[to % POLICIES.len()].to_owned();
        self.step(Op::Policy { policy })
    }
}

/// Runs a case under `variant` with the kinds in `omitted` left out.
///
/// # Errors
/// The first difference, with the script that leads to it.
pub fn check(
    variant: &'static Variant,
    seed: u64,
    omitted: u32,
    raws: &[Raw],
    switching: Switching,
) -> Result<(), String> {
    let fail = |e: windrow_base::Error| format!("{}: {e}", variant.name);
    let options = variant.options().map_err(fail)?;
    let world = World::new(Ground::Simulated, seed);
    let database = Database::open(world, options).map_err(fail)?;
    let mut case = Case { name: variant.name, model: script::model(), database, done: Vec::new() };
    let mut composer = Composer::new(omitted);
    // In every other case one keyspace ignores case.
    let is_blind = seed % 2 == 1;
    for op in if is_blind { Composer::setup_blind() } else { Composer::setup() } {
        case.step(op)?;
    }
    for (i, raw) in raws.iter().enumerate() {
        let Some(mut op) = composer.compose(*raw, &case.model) else { continue };
        if is_blind {
            respell(&mut op, raw.kind);
        }
        let reopens = matches!(op, Op::Reopen | Op::Kill);
        if switching == Switching::Always && (reopens || i % 8 == 7) {
            case.switch(usize::from(raw.operands[3]) + i)?;
        }
        case.step(op)?;
    }
    if switching == Switching::Always {
        case.switch(raws.len() + seed as usize % POLICIES.len())?;
    }
    case.step(Op::Dump)?;
    case.step(Op::Reopen)?;
    case.step(Op::Verify)?;
    case.step(Op::Dump)
}
