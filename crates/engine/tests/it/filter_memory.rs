//! Filter memory in a running database: the statistics that files keep of their queries, the memory
//! of filters, and their effect. Jobs overlap as they do on a pool, in an order drawn from a seed.

use std::path::Path;
use std::sync::Arc;
use windrow::{Db, Options, inspect};
use windrow_env::testing::{Interleaver, ManualClock, SeededRandom};
use windrow_env::{Env, Jobs, OsFs};
use windrow_format::filter::false_positive_rate;
use windrow_plan::filter_memory::curve::BUILT;
use windrow_plan::filter_memory::merlin::{self, Estimate};
use windrow_plan::tree::{File, Part, Version};

fn options(preset: &str) -> Options {
    let mut options = Options::default();
    options.settings.memory_bytes = 16 << 20;
    options.settings.memtable_bytes = 256 << 10;
    options.settings.file_bytes = 128 << 10;
    options.settings.level_base_bytes = 512 << 10;
    options.settings.compression = "none".into();
    options.settings.preset = preset.into();
    options
}

/// A database and the environment that does its background work.
struct World {
    db: Db,
    jobs: Arc<Interleaver>,
    random: Random,
}

impl World {
    fn open(dir: &Path, mut options: Options, seed: u64) -> World {
        let jobs = Arc::new(Interleaver::new(seed, 2));
        options.components.env = Some(Env {
            fs: Arc::new(OsFs::new()),
            clock: Arc::new(ManualClock::new()),
            jobs: jobs.clone(),
            random: Arc::new(SeededRandom::new(seed)),
        });
        World { db: Db::open_with(dir, options).unwrap(), jobs, random: Random(seed) }
    }

    /// Now and then lets a job go on, as it would on its own thread.
    fn pass_time(&mut self) {
        if self.random.below(64) == 0 {
            self.jobs.step();
        }
    }

    /// Loads `count` keys in a scattered order.
    fn load(&mut self, count: u64) {
        for i in 0..count {
            let i = i * 7919 % count;
            self.db.put(key(i), value(i)).unwrap();
            self.pass_time();
        }
        self.db.flush().unwrap();
        self.db.wait_idle().unwrap();
    }
}

const MNEMOSYNE: &str = "leveled shape=leveling(t=4) level0=tiered(k=3) filters=mnemosyne(bits=4)";

fn key(i: u64) -> String {
    format!("key{i:08}")
}

fn value(i: u64) -> String {
    format!("{i:0100}")
}

fn version(db: &Db) -> Arc<Version> {
    inspect::trees(db).remove(0).1
}

fn files(version: &Version) -> Vec<(u32, Part, Arc<File>)> {
    version.files().map(|(level, part, file)| (level, part, file.clone())).collect()
}

fn statistics(file: &File) -> Option<(Estimate, u64)> {
    merlin::decode(&file.statistics)
}

struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }
}

/// The plan uses the false positive rates that the format's filter has.
#[test]
fn the_plans_curve_is_the_built_filters() {
    for eighth in 8..=192 {
        let bits = f64::from(eighth) / 8.0;
        let (plan, built) = (BUILT.rate(bits), false_positive_rate(bits));
        assert!((plan / built - 1.0).abs() < 0.03, "{bits} bits: {plan} against {built}");
    }
    for bits in [0.25, 0.5, 0.75] {
        assert!((BUILT.rate(bits) - false_positive_rate(bits)).abs() < 0.01, "{bits}");
    }
}

