//! Runs the cases in `testdata/`: trees and questions as text, answers below them.
//!
//! A case is a paragraph: comments (`#`), a command with its arguments, lines
//! of input, `----`, and the answer. State (tree, policy, settings, busy files)
//! carries over from case to case within a file. `REWRITE=1 cargo test -p
//! windrow-plan --test data` fills in the answers, for a reviewer to read.
//!
//! Owns: the commands. Never does: decide anything itself.

#![allow(clippy::disallowed_methods)] // reads and rewrites its own test data

use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;
use windrow_base::KeyOrder;
use windrow_base::key::SEQ_MAX;
use windrow_plan::axes::Sampler;
use windrow_plan::cost::Cost;
use windrow_plan::tree::closure::{Seat, close, may_move};
use windrow_plan::tree::text::{parse_bytes, parse_key, parse_place};
use windrow_plan::tree::{Edit, File, OlderFiles, Part, Place, Version};
use windrow_plan::{Busy, Decision, ManualState, Merge, PlanSettings, Policy, Reason, View};
use windrow_plan::{Covered, Covers, TableTombstone, hidden_tables};

struct Bench {
    version: Version,
    policy: Policy,
    settings: PlanSettings,
    busy: Busy,
    claimed: Vec<Decision>,
    snapshots_oldest: u64,
    now_ms: u64,
}

impl Bench {
    fn new() -> Bench {
        Bench {
            version: Version::empty(KeyOrder::Bytewise),
            policy: Policy::leveled(),
            settings: PlanSettings {
                memtable_bytes: 1 << 20,
                file_bytes: 1 << 20,
                level_base_bytes: 4 << 20,
                tombstone_grace_ms: 1000,
                expiry_grace_ms: 1000,
                ..PlanSettings::default()
            },
            busy: Busy::new(),
            claimed: Vec::new(),
            snapshots_oldest: SEQ_MAX,
            now_ms: 0,
        }
    }

