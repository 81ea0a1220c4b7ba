//! The state that the records of a manifest fold to: keyspaces with their versions, the logs to
//! replay, the counters that must not run backwards.
//!
//! Recovery, repair and `dump` fold records into it, the running database keeps it with the file,
//! and a snapshot record is made of it.
//!
//! Owns: the fold of a record, and the snapshot of a state. Never does: read or write a file.

use crate::manifest::record::{
    DroppedKeyspace, Field, KeptLog, KeyspaceRecord, ManifestRecord, Session,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use windrow_base::{
    Error, FileNumber, FileUid, KeyOrder, KeyspaceId, Result, SeqNo, debug_invariant,
};
use windrow_plan::tree::Version;

/// A keyspace as the manifest knows it.
#[derive(Clone)]
pub struct KeyspaceState {
    pub record: Arc<KeyspaceRecord>,
    /// Its own settings, as text; `None` if it has none.
    pub settings: Option<Arc<str>>,
    pub version: Arc<Version>,
}

impl KeyspaceState {
    pub fn new(record: KeyspaceRecord, version: Arc<Version>) -> KeyspaceState {
        KeyspaceState { record: Arc::new(record), settings: None, version }
    }
}

/// A log as the manifest knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WalState {
    pub uid: FileUid,
    /// Its length when it was made; it only grew.
    pub bytes: u64,
    /// Up to where it is known to be on the device.
    pub synced_bytes: u64,
}

/// The fold of all records so far.
#[derive(Clone, Default)]
pub struct ManifestState {
    pub keyspaces: BTreeMap<KeyspaceId, KeyspaceState>,
    pub next_file: FileNumber,
    pub next_keyspace: u32,
    pub last_seq: SeqNo,
    pub log_number: FileNumber,
    pub log_first_seq: SeqNo,
    /// Logs at or above `log_number` that are known to exist.
    pub wals: BTreeMap<FileNumber, WalState>,
    pub clean_close: Option<(FileNumber, u64)>,
    pub time_floor_ms: u64,
    /// Logs before `log_number` that are kept for the feed of changes, without a gap between them.
    pub kept: Arc<BTreeMap<FileNumber, KeptLog>>,
    /// Keyspaces that were dropped and that the kept logs, or those from `log_number` on, may name.
    pub dropped: Arc<Vec<DroppedKeyspace>>,
    /// The sessions that gave out what the logs have, and the one before, oldest first; none where
    /// nothing is kept for the feed of changes.
    pub sessions: Arc<Vec<Session>>,
    pub(crate) settings_text: Arc<str>,
}

/// The state after a record: all of it but the keyspaces that the record does not name.
pub struct StateChange {
    /// The keyspaces that the record names; `None` after a full snapshot, which keeps none of those
    /// before.
    named: Option<BTreeSet<KeyspaceId>>,
    after: ManifestState,
}

/// The most sessions that are remembered, however often nothing was written between crashes.
const SESSIONS_MAX: usize = 64;

/// Finds the order for a comparator id stored in the manifest.
pub type OrderOf<'a> = dyn Fn(&str) -> Result<KeyOrder> + 'a;

impl ManifestState {
    /// Folds one record in.
    ///
    /// # Errors
    /// `Corruption` if the record contradicts those before it;
    /// `InvalidArgument` for a comparator that is not registered.
    pub fn apply(&mut self, record: &ManifestRecord, order_of: &OrderOf<'_>) -> Result<()> {
        // Any record after a clean close undoes it: the database was reopened.
        self.clean_close = None;
        let before = self.counters();
        for field in &record.0 {
            self.apply_field(field, order_of)?;
        }
        let is_whole = record.0.contains(&Field::Snapshot);
        let mut pairs = before.into_iter().zip(self.counters());
        let ascend = is_whole || pairs.all(|(before, after)| before <= after);
        debug_invariant!(R8, ascend, "counters go from {before:?} back to {:?}", self.counters());
        Ok(())
    }

    /// Returns the state after a record, and leaves this one as it is: so it is known that a record
    /// folds before it is written. Copies only the keyspaces that the record names: a database may
    /// have many, and a record names few.
    ///
    /// # Errors
    /// As [`ManifestState::apply`].
    pub fn change(&self, record: &ManifestRecord, order_of: &OrderOf<'_>) -> Result<StateChange> {
        let named: BTreeSet<_> = record.0.iter().filter_map(Field::keyspace).collect();
        let there = |id: &KeyspaceId| Some((*id, self.keyspaces.get(id)?.clone()));
        let mut after = ManifestState {
            keyspaces: named.iter().filter_map(there).collect(),
            wals: self.wals.clone(),
            kept: self.kept.clone(),
            dropped: self.dropped.clone(),
            sessions: self.sessions.clone(),
            settings_text: self.settings_text.clone(),
            ..*self
        };
        after.apply(record, order_of)?;
        let is_whole = record.0.contains(&Field::Snapshot);
        Ok(StateChange { named: (!is_whole).then_some(named), after })
    }

