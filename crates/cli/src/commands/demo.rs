//! `demo`: Windrow's operations on real data, each step checked.
//!
//! The data are the named characters of Unicode 15 (`data/unicode.tsv`). The settings are far below
//! the defaults, so that two megabytes grow a tree with levels. Every step compares the data that
//! it reads: a demo that prints a wrong answer fails.
//!
//! Owns: the steps and their data. Never does: touch an existing directory.

use crate::args::DemoArgs;
use crate::bytes;
use crate::failure::{Failure, Result};
use crate::human::{self, Paint, Stopwatch};
use crate::picture;
use crate::progress::Progress;
use crate::stop;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use windrow::{Batch, Db, Keyspace, KeyspaceOptions, Options, Stats, WriteSync};

/// The table that ships with the program: code TAB name;category.
const UNICODE: &str = include_str!("../../data/unicode.tsv");

/// The number of times that every value is written again.
const ROUNDS: u64 = 8;

/// The range that one tombstone deletes: the Braille patterns.
const BRAILLE: (&str, &str) = ("002800", "002900");

/// One line of the table.
struct Character {
    code: &'static str,
    name: &'static str,
    category: &'static str,
}

impl Character {
    fn parse(line: &'static str) -> Option<Character> {
        let (code, value) = line.split_once('\t')?;
        let (name, category) = value.rsplit_once(';')?;
        Some(Character { code, name, category })
    }

    /// Returns the value after `round` rounds of overwriting.
    fn value(&self, round: u64) -> String {
        match round {
            0 => format!("{};{}", self.name, self.category),
            _ => format!("{};{};revision {round}", self.name, self.category),
        }
    }

    /// Returns the character, where a terminal can show it by itself.
    fn glyph(&self) -> String {
        let shown = self.category.starts_with(['L', 'S', 'P', 'N']);
        let char = u32::from_str_radix(self.code, 16).ok().and_then(char::from_u32);
        char.filter(|_| shown).map_or_else(String::new, String::from)
    }

    fn in_braille(&self) -> bool {
        BRAILLE.0 <= self.code && self.code < BRAILLE.1
    }
}

/// The three keyspaces of the demo.
struct Store {
    db: Db,
    names: Keyspace,
    counts: Keyspace,
}

impl Store {
    fn open(path: &Path) -> Result<Store> {
        let mut options = Options::default();
        for (name, value) in [
            ("memory_bytes", "32MiB"),
            ("memtable_bytes", "1MiB"),
            ("file_bytes", "128KiB"),
            ("level_base_bytes", "512KiB"),
        ] {
            options.settings.set(name, value)?;
        }
        let db = Db::open_with(path, options)?;
        let adding = KeyspaceOptions {
            merge_operator: Some("add".to_owned()),
            ..KeyspaceOptions::default()
        };
        Ok(Store { names: db.keyspace("names")?, counts: db.keyspace_with("counts", adding)?, db })
    }
}

/// The output of the demo, in chapters.
struct Story {
    out: io::Stdout,
    paint: Paint,
    quiet: bool,
    chapter: u32,
}

impl Story {
    fn chapter(&mut self, title: &str, about: &str) -> Result<()> {
        self.chapter += 1;
        let title = self.paint.bold(format!("{}. {title}", self.chapter));
        writeln!(self.out, "\n{title}  {}", self.paint.dim(about))?;
        stop::check()
    }

    fn say(&mut self, text: impl std::fmt::Display) -> Result<()> {
        Ok(writeln!(self.out, "   {text}")?)
    }

    /// Prints a figure with its description.
    fn figure(&mut self, figure: impl std::fmt::Display, of: &str) -> Result<()> {
        let figure = self.paint.good(format!("{figure:>14}"));
        Ok(writeln!(self.out, "   {figure}  {of}")?)
    }
}

