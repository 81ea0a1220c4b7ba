//! A worker as its parent sees it: its start, its end, and the way it ended.
//!
//! Owns: the process; none outlives its handle. Never does: know its writes.

use super::ledger::Ledger;
use super::worker::{EXIT_REFUSED, Task};
use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

const SIGBUS: i32 = 7;
pub(super) const SIGKILL: i32 = 9;

/// The way a worker ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// By SIGKILL.
    Killed,
    /// It wrote all requested batches and closed the database.
    Done,
    /// With a clean error, in its words.
    Refused(String),
    /// By SIGBUS: the file system died under a mapped log.
    Bus,
    /// In another way, which is a finding.
    Broken(String),
}

/// A running worker. Dropping it kills it.
#[derive(Debug)]
pub struct Worker {
    child: Child,
    ended: bool,
}

impl Worker {
    /// Makes the ledger of a task and starts the worker, which dies at the n-th of these system
    /// calls, by strace.
    ///
    /// # Errors
    /// The system's error.
    pub fn start(
        task: &Task,
        death: Option<(&Path, &str, u64)>,
    ) -> Result<(Worker, Ledger), String> {
        let failed = |e: std::io::Error| format!("start a worker: {e}");
        let ledger = Ledger::create(&task.ledger).map_err(failed)?;
        let program = std::env::current_exe().map_err(failed)?;
        let mut command = match death {
            None => Command::new(program),
            Some((strace, call, n)) => killed_at(strace, call, n, &program),
        };
        Ok((Worker::of(command.arg("worker").args(task.arguments()))?, ledger))
    }

    /// Starts another process of this program.
    ///
    /// # Errors
    /// The system's error.
    pub fn spawn(kind: &str, arguments: Vec<String>) -> Result<Worker, String> {
        let program = std::env::current_exe().map_err(|e| format!("start a {kind}: {e}"))?;
        Worker::of(Command::new(program).arg(kind).args(arguments))
    }

    fn of(command: &mut Command) -> Result<Worker, String> {
        let command = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let child = command.spawn().map_err(|e| format!("start a process: {e}"))?;
        Ok(Worker { child, ended: false })
    }

    /// Returns the process's id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Kills it, and waits until it is gone.
    ///
    /// # Errors
    /// The system's error.
    pub fn kill(mut self) -> Result<End, String> {
        let _ = self.child.kill();
        self.end()
    }

    /// Waits until it has ended by itself, or kills it after `most`.
    ///
    /// # Errors
    /// The system's error.
    pub fn wait(mut self, most: Duration) -> Result<End, String> {
        self.run_for(most)?;
        self.kill()
    }

    /// Lets it run for at most this time. Returns whether it has ended.
    ///
    /// # Errors
    /// The system's error.
    pub fn run_for(&mut self, most: Duration) -> Result<bool, String> {
        let until = Instant::now() + most;
        loop {
            if self.child.try_wait().map_err(|e| format!("wait for a worker: {e}"))?.is_some() {
                return Ok(true);
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(false);
            }
            std::thread::sleep(left.min(Duration::from_millis(1)));
        }
    }

    fn end(&mut self) -> Result<End, String> {
        let status = self.child.wait().map_err(|e| format!("wait for a worker: {e}"))?;
        self.ended = true;
        let mut said = String::new();
        if let Some(mut stderr) = self.child.stderr.take() {
            let _ = stderr.read_to_string(&mut said);
        }
        Ok(end_of(status, said.trim()))
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        if !self.ended {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// Returns the command of a program that dies at its n-th system call of a kind.
pub(super) fn killed_at(strace: &Path, call: &str, n: u64, program: &Path) -> Command {
    let mut command = Command::new(strace);
    command.args(["-f", "-qq", "-o", "/dev/null"]);
    command.args(["-e", &format!("trace={call}")]);
    command.args(["-e", &format!("inject={call}:signal=SIGKILL:when={n}")]);
    command.arg(program);
    command
}

fn end_of(status: ExitStatus, said: &str) -> End {
    match (status.signal(), status.code()) {
        (Some(SIGKILL), _) => End::Killed,
        (Some(SIGBUS), _) => End::Bus,
        (_, Some(0)) => End::Done,
        (_, Some(code)) if code == i32::from(EXIT_REFUSED) => End::Refused(said.to_owned()),
        _ => End::Broken(format!("{status}: {said}")),
    }
}
