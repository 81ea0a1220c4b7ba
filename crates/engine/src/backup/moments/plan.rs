//! The plan of a restore to a moment: the backup that it begins with, and the changes behind it.
//!
//! All changes up to the moment are read before anything is written: so what is not possible is said
//! at once, and what would be possible instead.
//!
//! Owns: the choice of the backup, and of the keyspaces. Never does: write a file.

use super::super::change_part::{self, Item, PartBatch};
use super::super::kept::{backup_numbers, existing, read_record};
use super::super::log_part;
use super::super::names;
use super::super::record::Contents;
use super::super::sum::Sum;
use super::super::target::BackupTarget;
use super::reached::{Found, Moment, Reached};
use std::collections::{BTreeMap, BTreeSet};
use windrow_base::{Error, FileNumber, KeyspaceId, Result, SeqNo};
use windrow_store::manifest::record::{DroppedKeyspace, Field, KeyspaceRecord, ManifestRecord};

/// A restore that is possible.
pub(in super::super) struct RestorePlan {
    /// The backup that it begins with.
    pub(in super::super) base: Contents,
    /// Its manifest, with the keyspaces of the moment.
    pub(in super::super) manifest: ManifestRecord,
    /// The sequence number of the moment.
    pub(in super::super) seq: SeqNo,
    /// Batches behind the backup.
    pub(in super::super) batches: u64,
    base_seq: SeqNo,
    parts: Vec<ChangesPart>,
}

/// A part of changes in a target.
struct ChangesPart {
    name: String,
    sum: Sum,
}

/// The backups behind the one that a restore begins with, each with the changes since the one before.
struct BackupChain {
    links: Vec<Contents>,
}

/// The changes up to a moment, and the parts that they are in.
struct ChangesRead {
    parts: Vec<ChangesPart>,
    found: Found,
    /// The sequence number of the moment, and the number of batches up to there, if the changes go on
    /// to it.
    reached: Option<(SeqNo, u64)>,
}

impl RestorePlan {
    /// Plans a restore to a moment, from a given backup on, or from the last one before it.
    ///
    /// # Errors
    /// `InvalidArgument` where the target has no such moment: the message says which it has;
    /// `Corruption` that names the damaged object; errors of the target.
    pub(in super::super) fn of(
        target: &dyn BackupTarget,
        to: Moment,
        from: Option<u64>,
    ) -> Result<RestorePlan> {
        let records = Records::of(target)?;
        let base = match from {
            Some(number) => existing(target, Some(number))?,
            None => records.base(target, to)?,
        };
        let base_seq = seq_of(target, &base)?;
        check_before(&base, base_seq, to)?;
        let chain = records.chain(base.number);
        let ChangesRead { parts, found, reached } = chain.read(target, to, base_seq)?;
        let Some((seq, batches)) = reached else {
            return Err(chain.too_short(&base, to, base_seq, &found));
        };
        let gone = chain.gone(seq);
        chain.check_ingestions(&base, &found, seq, &gone)?;
        let manifest = chain.manifest(&base, &found, seq, &gone)?;
        Ok(RestorePlan { base, manifest, seq, batches, base_seq, parts })
    }

    /// The tables that the moment needs.
    pub(in super::super) fn tables(&self) -> BTreeSet<FileNumber> {
        let edits = self.manifest.0.iter().filter_map(|field| match field {
            Field::KeyspaceEdit(_, edit) => Some(edit),
            _ => None,
        });
        edits.flat_map(|edit| edit.added.iter().map(|(_, _, file)| file.number)).collect()
    }

    /// Hands over the batches behind the backup.
    ///
    /// # Errors
    /// `Corruption` that names the damaged object; errors of the target, and of `to`.
    pub(in super::super) fn batches(
        &self,
        target: &dyn BackupTarget,
        to: &mut dyn FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        let mut next_seq = self.base_seq + 1;
        for ChangesPart { name, sum } in &self.parts {
            change_part::read(target, name, *sum, &mut |item| {
                let Item::Batch(batch) = item else { return Ok(true) };
                if self.seq < batch.last_seq {
                    return Ok(false);
                }
                if next_seq <= batch.first_seq {
                    to(batch.payload)?;
                    next_seq = batch.last_seq + 1;
                }
                Ok(true)
            })?;
        }
        match next_seq {
            next if next == self.seq + 1 => Ok(()),
            next => Err(Error::corruption(format!(
                "the changes end at sequence number {}, where {} was read before",
                next - 1,
                self.seq
            ))),
        }
    }
}

/// The records of a target that can be read, by number.
struct Records(BTreeMap<u64, Contents>);