pub(crate) fn run(args: &DemoArgs, quiet: bool) -> Result<()> {
    let (path, temporary) = place(args)?;
    let characters: Vec<Character> = UNICODE.lines().filter_map(Character::parse).collect();
    let mut story = Story { out: io::stdout(), paint: Paint::stdout(), quiet, chapter: 0 };
    let whole = Stopwatch::start();
    introduce(&mut story, characters.len() as u64, &path, temporary.is_some())?;
    let store = Store::open(&path)?;
    let outcome = tell(&mut story, store, &path, &characters);
    // The directory is removed after a failure, too. A failure to remove is reported only if there
    // was no other.
    let removed = temporary.map(tempfile::TempDir::close);
    outcome?;
    if let Some(Err(error)) = removed {
        return Err(Failure::file("remove", path.display(), &error));
    }
    farewell(&mut story, args, whole.elapsed())
}

/// Returns the directory that was asked for, or a temporary one with its guard, which removes it.
fn place(args: &DemoArgs) -> Result<(PathBuf, Option<tempfile::TempDir>)> {
    if let Some(path) = &args.keep {
        if path.exists() {
            let why = format!("{} exists already", path.display());
            return Err(
                Failure::failed(why).hint("name a directory that does not; the demo makes it")
            );
        }
        return Ok((path.clone(), None));
    }
    let dir = tempfile::Builder::new()
        .prefix("windrow-demo-")
        .tempdir()
        .map_err(|error| Failure::file("make", "a temporary directory", &error))?;
    Ok((dir.path().join("db"), Some(dir)))
}

fn introduce(story: &mut Story, characters: u64, path: &Path, temporary: bool) -> Result<()> {
    let title = story.paint.bold("Windrow, shown on Unicode");
    writeln!(
        story.out,
        "{title}: {} characters of version 15.0, with their names",
        human::count(characters)
    )?;
    let kept = if temporary { ", removed at the end" } else { "" };
    let line = format!(
        "in {}{kept}; memtables and files are kept tiny, so that a tree grows",
        path.display()
    );
    Ok(writeln!(story.out, "{}", story.paint.dim(line))?)
}

/// Runs the chapters. The database is closed on every path.
fn tell(story: &mut Story, store: Store, path: &Path, characters: &[Character]) -> Result<()> {
    let first = load(story, &store, characters)
        .and_then(|()| read(story, &store, characters))
        .and_then(|()| scan(story, &store, characters))
        .and_then(|()| overwrite(story, &store, characters));
    let writing = store.db.stats();
    let closed = close(story, store, first.is_ok());
    first?;
    closed?;
    let store = reopen(story, path, characters)?;
    let last = verify(story, &store)
        .and_then(|()| draw(story, &store))
        .and_then(|()| figures(story, &store, &writing));
    let closed = store.db.close();
    last?;
    Ok(closed?)
}

fn load(story: &mut Story, store: &Store, characters: &[Character]) -> Result<()> {
    story.chapter("Load", "one atomic batch for each character, over three keyspaces")?;
    story.say(
        "default  code -> name   names  name -> code   counts  category + 1, by a merge operator",
    )?;
    let one = 1i64.to_le_bytes();
    let progress = Progress::steps(story.quiet, "   loading", characters.len() as u64);
    let watch = Stopwatch::start();
    for (i, character) in characters.iter().enumerate() {
        let mut batch = Batch::new();
        batch.put(&store.db, character.code, character.value(0));
        batch.put(&store.names, character.name, character.code);
        batch.merge(&store.counts, character.category, one);
        store.db.write(batch, WriteSync::No)?;
        tick(&progress, i)?;
    }
    let loaded = watch.elapsed();
    drop(progress);
    let watch = Stopwatch::start();
    store.db.sync()?;
    let n = characters.len() as u64;
    story.figure(
        human::count(human::per_second(n, loaded)),
        "batches a second, each in the log before the call returned",
    )?;
    story.figure(human::time(watch.elapsed()), "to make them all durable, by one sync at the end")
}

fn tick(progress: &Progress, i: usize) -> Result<()> {
    if i.is_multiple_of(1024) {
        progress.at(i as u64);
        stop::check()?;
    }
    Ok(())
}

