//! The program `windrow`, run to its end, or killed on the way.
//!
//! Owns: the process; none outlives a call. Never does: decide when it dies, or judge what it leaves.

use super::super::child::{SIGKILL, killed_at};
use super::super::kill::{STRACE_MOST, strace};
use std::ffi::OsString;
use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
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
        let mut command = match (death, &self.strace) {
            (Death::AtCall(call, n), Some(strace)) => killed_at(strace, call, n, &self.path),
            _ => Command::new(&self.path),
        };
        command.args(args).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let failed = |error: std::io::Error| format!("{}: {error}", self.path.display());
        let mut child = Reaped(command.spawn().map_err(failed)?);
        match death {
            Death::Never => {}
            Death::After(time) => {
                std::thread::sleep(time);
                let _ = child.0.kill();
            }
            Death::AtCall(..) => child.wait_or_kill(STRACE_MOST).map_err(failed)?,
        }
        let mut said = String::new();
        if let Some(mut stderr) = child.0.stderr.take() {
            let _ = stderr.read_to_string(&mut said);
        }
        Ok(end_of(child.0.wait().map_err(failed)?, &said))
    }
}

fn end_of(status: ExitStatus, said: &str) -> End {
    match (status.signal(), status.success()) {
        (Some(SIGKILL), _) => End::Killed,
        (_, true) => End::Done,
        _ => End::Failed(format!("{status}: {}", said.trim())),
    }
}

/// A child that is killed if the call ends early.
struct Reaped(Child);

impl Reaped {
    fn wait_or_kill(&mut self, most: Duration) -> std::io::Result<()> {
        let until = Instant::now() + most;
        while self.0.try_wait()?.is_none() {
            if until <= Instant::now() {
                return self.0.kill();
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }
}

impl Drop for Reaped {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
