//! Reads an experiment from a workload file (TOML).
//!
//! A file has the keys of [`Head`], `[common]`, which is what every `[[case]]`
//! begins with, and `[[goal]]`s; `template.rs` says what may be written once
//! for many. An error names the file, the line and the key.
//!
//! Owns: the files' form, and what of a file must fit together. Never does:
//! read the disk, or say what a phase's keys mean (`experiment.rs` does).

use super::experiment::{Branch, Case, Claim, Contender, Experiment, Goal, Phase, Place};
use super::experiment::{Setting, Work};
use super::fields;
use super::records::Sizes;
use super::template::{SCALES, Value, Wrong, at_scale, fill, join};
use crate::workload::Scale;
use serde::Deserialize;
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeTable, DeValue, ValueDeserializer};

/// Reads the experiment in `text`, at a scale.
///
/// # Errors
/// `FILE:LINE: KEY: what is wrong`.
pub(super) fn parse(file: &str, text: &str, scale: Scale) -> Result<Experiment, String> {
    experiment(text, scale).map_err(|Wrong(at, message)| {
        let line = text[..at.start.min(text.len())].matches('\n').count() + 1;
        let key = DeTable::parse(text).ok().and_then(|table| key_at(&table.into_inner(), &at));
        let key = key.map(|key| format!("{key}: ")).unwrap_or_default();
        format!("{file}:{line}: {key}{message}")
    })
}

/// What a file says of the whole experiment.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Head {
    name: String,
    title: String,
    #[serde(default)]
    notes: Vec<String>,
    #[serde(deserialize_with = "fields::positive_u32")]
    rounds: u32,
    shown: Vec<String>,
}

/// A case's keys.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CaseKeys {
    name: String,
    #[serde(deserialize_with = "fields::positive")]
    count: u64,
    #[serde(deserialize_with = "fields::key_bytes")]
    key_bytes: usize,
    #[serde(deserialize_with = "fields::value_bytes")]
    value_bytes: (usize, usize),
    #[serde(default = "one", deserialize_with = "fields::positive_u32")]
    regions: u32,
    #[serde(default, deserialize_with = "fields::settings")]
    settings: Vec<Setting>,
    contender: Vec<Spanned<ContenderKeys>>,
    load: Vec<Phase>,
    #[serde(default)]
    branch: Vec<Branch>,
}

fn one() -> u32 {
    1
}

/// A contender's keys.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ContenderKeys {
    name: String,
    engine: Option<String>,
    /// Of Windrow.
    #[serde(default, deserialize_with = "fields::policy")]
    policy: Option<String>,
    /// Of any other engine.
    variant: Option<String>,
    #[serde(default, deserialize_with = "fields::settings")]
    settings: Vec<Setting>,
}

/// A goal's keys.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GoalKeys {
    /// May be left out where there is but one.
    case: Option<String>,
    #[serde(default)]
    branch: String,
    phase: String,
    figure: String,
    #[serde(deserialize_with = "fields::names")]
    ours: Vec<String>,
    /// The contender that `ours` is compared with.
    than: Option<String>,
    /// By this share: 0.19 for "19 % less".
    less: Option<f64>,
    /// By this share.
    more: Option<f64>,
    times_less: Option<f64>,
    /// The figure itself.
    at_least: Option<f64>,
}

fn experiment(text: &str, scale: Scale) -> Result<Experiment, Wrong> {
    let parts = Parts::of(text, scale)?;
    let goals = parts.goals;
    let mut experiment = Experiment {
        name: parts.head.name,
        title: parts.head.title,
        notes: parts.head.notes,
        cases: parts.cases,
        rounds: parts.head.rounds,
        shown: parts.head.shown,
        goals: Vec::new(),
    };
    // What a goal names may be there at another scale only: it is then not
    // measured at this one, and said to be so.
    let at_any_scale = |case: &str, keys: &GoalKeys| {
        let others = SCALES.into_iter().filter_map(|scale| Parts::of(text, scale).ok());
        others.into_iter().any(|parts| check_goal(&parts.cases, case, keys).is_ok())
    };
    for goal in goals {
        let goals = goals_of(&experiment.cases, goal, &at_any_scale)?;
        experiment.goals.extend(goals);
    }
    Ok(experiment)
}

/// A file's tables at a scale.
struct Parts<'i> {
    head: Head,
    cases: Vec<Case>,
    goals: Vec<Value<'i>>,
}

