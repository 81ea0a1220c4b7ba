//! One key at a time: `get`, `put`, `merge`, `ttl`, `delete`, `delete-range`.
//!
//! Owns: their output and exit codes. Never does: walk over keys.

use crate::args::{DeleteArgs, DeleteRangeArgs, GetArgs, MergeArgs, PutArgs, TtlArgs};
use crate::bytes;
use crate::failure::{Failure, Result};
use crate::formats::Reader;
use crate::human;
use crate::input::Source;
use crate::stop;
use crate::store::{self, Access};
use std::ffi::OsStr;
use std::io::{self, Read, Write};
use windrow::Ttl;

pub(crate) fn get(args: &GetArgs) -> Result<()> {
    let keys: Vec<Vec<u8>> =
        args.keys.iter().map(|key| bytes::from_arg(key, args.data.hex)).collect::<Result<_>>()?;
    store::with(&args.open, Access::Read, |db| {
        let keyspace = store::keyspace(db, &args.data.keyspace)?;
        let mut out = io::stdout().lock();
        let mut missing = None;
        for (key, value) in args.keys.iter().zip(keyspace.multi_get(&keys)) {
            match value? {
                Some(value) => out.write_all(&shown(args, &value)?)?,
                // Each missing key is reported; the last one ends the command.
                None => {
                    let _ = missing.replace(not_found(key)).map(Failure::report);
                }
            }
        }
        out.flush()?;
        missing.map_or(Ok(()), Err)
    })
}

/// Returns a value as it is printed.
fn shown(args: &GetArgs, value: &[u8]) -> Result<Vec<u8>> {
    let mut line = Vec::with_capacity(value.len() + 1);
    if args.number {
        line.extend_from_slice(bytes::counter(value)?.to_string().as_bytes());
    } else if args.data.hex {
        bytes::encode_hex(value, &mut line);
    } else if Reader::of_stdout() == Reader::Terminal {
        line.extend_from_slice(bytes::printable(value).as_bytes());
    } else {
        line.extend_from_slice(value);
    }
    if !args.no_newline {
        line.push(b'\n');
    }
    Ok(line)
}

fn not_found(key: &OsStr) -> Failure {
    Failure::failed(format!("not found: {}", bytes::shown(key.as_encoded_bytes(), 200)))
}

/// Adds an operand. The operator is the keyspace's; one that this program does not know takes no
/// operands.
pub(crate) fn merge(args: &MergeArgs) -> Result<()> {
    let key = bytes::from_arg(&args.key, args.data.hex)?;
    let name = &args.data.keyspace;
    store::check_keyspace_name(name)?;
    let keyspaces = store::keyspaces(&args.open)?;
    let found = keyspaces.iter().find(|of| of.name == *name);
    let operator = found.and_then(|of| of.merge_operator.as_deref());
    if found.is_some() && operator.is_none() {
        return Err(Failure::failed(format!("keyspace `{name}` has no merge operator")).hint(
            "make one that has: `windrow keyspaces DB create NAME --merge add` (or append, max)",
        ));
    }
    let operand = match operator {
        Some("add") if !args.data.hex => number(&args.operand)?.to_le_bytes().to_vec(),
        _ => bytes::from_arg(&args.operand, args.data.hex)?,
    };
    store::with(&args.open, Access::Change, |db| {
        Ok(store::keyspace(db, name)?.merge(&key, &operand)?)
    })
}

fn number(operand: &OsStr) -> Result<i64> {
    operand.to_str().and_then(|text| text.parse().ok()).ok_or_else(|| {
        Failure::usage(format!(
            "the operator `add` takes a whole number of 64 bits, not `{}`",
            operand.to_string_lossy()
        ))
    })
}

pub(crate) fn ttl(args: &TtlArgs) -> Result<()> {
    let key = bytes::from_arg(&args.key, args.data.hex)?;
    store::with(&args.open, Access::Read, |db| {
        let ttl = store::keyspace(db, &args.data.keyspace)?.ttl(&key)?;
        let mut out = io::stdout().lock();
        if args.json {
            let left_ms = match ttl {
                Ttl::Left(left) => Some(u64::try_from(left.as_millis()).unwrap_or(u64::MAX)),
                Ttl::Forever | Ttl::NoKey => None,
            };
            let told = serde_json::json!({ "found": ttl != Ttl::NoKey, "left_ms": left_ms });
            writeln!(out, "{told}")?;
        }
        match ttl {
            Ttl::NoKey => return Err(not_found(&args.key)),
            _ if args.json => {}
            Ttl::Forever => writeln!(out, "never expires")?,
            Ttl::Left(left) => writeln!(out, "expires in {}", human::time(left))?,
        }
        Ok(out.flush()?)
    })
}

pub(crate) fn put(args: &PutArgs) -> Result<()> {
    let key = bytes::from_arg(&args.key, args.data.hex)?;
    let value = match &args.value {
        Some(value) => bytes::from_arg(value, args.data.hex)?,
        None => value_from_input(args.data.hex)?,
    };
    store::check_keyspace_name(&args.data.keyspace)?;
    store::with(&args.open, Access::Create, |db| {
        let keyspace = db.keyspace(&args.data.keyspace)?;
        match args.ttl {
            Some(ttl) => keyspace.put_with_ttl(&key, &value, ttl)?,
            None => keyspace.put(&key, &value)?,
        }
        Ok(())
    })
}

/// Reads all of standard input; hexadecimal may have white space about it, such as the line feed of
/// an `echo`.
fn value_from_input(hex: bool) -> Result<Vec<u8>> {
    let mut raw = Vec::new();
    let outcome = Source::open(None)?.read_to_end(&mut raw);
    stop::check()?;
    outcome.map_err(|error| Failure::file("read", "standard input", &error))?;
    if !hex {
        return Ok(raw);
    }
    let mut value = Vec::new();
    bytes::decode_hex(raw.trim_ascii(), &mut value).map_err(|why| {
        Failure::failed(format!("standard input is not hexadecimal: {why}"))
            .hint("give two hexadecimal digits for each byte, or leave out --hex")
    })?;
    Ok(value)
}

pub(crate) fn delete(args: &DeleteArgs) -> Result<()> {
    let keys: Vec<Vec<u8>> =
        args.keys.iter().map(|key| bytes::from_arg(key, args.data.hex)).collect::<Result<_>>()?;
    store::with(&args.open, Access::Change, |db| {
        let keyspace = store::keyspace(db, &args.data.keyspace)?;
        let mut batch = windrow::Batch::new();
        for key in &keys {
            batch.delete(&keyspace, key);
        }
        db.write(batch, windrow::WriteSync::Yes)?;
        Ok(())
    })
}

pub(crate) fn delete_range(args: &DeleteRangeArgs) -> Result<()> {
    let from = bytes::from_arg(&args.from, args.data.hex)?;
    let to = bytes::from_arg(&args.to, args.data.hex)?;
    if to < from {
        return Err(Failure::usage(
            "FROM comes after TO: the range runs upwards, and TO is not in it",
        ));
    }
    store::with(&args.open, Access::Change, |db| {
        Ok(store::keyspace(db, &args.data.keyspace)?.delete_range(&from, &to)?)
    })
}
