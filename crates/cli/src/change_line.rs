//! A line of `changes --json`, read back as a change.
//!
//! Owns: this form. Never does: read a file, or write to a database.

use crate::bytes;
use serde::Deserialize;
use windrow::changes::{Change, OldValue, Operation};

#[derive(Deserialize)]
struct ChangeLine {
    first_seq: u64,
    seq: u64,
    operations: Vec<OperationObject>,
}

/// An operation; fields that it does not need are passed over, such as old values.
#[derive(Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum OperationObject {
    Put { keyspace: String, key: String, value: String, expiry_ms: Option<u64> },
    Delete { keyspace: String, key: String },
    SingleDelete { keyspace: String, key: String },
    DeleteRange { keyspace: String, from: String, to: String },
    Merge { keyspace: String, key: String, operand: String, expiry_ms: Option<u64> },
    Ingested { keyspace: String },
    KeyspaceDropped { keyspace: String },
}

/// Returns the change of a line. `hex`: keys and values are hexadecimal.
///
/// # Errors
/// The mistake, as a part of a sentence.
pub(crate) fn change(line: &[u8], hex: bool) -> Result<Change, String> {
    let line: ChangeLine = serde_json::from_slice(line)
        .map_err(|error| format!("not a line of `windrow changes --json`: {error}"))?;
    let ChangeLine { first_seq, seq, operations } = line;
    // A drop alone has no number, and comes behind the one before.
    if first_seq == 0 || first_seq - 1 > seq || seq == u64::MAX {
        return Err(format!("`first_seq` is {first_seq}, and `seq` {seq}"));
    }
    let operations =
        operations.into_iter().map(|op| operation(op, hex)).collect::<Result<_, _>>()?;
    Ok(Change::new(first_seq, seq, operations))
}

fn operation(object: OperationObject, hex: bool) -> Result<Operation, String> {
    let field = |text: String| match hex {
        false => Ok(text.into_bytes()),
        true => {
            let mut decoded = Vec::with_capacity(text.len() / 2);
            bytes::decode_hex(text.as_bytes(), &mut decoded).map(|()| decoded)
        }
    };
    let old = OldValue::Unknown;
    Ok(match object {
        OperationObject::Put { keyspace, key, value, expiry_ms } => Operation::Put {
            keyspace: keyspace.into(),
            key: field(key)?,
            value: field(value)?,
            expiry_ms,
            old,
        },
        OperationObject::Delete { keyspace, key } => {
            Operation::Delete { keyspace: keyspace.into(), key: field(key)?, old }
        }
        OperationObject::SingleDelete { keyspace, key } => {
            Operation::SingleDelete { keyspace: keyspace.into(), key: field(key)?, old }
        }
        OperationObject::DeleteRange { keyspace, from, to } => {
            Operation::DeleteRange { keyspace: keyspace.into(), from: field(from)?, to: field(to)? }
        }
        OperationObject::Merge { keyspace, key, operand, expiry_ms } => Operation::Merge {
            keyspace: keyspace.into(),
            key: field(key)?,
            operand: field(operand)?,
            expiry_ms,
            old,
        },
        OperationObject::Ingested { keyspace } => Operation::Ingested { keyspace: keyspace.into() },
        OperationObject::KeyspaceDropped { keyspace } => {
            Operation::KeyspaceDropped { keyspace: keyspace.into() }
        }
    })
}
