//! A unit of a run in a process of its own: some phases of one workload on
//! one contender's store.
//!
//! Owns: opening the store, the measurements around each phase, the lines on stdout. Never does:
//! repeat or compare (`runner.rs` does).

mod backups;
mod consumers;
mod disk;
mod estimates;
mod evict;
mod measure;
mod phase;
#[cfg(test)]
mod tests;
mod unit;

pub(crate) use unit::{Setup, Unit};

use crate::dataset::Dataset;
use crate::process::Stopwatch;
use crate::store::{self, Common, Engine, Result, Store};
use crate::workload::{self, Contender, Order, Scale, Workload};
use crate::{output, process, record};
use backups::UnitBackups;
use phase::{State, Work};
use windrow::Db;

/// Returns a contender's engine.
pub(crate) fn engine_of(
    engines: &[Engine],
    contender: &Contender,
) -> std::result::Result<Engine, String> {
    let (name, variant) = (contender.engine.as_str(), contender.variant());
    let engine = engines.iter().find(|engine| engine.name == name).ok_or_else(|| {
        let names: Vec<&str> = engines.iter().map(|engine| engine.name).collect();
        format!("`{name}` is not an engine of this program; they are {}", names.join(", "))
    })?;
    let is_known = engine.variants.is_empty() || engine.variants.contains(&variant);
    match variant.is_empty() || is_known {
        true => Ok(*engine),
        false => Err(format!(
            "`{variant}` is not a variant of {name}; they are {}",
            engine.variants.join(", ")
        )),
    }
}

/// Runs a unit and prints a line for each measured phase.
pub(crate) fn run(engines: &[Engine], unit: &Unit) -> Result<()> {
    for line in lines(engines, unit)? {
        output::print(format_args!("{}\n", serde_json::to_string(&line)?))?;
    }
    Ok(())
}

/// Runs a unit and returns a line for each measured phase.
fn lines(engines: &[Engine], unit: &Unit) -> Result<Vec<record::PhaseLine>> {
    let scale = Scale::named(&unit.scale).ok_or("no such scale")?;
    let workloads = workload::parse(&unit.file, &unit.text, scale)?;
    let workload = workloads.iter().find(|workload| workload.name == unit.workload);
    let workload = workload.ok_or_else(|| format!("no workload `{}`", unit.workload))?;
    let own = workload.contenders.iter().find(|own| own.name == unit.contender);
    let contender = own.cloned().unwrap_or_else(|| Contender::named(&unit.contender));
    let engine = engine_of(engines, &contender)?;
    let common = unit.setup.common(workload, &contender);
    let mut run = UnitRun::open(unit, workload, engine, common)?;
    let mut lines = Vec::new();
    for index in unit.phases.0..unit.phases.1 {
        lines.extend(run.phase(index)?);
    }
    match workload.phases[..unit.phases.1].last() {
        // No destructor closes, flushes or syncs anything of it.
        Some(last) if last.killed => std::mem::forget(run),
        _ => run.finish(&mut lines)?,
    }
    Ok(lines)
}

/// An open store with the state that a phase hands on to the next.
struct UnitRun<'a> {
    unit: &'a Unit,
    workload: &'a Workload,
    engine: Engine,
    common: Common,
    data: Dataset,
    /// Windrow's own handle of `store`, for a phase that looks into its tables, backs it up, or
    /// consumes its changes.
    windrow: Option<Db>,
    backups: Option<UnitBackups>,
    store: Option<Box<dyn Store>>,
    state: State,
    open_ms: Option<f64>,
    has_written: bool,
}

