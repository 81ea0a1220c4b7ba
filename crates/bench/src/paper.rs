//! The papers behind Windrow's policies: a row for every figure, table and result that their
//! evaluations state, with the experiment that shows it here.
//!
//! Owns: the index of a paper (`papers/PAPER/paper.toml`), its checks, the files that come with
//! the program. Never does: run or draw.

mod catalogue;
mod headline;
mod result_form;

pub(crate) use catalogue::{experiment, experiments};
pub(crate) use headline::Headline;
pub(crate) use result_form::{Category, Form, ResultForm};

use crate::workload::{Scale, Workload, parse};
use serde::Deserialize;

/// A paper's index.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Paper {
    /// Its name in commands: the name of its folder.
    #[serde(skip)]
    pub(crate) key: String,
    pub(crate) name: String,
    pub(crate) title: String,
    pub(crate) authors: String,
    #[serde(rename = "row")]
    pub(crate) rows: Vec<Row>,
    /// The figures by which its design is judged.
    #[serde(rename = "headline", default)]
    pub(crate) headlines: Vec<Headline>,
}

/// A figure, a table or a result that the text states.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Row {
    /// The name that `run PAPER:ID` takes.
    pub(crate) id: String,
    /// Its name in the paper: `Fig. 3b`.
    pub(crate) is: String,
    /// The comparison, in a line.
    pub(crate) compares: String,
    /// The paper's experiment that shows it.
    run: Option<String>,
    /// Another command that shows it.
    command: Option<String>,
    /// The reason why nothing shows it.
    none: Option<String>,
    /// The experiment's cases that it needs; all of them if empty.
    #[serde(default)]
    pub(crate) cases: Vec<String>,
    /// Its form as a picture in the paper.
    pub(crate) picture: Option<ResultForm>,
    /// Its form as a table in the paper.
    pub(crate) table: Option<ResultForm>,
}

