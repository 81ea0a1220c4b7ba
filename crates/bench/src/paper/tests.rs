//! Every experiment, tiny: it runs, measures what it promises, and its goals
//! name figures that exist.

use super::args::Args;
use super::database::{Database, Meter};
use super::experiment::Experiment;
use super::records::Records;
use super::template::SCALES;
use super::{EXPERIMENTS, file, files, run, select};
use crate::report::Figures;
use crate::store::windrow::ENGINE;
use crate::workload::Scale;
use std::path::Path;
use std::sync::Arc;

fn args(line: &str) -> Args {
    let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
    Args::parse(&words).unwrap()
}

fn parse(name: &str, scale: Scale) -> Experiment {
    let (_, text) = EXPERIMENTS.iter().find(|(n, _)| *n == name).unwrap();
    file::parse(name, text, scale).unwrap()
}

#[test]
fn every_file_is_read_at_every_scale() {
    for (name, text) in EXPERIMENTS {
        for scale in SCALES {
            let experiment = file::parse(name, text, scale).unwrap();
            assert_eq!(experiment.name, name);
            assert!(!experiment.goals.is_empty() && !experiment.shown.is_empty());
            for case in &experiment.cases {
                let has_rocksdb = case.contenders.iter().any(|c| c.engine == "rocksdb");
                assert_eq!(has_rocksdb, name != "merlin", "{name} {}", case.name);
            }
        }
        // At full scale there is nothing that a goal could miss.
        let experiment = parse(name, Scale::Full);
        for goal in &experiment.goals {
            let case = experiment.cases.iter().find(|case| case.name == goal.at.case);
            assert!(case.is_some(), "{name}: no case {}", goal.at.case);
        }
    }
}

#[test]
fn scales_and_cases_differ_where_a_file_says_so() {
    let case_count = |name, scale| parse(name, scale).cases.len();
    assert_eq!(SCALES.map(|scale| case_count("autumn", scale)), [2, 4, 6]);
    assert_eq!(SCALES.map(|scale| case_count("mnemosyne", scale)), [1, 1, 3]);
    let full = parse("mnemosyne", Scale::Full);
    let policies = full.cases.iter().map(|case| case.contenders[2].variant.as_str());
    let expected =
        [2, 4, 6].map(|bits| format!("leveled shape=leveling(t=4) filters=mnemosyne(bits={bits})"));
    assert!(policies.eq(expected.iter().map(String::as_str)));
    let rocksdb = &full.cases[1].contenders[3];
    let bits = ("rocksdb.filter_bits".to_owned(), "4".to_owned());
    assert!(rocksdb.settings.contains(&bits), "{:?}", rocksdb.settings);
    let l2sm = |scale| parse("l2sm", scale).cases[0].branches[0].phases.len();
    assert_eq!(SCALES.map(l2sm), [1, 1, 3]);
}

/// A whole file, small; the tests break it.
const SMALL: &str = r#"name = "small"
title = "A small one"
rounds = 1
shown = ["kops_per_s"]

[common]
count = { quick = 100, reduced = 1_000, full = 10_000 }
key_bytes = 20
value_bytes = [10, 20]

[common.settings]
memory_bytes = "64MiB"

[[common.contender]]
name = "ours"
policy = "leveled"

[[common.contender]]
name = "theirs"
engine = "rocksdb"
settings = { rocksdb.multiplier = "{t}" }

[[common.load]]
name = "fill"
work.mixed = { puts = "shuffled", ops = 100 }

[[case]]
name = "one"
with.t = 4

[[goal]]
phase = "fill"
figure = "kops_per_s"
ours = "ours"
than = "theirs"
more = 0.5
"#;

#[test]
fn a_small_file_says_what_it_says() {
    let experiment = file::parse("small.toml", SMALL, Scale::Reduced).unwrap();
    let case = &experiment.cases[0];
    assert_eq!((case.name.as_str(), case.sizes.count, case.regions), ("one", 1_000, 1));
    assert_eq!(case.sizes.value_bytes, (10, 20));
    assert_eq!(case.settings, [("memory_bytes".to_owned(), "64MiB".to_owned())]);
    let settings = [("rocksdb.multiplier".to_owned(), "4".to_owned())];
    assert_eq!(case.contenders[1].settings, settings);
    assert_eq!(experiment.goals[0].claim.to(), Some("theirs"));
    // Where nothing is said of the reduced scale it is the full one.
    let text = SMALL.replace("reduced = 1_000, ", "");
    let experiment = file::parse("small.toml", &text, Scale::Reduced).unwrap();
    assert_eq!(experiment.cases[0].sizes.count, 10_000);
}