impl Parts<'_> {
    fn of(text: &str, scale: Scale) -> Result<Parts<'_>, Wrong> {
        let root = DeTable::parse(text)?;
        let (span, mut root) = (root.span(), root.into_inner());
        let mut take = |name: &str| match root.remove(name) {
            Some(value) => at_scale(value, scale),
            None => Ok(None),
        };
        let (common, cases, goals) = (take("common")?, take("case")?, take("goal")?);
        let root = at_scale(Spanned::new(span.clone(), DeValue::Table(root)), scale)?;
        let root = root.unwrap_or(Spanned::new(span.clone(), DeValue::Table(DeTable::new())));
        let head = Head::deserialize(ValueDeserializer::from(root))?;
        let mut parts = Parts { head, cases: Vec::new(), goals: elements(goals)? };
        for own in elements(cases)? {
            let place = own.span();
            let whole = match common.clone() {
                Some(common) => Spanned::new(place.clone(), join(common, own).into_inner()),
                None => own,
            };
            let case = case(whole)?;
            if parts.cases.iter().any(|other| other.name == case.name) {
                return Err(Wrong(place, format!("a second case `{}`", case.name)));
            }
            parts.cases.push(case);
        }
        if parts.cases.is_empty() {
            return Err(Wrong(span, format!("no `[[case]]` at the scale `{}`", scale.name())));
        }
        Ok(parts)
    }
}

/// The elements of an array; none of nothing.
fn elements<'i>(value: Option<Value<'i>>) -> Result<Vec<Value<'i>>, Wrong> {
    let Some(value) = value else { return Ok(Vec::new()) };
    let span = value.span();
    match value.into_inner() {
        DeValue::Array(array) => Ok(array.into_iter().collect()),
        _ => Err(Wrong(span, "is written as `[[...]]`".to_owned())),
    }
}

/// The case that a table with all its keys describes.
fn case(value: Value<'_>) -> Result<Case, Wrong> {
    let span = value.span();
    let DeValue::Table(mut table) = value.into_inner() else {
        return Err(Wrong(span, "is written as `[[case]]`".to_owned()));
    };
    let with = match table.remove("with").map(|with| (with.span(), with.into_inner())) {
        Some((_, DeValue::Table(with))) => with,
        Some((span, _)) => return Err(Wrong(span, "is a table of names and values".to_owned())),
        None => DeTable::new(),
    };
    let value = fill(Spanned::new(span.clone(), DeValue::Table(table)), &with)?;
    let keys = CaseKeys::deserialize(ValueDeserializer::from(value))?;
    let mut case = Case {
        name: keys.name,
        sizes: Sizes {
            count: keys.count,
            key_bytes: keys.key_bytes,
            value_bytes: keys.value_bytes,
        },
        regions: keys.regions,
        settings: keys.settings,
        contenders: Vec::new(),
        load: keys.load,
        branches: keys.branch,
    };
    // Or the command line could not name it in a list.
    if case.name.contains(',') {
        return Err(Wrong(span, format!("the case's name `{}` has a comma", case.name)));
    }
    let branches = &case.branches;
    let is_twice = |i: usize| branches[..i].iter().any(|b| b.name == branches[i].name);
    if let Some(i) = (0..branches.len()).find(|i| is_twice(*i)) {
        let name = &branches[i].name;
        return Err(Wrong(span, format!("case `{}`: a second branch `{name}`", case.name)));
    }
    for keys in keys.contender {
        let contender = contender(&case, keys)?;
        case.contenders.push(contender);
    }
    if case.contenders.is_empty() || case.load.is_empty() {
        return Err(Wrong(span, "a case has a `contender` and a `load` at least".to_owned()));
    }
    Ok(case)
}

/// One more contender of a case.
fn contender(case: &Case, keys: Spanned<ContenderKeys>) -> Result<Contender, Wrong> {
    let (span, keys) = (keys.span(), keys.into_inner());
    let wrong = |message: String| Err(Wrong(span, format!("`{}`: {message}", keys.name)));
    let engine = keys.engine.unwrap_or_else(|| "windrow".to_owned());
    if case.contenders.iter().any(|other| other.name == keys.name) {
        return wrong("a second contender of this name".to_owned());
    }
    let is_windrow = engine == "windrow";
    if !is_windrow && case.estimates() {
        return wrong("only Windrow estimates searches of its tables".to_owned());
    }
    let variant = match (is_windrow, keys.policy, keys.variant) {
        (true, policy, None) => policy,
        (false, None, variant) => variant,
        _ => return wrong("Windrow has a `policy`, other engines a `variant`".to_owned()),
    };
    let contender = Contender {
        name: keys.name.clone(),
        engine,
        variant: variant.unwrap_or_default(),
        settings: keys.settings,
    };
    // Each was tried by itself; here whether they go together.
    if is_windrow {
        let mut all = windrow::Settings::default();
        let settings = case.settings.iter().chain(&contender.settings);
        let mut of_windrow = settings.filter(|(name, _)| !name.contains('.'));
        let set = of_windrow.try_for_each(|(name, value)| all.set(name, value));
        let checked = set.map_err(|e| e.message().to_owned()).and_then(|()| {
            if !contender.variant.is_empty() {
                all.set("preset", &contender.variant).map_err(|e| e.message().to_owned())?;
            }
            all.validate().map_err(|problems| problems.join("; "))
        });
        if let Err(problem) = checked {
            return wrong(problem);
        }
    }
    Ok(contender)
}

