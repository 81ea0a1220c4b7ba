//! Shares filter memory out to files: Mnemosyne's sort-and-search.
//!
//! Minimise `sum z_i rate(b_i)` subject to `sum n_i b_i <= M`, each `b_i` none or from one bit to a
//! cap (Eq. 6). Files are sorted by `z/n`; at a price per bit every file's best bits follow from
//! its own `z/n` (Eq. 7), so that the search is for the price at which the memory is used up.
//!
//! The paper drops files from the tail until every remaining one has at least a bit *by the formula
//! of the interior*. That is too eager: a file whose best is exactly one bit earns 28 % more per
//! bit than the formula's slope there says, and is dropped. Here the first bit is judged whole
//! ([`Curve::threshold`]). Then there is the file at the margin, whose first bit does not fit:
//! prefixes alone cannot say whether it, or smaller ones after it, should have it, so a bounded
//! search around the margin follows. The oracle is brute force over all subsets
//! (`tests/filters/solver.rs`).
//!
//! O(F log F): 0.4 ms for 5,000 files (`cargo test --release -p windrow-plan
//! --test filters -- --ignored --nocapture`).
//!
//! Owns: the division of memory between loads. Never does: look at a tree.

use super::curve::{BITS_MIN, Curve, Piece};
use alloc::vec;
use alloc::vec::Vec;
use windrow_base::debug_invariant;

/// The claim of one file on filter memory.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Load {
    /// Entries, the paper's n.
    pub entries: f64,
    /// Lookups that reach the file and find nothing, the paper's z; any unit
    /// that is the same for all files.
    pub empty: f64,
}

impl Load {
    /// `ln(z/n)`; minus infinity where a filter would be of no use.
    fn ln_ratio(&self) -> f64 {
        match self.entries > 0.0 && self.empty > 0.0 {
            true => libm::log(self.empty / self.entries),
            false => f64::NEG_INFINITY,
        }
    }
}

/// How the memory is shared out.
#[derive(Clone, Debug, PartialEq)]
pub struct Allocation {
    /// The constant C of Eq. 7: bits of a further file are
    /// `curve.bits(ln(z/n) - C)`. Minus infinity where memory is left over
    /// with every file at the cap, plus infinity where there is none.
    pub c: f64,
    /// Bits per key of each file, in the order given.
    pub bits: Vec<f64>,
}

/// Files on each side of the margin that are tried in and out.
const WINDOW: usize = 12;
/// Where there are more files than this, one of them is too little to search far for.
const MANY: usize = 64;
const WINDOW_OF_MANY: usize = 3;

/// Shares `memory_bits` out to `loads`, at most `cap` bits per key each.
pub fn solve(curve: &Curve, loads: &[Load], memory_bits: f64, cap: f64) -> Allocation {
    let odd = loads.iter().find(|load| load.entries < 0.0 || load.empty < 0.0);
    debug_invariant!(F3, odd.is_none(), "{odd:?} is no load");
    let sorted = Sorted::new(curve, loads, cap);
    let mut bits = vec![0.0; loads.len()];
    let no_memory = memory_bits.is_nan() || memory_bits <= 0.0;
    if sorted.files.is_empty() || cap < BITS_MIN || no_memory {
        return Allocation { c: f64::INFINITY, bits };
    }
    let (set, c) = sorted.search(memory_bits);
    for (at, file) in sorted.files.iter().enumerate() {
        if set.holds(at) {
            bits[file.index] = sorted.bits(file.ratio - c);
        }
    }
    check_shares(loads, &bits, memory_bits, cap);
    let everything = sorted.files.len() == set.len() && bits.iter().all(|&b| b == 0.0 || b >= cap);
    Allocation { c: if everything { f64::NEG_INFINITY } else { c }, bits }
}

/// Checks F1: each filter has from one bit per key to the cap, or none. F2: together they take no
/// more than there is.
fn check_shares(loads: &[Load], bits: &[f64], memory_bits: f64, cap: f64) {
    let odd = bits.iter().find(|&&b| b != 0.0 && !(BITS_MIN..=cap * (1.0 + 1e-9)).contains(&b));
    debug_invariant!(F1, odd.is_none(), "a filter gets {odd:?} bits per key, of {cap} at most");
    let taken: f64 = loads.iter().zip(bits).map(|(load, bits)| load.entries * bits).sum();
    let fits = taken <= memory_bits * (1.0 + 1e-6);
    debug_invariant!(F2, fits, "filters take {taken} bits of {memory_bits}");
}

/// A file by its place in the order.
struct Ranked {
    ratio: f64,
    index: usize,
}

/// Sums over files.
#[derive(Clone, Copy, Default)]
struct LoadSums {
    entries: f64,
    /// Of entries times `ln(z/n)`.
    weighted: f64,
    empty: f64,
}

impl LoadSums {
    fn plus(self, other: LoadSums, sign: f64) -> LoadSums {
        LoadSums {
            entries: self.entries + sign * other.entries,
            weighted: self.weighted + sign * other.weighted,
            empty: self.empty + sign * other.empty,
        }
    }
}

