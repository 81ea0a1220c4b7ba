//! An experiment as data: what databases there are, what is done to them,
//! and what the paper says should come out.
//!
//! Never does: run anything (`runner.rs` does).

use super::draws::Draws;
use super::records::Sizes;

/// How much of the paper's set-up is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scale {
    /// Seconds: shows that it runs; its figures say nothing.
    Quick,
    /// Under ten minutes on two cores.
    Reduced,
    /// The paper's set-up, scaled to a small machine as a whole.
    Full,
}

impl Scale {
    /// One of three values.
    pub(crate) fn of<T>(self, quick: T, reduced: T, full: T) -> T {
        match self {
            Scale::Quick => quick,
            Scale::Reduced => reduced,
            Scale::Full => full,
        }
    }

    pub(crate) fn name(self) -> &'static str {
        self.of("quick", "reduced", "full")
    }
}

/// A setting's name and value.
pub(crate) type Setting = (&'static str, String);

/// A paper's experiment.
#[derive(Clone, Debug)]
pub(crate) struct Experiment {
    /// Its name on the command line.
    pub(crate) name: &'static str,
    pub(crate) title: &'static str,
    /// What a reader must know to read the figures, a line each.
    pub(crate) notes: Vec<String>,
    pub(crate) cases: Vec<Case>,
    /// Rounds unless the user says otherwise; databases are made anew in each.
    pub(crate) rounds: u32,
    /// Figures that the tables show; the JSON lines have all.
    pub(crate) shown: &'static [&'static str],
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

/// One database's policy, by the name that tables call it.
#[derive(Clone, Debug)]
pub(crate) struct Contender {
    pub(crate) name: &'static str,
    /// As the setting `preset` takes it.
    pub(crate) policy: String,
    /// Settings of its own, over those of the case.
    pub(crate) settings: Vec<Setting>,
}

impl Contender {
    pub(crate) fn new(name: &'static str, policy: impl Into<String>) -> Contender {
        Contender { name, policy: policy.into(), settings: Vec::new() }
    }
}

/// A sequence of phases under a name.
#[derive(Clone, Debug)]
pub(crate) struct Branch {
    pub(crate) name: String,
    pub(crate) phases: Vec<Phase>,
}

/// One thing that is done to every database of a case.
#[derive(Clone, Debug)]
pub(crate) struct Phase {
    /// What tables call it, and goals refer to.
    pub(crate) name: &'static str,
    pub(crate) work: Work,
}

/// What a phase does.
#[derive(Clone, Debug)]
pub(crate) enum Work {
    /// Gets and puts by one client, back to back. One database after the
    /// other, each timed until no merge is due.
    Mixed { puts: Draws, ops: u64, gets: Gets },
    /// Reads in slices, one database in turn after the other, each slice the
    /// same keys for all.
    Reads { read: Read, draws: Draws, ops: u64, absent: f64 },
    /// Rates in the open loop: what the slowest contender sustains is found,
    /// then windows at shares of it, contenders in turn.
    OpenLoop(OpenLoop),
    /// Gets and updates in turn, and after each check's worth the estimated
    /// against the true number of vain searches of each table.
    Estimates { draws: Draws, absent: f64, checks: u32, puts: u64, gets: u64 },
}

/// The gets in mixed work.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Gets {
    pub(crate) draws: Draws,
    /// Share of gets among all operations.
    pub(crate) share: f64,
    /// Share of absent keys among the gets.
    pub(crate) absent: f64,
}

impl Gets {
    pub(crate) const NONE: Gets = Gets { draws: Draws::Uniform, share: 0.0, absent: 0.0 };
}

/// One kind of read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Read {
    Get,
    /// A seek and this many nexts.
    Seek(u32),
}

/// An open-loop measurement.
#[derive(Clone, Debug)]
pub(crate) struct OpenLoop {
    pub(crate) puts: Draws,
    pub(crate) gets: Gets,
    pub(crate) threads: u32,
    /// Length of the search for the sustainable rate, each contender.
    pub(crate) search_s: f64,
    /// Length of a window.
    pub(crate) window_s: f64,
    /// Windows of each contender at each rate, interleaved.
    pub(crate) windows: u32,
    /// Rates, as per cent of the slowest contender's sustainable one.
    pub(crate) loads_percent: Vec<u32>,
}

/// What the paper claims, as a test of our figures.
#[derive(Clone, Debug)]
pub(crate) struct Goal {
    /// Case, branch (empty where there is but the load) and phase.
    pub(crate) at: Place,
    pub(crate) figure: &'static str,
    pub(crate) ours: &'static str,
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
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Claim {
    /// The figure over that of another contender is at most this.
    Less { to: &'static str, paper: f64 },
    /// The figure over that of another contender is at least this.
    More { to: &'static str, paper: f64 },
    /// The figure by itself is at least this.
    Reaches(f64),
}

impl Claim {
    /// Less by this share: .19 for "-19 %".
    pub(crate) fn less(to: &'static str, share: f64) -> Claim {
        Claim::Less { to, paper: 1.0 - share }
    }

    /// More by this share.
    pub(crate) fn more(to: &'static str, share: f64) -> Claim {
        Claim::More { to, paper: 1.0 + share }
    }

    /// So many times less.
    pub(crate) fn times_less(to: &'static str, times: f64) -> Claim {
        Claim::Less { to, paper: 1.0 / times }
    }
}
