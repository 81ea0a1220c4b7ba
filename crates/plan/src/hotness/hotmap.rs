//! The HotMap: how often keys were updated of late, in a few bits a key.
//!
//! L2SM (Huang et al., section III-C1): M layers of Bloom filters. An update
//! of a key is noted in the first layer that does not know the key yet, so
//! that a key known to i layers was updated at least i times. A file's hotness
//! is the sum of `2^i` over its keys, i the layers that know the key; one that
//! no layer knows adds nothing.
//!
//! A layer of P bits and K probes has room for `N = P ln 2 / K` keys. When one
//! fills, the map turns: the top layer, which holds the oldest updates, is
//! cleared and becomes the bottom one. Three cases:
//!
//! - (a) the top is full and the next one more than a fifth: the working set
//!   grows, and the new bottom is a tenth larger than the top was;
//! - (b) the top is full and the next one not: most keys come once, and the new
//!   bottom is as large as the last one;
//! - (c) two neighbours, each more than a fifth full, are within a tenth of
//!   each other: the same keys come again and again and the layers no longer
//!   tell them apart, so that the top is given up.
//!
//! The paper does not say when to look for (c). Looking at every update would clear layer after
//! layer, since the others are still alike after a turn; so it is looked for once in a while, and
//! the updates since then tell the layers apart.
//!
//! Owns: the layers' memory. Never does: decide what counts as an update; the caller does.

use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;
use windrow_base::debug_invariant;

/// M: layers.
pub const LAYERS: usize = 5;

/// P: bits of a layer to begin with; the whole map takes 2.5 MB then.
pub const LAYER_BITS: u64 = 4 << 20;

/// A layer never gets more bits than this many times those it began with: the largest map that the
/// paper met.
pub const GROWTH_MAX: u64 = 16;

/// K: bits set for each key; one key in 2^K is taken for known in a full layer.
const PROBES: u64 = 7;

/// Layers of Bloom filters over hashes of keys.
#[derive(Clone, Debug)]
pub struct HotMap {
    /// Oldest first.
    layers: VecDeque<Layer>,
    layer_bits_max: u64,
    /// Updates until neighbours are compared.
    until_compare: u64,
}

#[derive(Clone, Debug)]
struct Layer {
    words: Vec<u64>,
    bits: u64,
    /// Keys that it took in.
    keys: u64,
}

impl HotMap {
    /// A map of at most `memory_bytes` (but at least five layers of 1024
    /// bits), which begins with [`LAYER_BITS`] a layer if they fit.
    pub fn new(memory_bytes: u64) -> HotMap {
        let bits_max = (memory_bytes.saturating_mul(8) / LAYERS as u64).max(1024);
        HotMap::with_layers(LAYER_BITS.min(bits_max), bits_max)
    }

    fn with_layers(layer_bits: u64, bits_max: u64) -> HotMap {
        debug_invariant!(H1, layer_bits <= bits_max, "{layer_bits} bits a layer, of {bits_max}");
        let mut map = HotMap {
            layers: (0..LAYERS).map(|_| Layer::new(layer_bits)).collect(),
            layer_bits_max: bits_max.min(layer_bits.saturating_mul(GROWTH_MAX)),
            until_compare: 0,
        };
        map.wait();
        map
    }

    /// Notes an update of the key with this hash, of 64 well mixed bits.
    pub fn observe(&mut self, hash: u64) {
        let known = if cfg!(debug_assertions) { self.layers_known(hash) } else { 0 };
        if let Some(layer) = self.layers.iter_mut().find(|layer| !layer.knows(hash)) {
            layer.insert(hash);
        }
        debug_invariant!(
            H1,
            self.layers_known(hash) == (known + 1).min(LAYERS as u32),
            "an update is known to {} layers after {known}",
            self.layers_known(hash)
        );
        self.until_compare = self.until_compare.saturating_sub(1);
        if let Some(bits) = self.due() {
            self.turn(bits);
        }
    }

    /// How many layers know the key.
    pub fn layers_known(&self, hash: u64) -> u32 {
        let known = self.layers.iter().map(|layer| layer.knows(hash) as u32).sum();
        debug_invariant!(H1, known <= LAYERS as u32, "{known} layers know a key");
        known
    }

    /// H of a file with these keys: the sum of `2^i`, i > 0 the layers that know a key.
    pub fn hotness(&self, hashes: impl IntoIterator<Item = u64>) -> u64 {
        let of = |hash| match self.layers_known(hash) {
            0 => 0,
            known => 1u64 << known,
        };
        hashes.into_iter().map(of).sum()
    }

