//! Cache-line-blocked Bloom filter over user keys.
//!
//! A key's bits all lie in one line of 64 bytes, so a lookup costs one cache miss at any number of
//! bits per key. That number may be fractional: it sets the number of lines, and the number of
//! probes is the best one for that load by [`false_positive_rate`]'s own formula. Owns: the hash
//! (fixed for ever), the line layout, the probe sequence. Never does: answer for range tombstones
//! (I8), or hash under an order whose equality is not bytewise (the table writer builds no filter
//! there).

use windrow_base::{Error, Result, debug_invariant};
use windrow_env::Buffer;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Seed of [`hash`]. On disk by its effect; never changes for filter id 1.
const HASH_SEED: u64 = 0x5749_4e44_524f_5731;

/// Bytes of a line.
pub const LINE_BYTES: usize = 64;

const LINE_BITS: f64 = 512.0;

/// The most probes of a filter. More probes would cost time without lowering the rate much.
const PROBES_MAX: u32 = 16;

/// Bits per key, in eighths, from which on one more probe is used, the second first:
/// where it lowers the rate by more than one per cent. A test computes them again.
const PROBES_GROW_AT: [u16; PROBES_MAX as usize - 1] =
    [18, 30, 42, 55, 68, 83, 98, 114, 132, 151, 173, 197, 224, 254, 288];

/// Bytes after the lines: number of probes, and a zero.
const TAIL_BYTES: usize = 2;

/// Multiplier of the probe sequence: 2^64 divided by the golden ratio, made odd.
const PROBE_STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// The most bits per key that are of use.
pub const BITS_PER_KEY_MAX: f64 = 64.0;

/// The hash of a user key that filters and hash indexes use: XXH3 of 64 bits, fixed seed.
#[inline]
pub fn hash(user_key: &[u8]) -> u64 {
    xxh3_64_with_seed(user_key, HASH_SEED)
}

/// The line a hash falls in (upper half of the hash).
#[inline]
fn line_of(hash: u64, lines: usize) -> usize {
    (((hash >> 32) * lines as u64) >> 32) as usize
}

/// Collects hashes and builds a filter of them.
#[derive(Default)]
pub struct FilterBuilder {
    hashes: Vec<u64>,
}

impl FilterBuilder {
    /// An empty builder.
    pub fn new() -> FilterBuilder {
        FilterBuilder::default()
    }

    /// Adds a key by its [`hash`]. Adding a key twice only costs space.
    #[inline]
    pub fn add_hash(&mut self, hash: u64) {
        self.hashes.push(hash);
    }

    /// Hashes added since the last `finish`.
    pub fn len(&self) -> usize {
        self.hashes.len()
    }

    /// Whether nothing was added since the last `finish`.
    pub fn is_empty(&self) -> bool {
        self.hashes.is_empty()
    }

    /// Bytes of memory held.
    pub fn memory_bytes(&self) -> usize {
        self.hashes.capacity() * size_of::<u64>()
    }

    /// Builds the filter of all hashes added, and drops them. Returns an empty one, which means no
    /// filter, if there are no hashes or `bits_per_key` is not above zero.
    pub fn finish(&mut self, bits_per_key: f64) -> Vec<u8> {
        let count = self.hashes.len();
        let out = self.finish_first(count, bits_per_key);
        debug_assert!(self.hashes.is_empty());
        out
    }

    /// Builds the filter of the `count` hashes added first, and drops them.
    pub(crate) fn finish_first(&mut self, count: usize, bits_per_key: f64) -> Vec<u8> {
        let out = build(&self.hashes[..count], bits_per_key);
        check_knows(&out, &self.hashes[..count]);
        self.hashes.drain(..count);
        out
    }
}

/// Checks, in debug builds, that a filter rules out none of its own keys.
fn check_knows(filter: &[u8], hashes: &[u64]) {
    if cfg!(debug_assertions) && !filter.is_empty() {
        let knows = |filter: FilterRef<'_>| hashes.iter().all(|&hash| filter.may_contain(hash));
        let is_whole = FilterRef::parse(filter).is_ok_and(knows);
        debug_invariant!(I8, is_whole, "a filter rules out one of its {} keys", hashes.len());
    }
}

