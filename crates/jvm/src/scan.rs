//! Scans in chunks of many entries: a call from Java costs more than a step of an iterator.
//!
//! A chunk is a Java array: the scan's number (8 bytes, 0 in the last chunk), and for each entry the lengths of its key
//! and its value, the key, the value; numbers are little-endian. A scan that ends in its first chunk has no handle.
//!
//! Owns: the table of scans, the form and the size of a chunk, the native methods. Never does: write.

use crate::database::SNAPSHOTS;
use crate::edge::native;
use crate::failure::Outcome;
use crate::jvm::Env;
use crate::keyspace::KEYSPACES;
use crate::table::{Alone, Table};
use jni_sys::{jbyteArray, jint, jlong, jobject};
use windrow::{Error, Iter, Keys, ReadOptions, Slice};

static SCANS: Table<Alone<Scan>> = Table::new("iterator");

/// Bits of the flags of a scan.
const REVERSE: jint = 1;
const PASS_CACHE_BY: jint = 2;
const KEYS_ONLY: jint = 4;

/// Bytes of the first chunk: few, so that a caller who wants only the first entries waits for these alone. Each chunk
/// is twice the one before, so that at least half of the entries read are wanted.
const FIRST_BYTES: usize = 2 << 10;
const MOST_BYTES: usize = 64 << 10;

/// A scan whose limit is at most this many entries is read in chunks of full size from the start.
const FEW: usize = 1 << 10;

enum Entries {
    Both(Iter),
    Keys(Keys),
}

struct Scan {
    entries: Entries,
    reverse: bool,
    /// The number of entries that are still wanted.
    wanted: usize,
    next_bytes: usize,
    /// An error that follows entries which Java gets first.
    failed: Option<Error>,
}

impl Scan {
    fn step(&mut self) -> Option<windrow::Result<(Slice, Slice)>> {
        let key_only = |key: windrow::Result<Slice>| key.map(|key| (key, Slice::default()));
        match (&mut self.entries, self.reverse) {
            (Entries::Both(entries), false) => entries.next(),
            (Entries::Both(entries), true) => entries.next_back(),
            (Entries::Keys(keys), false) => keys.next().map(key_only),
            (Entries::Keys(keys), true) => keys.next_back().map(key_only),
        }
    }

    /// Reads a chunk after 8 bytes for the number. Returns whether there may be another.
    fn chunk(&mut self, chunk: &mut Vec<u8>) -> Outcome<bool> {
        if let Some(error) = self.failed.take() {
            return Err(error.into());
        }
        // A scan with a small limit gets chunks of full size.
        let room = if self.wanted <= FEW { MOST_BYTES } else { self.next_bytes };
        self.next_bytes = (room * 2).min(MOST_BYTES);
        chunk.reserve(self.next_bytes.min(room));
        chunk.extend_from_slice(&[0; 8]);
        while chunk.len() < room {
            if self.wanted == 0 {
                return Ok(false);
            }
            self.wanted -= 1;
            match self.step() {
                None => return Ok(false),
                Some(Ok((key, value))) => put_entry(chunk, &key, &value),
                Some(Err(error)) if chunk.len() == 8 => return Err(error.into()),
                Some(Err(error)) => {
                    self.failed = Some(error);
                    break;
                }
            }
        }
        Ok(true)
    }
}

/// Appends an entry in the form that Java reads.
pub(crate) fn put_entry(chunk: &mut Vec<u8>, key: &[u8], value: &[u8]) {
    chunk.extend_from_slice(&(key.len() as u32).to_le_bytes());
    chunk.extend_from_slice(&(value.len() as u32).to_le_bytes());
    chunk.extend_from_slice(key);
    chunk.extend_from_slice(value);
}

/// Returns the options of a scan or cursor: its range, snapshot and use of the cache.
pub(crate) fn read_options(
    env: Env,
    from: jbyteArray,
    to: jbyteArray,
    flags: jint,
    snapshot: jlong,
) -> Outcome<ReadOptions> {
    let snapshot = match snapshot {
        0 => None,
        snapshot => Some((*SNAPSHOTS.get(snapshot)?).clone()),
    };
    Ok(ReadOptions {
        lower: env.bytes(from),
        upper: env.bytes(to),
        fill_cache: flags & PASS_CACHE_BY == 0,
        snapshot,
        ..ReadOptions::default()
    })
}

native! {
    /// Begins a scan from a key to before another, of at most `limit` entries (-1: all), of a snapshot if that is not
    /// 0. Returns its first chunk.
    Java_org_windrow_Native_scan(
        env, _owner: jobject, keyspace: jlong, from: jbyteArray, to: jbyteArray, flags: jint, limit: jint, snapshot: jlong
    ) -> jbyteArray {
        let keyspace = KEYSPACES.get(keyspace)?;
        let entries = keyspace.iter_with(read_options(env, from, to, flags, snapshot)?);
        let entries = match flags & KEYS_ONLY {
            0 => Entries::Both(entries),
            _ => Entries::Keys(entries.keys()),
        };
        let reverse = flags & REVERSE != 0;
        let wanted = usize::try_from(limit).unwrap_or(usize::MAX);
        let mut scan = Scan { entries, reverse, wanted, next_bytes: FIRST_BYTES, failed: None };
        let mut chunk = Vec::new();
        if !scan.chunk(&mut chunk)? {
            return env.new_bytes(&chunk);
        }
        let number = SCANS.add(Alone::new(scan))?;
        chunk[..8].copy_from_slice(&number.to_le_bytes());
        // Without the chunk Java does not know the number.
        env.new_bytes(&chunk).inspect_err(|_| drop(SCANS.remove(number)))
    }
}

native! {
    /// Returns the next chunk.
    Java_org_windrow_Native_scanOn(env, _owner: jobject, scan: jlong) -> jbyteArray {
        let held = SCANS.get(scan)?;
        let mut chunk = Vec::new();
        if held.with(|scan| scan.chunk(&mut chunk))? {
            chunk[..8].copy_from_slice(&scan.to_le_bytes());
        }
        env.new_bytes(&chunk)
    }
}

native! {
    Java_org_windrow_Native_freeScan(_env, scan: jlong) -> () {
        SCANS.end(scan)
    }
}
