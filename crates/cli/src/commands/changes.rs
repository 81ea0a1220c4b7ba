//! `changes`: the committed batches of a database, in order.
//!
//! Owns: the form in which they are printed. Never does: read a log.

use crate::args::ChangesArgs;
use crate::bytes;
use crate::failure::{Failure, Result};
use crate::stop;
use crate::store::{self, Access};
use serde_json::{Value, json};
use std::io::{self, BufWriter, Write};
use std::time::Duration;
use windrow::changes::{Change, ChangeOptions, Changes, OldValue, Operation};

/// The time between two looks for Ctrl-C.
const LOOK: Duration = Duration::from_millis(200);

pub(crate) fn run(args: &ChangesArgs) -> Result<()> {
    let mut options = ChangeOptions::default();
    if !args.follow {
        return store::with(&args.open, Access::Read, |db| {
            let from = args.from.unwrap_or_else(|| db.stats().changes_begin);
            print_all(args, db.changes(from, options)?)
        });
    }
    store::must_exist(&args.open.path)?;
    let follower = store::follow(&args.open)?;
    let mut from = args.from.unwrap_or_else(|| follower.db().stats().changes_begin);
    if args.old {
        let snapshot = follower.db().snapshot();
        from = snapshot.seq() + 1;
        options.old_values = Some(snapshot);
    }
    print_all(args, follower.changes(from, options)?)
}

fn print_all(args: &ChangesArgs, mut changes: Changes) -> Result<()> {
    let mut out = BufWriter::new(io::stdout().lock());
    let mut left = args.limit.unwrap_or(u64::MAX);
    while left > 0 {
        stop::check()?;
        let next = match changes.try_next()? {
            None if args.follow => {
                // A reader of the output sees all that there is before a wait.
                out.flush()?;
                match changes.next_within(LOOK)? {
                    Some(change) => Some(change),
                    None => continue,
                }
            }
            next => next,
        };
        let Some(change) = next else { break };
        print(args, &change, &mut out)?;
        left -= 1;
    }
    Ok(out.flush()?)
}

fn print(args: &ChangesArgs, change: &Change, out: &mut impl Write) -> Result<()> {
    if args.json {
        let operations: Vec<Value> =
            change.operations.iter().map(|op| as_json(args, op)).collect::<Result<_>>()?;
        let (first_seq, seq) = (change.first_seq, change.seq);
        let told = json!({ "first_seq": first_seq, "seq": seq, "operations": operations });
        return Ok(writeln!(out, "{told}")?);
    }
    for operation in &change.operations {
        write!(out, "{}\t{}\t{}", change.seq, kind(operation), operation.keyspace())?;
        for (_, field) in fields(operation) {
            match args.hex {
                true => write!(out, "\t{}", hex(field))?,
                false => write!(out, "\t{}", bytes::printable(field))?,
            }
        }
        if let Some(old) = old_of(operation).filter(|_| args.old) {
            match old {
                OldValue::Value(value) if args.hex => write!(out, "\twas {}", hex(value))?,
                OldValue::Value(value) => write!(out, "\twas {}", bytes::printable(value))?,
                OldValue::Absent => write!(out, "\twas not there")?,
                OldValue::Unknown => write!(out, "\tis not known before")?,
            }
        }
        writeln!(out)?;
    }
    Ok(())
}

fn as_json(args: &ChangesArgs, operation: &Operation) -> Result<Value> {
    let mut told = json!({ "kind": kind(operation), "keyspace": operation.keyspace() });
    for (name, field) in fields(operation) {
        told[name] = field_as_json(args, name, field)?;
    }
    match old_of(operation).filter(|_| args.old) {
        Some(OldValue::Value(value)) => told["old"] = field_as_json(args, "old value", value)?,
        Some(OldValue::Absent) => told["old"] = Value::Null,
        Some(OldValue::Unknown) | None => {}
    }
    if let Operation::Put { expiry_ms, .. } | Operation::Merge { expiry_ms, .. } = operation {
        told["expiry_ms"] = (*expiry_ms).into();
    }
    Ok(told)
}

fn field_as_json(args: &ChangesArgs, name: &str, field: &[u8]) -> Result<Value> {
    match (args.hex, std::str::from_utf8(field)) {
        (true, _) => Ok(hex(field).into()),
        (false, Ok(text)) => Ok(text.into()),
        (false, Err(_)) => {
            let text = format!("the {name} {} is no UTF-8 text", bytes::shown(field, 40));
            Err(Failure::failed(text).hint("ask for it with --hex"))
        }
    }
}

fn hex(field: &[u8]) -> String {
    let mut digits = Vec::with_capacity(2 * field.len());
    bytes::encode_hex(field, &mut digits);
    String::from_utf8_lossy(&digits).into_owned()
}

fn kind(operation: &Operation) -> &'static str {
    match operation {
        Operation::Put { .. } => "put",
        Operation::Delete { .. } => "delete",
        Operation::SingleDelete { .. } => "single_delete",
        Operation::DeleteRange { .. } => "delete_range",
        Operation::Merge { .. } => "merge",
        Operation::Ingested { .. } => "ingested",
        Operation::KeyspaceDropped { .. } => "keyspace_dropped",
        _ => "unknown",
    }
}

/// The value before an operation on one key.
fn old_of(operation: &Operation) -> Option<&OldValue> {
    match operation {
        Operation::Put { old, .. }
        | Operation::Delete { old, .. }
        | Operation::SingleDelete { old, .. }
        | Operation::Merge { old, .. } => Some(old),
        _ => None,
    }
}

/// The keys and values of an operation, by their names.
fn fields(operation: &Operation) -> Vec<(&'static str, &[u8])> {
    match operation {
        Operation::Put { key, value, .. } => vec![("key", key), ("value", value)],
        Operation::Delete { key, .. } | Operation::SingleDelete { key, .. } => vec![("key", key)],
        Operation::DeleteRange { from, to, .. } => vec![("from", from), ("to", to)],
        Operation::Merge { key, operand, .. } => vec![("key", key), ("operand", operand)],
        _ => Vec::new(),
    }
}