/// Whether this number of bits asks for a filter; a NaN does not.
fn wants_filter(bits_per_key: f64) -> bool {
    bits_per_key > 0.0
}

/// Bytes a filter of `keys` keys takes on disk.
pub fn filter_bytes(keys: usize, bits_per_key: f64) -> usize {
    if keys == 0 || !wants_filter(bits_per_key) {
        return 0;
    }
    line_count(keys, bits_per_key) * LINE_BYTES + TAIL_BYTES
}

fn line_count(keys: usize, bits_per_key: f64) -> usize {
    let bits = keys as f64 * bits_per_key.min(BITS_PER_KEY_MAX);
    // Lines are picked with 32 bits of hash.
    ((bits / LINE_BITS).ceil() as usize).clamp(1, u32::MAX as usize)
}

fn build(hashes: &[u64], bits_per_key: f64) -> Vec<u8> {
    if filter_bytes(hashes.len(), bits_per_key) == 0 {
        return Vec::new();
    }
    let lines = line_count(hashes.len(), bits_per_key);
    let probes = probes_for(bits_per_key);
    let mut out = vec![0; lines * LINE_BYTES + TAIL_BYTES];
    for &hash in hashes {
        let at = line_of(hash, lines) * LINE_BYTES;
        let line = &mut out[at..at + LINE_BYTES];
        let mut h = probe_start(hash);
        for _ in 0..probes {
            let bit = (h >> 55) as usize;
            line[bit >> 3] |= 1 << (bit & 7);
            h = h.wrapping_mul(PROBE_STEP);
        }
    }
    out[lines * LINE_BYTES] = probes as u8;
    out
}

/// The probes come from the lower half of the hash, which the choice of a line does not use.
#[inline]
fn probe_start(hash: u64) -> u64 {
    hash.rotate_left(32).wrapping_mul(PROBE_STEP)
}

#[inline]
fn line_may_contain(line: &[u8; LINE_BYTES], probes: u32, hash: u64) -> bool {
    let mut h = probe_start(hash);
    let mut all = 1u8;
    // No early exit: a mispredicted branch costs more than the probes it saves.
    for _ in 0..probes {
        let bit = (h >> 55) as usize;
        all &= line[bit >> 3] >> (bit & 7);
        h = h.wrapping_mul(PROBE_STEP);
    }
    all != 0
}

/// Whether a key of this hash may be in these lines. There must be at least one line.
#[inline]
pub(crate) fn lines_may_contain(lines: &[u8], probes: u32, hash: u64) -> bool {
    let lines = lines.as_chunks::<LINE_BYTES>().0;
    line_may_contain(&lines[line_of(hash, lines.len())], probes, hash)
}

fn parse(bytes: &[u8]) -> Result<(&[u8], u32)> {
    let bad = || Error::corruption("filter block of an impossible shape");
    let (lines, tail) = bytes.split_last_chunk::<TAIL_BYTES>().ok_or_else(bad)?;
    let probes = tail[0] as u32;
    let shaped = !lines.is_empty()
        && lines.len() % LINE_BYTES == 0
        && lines.len() / LINE_BYTES <= u32::MAX as usize;
    if !shaped || probes == 0 || probes > PROBES_MAX || tail[1] != 0 {
        return Err(bad());
    }
    Ok((lines, probes))
}

/// A filter read in place, from bytes of any alignment.
#[derive(Clone, Copy, Debug)]
pub struct FilterRef<'a> {
    lines: &'a [u8],
    probes: u32,
}

