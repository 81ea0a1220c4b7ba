//! Logs that are kept for the feed of changes, at an open and at a resume.
//!
//! A flush and a close keep a log by another name (`write/kept_logs.rs` of store). An open and a
//! resume cannot: the log may end with records that do not count, and some of its bytes may be in
//! the page cache alone. So they copy the batches that count into a new file. If that fails, or
//! takes room that the database may need, nothing is kept, and the feed begins from scratch.
//!
//! Owns: these copies. Never does: keep an open or a resume from succeeding.

use crate::log::log_copy::{Batches, Copied};
use crate::log::logs_at_rest::Replayed;
use crate::open::undo::MARGIN_BYTES;
use std::collections::BTreeMap;
use windrow_base::{FileNumber, Result, SeqNo};
use windrow_env::fs::WriteOptions;
use windrow_format::log::{
    self, Class, FileHeader, LogKind, LogPosition, Mark, encode_file_header,
};
use windrow_format::names;
use windrow_store::host::Host;
use windrow_store::host::listing::Listing;
use windrow_store::manifest::record::KeptLog;
use windrow_store::manifest::state::{ManifestState, WalState};
use windrow_store::write::queue::QueueState;

/// The logs that are kept, by number.
type Kept = BTreeMap<FileNumber, KeptLog>;

/// The part of a log whose batches count.
pub(crate) struct KeptPart {
    number: FileNumber,
    log: WalState,
    first_seq: SeqNo,
    last_seq: SeqNo,
    /// The end of its last batch, or of the marks behind it.
    end: u64,
}

/// Returns the logs that an open keeps: those that the manifest names, if they are there, and copies
/// of those that were replayed.
pub(crate) fn of_open(
    host: &Host,
    state: &ManifestState,
    listing: &mut Listing,
    replayed: &Replayed,
) -> Kept {
    make_room(host, listing, replayed);
    if host.settings.changes_bytes == 0 {
        return Kept::new();
    }
    let mut kept = Kept::clone(&state.kept);
    let is_missing = |(n, log): &(&FileNumber, &KeptLog)| !is_there(host, listing, **n, log.bytes);
    if let Some((last, _)) = state.kept.iter().rfind(is_missing) {
        // The feed cannot go on behind it.
        kept = kept.split_off(&(last + 1));
    }
    let parts = replayed.taken.iter().filter_map(|(&number, taken)| {
        let (first_seq, last_seq, end) = (taken.first_seq, taken.last_seq, taken.end);
        Some(KeptPart { number, log: *state.wals.get(&number)?, first_seq, last_seq, end })
    });
    kept.extend(copies(host, parts.collect()));
    kept
}

/// Removes kept logs where the device has no room for an open, which comes first.
fn make_room(host: &Host, listing: &mut Listing, replayed: &Replayed) {
    let logs = replayed.taken.values().map(|taken| taken.end).sum::<u64>();
    let needed = MARGIN_BYTES.saturating_add(logs);
    while host.env.fs.free_bytes(&host.dir).is_ok_and(|free| free < needed) {
        let Some(oldest) = listing.changes.pop_first() else { return };
        // One that stays is no manifest's, and goes later.
        let _ = host.env.fs.remove(&host.dir.join(names::changes(oldest)));
    }
}

/// Whether a kept log is in the directory, whole. A crash may have left it under its old name,
/// and it keeps that until the new manifest is in force: the record by which it is kept may be in the
/// page cache alone, and a power loss may bring back a manifest that replays it.
fn is_there(host: &Host, listing: &Listing, number: FileNumber, bytes: u64) -> bool {
    let name = match (listing.changes.contains(&number), listing.wals.contains(&number)) {
        (true, _) => names::changes(number),
        (false, true) => names::wal(number),
        (false, false) => return false,
    };
    host.env.fs.len(&host.dir.join(name)).is_ok_and(|found| bytes <= found)
}