    fn view(&self) -> View<'_> {
        View {
            version: &self.version,
            busy: &self.busy,
            settings: &self.settings,
            snapshots_oldest: self.snapshots_oldest,
            now_ms: self.now_ms,
        }
    }

    fn run(&mut self, command: &str, body: &str) -> String {
        let (name, args) = command.split_once(' ').unwrap_or((command, ""));
        match name {
            "tree" => match body.parse::<Version>() {
                Ok(version) => {
                    *self = Bench { version, ..Bench::new() };
                    "ok\n".into()
                }
                Err(error) => format!("{error}\n"),
            },
            "policy" => match Policy::parse(args) {
                Ok(policy) => {
                    self.policy = policy;
                    format!("{}\n", self.policy)
                }
                Err(error) => format!("{error}\n"),
            },
            "set" => self.set(args),
            "pick" if args == "all" => self.pick_all(),
            "pick" => format!("{}\n", self.policy.pick(&self.view())),
            "within" => self.within(args),
            "covered" => self.covered(args, body),
            "pick_for_reads" => self.pick_for_reads(args),
            "settle" => self.settle(),
            "boundaries" => self.boundaries(body),
            "claim" => self.claim(args),
            "damage" => self.damage(args),
            "release" => {
                for decision in std::mem::take(&mut self.claimed) {
                    self.busy.release(&decision);
                }
                assert!(self.busy.is_empty() && self.busy.jobs() == 0);
                "ok\n".into()
            }
            "close" => self.close(args),
            "move" => {
                let (seats, to) = self.seats(args);
                format!("{}\n", if may_move(&self.version, seats[0], to) { "yes" } else { "no" })
            }
            "conflicts" => {
                let merge = self.merge(args).expect("a closure without busy files");
                format!("{}\n", self.busy.conflicts(&self.version.order, &merge))
            }
            "outside" => self.outside(args, body),
            "apply" => self.apply(body),
            "manual" => self.manual(args),
            "cut" => self.cut(args, body),
            "debt" => format!("{:?}\n", self.policy.debt(&self.version, &self.settings)),
            "capacity" => (0..4).fold(String::new(), |mut out, level| {
                let capacity = self.policy.capacity(&self.version, &self.settings, level);
                let _ = writeln!(out, "L{level} {capacity}");
                out
            }),
            "log_limits" => (1..5).fold(String::new(), |mut out, level| {
                let limit = self.policy.log_limit(&self.version, &self.settings, level);
                let _ = writeln!(out, "L{level} {limit}");
                out
            }),
            "cost" => format!("{:.2?}\n", Cost::of(&self.version)),
            "print" => {
                let text = self.version.to_string();
                assert_eq!(text.parse::<Version>().unwrap().to_string(), text);
                text
            }
            other => panic!("no command `{other}`"),
        }
    }

    /// `file=bytes` for each file: what it has cost reads.
    fn pick_for_reads(&self, args: &str) -> String {
        let cost = |pair: &str| {
            let (file, bytes) = pair.split_once('=').expect("file=bytes");
            (file.parse().expect("a file"), parse_bytes(bytes).unwrap())
        };
        let costs = args.split_whitespace().map(cost).collect();
        format!("{}\n", self.policy.pick_for_reads(&self.view(), &costs))
    }

    /// Input: `table start end sequence-number` a line. Arguments: the snapshots held.
    fn covered(&self, args: &str, body: &str) -> String {
        let held: Vec<u64> = args.split_whitespace().map(|seq| seq.parse().unwrap()).collect();
        let line = |line: &str| {
            let words: Vec<&str> = line.split_whitespace().collect();
            let [table, start, end, seq] = words[..] else { panic!("table start end seq") };
            let (level, part, i) = self.version.find(table.parse().unwrap()).expect("a table");
            let place = self.version.part(level, part)[i].place(level, part);
            (parse_key(start).unwrap(), parse_key(end).unwrap(), seq.parse().unwrap(), place)
        };
        let list: Vec<_> = body.lines().map(line).collect();
        let covers = list.iter().map(|(start, end, seq, place)| {
            let (seq, place): (u64, Place) = (*seq, *place);
            TableTombstone { start, end, seq, place }
        });
        let covers = Covers::new(&self.version.order, &held, covers);
        let Covered { decision, is_in_the_way } = hidden_tables::pick(&self.view(), &covers);
        let more = if is_in_the_way { "; a job has more" } else { "" };
        if let Decision::Drop(drop) = &decision {
            self.version.apply(&drop.edit()).expect("an edit that applies");
        }
        format!("{decision}{more}\n")
    }

    fn set(&mut self, args: &str) -> String {
        for (name, value) in args.split_whitespace().map(|a| a.split_once('=').unwrap()) {
            let bytes = parse_bytes(value).unwrap();
            match name {
                "space" => self.settings.space_max_percent = bytes as u32,
                "price" => self.settings.file_price_percent = bytes as u32,
                "memtable" => self.settings.memtable_bytes = bytes,
                "file" => self.settings.file_bytes = bytes,
                "base" => self.settings.level_base_bytes = bytes,
                "overlap" => self.settings.overlap_files_max = bytes as u32,
                "snapshots" => self.snapshots_oldest = bytes,
                "now" => self.now_ms = bytes,
                other => panic!("no setting `{other}`"),
            }
        }
        "ok\n".into()
    }

    /// Jobs that can run at once: each is claimed before the next is asked for.
    fn pick_all(&mut self) -> String {
        let mut out = String::new();
        loop {
            let decision = self.policy.pick(&self.view());
            let _ = writeln!(out, "{decision}");
            if decision.is_idle() {
                return out;
            }
            self.busy.claim(&decision);
            self.claimed.push(decision);
        }
    }

    /// `3 4 -> L1.run`
    fn seats(&self, args: &str) -> (Vec<Seat>, (u32, Part)) {
        let (files, to) = args.split_once("->").expect("files -> place");
        let seat = |number: &str| self.version.find(number.parse().unwrap()).expect("a file");
        (files.split_whitespace().map(seat).collect(), parse_place(to.trim()).expect("a place"))
    }

    fn merge(&self, args: &str) -> Option<Merge> {
        let (seats, to) = self.seats(args);
        let closure = close(&self.version, seats, to, |f| !self.busy.is_busy(f.number))?;
        Some(Merge {
            inputs: closure.inputs(),
            output_level: closure.output().level,
            output_part: closure.output().part,
            output_epoch: closure.output().age.0,
            bounds: closure.span().to_bounds(),
            reason: Reason::Manual,
            cursor: None,
        })
    }

    /// Input: `key bytes` a line, of a flush, used if the policy wants a sample.
    fn boundaries(&self, body: &str) -> String {
        let mut sampler = Sampler::new(self.version.order.clone());
        for line in body.lines() {
            let (key, bytes) = line.split_once(' ').unwrap();
            sampler.see(&parse_key(key).unwrap(), parse_bytes(bytes).unwrap());
        }
        let sample = self.policy.wants_sample(&self.version, &self.settings);
        let sample = (sample && !body.is_empty()).then(|| sampler.finish());
        match self.policy.boundaries(&self.version, &self.settings, sample.as_ref()) {
            None => "as they are\n".into(),
            Some(keys) => keys.iter().fold("boundaries".into(), |out, key| {
                format!("{out} {}", windrow_plan::tree::text::KeyText(key))
            }),
        }
    }

    fn close(&self, args: &str) -> String {
        self.merge(args).map_or("busy\n".into(), |merge| format!("{merge}\n"))
    }

    fn claim(&mut self, args: &str) -> String {
        let Some(merge) = self.merge(args) else { return "busy\n".into() };
        if self.busy.conflicts(&self.version.order, &merge) {
            return "conflict\n".into();
        }
        let out = format!("{merge}\n");
        let decision = Decision::Merge(merge);
        self.busy.claim(&decision);
        self.claimed.push(decision);
        out
    }

    fn damage(&mut self, number: &str) -> String {
        self.busy.add_file(number.parse().unwrap());
        "ok\n".into()
    }

    fn outside(&self, args: &str, body: &str) -> String {
        let merge = self.merge(args).expect("no busy file");
        let mut outside = OlderFiles::new(&self.version, &merge);
        let mut out = String::new();
        for word in body.split_whitespace() {
            let answer = match word.strip_prefix('[') {
                None => outside.may_hold(&parse_key(word).unwrap()),
                Some(range) => {
                    let (lo, hi) = range.strip_suffix(')').unwrap().split_once(',').unwrap();
                    outside.overlaps(&parse_key(lo).unwrap(), &parse_key(hi).unwrap())
                }
            };
            let _ = writeln!(out, "{word} {}", if answer { "held" } else { "free" });
        }
        out
    }

    /// Lines `- L1.run 5`, `+ L1.run 9 [a,b]`, and those of a tree.
    fn apply(&mut self, body: &str) -> String {
        let mut edit = Edit::default();
        let mut added = String::new();
        for line in body.lines() {
            if let Some(gone) = line.strip_prefix("- ") {
                let (place, number) = gone.split_once(' ').unwrap();
                let (level, part) = parse_place(place).unwrap();
                edit.removed.push((level, part, number.parse().unwrap()));
            } else {
                // Each line alone, since two of them need not make a tree.
                added.clear();
                added.push_str(line.strip_prefix("+ ").unwrap_or(line));
                let one = match added.parse::<Version>() {
                    Ok(version) => version.snapshot_edits().remove(0),
                    Err(error) => return format!("{error}\n"),
                };
                edit.added.extend(one.added);
                edit.cursors.extend(one.cursors);
                edit.boundaries = one.boundaries.or(edit.boundaries);
                edit.flushed_through =
                    one.flushed_through.filter(|&t| t > 0).or(edit.flushed_through);
                edit.shape_levels = one.shape_levels.filter(|&l| l > 1).or(edit.shape_levels);
            }
        }
        match self.version.apply(&edit) {
            Err(error) => format!("{error}\n"),
            Ok(version) => {
                let shared = (self.version.levels.iter().zip(&version.levels).enumerate())
                    .filter(|(_, (old, new))| Arc::ptr_eq(old, new))
                    .map(|(n, _)| format!(" L{n}"))
                    .collect::<String>();
                self.version = version;
                format!("shares{shared}\n{}", self.version)
            }
        }
    }

    /// Steps through a manual compaction, each merge giving one file.
    fn manual(&mut self, args: &str) -> String {
        let mut args = args.split_whitespace().map(|k| parse_key(k).unwrap());
        let (lo, hi) = (args.next(), args.next());
        let mut state = ManualState::new();
        let mut out = String::new();
        for _ in 0..100 {
            let decision =
                self.policy.manual(&self.view(), lo.as_deref(), hi.as_deref(), &mut state);
            if decision.is_idle() {
                let _ = writeln!(out, "{}", if state.is_done() { "done" } else { "wait" });
                return out;
            }
            let _ = writeln!(out, "{decision}");
            let edit = self.edit(&decision);
            self.version = self.version.apply(&edit).unwrap();
        }
        panic!("a manual compaction goes on and on:\n{out}");
    }

    /// Runs each decision, each merge giving one file, until none is picked. Every edit goes the
    /// way of the manifest.
    fn settle(&mut self) -> String {
        let mut out = String::new();
        for _ in 0..100 {
            let decision = self.policy.pick(&self.view());
            if decision.is_idle() {
                return out + &self.version.to_string();
            }
            let _ = writeln!(out, "{decision}");
            let mut record = Vec::new();
            self.edit(&decision).encode(&mut record);
            self.version = self.version.apply(&Edit::decode(&record).unwrap()).unwrap();
        }
        panic!("picking goes on and on:\n{out}");
    }

    fn edit(&self, decision: &Decision) -> Edit {
        match decision {
            Decision::Move(m) => m.edit(),
            Decision::Drop(d) => d.edit(),
            Decision::Merge(m) => m.edit(vec![self.merged(m)]),
            Decision::Reshape(r) => r.edit(),
            Decision::Idle => Edit::default(),
        }
    }

    fn merged(&self, merge: &Merge) -> File {
        let number = self.version.files().map(|(_, _, f)| f.number).max().unwrap_or(0) + 1;
        let files = || merge.files().map(|(_, _, f)| f);
        let keeps = !OlderFiles::new(&self.version, merge).is_empty();
        let (smallest, largest, largest_exclusive) = merge.bounds.clone();
        let (smallest, largest): (Arc<[u8]>, Arc<[u8]>) = (smallest.into(), largest.into());
        let last = if largest_exclusive { &smallest } else { &largest };
        let point_bounds = Some((smallest.clone(), last.clone()));
        File {
            number,
            uid: number,
            bytes: merge.input_bytes(),
            entries: files().map(|f| f.entries).sum(),
            point_tombstones: if keeps { files().map(|f| f.point_tombstones).sum() } else { 0 },
            range_tombstones: if keeps { files().map(|f| f.range_tombstones).sum() } else { 0 },
            seq_min: files().map(|f| f.seq_min).min().unwrap(),
            seq_max: files().map(|f| f.seq_max).max().unwrap(),
            smallest,
            largest,
            largest_exclusive,
            point_bounds,
            ..File::default()
        }
    }

    /// Arguments: bytes of room, and the deepest level to take from, 9 unless it is given.
    fn within(&self, args: &str) -> String {
        let (room, deepest) = args.split_once(' ').unwrap_or((args, "9"));
        let (room, deepest) = (parse_bytes(room).unwrap(), deepest.parse().expect("a level"));
        format!("{}\n", self.policy.pick_within(&self.view(), room, deepest))
    }

    /// Input: `key bytes` a line; answer: the files. Of an output into a level,
    /// or of a flush.
    fn cut(&self, args: &str, body: &str) -> String {
        let sizes = |body: &str| -> u64 {
            body.lines().map(|l| parse_bytes(l.split_once(' ').unwrap().1).unwrap()).sum()
        };
        let mut cutter = match args.strip_prefix('L') {
            Some(level) => {
                self.policy.cutter(&self.version, &self.settings, level.parse().unwrap())
            }
            None => self.policy.flush_cutter(sizes(body), &self.version.boundaries),
        };
        let mut out = String::new();
        let (mut bytes, mut left) = (0, sizes(body));
        for line in body.lines() {
            let (key, size) = line.split_once(' ').unwrap();
            let size = parse_bytes(size).unwrap();
            if cutter.cut_before(&self.version.order, &parse_key(key).unwrap(), bytes, || left) {
                bytes = 0;
                out.push('\n');
            }
            bytes += size;
            left -= size;
            let _ = write!(out, "{key} ");
        }
        out.push('\n');
        out.replace(" \n", "\n")
    }
}