impl<'a> FilterRef<'a> {
    /// A filter over the bytes that [`FilterBuilder::finish`] gave.
    ///
    /// # Errors
    /// `Corruption` if they do not have a filter's shape.
    pub fn parse(bytes: &'a [u8]) -> Result<FilterRef<'a>> {
        let (lines, probes) = parse(bytes)?;
        Ok(FilterRef { lines, probes })
    }

    /// Whether a key of this hash may have been added; `false` is certain.
    #[inline]
    pub fn may_contain(&self, hash: u64) -> bool {
        let at = line_of(hash, self.lines.len() / LINE_BYTES) * LINE_BYTES;
        match self.lines[at..].first_chunk::<LINE_BYTES>() {
            Some(line) => line_may_contain(line, self.probes, hash),
            None => true,
        }
    }
}

/// A filter held in memory, its lines aligned to cache lines.
pub struct Filter {
    /// Begins with a cache line, as every buffer does.
    lines: Buffer,
    probes: u32,
}

impl Filter {
    /// Takes over a filter's bytes.
    ///
    /// # Errors
    /// `Corruption` if they do not have a filter's shape.
    pub fn parse(mut bytes: Buffer) -> Result<Filter> {
        let (lines, probes) = parse(&bytes)?;
        bytes.truncate(lines.len());
        Ok(Filter { lines: bytes, probes })
    }

    /// A filter of lines and a number of probes that were kept apart.
    pub(crate) fn of_parts(lines: Buffer, probes: u32) -> Filter {
        Filter { lines, probes }
    }

    /// The filter's lines and number of probes.
    pub(crate) fn into_parts(self) -> (Buffer, u32) {
        (self.lines, self.probes)
    }

    /// Whether a key of this hash may have been added; `false` is certain.
    #[inline]
    pub fn may_contain(&self, hash: u64) -> bool {
        lines_may_contain(&self.lines, self.probes, hash)
    }

