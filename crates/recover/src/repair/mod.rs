//! Repair: makes a database that can be opened from everything that can still be read.
//!
//! 1. The manifest is read, if it can be trusted. Without one, the tables and logs themselves show
//!    which keyspaces there are, and each one's tree is made of all its tables and all entries of
//!    the logs (`evidence.rs`, `rebuild.rs`). Tables of another database do not count
//!    (`identity.rs`).
//! 2. Each table is verified (`trees.rs`). A damaged one is replaced, in its place, by a table of
//!    its readable entries (`salvage.rs`; a file of the same level, within the same bounds, so no
//!    order between files changes).
//! 3. Logs are replayed up to their first damage or gap (`logs.rs`). Without a manifest nothing
//!    says which logs are needed, and one that power loss brought back may lie before a gap. There
//!    the replay goes on behind the gap where there is proof that the missing records were durable
//!    (`log/logs_at_rest.rs`, `Proof`).
//! 4. Damaged files, and logs that were not taken over whole, are linked into `lost/`
//!    (`originals.rs`).
//! 5. A new manifest is written and put in force. Then the names that it does not have are removed.
//!
//! Until the last step nothing is removed: a repair that dies leaves the database as it was, and
//! the next one begins again (`traces.rs`).
//!
//! Repair never invents data. Its limits: a tombstone in a damaged block is gone like any entry, so
//! a deleted key may be there again, and a key whose newest value is gone shows an older one.
//! Without a manifest, tables that were merged away but not yet unlinked count again, so deleted
//! keys and dropped keyspaces may come back too. The names and merge operators of keyspaces but the
//! default one are gone: such a keyspace is called by its id. The order of a keyspace without
//! tables is gone too: it becomes the bytewise one. Tables of an ingestion that was cut short count
//! then, and those of one that was finished count as written when it began: a write while it ran
//! wins over it.
//!
//! Owns: the order of these steps. Never does: one of them itself; the files of this folder do, on
//! a [`Site`], which never changes, and on [`Findings`], which grow.

mod evidence;
mod findings;
mod identity;
pub mod lineage;
mod logs;
mod manifest;
mod rebuild;
mod report;
mod salvage;
mod site;
mod trees;

pub use report::{DamagedLog, DamagedTable, LostRange, RepairReport};

use crate::close::close;
use crate::discovery::refuse_newer;
use crate::discovery::remains::refuse_foreign;
use crate::open::assemble::{Sharing, assemble};
use crate::open::replay::Replay;
use crate::open::start::start_writing;
use crate::repair::evidence::FileEvidence;
use crate::repair::findings::Findings;
use crate::repair::rebuild::Rebuild;
use crate::repair::site::Site;
use std::path::Path;
use std::sync::Arc;
use windrow_base::{Error, Result};
use windrow_env::fs::LockMode;
use windrow_format::names;
use windrow_plan::Policy;
use windrow_read::fork::refuse_forked;
use windrow_read::options::Options;
use windrow_store::host::database_directory::{DatabaseDirectory, enter};
use windrow_store::host::listing::Listing;
use windrow_store::host::readers::refuse_readers;

/// Makes the database in `dir` openable again, from what can be read of it.
///
/// Make a copy of the directory first if the data is precious.
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// # let dir = dir.path();
/// # windrow::Db::open(dir)?.put("a", "1")?;
/// // With the options, and above all the components, that the database is opened with.
/// let report = windrow::repair(dir, windrow::Options::default())?;
/// println!("{} tables kept, {} saved in part", report.tables_kept, report.tables_salvaged);
/// for table in report.tables.iter().filter(|table| table.lost_something()) {
///     println!("{} of {:?} lost {:?}", table.file, table.keyspace, table.lost);
/// }
/// assert!(!report.lost_something());
/// let db = windrow::Db::open(dir)?;
/// # Ok::<(), windrow::Error>(())
/// ```
///
/// # Errors
/// `Busy` if it is open, or another process follows it; `InvalidArgument` if there is no database, a
/// comparator of it is not registered, or the options are read-only;
/// `NotSupported` if a newer version wrote it; `Io`, `NoSpace`.
pub fn repair(dir: impl AsRef<Path>, options: Options) -> Result<RepairReport> {
    let dir = dir.as_ref();
    options.validate()?;
    if options.read_only {
        return Err(Error::invalid("a repair writes: ask for it without read_only"));
    }
    let env = options.components.env_or_os(&options.settings);
    refuse_forked(&env)?;
    if !env.fs.exists(dir)? {
        return Err(no_database(dir));
    }
    let (env, dir) = enter(&env, dir)?;
    let dir = dir.as_path();
    refuse_newer(&env, dir)?;
    refuse_foreign(&env, dir)?;
    if !Listing::read(&env, dir)?.holds_database() {
        return Err(no_database(dir));
    }
    let lock = env.fs.lock(&dir.join(names::LOCK), LockMode::Exclusive)?;
    refuse_readers(&env, dir)?;
    let place = DatabaseDirectory::new(&env, dir, &*lock);
    let site = Site::new(env, dir, &options)?;
    let mut findings = Findings::default();
    run(&site, &mut findings, place)?;
    Ok(RepairReport { originals: findings.originals.kept, ..findings.report })
}

fn no_database(dir: &Path) -> Error {
    Error::invalid(format!("there is no database in {}: check the path", dir.display()))
}

/// The steps of a repair, in their order.
fn run(site: &Site<'_>, findings: &mut Findings, place: Arc<DatabaseDirectory>) -> Result<()> {
    let (evidence, mut found) = match manifest::best(site, findings)? {
        Some(found) => (None, found),
        None => {
            let (evidence, found) = FileEvidence::gather(site, findings)?;
            (Some(evidence), found)
        }
    };
    // Without the operator nothing says which operands count twice.
    for operator in found.state.keyspaces.values().filter_map(|k| k.record.merge_operator.as_ref())
    {
        site.options.components.merge_operator(operator)?;
    }
    // Some of the writes that it has may be lost now.
    found.state.without_changes();
    // Also above the numbers of the files that were just removed (R8).
    let next = found.state.next_file.max(site.number_max + 1);
    found.state.next_file = next + 1;
    if !site.is_begun {
        crate::discovery::traces::leave(&site.env, site.dir, next)?;
    }
    let policy = Policy::parse(&site.options.settings.preset)?;
    let database = assemble(
        site.env.clone(),
        place,
        site.options,
        &site.listing,
        found,
        &policy,
        Sharing::Nothing,
    )?;
    let replayed = match evidence {
        Some(evidence) => Rebuild { site, findings, evidence, database: &database }.run()?,
        None => {
            trees::repair_all(site, findings, &database)?;
            let state = database.catalog.state();
            let logs = Replay::of_repair(&database, &state);
            logs::replay(site, findings, logs, &state, state.log_number)?.replayed
        }
    };
    findings.originals.link(&site.env, site.dir)?;
    // Open needs none of the old files: those that are not live are removed.
    let mut listing = Listing::read(&site.env, site.dir)?;
    findings.originals.spare(&mut listing);
    start_writing(&database, &listing, &replayed)?;
    // Even if moving them failed: nothing may run on without the lock.
    let moved = findings.originals.finish(&site.env, site.dir);
    let closed = close(&database);
    moved.and(closed)
}
