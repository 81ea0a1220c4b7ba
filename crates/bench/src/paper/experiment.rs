//! An experiment as data: what databases there are, what is done to them,
//! and what the paper says should come out. `file.rs` reads it from a
//! workload file, whose keys are the fields here.
//!
//! Never does: run anything (`runner.rs` does).

use super::fields;
use super::records::Sizes;
use crate::draws::Draws;
use serde::Deserialize;

/// A setting's name and value. A name with a dot is for the engine before the
/// dot, one without is Windrow's.
pub(crate) type Setting = (String, String);

/// A paper's experiment.
#[derive(Clone, Debug)]
pub(crate) struct Experiment {
    /// Its name on the command line.
    pub(crate) name: String,
    pub(crate) title: String,
    /// What a reader must know to read the figures, a line each.
    pub(crate) notes: Vec<String>,
    pub(crate) cases: Vec<Case>,
    /// Rounds unless the user says otherwise; databases are made anew in each.
    pub(crate) rounds: u32,
    /// Figures that the tables show; the JSON lines have all.
    pub(crate) shown: Vec<String>,
    pub(crate) goals: Vec<Goal>,
}

/// One data set, and the databases that hold it side by side.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) sizes: Sizes,
    /// Independent trees that the records are dealt out to.
    pub(crate) regions: u32,
    /// Settings that all contenders share.
    pub(crate) settings: Vec<Setting>,
    pub(crate) contenders: Vec<Contender>,
    /// Makes the databases.
    pub(crate) load: Vec<Phase>,
    /// What is then done. Several branches each begin with a copy of what the
    /// load made; a single one goes on with it.
    pub(crate) branches: Vec<Branch>,
}

impl Case {
    /// Whether a phase needs what only Windrow tells: its tables and what it
    /// has learnt of them.
    pub(crate) fn estimates(&self) -> bool {
        let phases = self.branches.iter().flat_map(|branch| &branch.phases).chain(&self.load);
        phases.into_iter().any(|phase| matches!(phase.work, Work::Estimates(_)))
    }

    /// The phases of the branch of this name; the load's if there is none.
    pub(crate) fn phases(&self, branch: &str) -> Option<&[Phase]> {
        let named = self.branches.iter().find(|b| b.name == branch).map(|b| &b.phases[..]);
        named.or_else(|| branch.is_empty().then_some(&self.load[..]))
    }
}

/// One database's engine and policy, by the name that tables call it.
#[derive(Clone, Debug)]
pub(crate) struct Contender {
    pub(crate) name: String,
    /// The engine's name, as its adapter has it.
    pub(crate) engine: String,
    /// Of Windrow the policy, as the setting `preset` takes it; of another
    /// engine its adapter's variant.
    pub(crate) variant: String,
    /// Settings of its own, over those of the case.
    pub(crate) settings: Vec<Setting>,
}

/// A sequence of phases under a name.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Branch {
    /// May be left out where there is but one.
    #[serde(default)]
    pub(crate) name: String,
    pub(crate) phases: Vec<Phase>,
}

/// One thing that is done to every database of a case.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Phase {
    /// What tables call it, and goals refer to.
    pub(crate) name: String,
    pub(crate) work: Work,
}

/// What a phase does.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Work {
    /// Gets and puts by one client, back to back. One database after the
    /// other, each timed until no merge is due.
    Mixed(Mixed),
    /// Reads in slices, one database in turn after the other, each slice the
    /// same keys for all.
    Reads(Reads),
    /// Rates in the open loop: what the slowest contender sustains is found,
    /// then windows at shares of it, contenders in turn.
    OpenLoop(OpenLoop),
    /// Gets and updates in turn, and after each check's worth the estimated
    /// against the true number of vain searches of each table.
    Estimates(Estimates),
}

/// Gets and puts, back to back.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Mixed {
    #[serde(deserialize_with = "fields::draws")]
    pub(crate) puts: Draws,
    #[serde(deserialize_with = "fields::positive")]
    pub(crate) ops: u64,
    #[serde(default)]
    pub(crate) gets: Gets,
}

/// The gets in mixed work.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Gets {
    #[serde(deserialize_with = "fields::draws")]
    pub(crate) draws: Draws,
    /// Share of gets among all operations.
    #[serde(deserialize_with = "fields::share")]
    pub(crate) share: f64,
    /// Share of absent keys among the gets.
    #[serde(default, deserialize_with = "fields::share")]
    pub(crate) absent: f64,
}

