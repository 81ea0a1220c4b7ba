//! Jumps of the wall clock, back and forth by hours and by years (P16): no unexpired entry is lost,
//! at whichever time flushes, merges and reopens happen; and no expired one is visible.
//!
//! The expiry of an entry is known within bounds. It was written at no earlier time than the clock
//! showed, and at no later one than the clock had ever shown: the database never judges by an
//! earlier time than before.

use std::collections::BTreeMap;
use std::time::Duration;
use windrow::{Db, Options};
use windrow_env::Clock;
use windrow_env::testing::Rng;
use windrow_testkit::sweep;
use windrow_testkit::variant::{Ground, POLICIES, Variant};
use windrow_testkit::world::World;

const STEPS: u64 = 300;
const KEYS: u64 = 40;
const HOUR_MS: u64 = 3_600_000;

/// A key's last write.
struct Written {
    value: String,
    /// Time to live; `None`: no expiry.
    ttl_ms: Option<u64>,
    /// The clock's time at the write.
    wall_ms: u64,
    /// The latest time that it had shown until then.
    latest_ms: u64,
    /// The latest time that it has shown since.
    since_ms: u64,
}

struct Case {
    world: World,
    options: Options,
    db: Option<Db>,
    written: BTreeMap<String, Written>,
    latest_ms: u64,
    /// The number of keys that were certain to be present, and to be absent.
    certain: (u64, u64),
}

impl Case {
    fn clock(&self) -> &windrow_env::testing::ManualClock {
        &self.world.handles().expect("a simulated world").clock
    }

    fn db(&self) -> &Db {
        self.db.as_ref().expect("open")
    }

    fn reopen(&mut self, close: bool) -> windrow_base::Result<()> {
        if let Some(db) = self.db.take() {
            if close {
                db.close()?;
            }
            drop(db);
            self.world.process_died();
        }
        self.options.components.env = Some(self.world.env());
        self.db = Some(Db::open_with(self.world.dir(), self.options.clone())?);
        Ok(())
    }

    /// Notes the time, which pacing moves too.
    fn tick(&mut self) {
        let now_ms = self.clock().wall_ms();
        self.latest_ms = self.latest_ms.max(now_ms);
        for written in self.written.values_mut() {
            written.since_ms = written.since_ms.max(now_ms);
        }
    }

    fn put(&mut self, rng: &mut Rng, step: u64) -> windrow_base::Result<()> {
        let key = format!("k{:02}", rng.below(KEYS));
        let value = format!("{step}-{}", "v".repeat(rng.below(400) as usize));
        let ttl_ms =
            [None, Some(1 + rng.below(48 * HOUR_MS)), Some(u64::MAX)][rng.below(3) as usize];
        let (wall_ms, latest_ms) = (self.clock().wall_ms(), self.latest_ms);
        match ttl_ms {
            None => self.db().put(&key, &value)?,
            Some(ms) => self.db().put_with_ttl(&key, &value, Duration::from_millis(ms))?,
        }
        let written = Written { value, ttl_ms, wall_ms, latest_ms, since_ms: wall_ms };
        self.written.insert(key, written);
        Ok(())
    }

    fn jump(&mut self, rng: &mut Rng) {
        let now_ms = self.clock().wall_ms();
        let by_ms = match rng.below(4) {
            0 => rng.below(1_000),
            1 | 2 => rng.below(24 * HOUR_MS),
            _ => rng.below(50 * 365 * 24 * HOUR_MS),
        };
        let back = rng.chance(0.55);
        let to_ms = if back { now_ms.saturating_sub(by_ms) } else { now_ms.saturating_add(by_ms) };
        self.clock().set_wall_ms(to_ms);
    }

    /// Reads every key, by itself and in a scan.
    fn check(&mut self) -> Result<(), String> {
        let seen = self.db().iter().map(|item| {
            let (key, value) = item.map_err(|e| e.to_string())?;
            Ok((key.to_vec(), value.to_vec()))
        });
        let seen: BTreeMap<Vec<u8>, Vec<u8>> = seen.collect::<Result<_, String>>()?;
        self.tick();
        let now_ms = self.clock().wall_ms();
        for (key, written) in &self.written {
            let got = self.db().get(key).map_err(|e| e.to_string())?;
            let value = Some(written.value.as_bytes());
            let expires_ms = |from_ms: u64| written.ttl_ms.map(|ttl| from_ms.saturating_add(ttl));
            let lives = expires_ms(written.wall_ms).is_none_or(|at| written.since_ms < at);
            let gone = expires_ms(written.latest_ms).is_some_and(|at| at <= now_ms);
            for got in [got.as_deref(), seen.get(key.as_bytes()).map(Vec::as_slice)] {
                if got.is_some() && got != value {
                    return Err(format!("{key} has an old value"));
                }
                if lives && got.is_none() {
                    return Err(format!(
                        "{key} is lost: it lives until {:?}",
                        expires_ms(written.wall_ms)
                    ));
                }
                if gone && got.is_some() {
                    return Err(format!("{key} is seen after it has expired"));
                }
            }
            self.certain.0 += u64::from(lives && written.ttl_ms.is_some());
            self.certain.1 += u64::from(gone);
        }
        Ok(())
    }

    fn step(&mut self, rng: &mut Rng, step: u64) -> Result<(), String> {
        self.tick();
        let done = match rng.below(20) {
            0..9 => self.put(rng, step),
            9..13 => {
                self.jump(rng);
                Ok(())
            }
            13 => self.db().flush(),
            14 => self.db().compact(),
            15 => self.db().wait_idle(),
            16 => self.db().set_policy(POLICIES[rng.below(POLICIES.len() as u64) as usize]),
            17 => self.reopen(true),
            18 => self.reopen(false),
            _ => return self.check(),
        };
        self.tick();
        done.map_err(|e| format!("step {step}: {e}"))
    }
}

fn run(seed: u64) -> Result<(u64, u64), String> {
    let mut rng = Rng::new(seed);
    let variants: Vec<&Variant> = Variant::simulated().collect();
    let variant = variants[rng.below(variants.len() as u64) as usize];
    let world = World::new(Ground::Simulated, seed);
    let options = variant.options().map_err(|e| e.to_string())?;
    let mut case =
        Case { world, options, db: None, written: BTreeMap::new(), latest_ms: 0, certain: (0, 0) };
    case.reopen(true).map_err(|e| e.to_string())?;
    for step in 0..STEPS {
        case.step(&mut rng, step)?;
    }
    case.check()?;
    Ok(case.certain)
}

#[test]
fn nothing_that_has_not_expired_is_lost() {
    let first = sweep::number("WINDROW_SEED", 0);
    let count = sweep::number("WINDROW_CASES", 150);
    let certain = sweep::run(first..first + count, run, |a, b| (a.0 + b.0, a.1 + b.1))
        .unwrap_or_else(|(seed, why)| panic!("WINDROW_SEED={seed} WINDROW_CASES=1: {why}"));
    let (lived, gone) = certain.unwrap_or_default();
    eprintln!("{lived} times a key had to be there, {gone} times it had to be gone");
    assert!(lived > 20 * count && gone > 20 * count, "too few certain answers");
}
