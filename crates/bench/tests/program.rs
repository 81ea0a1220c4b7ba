//! Benchmarks from the command line: a run of a user's workload, one that is cut off and resumed,
//! its report, and mistakes.

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
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, contents).unwrap();
    }

    /// Returns the program with the words of a line, its streams piped.
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

    /// Runs a command line that must succeed; returns its output.
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

/// A small workload, with every kind of phase that a run treats differently.
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

/// Returns from each line the fields that must be the same however often a run is resumed.
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

/// Writes and space are read in every phase after it drained, and space also while the phase
/// writes.
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
    // A search drains within its attempts.
    let search = lines.iter().find(|line| line["phase"] == "sustained").unwrap();
    assert!(search["figures"]["space_while_writing"].is_null(), "{search}");
    // A store that grows has no live size either.
    sh.ok("run fill --scale quick --engines windrow --json fill.jsonl --dir .");
    for line in self::lines(&sh, "fill.jsonl") {
        let is_told = line.contains("space_while_writing");
        assert_eq!(is_told, line.contains("\"phase\":\"overwrite\""), "{line}");
    }
}

/// Returns whether a claim's phase and contender were run. Some cases and contenders do not run at
/// the quick scale, this program lacks some engines, and nothing is a ratio to no merge or no stall.
fn has_run(claim: &str, run: &[serde_json::Value]) -> bool {
    let word = |line: &serde_json::Value, name: &str| line[name].as_str().unwrap_or("").to_owned();
    let place =
        |line: &serde_json::Value| format!("{}, {}: ", word(line, "workload"), word(line, "phase"));
    let here: Vec<_> = run.iter().filter(|line| claim.contains(&place(line))).collect();
    let named = |line: &serde_json::Value| format!(" of {} to ", word(line, "contender"));
    let figure = |line: &serde_json::Value| {
        let rest = claim.split_once(&place(line)).unwrap().1;
        line["figures"][rest.split_once(" of ").unwrap().0].as_f64()
    };
    here.iter().any(|line| claim.contains(&named(line)))
        && here.iter().all(|line| figure(line) != Some(0.0))
        && !["rocksdb", "leveldb"].iter().any(|peer| claim.contains(peer))
}

