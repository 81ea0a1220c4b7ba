//! Arguments of `windrow-bench`.
//!
//! Owns: commands, flags, defaults. Never does: run anything.

use crate::child::{self, Setup};
use crate::claims::claims;
use crate::paper;
use crate::store::Engine;
use crate::workload::{self, Contender, Scale, Workload, builtin, by_name, names};
use std::collections::HashSet;
use std::path::PathBuf;

/// Usage of `windrow-bench` and of `windrow-bench-peers`.
pub(crate) const USAGE: &str = "\
usage: windrow-bench COMMAND [flags]

Workloads on one or several engines in turn; each engine's every run is a
process of its own. A table on the terminal, JSON lines in a file.

  claims                measures what README's table of speed says, and prints
                        both; at most ten minutes for one engine
  quick                 every workload, small: a test of the benchmark, whose
                        figures say nothing; under two minutes for one engine
  full                  every workload at the published sizes; hours
  run NAME|FILE.toml... these workloads at --scale; a paper's figure as autumn:fig3b, all
                        of a paper as autumn, those of all papers as papers
  resume RUN.jsonl      goes on with a run that was interrupted
  report RUN.jsonl...   a page with pictures, and the pictures as SVG files
  list                  the workloads
  list papers           the papers' figures, tables and results, and what shows each
  show NAME             a workload's file, to copy and change

  --engines LIST        contenders, as ENGINE or ENGINE:VARIANT; of Windrow the
                        variant is a preset or policy, as in windrow:leveled   [all engines];
                        of a workload with contenders of its own, some of those [all of them]
  --cases LIST          of a workload with cases, only these
  --scale S             quick, reduced or full                  [reduced; run only]
  --rounds R            rounds of each contender                [the workload's; of claims 1]
  --seed N              seed of keys, values and operations     [1]
  --dir D               where databases are made                [a temporary directory]
  --json FILE           where the lines go                      [windrow-bench-TIME.jsonl]
  --memory-mib M        memory budget of each store             [the workload's]
  --direct-io on|off    tables past the page cache              [the workload's]
  --threads T           background threads of each store        [2]
  --codec none|lz4      compression of tables                   [none]
  --set NAME=VALUE      a setting of Windrow, or ENGINE.NAME=VALUE; may be repeated
  --verbose             each store's own statistics on stderr

report also takes

  --out DIR             where the page goes                     [bench-report]
  --markdown FILE       the tables as Markdown, too
  --papers DIR          the papers' pages in DIR: fills in the rows that the run has
  --headlines FILE      one picture of the papers' headlines, as SVG, and nothing else";

/// Returns a command's words as they are recorded: without the places of its files on this machine,
/// which concern no other reader and decide nothing.
pub(crate) fn without_places(command: &[String]) -> Vec<String> {
    let is_place = |word: &String| word == "--json" || word == "--dir";
    let follows_place = |at: usize| at > 0 && is_place(&command[at - 1]);
    let kept = |(at, word): &(usize, &String)| !is_place(word) && !follows_place(*at);
    command.iter().enumerate().filter(kept).map(|(_, word)| word.clone()).collect()
}

/// The parsed command.
#[derive(Clone, Debug)]
pub(crate) enum Command {
    Run(RunArgs),
    /// The file of the run that is resumed, and the directory of its databases.
    Resume(PathBuf, Option<PathBuf>),
    Report(ReportArgs),
    List,
    ListPapers,
    Show(String),
    /// A unit of a run, as JSON.
    Child(String),
}

/// The question that a run answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum About {
    /// The figures of its workloads.
    Workloads,
    /// Whether its workloads run.
    Quick,
    /// Whether README's figures are right.
    Claims,
}

/// A run.
#[derive(Clone, Debug)]
pub(crate) struct RunArgs {
    /// The workloads with their files' texts.
    pub(crate) workloads: Vec<(Workload, String)>,
    pub(crate) scale: Scale,
    pub(crate) about: About,
    /// Names of contenders; those of the workloads, or all engines, if empty.
    contenders: Vec<String>,
    cases: Vec<String>,
    /// The parts of the workloads that are left out, with the reasons.
    pub(crate) notes: Vec<String>,
    pub(crate) rounds: Option<u32>,
    pub(crate) seed: u64,
    pub(crate) dir: Option<PathBuf>,
    pub(crate) json: Option<PathBuf>,
    pub(crate) setup: Setup,
}

/// A report.
#[derive(Clone, Debug)]
pub(crate) struct ReportArgs {
    pub(crate) runs: Vec<PathBuf>,
    pub(crate) out: PathBuf,
    pub(crate) markdown: Option<PathBuf>,
    /// The folder of the papers' pages.
    pub(crate) papers: Option<PathBuf>,
    /// The file of the picture of the papers' headlines, which is then all that is written.
    pub(crate) headlines: Option<PathBuf>,
}

type Words<'a> = std::slice::Iter<'a, String>;

impl Command {
    /// Reads the arguments after the program's (or subcommand's) name.
    ///
    /// # Errors
    /// A sentence that names the argument.
    pub(crate) fn parse(args: &[String], engines: &[Engine]) -> Result<Command, String> {
        let mut words = args.iter();
        let command = words.next().map(String::as_str).unwrap_or_default();
        let one = |words: &mut Words<'_>, what: &str| {
            let word = words.next().cloned();
            word.ok_or(format!("{command} needs {what}"))
        };
        match command {
            "claims" => run(engines, &claimed(), About::Claims, Scale::Reduced, words),
            "quick" => run(engines, &names(), About::Quick, Scale::Quick, words),
            "full" => run(engines, &names(), About::Workloads, Scale::Full, words),
            "run" => {
                let named: Vec<String> =
                    words.clone().take_while(|word| !word.starts_with("--")).cloned().collect();
                let mut rest = words;
                named.iter().for_each(|_| {
                    rest.next();
                });
                match named.is_empty() {
                    true => Err("run needs the name of a workload, or a file".to_owned()),
                    false => run(engines, &named, About::Workloads, Scale::Reduced, rest),
                }
            }
            "resume" => {
                let file = one(&mut words, "the file of a run")?.into();
                match (words.next().map(String::as_str), words.next()) {
                    (None, _) => Ok(Command::Resume(file, None)),
                    (Some("--dir"), Some(dir)) => Ok(Command::Resume(file, Some(dir.into()))),
                    (Some(other), _) => {
                        Err(format!("resume: `{other}` is not a flag, or lacks a value"))
                    }
                }
            }
            "report" => report(words),
            "list" => match words.next().map(String::as_str) {
                None => Ok(Command::List),
                Some("papers") => Ok(Command::ListPapers),
                Some(other) => Err(format!("list: `{other}` is not `papers`")),
            },
            "show" => Ok(Command::Show(one(&mut words, "the name of a workload")?)),
            "--child" => Ok(Command::Child(one(&mut words, "a unit")?)),
            other => Err(format!("`{other}` is not a command")),
        }
    }
}

fn value<'a>(words: &mut Words<'a>, flag: &str) -> Result<&'a str, String> {
    words.next().map(String::as_str).ok_or(format!("{flag} needs a value"))
}

