//! The shape of a seed's run: its size, options, clients and hazards. They are drawn from the seed,
//! each aspect from a stream of its own, so that leaving one out changes no other: that is how a
//! run shrinks.
//!
//! Owns: the draws (a swarm: each seed leaves out about half of everything), and the parts of a
//! draw that are kept. Never does: run anything.

use crate::set::{Member, Set};
use std::fmt::Write as _;
use windrow::Options;
use windrow_env::testing::{Fault, FaultKind, Ops, Rng};
use windrow_testkit::compose::Kinds;
use windrow_testkit::variant;

/// The work of a client in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientKind {
    /// Writes, singly and in batches.
    Writer,
    /// Reads the newest state.
    Reader,
    /// Keeps iterators and cursors open over many turns.
    Scanner,
    /// Keeps snapshots, and reads at them.
    Holder,
    /// Flushes, compacts, syncs, verifies, changes the policy.
    Keeper,
    /// Makes and drops a keyspace.
    Dropper,
    /// Makes checkpoints, and opens them.
    Checkpointer,
    /// Runs background jobs and timers.
    Background,
    /// Ends the process between two operations.
    Crasher,
}

impl Member for ClientKind {
    const ALL: &'static [(ClientKind, &'static str)] = &[
        (ClientKind::Writer, "writer"),
        (ClientKind::Reader, "reader"),
        (ClientKind::Scanner, "scanner"),
        (ClientKind::Holder, "holder"),
        (ClientKind::Keeper, "keeper"),
        (ClientKind::Dropper, "dropper"),
        (ClientKind::Checkpointer, "checkpointer"),
        (ClientKind::Background, "background"),
        (ClientKind::Crasher, "crasher"),
    ];
}

/// A fault that occurs in addition to the crashes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hazard {
    /// The wall clock jumps, both ways.
    Clock,
    /// Each session opens under other options.
    Switch,
    /// Reads fail now and then.
    ReadErrors,
    /// Reads of tables come back damaged or short now and then.
    BadReads,
    /// Operations that change files fail now and then.
    WriteErrors,
    /// Syncs fail now and then.
    SyncErrors,
    /// The device is nearly full.
    Full,
    /// Only a few files may be open.
    Descriptors,
    /// The device loses, damages or misplaces data that it reports as written or synced, in files
    /// of one kind or in directories ([`LIES`]): the contents must then show damage, or be a prefix
    /// (P11).
    Lies,
}

impl Member for Hazard {
    const ALL: &'static [(Hazard, &'static str)] = &[
        (Hazard::Clock, "clock"),
        (Hazard::Switch, "switch"),
        (Hazard::ReadErrors, "read_errors"),
        (Hazard::BadReads, "bad_reads"),
        (Hazard::WriteErrors, "write_errors"),
        (Hazard::SyncErrors, "sync_errors"),
        (Hazard::Full, "full"),
        (Hazard::Descriptors, "descriptors"),
        (Hazard::Lies, "lies"),
    ];
}

/// Lies about writes: they never arrive, or in part in another place, or with a flipped bit.
const OF_WRITES: &[FaultKind] = &[FaultKind::LostWrite, FaultKind::Misdirect, FaultKind::FlipBit];
/// Lies about syncs: nothing was done.
const OF_SYNCS: &[FaultKind] = &[FaultKind::LostSync];

/// The lies of a device: how, at which operations, on which paths. A run has one of them. Files are
/// cross-checked with each other (marks in logs for the manifest, lengths in the manifest for
/// logs), so a device that lies about both at once can take a whole database back in time; no
/// single copy can tell.
pub const LIES: &[(&[FaultKind], Ops, &str)] = &[
    (OF_WRITES, Ops::WRITE, ".sst"),
    (OF_SYNCS, Ops::SYNC, ".sst"),
    (OF_WRITES, Ops::WRITE, ".wal"),
    (OF_SYNCS, Ops::SYNC, ".wal"),
    (OF_WRITES, Ops::WRITE, "MANIFEST"),
    (OF_SYNCS, Ops::SYNC, "MANIFEST"),
    // The file that is renamed to CURRENT.
    (OF_WRITES, Ops::WRITE, ".tmp"),
    (OF_SYNCS, Ops::SYNC, ".tmp"),
    (OF_SYNCS, Ops::SYNC_DIR, ""),
];

