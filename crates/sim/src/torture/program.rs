//! The program `windrow`, run to its end, or killed on the way.
//!
//! Owns: the process; none outlives its handle. Never does: decide when it dies, or judge what it leaves.

use super::child::{SIGKILL, killed_at};
use super::kill::{STRACE_MOST, strace};
use rustix::process::{Pid, Signal, kill_process_group};
use std::ffi::OsString;
use std::io::Read;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// When the program dies, at the latest.
#[derive(Clone, Copy, Debug)]
pub(super) enum Death {
    /// It runs to its end.
    Never,
    /// So long after its start.
    After(Duration),
    /// At the n-th of these system calls, by strace.
    AtCall(&'static str, u64),
}

/// How the program ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// By SIGKILL.
    Killed,
    /// By SIGKILL, since it had not come to its end or to its system call in time.
    Overdue,
    /// With exit code 0.
    Done,
    /// In another way, with its words.
    Failed(String),
}

/// The program, and strace if it is there.
pub(super) struct Program {
    path: PathBuf,
    strace: Option<PathBuf>,
}

impl Program {
    /// Finds the program: at this path, or next to the one that runs.
    ///
    /// # Errors
    /// If it is not there.
    pub(super) fn find(path: Option<&Path>) -> Result<Program, String> {
        let path = match path {
            Some(path) => path.to_owned(),
            None => {
                let this = std::env::current_exe().map_err(|error| error.to_string())?;
                this.with_file_name("windrow")
            }
        };
        match path.is_file() {
            true => Ok(Program { path, strace: strace() }),
            false => Err(format!(
                "{} is not there: build it (`cargo build --release -p windrow-cli`) or name another one \
                 with --program",
                path.display()
            )),
        }
    }

    /// Whether it can be killed at a system call.
    pub(super) fn is_traceable(&self) -> bool {
        self.strace.is_some()
    }

    /// Runs it with arguments, and kills it.
    ///
    /// # Errors
    /// The system's error.
    pub(super) fn run(&self, args: &[OsString], death: Death) -> Result<End, String> {
        let running = self.start(args, death, (Stdio::null(), Stdio::null()))?;
        running.die(death)
    }

    /// Starts it with arguments, an input and an output. It has the death of a system call with it.
    ///
    /// # Errors
    /// The system's error.
    pub(super) fn start(
        &self,
        args: &[OsString],
        death: Death,
        (stdin, stdout): (Stdio, Stdio),
    ) -> Result<Running, String> {
        let mut command = match (death, &self.strace) {
            (Death::AtCall(call, n), Some(strace)) => killed_at(strace, call, n, &self.path),
            _ => Command::new(&self.path),
        };
        // A group of its own: a traced program goes on when its tracer is killed.
        command.process_group(0);
        command.args(args).stdin(stdin).stdout(stdout).stderr(Stdio::piped());
        let child = command.spawn().map_err(|error| format!("{}: {error}", self.path.display()))?;
        Ok(Running(child))
    }
}

/// The running program. Dropping it kills it.
pub(super) struct Running(Child);

impl Running {
    /// Its output, if it was started with a pipe.
    pub(super) fn output(&mut self) -> Option<ChildStdout> {
        self.0.stdout.take()
    }

    /// Waits for its death, or brings it about.
    ///
    /// # Errors
    /// The system's error.
    pub(super) fn die(mut self, death: Death) -> Result<End, String> {
        match death {
            Death::Never => {}
            Death::After(time) => {
                std::thread::sleep(time);
                self.kill();
            }
            Death::AtCall(..) => return self.end_within(STRACE_MOST),
        }
        self.end()
    }

    /// Waits until it has ended by itself, or kills it after `most`.
    ///
    /// # Errors
    /// The system's error.
    pub(super) fn end_within(mut self, most: Duration) -> Result<End, String> {
        let is_overdue = self.waits_longer_than(most)?;
        if is_overdue {
            self.kill();
        }
        match self.end()? {
            End::Killed if is_overdue => Ok(End::Overdue),
            end => Ok(end),
        }
    }

    fn kill(&mut self) {
        let group = i32::try_from(self.0.id()).ok().and_then(Pid::from_raw);
        if let Some(group) = group {
            let _ = kill_process_group(group, Signal::KILL);
        }
    }

    fn end(mut self) -> Result<End, String> {
        let mut said = String::new();
        if let Some(mut stderr) = self.0.stderr.take() {
            let _ = stderr.read_to_string(&mut said);
        }
        Ok(end_of(self.0.wait().map_err(waited)?, &said))
    }

    fn waits_longer_than(&mut self, most: Duration) -> Result<bool, String> {
        let until = Instant::now() + most;
        while self.0.try_wait().map_err(waited)?.is_none() {
            if until <= Instant::now() {
                return Ok(true);
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(false)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Ok(None) = self.0.try_wait() {
            self.kill();
            let _ = self.0.wait();
        }
    }
}

fn waited(error: std::io::Error) -> String {
    format!("wait for the program: {error}")
}

fn end_of(status: ExitStatus, said: &str) -> End {
    match (status.signal(), status.success()) {
        (Some(SIGKILL), _) => End::Killed,
        (_, true) => End::Done,
        _ => End::Failed(format!("{status}: {}", said.trim())),
    }
}