#[test]
fn what_files_remember_survives_merges_and_reopening() {
    let dir = tempfile::tempdir().unwrap();
    let count = 40_000;
    let mut random = Random(1);
    let before = {
        let mut world = World::open(dir.path(), options(MNEMOSYNE), 1);
        world.load(count);
        let db = world.db;
        db.compact().unwrap();
        // Keys of the lower half are asked for often. In the upper half only absent keys are.
        for _ in 0..200_000 {
            let i = random.below(count / 2);
            assert!(db.get(key(i)).unwrap().is_some());
            if random.below(4) == 0 {
                assert!(db.get(key(count / 2 + i) + "x").unwrap().is_none());
            }
        }
        db.close().unwrap();
        let db = World::open(dir.path(), options(MNEMOSYNE), 2).db;
        let version = version(&db);
        check_halves(&version, count);
        let sum = sums(&version);
        db.close().unwrap();
        sum
    };
    // A second reopening without a query changes nothing.
    let db = World::open(dir.path(), options(MNEMOSYNE), 3).db;
    assert_eq!(sums(&version(&db)), before);
    // Merges pass the statistics on.
    db.compact().unwrap();
    let after = version(&db);
    check_halves(&after, count);
    let (queries, hits) = sums(&after);
    assert!((0.7..1.3).contains(&(hits / before.1)), "{hits} hits of {}", before.1);
    assert!(queries <= before.0 * 1.3 && queries >= hits, "{queries} of {}", before.0);
}

fn sums(version: &Version) -> (f64, f64) {
    files(version)
        .iter()
        .filter_map(|(_, _, file)| statistics(file))
        .fold((0.0, 0.0), |sum, got| (sum.0 + got.0.queries, sum.1 + got.0.hits))
}

/// In the deepest level the lower half's queries are hits, the upper half's are in vain.
fn check_halves(version: &Version, count: u64) {
    let deepest = version.deepest().unwrap();
    let middle = key(count / 2).into_bytes();
    let (mut lower, mut upper) = (0, 0);
    for (_, _, file) in files(version).iter().filter(|f| f.0 == deepest) {
        let (estimate, now) = statistics(file).expect("the file was asked");
        assert!(now > 3_000, "one lookup in 64 is recorded: {now}");
        // A file with few keys, such as the last one of an input, has few statistics.
        if estimate.queries < 10.0 {
            continue;
        }
        if *file.largest < *middle {
            lower += 1;
            assert!(estimate.hits > 0.9 * estimate.queries, "{estimate:?}");
        } else if *file.smallest > *middle {
            upper += 1;
            assert!(estimate.hits < 0.1 * estimate.queries, "{estimate:?}");
        }
    }
    assert!(lower > 5 && upper > 5, "{version}");
}

/// Mean bits per key where every query is a hit and where every one is in vain, once all tables
/// were written again.
fn bits_learnt(seed: u64) -> (f64, f64) {
    let dir = tempfile::tempdir().unwrap();
    let count = 40_000;
    let mut world = World::open(dir.path(), options(MNEMOSYNE), seed);
    world.load(count);
    let mut random = Random(3);
    for _ in 0..200_000 {
        let i = random.below(count / 2);
        assert!(world.db.get(key(i)).unwrap().is_some());
        assert!(world.db.get(key(count / 2 + i) + "x").unwrap().is_none());
    }
    world.load(count);
    assert!(world.jobs.overlaps() > 100, "jobs run side by side");
    world.db.compact().unwrap();
    let middle = key(count / 2).into_bytes();
    let bits = |file: &File| file.filter_bytes as f64 * 8.0 / file.entries as f64;
    let (mut lower, mut upper) = (Vec::new(), Vec::new());
    for (_, _, file) in files(&version(&world.db)).into_iter().filter(|f| f.2.entries > 500) {
        if *file.largest < *middle {
            lower.push(bits(&file));
        } else if *file.smallest > *middle {
            upper.push(bits(&file));
        }
    }
    assert!(world.db.verify().unwrap().is_ok());
    let mean = |bits: &[f64]| bits.iter().sum::<f64>() / bits.len() as f64;
    (mean(&lower), mean(&upper))
}