fn report(mut words: Words<'_>) -> Result<Command, String> {
    let mut args = ReportArgs {
        runs: Vec::new(),
        out: "bench-report".into(),
        markdown: None,
        papers: None,
        headlines: None,
    };
    while let Some(word) = words.next() {
        match word.as_str() {
            "--out" => args.out = value(&mut words, word)?.into(),
            "--markdown" => args.markdown = Some(value(&mut words, word)?.into()),
            "--papers" => args.papers = Some(value(&mut words, word)?.into()),
            "--headlines" => args.headlines = Some(value(&mut words, word)?.into()),
            flag if flag.starts_with("--") => {
                return Err(format!("report: `{flag}` is not a flag"));
            }
            file => args.runs.push(file.into()),
        }
    }
    match args.runs.is_empty() {
        true => Err("report needs the file of a run".to_owned()),
        false => Ok(Command::Report(args)),
    }
}

/// Returns the text of the workload or experiment that is built in under this name.
pub(crate) fn builtin_text(name: &str) -> Option<&'static str> {
    builtin(name).or_else(|| paper::experiment(name))
}

/// A workload file's name and text, and the cases that are asked for: all of them if empty.
type Asked = (String, String, Vec<String>);

/// Returns the files that a name asks for.
fn asked(name: &str) -> Result<Vec<Asked>, String> {
    let Some(files) = paper::asked(name)? else {
        let (file, text) = workload(name)?;
        return Ok(vec![(file, text, Vec::new())]);
    };
    let with_text = |(file, cases): (String, Vec<String>)| {
        let text = paper::experiment(&file).unwrap_or_default().to_owned();
        (file, text, cases)
    };
    Ok(files.into_iter().map(with_text).collect())
}

