//! Arguments of `windrow-bench paper`.
//!
//! Owns: flags and defaults. Never does: run anything.

use super::EXPERIMENTS;
use crate::args::split_outside;
use crate::workload::Scale;
use std::path::PathBuf;

/// Usage of `windrow-bench paper`.
pub(crate) const USAGE: &str = "\
usage: windrow-bench paper autumn|l2sm|vlsm|mnemosyne|merlin [flags]
       windrow-bench paper --file FILE.toml [flags]

Runs a paper's experiment: the paper's policy, the baseline and Windrow's own,
side by side on real files with direct I/O, and RocksDB beside them where the
program has it (windrow-bench-peers does). Prints our ratios beside the
paper's, and progress on stderr.

  --file FILE       an experiment of your own, in a workload file
  --print           print the experiment's workload file, to begin one from
  --full            the paper's set-up as scaled to a small machine (up to hours)
  --quick           tiny: shows that it runs, its figures say nothing
  --dir D           where databases are made           [a temporary directory]
  --rounds N        repetitions, databases made anew   [the experiment's own]
  --policies LIST   only these contenders, by the names that tables show
  --cases LIST      only these cases
  --json FILE       append every figure to FILE as JSON lines
  --seed N          seed of keys, values and draws     [1]
  --set NAME=VALUE  a setting of every database; may be repeated
  --list            say what would be done, and do nothing";

/// Parsed arguments.
#[derive(Clone, Debug)]
pub(crate) struct Args {
    /// Name of the paper's experiment; empty if there is a file.
    pub(crate) experiment: String,
    pub(crate) file: Option<PathBuf>,
    pub(crate) scale: Scale,
    pub(crate) dir: Option<PathBuf>,
    pub(crate) rounds: Option<u32>,
    pub(crate) policies: Vec<String>,
    pub(crate) cases: Vec<String>,
    pub(crate) json: Option<PathBuf>,
    pub(crate) seed: u64,
    pub(crate) settings: Vec<(String, String)>,
    pub(crate) list: bool,
    pub(crate) print: bool,
}

impl Args {
    /// Reads the arguments after `paper`.
    ///
    /// # Errors
    /// A sentence that names the argument.
    pub(crate) fn parse(args: &[String]) -> Result<Args, String> {
        let is_name = |word: &&String| !word.starts_with("--");
        let experiment = args.first().filter(is_name).cloned().unwrap_or_default();
        let mut words = args.iter().skip(usize::from(!experiment.is_empty()));
        let mut parsed = Args {
            experiment,
            file: None,
            scale: Scale::Reduced,
            dir: None,
            rounds: None,
            policies: Vec::new(),
            cases: Vec::new(),
            json: None,
            seed: 1,
            settings: Vec::new(),
            list: false,
            print: false,
        };
        while let Some(flag) = words.next() {
            match flag.as_str() {
                "--full" => parsed.scale = Scale::Full,
                "--quick" => parsed.scale = Scale::Quick,
                "--list" => parsed.list = true,
                "--print" => parsed.print = true,
                _ => {
                    let value = words.next().ok_or(format!("{flag} needs a value"))?;
                    parsed.set(flag, value)?;
                }
            }
        }
        let names: Vec<&str> = EXPERIMENTS.iter().map(|(name, _)| *name).collect();
        match (parsed.experiment.as_str(), &parsed.file) {
            ("", Some(_)) => Ok(parsed),
            (name, None) if names.contains(&name) => Ok(parsed),
            (name, None) => Err(format!(
                "`{name}` is not an experiment; they are {}, and --file FILE",
                names.join(", ")
            )),
            (_, Some(_)) => Err("an experiment's name and --file exclude each other".to_owned()),
        }
    }

    fn set(&mut self, flag: &str, value: &str) -> Result<(), String> {
        let number = || {
            let parsed: Result<u64, _> = value.parse();
            parsed.ok().filter(|n| *n > 0).ok_or(format!("{flag}: `{value}` is not a number"))
        };
        match flag {
            "--file" => self.file = Some(value.into()),
            "--dir" => self.dir = Some(value.into()),
            "--rounds" => self.rounds = Some(number()?.min(1000) as u32),
            // Names may hold commas within parentheses.
            "--policies" => self.policies = split_outside(value),
            "--cases" => self.cases = split_outside(value),
            "--json" => self.json = Some(value.into()),
            "--seed" => self.seed = number()?,
            "--set" => {
                let (name, value) =
                    value.split_once('=').ok_or(format!("{flag}: `{value}` is not NAME=VALUE"))?;
                self.settings.push((name.to_owned(), value.to_owned()));
            }
            _ => return Err(format!("`{flag}` is not a flag")),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Args, String> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        Args::parse(&words)
    }

    #[test]
    fn flags_are_read() {
        let args = parse("l2sm --full --rounds 3 --policies a,b(c,d) --set x=y=z").unwrap();
        assert_eq!((args.scale, args.rounds), (Scale::Full, Some(3)));
        assert_eq!(args.policies, ["a", "b(c,d)"]);
        assert_eq!(args.settings, [("x".to_owned(), "y=z".to_owned())]);
        let args = parse("--file my.toml --list").unwrap();
        assert_eq!((args.file, args.list), (Some("my.toml".into()), true));
    }

    #[test]
    fn mistakes_are_named() {
        for (line, part) in [
            ("", "is not an experiment; they are autumn"),
            ("autum", "is not an experiment; they are autumn"),
            ("autumn --file x.toml", "exclude each other"),
            ("--file", "needs a value"),
            ("autumn --rounds", "needs a value"),
            ("autumn --rounds x", "not a number"),
            ("autumn --set x", "not NAME=VALUE"),
            ("autumn --what 1", "not a flag"),
        ] {
            let problem = parse(line).unwrap_err();
            assert!(problem.contains(part), "{line}: {problem}");
        }
    }
}
