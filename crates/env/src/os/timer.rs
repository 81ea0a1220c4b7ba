//! Timers: a thread that sleeps until work is due, started with the first timer. The work itself
//! runs as an urgent job, so that slow work does not delay the others, and is due again an interval
//! after it ended.
//!
//! Owns: the thread, and the times at which work is due. Never does: run the work itself.

use super::job_queue::JobQueue;
use crate::jobs::Urgency;
use crate::lock_ranks;
use crate::sync::Arc;
use crate::sync::real::thread::{Builder, JoinHandle, current};
use crate::sync::real::{Condvar, Mutex};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::{Duration, Instant};

type Work = Arc<dyn Fn() -> bool + Send + Sync>;

struct Timer {
    due: Instant,
    interval: Duration,
    work: Work,
}

impl PartialEq for Timer {
    fn eq(&self, other: &Timer) -> bool {
        self.due == other.due
    }
}

impl Eq for Timer {}

impl PartialOrd for Timer {
    fn partial_cmp(&self, other: &Timer) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Timer {
    fn cmp(&self, other: &Timer) -> std::cmp::Ordering {
        self.due.cmp(&other.due)
    }
}

#[derive(Default)]
struct TimerState {
    waiting: BinaryHeap<Reverse<Timer>>,
    thread: Option<JoinHandle<()>>,
    shut_down: bool,
}

/// The timers of one pool.
pub(super) struct Timers {
    state: Mutex<TimerState>,
    changed: Condvar,
    queue: Arc<JobQueue>,
}

impl Timers {
    pub(super) fn new(queue: Arc<JobQueue>) -> Timers {
        Timers {
            state: Mutex::new(lock_ranks::TIMERS, TimerState::default()),
            changed: Condvar::new(),
            queue,
        }
    }

    /// Adds a timer, first due in one interval (of at least a millisecond).
    pub(super) fn add(this: &Arc<Timers>, interval_ms: u64, work: Work) {
        let interval = Duration::from_millis(interval_ms.max(1));
        this.arm(interval, work);
        let mut state = this.state.lock();
        if state.thread.is_none() && !state.shut_down {
            let timers = this.clone();
            // If the system gives no thread now, the next timer tries again.
            state.thread =
                Builder::new().name("windrow-timer".into()).spawn(move || timers.serve()).ok();
        }
    }

    #[allow(clippy::disallowed_methods)] // this is where intervals are measured
    fn arm(&self, interval: Duration, work: Work) {
        let mut state = self.state.lock();
        if state.shut_down {
            drop(state);
            drop(work);
            return;
        }
        state.waiting.push(Reverse(Timer { due: Instant::now() + interval, interval, work }));
        drop(state);
        self.changed.notify_one();
    }

    #[allow(clippy::disallowed_methods)] // as above
    fn serve(self: Arc<Timers>) {
        let mut state = self.state.lock();
        while !state.shut_down {
            let Some(Reverse(first)) = state.waiting.peek() else {
                self.changed.wait(&mut state);
                continue;
            };
            let due = first.due;
            if due > Instant::now() {
                self.changed.wait_until(&mut state, due);
                continue;
            }
            if let Some(Reverse(timer)) = state.waiting.pop() {
                drop(state);
                self.clone().fire(timer);
                state = self.state.lock();
            }
        }
    }

    fn fire(self: Arc<Timers>, timer: Timer) {
        let queue = self.queue.clone();
        let job = move || {
            // A panic in the work ends the timer.
            if !self.queue.is_shut_down() && (timer.work)() {
                self.arm(timer.interval, timer.work);
            }
        };
        queue.push(Urgency::High, Box::new(job));
    }

    /// Stops the timers. Returns the thread for the caller to join, unless the caller is that
    /// thread.
    pub(super) fn shut_down(&self) -> Option<JoinHandle<()>> {
        let mut state = self.state.lock();
        state.shut_down = true;
        let waiting = std::mem::take(&mut state.waiting);
        let thread = state.thread.take();
        drop(state);
        self.changed.notify_all();
        drop(waiting);
        thread.filter(|thread| thread.thread().id() != current().id())
    }
}