fn read(story: &mut Story, store: &Store, characters: &[Character]) -> Result<()> {
    story.chapter("Read", "by code, by name, and what is not there")?;
    for code in ["002603", "01F4A9"] {
        let value =
            store.db.get(code)?.ok_or_else(|| wrong("a character is missing", code.as_bytes()))?;
        story.say(format_args!(
            "get {code}                -> {}",
            String::from_utf8_lossy(&value)
        ))?;
    }
    let code = store.names.get("FIELD ABOVE")?;
    if code.is_some() {
        return Err(wrong("a name is there that nobody wrote", b"FIELD ABOVE"));
    }
    story.say("get names/FIELD ABOVE     -> nothing")?;
    let watch = Stopwatch::start();
    for i in shuffled(characters.len()) {
        let character = &characters[i];
        check(store.db.get(character.code)?.as_deref(), &character.value(0), character)?;
    }
    story.figure(
        human::time(each(&watch, characters.len())),
        "a get, over all in shuffled order, each value compared",
    )?;
    let (before, watch) = (store.db.stats(), Stopwatch::start());
    for i in shuffled(characters.len()) {
        let absent = format!("{}x", characters[i].code);
        if store.db.get(&absent)?.is_some() {
            return Err(wrong("a key is there that nobody wrote", absent.as_bytes()));
        }
    }
    story
        .figure(human::time(each(&watch, characters.len())), "a get of a key that is not there")?;
    let after = store.db.stats();
    let asked = after.filter_checks - before.filter_checks;
    let spared = after.filter_negatives - before.filter_negatives;
    if asked > 0 {
        let share = format!("{:.1} %", 100.0 * spared as f64 / asked as f64);
        story.figure(share, "of the tables those could lie in were ruled out by their filters")?;
    }
    Ok(())
}

/// Returns all indexes below `n` once each, far from their order: steps of a prime that does not
/// divide `n`.
fn shuffled(n: usize) -> impl Iterator<Item = usize> {
    let step =
        [15_485_863, 32_452_843].into_iter().find(|&prime| !n.is_multiple_of(prime)).unwrap_or(1);
    (0..n).map(move |i| (i * step) % n)
}

fn each(watch: &Stopwatch, n: usize) -> std::time::Duration {
    watch.elapsed() / n.max(1) as u32
}

fn check(found: Option<&[u8]>, expected: &str, character: &Character) -> Result<()> {
    if found == Some(expected.as_bytes()) {
        return Ok(());
    }
    Err(wrong("a character has not the value that was written", character.code.as_bytes()))
}

fn wrong(what: &str, key: &[u8]) -> Failure {
    Failure::failed(format!(
        "the demo read something wrong: {what} (key {})",
        bytes::shown(key, 40)
    ))
    .hint("this is a bug in Windrow; please report it")
}

fn scan(story: &mut Story, store: &Store, characters: &[Character]) -> Result<()> {
    story.chapter("Scan", "keys are in order: prefixes and ranges, both ways")?;
    story.say("names that begin with CAT:")?;
    let by_code =
        |code: &[u8]| characters.iter().find(|character| character.code.as_bytes() == code);
    for item in store.names.prefix("CAT").take(4) {
        let (name, code) = item?;
        let character = by_code(&code).ok_or_else(|| wrong("a name leads nowhere", &name))?;
        story.say(format_args!(
            "   {}  {}  {}",
            character.code,
            character.glyph(),
            character.name
        ))?;
    }
    let mut backwards = Vec::new();
    for item in store.counts.iter().rev().take(5) {
        let (category, count) = item?;
        let count = <[u8; 8]>::try_from(&*count)
            .map_err(|_| wrong("a count is not eight bytes", &category))?;
        backwards.push(format!(
            "{} {}",
            bytes::shown(&category, 2),
            human::count(i64::from_le_bytes(count) as u64)
        ));
    }
    story.say(format_args!("counts of categories, from the last: {}", backwards.join(", ")))?;
    check_counts(store, characters)?;
    let watch = Stopwatch::start();
    compare_all(store.db.iter(), characters.iter(), 0)?;
    let rate = human::per_second(characters.len() as u64, watch.elapsed());
    story.figure(human::count(rate), "pairs a second, over all forwards, each compared")?;
    let watch = Stopwatch::start();
    compare_all(store.db.iter().rev(), characters.iter().rev(), 0)?;
    let rate = human::per_second(characters.len() as u64, watch.elapsed());
    story.figure(human::count(rate), "pairs a second, over all backwards")
}

