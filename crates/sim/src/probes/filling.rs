//! Scenarios in which the database itself fills up the device.
//!
//! Owns: the scenarios. Never does: fill a real device (`torture small` does).

use super::steps::{ensure, killed, open, text};
use windrow::{Db, ErrorKind};
use windrow_env::testing::{Handles, Rng, env};

/// Sizes of the device. At the second a merge once took the last room.
const DEVICES_BYTES: [u64; 2] = [2 << 20, 2_509_824];
const VALUE_BYTES: usize = 1000;

/// Returns the n-th key, in scrambled order: tables overlap, and are merged.
fn key(n: u64) -> [u8; 8] {
    n.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes()
}

/// Returns the n-th value, which no codec compresses.
fn value(n: u64) -> Vec<u8> {
    let mut rng = Rng::new(n);
    (0..VALUE_BYTES / 8).flat_map(|_| rng.next_u64().to_le_bytes()).collect()
}

/// Fills a device of this size until a write is refused. Returns the number of acknowledged writes.
fn filled(device_bytes: u64) -> Result<(Db, Handles, u64), String> {
    let (_, handles) = env(1);
    handles.fs.set_capacity(Some(device_bytes));
    let db = open(&handles)?;
    for n in 0..device_bytes / VALUE_BYTES as u64 {
        match db.put(key(n), value(n)) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::NoSpace => return Ok((db, handles, n)),
            Err(error) => return Err(format!("a write without room: {error}")),
        }
    }
    Err("the device never was full".into())
}

fn check(db: &Db, puts: u64) -> Result<(), String> {
    for n in 0..puts {
        let found = db.get(key(n)).map_err(text)?;
        ensure(found.as_deref() == Some(&value(n)[..]), "an acknowledged write is missing")?;
    }
    Ok(())
}

/// The contents of memtables and logs on a full device fit into tables: they are flushed, and
/// replayed by an open after a kill.
pub(super) fn a_full_device_leaves_room_to_flush() -> Result<(), String> {
    for device_bytes in DEVICES_BYTES {
        let (db, _handles, puts) = filled(device_bytes)?;
        db.flush().map_err(|e| format!("a device of {device_bytes} bytes: flush: {e}"))?;
        check(&db, puts)?;
        db.close().map_err(|e| format!("a device of {device_bytes} bytes: close: {e}"))?;
    }
    let (db, handles, puts) = filled(DEVICES_BYTES[0])?;
    let handles = killed(db, &handles, 1);
    check(&open(&handles)?, puts)
}
