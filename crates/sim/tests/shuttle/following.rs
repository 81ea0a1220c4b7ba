//! Scenarios of a follower next to a writer, whose tables come and go.

use crate::machine::{DIR, Machine, draw, spaces};
use crate::runner::check;
use shuttle::sync::Arc;
use shuttle::sync::atomic::{AtomicU64, Ordering};
use shuttle::thread;
use windrow::{Batch, Db, Result, WriteSync};

/// Batches that the writer writes.
const BATCHES: u64 = 6;

/// Returns the number of the last batch that a database shows.
fn seen(db: &Db) -> Result<u64> {
    let number = |name: &str| -> Result<u64> {
        let Some(space) = db.open_keyspace(name)? else { return Ok(0) };
        Ok(space.get("number")?.map_or(0, |value| u64::from(value[0])))
    };
    let (first, second) = (number("default")?, number("other")?);
    assert_eq!(first, second, "half of a batch");
    let entries = db.count("entry".."entrz")?;
    assert_eq!(entries, first.min(3), "entries of {first} batches");
    Ok(first)
}

fn write(db: &Db, acknowledged: &AtomicU64) -> Result<()> {
    let [first, second] = spaces(db);
    for number in 1..=BATCHES {
        let mut batch = Batch::new();
        batch.put(&first, "number", [number as u8]);
        batch.put(&first, format!("entry{}", number % 3), vec![0; 2_000]);
        batch.put(&second, "number", [number as u8]);
        db.write(batch, if draw(4) == 0 { WriteSync::Yes } else { WriteSync::No })?;
        acknowledged.store(number, Ordering::Release);
        match draw(6) {
            0 => db.flush()?,
            1 => db.compact()?,
            _ => {}
        }
    }
    Ok(())
}

#[test]
fn a_follower_sees_prefixes() {
    check("a_follower_sees_prefixes", || {
        let machine = Machine::new();
        let (db, jobs) = machine.open(DIR);
        db.keyspace("other").expect("a keyspace");
        let acknowledged = Arc::new(AtomicU64::new(0));
        let writer = {
            let (db, acknowledged) = (db.clone(), acknowledged.clone());
            thread::spawn(move || write(&db, &acknowledged))
        };
        let (follower, _follower_jobs) = machine.follow(DIR);
        let mut last = (0, follower.db());
        for _ in 0..3 {
            let before = acknowledged.load(Ordering::Acquire);
            follower.refresh().expect("refresh");
            let db = follower.db();
            let number = seen(&db).expect("a read");
            assert!(before <= number, "{before} batches were acknowledged, {number} are seen");
            assert!(last.0 <= number, "{} batches were seen, and then {number}", last.0);
            // An earlier state is unchanged.
            if last.0 > 0 {
                assert_eq!(seen(&last.1).expect("a read of before"), last.0);
            }
            last = (number, db);
            jobs.fire();
        }
        writer.join().expect("the writer").expect("a write");
        db.close().expect("close");
        follower.refresh().expect("refresh after the close");
        assert_eq!(seen(&follower.db()).expect("a read after the close"), BATCHES);
    });
}