/// Returns a workload file's name and text: the one built in under this name, or a file's.
#[allow(clippy::disallowed_methods, reason = "the user's workload file")]
fn workload(name: &str) -> Result<(String, String), String> {
    if let Some(text) = builtin(name) {
        return Ok((name.to_owned(), text.to_owned()));
    }
    let path = PathBuf::from(name);
    if path.extension().is_none() {
        return Err(format!(
            "`{name}` is neither a workload nor a file; workloads are {}; `list papers` names \
             the papers' figures",
            [names(), by_name()].concat().join(", ")
        ));
    }
    let text = std::fs::read_to_string(&path).map_err(|error| format!("{name}: {error}"))?;
    let stem = path.file_stem().map_or(name.into(), |stem| stem.to_string_lossy().into_owned());
    Ok((stem, text))
}

/// Returns the workloads of README's table.
fn claimed() -> Vec<String> {
    let mut seen = HashSet::new();
    let names = claims().into_iter().map(|claim| claim.workload);
    names.filter(|name| seen.insert(name.clone())).collect()
}

fn run(
    engines: &[Engine],
    workloads: &[String],
    about: About,
    scale: Scale,
    mut words: Words<'_>,
) -> Result<Command, String> {
    let cases = match about {
        About::Claims => claims().into_iter().filter_map(|claim| claim.case).collect(),
        About::Workloads | About::Quick => Vec::new(),
    };
    let mut args = RunArgs {
        workloads: Vec::new(),
        scale,
        about,
        contenders: Vec::new(),
        cases,
        notes: Vec::new(),
        rounds: (about != About::Workloads).then_some(1),
        seed: 1,
        dir: None,
        json: None,
        setup: Setup { background_threads: 2, ..Setup::default() },
    };
    while let Some(flag) = words.next() {
        match flag.as_str() {
            "--verbose" => args.setup.verbose = true,
            flag => args.set(flag, value(&mut words, flag)?)?,
        }
    }
    for name in workloads {
        for (file, text, cases) in asked(name)? {
            let all = workload::parse(&file, &text, args.scale)?;
            for workload in args.chosen_cases(all, &cases)? {
                // Two figures may be shown by one experiment.
                if !args.workloads.iter().any(|(known, _)| known.name == workload.name) {
                    let workload = args.with_contenders(engines, workload)?;
                    args.workloads.push((workload, text.clone()));
                }
            }
        }
    }
    Ok(Command::Run(args))
}

/// Engines that `windrow-bench-peers` links.
const PEERS: [&str; 3] = ["rocksdb", "leveldb", "fjall"];