/// The parts of a drawn scenario that are run. All of them at first; a shrinker leaves out the
/// parts that a failure does not need.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keep {
    /// A bit for each session.
    pub sessions: u32,
    /// The most turns of a session.
    pub turns_max: u64,
    /// The clients.
    pub clients: Set<ClientKind>,
    /// The kinds of operation.
    pub kinds: Kinds,
    /// The hazards.
    pub hazards: Set<Hazard>,
}

impl Default for Keep {
    fn default() -> Keep {
        Keep {
            sessions: u32::MAX,
            turns_max: u64::MAX,
            clients: Set::all(),
            kinds: Kinds::ALL,
            hazards: Set::all(),
        }
    }
}

impl Keep {
    /// Returns the arguments of the program `fault` that select these parts.
    pub fn arguments(&self) -> String {
        let all = Keep::default();
        let mut out = String::new();
        let list = |names: Vec<String>| match names.is_empty() {
            true => "none".to_owned(),
            false => names.join(","),
        };
        let named = |names: Vec<&str>| list(names.into_iter().map(str::to_owned).collect());
        if self.sessions != all.sessions {
            let sessions = (0..SESSIONS_MAX).filter(|session| self.sessions >> session & 1 == 1);
            let _ = write!(out, " --sessions {}", list(sessions.map(|l| l.to_string()).collect()));
        }
        if self.turns_max != all.turns_max {
            let _ = write!(out, " --turns {}", self.turns_max);
        }
        if self.clients != all.clients {
            let _ = write!(out, " --clients {}", named(self.clients.names()));
        }
        if self.kinds != all.kinds {
            let _ = write!(out, " --kinds {}", list(self.kinds.names()));
        }
        if self.hazards != all.hazards {
            let _ = write!(out, " --hazards {}", named(self.hazards.names()));
        }
        out
    }
}

/// The settings of a seed's run.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// The preset whose policies are drawn; `None`: any.
    pub preset: Option<String>,
    /// A fault of the file system that the harness must detect.
    pub sabotage: Option<Fault>,
    /// Prints every operation.
    pub trace: bool,
    /// The parts of the drawn scenario that are run.
    pub keep: Keep,
}

/// The most sessions of a seed.
pub const SESSIONS_MAX: u64 = 16;
const SESSIONS_MIN: u64 = 6;
/// The most turns of a session.
const TURNS_MAX: u64 = 160;

/// A client of a run, with its habits.
#[derive(Clone, Copy, Debug)]
pub struct Client {
    /// Its work.
    pub kind: ClientKind,
    /// The kinds of operation that it runs.
    pub kinds: Kinds,
    /// The number of its writes in sixteen that are synced.
    pub synced_of_16: u64,
    /// The number of keys that it uses.
    pub keys: u8,
}

/// A seed's run.
#[derive(Clone, Debug)]
pub struct Scenario {
    seed: u64,
    preset: Option<String>,
    /// Sessions to run, by their number.
    pub sessions: Vec<u64>,
    /// The clients.
    pub clients: Vec<Client>,
    /// The hazards.
    pub hazards: Set<Hazard>,
    /// The most turns of a session.
    pub turns_max: u64,
}

/// Independent draws of one seed.
#[derive(Clone, Copy, Debug)]
pub enum Stream {
    /// The environment's own choices.
    World,
    /// Sessions, clients, hazards.
    Shape,
    /// The options that a session opens with.
    Options(u64),
    /// The faults of a session: crash, damage, failures.
    Fate(u64),
    /// A turn of a session.
    Turn(u64, u64),
    /// The lies of the device.
    Lies,
    /// Whether writing is turned on again after a turn in which it went off.
    Resume(u64, u64),
}

/// Returns the random numbers of `seed` for `stream`.
pub fn stream(seed: u64, stream: Stream) -> Rng {
    let (kind, session, turn) = match stream {
        Stream::World => (1, 0, 0),
        Stream::Shape => (2, 0, 0),
        Stream::Options(session) => (3, session, 0),
        Stream::Fate(session) => (4, session, 0),
        Stream::Turn(session, turn) => (5, session, turn),
        Stream::Lies => (6, 0, 0),
        Stream::Resume(session, turn) => (7, session, turn),
    };
    let mut rng = Rng::new(seed);
    // One step mixes each part before the next is added.
    for part in [kind, session, turn] {
        rng = Rng::new(rng.next_u64() ^ part);
    }
    rng
}