/// New filters follow the statistics: they have next to no bits where every query is a hit, in any
/// interleaving of jobs. `WINDROW_SEEDS=n` tries n orders.
#[test]
fn filters_go_where_queries_are_in_vain() {
    let seeds = std::env::var("WINDROW_SEEDS").map_or(2, |n| n.parse().unwrap());
    // 2 and 9 found the effect of noise at a threshold, and hits that count twice.
    for seed in [2, 9].into_iter().chain(100..100 + seeds) {
        let (lower, upper) = bits_learnt(seed);
        println!("seed {seed}: {lower:.2} bits where all is found, {upper:.2} where nothing is");
        assert!(lower < upper / 3.0 && upper > 5.0, "seed {seed}: {lower} and {upper}");
    }
}

/// Filters take no more than the budget, in the middle of jobs too.
#[test]
fn filters_stay_within_their_memory() {
    for (preset, bits) in [
        (MNEMOSYNE, 4.0),
        ("leveled shape=leveling(t=4) level0=tiered(k=2) filters=monkey(bits=3)", 3.0),
        ("mnemosyne filters=mnemosyne(bits=2)", 2.0),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let mut options = options(preset);
        if bits == 2.0 {
            // Filters in partitions.
            options.settings.partition_bytes = 4 << 10;
            options.settings.file_bytes = 512 << 10;
        }
        let mut world = World::open(dir.path(), options, 7);
        let db = world.db.clone();
        let mut random = Random(7);
        let mut used = Vec::new();
        let share = |version: &Version| {
            let sum = |of: fn(&File) -> u64| files(version).iter().map(|f| of(&f.2)).sum::<u64>();
            let (filters, entries) = (sum(|f| f.filter_bytes), sum(|f| f.entries));
            filters as f64 * 8.0 / (entries as f64 * bits).max(1.0)
        };
        for round in 0..30u64 {
            for step in 0..3000 {
                let i = random.below(30_000);
                match random.below(20) {
                    0 => db.delete(key(i)).unwrap(),
                    _ => db.put(key(i), value(i)).unwrap(),
                }
                db.get(key(random.below(40_000) * (1 + round % 2))).unwrap();
                world.pass_time();
                if step % 500 == 0 {
                    let now = version(&db);
                    assert!(share(&now) <= 1.0, "{preset}, round {round}.{step}:\n{now}");
                }
            }
            if round % 10 == 9 {
                db.compact().unwrap();
            } else {
                db.flush().unwrap();
                db.wait_idle().unwrap();
            }
            let now = version(&db);
            used.push(share(&now));
            assert!(*used.last().unwrap() <= 1.0, "{preset}, round {round}: {used:?}\n{now}");
        }
        let mean = used[10..].iter().sum::<f64>() / used[10..].len() as f64;
        println!("{preset}: {mean:.3} of the memory is used on average");
        assert!(mean > 0.8, "{preset}: {mean} of the memory is used: {used:?}");
        assert!(db.verify().unwrap().is_ok());
    }
}

/// As data grows beyond memory filters get shorter, so that indexes and filters still fit in it.
/// Otherwise a get would read them from the device over and over, at ten times the price of a false
/// positive.
#[test]
fn filters_take_what_there_is_memory_for() {
    for preset in ["uniform(bits=20)", "monkey(bits=20)", "mnemosyne(bits=20,stays=0.97)"] {
        let (env, _handles) = windrow_env::testing::env(1);
        let mut options = Options::default();
        options.components.env = Some(env);
        options.settings.memory_bytes = 8 << 20;
        options.settings.preset = format!("windrow filters={preset}");
        let db = Db::open_with("db", options).unwrap();
        let mut bits = Vec::new();
        for round in 0..3 {
            for from in (0..800_000u64).step_by(500) {
                let mut batch = windrow::Batch::new();
                (from..from + 500).for_each(|i| {
                    batch.put(
                        &db,
                        (i * 3 + round).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes(),
                        b"",
                    );
                });
                db.write(batch, windrow::WriteSync::No).unwrap();
            }
            db.flush().unwrap();
            db.compact().unwrap();
            let files = files(&version(&db));
            let sum = |of: fn(&File) -> u64| files.iter().map(|f| of(&f.2)).sum::<u64>() as f64;
            bits.push(sum(|file| file.filter_bytes) * 8.0 / sum(|file| file.entries));
            for i in 0..20_000u64 {
                let key = (i * 3).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes();
                assert!(db.get(key).unwrap().is_some());
            }
            let stats = db.stats();
            println!("{preset}: {bits:.2?}, {} of tables", stats.memory.tables_bytes);
        }
        assert!(bits[0] > 18.0 && (7.0..14.0).contains(&bits[2]), "{preset}: {bits:.2?}");
    }
}

