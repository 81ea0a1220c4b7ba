//! Scheduling class of background threads.
//!
//! Owns: the nice value. Never does: fail; a system that refuses leaves the normal priority.

/// Nice value of threads that run merges: about a third of a normal thread's share under
/// contention, and all idle time otherwise.
const BACKGROUND_NICE: i32 = 5;

/// Marks the calling thread as batch work, which does not preempt others when it wakes, and lowers
/// its share. Best effort: on a system that refuses, it keeps its normal priority.
pub(crate) fn lower_priority_of_this_thread() {
    let param = libc::sched_param { sched_priority: 0 };
    // SAFETY: `param` lives through the call; 0 names the calling thread.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_BATCH, &param) };
    // On Linux the nice value belongs to the thread, and "no pid" is the caller.
    let _ = rustix::process::setpriority_process(None, BACKGROUND_NICE);
}
