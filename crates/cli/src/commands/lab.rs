//! `lab`: policies on a simulated tree.
//!
//! Owns: the output, as a table or as JSON. The figures are the lab's. Ctrl-C ends it as it ends
//! any program: there is nothing to close. Never does: open a database.

use crate::args::LabArgs;
use crate::failure::{Failure, Result};
use serde_json::{Value, json};
use std::io::{self, Write};
use windrow::Error;
use windrow_dashboard::{Film, Shot};
use windrow_lab::evidence::{self, Compared, Page};
use windrow_lab::play::{PlayedStep, play};
use windrow_lab::setup::{LOAD, UNIT_KEYS};
use windrow_lab::strip::Strip;
use windrow_lab::{Figures, Setup, Workload, ablation, fit, reads, report, search, simulate};

/// The presets that are simulated if no policies are named.
const POLICIES: [&str; 6] = ["leveled", "autumn", "l2sm", "vlsm", "mnemosyne", "windrow"];

/// Explains the columns of the table of policies.
const LEGEND: &str = "
write amp.: keys written to tables for each update, and by flushes and each level. runs: sorted runs
of the whole tree. probes: files over a key, which a get of an absent key asks. chain: units (files
of 8 MB) of work from one job on level 0 until all levels are within their limits, at the median,
the worst hundredth and the worst; largest job: its largest merge. work per flush: until nothing is
due, and how uneven that is. space: keys in tables for each distinct key. More: docs/lab.md.
";

pub(crate) fn run(args: &LabArgs, quiet: bool) -> Result<()> {
    if args.html {
        return page(args);
    }
    if let Some(name) = &args.paper {
        return strip(name);
    }
    let (text, json) = match args {
        LabArgs { table: true, .. } => design_table(args)?,
        LabArgs { fit: true, .. } => fit_table(args)?,
        LabArgs { reads: true, .. } => reads_tables(args)?,
        LabArgs { search: true, .. } => search_table(args)?,
        LabArgs { ablation: true, .. } => ablation_tables(args)?,
        _ => policies(args)?,
    };
    let mut out = io::stdout().lock();
    match args.json {
        true => writeln!(out, "{json:#}")?,
        false => {
            write!(out, "{text}")?;
            let is_table = args.table || args.fit || args.reads || args.search || args.ablation;
            if !is_table && !quiet {
                write!(out, "{LEGEND}")?;
            }
        }
    }
    Ok(out.flush()?)
}

/// Draws a paper's policy and the default at work.
fn strip(name: &str) -> Result<()> {
    let strip = Strip::named(name).map_err(|error| Failure::usage(error.message()))?;
    let svg = strip.svg().map_err(|error| told(name, &error))?;
    let mut out = io::stdout().lock();
    out.write_all(svg.as_bytes())?;
    Ok(out.flush()?)
}

/// Plays the first two policies step by step: at each flush they have had the same updates.
fn page(args: &LabArgs) -> Result<()> {
    let mut played = Vec::new();
    for (name, setup) in setups(args)?.into_iter().take(2) {
        let steps = play(&setup, args.flushes as usize).map_err(|error| told(&name, &error))?;
        played.push((name, setup.policy.to_string(), steps));
    }
    let mut film = Film::default();
    for flush in 0..args.flushes as usize {
        let of_flush = |steps: &[PlayedStep]| {
            let begin = steps.partition_point(|step| step.flush < flush);
            begin..steps.partition_point(|step| step.flush <= flush)
        };
        let counts = played.iter().map(|(_, _, steps)| of_flush(steps).len());
        // The policy with fewer steps waits for the other.
        for step in 0..counts.max().unwrap_or(0) {
            let shots = played.iter().map(|(name, policy, steps)| {
                let of_flush = of_flush(steps);
                let at = (of_flush.start + step).min(of_flush.end.saturating_sub(1));
                Shot { name, policy, text: &steps[at].text, tree: &steps[at].tree }
            });
            let shots: Vec<Shot<'_>> = shots.collect();
            film.add(&format!("flush {}", flush + 1), &shots);
        }
    }
    let mut state =
        json!({ "path": "windrow lab", "status": "a simulation of bare keys", "is_lab": true });
    film.put_into(&mut state);
    let mut out = io::stdout().lock();
    out.write_all(windrow_dashboard::page::of(&state).as_bytes())?;
    Ok(out.flush()?)
}