/// Every experiment of the papers, tiny, and their pages made of it.
#[test]
fn the_papers_run_and_fill_their_pages() {
    let sh = Shell::new();
    // Through the page cache: past it the same takes twice as long, and no figure of it counts.
    let out = sh.ok("run papers --scale quick --rounds 1 --direct-io off --json l.jsonl --dir .");
    let verdicts = out.split("ours / paper\n").nth(1).expect(&out);
    let verdicts: Vec<&str> = verdicts.lines().take_while(|line| !line.is_empty()).collect();
    let (unmeasured, measured): (Vec<&str>, Vec<&str>) =
        verdicts.iter().partition(|line| line.ends_with("not measured"));
    assert!(measured.len() > verdicts.len() / 4, "{} of {}: {out}", measured.len(), verdicts.len());
    let run: Vec<serde_json::Value> =
        lines(&sh, "l.jsonl").iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    let wrong: Vec<_> = unmeasured.into_iter().filter(|claim| has_run(claim, &run)).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
    let listed = sh.ok("list papers");
    for paper in ["autumn", "l2sm", "vlsm", "mnemosyne"] {
        let page = format!("{}/../../docs/papers/{paper}.md", env!("CARGO_MANIFEST_DIR"));
        sh.write(&format!("pages/{paper}.md"), std::fs::read(page).unwrap());
    }
    // The row is a table: this picture is of a time when it was none.
    sh.write("pages/pictures/vlsm-loada.svg", b"old");
    sh.ok("report l.jsonl --out report --papers pages");
    assert!(!sh.path("pages/pictures/vlsm-loada.svg").exists());
    sh.ok("report l.jsonl --headlines headlines.svg");
    let headlines = read(&sh, "headlines.svg");
    assert!(headlines.contains(">vLSM<") && headlines.contains("scale quick"), "{headlines}");
    for paper in ["autumn", "l2sm", "vlsm", "mnemosyne"] {
        let page = read(&sh, &format!("pages/{paper}.md"));
        let section = |id: &str| {
            let begin = format!("<!-- row: {id} -->\n");
            let body = page.split_once(&begin).unwrap_or_else(|| panic!("{paper} lacks {id}")).1;
            body.split_once("<!-- end -->").unwrap().0.to_owned()
        };
        let is_run = |line: &&str| line.starts_with(&format!("  {paper}:")) && !line.contains(" [");
        let ids = listed
            .lines()
            .filter(is_run)
            .map(|line| line.split_whitespace().next().unwrap().split_once(':').unwrap().1);
        let (told, untold): (Vec<&str>, Vec<&str>) =
            ids.partition(|id| section(id).contains("|---|"));
        // Some rows need cases that do not run at this scale.
        assert!(told.len() >= 10, "{paper}: {told:?}, but not {untold:?}");
        let drawn = |id: &&str| sh.path(&format!("pages/pictures/{paper}-{id}.svg")).exists();
        assert!(told.iter().any(drawn), "{paper}: nothing is drawn of {told:?}");
    }
    // Databases are removed.
    let left = std::fs::read_dir(sh.path(".")).unwrap().map(|entry| entry.unwrap().file_name());
    let left: Vec<_> = left.filter(|name| name.to_str().unwrap().starts_with("windrow")).collect();
    assert!(left.is_empty(), "{left:?}");
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

/// A closed reader is no failure, a full device is one, and neither is a panic.
#[test]
fn output_that_nobody_takes_is_no_panic() {
    let sh = Shell::new();
    let lines = ["list", "show ycsb", "show l2sm/sizes", "--help"];
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

/// A backup copies what was changed and little more, and the clients' phases back up meanwhile.
#[test]
fn backups_tell_what_they_copy() {
    let sh = Shell::new();
    sh.ok("run backups --scale quick --json l.jsonl --dir .");
    let lines: Vec<serde_json::Value> =
        lines(&sh, "l.jsonl").iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    let figure = |phase: &str, name: &str| {
        let line = lines.iter().find(|line| line["phase"] == phase).expect(phase);
        line["figures"][name].as_f64()
    };
    let told =
        |phase: &str, name: &str| figure(phase, name).unwrap_or_else(|| panic!("{phase}: {name}"));
    assert_eq!(told("first backup", "backup_copied_share"), 1.0);
    assert_eq!(told("nothing changed", "backup_copied_mib"), 0.0);
    for phase in ["1 % changed", "another 1 %", "10 % changed", "1 % changed in one place"] {
        let changed = told(phase, "backup_copied_mib") / told(phase, "backup_copied_per_changed");
        assert!(
            (changed / told(phase, "user_written_mib") - 1.0).abs() < 0.01,
            "{phase}: {changed}"
        );
        assert!(0.0 < told(phase, "backup_copied_mib"), "{phase}");
    }
    assert!(figure("overwrite", "backups").is_none());
    for phase in ["overwrite, backups meanwhile", "overwrite, backups at 20 MiB/s"] {
        assert!(0.0 <= told(phase, "backups") + told(phase, "backup_meanwhile_mib"), "{phase}");
    }
    // The backups are removed as the databases are.
    let left = std::fs::read_dir(sh.path(".")).unwrap().map(|entry| entry.unwrap().file_name());
    assert_eq!(left.collect::<Vec<_>>(), ["l.jsonl"]);
}

/// Consumers read what the phase writes, in both contenders.
#[test]
fn consumers_of_changes_read_what_is_written() {
    let sh = Shell::new();
    sh.ok("run changes --scale quick --json l.jsonl --dir .");
    let lines: Vec<serde_json::Value> =
        lines(&sh, "l.jsonl").iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    for (phase, consumers) in [("overwrite", false), ("overwrite, three consumers", true)] {
        let of_phase: Vec<_> = lines.iter().filter(|line| line["phase"] == phase).collect();
        assert_eq!(of_phase.len(), 2, "{phase}");
        for line in of_phase {
            let figure = |name: &str| line["figures"][name].as_f64();
            let read = figure("consumer_kops").zip(figure("consumer_missed_kops"));
            let all = read.map(|(read, missed)| ((read + missed) * 1000.0).round());
            assert_eq!(all, consumers.then_some(20_000.0), "{line}");
            if line["contender"] == "windrow, logs kept" {
                assert!(
                    figure("consumer_missed_kops").is_none_or(|missed| missed == 0.0),
                    "{line}"
                );
            }
        }
    }
}