/// The files that get a filter: the first `prefix` in order, but for `flipped`.
#[derive(Clone)]
struct FilteredFiles {
    prefix: usize,
    flipped: Vec<usize>,
}

impl FilteredFiles {
    fn holds(&self, at: usize) -> bool {
        (at < self.prefix) != self.flipped.contains(&at)
    }

    fn len(&self) -> usize {
        let out = self.flipped.iter().filter(|&&at| at < self.prefix).count();
        self.prefix - out + (self.flipped.len() - out)
    }

    fn with_flip(&self, at: usize) -> FilteredFiles {
        let mut set = self.clone();
        match set.flipped.iter().position(|&f| f == at) {
            Some(i) => drop(set.flipped.swap_remove(i)),
            None => set.flipped.push(at),
        }
        debug_invariant!(F2, set.holds(at) != self.holds(at), "file {at} is in both sets");
        set
    }
}

/// Files with empty lookups, the most urgent first, and prefix sums over them.
struct Sorted {
    files: Vec<Ranked>,
    sums: Vec<LoadSums>,
    pieces: Vec<Piece>,
    threshold: f64,
}

impl Sorted {
    fn new(curve: &Curve, loads: &[Load], cap: f64) -> Sorted {
        let ratios = loads.iter().map(Load::ln_ratio).enumerate();
        let mut files: Vec<Ranked> = ratios
            .filter(|(_, ratio)| ratio.is_finite())
            .map(|(index, ratio)| Ranked { ratio, index })
            .collect();
        files.sort_unstable_by(|a, b| b.ratio.total_cmp(&a.ratio).then(a.index.cmp(&b.index)));
        let mut sums = Vec::with_capacity(files.len() + 1);
        let mut sum = LoadSums::default();
        sums.push(sum);
        for file in &files {
            let load = &loads[file.index];
            let one = LoadSums {
                entries: load.entries,
                weighted: load.entries * file.ratio,
                empty: load.empty,
            };
            sum = sum.plus(one, 1.0);
            sums.push(sum);
        }
        debug_invariant!(F2, sums.len() == files.len() + 1, "{} sums", sums.len());
        let threshold = curve.threshold();
        Sorted { files, sums, pieces: capped(curve, cap), threshold }
    }

    /// Returns the bits of a member at this urgency: [`Curve::bits`], but one at least.
    fn bits(&self, urgency: f64) -> f64 {
        match self.pieces.iter().rev().find(|piece| urgency >= piece.urgency) {
            Some(piece) => {
                let bits = piece.bits + piece.rise * (urgency - piece.urgency);
                debug_invariant!(F1, bits >= BITS_MIN, "{bits} bits per key at {urgency}");
                bits
            }
            None => BITS_MIN,
        }
    }

    /// Counts the files that are at least this urgent at `c`.
    fn count_from(&self, urgency: f64, c: f64) -> usize {
        self.files.partition_point(|file| file.ratio - c >= urgency)
    }

    fn one(&self, at: usize) -> LoadSums {
        debug_invariant!(F2, at < self.files.len(), "file {at} of {}", self.files.len());
        self.sums[at + 1].plus(self.sums[at], -1.0)
    }

    /// Returns the sums over the members of `set` among `[from, to)`.
    fn members(&self, set: &FilteredFiles, from: usize, to: usize) -> LoadSums {
        debug_invariant!(F2, from <= to && to <= self.files.len(), "files {from} to {to}");
        let (a, b) = (from.min(set.prefix), to.min(set.prefix));
        let mut sums = self.sums[b].plus(self.sums[a], -1.0);
        for &at in set.flipped.iter().filter(|&&at| from <= at && at < to) {
            sums = sums.plus(self.one(at), if at < set.prefix { -1.0 } else { 1.0 });
        }
        sums
    }

    /// Returns the bits that `set` takes at `c`, and the empty lookups that pass its filters.
    fn demand(&self, set: &FilteredFiles, c: f64) -> (f64, f64) {
        let (mut bits, mut passed) = (0.0, 0.0);
        // Least urgent last: the first piece takes every member that is left.
        let mut to = self.files.len();
        for (i, piece) in self.pieces.iter().enumerate() {
            let next = self.pieces.get(i + 1);
            let from = next.map_or(0, |next| self.count_from(next.urgency, c).min(to));
            let sums = self.members(set, from, to);
            to = from;
            if sums.entries <= 0.0 {
                continue;
            }
            let over = sums.weighted - (c + piece.urgency) * sums.entries;
            bits += sums.entries * piece.bits + piece.rise * over;
            passed += match piece.rise > 0.0 {
                // z e^-u = n e^C: every file of the piece lets as much through per entry.
                true => sums.entries * libm::exp(piece.ln_rate + piece.urgency + c),
                false => sums.empty * libm::exp(piece.ln_rate),
            };
        }
        (bits, passed)
    }

