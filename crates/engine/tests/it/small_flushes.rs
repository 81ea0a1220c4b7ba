//! Flushes that are asked for early: by `flush`, a checkpoint, a backup.
//!
//! Owns: what they do to later merges. Never does: look at one table.

use crate::simulated_database::{DIR, options};
use windrow::{Db, WriteSync};
use windrow_env::testing::{Handles, Rng, env};

const RECORDS: u64 = 100_000;

/// Writes this number of records, scattered over all keys.
fn write((db, handles): (&Db, &Handles), rng: &mut Rng, count: u64) {
    let mut value = [0; 100];
    for n in 0..count {
        // No codec makes these smaller.
        value.fill_with(|| rng.next_u64() as u8);
        db.put_with(rng.below(RECORDS).to_be_bytes(), value, WriteSync::No).unwrap();
        if n % 1_000 == 0 {
            handles.jobs.run_until_idle();
        }
    }
}

/// In few files, the entries of a small flush would lie over all partitions of level 0, and tie them
/// together: one job would then rewrite all of level 1.
#[test]
fn small_flushes_tie_no_partitions_together() {
    let (_, handles) = env(1);
    let mut rng = Rng::new(1);
    let mut options = options(&handles);
    options.settings.memory_bytes = 32 << 20;
    options.settings.memtable_bytes = 4 << 20;
    options.settings.file_bytes = 256 << 10;
    let db = Db::open_with(DIR, options).unwrap();
    write((&db, &handles), &mut rng, 2 * RECORDS);
    let data = |db: &Db| db.stats().levels.iter().map(|level| level.shape.bytes).sum::<u64>();
    let longest = |db: &Db| db.stats().chains.bytes_max;
    let before = longest(&db);
    assert!(0 < before && before * 4 < data(&db), "{before} bytes in one job, of {}", data(&db));
    for _ in 0..6 {
        db.flush().unwrap();
        write((&db, &handles), &mut rng, 40);
        db.flush().unwrap();
        write((&db, &handles), &mut rng, RECORDS / 4);
    }
    let (longest, data) = (longest(&db), data(&db));
    assert!(longest <= before * 2, "{before} to {longest} bytes in one job, of {data}");
    db.close().unwrap();
}
