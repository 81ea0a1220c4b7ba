//! Reads a workload file (TOML) at a scale: one workload, or one for each `[[case]]`, which
//! overrides the file's common values.
//!
//! Owns: the place of a mistake in a file. Never does: read the disk, or say what a key means (the
//! fields of [`Workload`] do).

use super::template::{Value, Wrong, at_scale, fill, join};
use super::{Scale, Workload};
use serde::Deserialize;
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeTable, DeValue, ValueDeserializer};

/// Reads a file's text: one workload, or one for each case. `file` is its name in commands and
/// results.
///
/// # Errors
/// A sentence with the file's name, line and key.
pub(crate) fn parse(file: &str, text: &str, scale: Scale) -> Result<Vec<Workload>, String> {
    let workloads = read(file, text, scale)?;
    // The full scale has every case and every phase.
    for workload in read(file, text, Scale::Full)? {
        workload.check_goals().map_err(|what| format!("workload {file}: {what}"))?;
    }
    Ok(workloads)
}

/// Reads the workloads in `text`. `file` is the file's name without its ending.
///
/// # Errors
/// `FILE:LINE: KEY: what is wrong`.
fn read(file: &str, text: &str, scale: Scale) -> Result<Vec<Workload>, String> {
    workloads(file, text, scale).map_err(|Wrong(at, message)| {
        let line = text[..at.start.min(text.len())].matches('\n').count() + 1;
        let key = DeTable::parse(text).ok().and_then(|table| key_at(&table.into_inner(), &at));
        let key = key.map(|key| format!("{key}: ")).unwrap_or_default();
        format!("workload {file}:{line}: {key}{message}")
    })
}

fn workloads(file: &str, text: &str, scale: Scale) -> Result<Vec<Workload>, Wrong> {
    let root = DeTable::parse(text)?;
    let (span, mut root) = (root.span(), root.into_inner());
    let cases = root.remove("case");
    let common = at_scale(Spanned::new(span.clone(), DeValue::Table(root)), scale)?;
    let common =
        common.unwrap_or_else(|| Spanned::new(span.clone(), DeValue::Table(DeTable::new())));
    let Some(cases) = cases else { return Ok(vec![workload(file, "", common)?]) };
    let here = match at_scale(cases, scale)?.map(|cases| (cases.span(), cases.into_inner())) {
        Some((_, DeValue::Array(cases))) => cases,
        Some((at, _)) => return Err(Wrong(at, "is written as `[[case]]`".to_owned())),
        None => return Err(Wrong(span, no_case(scale))),
    };
    let mut workloads: Vec<Workload> = Vec::new();
    for own in here {
        let place = own.span();
        let DeValue::Table(mut own) = own.into_inner() else {
            return Err(Wrong(place, "is written as `[[case]]`".to_owned()));
        };
        let name = own.remove("name");
        let name = name.as_ref().and_then(|name| name.get_ref().as_str()).map(str::to_owned);
        let Some(name) = name.filter(|name| !name.contains(',')) else {
            return Err(Wrong(place, "a case has a `name`, without a comma".to_owned()));
        };
        let own = Spanned::new(place.clone(), DeValue::Table(own));
        let whole = Spanned::new(place.clone(), join(common.clone(), own).into_inner());
        let workload = workload(file, &name, whole)?;
        if workloads.iter().any(|other| other.name == workload.name) {
            return Err(Wrong(place, format!("a second case `{name}`")));
        }
        workloads.push(workload);
    }
    share_goals(&mut workloads).ok_or_else(|| Wrong(span, no_case(scale)))?;
    Ok(workloads)
}

fn no_case(scale: Scale) -> String {
    format!("no `[[case]]` at the scale `{}`", scale.name())
}

/// Leaves each case its own goals. The first also has those of cases that do not exist at this
/// scale: the report says that they were not measured.
fn share_goals(workloads: &mut [Workload]) -> Option<()> {
    let cases: Vec<String> = workloads.iter().map(|workload| workload.case.clone()).collect();
    let first = cases.first()?;
    for workload in workloads {
        let own = &workload.case;
        workload.goals.retain(|goal| match &goal.case {
            Some(case) => case == own || own == first && !cases.contains(case),
            None => true,
        });
    }
    Some(())
}

/// Reads the workload that a table with all its keys describes.
fn workload(file: &str, case: &str, value: Value<'_>) -> Result<Workload, Wrong> {
    let span = value.span();
    let DeValue::Table(mut table) = value.into_inner() else {
        return Err(Wrong(span, "is a table".to_owned()));
    };
    let with = match table.remove("with").map(|with| (with.span(), with.into_inner())) {
        Some((_, DeValue::Table(with))) => Some(with),
        Some((at, _)) => return Err(Wrong(at, "is a table of names and values".to_owned())),
        // A case without `with` has an empty one, so that every `{...}` in it is an error.
        None => (!case.is_empty()).then(DeTable::new),
    };
    let value = Spanned::new(span.clone(), DeValue::Table(table));
    let value = match with {
        Some(with) => fill(value, &with)?,
        None => value,
    };
    let mut workload = Workload::deserialize(ValueDeserializer::from(value))?;
    file.clone_into(&mut workload.file);
    case.clone_into(&mut workload.case);
    workload.name = if case.is_empty() { file.to_owned() } else { format!("{file}: {case}") };
    workload.check().map_err(|problem| Wrong(span, problem))?;
    Ok(workload)
}