    /// Bytes of memory held.
    pub fn memory_bytes(&self) -> usize {
        self.lines.memory_bytes() + size_of::<Filter>()
    }
}

/// False-positive rate of the filter that is built for `bits_per_key` (1 without one).
///
/// The keys of a line are Poisson distributed with mean `512 / bits_per_key`;
/// a line with `j` keys and `k` probes answers wrongly with
/// `(1 - (1 - 1/512)^(j k))^k` (Putze, Sanders, Singler: "Cache-, Hash- and
/// Space-Efficient Bloom Filters", 2007, section 3).
pub fn false_positive_rate(bits_per_key: f64) -> f64 {
    if !wants_filter(bits_per_key) {
        return 1.0;
    }
    let bits = bits_per_key.min(BITS_PER_KEY_MAX);
    rate(bits, probes_for(bits))
}

fn rate(bits_per_key: f64, probes: u32) -> f64 {
    let mean = LINE_BITS / bits_per_key;
    let k = f64::from(probes);
    let empty_of_one = (1.0 - 1.0 / LINE_BITS).powf(k);
    // Beyond ten standard deviations a double cannot tell the weights from zero.
    let spread = 10.0 * mean.sqrt() + 10.0;
    let (from, to) = ((mean - spread).max(0.0) as u64, (mean + spread) as u64);
    let mut log_p = -mean;
    let (mut sum, mut weight) = (0.0, 0.0);
    for j in 0..=to {
        if j > 0 {
            log_p += mean.ln() - (j as f64).ln();
        }
        if j >= from {
            let p = log_p.exp();
            sum += p * (1.0 - empty_of_one.powf(j as f64)).powf(k);
            weight += p;
        }
    }
    (sum / weight).min(1.0)
}

fn probes_for(bits_per_key: f64) -> u32 {
    let eighths = (bits_per_key.min(BITS_PER_KEY_MAX) * 8.0).round() as u16;
    1 + PROBES_GROW_AT.partition_point(|&from| from <= eighths) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(i: u64) -> u64 {
        hash(format!("user{i:012}").as_bytes())
    }

    fn measured(bits: f64, keys: u64) -> (f64, Vec<u8>) {
        let mut builder = FilterBuilder::new();
        (0..keys).for_each(|i| builder.add_hash(key(i)));
        let bytes = builder.finish(bits);
        let filter = Filter::parse(Buffer::copy_of(&bytes)).unwrap();
        let by_ref = FilterRef::parse(&bytes).unwrap();
        assert!((0..keys).all(|i| filter.may_contain(key(i)) && by_ref.may_contain(key(i))));
        let asked = 400_000;
        let wrong = (keys..keys + asked).filter(|&i| {
            let answer = filter.may_contain(key(i));
            assert_eq!(answer, by_ref.may_contain(key(i)));
            answer
        });
        (wrong.count() as f64 / asked as f64, bytes)
    }

    #[test]
    #[should_panic(expected = "(I8): a filter rules out one of its 100 keys")]
    fn a_filter_of_other_keys_is_refused() {
        let [one, other]: [Vec<u64>; 2] =
            [0, 100].map(|from| (from..from + 100).map(key).collect());
        let filter = build(&one, 10.0);
        check_knows(&filter, &one);
        check_knows(&[], &other);
        check_knows(&filter, &other);
    }

    #[test]
    fn each_probe_is_worth_its_time() {
        for eighths in 1..=(BITS_PER_KEY_MAX * 8.0) as u32 {
            let bits = f64::from(eighths) / 8.0;
            let (mut best, mut best_rate) = (1, rate(bits, 1));
            for probes in 2..=PROBES_MAX {
                let rate = rate(bits, probes);
                if rate < best_rate * 0.99 {
                    (best, best_rate) = (probes, rate);
                }
            }
            assert_eq!(probes_for(bits), best, "{bits} bits per key");
        }
    }

    #[test]
    fn the_rate_is_the_theory_of_blocked_bloom() {
        for bits in [1.0, 2.0, 3.5, 4.0, 6.0, 8.0, 10.0, 12.0, 16.0] {
            let (rate, bytes) = measured(bits, 100_000);
            let theory = false_positive_rate(bits);
            eprintln!(
                "bits/key {bits:>4}: probes {:>2}, measured {rate:.5}, theory {theory:.5}",
                bytes[bytes.len() - 2]
            );
            let noise = 5.0 * (theory / 400_000.0).sqrt();
            assert!(rate < theory * 1.1 + noise, "{bits} bits: {rate} against {theory}");
            assert!(rate > theory * 0.9 - noise, "{bits} bits: {rate} against {theory}");
            assert_eq!(bytes.len(), filter_bytes(100_000, bits));
        }
        // The policies of filter memory rely on the shape of the curve.
        assert!(false_positive_rate(10.0) < 0.0105 && false_positive_rate(0.0) == 1.0);
        let curve: Vec<f64> = (1..160).map(|i| false_positive_rate(f64::from(i) / 8.0)).collect();
        assert!(curve.windows(2).all(|w| w[1] <= w[0] * 1.02));
    }

    #[test]
    fn small_and_empty_filters() {
        assert!(FilterBuilder::new().finish(10.0).is_empty());
        let mut builder = FilterBuilder::new();
        builder.add_hash(1);
        assert!(builder.finish(0.0).is_empty() && builder.is_empty());
        let (rate, _) = measured(10.0, 1);
        assert!(rate < 0.01);
    }

    #[test]
    fn shapes_from_disk_are_checked() {
        let (_, bytes) = measured(10.0, 100);
        for len in 0..bytes.len() {
            assert!(Filter::parse(Buffer::copy_of(&bytes[..len])).is_err(), "{len}");
        }
        let mut bad = bytes.clone();
        *bad.last_mut().unwrap() = 1;
        assert!(FilterRef::parse(&bad).is_err());
    }

    #[test]
    fn the_hash_is_fixed() {
        // On disk: if these change, every filter written before gives false answers.
        assert_eq!([hash(b""), hash(b"windrow"), hash(&[0; 300])], HASHES_OF_VERSION_1);
    }

    const HASHES_OF_VERSION_1: [u64; 3] =
        [16_134_522_923_207_284_559, 211_239_839_025_504_415, 3_348_475_914_503_431_248];
}