/// Compares every category's merged count with a count of the table.
fn check_counts(store: &Store, characters: &[Character]) -> Result<()> {
    let mut expected = std::collections::BTreeMap::new();
    for character in characters {
        *expected.entry(character.category).or_insert(0i64) += 1;
    }
    for (category, count) in expected {
        let found = store.counts.get(category)?;
        if found.as_deref() != Some(&count.to_le_bytes()[..]) {
            return Err(wrong("a count is not what its merges add up to", category.as_bytes()));
        }
    }
    Ok(())
}

/// Compares an iterator's entries with the characters, one by one, to the end of both.
fn compare_all<'a, S: std::ops::Deref<Target = [u8]>>(
    found: impl Iterator<Item = windrow::Result<(S, S)>>,
    mut expected: impl Iterator<Item = &'a Character>,
    round: u64,
) -> Result<()> {
    for item in found {
        let (key, value) = item?;
        let character = expected.next().ok_or_else(|| wrong("a key too many", &key))?;
        if *key != *character.code.as_bytes() {
            return Err(wrong("a key out of order", &key));
        }
        check(Some(&value), &character.value(round), character)?;
    }
    match expected.next() {
        Some(missing) => Err(wrong("a key is missing", missing.code.as_bytes())),
        None => Ok(()),
    }
}

fn overwrite(story: &mut Story, store: &Store, characters: &[Character]) -> Result<()> {
    story.chapter("Change", "under a snapshot, which sees nothing of it")?;
    let snapshot = store.db.snapshot();
    let total = ROUNDS * characters.len() as u64;
    let progress = Progress::steps(story.quiet, "   overwriting", total);
    let watch = Stopwatch::start();
    for round in 1..=ROUNDS {
        for (i, at) in shuffled(characters.len()).enumerate() {
            let character = &characters[at];
            store.db.put(character.code, character.value(round))?;
            if i.is_multiple_of(1024) {
                progress.at((round - 1) * characters.len() as u64 + i as u64);
                stop::check()?;
            }
        }
    }
    let written = watch.elapsed();
    drop(progress);
    story.figure(
        human::count(human::per_second(total, written)),
        &format!("puts a second: every value, in shuffled order, {ROUNDS} times"),
    )?;
    let watch = Stopwatch::start();
    store.db.delete_range(BRAILLE.0, BRAILLE.1)?;
    let deleted = watch.elapsed();
    let gone = characters.iter().filter(|character| character.in_braille()).count();
    story.figure(
        human::time(deleted),
        &format!("to delete {gone} Braille patterns, by one range tombstone"),
    )?;
    compare_all(snapshot.prefix(""), characters.iter(), 0)?;
    story.figure(
        human::count(characters.len() as u64),
        "characters in the snapshot, all as they were",
    )?;
    compare_all(store.db.iter(), survivors(characters), ROUNDS)?;
    story.figure(
        human::count(survivors(characters).count() as u64),
        "in the database now, all in their last revision",
    )
}

fn survivors(characters: &[Character]) -> impl Iterator<Item = &Character> {
    characters.iter().filter(|character| !character.in_braille())
}