fn policies(args: &LabArgs) -> Result<(String, Value)> {
    let mut rows = Vec::new();
    let mut values = Vec::new();
    for (name, setup) in setups(args)? {
        let figures = simulate(&setup).map_err(|error| told(&name, &error))?;
        values.push(json!({
            "policy": name,
            "policy_in_full": setup.policy.to_string(),
            "memtable": setup.sizes.memtable,
            "file": setup.sizes.file,
            "base": setup.sizes.base,
            "overlap": setup.sizes.overlap,
            "keys": setup.keys,
            "unit_keys": setup.unit_keys,
            "workload": setup.workload.name(),
            "load": args.load,
            "rounds": setup.rounds,
            "seed": setup.seed,
            "figures": figures_json(&figures),
        }));
        rows.push((name, figures));
    }
    Ok((report::table(&rows), Value::Array(values)))
}

/// Returns the set-ups that were asked for; all are parsed before any is simulated.
fn setups(args: &LabArgs) -> Result<Vec<(String, Setup)>> {
    let texts: Vec<String> = match args.policies.as_slice() {
        [] => POLICIES.map(String::from).to_vec(),
        named => named.to_vec(),
    };
    let workload = workload(args)?.unwrap_or(Workload::Uniform);
    if !(args.rounds > 0.0 && args.rounds <= 1e6) {
        return Err(Failure::usage("--rounds must be above 0"));
    }
    texts
        .into_iter()
        .map(|text| {
            let mut words = text.clone();
            for (name, units) in
                [("memtable", args.memtable), ("file", args.file), ("base", args.base)]
            {
                if let Some(units) = units {
                    words += &format!(" {name}={units}");
                }
            }
            let setup = Setup::parse(&words).map_err(|e| Failure::usage(e.message()))?;
            let setup = Setup {
                keys: args.keys,
                unit_keys: unit_keys(args),
                workload,
                seed: args.seed,
                rounds: args.rounds,
                warm_rounds: if args.load { LOAD } else { setup.warm_rounds },
                ..setup
            };
            Ok((text, setup))
        })
        .collect()
}

fn design_table(args: &LabArgs) -> Result<(String, Value)> {
    let mut rows = Vec::new();
    for row in evidence::ROWS {
        let compared = row.compare(args.seed, args.rounds);
        rows.push(compared.map_err(|error| told(row.name, &error))?);
    }
    let values = rows.iter().map(compared_json).collect();
    Ok((evidence::table(&rows), Value::Array(values)))
}

fn fit_table(args: &LabArgs) -> Result<(String, Value)> {
    let mut rows = Vec::new();
    for workload in Workload::ALL {
        for memtables in fit::MEMTABLES {
            let row = fit::row(workload, memtables, unit_keys(args), args.seed);
            rows.push(row.map_err(|error| told(workload.name(), &error))?);
        }
    }
    let of = |row: &fit::FitRow| {
        let figures = fit::POLICIES.iter().zip(&row.figures);
        let figures =
            figures.map(|(name, f)| json!({ "policy": name, "figures": figures_json(f) }));
        json!({
            "workload": row.workload.name(),
            "memtables": row.memtables,
            "policies": figures.collect::<Vec<_>>(),
        })
    };
    Ok((fit::table(&rows), rows.iter().map(of).collect()))
}

/// Returns the tables of trees that are read and no longer written, and of a mix that shifts.
fn reads_tables(args: &LabArgs) -> Result<(String, Value)> {
    let (mut drained, mut values) = (Vec::new(), Vec::new());
    for workload in [Workload::Uniform, Workload::Zipf] {
        for memtables in [6, 24, 100] {
            let name = format!("{}, {memtables}x", workload.name());
            let setup = fit::setup("windrow", workload, memtables, unit_keys(args));
            let setup = setup.map_err(|error| told(&name, &error))?;
            let rows = reads::drain(&Setup { seed: args.seed, ..setup });
            let rows = rows.map_err(|error| told(&name, &error))?;
            values.push(json!({
                "workload": workload.name(),
                "memtables": memtables,
                "paid": rows.iter().map(|d| d.paid).collect::<Vec<_>>(),
                "files": rows.iter().map(|d| d.files).collect::<Vec<_>>(),
                "rewritten": rows.iter().map(|d| d.rewritten).collect::<Vec<_>>(),
            }));
            drained.push((name, rows));
        }
    }
    let mut shifted = Vec::new();
    for name in reads::USES {
        let setup = fit::setup(name, Workload::Uniform, 24, unit_keys(args));
        let figures = setup
            .and_then(|setup| reads::shift(&Setup { seed: args.seed, ..setup }, &reads::STRETCHES));
        let figures = figures.map_err(|error| told(name, &error))?;
        values.push(json!({
            "policy": name,
            "stretches": figures.iter().map(figures_json).collect::<Vec<_>>(),
        }));
        shifted.push((name, figures));
    }
    let text = format!("{}\n{}", reads::drain_table(&drained), reads::shift_table(&shifted));
    Ok((text, Value::Array(values)))
}

