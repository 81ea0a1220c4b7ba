//! The stage of a scenario: a directory of its own, actors that run commands, and the check at the
//! end.
//!
//! Owns: the processes; none outlives the scenario. A command without a timely answer is a finding:
//! something hangs. Never does: open a database itself.

use super::actor;
use crate::torture::trace::{self, Trace};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// A bound, and no verdict on speed: the slowest answer takes a second.
const HANGS: Duration = Duration::from_secs(120);

/// The place of a scenario.
#[derive(Debug)]
pub(super) struct Stage {
    /// The directory of all its files.
    pub(super) root: PathBuf,
    /// Damages the files before they are judged, to check that this is noticed.
    pub(super) sabotage: bool,
}

impl Stage {
    /// Returns a path in it, as text: actors take no spaces.
    pub(super) fn at(&self, name: &str) -> String {
        self.root.join(name).display().to_string()
    }

    /// Starts an actor.
    ///
    /// # Errors
    /// The system's error.
    pub(super) fn actor(&self) -> Result<Actor, String> {
        let failed = |e: std::io::Error| format!("start an actor: {e}");
        let mut child = Command::new(std::env::current_exe().map_err(failed)?)
            .arg("actor")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .current_dir(&self.root)
            .spawn()
            .map_err(failed)?;
        let (tell, answers) = channel();
        let (input, output) = (child.stdin.take(), child.stdout.take());
        std::thread::spawn(move || {
            let lines = output.into_iter().flat_map(|output| BufReader::new(output).lines());
            lines.map_while(Result::ok).for_each(|line| _ = tell.send(line));
        });
        let input = input.ok_or("an actor without ears")?;
        Ok(Actor { child, input, answers, acknowledged: 0 })
    }

    /// Starts an actor that has a database open.
    ///
    /// # Errors
    /// The actor's error.
    pub(super) fn holder(&self, dir: &str, tag: &str) -> Result<Actor, String> {
        let mut actor = self.actor()?;
        actor.does(&format!("open {dir} {tag}"))?;
        Ok(actor)
    }

    /// Makes a database of `count` keys, cleanly closed.
    ///
    /// # Errors
    /// The actor's error.
    pub(super) fn made(&self, dir: &str, tag: &str, count: u64) -> Result<(), String> {
        let mut actor = self.holder(dir, tag)?;
        actor.does(&format!("write {count}"))?;
        actor.does("close").map(|_| ())
    }

    /// Checks that nothing acknowledged is lost: the database opens for writing, has that many keys
    /// of its tag (one more may have been under way), is sound, and accepts more.
    ///
    /// # Errors
    /// The first fault.
    pub(super) fn holds(&self, dir: &str, tag: &str, acknowledged: u64) -> Result<(), String> {
        if self.sabotage {
            spoil(Path::new(dir)).map_err(|e| format!("spoil {dir}: {e}"))?;
        }
        let mut actor = self.actor()?;
        let found = actor.does(&format!("open {dir} {tag}"))?;
        if !(acknowledged <= found && found <= acknowledged + 1) {
            return Err(format!("{dir} has {found} keys of {acknowledged} acknowledged ones"));
        }
        for command in ["verify", "write 300", "compact", "check", "close"] {
            actor.does(command)?;
        }
        Ok(())
    }

    /// Returns the contents of a directory; nothing if there is none.
    ///
    /// # Errors
    /// The system's error.
    pub(super) fn print(&self, dir: &str) -> Result<Trace, String> {
        trace::of(Path::new(dir), false)
    }

    /// Checks that no foreign bytes were touched: every file from before is unchanged. New files
    /// are not checked here.
    ///
    /// # Errors
    /// The names that differ.
    pub(super) fn untouched(&self, dir: &str, before: &Trace) -> Result<(), String> {
        if self.sabotage {
            let spoilt = before.keys().find(|path| path.is_file());
            spoilt
                .map_or(Ok(()), |path| std::fs::write(path, "spoilt"))
                .map_err(|e| e.to_string())?;
        }
        let after = self.print(dir)?;
        let differs = |path: &&PathBuf| before.get(*path) != after.get(*path);
        let touched: Vec<String> =
            before.keys().filter(differs).map(|path| path.display().to_string()).collect();
        if touched.is_empty() { Ok(()) } else { Err(format!("touched: {}", touched.join(", "))) }
    }