    /// Takes over the state after a record.
    pub fn adopt(&mut self, StateChange { named, mut after }: StateChange) {
        if let Some(named) = named {
            let changed =
                std::mem::replace(&mut after.keyspaces, std::mem::take(&mut self.keyspaces));
            let gone = named.iter().filter(|id| !changed.contains_key(id));
            gone.for_each(|id| drop(after.keyspaces.remove(id)));
            after.keyspaces.extend(changed);
        }
        *self = after;
    }

    /// Checks that no log and no keyspace has a number that can be given out again, and that replay
    /// begins with the oldest log. For a manifest of this open: one that was found promises none of
    /// it.
    pub fn check_numbers(&self) {
        if !cfg!(debug_assertions) {
            return;
        }
        let (oldest, newest) = (self.wals.keys().next(), self.wals.keys().next_back());
        let (begin, next) = (self.log_number, self.next_file);
        debug_invariant!(R4, oldest.is_none_or(|n| begin <= *n), "{oldest:?} is before {begin}");
        debug_invariant!(R8, newest.is_none_or(|n| *n < next), "{newest:?}, and {next} is next");
        let (last, next) = (self.keyspaces.keys().next_back(), self.next_keyspace);
        let is_free = last.is_none_or(|id| id.0 < next || next == u32::MAX);
        debug_invariant!(R8, is_free, "keyspace {last:?} is there, and {next} is next");
        let closed = self.clean_close.map(|(wal, _)| wal);
        let is_known = closed.is_none_or(|wal| self.wals.contains_key(&wal));
        debug_invariant!(R10, is_known, "a clean close leaves log {closed:?}, which is not there");
    }

    /// The counters that never run backwards, except in a full snapshot.
    fn counters(&self) -> [u64; 5] {
        let next_keyspace = u64::from(self.next_keyspace);
        [self.next_file, next_keyspace, self.last_seq, self.log_number, self.time_floor_ms]
    }

    fn apply_field(&mut self, field: &Field, order_of: &OrderOf<'_>) -> Result<()> {
        match field {
            Field::Snapshot => *self = ManifestState::default(),
            Field::KeyspaceCreate(record) => {
                let version = Arc::new(Version::empty(order_of(&record.comparator)?));
                let state = KeyspaceState::new(record.clone(), version);
                if self.keyspaces.insert(record.id, state).is_some() {
                    return Err(corrupt(format!("keyspace {} is made twice", record.id)));
                }
                self.next_keyspace = self.next_keyspace.max(record.id.0.saturating_add(1));
            }
            Field::KeyspaceDrop(id) => {
                let Some(dropped) = self.keyspaces.remove(id) else {
                    return Err(corrupt(format!("keyspace {id} is dropped but was not made")));
                };
                // Its tables may be the only place that has these sequence numbers.
                self.last_seq = self.last_seq.max(dropped.version.flushed_through);
            }
            Field::KeyspaceEdit(id, edit) => {
                let Some(keyspace) = self.keyspaces.get_mut(id) else {
                    return Err(corrupt(format!("keyspace {id} is edited but was not made")));
                };
                keyspace.version = Arc::new(keyspace.version.apply(edit)?);
            }
            Field::KeyspaceSettings(id, text) => {
                let Some(keyspace) = self.keyspaces.get_mut(id) else {
                    return Err(corrupt(format!("keyspace {id} has settings but was not made")));
                };
                keyspace.settings = Some(text.as_str().into()).filter(|_| !text.is_empty());
            }
            Field::NextFile(number) => self.next_file = self.next_file.max(*number),
            Field::LastSeq(seq) => self.last_seq = self.last_seq.max(*seq),
            Field::LogBegin { number, first_seq } => {
                if *number < self.log_number {
                    return Err(corrupt(format!("log {number} comes after {}", self.log_number)));
                }
                self.log_number = *number;
                self.log_first_seq = *first_seq;
                self.wals = self.wals.split_off(number);
                self.forget_dropped();
            }
            Field::WalAdded { number, uid, bytes } => {
                let wal = WalState { uid: *uid, bytes: *bytes, synced_bytes: 0 };
                if self.wals.insert(*number, wal).is_some() {
                    return Err(corrupt(format!("log {number} is made twice")));
                }
            }
            Field::WalSynced { number, bytes } => {
                let Some(wal) = self.wals.get_mut(number) else {
                    return Err(corrupt(format!("log {number} is synced but was not made")));
                };
                wal.synced_bytes = wal.synced_bytes.max(*bytes);
            }
            Field::CleanClose { wal, bytes } => self.clean_close = Some((*wal, *bytes)),
            Field::LogKept(..)
            | Field::KeptBegin(_)
            | Field::KeyspaceDropped(_)
            | Field::DroppedOrder { .. }
            | Field::Session(_) => self.apply_for_changes(field),
            Field::NextKeyspace(id) => self.next_keyspace = self.next_keyspace.max(*id),
            Field::TimeFloor(ms) => self.time_floor_ms = self.time_floor_ms.max(*ms),
            Field::Settings(text) => self.settings_text = text.as_str().into(),
        }
        Ok(())
    }

