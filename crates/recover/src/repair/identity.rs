//! The identity of the database that is repaired, and the tables in its directory that belong to
//! another one.
//!
//! CURRENT has the database's uid, which is the same in its copies, and each table has the uid of
//! the database that it was made for. CURRENT counts where another file of the directory confirms
//! it: a table with that uid, or a manifest or log that knows the manifest that CURRENT names.
//! Otherwise the uid is that of most of the tables.
//!
//! Tables of earlier versions do not name their database, and count as this one's.
//!
//! Owns: that judgement. Never does: read an entry, or move a file.

use super::site::Site;
use crate::discovery::read_current;
use std::collections::BTreeMap;
use windrow_base::FileNumber;
use windrow_env::fs::ReadFileOptions;
use windrow_format::current::Current;
use windrow_format::log::{LogKind, LogReader};
use windrow_format::names;
use windrow_format::table::Properties;

/// The uid of the database that is repaired.
#[derive(Clone, Copy, Debug)]
pub(super) struct Identity {
    pub(super) uid: u64,
    /// Whether some tables have another uid, and only their numbers decide which is right.
    pub(super) is_assumed: bool,
}

impl Identity {
    /// The identity that follows from the files of a directory and the properties of its tables. It
    /// is drawn at random where none of them has one.
    pub(super) fn find<'p>(
        site: &Site<'_>,
        tables: impl Iterator<Item = (FileNumber, &'p Properties)>,
    ) -> Identity {
        // The number of tables with each uid, and the newest of them.
        let mut uids: BTreeMap<u64, (u64, FileNumber)> = BTreeMap::new();
        for (number, uid) in tables.filter_map(|(n, p)| Some((n, p.database_uid?))) {
            let (count, newest) = uids.entry(uid).or_default();
            (*count, *newest) = (*count + 1, (*newest).max(number));
        }
        let current = read_current(&site.env, site.dir).ok();
        let believed =
            current.as_ref().filter(|c| uids.contains_key(&c.database_uid) || is_known(site, c));
        if let Some(current) = believed {
            return Identity { uid: current.database_uid, is_assumed: false };
        }
        let of_most = uids.iter().max_by_key(|(_, of)| **of).map(|(uid, _)| *uid);
        let stated = current.map(|current| current.database_uid);
        let uid = of_most.or(stated).unwrap_or_else(|| site.env.random.next_u64());
        Identity { uid, is_assumed: uids.len() > 1 }
    }

    /// Whether a table was made for another database.
    pub(super) fn is_another(&self, table: &Properties) -> bool {
        table.database_uid.is_some_and(|uid| uid != self.uid)
    }
}

/// Whether the manifest that CURRENT names is in the directory, or a log that was made
/// while it was in force.
fn is_known(site: &Site<'_>, current: &Current) -> bool {
    let (number, uid) = (current.manifest_number, current.manifest_uid);
    let open = |name: String, kind| {
        let file = site.env.fs.open(&site.dir.join(name), ReadFileOptions::default()).ok()?;
        Some(LogReader::open(file, kind, None).ok()?.header().clone())
    };
    open(names::manifest(number), LogKind::Manifest).is_some_and(|header| header.uid == uid)
        || site.listing.wals.iter().any(|&wal| {
            open(names::wal(wal), LogKind::Wal).is_some_and(|header| {
                (header.manifest_number, header.manifest_uid) == (number, uid)
            })
        })
}
