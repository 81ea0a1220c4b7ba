//! Benchmarks from the command line: a run of a user's workload, one that is
//! cut off and resumed, its report, and mistakes.

#![allow(clippy::disallowed_methods, reason = "tests play the shell: files and waits are theirs")]

use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

/// A temporary directory in which the program runs.
struct Shell {
    dir: tempfile::TempDir,
}

impl Shell {
    fn new() -> Shell {
        Shell { dir: tempfile::tempdir().unwrap() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn write(&self, name: &str, contents: impl AsRef<[u8]>) {
        std::fs::write(self.path(name), contents).unwrap();
    }

    /// The program with the words of a line, its streams piped.
    fn command(&self, line: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_windrow-bench"));
        command
            .args(line.split_whitespace())
            .current_dir(self.dir.path())
            .env("TMPDIR", self.dir.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    fn run(&self, line: &str) -> Output {
        self.command(line).output().unwrap()
    }

    /// Runs a command line that must go well; gives what it printed.
    #[track_caller]
    fn ok(&self, line: &str) -> String {
        let output = self.run(line);
        assert_eq!(output.status.code(), Some(0), "{line}: {}", stderr(&output));
        String::from_utf8(output.stdout).unwrap()
    }
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Small, with every kind of phase that a run treats apart.
const WORKLOAD: &str = r#"
title = "Small"
family = "test"
about = "Everything once."
rounds = 2

[data]
records = 3_000
value_bytes = "50..100"

[store]
memory_mib = 8

[[phase]]
name = "load"
mix = { insert = 1 }
once = true

[[phase]]
name = "sustained"
mix = { put = 1 }
search = { seconds = 0.5 }
once = true

[[phase]]
name = "mixed"
clients = 2
mix = { get = 2, put = 1 }
keys = "scrambled(0.99)"

[[phase]]
name = "sent"
mix = { put = 1 }
open = { of = "sustained", percent = 20, seconds = 0.3 }
"#;

fn read(sh: &Shell, name: &str) -> String {
    std::fs::read_to_string(sh.path(name)).unwrap()
}

fn lines(sh: &Shell, name: &str) -> Vec<String> {
    read(sh, name).lines().map(str::to_owned).collect()
}

/// Of each line the fields that must be the same however often a run is resumed.
fn places(lines: &[String]) -> Vec<String> {
    let place = |line: &String| {
        let value: serde_json::Value = serde_json::from_str(line).unwrap();
        ["kind", "workload", "phase", "contender", "round", "answers", "contents"]
            .map(|name| value[name].to_string())
            .join(" ")
    };
    lines.iter().map(place).collect()
}

#[test]
fn a_run_is_kept_resumed_and_reported() {
    let sh = Shell::new();
    sh.write("small.toml", WORKLOAD);
    let engines = "--engines windrow,windrow:leveled";
    let out = sh.ok(&format!("run small.toml {engines} --json whole.jsonl --dir ."));
    assert!(out.contains("small") && out.contains("windrow:leveled"), "{out}");
    let whole = lines(&sh, "whole.jsonl");
    // The head, two contenders with two phases once and two in each of two rounds, the end.
    assert_eq!(whole.len(), 1 + 2 * (2 + 2 * 2) + 1, "{whole:#?}");

    // Cut off in the middle of a line of the first round; its store is gone.
    let kept = whole[..6].join("\n") + "\n" + &whole[6][..40];
    sh.write("cut.jsonl", kept);
    sh.ok("resume cut.jsonl");
    assert_eq!(places(&lines(&sh, "cut.jsonl")), places(&whole));

    sh.ok("report whole.jsonl --out report --markdown tables.md");
    let page = read(&sh, "report/index.html");
    assert!(page.contains("<svg") && page.contains("windrow:leveled"));
    assert!(read(&sh, "tables.md").contains("| mixed |"));
}

/// What a store writes and takes is read of every phase after it drained, and what it takes
/// while it is written to as well.
#[test]
fn the_steady_state_tells_writes_and_space() {
    let sh = Shell::new();
    sh.ok("run steady --scale quick --cases zipf --engines windrow --json l.jsonl --dir .");
    let lines: Vec<serde_json::Value> =
        lines(&sh, "l.jsonl").iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    for phase in ["three times over, at 50 %", "at 50 %", "at 70 %", "at 90 %"] {
        let line = lines.iter().find(|line| line["phase"] == phase).expect(phase);
        assert_eq!(line["workload"], "steady: zipf");
        let figure = |name: &str| line["figures"][name].as_f64().expect(name);
        assert!(figure("drain_s") >= 0.0, "{line}");
        assert!(figure("write_amplification") > 0.0 && figure("space_amplification") > 0.0);
        let (mean, most) = (figure("space_while_writing"), figure("space_while_writing_max"));
        assert!(0.0 < mean && mean <= most, "{line}");
    }
    // A search drains within.
    let search = lines.iter().find(|line| line["phase"] == "sustained").unwrap();
    assert!(search["figures"]["space_while_writing"].is_null(), "{search}");
    // Nor has what grows one live size.
    sh.ok("run fill --scale quick --engines windrow --json fill.jsonl --dir .");
    for line in self::lines(&sh, "fill.jsonl") {
        let is_told = line.contains("space_while_writing");
        assert_eq!(is_told, line.contains("\"phase\":\"overwrite\""), "{line}");
    }
}

/// Runs a paper's experiment, tiny, with these contenders only, and looks for a line of each
/// phase and a verdict on each claim.
#[track_caller]
fn paper(name: &str, contenders: &str, phases: &[&str], claims: usize) {
    let sh = Shell::new();
    let line = format!("run {name} --scale quick --rounds 1 {contenders} --json l.jsonl --dir .");
    let out = sh.ok(&line);
    let verdicts = out.split("ours / paper\n").nth(1).expect(&out);
    let verdicts: Vec<&str> = verdicts.lines().take_while(|line| !line.is_empty()).collect();
    assert_eq!(verdicts.len(), claims, "{out}");
    assert!(verdicts.iter().any(|line| !line.ends_with("not measured")), "{out}");
    let lines = read(&sh, "l.jsonl");
    for phase in phases {
        assert!(lines.contains(&format!("\"phase\":\"{phase}\"")), "{phase}: {lines}");
    }
    sh.ok("report l.jsonl --out report");
    // Databases do not stay behind.
    let left = std::fs::read_dir(sh.path(".")).unwrap().map(|entry| entry.unwrap().file_name());
    let left: Vec<_> = left.filter(|name| name.to_str().unwrap().starts_with("windrow")).collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn autumn_runs() {
    let phases = ["fill", "readrandom", "seekrandom", "seek+10", "seek+100"];
    paper("autumn", "--engines c=1,c=0.8", &phases, 8);
}

#[test]
fn l2sm_runs() {
    let phases = ["load", "skewed latest R:W 0:1", "scrambled zipf R:W 0:1", "random R:W 0:1"];
    paper("l2sm", "--engines leveled,sst_log(closed)", &phases, 14);
}

#[test]
fn vlsm_runs() {
    let phases = ["fill", "load", "run A", "load at 60 %", "run A at 80 %"];
    paper("vlsm", "--engines leveled,windrow", &phases, 16);
}

#[test]
fn mnemosyne_runs() {
    let phases = ["load", "uniform Z=0 mixed", "uniform Z=0.5 gets", "uniform Z=1 gets"];
    paper("mnemosyne", "--engines uniform,mnemosyne", &phases, 6);
}

#[test]
fn merlin_runs() {
    paper("merlin", "", &["load", "uniform", "zipf"], 6);
}

#[test]
fn mistakes_are_told() {
    let sh = Shell::new();
    sh.write("small.toml", WORKLOAD.replace("mixed", "load"));
    sh.write("old.jsonl", b"");
    for (line, part) in [
        ("run small.toml", "two phases are called `load`"),
        ("run nothing", "neither a workload nor a file"),
        ("quick --engines rocksdb", "not an engine of this program"),
        ("resume small.toml", "small.toml"),
        ("resume none.jsonl", "none.jsonl"),
        ("report none.jsonl", "none.jsonl"),
        ("run queue --scale quick --json old.jsonl", "old.jsonl"),
        ("show nothing", "windrow-bench list"),
    ] {
        let output = sh.run(line);
        let told = stderr(&output);
        assert!(!output.status.success() && told.contains(part), "{line}: {told}");
    }
}

/// A reader that is gone is no failure, a full device is one, and neither a panic.
#[test]
fn output_that_nobody_takes_is_no_panic() {
    let sh = Shell::new();
    let lines = ["list", "show ycsb", "show l2sm", "--help"];
    for line in lines {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let closed = sh.command(line).stdout(writer).output().unwrap();
        assert_eq!(closed.status.code(), Some(0), "{line}: {}", stderr(&closed));
        assert_eq!(stderr(&closed), "", "{line}");
        let Ok(full) = std::fs::File::options().write(true).open("/dev/full") else { continue };
        let full = sh.command(line).stdout(full).output().unwrap();
        assert_eq!(full.status.code(), Some(1), "{line}: {}", stderr(&full));
        assert!(stderr(&full).contains("standard output"), "{line}: {}", stderr(&full));
    }
}