/// The default after a load, before any lookup: most of the filter memory is in filters, and not
/// kept for upper levels that were full for a while. (It was 7.6 bits a key when the filters of
/// those levels were not part of the memory that is kept for them; a single table there may still
/// be without.)
#[test]
fn a_load_without_lookups_leaves_filters_for_absent_keys() {
    let dir = tempfile::tempdir().unwrap();
    let mut world = World::open(dir.path(), options("windrow"), 1);
    world.load(200_000);
    let version = version(&world.db);
    let sum = |of: fn(&File) -> u64| files(&version).iter().map(|f| of(&f.2)).sum::<u64>() as f64;
    let bits = sum(|file| file.filter_bytes) * 8.0 / sum(|file| file.entries);
    println!("{bits:.2} bits a key of 10");
    assert!(bits > 8.5, "{bits}: {version}");
}

/// A filter that lets a lookup through to a tombstone was right.
#[test]
fn a_tombstone_found_is_a_hit() {
    let dir = tempfile::tempdir().unwrap();
    // Nothing is merged.
    let preset = "mnemosyne level0=tiered(k=100)";
    let mut world = World::open(dir.path(), options(preset), 1);
    world.load(20_000);
    let db = world.db;
    for i in 0..1000 {
        db.delete(key(i * 20)).unwrap();
    }
    db.flush().unwrap();
    db.wait_idle().unwrap();
    let mut random = Random(5);
    let keys: Vec<String> = (0..100).map(|_| key(random.below(1000) * 20)).collect();
    for _ in 0..500 {
        assert!(keys.iter().all(|key| db.get(key).unwrap().is_none()));
        assert!(db.multi_get(&keys).into_iter().all(|got| got.unwrap().is_none()));
    }
    db.close().unwrap();
    let db = World::open(dir.path(), options(preset), 2).db;
    let newest = files(&version(&db)).remove(0);
    assert!(newest.2.point_tombstones == 1000, "{:?}", newest.2);
    let (estimate, now) = statistics(&newest.2).unwrap();
    assert!(now > 1200, "both kinds of look-up are recorded: {now}");
    assert!(estimate.queries > 0.9 * now as f64 && estimate.empty() < 1.0, "{estimate:?} of {now}");
}

/// A database that was never under the policy learns, and nothing is recorded under others.
#[test]
fn a_switch_of_policy_begins_without_statistics() {
    let dir = tempfile::tempdir().unwrap();
    let ask = |db: &Db| {
        for i in 0..50_000u64 {
            db.get(key(i % 20_000)).unwrap();
        }
    };
    let mut world = World::open(dir.path(), options("leveled"), 1);
    world.load(20_000);
    ask(&world.db);
    world.db.close().unwrap();
    let db = World::open(dir.path(), options("leveled"), 2).db;
    assert!(files(&version(&db)).iter().all(|f| f.2.statistics.is_empty()));
    db.close().unwrap();
    let db = World::open(dir.path(), options(MNEMOSYNE), 3).db;
    ask(&db);
    db.close().unwrap();
    let db = World::open(dir.path(), options("leveled"), 4).db;
    assert!(files(&version(&db)).iter().all(|f| statistics(&f.2).is_some()));
}

