//! Completions over time: one thread's as they come, all threads' together.
//!
//! A run is cut into slots of 10 ms. Each keeps how many operations completed
//! in it and when the first and the last did. That is enough for steps of a
//! second, for stalls, and for the longest gap across threads, and takes 12
//! bytes for 10 ms of a run. Keeping every completion would disturb the caches
//! that are measured.
//!
//! Owns: that arithmetic. Never does: look at a clock.

/// Length of a slot.
pub(super) const SLOT_NS: u64 = 10_000_000;

/// Runs of ten steps and more have steps of a second.
const LONG_STEP_NS: u64 = 1_000_000_000;
const SHORT_STEP_NS: u64 = 100_000_000;

/// The completions in a slot. Times count from the slot's start.
#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    done: u32,
    first_ns: u32,
    last_ns: u32,
}

/// Completions since the start of a run.
#[derive(Clone, Debug, Default)]
pub(super) struct Completions(Vec<Slot>);

/// The times in which nothing completed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Gaps {
    /// Whole slots throughout which an operation waited.
    pub(super) stalled_ns: u64,
    /// The longest time that an operation waited and none completed.
    pub(super) longest_ns: u64,
}

impl Completions {
    /// Records a completion. Those of one thread come in order.
    pub(super) fn record(&mut self, end_ns: u64) {
        let (at, within_ns) = ((end_ns / SLOT_NS) as usize, (end_ns % SLOT_NS) as u32);
        if self.0.len() <= at {
            self.0.resize(at + 1, Slot::default());
        }
        let slot = &mut self.0[at];
        if slot.done == 0 {
            slot.first_ns = within_ns;
        }
        slot.done += 1;
        slot.last_ns = within_ns;
    }

    /// Adds another thread's timeline.
    pub(super) fn add(&mut self, other: &Completions) {
        if self.0.len() < other.0.len() {
            self.0.resize(other.0.len(), Slot::default());
        }
        for (ours, others) in self.0.iter_mut().zip(&other.0) {
            if others.done == 0 {
                continue;
            }
            if ours.done == 0 {
                *ours = *others;
                continue;
            }
            ours.done += others.done;
            ours.first_ns = ours.first_ns.min(others.first_ns);
            ours.last_ns = ours.last_ns.max(others.last_ns);
        }
    }

    /// Returns the completions of each step, and the step's length.
    pub(super) fn steps(&self, elapsed_ns: u64) -> (Vec<u64>, u64) {
        let long = 10 * LONG_STEP_NS <= elapsed_ns;
        let step_ns = if long { LONG_STEP_NS } else { SHORT_STEP_NS };
        let slots = self.0.chunks((step_ns / SLOT_NS) as usize);
        (slots.map(|step| step.iter().map(|slot| u64::from(slot.done)).sum()).collect(), step_ns)
    }

    /// Returns the gaps until `end_ns` in which nothing completed although
    /// something was due: `due_ns(n)` is the time when the `n`th of all
    /// operations was due. An idle client is no stall.
    pub(super) fn gaps(&self, end_ns: u64, due_ns: impl Fn(u64) -> u64) -> Gaps {
        let (mut gaps, mut done, mut last_ns) = (Gaps::default(), 0, 0);
        let slots =
            self.0.iter().chain(std::iter::repeat(&Slot { done: 0, first_ns: 0, last_ns: 0 }));
        // The slot of the end may be cut short: it does not count as a stall.
        let begins = (0..=end_ns).step_by(SLOT_NS as usize);
        for (slot, begin_ns) in slots.zip(begins) {
            let due_ns = due_ns(done);
            if slot.done == 0 {
                // An operation was waiting from the slot's start to its end.
                if due_ns <= begin_ns && begin_ns + SLOT_NS <= end_ns {
                    gaps.stalled_ns += SLOT_NS;
                }
                continue;
            }
            let first_ns = begin_ns + u64::from(slot.first_ns);
            let waited_ns = first_ns.saturating_sub(due_ns.max(last_ns));
            gaps.longest_ns = gaps.longest_ns.max(waited_ns);
            last_ns = begin_ns + u64::from(slot.last_ns);
            done += u64::from(slot.done);
        }
        let left_ns = end_ns.saturating_sub(due_ns(done).max(last_ns));
        gaps.longest_ns = gaps.longest_ns.max(left_ns);
        gaps
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn of_ms(times: impl IntoIterator<Item = u64>) -> Completions {
        let mut timeline = Completions::default();
        times.into_iter().for_each(|ms| timeline.record(ms * MS));
        timeline
    }

    /// Returns the gaps in the closed loop, in which something is always due.
    fn gaps(timeline: &Completions, end_ms: u64) -> Gaps {
        timeline.gaps(end_ms * MS, |_| 0)
    }

    #[test]
    fn a_gap_runs_across_threads() {
        // Alone, the threads pause for 60 and 65 ms, together for 40 at most.
        let mut both = of_ms([0, 5, 65, 70]);
        both.add(&of_ms([25, 90, 95]));
        // The slots 10, 30, 40, 50 and 80 are empty.
        assert_eq!(gaps(&both, 95), Gaps { stalled_ns: 50 * MS, longest_ns: 40 * MS });
        assert_eq!(both.steps(95 * MS), (vec![7], 100 * MS));
    }

    #[test]
    fn order_of_adding_does_not_matter() {
        let (a, b) = (of_ms([3, 7, 31]), of_ms([5, 42, 48, 99]));
        let (mut ab, mut ba) = (a.clone(), b.clone());
        ab.add(&b);
        ba.add(&a);
        assert_eq!(gaps(&ab, 99), gaps(&ba, 99));
        assert_eq!(gaps(&ab, 99).longest_ns, 51 * MS);
    }

    #[test]
    fn what_is_not_due_is_no_stall() {
        // An operation is due every 100 ms and takes 2; the sixth takes 45.
        let timeline = of_ms([2, 102, 202, 302, 402, 545]);
        let due = |n: u64| n * 100 * MS;
        let expected = Gaps { stalled_ns: 40 * MS, longest_ns: 45 * MS };
        assert_eq!(timeline.gaps(545 * MS, due), expected);
        assert_eq!(gaps(&timeline, 545).longest_ns, 143 * MS);
    }

    #[test]
    fn a_run_that_was_given_up_in_a_stall_has_it() {
        let timeline = of_ms([2, 102]);
        let due = |n: u64| n * 100 * MS;
        // The third, due at 200, was under way, during all of 200 to 450.
        let expected = Gaps { stalled_ns: 250 * MS, longest_ns: 255 * MS };
        assert_eq!(timeline.gaps(455 * MS, due), expected);
        assert_eq!(Completions::default().gaps(25 * MS, |_| 0).stalled_ns, 20 * MS);
    }

    #[test]
    fn steps_are_seconds_in_long_runs() {
        let every_second = of_ms((0..12).map(|s| s * 1000 + 500));
        assert_eq!(every_second.steps(11_500 * MS), (vec![1; 12], 1000 * MS));
        let (steps, step_ns) = of_ms([50, 150, 151, 351]).steps(351 * MS);
        assert_eq!((steps, step_ns), (vec![1, 2, 0, 1], 100 * MS));
    }
}