/// Returns the part of each log in use that was published, up to `last_seq`, oldest first.
pub(crate) fn published_parts(queue: &QueueState, last_seq: SeqNo) -> Vec<KeptPart> {
    let older = queue.older_wals.iter().map(|(wal, first_seq)| (wal, *first_seq));
    let logs: Vec<_> = older.chain([(&queue.wal, queue.wal_first_seq)]).collect();
    let nexts = logs.iter().skip(1).map(|(_, first_seq)| *first_seq).chain([queue.next_seq]);
    let parts = logs.iter().zip(nexts).map(|((wal, first_seq), next_seq)| KeptPart {
        number: wal.number,
        log: WalState { uid: wal.uid, bytes: 0, synced_bytes: 0 },
        first_seq: *first_seq,
        last_seq: last_seq.min(next_seq - 1),
        end: wal.written(),
    });
    parts.filter(|part| part.first_seq <= part.last_seq).collect()
}

/// Returns the logs that a resume keeps: those that the manifest names, and copies of the published
/// parts of those in use.
pub(crate) fn of_resume(host: &Host, state: &ManifestState, parts: Vec<KeptPart>) -> Kept {
    if host.settings.changes_bytes == 0 {
        return Kept::new();
    }
    let mut kept = Kept::clone(&state.kept);
    kept.extend(copies(host, parts));
    kept
}

/// Copies parts of logs, in order, into files of the feed. Returns the newest ones without a gap:
/// as many as the settings allow to keep, and as there is room for.
fn copies(host: &Host, parts: Vec<KeptPart>) -> Kept {
    let mut left = host.settings.changes_bytes;
    let free = host.env.fs.free_bytes(&host.dir).unwrap_or(0);
    let within = parts.iter().rev().take_while(|part| {
        let fits = part.end <= left;
        left = left.saturating_sub(part.end);
        fits
    });
    let within = &parts[parts.len() - within.count()..];
    let needed = within.iter().map(|part| part.end.saturating_mul(2)).sum::<u64>();
    if within.is_empty() || free < needed.saturating_add(MARGIN_BYTES) {
        return Kept::new();
    }
    let numbered: Vec<_> = within.iter().map(|part| (host.new_file_number(), part)).collect();
    let copied = numbered.iter().map(|&(number, part)| Ok((number, copy(host, part, number)?)));
    let copied = copied.collect::<Result<Kept>>();
    let done = copied.and_then(|kept| host.env.fs.sync_dir(&host.dir).map(|()| kept));
    done.unwrap_or_else(|_| {
        for (number, _) in numbered {
            // One that stays is no manifest's, and the next open removes it.
            let _ = host.env.fs.remove(&host.dir.join(names::changes(number)));
        }
        Kept::new()
    })
}

/// Copies the batches of a part, durably, into a file of the feed.
fn copy(host: &Host, part: &KeptPart, number: FileNumber) -> Result<KeptLog> {
    let (uid, framing) = (host.env.random.next_u64(), LogKind::Wal.framing());
    let header = FileHeader {
        kind: LogKind::Wal,
        framing,
        number,
        uid,
        // It cross-checks no manifest, as no recovery reads it.
        manifest_number: 0,
        manifest_durable_bytes: 0,
        manifest_uid: 0,
    };
    let path = host.dir.join(names::changes(number));
    let mut file = host.env.fs.create(&path, WriteOptions::default())?;
    file.append(&encode_file_header(&header))?;
    let mut batches = Batches::from(part.first_seq);
    let mut append = |part: Copied<'_>| {
        let place = LogPosition { framing, uid, offset: file.len(), durable_up_to: 0 };
        let mut append = |payload, class| {
            log::frame_pieces(payload, class, place, |_, piece| file.append(piece))
        };
        match part {
            Copied::Batch(payload) => append(payload, Class::Batch),
            // No lengths with it: recovery does not read it.
            Copied::Time(ms) => {
                let mark = Mark { time_ms: Some(ms), ..Mark::default() };
                append(&mark.encode(), Class::Mark)
            }
        }
    };
    let source = (&*host.env.fs, host.dir.as_path());
    batches.take(source, (part.number, &part.log), part.end, &mut append)?;
    batches.finish(part.last_seq)?;
    let kept_ms = host.env.clock.wall_ms();
    append(Copied::Time(kept_ms))?;
    let bytes = file.len();
    file.finish()?;
    Ok(KeptLog { uid, first_seq: part.first_seq, last_seq: part.last_seq, bytes, kept_ms })
}