impl Scenario {
    /// Draws the scenario of `seed`, as far as the settings keep it.
    pub fn draw(seed: u64, settings: &Settings) -> Scenario {
        let keep = &settings.keep;
        let mut rng = stream(seed, Stream::Shape);
        let sessions = SESSIONS_MIN + rng.below(SESSIONS_MAX - SESSIONS_MIN + 1);
        let sessions = (0..sessions).filter(|session| keep.sessions >> session & 1 == 1).collect();
        let kinds = Kinds::ALL.half(&mut rng).and(keep.kinds);
        let hazards = draw_hazards(&mut rng).and(keep.hazards);
        let turns_max = (20 + rng.below(TURNS_MAX - 20)).min(keep.turns_max);
        let mut clients = Vec::new();
        for (kind, _) in ClientKind::ALL {
            let count = match kind {
                ClientKind::Writer => 2 + rng.below(3),
                ClientKind::Crasher => rng.below(2),
                _ => rng.below(3).saturating_sub(rng.below(2)),
            };
            for _ in 0..count {
                let client = Client {
                    kind: *kind,
                    kinds: kinds_of(*kind, kinds),
                    synced_of_16: [0, 2, 8, 16][rng.below(4) as usize],
                    keys: [3, 12, u8::MAX][rng.below(3) as usize],
                };
                if keep.clients.has(*kind) {
                    clients.push(client);
                }
            }
        }
        Scenario { seed, preset: settings.preset.clone(), sessions, clients, hazards, turns_max }
    }

    /// Returns the options that a session opens with, and their settings in words.
    ///
    /// # Errors
    /// The setting that is wrong.
    pub fn options(&self, session: u64) -> Result<(Options, String), String> {
        let session = if self.hazards.has(Hazard::Switch) { session } else { 0 };
        let mut rng = stream(self.seed, Stream::Options(session));
        let settings = draw_settings(&mut rng, self.preset.as_deref());
        let text = settings.iter().map(|(name, value)| format!("{name}={value}"));
        let text = text.collect::<Vec<_>>().join("; ");
        let options = variant::options_of(settings.iter().map(|(n, v)| (*n, v.as_str())));
        let options = options.map_err(|e| format!("{text}: {e}"))?;
        options.validate().map_err(|e| format!("{text}: {e}"))?;
        Ok((options, text))
    }

    /// Returns the random numbers of one of its streams.
    pub fn stream(&self, of: Stream) -> Rng {
        stream(self.seed, of)
    }
}

fn kinds_of(kind: ClientKind, kinds: Kinds) -> Kinds {
    let all = match kind {
        ClientKind::Writer => Kinds::WRITES,
        ClientKind::Reader => Kinds::READS,
        ClientKind::Scanner => return Kinds::CURSORS,
        ClientKind::Holder => return Kinds::SNAPSHOTS,
        ClientKind::Keeper => Kinds::UPKEEP,
        ClientKind::Dropper => return Kinds::KEYSPACES,
        ClientKind::Checkpointer | ClientKind::Background | ClientKind::Crasher => {
            return Kinds::NONE;
        }
    };
    let left = all.and(kinds);
    // A writer without operations would make an empty run.
    if left.is_empty() && kind == ClientKind::Writer { Kinds::PUT } else { left }
}

/// Draws the hazards. Most seeds have a sound device: crashes are the main subject.
fn draw_hazards(rng: &mut Rng) -> Set<Hazard> {
    let harmless = Set::none().with(Hazard::Clock).with(Hazard::Switch);
    let drawn = harmless.some(rng, 24);
    let (dice, harmful) = (rng.below(8), Set::all().some(rng, 16));
    match dice {
        0 => drawn.with(Hazard::Lies),
        1 | 2 => harmful.members().fold(drawn, Set::with).without(Hazard::Lies),
        _ => drawn,
    }
}

fn pick<'a>(rng: &mut Rng, of: &[&'a str]) -> &'a str {
    of[rng.below(of.len() as u64) as usize]
}

