//! Workload files: the data, the settings of stores, and the phases that are run on each.
//!
//! Owns: the file's model, its checks, the built-in files. A value in a file may be given for each
//! scale. Never does: run anything.

mod catalogue;
mod contender;
mod file;
mod goal;
mod scale;
mod store;
mod template;

pub(crate) use catalogue::{builtin, by_name, names};
pub(crate) use contender::Contender;
pub(crate) use file::parse;
pub(crate) use goal::{Claim, Goal};
pub(crate) use scale::Scale;
pub(crate) use store::StoreSettings;

use crate::draws::Draws;
use crate::lengths::Lengths;
use crate::op::Kind;
use serde::Deserialize;
use std::collections::BTreeMap;

/// A workload file, or a case of it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Workload {
    /// The file's name without its ending; set after parsing, as are the next two.
    #[serde(skip)]
    pub(crate) file: String,
    /// The case's name; empty if the file has no cases.
    #[serde(skip)]
    pub(crate) case: String,
    /// Its name in results: file and case.
    #[serde(skip)]
    pub(crate) name: String,
    pub(crate) title: String,
    /// Its origin: `db_bench`, `ycsb`, ...
    pub(crate) family: String,
    /// The caveats that a reader of its figures must know.
    pub(crate) about: String,
    pub(crate) rounds: u32,
    pub(crate) data: Data,
    #[serde(default)]
    pub(crate) store: StoreSettings,
    /// The contenders that run it, in place of those of the command line.
    #[serde(default, rename = "contender")]
    pub(crate) contenders: Vec<Contender>,
    /// Figures that its tables show, in place of the usual costs.
    #[serde(default)]
    pub(crate) shown: Vec<String>,
    #[serde(default, rename = "goal")]
    pub(crate) goals: Vec<Goal>,
    #[serde(rename = "phase")]
    pub(crate) phases: Vec<Phase>,
}

/// The records.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Data {
    /// Records after the load.
    pub(crate) records: u64,
    /// Bytes of a key, 16 or more.
    #[serde(default = "default_key_bytes")]
    pub(crate) key_bytes: usize,
    pub(crate) value_bytes: Lengths,
    #[serde(default)]
    pub(crate) order: Order,
    /// Key spaces, to which records are dealt in turn.
    #[serde(default = "one")]
    pub(crate) spaces: u32,
}

/// The order of records' keys by their numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Order {
    /// Scattered: loading by number is loading in random order.
    #[default]
    Hashed,
    /// Rising with the number.
    Sorted,
    /// A thousand series in turn: rising within each, as samples come in.
    Series,
    /// Rising with the number, in digits; absent keys lie half-way between two.
    Ranked,
}

/// One phase of work on a store.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Phase {
    pub(crate) name: String,
    /// Threads.
    #[serde(default = "one")]
    pub(crate) clients: u32,
    /// Operations of all threads together; as many as records if not given.
    pub(crate) ops: Option<u64>,
    /// Weights of the kinds of operation.
    pub(crate) mix: BTreeMap<String, f64>,
    /// The distribution of the records that are touched.
    #[serde(default = "uniform")]
    pub(crate) keys: Draws,
    /// The distribution of the records that are read, if it is another.
    pub(crate) read_keys: Option<Draws>,
    /// Entries that a scan reads, the one it seeks to included.
    #[serde(default = "ten_nexts")]
    pub(crate) scan: Lengths,
    /// Keys of a batch or of a read of several.
    #[serde(default = "ten")]
    pub(crate) batch: u32,
    /// Whether writes are acknowledged when the device has them.
    #[serde(default)]
    pub(crate) sync: bool,
    /// Whether the store is drained after writes. Without a drain its SST-logs stay as the phase
    /// has left them.
    #[serde(default = "yes")]
    pub(crate) drain: bool,
    /// Whether throughput counts until no merge is due though the phase reads, too.
    #[serde(default)]
    pub(crate) until_idle: bool,
    /// The time after which records that this phase writes vanish. In a store without expiry each
    /// insert removes the record `keep` before it.
    pub(crate) expiry: Option<Expiry>,
    /// Threads that write or read concurrently with the measured ones.
    #[serde(rename = "beside")]
    pub(crate) concurrent: Option<Concurrent>,
    /// Closes the store and opens it again first.
    #[serde(default)]
    pub(crate) reopen: bool,
    /// Not measured: brings the store into a state.
    #[serde(default)]
    pub(crate) prepare: bool,
    /// Run once for all rounds; only at the beginning of a file.
    #[serde(default)]
    pub(crate) once: bool,
    /// Whether the process ends after it and leaves the store open, as a kill does. Only the last
    /// of the phases that run once may, so that another process opens the store.
    #[serde(default)]
    pub(crate) killed: bool,
    /// Figures that its tables show, in place of the workload's `shown`.
    #[serde(default)]
    pub(crate) shown: Vec<String>,
    /// Run on a copy of the database that the phases that run once have made, with the other phases
    /// of this name, which follow each other.
    pub(crate) branch: Option<String>,
    /// The number of times that Windrow's estimates of searches in vain are compared with the
    /// truth; puts and reads are then in turn, not mixed.
    pub(crate) estimates: Option<u32>,
    /// Backs the database up.
    pub(crate) backup: Option<Backup>,
    /// Threads that read the feed of changes while the clients are at work.
    #[serde(default)]
    pub(crate) consumers: u32,
    /// Finds the rate that the store sustains.
    pub(crate) search: Option<Search>,
    /// Sends operations at a fixed rate.
    pub(crate) open: Option<Open>,
}