/// The way in which a row is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum By<'a> {
    /// By an experiment of this name.
    Run(&'a str),
    /// By another command.
    Command(&'a str),
    /// Not at all, for this reason.
    None(&'a str),
}

impl Row {
    /// Returns the way in which it is shown.
    pub(crate) fn by(&self) -> By<'_> {
        match (&self.run, &self.command, &self.none) {
            (Some(run), ..) => By::Run(run),
            (_, Some(command), _) => By::Command(command),
            (.., none) => By::None(none.as_deref().unwrap_or_default()),
        }
    }

    #[cfg(test)]
    fn check(&self, paper: &Paper) -> Result<(), String> {
        let wrong = |what: String| Err(format!("row `{}`: {what}", self.id));
        let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
        if self.id.is_empty() || !self.id.chars().all(is_plain) {
            return wrong("an `id` is lower-case letters and digits".to_owned());
        }
        if [&self.run, &self.command, &self.none].into_iter().flatten().count() != 1 {
            return wrong("has one of `run`, `command` and `none`".to_owned());
        }
        let By::Run(name) = self.by() else {
            return match self.picture.is_some() || self.table.is_some() {
                true => wrong("only a `run` has a `picture` or a `table`".to_owned()),
                false => Ok(()),
            };
        };
        let file = paper.experiment_name(name);
        let Some(text) = experiment(&file) else {
            return wrong(format!("no experiment `{name}`"));
        };
        let workloads = parse(&file, text, Scale::Full)?;
        let is_case = |name: &String| workloads.iter().any(|workload| workload.case == *name);
        if let Some(name) = self.cases.iter().find(|name| !is_case(name)) {
            return wrong(format!("no case `{name}`"));
        }
        match [&self.picture, &self.table].into_iter().flatten().next() {
            Some(shown) => {
                shown.check(&workloads).map_err(|what| format!("row `{}`: {what}", self.id))
            }
            None => wrong("a `run` has a `picture` or a `table`".to_owned()),
        }
    }
}

impl Paper {
    fn parse(key: &str, text: &str) -> Result<Paper, String> {
        let paper: Paper = toml::from_str(text).map_err(|error| format!("{key}: {error}"))?;
        Ok(Paper { key: key.to_owned(), ..paper })
    }

    #[cfg(test)]
    fn check(&self) -> Result<(), String> {
        for (i, row) in self.rows.iter().enumerate() {
            row.check(self)?;
            let earlier = &self.rows[..i];
            if earlier.iter().any(|other| other.id == row.id || other.is == row.is) {
                return Err(format!("two rows are called `{}` or `{}`", row.id, row.is));
            }
        }
        for headline in &self.headlines {
            let file = self.experiment_name(&headline.run);
            let text = experiment(&file).ok_or_else(|| format!("no experiment `{file}`"))?;
            headline.check(&parse(&file, text, Scale::Full)?)?;
        }
        Ok(())
    }

    /// Returns the name of one of its experiments in commands and results.
    pub(crate) fn experiment_name(&self, experiment: &str) -> String {
        format!("{}/{experiment}", self.key)
    }

    /// Returns its experiments at a scale.
    pub(crate) fn workloads(&self, scale: Scale) -> Result<Vec<Workload>, String> {
        let parsed =
            experiments(&self.key).into_iter().map(|(name, text)| parse(&name, text, scale));
        Ok(parsed.collect::<Result<Vec<_>, _>>()?.concat())
    }
}

/// Returns all papers.
#[allow(clippy::expect_used, reason = "the files are compiled in, and tested")]
pub(crate) fn all() -> Vec<Paper> {
    let parsed = catalogue::indexes().map(|(key, text)| Paper::parse(key, text));
    parsed.collect::<Result<_, _>>().expect("the papers' own files")
}

/// An experiment by its name, and the cases that are asked for: all of them if there are none.
pub(crate) type Asked = (String, Vec<String>);

/// Returns the experiments that a name on the command line asks for; `None` if it names no paper.
///
/// # Errors
/// A sentence, if the paper has no such row, or one that has no experiment.
pub(crate) fn asked(name: &str) -> Result<Option<Vec<Asked>>, String> {
    let papers = all();
    let whole = |paper: &Paper| {
        let files = experiments(&paper.key).into_iter();
        files.map(|(file, _)| (file, Vec::new())).collect::<Vec<_>>()
    };
    if name == "papers" {
        return Ok(Some(papers.iter().flat_map(whole).collect()));
    }
    if experiment(name).is_some() {
        return Ok(Some(vec![(name.to_owned(), Vec::new())]));
    }
    let (key, id) = name.split_once(':').unwrap_or((name, ""));
    let Some(paper) = papers.iter().find(|paper| paper.key == key) else { return Ok(None) };
    if id.is_empty() {
        return Ok(Some(whole(paper)));
    }
    let row = paper.rows.iter().find(|row| row.id == id);
    let row = row.ok_or_else(|| {
        format!("{} has no `{id}`; `windrow-bench list papers` names what it has", paper.name)
    })?;
    match row.by() {
        By::Run(run) => Ok(Some(vec![(paper.experiment_name(run), row.cases.clone())])),
        By::Command(command) => Err(format!("{name} is shown by another command: {command}")),
        By::None(why) => Err(format!("{name} has no experiment: {why}")),
    }
}

/// Returns the names of all papers' experiments.
pub(crate) fn experiment_names() -> Vec<String> {
    let of = |paper: &Paper| experiments(&paper.key).into_iter().map(|(name, _)| name);
    all().iter().flat_map(of).collect()
}

/// Returns the rows of all papers, as `list papers` prints them.
pub(crate) fn listed() -> String {
    let mut text = String::new();
    for paper in all() {
        let Paper { name, title, authors, .. } = &paper;
        text += &format!("{name}: {title}. {authors}\n");
        let wide = paper.rows.iter().map(|row| paper.key.len() + row.id.len() + 1).max();
        let (wide, is) = (wide.unwrap_or(0), |row: &Row| row.is.chars().count());
        let is_wide = paper.rows.iter().map(is).max().unwrap_or(0);
        for row in &paper.rows {
            let called = format!("{}:{}", paper.key, row.id);
            let by = match row.by() {
                By::Run(_) => String::new(),
                By::Command(command) => format!(" [{command}]"),
                By::None(why) => format!(" [not shown: {why}]"),
            };
            text += &format!("  {called:<wide$}  {:<is_wide$}  {}{by}\n", row.is, row.compares);
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_has_its_experiment_and_every_goal_its_row() {
        for paper in all() {
            paper.check().unwrap_or_else(|problem| panic!("{}: {problem}", paper.key));
            assert!(!paper.headlines.is_empty(), "{}", paper.key);
            for scale in Scale::ALL {
                let workloads = paper.workloads(scale).unwrap();
                assert!(workloads.iter().all(|workload| !workload.measured().is_empty()));
            }
            for workload in paper.workloads(Scale::Full).unwrap() {
                let is_row = |name: &str| paper.rows.iter().any(|row| row.is == name);
                for goal in &workload.goals {
                    let of = goal.paper.as_deref().unwrap_or_default();
                    assert!(is_row(of), "{}: a goal of `{of}`", workload.name);
                }
                let default = |c: &crate::workload::Contender| c.name == "windrow";
                assert!(workload.contenders.iter().any(default), "{}", workload.name);
            }
            let shown = |file: &str| {
                paper.rows.iter().any(
                    |row| matches!(row.by(), By::Run(run) if paper.experiment_name(run) == file),
                )
            };
            for (file, _) in experiments(&paper.key) {
                assert!(shown(&file), "no row runs {file}");
            }
        }
    }

    #[test]
    fn names_ask_for_files_and_cases() {
        assert_eq!(asked("fill").unwrap(), None);
        let files = asked("papers").unwrap().unwrap();
        let of_papers: usize = all().iter().map(|paper| experiments(&paper.key).len()).sum();
        assert_eq!(files.len(), of_papers);
        let problem = asked("autumn:fig99").unwrap_err();
        assert!(problem.contains("list papers"), "{problem}");
        for paper in all() {
            for row in &paper.rows {
                let asked = asked(&format!("{}:{}", paper.key, row.id));
                match row.by() {
                    By::Run(_) => assert_eq!(asked.unwrap().unwrap()[0].1, row.cases),
                    By::Command(words) | By::None(words) => {
                        assert!(asked.unwrap_err().contains(words));
                    }
                }
            }
        }
    }

    #[test]
    fn mistakes_of_an_index_are_named() {
        // The experiment has no cases.
        let (name, experiment) = ("autumn", "ycsb");
        let index = |row: &str| {
            format!(
                "name = \"A\"\ntitle = \"T\"\nauthors = \"B\"\n[[row]]\nid = \"fig1\"\nis = \"Fig. 1\"\ncompares = \"c\"\n{row}"
            )
        };
        for (row, part) in [
            ("", "has one of"),
            ("none = \"x\"\nrun = \"y\"", "has one of"),
            ("run = \"nothing\"", "no experiment `nothing`"),
            (&format!("run = \"{experiment}\"\ncases = [\"no\"]"), "no case `no`"),
            (&format!("run = \"{experiment}\""), "has a `picture` or a `table`"),
            (
                &format!(
                    "run = \"{experiment}\"\npicture = {{ bars = \"levels\", phases = [\"no\"] }}"
                ),
                "no phase `no`",
            ),
            (
                "none = \"x\"\n[[row]]\nid = \"fig1\"\nis = \"Fig. 2\"\ncompares = \"c\"\nnone = \"x\"",
                "two rows",
            ),
            (
                "none = \"x\"\n[[row]]\nid = \"Fig 2\"\nis = \"Fig. 2\"\ncompares = \"c\"\nnone = \"x\"",
                "lower-case",
            ),
        ] {
            let paper = Paper::parse(name, &index(row)).unwrap();
            let problem = paper.check().unwrap_err();
            assert!(problem.contains(part), "{row}: {problem}");
        }
    }
}