impl RunArgs {
    /// Returns the cases of a file that the arguments choose, out of those that are asked for. A
    /// case that does not exist at this scale is left out.
    fn chosen_cases(
        &self,
        mut workloads: Vec<Workload>,
        asked: &[String],
    ) -> Result<Vec<Workload>, String> {
        if !asked.is_empty() {
            workloads.retain(|workload| asked.contains(&workload.case));
        }
        let has_cases = workloads.iter().any(|workload| !workload.case.is_empty());
        if self.cases.is_empty() || !has_cases {
            return Ok(workloads);
        }
        let names: Vec<&str> = workloads.iter().map(|workload| workload.case.as_str()).collect();
        if let Some(name) = self.cases.iter().find(|name| !names.contains(&name.as_str())) {
            return Err(format!("no case `{name}`; they are `{}`", names.join("`, `")));
        }
        workloads.retain(|workload| self.cases.contains(&workload.case));
        Ok(workloads)
    }

    /// Gives a workload its contenders: its own as far as they are chosen and their engines are
    /// linked, or those of the command line.
    fn with_contenders(
        &mut self,
        engines: &[Engine],
        mut workload: Workload,
    ) -> Result<Workload, String> {
        let is_here = |name: &str| engines.iter().any(|engine| engine.name == name);
        if workload.contenders.is_empty() {
            let all = engines.iter().map(|engine| engine.name.to_owned());
            let names =
                if self.contenders.is_empty() { all.collect() } else { self.contenders.clone() };
            workload.contenders = names.iter().map(|name| Contender::named(name)).collect();
        } else {
            let names: Vec<&str> = workload.contenders.iter().map(|c| c.name.as_str()).collect();
            if let Some(name) = self.contenders.iter().find(|n| !names.contains(&n.as_str())) {
                let (of, names) = (&workload.name, names.join("`, `"));
                return Err(format!("{of} has no contender `{name}`; they are `{names}`"));
            }
            let chosen =
                |c: &Contender| self.contenders.is_empty() || self.contenders.contains(&c.name);
            workload.contenders.retain(chosen);
            let is_peer =
                |c: &&Contender| !is_here(&c.engine) && PEERS.contains(&c.engine.as_str());
            for missing in workload.contenders.iter().filter(is_peer) {
                let note =
                    format!("{}: not in this program; windrow-bench-peers has it", missing.name);
                if !self.notes.contains(&note) {
                    self.notes.push(note);
                }
            }
            workload.contenders.retain(|c| !is_peer(&c));
            if workload.contenders.is_empty() {
                return Err(format!("{}: {}", workload.name, self.notes.join("; ")));
            }
        }
        if workload.transacts() {
            self.leave_out_those_without_transactions(engines, &mut workload)?;
        }
        for contender in &workload.contenders {
            let engine = child::engine_of(engines, contender)?;
            if self.setup.lz4 && !engine.abilities.lz4 {
                return Err(format!("{} has no lz4 here; leave it out by --engines", engine.name));
            }
        }
        Ok(workload)
    }

    fn leave_out_those_without_transactions(
        &mut self,
        engines: &[Engine],
        workload: &mut Workload,
    ) -> Result<(), String> {
        for contender in std::mem::take(&mut workload.contenders) {
            match child::engine_of(engines, &contender)?.abilities.transactions {
                true => workload.contenders.push(contender),
                false => {
                    let note = format!("{}: left out, it has no transactions", contender.name);
                    self.notes.push(note);
                }
            }
        }
        match workload.contenders.is_empty() {
            true => Err(format!("{}: {}", workload.name, self.notes.join("; "))),
            false => Ok(()),
        }
    }

    /// Returns a number that is the same for runs of the same arguments.
    pub(crate) fn fingerprint(&self) -> u64 {
        let texts = self.workloads.iter().map(|(_, text)| text.as_str());
        let contenders = self.workloads.iter().flat_map(|(workload, _)| &workload.contenders);
        let words = texts.chain(contenders.map(|contender| contender.name.as_str()));
        let hash = |sum, word: &str| xxhash_rust::xxh3::xxh3_64_with_seed(word.as_bytes(), sum);
        let setup = format!("{:?}{:?}{:?}", self.scale, self.seed, self.setup);
        words.fold(hash(0, &setup), hash)
    }