/// Closes the database; in a chapter of its own if the demo goes on.
fn close(story: &mut Story, store: Store, goes_on: bool) -> Result<()> {
    if !goes_on {
        return Ok(store.db.close()?);
    }
    // The wait comes before the stopwatch: merges under way are not part of closing.
    let progress = Progress::waiting(story.quiet, "   merging");
    store.db.wait_idle()?;
    drop(progress);
    let watch = Stopwatch::start();
    store.db.close()?;
    story.chapter("Close and open again", "nothing may be lost")?;
    story.figure(human::time(watch.elapsed()), "to close")
}

fn reopen(story: &mut Story, path: &Path, characters: &[Character]) -> Result<Store> {
    let watch = Stopwatch::start();
    let store = Store::open(path)?;
    let opened = watch.elapsed();
    let told = story
        .figure(human::time(opened), "to open")
        .and_then(|()| compare_all(store.db.iter(), survivors(characters), ROUNDS))
        .and_then(|()| check_counts(&store, characters))
        .and_then(|()| story.figure("all", "as it was: every character, every count"));
    match told {
        Ok(()) => Ok(store),
        Err(failure) => {
            let _ = store.db.close();
            Err(failure)
        }
    }
}

fn verify(story: &mut Story, store: &Store) -> Result<()> {
    story.chapter("Verify", "every byte of every file is under a checksum")?;
    let progress = Progress::waiting(story.quiet, "   verifying");
    let watch = Stopwatch::start();
    let report = store.db.verify()?;
    let elapsed = watch.elapsed();
    drop(progress);
    let tables = human::plural(report.tables, "table");
    let bytes = human::size(report.bytes);
    report.into_result()?;
    story.figure(human::time(elapsed), &format!("to read and check {tables} of {bytes}: sound"))
}

fn draw(story: &mut Story, store: &Store) -> Result<()> {
    story.chapter("The tree", "files over the keys they hold: smallest left, largest right")?;
    for tree in picture::of(&store.db) {
        write!(story.out, "{}", picture::draw(&tree, human::columns(), story.paint))?;
    }
    Ok(())
}

/// Prints the figures. `writing` is of the first session: counters begin at zero with each open.
fn figures(story: &mut Story, store: &Store, writing: &Stats) -> Result<()> {
    story.chapter("The figures", "of the first session, which wrote")?;
    let tables: u64 = picture::of(&store.db).iter().map(picture::TreeView::bytes).sum();
    let merges: u64 = writing.levels.iter().skip(1).map(|level| level.merges).sum();
    let moves: u64 = writing.levels.iter().map(|level| level.moves).sum();
    let paused_us: u64 = writing.pauses.iter().map(|pause| pause.max_us).max().unwrap_or(0);
    story.figure(human::size(writing.user_bytes), "of keys and values written")?;
    story.figure(human::size(writing.wal_bytes), "to the write-ahead log")?;
    story.figure(
        format!("{:.2}", writing.write_amplification()),
        "bytes written to tables and log for each byte of these",
    )?;
    story.figure(human::count(writing.flushes), "flushes of a memtable")?;
    story.figure(human::count(merges), "merges")?;
    story.figure(human::count(moves), "files moved down a level without being rewritten")?;
    story.figure(
        human::time(std::time::Duration::from_micros(paused_us)),
        "was the longest wait of a writer",
    )?;
    story.figure(human::size(tables), "in tables now")
}

fn farewell(story: &mut Story, args: &DemoArgs, elapsed: std::time::Duration) -> Result<()> {
    writeln!(
        story.out,
        "\n{}",
        story.paint.bold(format!("Done in {}, everything as it should be.", human::time(elapsed)))
    )?;
    match &args.keep {
        Some(path) => {
            let db = path.display();
            writeln!(story.out, "Now try:  windrow scan {db} --keyspace names --prefix SNOW")?;
            writeln!(story.out, "          windrow tree {db} --files")?;
        }
        None => {
            writeln!(story.out, "Now try:  windrow demo --keep unicode.db   and then")?;
            writeln!(
                story.out,
                "          windrow scan unicode.db --keyspace names --prefix SNOW"
            )?;
        }
    }
    Ok(story.out.flush()?)
}