    /// Applies a field that is there for the feed of changes, or for restores to a moment.
    fn apply_for_changes(&mut self, field: &Field) {
        match field {
            Field::LogKept(number, kept) => {
                Arc::make_mut(&mut self.kept).insert(*number, *kept);
            }
            Field::KeptBegin(number) => {
                let kept = Arc::make_mut(&mut self.kept);
                *kept = kept.split_off(number);
                self.forget_dropped();
            }
            Field::KeyspaceDropped(gone) => Arc::make_mut(&mut self.dropped).push(gone.clone()),
            Field::DroppedOrder { id, comparator, merge_operator } => {
                let mut dropped = Arc::make_mut(&mut self.dropped).iter_mut();
                if let Some(dropped) = dropped.find(|dropped| dropped.id == *id) {
                    dropped.order = Some((comparator.clone(), merge_operator.clone()));
                }
            }
            Field::Session(session) => Arc::make_mut(&mut self.sessions).push(*session),
            _ => {}
        }
    }

    /// The first sequence number from which the logs have all operations.
    pub fn changes_begin(&self) -> SeqNo {
        self.kept.values().next().map_or(self.log_first_seq, |kept| kept.first_seq)
    }

    /// Forgets dropped keyspaces that the feed of changes does not name any more.
    pub fn forget_dropped(&mut self) {
        let begin = self.changes_begin();
        if self.dropped.iter().any(|dropped| dropped.seq + 1 < begin) {
            Arc::make_mut(&mut self.dropped).retain(|dropped| begin <= dropped.seq + 1);
        }
    }

    /// Forgets all that is kept for the feed of changes: it begins with the next write.
    pub fn without_changes(&mut self) {
        self.kept = Arc::default();
        self.dropped = Arc::default();
        self.sessions = Arc::default();
    }

    /// Begins a session that goes on behind `last_seq`, and forgets those whose numbers no log has any
    /// more. After a clean close behind a session that gave out no number, that session goes on:
    /// opens that write nothing are not counted.
    pub fn begin_session(&mut self, uid: u64, last_seq: SeqNo) {
        let first_seq = last_seq + 1;
        let is_unused = self.sessions.last().is_some_and(|last| last.first_seq == first_seq);
        if self.clean_close.is_some() && is_unused {
            return;
        }
        let begin = self.changes_begin();
        let sessions = Arc::make_mut(&mut self.sessions);
        sessions.push(Session { uid, first_seq });
        // Each ends where the next one begins.
        let is_before = |pair: &&[Session]| pair[1].first_seq < begin;
        let before = sessions.windows(2).take_while(is_before).count();
        sessions.drain(..before.max(sessions.len().saturating_sub(SESSIONS_MAX)));
    }

    /// Whether all that was written up to `seq` when session `uid` was the last one is still part of
    /// the database, and nothing else has these sequence numbers.
    pub fn goes_on_from(&self, uid: u64, seq: SeqNo) -> bool {
        let at = self.sessions.iter().position(|session| session.uid == uid);
        at.is_some_and(|at| self.sessions.get(at + 1).is_none_or(|next| seq < next.first_seq))
    }

    /// The whole state as one record, from which it can be folded again.
    pub fn snapshot(&self) -> ManifestRecord {
        let mut fields = vec![Field::Snapshot];
        for (id, keyspace) in &self.keyspaces {
            fields.push(Field::KeyspaceCreate(KeyspaceRecord::clone(&keyspace.record)));
            let own = keyspace.settings.as_deref().map(str::to_owned);
            fields.extend(own.map(|text| Field::KeyspaceSettings(*id, text)));
            let edits = keyspace.version.snapshot_edits().into_iter();
            fields.extend(edits.map(|edit| Field::KeyspaceEdit(*id, edit)));
        }
        fields.push(Field::NextFile(self.next_file));
        fields.push(Field::NextKeyspace(self.next_keyspace));
        fields.push(Field::LastSeq(self.last_seq));
        fields.push(Field::LogBegin { number: self.log_number, first_seq: self.log_first_seq });
        for (&number, wal) in &self.wals {
            fields.push(Field::WalAdded { number, uid: wal.uid, bytes: wal.bytes });
            if wal.synced_bytes > 0 {
                fields.push(Field::WalSynced { number, bytes: wal.synced_bytes });
            }
        }
        fields.extend(self.kept.iter().map(|(&number, &kept)| Field::LogKept(number, kept)));
        for dropped in self.dropped.iter() {
            fields.extend(dropped.fields());
        }
        fields.extend(self.sessions.iter().copied().map(Field::Session));
        fields.push(Field::TimeFloor(self.time_floor_ms));
        if !self.settings_text.is_empty() {
            fields.push(Field::Settings(self.settings_text.to_string()));
        }
        let snapshot = ManifestRecord(fields);
        if cfg!(debug_assertions) {
            let is_whole = self.is_all_of(&snapshot);
            debug_invariant!(R2, is_whole, "a snapshot does not say all of the manifest");
        }
        snapshot
    }

