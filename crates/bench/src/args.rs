//! Arguments of a benchmark.
//!
//! Owns: flags, defaults, what follows from them. Never does: run anything.

use crate::store::{Common, Engine};
use std::path::PathBuf;

/// Usage of `windrow bench` and of `bench-peers`.
pub const USAGE: &str = "\
usage: bench basic [flags]

Random load, cached reads, seeks and gets from disk; every engine's every run
in a process of its own, engines in turn, figures as JSON lines on stdout.

  --records N         records of the load                          [10000000]
  --rounds R          rounds of each engine                        [5]
  --dir D             where databases are made            [a temporary directory]
  --memory-mib M      memory budget of each engine                 [192]
  --threads T         background threads of each engine            [2]
  --phases LIST       of load, cached, disk                        [all]
  --engines LIST      which engines                                [all]
  --value-bytes N     bytes of a value (keys have 16)              [100]
  --cached-records N  records of the cached phase   [a quarter of the memory]
  --cached-ops N      reads of each kind in it                     [2000000]
  --disk-records N    records of the disk phase     [20 times the memory]
  --disk-ops N        reads of each kind in it                     [20000]
  --seed N            seed of keys and values                      [1]
  --set NAME=VALUE    a setting of Windrow; may be repeated
  --keep              keep (and use again) the databases of the disk phase
  --verbose           each engine's own statistics on stderr";

/// Bytes of a key.
pub(crate) const KEY_BYTES: u64 = 16;

const MIB: u64 = 1 << 20;

/// What a process that was started for one phase is to do.
#[derive(Clone, Debug)]
pub(crate) struct Child {
    pub(crate) phase: String,
    pub(crate) engine: String,
    pub(crate) dir: PathBuf,
}

/// Parsed arguments.
#[derive(Clone, Debug)]
pub struct Args {
    pub(crate) records: u64,
    pub(crate) rounds: u32,
    pub(crate) dir: Option<PathBuf>,
    pub(crate) memory_bytes: u64,
    pub(crate) threads: u32,
    pub(crate) phases: Vec<String>,
    pub(crate) engines: Vec<String>,
    pub(crate) value_bytes: u64,
    pub(crate) cached_records: Option<u64>,
    pub(crate) cached_ops: u64,
    pub(crate) disk_records: Option<u64>,
    pub(crate) disk_ops: u64,
    pub(crate) seed: u64,
    pub(crate) settings: Vec<(String, String)>,
    pub(crate) keep: bool,
    pub(crate) verbose: bool,
    pub(crate) child: Option<Child>,
}

const PHASES: [&str; 3] = ["load", "cached", "disk"];

impl Args {
    fn defaults(engines: &[Engine]) -> Args {
        Args {
            records: 10_000_000,
            rounds: 5,
            dir: None,
            memory_bytes: 192 * MIB,
            threads: 2,
            phases: PHASES.map(str::to_owned).to_vec(),
            engines: engines.iter().map(|e| e.name.to_owned()).collect(),
            value_bytes: 100,
            cached_records: None,
            cached_ops: 2_000_000,
            disk_records: None,
            disk_ops: 20_000,
            seed: 1,
            settings: Vec::new(),
            keep: false,
            verbose: false,
            child: None,
        }
    }

    /// Reads the arguments after the program's (or subcommand's) name.
    ///
    /// # Errors
    /// A sentence that names the argument.
    pub fn parse(args: &[String], engines: &[Engine]) -> Result<Args, String> {
        let mut parsed = Args::defaults(engines);
        let mut words = args.iter();
        match words.next().map(String::as_str) {
            Some("basic") => {}
            other => return Err(format!("`{}` is not a workload", other.unwrap_or_default())),
        }
        while let Some(flag) = words.next() {
            match flag.as_str() {
                "--keep" => parsed.keep = true,
                "--verbose" => parsed.verbose = true,
                _ => {
                    let value = words.next().ok_or(format!("{flag} needs a value"))?;
                    parsed.set(flag, value)?;
                }
            }
        }
        parsed.check(engines)?;
        Ok(parsed)
    }