    /// Bytes that the layers take.
    pub fn memory_bytes(&self) -> u64 {
        self.layers.iter().map(|layer| layer.words.len() as u64 * 8).sum()
    }

    /// Size of the new bottom, if the map is to turn.
    fn due(&mut self) -> Option<u64> {
        let (top, next) = (&self.layers[0], &self.layers[1]);
        let bottom_bits = self.layers[LAYERS - 1].bits;
        if top.keys >= top.capacity() {
            return Some(match next.is_used() {
                true => (top.bits + top.bits / 10).min(self.layer_bits_max),
                false => bottom_bits,
            });
        }
        if self.until_compare > 0 {
            return None;
        }
        self.wait();
        let alike = |i: usize| self.layers[i].is_like(&self.layers[i + 1]);
        (0..LAYERS - 1).any(alike).then_some(bottom_bits)
    }

    /// Retires the top; the new bottom is empty.
    fn turn(&mut self, bits: u64) {
        debug_invariant!(H1, bits <= self.layer_bits_max, "{bits} bits for one layer");
        self.layers.pop_front();
        self.layers.push_back(Layer::new(bits));
        debug_invariant!(H1, self.layers.len() == LAYERS, "a map of {} layers", self.layers.len());
        self.wait();
    }

    /// Puts off comparing neighbours by as many updates as fill a fifth of the top.
    fn wait(&mut self) {
        self.until_compare = self.layers[0].capacity().div_ceil(5);
        debug_invariant!(H1, self.until_compare > 0, "neighbours are compared at every update");
    }
}

impl Layer {
    fn new(bits: u64) -> Layer {
        debug_invariant!(H1, bits > 0, "a layer without bits");
        Layer { words: vec![0; bits.div_ceil(64) as usize], bits, keys: 0 }
    }

    /// N: keys for which half of the bits are set.
    fn capacity(&self) -> u64 {
        (self.bits as f64 * core::f64::consts::LN_2 / PROBES as f64) as u64
    }

    /// Whether more than a fifth of its room is taken.
    fn is_used(&self) -> bool {
        self.keys * 5 > self.capacity()
    }

    /// Whether both are in use and took in about as many keys.
    fn is_like(&self, other: &Layer) -> bool {
        let (less, more) = (self.keys.min(other.keys), self.keys.max(other.keys));
        self.is_used() && other.is_used() && (more - less) * 10 < more
    }

    /// Word and mask of each bit of a key: double hashing over the halves of its hash.
    fn places(&self, hash: u64) -> impl Iterator<Item = (usize, u64)> + use<> {
        let bits = self.bits;
        let step = hash.rotate_left(32) | 1;
        (0..PROBES).map(move |i| {
            let mixed = hash.wrapping_add(step.wrapping_mul(i));
            // The high half picks: multiply and shift, no division.
            let bit = ((mixed as u128 * bits as u128) >> 64) as u64;
            debug_invariant!(H1, bit < bits, "bit {bit} of {bits}");
            ((bit / 64) as usize, 1 << (bit % 64))
        })
    }

    fn knows(&self, hash: u64) -> bool {
        self.keys > 0 && self.places(hash).all(|(word, mask)| self.words[word] & mask != 0)
    }