/// The cost of recording: the same tables, all cached, with and without.
#[test]
#[ignore = "prints times"]
#[allow(clippy::disallowed_methods)] // it measures the machine, not the library
fn time_of_recording() {
    let large = |preset: &str| {
        let mut options = options(preset);
        options.settings.memory_bytes = 256 << 20;
        options
    };
    let count = 200_000;
    let presets = ["leveled shape=leveling(t=4)", "mnemosyne shape=leveling(t=4)"];
    let keys: Vec<String> = (0..count).map(|i| key(i * 7919 % count)).collect();
    let ask = |db: &Db| keys.iter().filter(|key| db.get(key).unwrap().is_some()).count() as u64;
    let dirs = presets.map(|_| tempfile::tempdir().unwrap());
    let stores = [0, 1].map(|i| {
        let mut world = World::open(dirs[i].path(), large(presets[0]), 1);
        world.load(count);
        world.db.compact().unwrap();
        world.load(count / 10);
        let db = world.db;
        db.close().unwrap();
        let db = Db::open_with(dirs[i].path(), large(presets[i])).unwrap();
        assert_eq!(ask(&db), count);
        db
    });
    let mut times = [Vec::new(), Vec::new()];
    for round in 0..40 {
        for at in [round % 2, 1 - round % 2] {
            let begin = std::time::Instant::now();
            assert_eq!(ask(&stores[at]), count);
            times[at].push(begin.elapsed().as_nanos() as f64 / count as f64);
        }
    }
    for (preset, times) in presets.iter().zip(&mut times) {
        times.sort_by(f64::total_cmp);
        let [least, quarter, median] = [0, times.len() / 4, times.len() / 2].map(|i| times[i]);
        println!("{preset}: least {least:.0}, quarter {quarter:.0}, median {median:.0} ns a get");
    }
}

/// Puts `puts` values of `value_bytes` under `keys` keys, in an order that jumps, and waits for all merges.
fn of_large_values(settings: &[(&str, &str)], puts: u64, keys: u64, value_bytes: usize) -> Db {
    let (env, _handles) = windrow_env::testing::env(1);
    let mut options = Options::default();
    options.components.env = Some(env);
    settings.iter().for_each(|(name, value)| options.settings.set(name, value).unwrap());
    let db = Db::open_with("db", options).unwrap();
    for n in 0..puts {
        db.put(format!("{:06}", n * 7_919 % keys), vec![n as u8; value_bytes]).unwrap();
    }
    db.flush().unwrap();
    db.wait_idle().unwrap();
    db
}

/// A filter is made of whole lines, so that few keys take more than their bits. Each table still
/// has one: without it, a get of a large value reads it from a table, and reads others in vain.
#[test]
fn tables_of_few_keys_have_filters() {
    let settings = [("memory_bytes", "16MiB"), ("memtable_bytes", "1MiB"), ("compression", "none")];
    let db = of_large_values(&settings, 3_000, 500, 20_000);
    for (_, version) in inspect::trees(&db) {
        let without = version.files().filter(|(_, _, file)| file.filter_bytes == 0).count();
        assert_eq!(without, 0, "{} tables: {version}", version.files().count());
    }
    let before = db.stats();
    (0..500).for_each(|n| assert!(db.get(format!("{n:06}")).unwrap().is_some()));
    let after = db.stats();
    let wasted = after.filter_checks
        - before.filter_checks
        - (after.filter_negatives - before.filter_negatives)
        - 500;
    assert!(wasted < 25, "{wasted} of 500 gets searched a table in vain");
}

/// In a filter of five lines one line less is a fifth less. Tables of some hundred keys have their
/// bits whatever that rounding takes.
#[test]
fn tables_of_some_hundred_keys_have_their_bits() {
    let settings = [("memory_bytes", "16MiB"), ("compression", "none")];
    let db = of_large_values(&settings, 4_000, 2_800, 16_384);
    let trees = inspect::trees(&db);
    let files = || trees.iter().flat_map(|(_, version)| version.files());
    assert!(files().any(|(_, _, file)| file.entries > 205), "all tables are small");
    for (level, _, file) in files() {
        let bits = file.filter_bytes as f64 * 8.0 / file.entries as f64;
        assert!(bits >= 10.0, "{bits} bits for each of {} keys in level {level}", file.entries);
    }
}