impl Records {
    fn of(target: &dyn BackupTarget) -> Result<Records> {
        let mut records = BTreeMap::new();
        for number in backup_numbers(target)? {
            match read_record(target, number) {
                Ok(contents) => drop(records.insert(number, contents)),
                // The others may do.
                Err(error) if error.is_corruption() => {}
                Err(error) => return Err(error),
            }
        }
        Ok(Records(records))
    }

    /// The newest backup at or before a moment.
    fn base(&self, target: &dyn BackupTarget, to: Moment) -> Result<Contents> {
        for contents in self.0.values().rev() {
            let is_before = match to {
                // A drop behind this number belongs to the backup, and not to the moment.
                Moment::Seq(seq) if drops_at(contents, seq) => false,
                Moment::Seq(seq) => seq_of(target, contents)? <= seq,
                Moment::Time(ms) => contents.made_ms <= ms,
            };
            if is_before {
                return Ok(contents.clone());
            }
        }
        Err(match self.0.first_key_value() {
            None => Error::invalid("there is no backup here that can be read"),
            Some((number, first)) => Error::invalid(format!(
                "the first backup, {number}, is of a later moment (sequence number {}, made at {} ms since \
                 1970)",
                seq_of(target, first)?,
                first.made_ms
            )),
        })
    }

    /// The backups that go on from one, each from the one before.
    fn chain(mut self, number: u64) -> BackupChain {
        let (mut links, mut last) = (Vec::new(), number);
        let mut later = self.0.split_off(&(number + 1));
        while let Some((next, contents)) = later.pop_first() {
            if contents.changes().is_some_and(|changes| changes.since == last) {
                last = next;
                links.push(contents);
            }
        }
        BackupChain { links }
    }
}

impl BackupChain {
    /// Reads the changes up to a moment.
    fn read(&self, target: &dyn BackupTarget, to: Moment, base_seq: SeqNo) -> Result<ChangesRead> {
        let mut found = Found { read_seq: base_seq, ..Found::default() };
        let (mut parts, mut moment) = (Vec::new(), Reached::new(to, base_seq));
        for link in &self.links {
            let changes = link.changes().expect("a link has changes");
            for (at, part) in changes.parts.iter().enumerate() {
                if moment.is_over(found.read_seq) {
                    break;
                }
                let name = names::change_part(link.number, at);
                change_part::read(target, &name, part.sum, &mut |item| {
                    moment.take(item, &mut found)
                })
                .map_err(|error| error.with_file(&*name))?;
                parts.push(ChangesPart { name, sum: part.sum });
            }
            let is_whole = found.read_seq == seq_of(target, link)?;
            if moment.is_over(found.read_seq) || !is_whole {
                break;
            }
        }
        let last = self.links.last().filter(|last| last.seq() == Some(found.read_seq));
        let reached = moment.end(last.map(|last| last.made_ms), &found);
        Ok(ChangesRead { parts, found, reached })
    }

    /// The error of changes that end before a moment.
    fn too_short(&self, base: &Contents, to: Moment, base_seq: SeqNo, found: &Found) -> Error {
        let asked = match to {
            Moment::Seq(seq) => format!("sequence number {seq}"),
            Moment::Time(ms) => format!("{ms} ms since 1970"),
        };
        let has = match found.read_seq {
            read if read == base_seq => {
                format!("backup {} has no changes behind it", base.number)
            }
            read => {
                format!("the changes behind backup {} end at sequence number {read}", base.number)
            }
        };
        Error::invalid(format!(
            "{has}, and {asked} is asked for: make another backup first if the database is there still, or \
             restore to sequence number {} at most",
            found.read_seq
        ))
    }

    /// Keyspaces that were dropped before a moment.
    fn gone(&self, seq: SeqNo) -> BTreeSet<KeyspaceId> {
        let dropped = self.dropped().filter(|dropped| dropped.seq < seq);
        dropped.map(|dropped| dropped.id).collect()
    }

    fn dropped(&self) -> impl Iterator<Item = &DroppedKeyspace> {
        self.links.iter().filter_map(|link| link.place.as_ref()).flat_map(|place| &place.dropped)
    }

    /// Checks that no entries came in otherwise than by a batch.
    fn check_ingestions(
        &self,
        base: &Contents,
        found: &Found,
        seq: SeqNo,
        gone: &BTreeSet<KeyspaceId>,
    ) -> Result<()> {
        let mut ingested = found.ingested.iter();
        let of_moment = |(id, at): &&(KeyspaceId, SeqNo)| *at <= seq && !gone.contains(id);
        let Some(&(id, at)) = ingested.find(of_moment) else { return Ok(()) };
        let known = std::iter::once(base).chain(&self.links).find_map(|link| made(link, id));
        let name = known.map_or_else(|| format!("{id}"), |(record, _)| record.name.to_string());
        Err(Error::invalid(format!(
            "entries were ingested into keyspace `{name}` at sequence number {at}, which changes do not \
             have: restore to {} at most, or a backup that was made later",
            at - 1
        )))
    }