    /// Whether a snapshot folds to this state again.
    fn is_all_of(&self, snapshot: &ManifestRecord) -> bool {
        let order_of = |comparator: &str| {
            let mut keyspaces = self.keyspaces.values();
            let of_it = keyspaces.find(|keyspace| keyspace.record.comparator == comparator);
            of_it
                .map(|keyspace| keyspace.version.order.clone())
                .ok_or_else(|| corrupt(String::new()))
        };
        let mut again = ManifestState::default();
        let folded = again.apply(snapshot, &order_of);
        folded.is_ok()
            && again.counters() == self.counters()
            && again.wals == self.wals
            && again.kept == self.kept
            && again.dropped == self.dropped
            && again.sessions == self.sessions
            && again.live_tables() == self.live_tables()
            && again.own_settings().eq(self.own_settings())
    }

    fn own_settings(&self) -> impl Iterator<Item = Option<&str>> {
        self.keyspaces.values().map(|keyspace| keyspace.settings.as_deref())
    }

    /// The state of a new database: the default keyspace and nothing in it.
    pub fn new_database(default: KeyspaceRecord, settings_text: String) -> ManifestRecord {
        ManifestRecord(vec![
            Field::Snapshot,
            Field::KeyspaceCreate(default),
            Field::NextKeyspace(1),
            Field::LastSeq(0),
            Field::Settings(settings_text),
        ])
    }

    /// Every table file that a version names.
    pub fn live_tables(&self) -> BTreeSet<FileNumber> {
        let versions = self.keyspaces.values().map(|k| &k.version);
        versions
            .flat_map(|v| v.files().map(|(_, _, file)| file.number).collect::<Vec<_>>())
            .collect()
    }
}

fn corrupt(message: String) -> Error {
    Error::corruption(message)
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    /// A state that goes on behind `last_seq`, as an open or a resume begins it.
    fn begin(state: &mut ManifestState, uid: u64, last_seq: SeqNo) {
        state.begin_session(uid, last_seq);
        state.clean_close = None;
        state.log_first_seq = last_seq + 1;
    }

    fn sessions(state: &ManifestState) -> Vec<(u64, SeqNo)> {
        state.sessions.iter().map(|session| (session.uid, session.first_seq)).collect()
    }

    #[test]
    fn numbers_that_are_given_out_again_belong_to_another_session() {
        let mut state = ManifestState::default();
        begin(&mut state, 7, 0);
        // Up to 100 in the first session; a crash takes back what is behind 80.
        assert!(state.goes_on_from(7, 100) && !state.goes_on_from(8, 0));
        state.log_first_seq = 1;
        begin(&mut state, 8, 80);
        assert!(state.goes_on_from(7, 80) && !state.goes_on_from(7, 81));
        assert!(state.goes_on_from(8, 200));
        // Folded again from a snapshot, it says the same.
        let mut again = ManifestState::default();
        again.apply(&state.snapshot(), &|_| Err(corrupt(String::new()))).unwrap();
        assert_eq!(sessions(&again), [(7, 1), (8, 81)]);
        state.without_changes();
        assert!(!state.goes_on_from(8, 80), "a copy begins its own history");
    }

    #[test]
    fn opens_that_write_nothing_and_old_sessions_are_forgotten() {
        let mut state = ManifestState::default();
        begin(&mut state, 1, 0);
        for uid in 2..10 {
            state.clean_close = Some((1, 64));
            begin(&mut state, uid, 0);
        }
        assert_eq!(sessions(&state), [(1, 1)]);
        // After a crash nobody knows that nothing was given out.
        begin(&mut state, 10, 0);
        assert_eq!(sessions(&state), [(1, 1), (10, 1)]);
        (11..20).for_each(|uid| begin(&mut state, uid, uid * 10));
        assert_eq!(sessions(&state), [(17, 171), (18, 181), (19, 191)]);
        (0..1_000).for_each(|uid| begin(&mut state, uid, 190));
        assert_eq!(state.sessions.len(), SESSIONS_MAX);
    }
}