#[test]
fn a_mistake_is_named_with_file_line_and_key() {
    for (right, wrong, message) in [
        ("ops = 100", "ops = 0", "25: common.load[0].work.mixed.ops: must be 1 or more"),
        ("ops = 100", "opz = 100", "25: common.load[0].work.mixed.opz: unknown field `opz`"),
        ("\"shuffled\"", "\"shufled\"", "25: common.load[0].work.mixed.puts: \"shufled\" is no"),
        ("work.mixed", "work.mixt", "25: common.load[0].work.mixt: unknown variant `mixt`"),
        ("key_bytes = 20", "key_bytes = 8", "8: common.key_bytes: keys have 16 to"),
        ("[10, 20]", "[20, 10]", "9: common.value_bytes: not [LEAST, MOST]"),
        ("key_bytes = 20\n", "", "26: case[0]: missing field `key_bytes`"),
        ("memory_bytes", "memory_bites", "12: common.settings.memory_bites: there is no setting"),
        ("\"64MiB\"", "\"64MiBi\"", "12: common.settings.memory_bytes: "),
        ("\"leveled\"", "\"levelled\"", "16: common.contender[0].policy: "),
        ("policy = \"leveled\"", "variant = \"x\"", "14: common.contender[0]: `ours`: Windrow has"),
        ("\"theirs\"", "\"ours\"", "18: common.contender[1]: `ours`: a second contender"),
        ("with.t = 4", "", "21: common.contender[1].settings.rocksdb.multiplier: `with` says"),
        ("reduced = 1_000", "half = 1_000", "7: common.count.half: `half` is not a scale"),
        (
            "reduced = 1_000, full = 10_000",
            "",
            "7: common.count: has no value for the scale `reduced`",
        ),
        ("phase = \"fill\"", "phase = \"fil\"", "31: goal[0]: case `one` has no phase `fil`"),
        ("ours = \"ours\"", "ours = \"us\"", "31: goal[0]: case `one` has no contender `us`"),
        ("than = \"theirs\"", "", "31: goal[0]: a goal has `than` and one of"),
        ("more = 0.5", "moar = 0.5", "36: goal[0].moar: unknown field `moar`"),
        ("rounds = 1", "rounds = 1\nround = 2", "4: round: unknown field `round`"),
        ("rounds = 1", "rounds = ", "3: string values"),
    ] {
        let text = SMALL.replacen(right, wrong, 1);
        assert_ne!(text, SMALL, "{right}");
        let problem = file::parse("small.toml", &text, Scale::Reduced).unwrap_err();
        assert!(problem.starts_with(&format!("small.toml:{message}")), "{wrong}: {problem}");
    }
}

#[test]
fn an_engine_that_is_not_here_is_left_out_and_named() {
    let (experiment, missing) = select(&args("autumn --quick"), &[ENGINE]).unwrap();
    assert_eq!(missing, ["rocksdb: not in this program; windrow-bench-peers has it"]);
    assert!(experiment.cases.iter().all(|case| case.contenders.len() == 4));
    // Its goals stay, and are said not to have been measured.
    assert!(experiment.goals.iter().any(|goal| goal.claim.to() == Some("rocksdb")));
    let none_left = select(&args("autumn --quick --policies rocksdb"), &[ENGINE]).unwrap_err();
    assert!(none_left.contains("not in this program"), "{none_left}");
}