    /// Returns the number of rounds of a workload.
    pub(crate) fn rounds_of(&self, workload: &Workload) -> u32 {
        self.rounds.unwrap_or(workload.rounds).max(1)
    }

    fn set(&mut self, flag: &str, value: &str) -> Result<(), String> {
        let number = || {
            let parsed: Result<u64, _> = value.replace('_', "").parse();
            parsed
                .ok()
                .filter(|n| *n > 0)
                .ok_or(format!("{flag}: `{value}` is not a number above 0"))
        };
        match flag {
            "--engines" => self.contenders = split_outside(value),
            "--cases" => self.cases = split_outside(value),
            "--scale" => {
                self.scale = Scale::named(value)
                    .ok_or(format!("{flag}: `{value}` is not quick, reduced or full"))?;
            }
            "--rounds" => self.rounds = Some(number()?.min(1000) as u32),
            "--seed" => self.seed = number()?,
            "--dir" => self.dir = Some(value.into()),
            "--json" => self.json = Some(value.into()),
            "--memory-mib" => self.setup.memory_mib = Some(number()?),
            "--threads" => self.setup.background_threads = number()?.min(256) as u32,
            "--direct-io" => {
                self.setup.direct_io = Some(match value {
                    "on" => true,
                    "off" => false,
                    _ => return Err(format!("{flag}: `{value}` is not on or off")),
                });
            }
            "--codec" => {
                self.setup.lz4 = match value {
                    "none" => false,
                    "lz4" => true,
                    _ => return Err(format!("{flag}: `{value}` is not none or lz4")),
                };
            }
            "--set" => {
                let (name, value) =
                    value.split_once('=').ok_or(format!("{flag}: `{value}` is not NAME=VALUE"))?;
                self.setup.settings.push((name.to_owned(), value.to_owned()));
            }
            _ => return Err(format!("`{flag}` is not a flag")),
        }
        Ok(())
    }
}

