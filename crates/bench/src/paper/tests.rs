//! Every experiment, tiny: it runs, measures what it promises, and its goals
//! name figures that exist.

use super::args::{Args, EXPERIMENTS};
use super::experiment::{Claim, Experiment, Phase, Scale};
use super::{run, select};

fn args(line: &str) -> Args {
    let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
    Args::parse(&words).unwrap()
}

fn experiments(scale: &str) -> Vec<Experiment> {
    EXPERIMENTS.iter().map(|name| select(&args(&format!("{name} {scale}"))).unwrap()).collect()
}

#[test]
fn goals_name_what_is_there_at_full_scale() {
    for experiment in experiments("--full") {
        for goal in &experiment.goals {
            let case = experiment.cases.iter().find(|case| case.name == goal.at.case);
            let case = case.unwrap_or_else(|| panic!("no case {}", goal.at.case));
            let branch = case.branches.iter().find(|branch| branch.name == goal.at.branch);
            let phases = branch.map_or(&case.load, |branch| &branch.phases);
            // An open loop's phases go on with the share of the rate.
            let is_named = |p: &Phase| goal.at.phase.split(" at ").next() == Some(p.name);
            assert!(goal.at.phase == "tree" || phases.iter().any(is_named), "{:?}", goal.at);
            if experiment.name == "merlin" {
                continue;
            }
            let is_known = |name| case.contenders.iter().any(|c| c.name == name);
            assert!(is_known(goal.ours), "{}", goal.ours);
            if let Claim::Less { to, .. } | Claim::More { to, .. } = goal.claim {
                assert!(is_known(to), "{to}");
            }
        }
    }
}

#[test]
fn every_setting_and_policy_is_valid() {
    for scale in ["--quick", "", "--full"] {
        for experiment in experiments(scale) {
            for case in &experiment.cases {
                // Or the command line could not name it in a list.
                assert!(!case.name.contains(','), "{}", case.name);
                for contender in &case.contenders {
                    let mut settings = windrow::Settings::default();
                    for (name, value) in case.settings.iter().chain(&contender.settings) {
                        settings.set(name, value).unwrap();
                    }
                    settings.set("preset", &contender.policy).unwrap();
                    assert_eq!(settings.validate(), Ok(()), "{} {}", case.name, contender.name);
                }
            }
        }
    }
}

/// Runs an experiment with these contenders only, and looks for the figures of
/// its phases.
fn check(name: &str, policies: &str) {
    let dir = tempfile::tempdir().unwrap();
    let mut args = args(&format!("{name} --quick --dir {}", dir.path().display()));
    args.policies = policies.split(';').filter(|p| !p.is_empty()).map(str::to_owned).collect();
    let json = dir.path().join("figures.json");
    args.json = Some(json.clone());
    let experiment = select(&args).unwrap();
    assert_eq!(args.scale, Scale::Quick);
    let sheet = run(&args, &experiment).unwrap();
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