#[test]
#[allow(clippy::disallowed_methods, reason = "a user's file, on the real disk")]
fn a_file_of_the_users_is_run() {
    let dir = tempfile::tempdir().unwrap();
    let (path, json) = (dir.path().join("my.toml"), dir.path().join("figures.json"));
    std::fs::write(&path, SMALL).unwrap();
    let line = format!("--quick --dir {} --json {}", dir.path().display(), json.display());
    let args = args(&format!("--file {} {line}", path.display()));
    let (experiment, missing) = select(&args, &[ENGINE]).unwrap();
    assert_eq!(missing.len(), 1);
    let sheet = run(&args, &[ENGINE], &experiment).unwrap();
    assert!(sheet.verdicts(&experiment.goals).contains("not measured"));
    let lines = std::fs::read_to_string(json).unwrap();
    assert!(lines.contains("\"engine\":\"windrow\"") && lines.contains("\"fill\""), "{lines}");
    let missing = dir.path().join("none.toml");
    let problem = select(&self::args(&format!("--file {}", missing.display())), &[ENGINE]);
    assert!(problem.unwrap_err().contains("none.toml"));
}

#[test]
fn what_clients_ask_for_is_what_the_engine_counts() {
    let dir = tempfile::tempdir().unwrap();
    let experiment = file::parse("small.toml", SMALL, Scale::Quick).unwrap();
    let case = &experiment.cases[0];
    let records = Arc::new(Records::new(case.sizes.clone(), 1));
    let open = |dir: &Path| {
        Database::open(&[ENGINE], dir, (case, &case.contenders[0]), &[], &records).unwrap()
    };
    let loaded = dir.path().join("loaded");
    let database = open(&loaded);
    let meter = Meter::start(&database);
    let mut client = database.client();
    (0..100).for_each(|number| client.put(number).unwrap());
    database.drain().unwrap();
    for number in 0..100 {
        assert!(client.get(number, false).unwrap() && !client.get(number, true).unwrap());
    }
    let mut figures = Figures::default();
    let asked = client.take_asked();
    meter.stop(&database, asked).figures(300, &mut figures);
    // One flush, of a little more than the keys and values, into level 0.
    let written = figures.get("write_amplification").unwrap();
    assert!((1.0..3.0).contains(&written), "{written}");
    assert_eq!(figures.get("compactions"), Some(0.0));
    assert!(figures.get("wasted_blocks_per_get").unwrap() < 1.0);
    assert_eq!(database.user_bytes(), Some(asked.put_bytes()));
    assert_eq!(client.take_asked().put_bytes(), 0);
    database.close().unwrap();
    // A copy of the files is the same database.
    let copy = dir.path().join("copy of it");
    files::copy_dir(&loaded, &copy).unwrap();
    let database = open(&copy);
    let mut client = database.client();
    assert!((0..100).all(|number| client.get(number, false).unwrap()));
    database.close().unwrap();
}

/// Runs an experiment with these contenders only, and looks for the figures of
/// its phases.
fn check(name: &str, policies: &str) {
    let dir = tempfile::tempdir().unwrap();
    let mut args = args(&format!("{name} --quick --dir {}", dir.path().display()));
    args.policies = policies.split(';').filter(|p| !p.is_empty()).map(str::to_owned).collect();
    let json = dir.path().join("figures.json");
    args.json = Some(json.clone());
    let (experiment, _) = select(&args, &[ENGINE]).unwrap();
    assert_eq!(args.scale, Scale::Quick);
    let sheet = run(&args, &[ENGINE], &experiment).unwrap();
    let text = sheet.verdicts(&experiment.goals);
    assert!(text.lines().count() > experiment.goals.len(), "{text}");
    let lines = std::fs::read_to_string(json).unwrap();
    for phase in experiment.cases[0].load.iter().chain(&experiment.cases[0].branches[0].phases) {
        assert!(lines.contains(&format!("\"phase\":\"{}\"", phase.name)), "{lines}");
    }
    if name == "merlin" {
        assert!(lines.contains("\"policy\":\"merlin\"") && lines.contains("averaging"), "{lines}");
    }
    // Databases do not stay behind: the directory goes once the figures have.
    let databases = dir.path().join(format!("windrow-paper-{}", std::process::id()));
    assert!(!databases.exists());
}

#[test]
fn autumn_runs() {
    check("autumn", "c=1;c=0.8");
}

#[test]
fn l2sm_runs() {
    check("l2sm", "leveled;sst_log(closed)");
}

#[test]
fn vlsm_runs() {
    check("vlsm", "leveled;windrow");
}

#[test]
fn mnemosyne_runs() {
    check("mnemosyne", "uniform;mnemosyne");
}

#[test]
fn merlin_runs() {
    check("merlin", "");
}