    /// Runs a tool of the system.
    ///
    /// # Errors
    /// The tool's message.
    pub(super) fn tool(&self, line: &str) -> Result<(), String> {
        let words: Vec<&str> = line.split(' ').collect();
        let output = Command::new(words[0])
            .args(&words[1..])
            .current_dir(&self.root)
            .output()
            .map_err(|e| format!("{line}: {e}"))?;
        match output.status.success() {
            true => Ok(()),
            false => Err(format!("{line}: {}", String::from_utf8_lossy(&output.stderr).trim())),
        }
    }
}

/// The canary: cuts off the second half of all files of a database.
fn spoil(dir: &Path) -> std::io::Result<()> {
    for entry in std::fs::read_dir(dir)? {
        let path = entry?.path();
        let name = path.file_name().map_or(String::new(), |n| n.to_string_lossy().into_owned());
        if name.ends_with(".sst") || name.ends_with(".wal") || name.starts_with("MANIFEST") {
            let file = std::fs::File::options().write(true).open(&path)?;
            file.set_len(file.metadata()?.len() / 2)?;
        }
    }
    Ok(())
}

/// A process that runs commands. Dropping it kills it.
#[derive(Debug)]
pub(super) struct Actor {
    child: Child,
    input: ChildStdin,
    answers: Receiver<String>,
    /// The number of keys whose writes were acknowledged.
    pub(super) acknowledged: u64,
}

impl Actor {
    /// Sends a command. Returns the answer: a number, or an error in its words.
    ///
    /// # Errors
    /// If it does not answer.
    pub(super) fn tries(&mut self, line: &str) -> Result<Result<u64, String>, String> {
        let gone = |why: String| format!("`{line}`: {why}");
        writeln!(self.input, "{line}").map_err(|e| gone(format!("the actor is gone: {e}")))?;
        let answer = match self.answers.recv_timeout(HANGS) {
            Ok(answer) => answer,
            Err(std::sync::mpsc::RecvTimeoutError::Timeout) => return Err(gone("it hangs".into())),
            Err(_) => {
                let end = self.child.wait().map_err(|e| gone(e.to_string()))?;
                return Err(gone(format!("the actor ended: {end}")));
            }
        };
        let counts = line.starts_with("write") || line.starts_with("open");
        if let Some(number) = answer.strip_prefix("ok ").and_then(|n| n.parse().ok()) {
            if counts {
                self.acknowledged = number;
            }
            return Ok(Ok(number));
        }
        let why = answer.strip_prefix("no ").unwrap_or(&answer).to_owned();
        let after = why.strip_prefix("after ").and_then(|rest| rest.split(':').next());
        if let Some(number) = after.and_then(|n| n.parse().ok()) {
            self.acknowledged = number;
        }
        Ok(Err(why))
    }

    /// Sends a command that must be done.
    ///
    /// # Errors
    /// If it was refused.
    pub(super) fn does(&mut self, line: &str) -> Result<u64, String> {
        self.tries(line)?.map_err(|why| format!("`{line}`: {why}"))
    }

    /// Sends a command that must be refused, in words that contain one of these.
    ///
    /// # Errors
    /// If it was done, or refused in other words.
    pub(super) fn fails(&mut self, line: &str, words: &[&str]) -> Result<String, String> {
        match self.tries(line)? {
            Ok(_) => Err(format!("`{line}` was done, and must be refused")),
            Err(why) if words.iter().any(|word| why.contains(word)) => Ok(why),
            Err(why) => Err(format!("`{line}` was refused in other words than {words:?}: {why}")),
        }
    }

    /// Ends it by SIGKILL, and waits until it is gone.
    pub(super) fn kill(mut self) -> u64 {
        let _ = self.child.kill();
        let _ = self.child.wait();
        self.acknowledged
    }
}

impl Drop for Actor {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits until an actor's forked child, which has no parent any more, is gone.
///
/// # Errors
/// If it stays.
pub(super) fn wait_for_end(pid: u64) -> Result<(), String> {
    let until = std::time::Instant::now() + HANGS;
    let stat = format!("/proc/{pid}/stat");
    while std::fs::read_to_string(&stat).is_ok_and(|stat| !stat.contains(") Z ")) {
        if std::time::Instant::now() > until {
            return Err(format!("the child {pid} hangs"));
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    Ok(())
}

/// The keys and values of actors, for scenarios that read them in this process.
pub(super) use actor::{check, key, options, value};
