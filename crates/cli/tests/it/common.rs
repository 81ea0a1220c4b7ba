//! The harness of the program's tests: a directory for each test, and the
//! program run in it as a shell would.

#![allow(
    clippy::disallowed_methods,
    unreachable_pub,
    reason = "tests play the shell: files and waits are theirs; each of them uses its part"
)]

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

/// The variable with the path to which instrumented programs write their
/// profiles.
const PROFILES: &str = "LLVM_PROFILE_FILE";

/// A temporary directory in which the program runs.
pub struct Shell {
    dir: tempfile::TempDir,
}

impl Shell {
    pub fn new() -> Shell {
        Shell { dir: tempfile::tempdir().unwrap() }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub fn write(&self, name: &str, contents: impl AsRef<[u8]>) {
        fs::write(self.path(name), contents).unwrap();
    }

    /// Returns the program with arguments, its streams piped and its
    /// environment bare.
    pub fn command<A: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = A>) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_windrow"));
        command
            .args(args)
            .current_dir(self.dir.path())
            .env_clear()
            .env("TMPDIR", self.dir.path())
            // An instrumented program (`xtask coverage`) writes its profile
            // there.
            .envs(std::env::var_os(PROFILES).map(|at| (PROFILES, at)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    pub fn spawn(&self, line: &str) -> Child {
        self.command(line.split_whitespace()).spawn().unwrap()
    }

    /// Runs a command line, words split at white space, with nothing to read.
    pub fn run(&self, line: &str) -> Output {
        self.run_with(line, b"")
    }

    /// Runs a command line with something to read.
    pub fn run_with(&self, line: &str, input: &[u8]) -> Output {
        let mut child = self.spawn(line);
        let mut stdin = child.stdin.take().unwrap();
        std::thread::scope(|scope| {
            // The program may stop reading before the end.
            scope.spawn(move || stdin.write_all(input));
            child.wait_with_output().unwrap()
        })
    }

    /// Runs a command line that must succeed; returns its output.
    #[track_caller]
    pub fn ok(&self, line: &str) -> String {
        self.ok_with(line, b"")
    }

    #[track_caller]
    pub fn ok_with(&self, line: &str, input: &[u8]) -> String {
        let output = self.run_with(line, input);
        assert_eq!(output.status.code(), Some(0), "{line}: {}", stderr(&output));
        String::from_utf8(output.stdout).unwrap()
    }

    /// Runs a command line that must end with `code`; returns its stderr.
    #[track_caller]
    pub fn fails(&self, line: &str, code: i32) -> String {
        self.fails_with(line, b"", code)
    }

    #[track_caller]
    pub fn fails_with(&self, line: &str, input: &[u8], code: i32) -> String {
        let output = self.run_with(line, input);
        let text = stderr(&output);
        assert_eq!(output.status.code(), Some(code), "{line}: {text}");
        assert!(!text.contains("panicked"), "{line}: {text}");
        text
    }

    /// Returns names and contents of a directory's files, without the lock.
    pub fn image(&self, name: &str) -> Vec<(String, Vec<u8>)> {
        let mut files: Vec<_> = files_of(&self.path(name))
            .into_iter()
            .filter(|path| path.file_name().unwrap() != "LOCK")
            .map(|path| {
                let name = path.file_name().unwrap().to_string_lossy().into_owned();
                (name, fs::read(&path).unwrap())
            })
            .collect();
        files.sort();
        files
    }

    /// Returns the files of a database whose names end (or, for manifests,
    /// begin) with `part`.
    pub fn files(&self, name: &str, part: &str) -> Vec<PathBuf> {
        let matches = |path: &PathBuf| {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            name.ends_with(part) || name.starts_with(part)
        };
        files_of(&self.path(name)).into_iter().filter(matches).collect()
    }
}

fn files_of(dir: &Path) -> Vec<PathBuf> {
    fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect()
}

/// Returns the two ends of a terminal: the one that the test reads, and the one
/// that the program gets.
pub fn terminal() -> (fs::File, fs::File) {
    let main = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&main).unwrap();
    unlockpt(&main).unwrap();
    let name = ptsname(&main, Vec::new()).unwrap();
    let other = fs::OpenOptions::new().read(true).write(true).open(name.to_str().unwrap());
    (fs::File::from(main), other.unwrap())
}

pub fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A small generator for the moments and sizes of tests; `seed` reproduces them.
pub struct Rng(u64);

impl Rng {
    pub fn new(seed: u64) -> Rng {
        Rng(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % n
    }
}

/// Returns the output that `export` must print for input lines: sorted by key,
/// the last line of a key wins (`tac | sort -u -k1,1` in a shell).
pub fn expected(lines: &[(Vec<u8>, Vec<u8>)]) -> Vec<u8> {
    let map: std::collections::BTreeMap<_, _> = lines.iter().cloned().collect();
    tsv(map.iter())
}

pub fn tsv<'a>(pairs: impl IntoIterator<Item = (&'a Vec<u8>, &'a Vec<u8>)>) -> Vec<u8> {
    let mut out = Vec::new();
    for (key, value) in pairs {
        out.extend_from_slice(key);
        out.push(b'\t');
        out.extend_from_slice(value);
        out.push(b'\n');
    }
    out
}