impl<'a> UnitRun<'a> {
    fn open(
        unit: &'a Unit,
        workload: &'a Workload,
        engine: Engine,
        common: Common,
    ) -> Result<UnitRun<'a>> {
        let (shape, records) = (&workload.data, workload.data.records);
        let later: u64 = workload.phases.iter().map(|p| p.ops.unwrap_or(records)).sum();
        // Among ranked records none is inserted.
        let capacity = if shape.order == Order::Ranked { records } else { records + later };
        let data =
            Dataset::new(unit.seed, shape.order, shape.key_bytes, shape.value_bytes, capacity);
        if workload.needs_windrow() && engine.name != "windrow" {
            let what = "only Windrow is looked into, backed up and consumed";
            return Err(format!("{}: {what}", engine.name).into());
        }
        let is_new = process::disk_bytes(&unit.dir) == 0;
        let backups = workload.backs_up().then(|| UnitBackups::new(&unit.dir)).transpose()?;
        let mut run = UnitRun {
            unit,
            workload,
            engine,
            common,
            data,
            windrow: None,
            backups,
            store: None,
            state: match unit.phases.0 {
                0 => State::default(),
                _ => State::loaded(records, unit.round),
            },
            open_ms: None,
            has_written: false,
        };
        run.reopen()?;
        run.open_ms = run.open_ms.filter(|_| !is_new);
        Ok(run)
    }

    /// Closes the store if it is open, and opens it.
    fn reopen(&mut self) -> Result<()> {
        drop(self.windrow.take());
        if let Some(store) = self.store.take() {
            store.close()?;
        }
        let mut watch = Stopwatch::start();
        self.store = Some(if self.workload.needs_windrow() {
            let db = Db::open_with(&self.unit.dir, store::windrow::options(&self.common)?)?;
            self.windrow = Some(db.clone());
            store::windrow::over(db, self.common.spaces)?
        } else {
            (self.engine.open)(&self.unit.dir, &self.common)?
        });
        self.open_ms = Some(watch.lap().as_secs_f64() * 1000.0);
        Ok(())
    }

    fn store(&self) -> Result<&dyn Store> {
        self.store.as_deref().ok_or_else(|| "the store is closed".into())
    }

    /// Runs one phase; returns its line if it is measured.
    fn phase(&mut self, index: usize) -> Result<Option<record::PhaseLine>> {
        let phase = &self.workload.phases[index];
        if phase.reopen {
            self.reopen()?;
        }
        let work = Work {
            unit: self.unit,
            workload: self.workload,
            phase,
            abilities: self.engine.abilities,
            direct_io: self.common.direct_io,
            store: self.store()?,
            windrow: self.windrow.as_ref(),
            backups: self.backups.as_ref(),
            data: &self.data,
            before: self.state,
        };
        let (mut line, state) = work.run()?;
        self.state = state;
        self.has_written |= !phase.is_read_only();
        if let Some(open_ms) = self.open_ms.take() {
            line.figures.insert("open_ms".to_owned(), open_ms);
        }
        Ok((!phase.prepare).then_some(line))
    }

    /// Takes the checksum of the contents, and closes the store.
    fn finish(mut self, lines: &mut [record::PhaseLine]) -> Result<()> {
        if self.unit.setup.verbose {
            output::note(format_args!(
                "--- {}\n{}",
                self.unit.contender,
                self.store()?.statistics()
            ));
        }
        // The read goes through the page cache, however the phases were measured: its time does not
        // count.
        self.common.direct_io = false;
        if let (true, Some(last)) = (self.has_written && !self.workload.expires(), lines.last_mut())
        {
            self.reopen()?;
            last.contents = Some(contents(self.store()?, self.common.spaces)?);
        }
        drop(self.windrow.take());
        self.store.take().map_or(Ok(()), Store::close)
    }
}

/// Returns a checksum of all keys and values.
fn contents(store: &dyn Store, spaces: u32) -> Result<String> {
    let mut sum = 0u64;
    let mut count = 0;
    for space in 0..spaces {
        count += store.scan(space, &[], u64::MAX, &mut |key, value| {
            let key = xxhash_rust::xxh3::xxh3_64_with_seed(key, u64::from(space));
            sum = sum.wrapping_add(xxhash_rust::xxh3::xxh3_64_with_seed(value, key));
        })?;
    }
    Ok(format!("{sum:016x}-{count}"))
}