    /// Returns the smallest C at which `set` fits, and the empty lookups that its filters and their
    /// absence let through. `None` if its first bits alone do not fit.
    fn price(&self, set: &FilteredFiles, memory_bits: f64) -> Option<(f64, f64)> {
        let all = self.files.len();
        let sums = self.members(set, 0, all);
        if sums.entries * BITS_MIN > memory_bits * (1.0 + 1e-12) {
            return None;
        }
        let top = self.pieces.last().map_or(0.0, |p| p.urgency);
        let mut lo = self.files[all - 1].ratio - top - 1.0;
        let mut hi = self.files[0].ratio - self.threshold;
        if self.demand(set, lo).0 > memory_bits {
            // Demand falls piecewise linearly in C: interpolate, and halve where that stalls.
            let (mut f_lo, mut f_hi) =
                (self.demand(set, lo).0 - memory_bits, self.demand(set, hi).0 - memory_bits);
            for step in 0..60 {
                if hi - lo < 1e-9 || f_hi >= 0.0 {
                    break;
                }
                let at = match step % 3 {
                    2 => 0.5,
                    _ => (f_lo / (f_lo - f_hi)).clamp(0.0, 1.0),
                };
                let mid = lo + (hi - lo) * at;
                let f = self.demand(set, mid).0 - memory_bits;
                if f > 0.0 {
                    (lo, f_lo) = (mid, f);
                } else {
                    (hi, f_hi) = (mid, f);
                    if f > -1e-9 * memory_bits {
                        break;
                    }
                }
            }
        } else {
            hi = lo;
        }
        debug_invariant!(F2, lo.is_finite() && hi.is_finite(), "a price from {lo} to {hi}");
        let total = self.sums[all].empty;
        Some((hi, total - sums.empty + self.demand(set, hi).1))
    }

    /// Returns the set of files that get filters, and its C.
    fn search(&self, memory_bits: f64) -> (FilteredFiles, f64) {
        let mut set = FilteredFiles { prefix: self.margin(memory_bits), flipped: Vec::new() };
        // An empty prefix always fits.
        let (mut c, mut cost) = self.price(&set, memory_bits).unwrap_or((f64::INFINITY, f64::MAX));
        let many = self.files.len() > MANY;
        let window = if many { WINDOW_OF_MANY } else { WINDOW };
        let margin = set.prefix;
        debug_invariant!(F2, margin <= self.files.len(), "{margin} files get a filter");
        let near = margin.saturating_sub(window)..(margin + window).min(self.files.len());
        for _ in 0..if many { 1 } else { 8 } {
            let mut best: Option<(FilteredFiles, f64, f64)> = None;
            let mut consider = |tried: FilteredFiles, least: f64| {
                if let Some((c, cost)) = self.price(&tried, memory_bits)
                    && cost < best.as_ref().map_or(least, |b| b.2) * (1.0 - 1e-12)
                {
                    best = Some((tried, c, cost));
                }
            };
            for a in near.clone() {
                let one = set.with_flip(a);
                for b in near.clone().filter(|&b| a < b && set.holds(a) != set.holds(b)) {
                    consider(one.with_flip(b), cost);
                }
                consider(one, cost);
            }
            let Some(better) = best else { break };
            debug_invariant!(F2, better.2 < cost, "a set that costs {} and not {cost}", better.2);
            (set, c, cost) = better;
        }
        (set, c)
    }

    /// Returns how many files, from the most urgent on, fit with their best bits at one price.
    fn margin(&self, memory_bits: f64) -> usize {
        // Binary search over breakpoints: the price just below the next file's threshold.
        let fits = |count: usize| {
            let c = self.files[count - 1].ratio - self.threshold;
            let set = FilteredFiles { prefix: count, flipped: Vec::new() };
            self.demand(&set, c).0 <= memory_bits
        };
        let (mut lo, mut hi) = (0, self.files.len());
        while lo < hi {
            let mid = (lo + hi).div_ceil(2);
            if fits(mid) { lo = mid } else { hi = mid - 1 }
        }
        debug_invariant!(F2, lo == 0 || fits(lo), "{lo} filters do not fit");
        lo
    }
}

/// Returns the curve's pieces, flat from the cap on.
fn capped(curve: &Curve, cap: f64) -> Vec<Piece> {
    let mut pieces: Vec<Piece> = curve.pieces().take_while(|p| p.bits < cap).collect();
    match pieces.last().copied() {
        // A step is always followed by the rise from it: the last one rises.
        Some(last) => pieces.push(Piece {
            urgency: last.urgency + (cap - last.bits) / last.rise,
            bits: cap,
            rise: 0.0,
            ln_rate: libm::log(curve.rate(cap)),
        }),
        None => pieces.extend(curve.pieces().take(1)),
    }
    let ascend = pieces.windows(2).all(|pair| pair[0].bits <= pair[1].bits);
    debug_invariant!(F1, ascend, "more urgent files get fewer bits: {pieces:?}");
    pieces
}
