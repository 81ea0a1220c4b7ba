//! Consumers of the feed of changes next to a phase's clients: each reads every change as it comes, and
//! what is left once the clients are done.
//!
//! Owns: their threads and figures. Never does: change the store.

use super::backups::OverAtEnd;
use super::measure::Figures;
use crate::process::mib;
use crate::store::Result;
use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use windrow::changes::{Change, ChangeOptions, Changes, Operation};
use windrow::{Db, ErrorKind, SeqNo};

/// The time between two looks whether the clients are done.
const LOOK: Duration = Duration::from_millis(10);

/// The changes that a consumer has read.
#[derive(Clone, Copy, Debug, Default)]
struct Consumed {
    operations: u64,
    /// Bytes of keys and values.
    bytes: u64,
    /// Operations that it had not read when the clients were done.
    behind: u64,
    /// Operations whose logs were gone before it came to them.
    missed: u64,
}

/// The changes that some consumers have read.
#[derive(Debug)]
pub(super) struct Sums(Vec<Consumed>);

/// Does work next to some consumers, which have read all of it in the end.
pub(super) fn next_to<T>(
    db: &Db,
    count: u32,
    work: impl FnOnce() -> Result<T>,
) -> Result<(T, Sums)> {
    let over = AtomicBool::new(false);
    let from = db.snapshot().seq() + 1;
    std::thread::scope(|scope| {
        let consumers: Vec<_> =
            (0..count).map(|_| scope.spawn(|| consume(db, from, &over))).collect();
        let at_end = OverAtEnd(&over);
        let done = work();
        drop(at_end);
        let consumed = consumers.into_iter().map(|consumer| {
            Ok(consumer.join().map_err(|_| "a consumer of changes panicked")??)
        });
        Ok((done?, Sums(consumed.collect::<Result<_>>()?)))
    })
}

fn consume(db: &Db, from: SeqNo, over: &AtomicBool) -> windrow::Result<Consumed> {
    let mut consumed = Consumed::default();
    let mut changes = db.changes(from, ChangeOptions::default())?;
    let mut end = None;
    loop {
        if end.is_none() && over.load(Ordering::Relaxed) {
            let last = db.snapshot().seq();
            consumed.behind = last + 1 - changes.next_seq();
            end = Some(last);
        }
        if end.is_some_and(|last| last < changes.next_seq()) {
            return Ok(consumed);
        }
        match changes.next_within(LOOK) {
            Ok(Some(change)) => consumed.take(&change),
            Ok(None) => {}
            Err(error) if error.kind() == ErrorKind::InvalidArgument => {
                let next_seq = changes.next_seq();
                changes = go_on(db)?;
                consumed.missed += changes.next_seq() - next_seq;
            }
            Err(error) => return Err(error),
        }
    }
}

/// Goes on where the logs begin, which may be elsewhere a moment later.
fn go_on(db: &Db) -> windrow::Result<Changes> {
    loop {
        match db.changes(db.stats().changes_begin, ChangeOptions::default()) {
            Err(error) if error.kind() == ErrorKind::InvalidArgument => {}
            changes => return changes,
        }
    }
}

impl Consumed {
    fn take(&mut self, change: &Change) {
        for operation in &change.operations {
            if let Operation::Put { key, value, .. } = black_box(operation) {
                self.bytes += (key.len() + value.len()) as u64;
            }
        }
        self.operations += change.operations.len() as u64;
    }
}

impl Sums {
    /// Sets the figures of the consumers: of each, on the average.
    pub(super) fn figures(&self, figures: &mut Figures) {
        let count = self.0.len() as f64;
        let mut set = |name: &str, sum: f64| figures.insert(name.to_owned(), sum / count);
        let sum = |of: fn(&Consumed) -> u64| self.0.iter().map(of).sum::<u64>() as f64;
        set("consumer_kops", sum(|consumed| consumed.operations) / 1000.0);
        set("consumer_mib", mib(self.0.iter().map(|consumed| consumed.bytes).sum()));
        set("consumer_behind_kops", sum(|consumed| consumed.behind) / 1000.0);
        set("consumer_missed_kops", sum(|consumed| consumed.missed) / 1000.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn consumers_read_all_that_is_written_meanwhile() {
        let dir = tempfile::tempdir().unwrap();
        let db = Db::open(dir.path()).unwrap();
        db.put("before", "1").unwrap();
        let write = || -> Result<()> {
            for n in 0..2000u64 {
                db.put(n.to_be_bytes(), [0; 92])?;
            }
            Ok(())
        };
        let ((), sums) = next_to(&db, 3, write).unwrap();
        let mut figures = Figures::new();
        sums.figures(&mut figures);
        assert_eq!(figures["consumer_kops"], 2.0, "{figures:?}");
        assert_eq!(figures["consumer_mib"], mib(2000 * 100));
        assert_eq!(figures["consumer_missed_kops"], 0.0);
        assert!(next_to(&db, 1, || -> Result<()> { Err("a failure".into()) }).is_err());
    }
}