impl Default for Gets {
    /// None.
    fn default() -> Gets {
        Gets { draws: Draws::Uniform, share: 0.0, absent: 0.0 }
    }
}

/// Reads of one kind.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Reads {
    #[serde(deserialize_with = "fields::read")]
    pub(crate) read: Read,
    #[serde(deserialize_with = "fields::draws")]
    pub(crate) draws: Draws,
    #[serde(deserialize_with = "fields::positive")]
    pub(crate) ops: u64,
    /// Share of absent keys.
    #[serde(default, deserialize_with = "fields::share")]
    pub(crate) absent: f64,
}

/// One kind of read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Read {
    Get,
    /// A seek and this many nexts.
    Seek(u32),
}

/// An open-loop measurement.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct OpenLoop {
    #[serde(deserialize_with = "fields::draws")]
    pub(crate) puts: Draws,
    #[serde(default)]
    pub(crate) gets: Gets,
    #[serde(deserialize_with = "fields::positive_u32")]
    pub(crate) threads: u32,
    /// Length of the search for the sustainable rate, each contender.
    #[serde(deserialize_with = "fields::seconds")]
    pub(crate) search_s: f64,
    /// Length of a window.
    #[serde(deserialize_with = "fields::seconds")]
    pub(crate) window_s: f64,
    /// Windows of each contender at each rate, interleaved.
    #[serde(deserialize_with = "fields::positive_u32")]
    pub(crate) windows: u32,
    /// Rates, as per cent of the slowest contender's sustainable one.
    pub(crate) loads_percent: Vec<u32>,
}

/// Checks of estimates against the truth.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Estimates {
    /// Of gets and puts alike.
    #[serde(deserialize_with = "fields::draws")]
    pub(crate) draws: Draws,
    /// Share of absent keys among the gets.
    #[serde(deserialize_with = "fields::share")]
    pub(crate) absent: f64,
    #[serde(deserialize_with = "fields::positive_u32")]
    pub(crate) checks: u32,
    /// Puts before each check.
    pub(crate) puts: u64,
    /// Gets before each check.
    #[serde(deserialize_with = "fields::positive")]
    pub(crate) gets: u64,
}

/// What the paper claims, as a test of our figures.
#[derive(Clone, Debug)]
pub(crate) struct Goal {
    /// Case, branch (empty where there is but the load) and phase.
    pub(crate) at: Place,
    pub(crate) figure: String,
    pub(crate) ours: String,
    pub(crate) claim: Claim,
}

/// Where a figure was measured.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) case: String,
    pub(crate) branch: String,
    pub(crate) phase: String,
}

impl Place {
    pub(crate) fn new(case: &str, branch: &str, phase: &str) -> Place {
        Place { case: case.to_owned(), branch: branch.to_owned(), phase: phase.to_owned() }
    }

    /// The words that are not empty.
    pub(crate) fn words(&self) -> String {
        let words = [&self.case, &self.branch, &self.phase];
        let words: Vec<&str> = words.iter().map(|w| w.as_str()).filter(|w| !w.is_empty()).collect();
        words.join(", ")
    }
}

/// A claim about a figure.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Claim {
    /// The figure over that of another contender is at most this.
    Less { to: String, paper: f64 },
    /// The figure over that of another contender is at least this.
    More { to: String, paper: f64 },
    /// The figure by itself is at least this.
    Reaches(f64),
}

impl Claim {
    /// Less by this share: .19 for "-19 %".
    pub(crate) fn less(to: &str, share: f64) -> Claim {
        Claim::Less { to: to.to_owned(), paper: 1.0 - share }
    }

    /// More by this share.
    pub(crate) fn more(to: &str, share: f64) -> Claim {
        Claim::More { to: to.to_owned(), paper: 1.0 + share }
    }

    /// So many times less.
    pub(crate) fn times_less(to: &str, times: f64) -> Claim {
        Claim::Less { to: to.to_owned(), paper: 1.0 / times }
    }

    /// The contender that it compares with.
    pub(crate) fn to(&self) -> Option<&str> {
        match self {
            Claim::Less { to, .. } | Claim::More { to, .. } => Some(to),
            Claim::Reaches(_) => None,
        }
    }
}