fn search_table(args: &LabArgs) -> Result<(String, Value)> {
    let sizes = match args.memtables.as_slice() {
        [] => search::MEMTABLES.to_vec(),
        named => named.to_vec(),
    };
    let workloads = workload(args)?.map_or(Workload::ALL.to_vec(), |workload| vec![workload]);
    let unit_keys = args.unit_keys.unwrap_or(search::UNIT_KEYS);
    let plan = search::Plan { unit_keys, seed: args.seed, all: args.all };
    let mut rows = Vec::new();
    for workload in workloads {
        for &memtables in &sizes {
            let row = search::row(workload, memtables, plan);
            rows.push(row.map_err(|error| told(workload.name(), &error))?);
        }
    }
    let of = |row: &search::SearchRow| {
        json!({
            "workload": row.workload.name(),
            "memtables": row.memtables,
            "preset": figures_json(&row.preset),
            "best": row.best.as_ref().map(|(_, figures)| figures_json(figures)),
            "best_policy": row.best.as_ref().map(|(policy, _)| policy),
            "ratio": row.ratio(),
            "simulated": row.simulated,
        })
    };
    Ok((search::table(&rows), rows.iter().map(of).collect()))
}

/// Returns the worth of each design of the default policy, by workload.
fn ablation_tables(args: &LabArgs) -> Result<(String, Value)> {
    let workloads = workload(args)?.map_or(Workload::ALL.to_vec(), |workload| vec![workload]);
    let (mut tables, mut values) = (Vec::new(), Vec::new());
    for workload in workloads {
        let cells = ablation::cells(workload, unit_keys(args), args.seed);
        let cells = cells.map_err(|error| told(workload.name(), &error))?;
        values.extend(cells.iter().map(|cell| {
            json!({
                "workload": workload.name(),
                "memtables": cell.memtables,
                "case": cell.case.name,
                "policy": cell.case.policy,
                "figures": figures_json(&cell.figures),
            })
        }));
        tables.push(ablation::table(&cells));
    }
    Ok((tables.join("\n"), Value::Array(values)))
}

/// Returns the keys of a unit; a search has its own.
fn unit_keys(args: &LabArgs) -> u32 {
    args.unit_keys.unwrap_or(UNIT_KEYS)
}

/// Returns the workload that was asked for.
fn workload(args: &LabArgs) -> Result<Option<Workload>> {
    let parse = |name: &String| Workload::parse(name).map_err(|e| Failure::usage(e.message()));
    args.workload.as_ref().map(parse).transpose()
}

fn told(name: &str, error: &Error) -> Failure {
    Failure::failed(format!("{name}: {}", error.message()))
}

fn figures_json(f: &Figures) -> Value {
    json!({
        "write_amplification": f.write_amplification,
        "write_by_level": f.write_by_level,
        "runs": f.runs,
        "probes_mean": f.probes_mean,
        "probes_max": f.probes_max,
        "chain_p50_units": f.chain_p50,
        "chain_p99_units": f.chain_p99,
        "chain_max_units": f.chain_max,
        "job_p99_units": f.job_p99,
        "job_mean_units": f.job_mean,
        "job_max_units": f.job_max,
        "work_mean_units": f.work_mean,
        "work_p99_over_mean": f.work_p99_over_mean,
        "space_mean": f.space_mean,
        "space_max": f.space_max,
        "levels": f.levels,
        "merges_per_flush": f.merges_per_flush,
        "moves_per_flush": f.moves_per_flush,
        "tables_per_flush": f.tables_per_flush,
        "tables_mean": f.tables_mean,
    })
}

fn page_json(page: &Page) -> Value {
    json!({
        "write_amplification": page.write,
        "write_by_level": page.write_by_level,
        "chain_p50_units": page.chain_p50,
        "chain_p99_units": page.chain_p99,
        "chain_max_units": page.chain_max,
        "job_p99_units": page.job_p99,
        "work_p99_over_mean": page.work_p99_over_mean,
    })
}

fn compared_json(compared: &Compared) -> Value {
    json!({
        "design": compared.row.name,
        "policy": compared.row.setup,
        "workload": compared.row.workload.name(),
        "figures": figures_json(&compared.figures),
        "page": page_json(&compared.row.page),
    })
}