/// Draws a policy: a preset in a size that a run fills, or a value for each axis.
fn draw_policy(rng: &mut Rng, preset: Option<&str>) -> String {
    if let Some(preset) = preset {
        let of_it = |policy: &&str| policy.split(' ').next() == Some(preset);
        let known: Vec<&str> = variant::POLICIES.iter().copied().filter(of_it).collect();
        return if known.is_empty() { preset.to_owned() } else { pick(rng, &known).to_owned() };
    }
    if rng.below(2) == 0 {
        return pick(rng, variant::POLICIES).to_owned();
    }
    let shape = pick(
        rng,
        &[
            "leveling(t=2)",
            "leveling(t=2,phi=6)",
            "leveling(t=2,base=last)",
            "garnering(t=2,c=0.7)",
            "garnering(t=2,c=0.8,base=last)",
        ],
    );
    let level0 = pick(
        rng,
        &[
            "tiered(k=1)",
            "tiered(k=3)",
            "fifo",
            "partitioned(lanes=4,k=2)",
            "partitioned(lanes=4,k=dial)",
        ],
    );
    let picker = pick(
        rng,
        &[
            "leveled(min_overlap)",
            "leveled(round_robin)",
            "sst_log(paper,omega=0.3)",
            "sst_log(closed,omega=0.3,levels=2,depth=2)",
            "sst_log(columns,share=dial,levels=2,depth=2)",
        ],
    );
    let cut = pick(rng, &["by_size", "overlap(f=2)"]);
    let filters = pick(
        rng,
        &["none", "uniform(bits=1.5)", "uniform(bits=10)", "monkey(bits=3)", "mnemosyne(bits=3)"],
    );
    format!("shape={shape} level0={level0} pick={picker} cut={cut} filters={filters}")
}

fn draw_settings(rng: &mut Rng, preset: Option<&str>) -> Vec<(&'static str, String)> {
    let mut settings = vec![("preset", draw_policy(rng, preset))];
    let block_bytes = pick(rng, &["256", "1KiB", "4KiB"]);
    settings.push(("block_bytes", block_bytes.to_owned()));
    let mut choose = |name, of: &[&str]| settings.push((name, pick(rng, of).to_owned()));
    choose("level_base_bytes", &["4KiB", "16KiB", "128KiB"]);
    // The smallest tables make SST-logs of several tables, which are merged down; a block is at
    // most a quarter of a table.
    match block_bytes {
        "4KiB" => choose("file_bytes", &["64KiB", "256KiB"]),
        _ => choose("file_bytes", &["4KiB", "64KiB", "256KiB"]),
    }
    choose("compression", &["none", "lz4", "none,lz4"]);
    choose("hash_index", &["on", "off"]);
    choose("partition_bytes", &["4KiB", "512KiB"]);
    choose("cache_bytes", &["0", "64KiB"]);
    choose("readahead_bytes", &["0", "256KiB"]);
    choose("open_files_max", &["0", "16"]);
    choose("verify_on_open", &["off", "off", "off", "on"]);
    choose("wal_sync_interval_ms", &["0", "100"]);
    choose("manifest_bytes", &["1KiB", "256KiB"]);
    settings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_draw_is_valid() {
        for (preset, _) in windrow_plan::preset::PRESETS {
            let settings = Settings { preset: Some((*preset).to_owned()), ..Settings::default() };
            for seed in 0..50 {
                let (_, text) = Scenario::draw(seed, &settings).options(0).expect("options");
                assert!(text.starts_with(&format!("preset={preset}")), "{text}");
            }
        }
        let mut drawn = Set::none();
        for seed in 0..2_000 {
            let scenario = Scenario::draw(seed, &Settings::default());
            scenario.options(0).expect("options");
            assert!(scenario.clients.iter().any(|client| client.kind == ClientKind::Writer));
            drawn = scenario.hazards.members().fold(drawn, Set::with);
        }
        assert_eq!(drawn.names(), Set::<Hazard>::all().names());
    }

    #[test]
    fn what_is_left_out_changes_nothing_else() {
        let all = Scenario::draw(7, &Settings::default());
        let keep = Keep {
            sessions: 0b101,
            clients: Set::all().without(ClientKind::Reader),
            ..Keep::default()
        };
        let some = Scenario::draw(7, &Settings { keep, ..Settings::default() });
        assert_eq!(some.sessions, [0, 2]);
        assert_eq!(some.turns_max, all.turns_max);
        let (mut a, mut b) = (all.stream(Stream::Turn(2, 9)), some.stream(Stream::Turn(2, 9)));
        assert_eq!(a.next_u64(), b.next_u64());
        let others = |s: &Scenario| {
            let others = s.clients.iter().filter(|client| client.kind != ClientKind::Reader);
            others.map(|client| format!("{client:?}")).collect::<Vec<_>>()
        };
        assert_eq!(others(&all), others(&some));
    }
}
