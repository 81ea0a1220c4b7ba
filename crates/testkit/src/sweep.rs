//! Many cases on all processors. The first failure is reported with the line
//! that repeats it. A long case is named, since it may never end; but the
//! machine may be slow, so no verdict depends on it.
//!
//! Owns: the threads. Never does: know what a case is.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "tests share out cases over real threads, and time their hangs by the real clock"
)]

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// A case that takes longer is named, again after each further such time.
const LONG: Duration = Duration::from_secs(120);

/// The state that all threads share.
struct Sweep<T> {
    next: AtomicU64,
    end: u64,
    failed: AtomicBool,
    failure: Mutex<Option<(u64, String)>>,
    total: Mutex<Option<T>>,
}

/// The case that a thread runs, and the time when it began or was last named.
type Running = Mutex<Option<(u64, Instant)>>;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<T> Sweep<T> {
    /// Takes cases until none is left or one has failed.
    fn work(
        &self,
        running: &Running,
        case: &(impl Fn(u64) -> Result<T, String> + Sync),
        sum: &(impl Fn(T, T) -> T + Sync),
    ) {
        let mut sub_total: Option<T> = None;
        loop {
            let index = self.next.fetch_add(1, Ordering::Relaxed);
            if index >= self.end || self.failed.load(Ordering::Relaxed) {
                break;
            }
            *lock(running) = Some((index, Instant::now()));
            let outcome = catch_unwind(AssertUnwindSafe(|| case(index)));
            match outcome.unwrap_or_else(|panic| Err(panic_text(&*panic))) {
                Ok(value) => {
                    sub_total = Some(match sub_total {
                        Some(total) => sum(total, value),
                        None => value,
                    });
                }
                Err(why) => self.fail(index, why),
            }
        }
        *lock(running) = None;
        let mut total = lock(&self.total);
        *total = match (total.take(), sub_total) {
            (Some(a), Some(b)) => Some(sum(a, b)),
            (a, b) => a.or(b),
        };
    }

    fn fail(&self, index: u64, why: String) {
        self.failed.store(true, Ordering::Relaxed);
        let mut failure = lock(&self.failure);
        if failure.as_ref().is_none_or(|(first, _)| index < *first) {
            *failure = Some((index, why));
        }
    }
}

/// Runs `case` for every index, on all processors, and sums the results. After a failure no new
/// case starts.
///
/// # Errors The failed case with the lowest index among those run: its index, and the error of
/// `case` (or its panic).
pub fn run<T: Send>(
    cases: Range<u64>,
    case: impl Fn(u64) -> Result<T, String> + Sync,
    sum: impl Fn(T, T) -> T + Sync,
) -> Result<Option<T>, (u64, String)> {
    let sweep = Sweep {
        next: AtomicU64::new(cases.start),
        end: cases.end,
        failed: AtomicBool::new(false),
        failure: Mutex::new(None),
        total: Mutex::new(None),
    };
    let threads = thread::available_parallelism().map_or(2, usize::from);
    let running: Vec<Running> = (0..threads).map(|_| Mutex::new(None)).collect();
    thread::scope(|scope| {
        let (sweep, case, sum) = (&sweep, &case, &sum);
        let start = |running| scope.spawn(move || sweep.work(running, case, sum));
        let workers: Vec<_> = running.iter().map(start).collect();
        while workers.iter().any(|worker| !worker.is_finished()) {
            thread::sleep(Duration::from_millis(20));
            running.iter().for_each(name_if_long);
        }
    });
    match lock(&sweep.failure).take() {
        Some(failure) => Err(failure),
        None => Ok(lock(&sweep.total).take()),
    }
}

fn name_if_long(running: &Running) {
    if let Some((index, since)) = &mut *lock(running)
        && since.elapsed() > LONG
    {
        eprintln!("case {index} is not done after another {} s", LONG.as_secs());
        *since = Instant::now();
    }
}

/// Returns the message of a panic.
pub fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
    format!("panicked: {}", text.unwrap_or("(not a text)"))
}

/// Returns the number in an environment variable, or `default`.
///
/// # Panics
/// If it is set to something else.
pub fn number(variable: &str, default: u64) -> u64 {
    match std::env::var(variable) {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{variable}={text} is not a number")),
        Err(_) => default,
    }
}
