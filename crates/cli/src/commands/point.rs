//! One key at a time: `get`, `put`, `delete`, `delete-range`.

use crate::args::{DeleteArgs, DeleteRangeArgs, GetArgs, PutArgs};
use crate::bytes;
use crate::failure::{Failure, Result};
use crate::formats::Reader;
use crate::input::Source;
use crate::stop;
use crate::store::{self, Access};
use std::io::{self, Read, Write};

pub(crate) fn get(args: &GetArgs) -> Result<()> {
    let key = bytes::from_arg(&args.key, args.data.hex)?;
    store::with(&args.open, Access::Read, |db| {
        let keyspace = store::keyspace(db, &args.data.keyspace)?;
        let value = keyspace.get(&key)?.ok_or_else(|| {
            Failure::failed(format!(
                "not found: {}",
                bytes::shown(args.key.as_encoded_bytes(), 200)
            ))
        })?;
        let mut line = Vec::with_capacity(value.len() + 1);
        if args.data.hex {
            bytes::encode_hex(&value, &mut line);
        } else if Reader::of_stdout() == Reader::Terminal {
            line.extend_from_slice(bytes::printable(&value).as_bytes());
        } else {
            line.extend_from_slice(&value);
        }
        if !args.no_newline {
            line.push(b'\n');
        }
        let mut out = io::stdout().lock();
        out.write_all(&line)?;
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

/// All of standard input; hexadecimal may have white space about it, such as
/// the line feed of an `echo`.
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
        db.write(batch, windrow::Sync::Yes)?;
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