fn check(path: &Path) {
    let text = std::fs::read_to_string(path).unwrap();
    let mut bench = Bench::new();
    let mut rewritten = Vec::new();
    let mut wrong = String::new();
    for case in text.split("\n\n").map(str::trim).filter(|c| !c.is_empty()) {
        let (input, expected) = match case.split_once("----") {
            Some((input, expected)) => (input.trim_end(), expected.trim()),
            None => (case, ""),
        };
        let mut lines = input.lines().skip_while(|l| l.starts_with('#'));
        let Some(command) = lines.next() else {
            rewritten.push(input.to_owned());
            continue;
        };
        let body: Vec<&str> = lines.collect();
        let answer = bench.run(command, &body.join("\n"));
        let answer = answer.trim_end();
        if answer.trim() != expected {
            let _ = writeln!(wrong, "{input}\n---- expected\n{expected}\n---- got\n{answer}\n");
        }
        rewritten.push(format!("{input}\n----\n{answer}"));
    }
    if std::env::var_os("REWRITE").is_some() {
        std::fs::write(path, rewritten.join("\n\n") + "\n").unwrap();
    } else {
        assert!(wrong.is_empty(), "{}:\n{wrong}", path.display());
    }
}

macro_rules! cases {
    ($($name:ident),* $(,)?) => {
        $(#[test]
        fn $name() {
            let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata");
            check(&dir.join(concat!(stringify!($name), ".txt")));
        })*

        #[test]
        fn every_file_is_run() {
            let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata");
            let known = [$(concat!(stringify!($name), ".txt")),*];
            for entry in std::fs::read_dir(dir).unwrap() {
                let name = entry.unwrap().file_name().into_string().unwrap();
                assert!(known.contains(&name.as_str()), "{name} is not in the list of cases");
            }
        }
    };
}

cases!(
    invariants,
    closure,
    betweenness,
    sst_log,
    columns,
    tiered,
    leveled,
    small,
    scarce,
    busy,
    garbage,
    covered_tables,
    outside,
    manual,
    cut,
    text,
    garnering,
    first_partitions,
    from_last,
    for_reads,
    fifo,
    overlap,
    partitioned,
);
