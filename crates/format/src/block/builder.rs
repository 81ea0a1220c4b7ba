//! Builds the payload of a data block.
//!
//! Owns: the block being built, its restart points and its hash index. Never does: compress,
//! checksum or write it.

use super::{BUCKET_COLLISION, BUCKET_EMPTY, HASH_RESTARTS_MAX, TAIL_BYTES, bucket_of};
use windrow_base::coding::{put_varint, varint_len};
use windrow_base::key::TRAILER_BYTES;

/// Hash buckets per key: two, so that most buckets are of one key, but down to four thirds where
/// two would take more than one byte per `BYTES_PER_BUCKET` of the entries.
const BUCKETS_PER_KEY_MAX: usize = 2;
const BUCKETS_PER_3_KEYS_MIN: usize = 4;
const BYTES_PER_BUCKET: usize = 32;

/// The number of bytes at which a restart interval ends, if the number of its entries did not end
/// it before.
const INTERVAL_BYTES: usize = 1024;

/// The most buckets of a hash index.
const BUCKETS_MAX: usize = u16::MAX as usize;

/// A data block being built; reused block after block.
pub(crate) struct BlockBuilder {
    buf: Vec<u8>,
    restarts: Vec<u32>,
    restart_interval: u32,
    /// Entries since the last restart.
    since_restart: u32,
    entries: u32,
    /// The bytes of the entries.
    entries_bytes: usize,
    /// Hash and restart index of each distinct user key.
    hashes: Vec<(u32, u8)>,
    hash_index: bool,
}

impl BlockBuilder {
    pub(crate) fn new(restart_interval: u32, hash_index: bool) -> BlockBuilder {
        BlockBuilder {
            buf: Vec::new(),
            restarts: Vec::new(),
            restart_interval: restart_interval.max(1),
            since_restart: 0,
            entries: 0,
            entries_bytes: 0,
            hashes: Vec::new(),
            hash_index,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries == 0
    }

    /// Bytes of the payload if it were finished now.
    pub(crate) fn bytes(&self) -> usize {
        let buckets = if self.hash_index { self.bucket_count() } else { 0 };
        self.buf.len() + self.restarts.len() * 4 + buckets + TAIL_BYTES
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.buf.capacity() + self.restarts.capacity() * 4 + self.hashes.capacity() * 8
    }

    /// The most bytes that one more entry can add.
    pub(crate) fn bytes_of_entry(key_bytes: usize, value_bytes: usize) -> usize {
        let entry_bytes = key_bytes + TRAILER_BYTES + value_bytes + varint_len(value_bytes as u64);
        // Two lengths of a key take up to three bytes each, restart and buckets up to six, and a
        // large entry lets earlier ones have nearly two buckets each.
        entry_bytes + 12 + entry_bytes.div_ceil(BYTES_PER_BUCKET)
    }

    /// Adds an entry after all others. `user_key` shares its first `shared` bytes with the last
    /// entry's. `hash` is given where the user key is new to the block.
    #[inline]
    pub(crate) fn add(
        &mut self,
        user_key: &[u8],
        trailer: [u8; TRAILER_BYTES],
        value: &[u8],
        shared: usize,
        hash: Option<u64>,
    ) {
        let mut shared = shared;
        if self.wants_restart() {
            self.restarts.push(self.buf.len() as u32);
            self.since_restart = 0;
            shared = 0;
        }
        let restart = self.restarts.len() - 1;
        if self.hash_index {
            match hash {
                Some(hash) => self.hashes.push((hash as u32, restart.min(255) as u8)),
                // A further version in a later interval: the bucket must not say that all versions
                // are in the first.
                None if self.since_restart == 0 => {
                    if let Some(&(hash, _)) = self.hashes.last() {
                        self.hashes.push((hash, restart.min(255) as u8));
                    }
                }
                None => {}
            }
        }
        let rest = &user_key[shared..];
        if (shared | rest.len() | value.len()) < 0x80 {
            self.buf.extend_from_slice(&[shared as u8, rest.len() as u8, value.len() as u8]);
        } else {
            put_varint(&mut self.buf, shared as u64);
            put_varint(&mut self.buf, rest.len() as u64);
            put_varint(&mut self.buf, value.len() as u64);
        }
        self.buf.extend_from_slice(&trailer);
        self.buf.extend_from_slice(rest);
        self.buf.extend_from_slice(value);
        self.since_restart += 1;
        self.entries += 1;
        self.entries_bytes = self.buf.len();
    }

    /// Buckets of the hash index if the block were finished now.
    fn bucket_count(&self) -> usize {
        let keys = self.hashes.len();
        let few = keys * BUCKETS_PER_3_KEYS_MIN / 3;
        let count = (self.entries_bytes / BYTES_PER_BUCKET).clamp(few, keys * BUCKETS_PER_KEY_MAX);
        (count + 1).min(BUCKETS_MAX)
    }

    /// Whether the next entry begins a restart interval.
    #[inline]
    fn wants_restart(&self) -> bool {
        let Some(&last) = self.restarts.last() else { return true };
        self.since_restart >= self.restart_interval
            || self.buf.len() - last as usize >= INTERVAL_BYTES
    }

    /// Completes the payload; valid until [`BlockBuilder::reset`].
    pub(crate) fn finish(&mut self) -> &[u8] {
        for restart in &self.restarts {
            self.buf.extend_from_slice(&restart.to_le_bytes());
        }
        let mut buckets = 0;
        if self.hash_index && self.restarts.len() <= HASH_RESTARTS_MAX {
            buckets = self.bucket_count();
            let at = self.buf.len();
            self.buf.resize(at + buckets, BUCKET_EMPTY);
            let index = &mut self.buf[at..];
            for &(hash, restart) in &self.hashes {
                let bucket = &mut index[bucket_of(u64::from(hash), buckets)];
                *bucket = match *bucket {
                    BUCKET_EMPTY => restart,
                    same if same == restart => restart,
                    _ => BUCKET_COLLISION,
                };
            }
        }
        self.buf.extend_from_slice(&(self.restarts.len() as u32).to_le_bytes());
        self.buf.extend_from_slice(&(buckets as u16).to_le_bytes());
        self.buf.extend_from_slice(&[0, 0]);
        &self.buf
    }

    /// Empties the builder; keeps its memory, except that of a giant entry.
    pub(crate) fn reset(&mut self) {
        self.buf.clear();
        self.buf.shrink_to(1 << 20);
        self.restarts.clear();
        self.hashes.clear();
        self.since_restart = 0;
        self.entries = 0;
        self.entries_bytes = 0;
    }
}
