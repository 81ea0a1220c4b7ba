//! Forked children, for tests of the state that they inherit.
//!
//! Owns: the child until it ends; a signal ends one that hangs, and `wait` shows it. Never does:
//! anything in a released program.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// A child that takes longer hangs on a lock that no thread of it will release.
const HANGS_S: u32 = 60;
/// The exit code of a child whose work panicked.
const PANICKED: i32 = 101;

/// A child made by `fork`: one thread, and copies of all other state.
#[derive(Debug)]
pub struct ForkedChild {
    pid: libc::pid_t,
}

impl ForkedChild {
    /// Runs `work` in a child, which then ends by `_exit` with the code that `work` returns (0 to
    /// 255), unless `work` ends it in another way. A child that takes more than a minute is ended
    /// by SIGALRM.
    ///
    /// # Errors
    /// The error of the system.
    pub fn start(work: impl FnOnce() -> i32) -> std::io::Result<ForkedChild> {
        // SAFETY: the child has this thread alone. It runs nothing of the
        // others', and leaves by `_exit`, without their stacks or destructors.
        let pid = unsafe { libc::fork() };
        if pid < 0 {
            return Err(std::io::Error::last_os_error());
        }
        if pid == 0 {
            // SAFETY: takes no pointer.
            unsafe { libc::alarm(HANGS_S) };
            let code = catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
                tell(&*panic);
                PANICKED
            });
            // SAFETY: takes no pointer; nothing of this process is needed any more.
            unsafe { libc::_exit(code) };
        }
        Ok(ForkedChild { pid })
    }

    /// The child's process id.
    pub fn id(&self) -> u32 {
        self.pid.unsigned_abs()
    }

    /// Waits for the child's end. Returns its exit code, or `None` if a signal ended it.
    ///
    /// # Errors
    /// The error of the system.
    pub fn wait(self) -> std::io::Result<Option<i32>> {
        let mut status = 0;
        // SAFETY: `status` lives throughout the call, which writes one integer.
        while unsafe { libc::waitpid(self.pid, &raw mut status, 0) } < 0 {
            let error = std::io::Error::last_os_error();
            if error.kind() != std::io::ErrorKind::Interrupted {
                return Err(error);
            }
        }
        Ok(libc::WIFEXITED(status).then(|| libc::WEXITSTATUS(status)))
    }
}

/// Writes the message of a child's panic. The panic hook's output goes into a buffer of the test,
/// and the child's copy of that is never read.
fn tell(panic: &(dyn Any + Send)) {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref().copied()).unwrap_or("a panic");
    let line = format!("forked child {}: {text}\n", std::process::id());
    // SAFETY: the pointer is to `line.len()` bytes, which live throughout the call.
    unsafe { libc::write(libc::STDERR_FILENO, line.as_ptr().cast(), line.len()) };
}

/// Returns whether `work` is true in a forked child, and the child ends by itself.
///
/// # Panics
/// If the system gives no child process.
pub fn in_child(work: impl FnOnce() -> bool) -> bool {
    let child = ForkedChild::start(|| i32::from(!work())).expect("a child process");
    child.wait().expect("its end") == Some(0)
}