/// Records that vanish.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Expiry {
    pub(crate) seconds: u64,
    pub(crate) keep: u64,
}

/// Threads that run with the measured ones, until those are done.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Concurrent {
    #[serde(default = "one")]
    pub(crate) clients: u32,
    mix: BTreeMap<String, f64>,
    #[serde(default = "uniform")]
    pub(crate) keys: Draws,
    /// Operations per second of each; as fast as it can if not given.
    pub(crate) rate_per_s: Option<f64>,
}

/// Backups of the database into a directory of the unit's own. The first one of a branch copies all.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Backup {
    pub(crate) when: BackupTime,
    /// The most mebibytes that are copied each second; 0: no limit.
    #[serde(default)]
    pub(crate) mib_per_s: u64,
}

/// When backups are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum BackupTime {
    /// One, after the phase has drained; its time and traffic are not the phase's.
    After,
    /// One after the other, while the phase's clients are at work.
    Meanwhile,
}

/// A search for the sustainable rate.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Search {
    /// Length of one attempt.
    pub(crate) seconds: f64,
    /// Whether there are attempts in the open loop. Otherwise the result is the throughput back to
    /// back, over the time until no merge is due.
    #[serde(default = "yes")]
    pub(crate) attempts: bool,
}

/// A fixed rate: a share of the rate that one contender, or the slowest, sustains, for a time, or
/// until the phase's operations are sent.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Open {
    /// The phase that searched.
    pub(crate) of: String,
    /// The contender that sustains that rate; the slowest if not given.
    pub(crate) of_contender: Option<String>,
    pub(crate) percent: f64,
    pub(crate) seconds: Option<f64>,
}

fn default_key_bytes() -> usize {
    16
}

fn yes() -> bool {
    true
}

fn one() -> u32 {
    1
}

fn ten() -> u32 {
    10
}

fn uniform() -> Draws {
    Draws::Uniform
}

fn ten_nexts() -> Lengths {
    Lengths::Fixed(11)
}

/// Weights of kinds.
pub(crate) type Mix = Vec<(Kind, f64)>;

/// Returns kinds by name with weights that add up to 1.
fn weights(mix: &BTreeMap<String, f64>) -> Result<Mix, String> {
    let total: f64 = mix.values().sum();
    let named = |(name, weight): (&String, &f64)| {
        let kind = Kind::ALL.into_iter().find(|kind| kind.name() == name);
        let names: Vec<&str> = Kind::ALL.iter().map(|kind| kind.name()).collect();
        let kind = kind.ok_or_else(|| {
            format!("`{name}` is not an operation; they are {}", names.join(", "))
        })?;
        match 0.0 < *weight && weight.is_finite() {
            true => Ok((kind, weight / total)),
            false => Err(format!("the weight of `{name}` must be above 0")),
        }
    };
    match mix.is_empty() {
        true => Err("`mix` names no operation".to_owned()),
        false => mix.iter().map(named).collect(),
    }
}

