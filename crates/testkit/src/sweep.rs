//! Many cases on all processors, the first failure reported with the line
//! that repeats it, and a watch over cases that never end.
//!
//! Owns: the threads. Never does: know what a case is.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "tests share out cases over real threads, and time their hangs by the real clock"
)]

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// A case that takes longer hangs.
const HANG: Duration = Duration::from_secs(120);

/// Runs `case` for every index, on all processors, and sums what they return.
/// After a failure no new case starts.
///
/// # Errors
/// The failed case with the lowest index among those run: its index, and what
/// `case` said (or that it panicked).
pub fn run<T: Send>(
    cases: Range<u64>,
    case: impl Fn(u64) -> Result<T, String> + Sync,
    sum: impl Fn(T, T) -> T + Sync,
) -> Result<Option<T>, (u64, String)> {
    let workers = thread::available_parallelism().map_or(2, usize::from);
    let next = AtomicU64::new(cases.start);
    let failed = AtomicBool::new(false);
    let failure: Mutex<Option<(u64, String)>> = Mutex::new(None);
    let total: Mutex<Option<T>> = Mutex::new(None);
    let running: Vec<Mutex<Option<(u64, Instant)>>> =
        (0..workers).map(|_| Mutex::new(None)).collect();
    let lock = |m: &Mutex<Option<(u64, String)>>, found: (u64, String)| {
        let mut slot = m.lock().unwrap_or_else(|e| e.into_inner());
        if slot.as_ref().is_none_or(|(index, _)| found.0 < *index) {
            *slot = Some(found);
        }
    };
    let work = |slot: &Mutex<Option<(u64, Instant)>>| {
        let mut sub_total: Option<T> = None;
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            if index >= cases.end || failed.load(Ordering::Relaxed) {
                break;
            }
            *slot.lock().unwrap_or_else(|e| e.into_inner()) = Some((index, Instant::now()));
            match catch_unwind(AssertUnwindSafe(|| case(index))) {
                Ok(Ok(value)) => {
                    sub_total = Some(match sub_total {
                        Some(total) => sum(total, value),
                        None => value,
                    });
                }
                Ok(Err(why)) => {
                    lock(&failure, (index, why));
                    failed.store(true, Ordering::Relaxed);
                }
                Err(panic) => {
                    lock(&failure, (index, panic_text(&*panic)));
                    failed.store(true, Ordering::Relaxed);
                }
            }
        }
        *slot.lock().unwrap_or_else(|e| e.into_inner()) = None;
        let mut total = total.lock().unwrap_or_else(|e| e.into_inner());
        *total = match (total.take(), sub_total) {
            (Some(a), Some(b)) => Some(sum(a, b)),
            (a, b) => a.or(b),
        };
    };
    thread::scope(|scope| {
        let workers: Vec<_> =
            running.iter().map(|slot| scope.spawn(|| work(slot))).collect();
        while workers.iter().any(|w| !w.is_finished()) {
            thread::sleep(Duration::from_millis(20));
            for slot in &running {
                if let Some((index, since)) = *slot.lock().unwrap_or_else(|e| e.into_inner())
                    && since.elapsed() > HANG
                {
                    // The thread cannot be stopped: the whole run ends here.
                    eprintln!("case {index} hangs");
                    std::process::exit(101);
                }
            }
        }
    });
    match failure.into_inner().unwrap_or_else(|e| e.into_inner()) {
        Some(failure) => Err(failure),
        None => Ok(total.into_inner().unwrap_or_else(|e| e.into_inner())),
    }
}

/// What a panic said.
pub fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
    format!("panicked: {}", text.unwrap_or("(not a text)"))
}

/// The number in an environment variable, or `default`.
///
/// # Panics
/// If it is set to something else.
pub fn number(variable: &str, default: u64) -> u64 {
    match std::env::var(variable) {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{variable}={text} is not a number")),
        Err(_) => default,
    }
}
