//! Every input of the corpora through its target (P22), in bounded memory.
//! `REWRITE=1` makes the seeds again, which a change of a format needs.
//!
//! One test, alone in its program: it counts the memory of the whole program.

#![allow(clippy::disallowed_methods, reason = "the corpora lie in the source tree")]

use peak_alloc::PeakAlloc;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use windrow_env::testing::Rng;
use windrow_sim::fuzz::archive::{Archive, REPAIR};
use windrow_sim::fuzz::{TARGETS, Target, extremes, seeds, target};

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

/// Damaged copies of each seed, which test the recomputed checksums without a fuzzer.
const DAMAGES: u64 = 20;

fn inputs(target: &Target) -> Vec<(PathBuf, Vec<u8>)> {
    let entries = fs::read_dir(target.corpus()).expect("a corpus");
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    paths.into_iter().map(|path| (path.clone(), fs::read(path).expect("an input"))).collect()
}

fn rewrite_seeds() {
    for target in TARGETS {
        fs::create_dir_all(target.corpus()).expect("a directory");
        for (path, _) in inputs(target) {
            if is_seed(&path) {
                fs::remove_file(path).expect("an old seed goes");
            }
        }
    }
    for (name, file, bytes) in seeds::all().expect("seeds") {
        let target = target(name).expect("a target");
        if bytes.len() <= target.input_bytes_max {
            fs::write(target.corpus().join(file), bytes).expect("a seed");
        }
    }
}

fn is_seed(path: &Path) -> bool {
    begins(path, "seed-")
}

/// Whether an input is sound: the seeds are, and so are those that an earlier version of the format
/// made, which stay unchanged.
fn is_sound(path: &Path) -> bool {
    is_seed(path) || begins(path, "format-")
}

fn begins(path: &Path, with: &str) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(with))
}

#[test]
fn every_input_is_answered_in_bounded_memory() {
    if std::env::var_os("REWRITE").is_some() {
        rewrite_seeds();
    }
    for target in TARGETS {
        let inputs = inputs(target);
        let mut accepted = 0;
        for (path, input) in &inputs {
            let run = catch_unwind(AssertUnwindSafe(|| target.check(input, &MEMORY)));
            let whole = run.unwrap_or_else(|_| panic!("{}", path.display()));
            assert!(whole || !is_sound(path), "a seed that is refused: {}", path.display());
            accepted += u64::from(whole);
        }
        assert!(accepted > 0, "{}: a corpus that never gets past the checks", target.name);
        let (runs, reached) = damaged(target, &inputs);
        eprintln!("{}: {} inputs, {reached} of {runs} damaged", target.name, inputs.len());
    }
    numbers_at_their_ends();
    meter_counts();
}

/// Sets every number of a manifest to every limit: the database opens or is refused.
fn numbers_at_their_ends() {
    let target = target("directory").expect("a target");
    let seed = fs::read(target.corpus().join("seed-windrow-closed")).expect("a seed");
    for repaired in [false, true] {
        let mut archive = Archive::parse(&seed);
        archive.flags = if repaired { REPAIR } else { archive.flags };
        let inputs = extremes::of(&archive).expect("a manifest");
        let mut accepted = 0;
        for (what, input) in &inputs {
            let run = catch_unwind(AssertUnwindSafe(|| target.check(input, &MEMORY)));
            accepted += usize::from(run.unwrap_or_else(|_| panic!("{what}")));
        }
        eprintln!("numbers: {accepted} of {} accepted", inputs.len());
        assert!(0 < accepted && accepted < inputs.len(), "neither all nor none are sound");
    }
}

/// Runs seeds with randomly changed bytes. Returns the number of runs, and of accepted inputs.
fn damaged(target: &Target, inputs: &[(PathBuf, Vec<u8>)]) -> (u64, u64) {
    let mut rng = Rng::new(1);
    let (mut runs, mut accepted) = (0, 0);
    for (path, input) in inputs.iter().filter(|(path, _)| is_sound(path)) {
        for _ in 0..DAMAGES {
            let mut bytes = input.clone();
            for _ in 0..1 + rng.below(3) {
                let at = rng.below(bytes.len() as u64) as usize;
                bytes[at] ^= 1 << rng.below(8);
            }
            let run = catch_unwind(AssertUnwindSafe(|| target.check(&bytes, &MEMORY)));
            accepted += u64::from(run.unwrap_or_else(|_| panic!("damaged {}", path.display())));
            runs += 1;
        }
    }
    (runs, accepted)
}

/// A reader that allocates as much as the input says must be caught.
fn meter_counts() {
    let greedy = Target {
        name: "greedy",
        input_bytes_max: 8,
        memory: (16, 1 << 10),
        run: |input| std::hint::black_box(vec![1u8; usize::from(input[0]) << 10]).len() > 1,
    };
    assert!(greedy.check(&[1], &MEMORY), "1 KiB and a little are allowed");
    let caught = catch_unwind(|| greedy.check(&[200], &MEMORY));
    assert!(caught.is_err(), "200 KiB for one byte must not pass");
}