impl Phase {
    /// Returns the kinds of operation with their shares.
    pub(crate) fn mix(&self) -> Mix {
        weights(&self.mix).unwrap_or_default()
    }

    /// Returns the distribution of the records that are touched, and that of reads, if it is
    /// another.
    pub(crate) fn keys(&self) -> (&Draws, Option<&Draws>) {
        (&self.keys, self.read_keys.as_ref())
    }

    /// Returns whether it only reads.
    pub(crate) fn is_read_only(&self) -> bool {
        let concurrent = self.concurrent.iter().flat_map(Concurrent::mix);
        !self.mix().into_iter().chain(concurrent).any(|(kind, _)| kind.writes())
    }

    /// Returns whether it only writes: its time then counts until no merge is due, if it drains.
    pub(crate) fn is_write_only(&self) -> bool {
        self.mix().iter().all(|(kind, _)| kind.writes() && !kind.reads())
    }

    /// Returns whether its answers have one order that follows from the seed.
    pub(crate) fn has_order(&self) -> bool {
        self.expiry.is_none()
            && self.mix().iter().any(|(kind, _)| kind.reads())
            && self.search.is_none()
            && (self.is_read_only() || self.clients == 1 && self.concurrent.is_none())
            // In the open loop each thread takes the next operation.
            && (self.open.is_none() || self.clients == 1)
    }

    fn does(&self, kind: Kind) -> bool {
        self.mix().iter().any(|(k, _)| *k == kind)
    }

    fn check(&self) -> Result<(), String> {
        let wrong = |what: String| Err(format!("phase `{}`: {what}", self.name));
        if let Err(problem) = weights(&self.mix) {
            return wrong(problem);
        }
        if let Some(Err(problem)) =
            self.concurrent.as_ref().map(|concurrent| weights(&concurrent.mix))
        {
            return wrong(problem);
        }
        if self.clients == 0 || 256 < self.clients {
            return wrong("`clients` must be 1 to 256".to_owned());
        }
        if self.batch == 0 || 100_000 < self.batch {
            return wrong("`batch` must be 1 to 100000".to_owned());
        }
        if self.does(Kind::Pop) && (self.clients > 1 || self.concurrent.is_some()) {
            return wrong("a queue's front has one reader: `pop` needs one client".to_owned());
        }
        let writers = self.mix().iter().filter(|(kind, _)| kind.writes()).count();
        if self.does(Kind::Delete) && writers > 1 && (self.clients > 1 || self.concurrent.is_some())
        {
            return wrong(
                "who comes last would decide what is left: `delete` among other writes needs one \
                 client"
                    .to_owned(),
            );
        }
        let is_single = self.clients == 1 && self.concurrent.is_none() && self.search.is_none();
        if self.estimates.is_some() && !(is_single && self.open.is_none()) {
            return wrong("`estimates` needs one client in the closed loop".to_owned());
        }
        if self.backup.is_some() && (self.search.is_some() || self.estimates.is_some()) {
            return wrong("`backup` is for phases without `search` and `estimates`".to_owned());
        }
        if 0 < self.consumers && (self.search.is_some() || self.estimates.is_some()) {
            return wrong("`consumers` is for phases without `search` and `estimates`".to_owned());
        }
        if self.search.is_some() && self.open.is_some() {
            return wrong("either `search` or `open`".to_owned());
        }
        if self.ops.is_some() && self.open.as_ref().is_some_and(|open| open.seconds.is_some()) {
            return wrong("either `ops` or `open.seconds`".to_owned());
        }
        Ok(())
    }
}

impl Open {
    /// Returns the key of the rate that this is a share of.
    pub(crate) fn rate_key(&self) -> String {
        rate_key(&self.of, self.of_contender.as_deref())
    }
}

/// Returns the key of the rate that a phase found of a contender, or of the slowest.
pub(crate) fn rate_key(phase: &str, contender: Option<&str>) -> String {
    contender.map_or_else(|| phase.to_owned(), |name| format!("{phase} of {name}"))
}

impl Concurrent {
    /// Returns the kinds of operation with their shares.
    pub(crate) fn mix(&self) -> Mix {
        weights(&self.mix).unwrap_or_default()
    }
}

impl Workload {
    /// Returns the names of the measured phases.
    pub(crate) fn measured(&self) -> Vec<String> {
        let phases = self.phases.iter().filter(|phase| !phase.prepare);
        phases.map(|phase| phase.name.clone()).collect()
    }

