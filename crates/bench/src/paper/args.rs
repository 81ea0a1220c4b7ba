//! Arguments of `windrow paper`.
//!
//! Owns: flags and defaults. Never does: run anything.

use super::experiment::Scale;
use std::path::PathBuf;

/// Usage of `windrow paper`.
pub(crate) const USAGE: &str = "\
usage: paper autumn|l2sm|vlsm|mnemosyne|merlin [flags]

Runs a paper's experiment on this engine: the paper's policy, the baseline and
Windrow's own, side by side on real files with direct I/O. Prints our ratios
beside the paper's, and progress on stderr.

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

/// Names of the experiments.
pub(crate) const EXPERIMENTS: [&str; 5] = ["autumn", "l2sm", "vlsm", "mnemosyne", "merlin"];

/// Parsed arguments.
#[derive(Clone, Debug)]
pub(crate) struct Args {
    pub(crate) experiment: String,
    pub(crate) scale: Scale,
    pub(crate) dir: Option<PathBuf>,
    pub(crate) rounds: Option<u32>,
    pub(crate) policies: Vec<String>,
    pub(crate) cases: Vec<String>,
    pub(crate) json: Option<PathBuf>,
    pub(crate) seed: u64,
    pub(crate) settings: Vec<(String, String)>,
    pub(crate) list: bool,
}

impl Args {
    /// Reads the arguments after `paper`.
    ///
    /// # Errors
    /// A sentence that names the argument.
    pub(crate) fn parse(args: &[String]) -> Result<Args, String> {
        let mut words = args.iter();
        let experiment = words.next().cloned().unwrap_or_default();
        if !EXPERIMENTS.contains(&experiment.as_str()) {
            let names = EXPERIMENTS.join(", ");
            return Err(format!("`{experiment}` is not an experiment; they are {names}"));
        }
        let mut parsed = Args {
            experiment,
            scale: Scale::Reduced,
            dir: None,
            rounds: None,
            policies: Vec::new(),
            cases: Vec::new(),
            json: None,
            seed: 1,
            settings: Vec::new(),
            list: false,
        };
        while let Some(flag) = words.next() {
            match flag.as_str() {
                "--full" => parsed.scale = Scale::Full,
                "--quick" => parsed.scale = Scale::Quick,
                "--list" => parsed.list = true,
                _ => {
                    let value = words.next().ok_or(format!("{flag} needs a value"))?;
                    parsed.set(flag, value)?;
                }
            }
        }
        Ok(parsed)
    }

    fn set(&mut self, flag: &str, value: &str) -> Result<(), String> {
        let number = || {
            let parsed: Result<u64, _> = value.parse();
            parsed.ok().filter(|n| *n > 0).ok_or(format!("{flag}: `{value}` is not a number"))
        };
        match flag {
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

/// Splits at commas outside parentheses.
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
    }

    #[test]
    fn mistakes_are_named() {
        for (line, part) in [
            ("", "is not an experiment; they are autumn"),
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