/// Returns the path of the smallest value or key whose place holds that of an error.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::draws::Draws;

    /// A whole file, small; the tests break it.
    const SMALL: &str = r#"title = "A small one"
family = "test"
about = "a"
rounds = 1

[data]
records = { quick = 100, reduced = 1_000, full = 10_000 }
key_bytes = 20
value_bytes = "10..20"

[store.settings]
memtable_bytes = "1MiB"

[[contender]]
name = "ours"
policy = "leveled"

[[contender]]
name = "theirs"
engine = "rocksdb"
settings = { rocksdb.multiplier = "{t}" }

[[phase]]
name = "fill"
ops = 100
mix = { put = 1 }
keys = "shuffled"

[[phase]]
scales = ["full"]
name = "more"
mix = { put = 1 }

[[case]]
name = "one"
with.t = 4

[[case]]
scales = ["full"]
name = "two"
with.t = 8
data.records = 50

[[goal]]
case = "two"
phase = "more"
figure = "kops_per_s"
ours = "ours"
than = "theirs"
more = 0.5
"#;

    fn parse(text: &str, scale: Scale) -> Result<Vec<Workload>, String> {
        super::parse("small", text, scale)
    }

    #[test]
    fn cases_and_scales_say_what_differs() {
        let full = parse(SMALL, Scale::Full).unwrap();
        let [one, two] = &full[..] else { panic!("{full:?}") };
        assert_eq!((one.name.as_str(), one.data.records), ("small: one", 10_000));
        assert_eq!((two.name.as_str(), two.data.records), ("small: two", 50));
        assert_eq!((one.phases.len(), one.goals.len(), two.goals.len()), (2, 0, 1));
        let setting = |value: &str| vec![("rocksdb.multiplier".to_owned(), value.to_owned())];
        assert_eq!(one.contenders[1].settings, setting("4"));
        assert_eq!(two.contenders[1].settings, setting("8"));
        assert_eq!(one.store.settings, [("memtable_bytes".to_owned(), "1MiB".to_owned())]);
        let quick = parse(SMALL, Scale::Quick).unwrap();
        assert_eq!((quick.len(), quick[0].phases.len()), (1, 1));
        assert_eq!((quick[0].data.records, quick[0].phases[0].keys), (100, Draws::Shuffled));
        // The case does not exist, and is reported as not measured.
        assert_eq!(quick[0].goals.len(), 1);
        // Where no value is given for the reduced scale, the full one's applies.
        let text = SMALL.replace("reduced = 1_000, ", "");
        assert_eq!(parse(&text, Scale::Reduced).unwrap()[0].data.records, 10_000);
    }

    #[test]
    fn a_mistake_is_named_with_file_line_and_key() {
        for (right, wrong, message) in [
            ("ops = 100", "opz = 100", "small:25: phase[0].opz: unknown field `opz`"),
            ("ops = 100", "ops = \"x\"", "small:25: phase[0].ops: invalid type"),
            ("\"shuffled\"", "\"shufled\"", "small:27: phase[0].keys: \"shufled\" is no"),
            ("key_bytes = 20", "key_bytes = 8", "small:34: case[0]: `key_bytes` must be"),
            ("rounds = 1", "rounds = 1\nround = 2", "small:5: round: unknown field `round`"),
            ("rounds = 1", "rounds = ", "small:4: string values"),
            ("with.t = 4", "", "small:21: contender[1].settings.rocksdb.multiplier: `with` says"),
            ("reduced = 1_000", "half = 1_000", "small:7: data.records.half: `half` is not"),
            (
                "reduced = 1_000, full = 10_000",
                "",
                "small:7: data.records: has no value for the scale `reduced`",
            ),
            ("name = \"two\"", "name = \"one\"", "a second case `one`"),
            ("name = \"theirs\"", "name = \"ours\"", "two contenders are called `ours`"),
            ("\"leveled\"", "\"levelled\"", "contender `ours`: "),
            ("memtable_bytes", "memtable_bites", "contender `ours`: there is no setting"),
            ("policy = \"leveled\"", "variant = \"x\"", "contender `ours`: Windrow has a"),
            ("phase = \"more\"", "phase = \"mor\"", "small: a goal of `kops_per_s`: no phase"),
            ("ours = \"ours\"", "ours = \"us\"", "no contender `us`"),
            ("case = \"two\"", "case = \"three\"", "no case `three`"),
            ("than = \"theirs\"", "", "has `than` and one of"),
            ("more = 0.5", "moar = 0.5", "goal[0].moar: unknown field `moar`"),
        ] {
            let text = SMALL.replacen(right, wrong, 1);
            assert_ne!(text, SMALL, "{right}");
            let problem = parse(&text, Scale::Reduced).unwrap_err();
            assert!(problem.contains(message), "{wrong}: {problem}");
        }
    }
}