    /// Returns the figures that phases name, by the names of these phases.
    pub(crate) fn shown_in(&self) -> BTreeMap<String, Vec<String>> {
        let named = self.phases.iter().filter(|phase| !phase.shown.is_empty());
        named.map(|phase| (phase.name.clone(), phase.shown.clone())).collect()
    }

    /// Returns the number of phases that run once, before all rounds.
    pub(crate) fn once(&self) -> usize {
        self.phases.iter().take_while(|phase| phase.once).count()
    }

    /// Returns whether any record ever goes away: a get may then find nothing.
    pub(crate) fn may_miss(&self) -> bool {
        let loses = |p: &Phase| p.does(Kind::Delete) || p.expiry.is_some() || p.does(Kind::Pop);
        // A load by draws with repetition leaves records out.
        let in_order = |p: &Phase| matches!(p.keys, Draws::Sequential | Draws::Shuffled);
        let is_partial = |p: &Phase| p.does(Kind::Put) && !in_order(p);
        self.phases.iter().any(loses) || self.phases.first().is_some_and(is_partial)
    }

    /// Returns whether the first phase puts the records in another order than that of their
    /// numbers.
    pub(crate) fn is_shuffled(&self) -> bool {
        self.phases.first().is_some_and(|phase| phase.keys == Draws::Shuffled)
    }

    /// Returns whether a phase does transactions.
    pub(crate) fn transacts(&self) -> bool {
        self.phases.iter().any(|phase| phase.mix().iter().any(|(kind, _)| kind.is_transaction()))
    }

    /// Returns whether a phase looks into Windrow's tables.
    pub(crate) fn estimates(&self) -> bool {
        self.phases.iter().any(|phase| phase.estimates.is_some())
    }

    /// Returns whether a phase backs the database up.
    pub(crate) fn backs_up(&self) -> bool {
        self.phases.iter().any(|phase| phase.backup.is_some())
    }

    /// Returns whether a phase has consumers of changes.
    pub(crate) fn is_consumed(&self) -> bool {
        self.phases.iter().any(|phase| 0 < phase.consumers)
    }