    /// The manifest of the moment: that of the backup, with the keyspaces that were made since, and
    /// without those that were dropped.
    fn manifest(
        &self,
        base: &Contents,
        found: &Found,
        seq: SeqNo,
        gone: &BTreeSet<KeyspaceId>,
    ) -> Result<ManifestRecord> {
        let mut fields = base.manifest.0.clone();
        fields.retain(|field| field.keyspace().is_none_or(|id| !gone.contains(&id)));
        let used = found.used.iter().filter(|(_, first)| **first <= seq).map(|(id, _)| *id);
        let used: Vec<_> = used.collect();
        for &id in used.iter().filter(|id| !gone.contains(id)) {
            if made(base, id).is_some() {
                continue;
            }
            let (record, settings) = self.made_since(id)?;
            fields.push(Field::KeyspaceCreate(record));
            fields.extend(settings.map(|text| Field::KeyspaceSettings(id, text)));
        }
        // Numbers of keyspaces that are gone are not given out again.
        fields.extend(used.last().map(|id| Field::NextKeyspace(id.0.saturating_add(1))));
        Ok(ManifestRecord(fields))
    }

    /// The keyspace of this id, as the first backup that has it, or its drop, says.
    fn made_since(&self, id: KeyspaceId) -> Result<(KeyspaceRecord, Option<String>)> {
        if let Some(known) = self.links.iter().find_map(|link| made(link, id)) {
            return Ok(known);
        }
        let dropped = self.dropped().find(|dropped| dropped.id == id);
        let Some(DroppedKeyspace { name, seq, order, .. }) = dropped else {
            return Err(Error::corruption(format!(
                "changes are of keyspace {id}, which no backup behind them knows"
            )));
        };
        let Some((comparator, merge_operator)) = order.clone() else {
            return Err(Error::invalid(format!(
                "keyspace `{name}` was made and dropped between two backups, by an older version that did not \
                 write down its order: restore to sequence number {} or later",
                seq + 1
            )));
        };
        Ok((KeyspaceRecord { id, name: name.clone(), comparator, merge_operator }, None))
    }
}

/// Checks that a moment is not before the backup that it is restored from.
fn check_before(base: &Contents, base_seq: SeqNo, to: Moment) -> Result<()> {
    let (number, made_ms) = (base.number, base.made_ms);
    let text = match to {
        Moment::Seq(seq) if seq < base_seq => {
            format!("backup {number} was made at sequence number {base_seq}, behind {seq}")
        }
        Moment::Time(ms) if ms < made_ms => {
            format!("backup {number} was made at {made_ms} ms since 1970, later than {ms}")
        }
        _ => return Ok(()),
    };
    Err(Error::invalid(format!("{text}: restore from an earlier backup")))
}

/// The last sequence number of a backup.
fn seq_of(target: &dyn BackupTarget, contents: &Contents) -> Result<SeqNo> {
    if let Some(seq) = contents.seq() {
        return Ok(seq);
    }
    // An older version made it of what a follower has read.
    let mut seq = 0;
    log_part::read(target, contents.number, &contents.log, &mut |payload| {
        seq = PartBatch::of(payload)?.last_seq;
        Ok(())
    })?;
    Ok(seq)
}

/// Whether a backup is without a keyspace that was dropped behind this sequence number, and an
/// earlier one has it.
fn drops_at(contents: &Contents, seq: SeqNo) -> bool {
    let dropped = contents.place.iter().flat_map(|place| &place.dropped);
    contents.changes().is_some() && dropped.filter(|dropped| dropped.seq == seq).count() > 0
}

/// A keyspace of a backup, with its own settings.
fn made(contents: &Contents, id: KeyspaceId) -> Option<(KeyspaceRecord, Option<String>)> {
    let mut fields = contents.manifest.0.iter();
    let record = fields.find_map(|field| match field {
        Field::KeyspaceCreate(record) if record.id == id => Some(record.clone()),
        _ => None,
    })?;
    let settings = contents.manifest.0.iter().find_map(|field| match field {
        Field::KeyspaceSettings(of, text) if *of == id => Some(text.clone()),
        _ => None,
    });
    Some((record, settings))
}