/// The goals that a `[[goal]]` comes to: one for each of `ours`.
fn goals_of(
    cases: &[Case],
    value: Value<'_>,
    at_any_scale: &dyn Fn(&str, &GoalKeys) -> bool,
) -> Result<Vec<Goal>, Wrong> {
    let span = value.span();
    let keys = GoalKeys::deserialize(ValueDeserializer::from(value))?;
    let wrong = |message: String| Err(Wrong(span.clone(), message));
    let case = match (&keys.case, cases) {
        (Some(case), _) => case.clone(),
        (None, [only]) => only.name.clone(),
        (None, _) => return wrong("there are several cases: which `case`?".to_owned()),
    };
    let claim = match (&keys.than, keys.less, keys.more, keys.times_less, keys.at_least) {
        (Some(than), Some(share), None, None, None) => Claim::less(than, share),
        (Some(than), None, Some(share), None, None) => Claim::more(than, share),
        (Some(than), None, None, Some(times), None) => Claim::times_less(than, times),
        (None, None, None, None, Some(value)) => Claim::Reaches(value),
        _ => {
            let message =
                "a goal has `than` and one of `less`, `more`, `times_less`; or `at_least`";
            return wrong(message.to_owned());
        }
    };
    if let Err(problem) = check_goal(cases, &case, &keys)
        && !at_any_scale(&case, &keys)
    {
        return wrong(problem);
    }
    let at = Place::new(&case, &keys.branch, &keys.phase);
    let goal = |ours: &String| Goal {
        at: at.clone(),
        figure: keys.figure.clone(),
        ours: ours.clone(),
        claim: claim.clone(),
    };
    Ok(keys.ours.iter().map(goal).collect())
}

/// Whether what a goal names is there.
fn check_goal(cases: &[Case], name: &str, goal: &GoalKeys) -> Result<(), String> {
    let case = cases.iter().find(|case| case.name == name);
    let case = case.ok_or_else(|| format!("no case `{name}`"))?;
    let Some(phases) = case.phases(&goal.branch) else {
        return Err(format!("case `{}` has no branch `{}`", case.name, goal.branch));
    };
    // An open loop's phases go on with the share of the rate, which may be
    // one of another scale.
    let is_named = |phase: &Phase| match &phase.work {
        Work::OpenLoop(_) => goal.phase.split(" at ").next() == Some(phase.name.as_str()),
        _ => phase.name == goal.phase,
    };
    if goal.phase != "tree" && !phases.iter().any(is_named) {
        return Err(format!("case `{}` has no phase `{}` there", case.name, goal.phase));
    }
    for who in goal.ours.iter().chain(&goal.than) {
        let is_estimate = case.estimates() && ["merlin", "averaging"].contains(&who.as_str());
        if !is_estimate && !case.contenders.iter().any(|c| c.name == *who) {
            return Err(format!("case `{}` has no contender `{who}`", case.name));
        }
    }
    Ok(())
}

/// The path of the smallest value or key whose place holds that of an error.
fn key_at(table: &DeTable<'_>, at: &Range<usize>) -> Option<String> {
    fn look(value: &Value<'_>, path: &str, at: &Range<usize>, best: &mut Option<(usize, String)>) {
        offer(&value.span(), path, at, best);
        match value.get_ref() {
            DeValue::Table(table) => of_table(table, path, at, best),
            DeValue::Array(array) => array
                .iter()
                .enumerate()
                .for_each(|(i, value)| look(value, &format!("{path}[{i}]"), at, best)),
            _ => {}
        }
    }
    fn of_table(
        table: &DeTable<'_>,
        path: &str,
        at: &Range<usize>,
        best: &mut Option<(usize, String)>,
    ) {
        for (key, value) in table {
            let dot = if path.is_empty() { "" } else { "." };
            let path = format!("{path}{dot}{}", key.get_ref());
            offer(&key.span(), &path, at, best);
            look(value, &path, at, best);
        }
    }
    fn offer(
        span: &Range<usize>,
        path: &str,
        at: &Range<usize>,
        best: &mut Option<(usize, String)>,
    ) {
        let holds = span.start <= at.start && at.end <= span.end;
        if holds && best.as_ref().is_none_or(|(length, _)| span.len() <= *length) {
            *best = Some((span.len(), path.to_owned()));
        }
    }
    let mut best = None;
    of_table(table, "", at, &mut best);
    best.map(|(_, path)| path)
}
