//! Deadlines of keys: `EXPIRE`, `TTL` and their like.
//!
//! Owns: their arguments and replies. Never does: delete expired values (`sweeper.rs` does).

use super::call::{Call, is};
use super::command::{Command, READ, WRITE, keyed};
use super::deadline::{AT_MILLISECONDS, AT_SECONDS, MILLISECONDS, SECONDS, Unit};
use crate::fault::{Outcome, fail};

pub(super) const COMMANDS: &[Command] = &[
    keyed("expire", -3, WRITE, |call| expire(call, SECONDS, "expire")),
    keyed("pexpire", -3, WRITE, |call| expire(call, MILLISECONDS, "pexpire")),
    keyed("expireat", -3, WRITE, |call| expire(call, AT_SECONDS, "expireat")),
    keyed("pexpireat", -3, WRITE, |call| expire(call, AT_MILLISECONDS, "pexpireat")),
    keyed("ttl", 2, READ, |call| ttl(call, SECONDS)),
    keyed("pttl", 2, READ, |call| ttl(call, MILLISECONDS)),
    keyed("expiretime", 2, READ, |call| ttl(call, AT_SECONDS)),
    keyed("pexpiretime", 2, READ, |call| ttl(call, AT_MILLISECONDS)),
    keyed("persist", 2, WRITE, persist),
];

/// The conditions on the present deadline under which a new one is set.
#[derive(Default)]
struct Conditions {
    if_none: bool,
    if_any: bool,
    if_later: bool,
    if_earlier: bool,
}

impl Conditions {
    fn of(args: &[&[u8]]) -> Outcome<Conditions> {
        let mut conditions = Conditions::default();
        for word in args {
            match word {
                word if is(word, "NX") => conditions.if_none = true,
                word if is(word, "XX") => conditions.if_any = true,
                word if is(word, "GT") => conditions.if_later = true,
                word if is(word, "LT") => conditions.if_earlier = true,
                word => {
                    let word = String::from_utf8_lossy(word);
                    return fail(format!("ERR Unsupported option {word}"));
                }
            }
        }
        let Conditions { if_none, if_any, if_later, if_earlier } = conditions;
        if if_none && (if_any || if_later || if_earlier) {
            return fail("ERR NX and XX, GT or LT options at the same time are not compatible");
        }
        if if_later && if_earlier {
            return fail("ERR GT and LT options at the same time are not compatible");
        }
        Ok(conditions)
    }

    /// Returns whether `moment` may follow `before`; a key without a deadline lasts for ever.
    fn allow(&self, before: Option<u64>, moment: i64) -> bool {
        let before = before.map(|ms| i64::try_from(ms).unwrap_or(i64::MAX));
        (!self.if_none || before.is_none())
            && (!self.if_any || before.is_some())
            && (!self.if_later || before.is_some_and(|before| moment > before))
            && (!self.if_earlier || before.is_none_or(|before| moment < before))
    }
}

fn expire(call: &mut Call<'_, '_>, unit: Unit, name: &str) -> Outcome {
    let moment = unit.moment(call.args[2], call.view.now_ms(), name)?;
    let conditions = Conditions::of(&call.args[3..])?;
    let value = call.view.value(call.key())?;
    let allowed = value.filter(|value| conditions.allow(value.deadline_ms(), moment));
    if let Some(value) = &allowed {
        let deadline_ms = u64::try_from(moment).unwrap_or(0);
        call.view.set_deadline(call.key(), value, Some(deadline_ms))?;
    }
    call.out.one_if(allowed.is_some());
    Ok(())
}

fn ttl(call: &mut Call<'_, '_>, unit: Unit) -> Outcome {
    let number = match call.view.value(call.key())? {
        None => -2,
        Some(value) => match value.deadline_ms() {
            None => -1,
            Some(deadline_ms) => {
                let begin_ms = if unit.is_absolute { 0 } else { call.view.now_ms() };
                let left_ms =
                    i64::try_from(deadline_ms.saturating_sub(begin_ms)).unwrap_or(i64::MAX);
                // Seconds are rounded, as Redis rounds the rest of a time; a moment is truncated.
                match unit.is_absolute {
                    true => left_ms / unit.ms,
                    false => left_ms.saturating_add(unit.ms / 2) / unit.ms,
                }
            }
        },
    };
    call.out.int(number);
    Ok(())
}

fn persist(call: &mut Call<'_, '_>) -> Outcome {
    let value = call.view.value(call.key())?.filter(|value| value.deadline_ms().is_some());
    if let Some(value) = &value {
        call.view.set_deadline(call.key(), value, None)?;
    }
    call.out.one_if(value.is_some());
    Ok(())
}