    fn set(&mut self, flag: &str, value: &str) -> Result<(), String> {
        let number = || {
            let digits = value.replace('_', "");
            let parsed: Result<u64, _> = digits.parse();
            parsed.ok().filter(|n| *n > 0).ok_or(format!("{flag}: `{value}` is not a number"))
        };
        let list = || value.split(',').map(str::to_owned).collect();
        match flag {
            "--records" => self.records = number()?,
            "--rounds" => self.rounds = number()?.min(1000) as u32,
            "--dir" => self.dir = Some(value.into()),
            "--memory-mib" => self.memory_bytes = number()? * MIB,
            "--threads" => self.threads = number()?.min(256) as u32,
            "--phases" => self.phases = list(),
            "--engines" => self.engines = list(),
            "--value-bytes" => self.value_bytes = number()?.min(MIB),
            "--cached-records" => self.cached_records = Some(number()?),
            "--cached-ops" => self.cached_ops = number()?,
            "--disk-records" => self.disk_records = Some(number()?),
            "--disk-ops" => self.disk_ops = number()?,
            "--seed" => self.seed = number()?,
            "--set" => {
                let (name, value) =
                    value.split_once('=').ok_or(format!("{flag}: `{value}` is not NAME=VALUE"))?;
                self.settings.push((name.to_owned(), value.to_owned()));
            }
            "--child" => {
                let mut parts = value.splitn(3, ':');
                let mut part = || parts.next().map(str::to_owned).ok_or("--child P:E:DIR");
                let (phase, engine) = (part()?, part()?);
                self.child = Some(Child { phase, engine, dir: part()?.into() });
            }
            _ => return Err(format!("`{flag}` is not a flag")),
        }
        Ok(())
    }

    fn check(&self, engines: &[Engine]) -> Result<(), String> {
        let phases = self.phases.iter().find(|p| !PHASES.contains(&p.as_str()));
        let known = |name: &String| engines.iter().any(|e| e.name == name);
        match (phases, self.engines.iter().find(|e| !known(e))) {
            (Some(phase), _) => Err(format!("`{phase}` is not a phase")),
            (_, Some(engine)) => Err(format!("`{engine}` is not an engine here")),
            _ => Ok(()),
        }
    }

    /// Bytes of one record.
    pub(crate) fn record_bytes(&self) -> u64 {
        KEY_BYTES + self.value_bytes
    }

    /// Records of the cached phase: a quarter of the memory, which fits any
    /// engine's cache with its blocks' overhead.
    pub(crate) fn cached_records(&self) -> u64 {
        self.cached_records.unwrap_or(self.memory_bytes / 4 / self.record_bytes())
    }

    /// Records of the disk phase: twenty times the memory.
    pub(crate) fn disk_records(&self) -> u64 {
        self.disk_records.unwrap_or(self.memory_bytes * 20 / self.record_bytes())
    }

    /// What a store is opened with.
    pub(crate) fn common(&self, direct_io: bool) -> Common {
        Common {
            memory_bytes: self.memory_bytes,
            background_threads: self.threads,
            direct_io,
            settings: self.settings.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::windrow::ENGINE;

    fn parse(line: &str) -> Result<Args, String> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        Args::parse(&words, &[ENGINE])
    }

    #[test]
    fn defaults_are_the_published_sizes() {
        let args = parse("basic").unwrap();
        assert_eq!((args.records, args.rounds, args.record_bytes()), (10_000_000, 5, 116));
        assert_eq!(args.disk_records() * 116 / MIB, 192 * 20 - 1);
    }

    #[test]
    fn mistakes_are_named() {
        for (line, part) in [
            ("other", "not a workload"),
            ("basic --records", "needs a value"),
            ("basic --records x", "not a number"),
            ("basic --phases fly", "`fly`"),
            ("basic --engines sled", "`sled`"),
            ("basic --what 1", "not a flag"),
        ] {
            let problem = parse(line).unwrap_err();
            assert!(problem.contains(part), "{line}: {problem}");
        }
    }
}