    /// Returns what phases ask for that only Windrow has, by a handle of its own.
    fn windrow_only(&self) -> Option<&'static str> {
        let asked = [
            (self.backs_up(), "Windrow's backups are measured"),
            (self.is_consumed(), "Windrow's changes are consumed"),
            (self.estimates(), "Windrow estimates searches of its tables"),
        ];
        asked.iter().find(|(is_asked, _)| *is_asked).map(|(_, why)| *why)
    }

    /// Returns whether a phase needs Windrow's own handle.
    pub(crate) fn needs_windrow(&self) -> bool {
        self.windrow_only().is_some()
    }

    /// Returns whether contents depend on time: they are not compared then.
    pub(crate) fn expires(&self) -> bool {
        self.phases.iter().any(|phase| phase.expiry.is_some())
    }

    fn check(&self) -> Result<(), String> {
        if self.phases.is_empty() {
            return Err("no phase".to_owned());
        }
        if self.data.key_bytes < 16 || 4096 < self.data.key_bytes {
            return Err("`key_bytes` must be 16 to 4096".to_owned());
        }
        if self.data.spaces == 0 || 4096 < self.data.spaces {
            return Err("`spaces` must be 1 to 4096".to_owned());
        }
        if self.data.records == 0 {
            return Err("`records` must be 1 or more".to_owned());
        }
        for (i, contender) in self.contenders.iter().enumerate() {
            contender.check(&self.store)?;
            if self.contenders[..i].iter().any(|earlier| earlier.name == contender.name) {
                return Err(format!("two contenders are called `{}`", contender.name));
            }
            if let Some(why) = self.windrow_only().filter(|_| contender.engine != "windrow") {
                return Err(format!("contender `{}`: only {why}", contender.name));
            }
        }
        for (i, phase) in self.phases.iter().enumerate() {
            phase.check()?;
            if phase.branch.is_some() && (phase.once || self.once() == 0) {
                return Err(format!(
                    "phase `{}`: a branch begins with what phases with `once` have made",
                    phase.name
                ));
            }
            if phase.does(Kind::Insert) && self.data.order == Order::Ranked {
                return Err(format!(
                    "phase `{}`: ranked records are put, not inserted",
                    phase.name
                ));
            }
            if self.phases[..i].iter().any(|earlier| earlier.name == phase.name) {
                return Err(format!("two phases are called `{}`", phase.name));
            }
            if phase.once && self.once() <= i {
                return Err(format!("phase `{}`: only the first phases are done once", phase.name));
            }
            if let Some(open) = &phase.open {
                let is_here = |name: &String| self.contenders.iter().any(|c| c.name == *name);
                if let Some(name) = open.of_contender.as_ref().filter(|name| !is_here(name)) {
                    return Err(format!("phase `{}`: no contender `{name}`", phase.name));
                }
                let found = self.phases[..self.once()]
                    .iter()
                    .any(|p| p.name == open.of && p.search.is_some());
                if !found {
                    return Err(format!(
                        "phase `{}`: no phase `{}` with `search` and `once` before it",
                        phase.name, open.of
                    ));
                }
            }
        }
        Ok(())
    }

    /// Checks that the cases, phases and contenders that goals name exist.
    fn check_goals(&self) -> Result<(), String> {
        for goal in &self.goals {
            let wrong = |what: String| Err(format!("a goal of `{}`: {what}", goal.figure));
            if goal.claim().is_none() {
                let one_of =
                    "`than` and one of `less`, `more`, `times_less`; or `at_least`, `at_most`";
                return wrong(format!("has {one_of}"));
            }
            if goal.case.as_ref().is_some_and(|case| *case != self.case) {
                return wrong(format!("no case `{}`", goal.case.as_deref().unwrap_or_default()));
            }
            if !self.phases.iter().any(|phase| phase.name == goal.phase) {
                return wrong(format!("no phase `{}`", goal.phase));
            }
            let is_here = |name: &String| self.contenders.iter().any(|c| c.name == *name);
            if let Some(name) = goal.ours.iter().chain(&goal.than).find(|name| !is_here(name)) {
                return wrong(format!("no contender `{name}`"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(change: (&str, &str)) -> String {
        let text = r#"
            title = "t"
            family = "f"
            about = "a"
            rounds = 1
            [data]
            records = { quick = 10, full = 100 }
            value_bytes = "100"
            [[phase]]
            name = "load"
            once = true
            mix = { insert = 1 }
            [[phase]]
            name = "read"
            mix = { get = 3, put = 1 }
            keys = "scrambled(0.99)"
        "#;
        let workload = &parse("whole", text, Scale::Full).unwrap()[0];
        assert_eq!(workload.phases[1].mix(), [(Kind::Get, 0.75), (Kind::Put, 0.25)]);
        assert_eq!((workload.once(), workload.data.records), (1, 100));
        assert!(text.contains(change.0), "{}", change.0);
        parse("broken", &text.replace(change.0, change.1), Scale::Full).unwrap_err()
    }

    #[test]
    fn mistakes_are_named() {
        for (from, to, part) in [
            ("title = \"t\"", "", "title"),
            ("rounds = 1", "rounds = 1\nrnds = 2", "rnds"),
            ("insert = 1", "fly = 1", "`fly` is not an operation; they are put"),
            ("insert = 1", "", "names no operation"),
            ("get = 3", "get = -3", "above 0"),
            ("\"read\"", "\"load\"", "two phases are called `load`"),
            ("\"read\"", "\"read\"\nonce = true\nclients = 0", "clients"),
            ("get = 3", "pop = 1 }\nclients = 2 #", "one client"),
            ("{ get = 3, put = 1 }", "{ delete = 3, put = 1 }\nclients = 2", "who comes last"),
            ("scrambled(0.99)", "wild", "wild"),
            ("value_bytes = \"100\"", "value_bytes = \"x\"", "x"),
            (
                "\"read\"",
                "\"read\"\nopen = { of = \"s\", percent = 50, seconds = 1 }",
                "no phase `s`",
            ),
            (
                "\"read\"",
                "\"read\"\nops = 5\nopen = { of = \"s\", percent = 50, seconds = 1 }",
                "either `ops` or `open.seconds`",
            ),
        ] {
            let problem = problem((from, to));
            assert!(problem.contains(part) && problem.contains("broken"), "{to}: {problem}");
        }
    }
}