    fn insert(&mut self, hash: u64) {
        for (word, mask) in self.places(hash) {
            self.words[word] |= mask;
        }
        self.keys += 1;
        debug_invariant!(H1, self.keys <= self.capacity() + 1, "{} keys in a layer", self.keys);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// splitmix64: the n-th key's hash.
    fn hash(n: u64) -> u64 {
        let mut z = n.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn keys(map: &HotMap) -> Vec<u64> {
        map.layers.iter().map(|layer| layer.keys).collect()
    }

    fn map() -> HotMap {
        HotMap::with_layers(BITS, u64::MAX)
    }

    const BITS: u64 = 1 << 16;
    /// Room of a layer of `BITS` bits.
    const ROOM: u64 = 6489;

    #[test]
    fn each_update_is_known_to_one_layer_more() {
        let mut map = map();
        assert_eq!(map.layers[0].capacity(), ROOM);
        for updates in 1..=LAYERS as u32 + 2 {
            map.observe(hash(1));
            assert_eq!(map.layers_known(hash(1)), updates.min(LAYERS as u32));
        }
        map.observe(hash(2));
        map.observe(hash(2));
        // 2^5 + 2^2, and nothing for a key that was never updated.
        assert_eq!(map.hotness([hash(1), hash(2), hash(3)]), 32 + 4);
        assert_eq!(map.memory_bytes(), LAYERS as u64 * BITS / 8);
    }

    #[test]
    fn a_full_layer_knows_few_keys_that_never_came() {
        let mut map = map();
        (0..ROOM - 1).for_each(|n| map.observe(hash(n)));
        let wrong = (0..10_000).filter(|n| map.layers_known(hash(1 << 40 | n)) > 0).count();
        // One in 2^7 of them is expected: 78.
        assert!((40..130).contains(&wrong), "{wrong}");
    }

    #[test]
    fn case_a_the_working_set_grows() {
        let mut map = map();
        // A third of the keys come twice: the next layer is a third full at the end.
        (0..ROOM / 3).for_each(|n| map.observe(hash(n)));
        let mut n = 0;
        while map.layers[LAYERS - 1].bits == BITS {
            map.observe(hash(n));
            n += 1;
        }
        assert_eq!(map.layers[LAYERS - 1].bits, BITS + BITS / 10);
        assert_eq!(map.layers[LAYERS - 1].keys, 0);
        // The second layer has become the top.
        assert!(map.layers[0].keys > ROOM / 5 && map.layers[0].keys < ROOM / 2);
        // Keys of the old top alone are forgotten.
        assert_eq!(map.layers_known(hash(ROOM - 50)), 0);
        assert_eq!(map.layers_known(hash(10)), 1);
    }

    #[test]
    fn case_b_most_keys_come_once() {
        let mut map = map();
        (0..3 * ROOM).for_each(|n| map.observe(hash(n)));
        assert!(map.layers.iter().all(|layer| layer.bits == BITS));
        // It turned: none holds more than its room.
        assert!(keys(&map).iter().all(|&keys| keys <= ROOM), "{:?}", keys(&map));
        assert_eq!(map.layers_known(hash(0)), 0);
    }

    #[test]
    fn case_c_the_same_keys_come_again() {
        let set = ROOM / 2;
        let mut map = map();
        let held = |map: &HotMap| keys(map).iter().sum::<u64>();
        // How many updates until a layer is given up, which the top never fills for.
        let until_turn = |map: &mut HotMap| {
            (0..4 * set).find(|n| {
                let before = held(map);
                map.observe(hash(n % set));
                held(map) < before
            })
        };
        // The second layer is like the first once the keys came twice; and
        // then not at once the third like the second.
        let first = until_turn(&mut map).expect("it turns");
        assert!(first + set / 10 > 2 * set, "{first}");
        assert!(keys(&map)[0] * 10 > set * 9 && keys(&map)[1] < set / 5, "{:?}", keys(&map));
        let second = until_turn(&mut map).expect("it turns again");
        assert!(second > set / 2, "{second}");
        assert!(map.layers.iter().all(|layer| layer.bits == BITS));
    }

    #[test]
    fn growth_has_an_end() {
        let mut map = HotMap::with_layers(1024, u64::MAX);
        // Twice each, over and over: case (a) as often as can be.
        for n in 0..600_000u64 {
            map.observe(hash(n / 2));
        }
        assert!(map.layers.iter().any(|layer| layer.bits > 1024));
        assert!(map.layers.iter().all(|layer| layer.bits <= 1024 * GROWTH_MAX));
        // Or where there is no more memory.
        let mut small = HotMap::new(2000);
        let bytes = small.memory_bytes();
        (0..100_000u64).for_each(|n| small.observe(hash(n / 2)));
        assert!(bytes <= 2000 && bytes == small.memory_bytes());
        assert_eq!(HotMap::new(u64::MAX).memory_bytes(), LAYERS as u64 * LAYER_BITS / 8);
    }

    #[test]
    fn hot_keys_are_known_to_more_layers() {
        let mut map = map();
        // Ten of eleven updates go to 100 hot keys, the others to 50,000 cold ones.
        for n in 0..200_000u64 {
            match n % 11 {
                0 => map.observe(hash(1000 + hash(n) % 50_000)),
                _ => map.observe(hash(hash(n) % 100)),
            }
        }
        let mean = |keys: core::ops::Range<u64>| {
            let count = keys.end - keys.start;
            map.hotness(keys.map(hash)) as f64 / count as f64
        };
        let (hot, cold) = (mean(0..100), mean(1000..51_000));
        assert!(hot > 8.0 * cold && hot >= 8.0, "{hot} {cold}");
    }
}
