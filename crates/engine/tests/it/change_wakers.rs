//! The wakers of consumers of changes.

use crate::changes::{from, open};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;
use windrow::ErrorKind;
use windrow_env::Clock;
use windrow_env::testing::env;

/// Counts how often it is woken.
#[derive(Default)]
struct Count(AtomicU64);

impl Wake for Count {
    fn wake(self: Arc<Count>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn a_write_wakes_a_task_once() {
    let (_, handles) = env(1);
    let db = open(&handles, 1 << 30);
    let mut changes = from(&db, 1).unwrap();
    let count = Arc::new(Count::default());
    let waker = Waker::from(count.clone());
    let mut context = Context::from_waker(&waker);
    assert!(changes.poll_next(&mut context).is_pending());
    assert!(changes.poll_next(&mut context).is_pending());
    db.put("a", "1").unwrap();
    db.put("b", "2").unwrap();
    assert_eq!(count.0.load(Ordering::Relaxed), 1);
    for seq in [1, 2] {
        match changes.poll_next(&mut context) {
            Poll::Ready(change) => assert_eq!(change.unwrap().seq, seq),
            Poll::Pending => panic!("change {seq} is there"),
        }
    }
    assert!(changes.poll_next(&mut context).is_pending());
    db.keyspace("users").unwrap();
    assert!(changes.poll_next(&mut context).is_pending());
    let woken = count.0.load(Ordering::Relaxed);
    db.drop_keyspace("users").unwrap();
    assert!(woken < count.0.load(Ordering::Relaxed), "a drop is a change");
    assert!(changes.poll_next(&mut context).is_ready());
    assert!(changes.poll_next(&mut context).is_pending());
    let woken = count.0.load(Ordering::Relaxed);
    db.close().unwrap();
    assert!(woken < count.0.load(Ordering::Relaxed), "a close is an end");
    let Poll::Ready(Err(error)) = changes.poll_next(&mut context) else { panic!("it goes on") };
    assert_eq!(error.kind(), ErrorKind::Closed);
}

/// Else a consumer that looks again and again into a database at rest would leave a waker each time.
#[test]
fn a_consumer_is_woken_by_its_last_waker_alone() {
    let (_, handles) = env(1);
    let db = open(&handles, 1 << 30);
    let (mut changes, mut other) = (from(&db, 1).unwrap(), from(&db, 1).unwrap());
    let counts: Vec<Arc<Count>> = (0..3).map(|_| Arc::default()).collect();
    let wakers: Vec<Waker> = counts.iter().cloned().map(Waker::from).collect();
    let woken = || counts.iter().map(|count| count.0.load(Ordering::Relaxed)).collect::<Vec<_>>();
    for waker in &wakers {
        assert!(changes.poll_next(&mut Context::from_waker(waker)).is_pending());
    }
    assert!(other.poll_next(&mut Context::from_waker(&wakers[1])).is_pending());
    db.put("a", "1").unwrap();
    assert_eq!(woken(), [0, 1, 1]);
    for changes in [&mut changes, &mut other] {
        assert!(changes.poll_next(&mut Context::from_waker(&wakers[0])).is_ready());
        assert!(changes.poll_next(&mut Context::from_waker(&wakers[0])).is_pending());
    }
    // One of two that share a waker is gone.
    drop(changes);
    db.put("b", "2").unwrap();
    assert_eq!(woken(), [1, 1, 1]);
    assert!(other.poll_next(&mut Context::from_waker(&wakers[0])).is_ready());
    assert!(other.poll_next(&mut Context::from_waker(&wakers[0])).is_pending());
    drop(other);
    db.put("c", "3").unwrap();
    assert_eq!(woken(), [1, 1, 1]);
}

/// Else one that keeps up with a busy writer reads the log for each batch, and is woken for it.
#[test]
fn a_consumer_that_waits_reads_the_log_once_in_a_millisecond() {
    let (_, handles) = env(1);
    let db = open(&handles, 1 << 30);
    let mut changes = from(&db, 1).unwrap();
    let begin_ns = handles.clock.monotonic_ns();
    let mut took_us = |timeout_us: u64| {
        let change = changes.next_within(Duration::from_micros(timeout_us)).unwrap();
        (change.unwrap().seq, (handles.clock.monotonic_ns() - begin_ns) / 1000)
    };
    db.put("a", "1").unwrap();
    assert_eq!(took_us(5000), (1, 0), "the first one comes at once");
    db.put("b", "2").unwrap();
    db.put("c", "3").unwrap();
    assert_eq!(took_us(5000), (2, 1000));
    assert_eq!(took_us(5000), (3, 1000), "it was read with the one before");
    db.put("d", "4").unwrap();
    assert_eq!(took_us(100), (4, 1100), "no wait is longer than it was asked for");
    db.put("e", "5").unwrap();
    handles.clock.sleep_ns(2_000_000);
    assert_eq!(took_us(5000), (5, 3100), "a rest has passed");
    for _ in 0..8 {
        db.put("large", vec![1; 100 << 10]).unwrap();
    }
    for seq in 6..14 {
        assert_eq!(took_us(5000), (seq, 4100), "one that is behind reads on at once");
    }
}