/// Splits at commas outside parentheses: variants hold both.
fn split_outside(list: &str) -> Vec<String> {
    let mut depth = 0i32;
    let parts = list.split(move |c: char| {
        depth += (c == '(') as i32 - (c == ')') as i32;
        c == ',' && depth <= 0
    });
    parts.map(|part| part.trim().to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::windrow::ENGINE;

    fn parse(line: &str) -> Result<Command, String> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        Command::parse(&words, &[ENGINE])
    }

    #[test]
    fn a_run_is_read() {
        let line =
            "run ycsb queue --scale full --engines windrow,windrow:leveled --seed 7 --set a=b=c";
        let Ok(Command::Run(args)) = parse(line) else { panic!() };
        let names: Vec<&str> = args.workloads.iter().map(|(w, _)| w.name.as_str()).collect();
        assert_eq!(names, ["ycsb", "queue"]);
        assert_eq!((args.scale, args.seed), (Scale::Full, 7));
        for (workload, _) in &args.workloads {
            let names: Vec<&str> = workload.contenders.iter().map(|c| c.name.as_str()).collect();
            assert_eq!(names, ["windrow", "windrow:leveled"]);
        }
        assert_eq!(args.setup.settings, [("a".to_owned(), "b=c".to_owned())]);
        let Ok(Command::Run(args)) = parse("quick") else { panic!() };
        assert_eq!((args.scale, args.rounds), (Scale::Quick, Some(1)));
        let Ok(Command::Run(args)) = parse("claims --rounds 3") else { panic!() };
        assert_eq!((args.scale, args.rounds), (Scale::Reduced, Some(3)));
        let names: Vec<&str> = args.workloads.iter().map(|(w, _)| w.name.as_str()).collect();
        assert!(names.contains(&"large: 16 KiB") && !names.contains(&"large: any"), "{names:?}");
    }

    #[test]
    fn a_papers_contenders_and_cases_are_chosen() {
        let run = |line: &str| match parse(line) {
            Ok(Command::Run(args)) => args,
            other => panic!("{other:?}"),
        };
        let names = |workload: &Workload| -> Vec<String> {
            workload.contenders.iter().map(|c| c.name.clone()).collect()
        };
        let args = run("run autumn/micro --scale quick");
        assert_eq!(args.notes, ["rocksdb: not in this program; windrow-bench-peers has it"]);
        let is_peer = |name: &String| name == "rocksdb";
        assert!(!args.workloads.iter().any(|(workload, _)| names(workload).iter().any(is_peer)));
        // The workload keeps its goals, and the report says that they were not measured.
        let goals = &args.workloads[0].0.goals;
        assert!(goals.iter().any(|goal| goal.than.as_deref() == Some("rocksdb")));
        let args = run("run autumn/micro --scale full --engines c=0.8,c=1");
        assert_eq!(names(&args.workloads[0].0), ["c=1", "c=0.8"]);
        assert!(args.notes.is_empty());
        let case = "50 B in key order";
        let words = ["run", "autumn/micro", "--cases", case].map(str::to_owned);
        let Ok(Command::Run(args)) = Command::parse(&words, &[ENGINE]) else { panic!() };
        assert_eq!(args.workloads[0].0.name, format!("autumn/micro: {case}"));
        assert_eq!(args.workloads.len(), 1);
    }

    #[test]
    fn a_papers_figure_asks_for_its_cases_once() {
        let names = |line: &str| -> Vec<String> {
            let Ok(Command::Run(args)) = parse(line) else { panic!("{line}") };
            args.workloads.iter().map(|(workload, _)| workload.name.clone()).collect()
        };
        let points = names("run autumn:fig2b --scale full");
        assert_eq!(points.len(), 3);
        assert!(points.iter().all(|name| name.starts_with("autumn/micro: ")), "{points:?}");
        assert_eq!(names("run autumn:fig2b autumn:fig2c50 autumn:fig2b --scale full"), points);
        let all = names("run papers --scale quick");
        let unique: HashSet<&String> = all.iter().collect();
        assert_eq!(all.len(), unique.len());
        assert!(names("run autumn --scale quick").iter().all(|name| all.contains(name)));
    }

    #[test]
    fn a_record_does_not_say_where_files_were() {
        let words = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let told =
            without_places(&words("run fill --dir /a/b --rounds 5 --json /c.jsonl --seed 2"));
        assert_eq!(told, words("run fill --rounds 5 --seed 2"));
        assert!(matches!(Command::parse(&told, &[ENGINE]), Ok(Command::Run(_))));
        assert_eq!(without_places(&words("quick --json x")), words("quick"));
    }

    #[test]
    fn mistakes_are_named() {
        for (line, part) in [
            ("other", "not a command"),
            ("run", "needs the name"),
            ("run fly", "`fly` is neither"),
            ("run fly.toml", "fly.toml"),
            ("quick --engines sled", "`sled` is not an engine"),
            ("run autumn/micro --engines rocksdb", "not in this program"),
            ("run autumn:fig1", "has no experiment"),
            ("run autumn:eq5", "is shown by another command: cargo test"),
            ("run autumn:fig99", "`windrow-bench list papers`"),
            ("list what", "`what` is not `papers`"),
            ("run autumn/micro --engines c=2", "has no contender `c=2`; they are `c=1`"),
            ("run autumn/micro --cases x", "no case `x`; they are `50 B"),
            ("quick --rounds", "needs a value"),
            ("quick --rounds 0", "not a number above 0"),
            ("quick --scale tiny", "not quick, reduced or full"),
            ("quick --what 1", "not a flag"),
            ("report", "needs the file"),
            ("report --what", "not a flag"),
            ("resume", "needs the file"),
        ] {
            let problem = parse(line).unwrap_err();
            assert!(problem.contains(part), "{line}: {problem}");
        }
    }
}
