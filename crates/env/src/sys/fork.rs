//! Forked children, for tests of what they inherit.
//!
//! Owns: the child until it ends; one that hangs is ended by a signal, and says so.
//! Never does: anything in a released program.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// A child that takes longer hangs: on a lock that nobody there will release.
const HANGS_S: u32 = 60;
/// Its work panicked.
const PANICKED: i32 = 101;

/// A child made by `fork`: one thread, and copies of all else.
#[derive(Debug)]
pub struct ForkedChild {
    pid: libc::pid_t,
}

impl ForkedChild {
    /// Runs `work` in a child, which then ends by `_exit` with what it returns
    /// (0 to 255), unless `work` ends it in another way. A child that takes more
    /// than a minute is ended by SIGALRM.
    ///
    /// # Errors
    /// What the system said.
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

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.pid.unsigned_abs()
    }

    /// Waits for its end. Its exit code, or `None` where a signal ended it.
    ///
    /// # Errors
    /// What the system said.
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

/// Says what a child panicked with. What the hook says goes into a buffer of the
/// test, whose child's copy nobody reads.
fn tell(panic: &(dyn Any + Send)) {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref().copied()).unwrap_or("a panic");
    let line = format!("forked child {}: {text}\n", std::process::id());
    // SAFETY: the pointer is to so many bytes, which live throughout the call.
    unsafe { libc::write(libc::STDERR_FILENO, line.as_ptr().cast(), line.len()) };
}

/// Whether `work` is true in a forked child, and the child ends as it should.
///
/// # Panics
/// If there is no child to be had.
pub fn in_child(work: impl FnOnce() -> bool) -> bool {
    let child = ForkedChild::start(|| i32::from(!work())).expect("a child process");
    child.wait().expect("its end") == Some(0)
}
