//! The table of mutants: a number that stays, a name, the promises that break
//! without the safeguard (or the policies' own, where one only costs), the rule or
//! invariant that asks for it, what the mutant does, and the defect of another engine
//! that it re-creates, if it does.
//!
//! Owns: the entries. Never does: say what the mutant changes (the patch of its name
//! does, `crates/sim/mutants`, or the hook that has its name).

/// One mutant.
#[derive(Clone, Copy, Debug)]
pub struct MutantRow {
    /// Which one.
    pub mutant: Mutant,
    /// Its number, which never changes.
    pub number: u32,
    /// Its name in the source.
    pub name: &'static str,
    /// The promises that it breaks.
    pub promises: &'static str,
    /// The rule or invariant that asks for the safeguard that it takes out.
    pub rule: &'static str,
    /// The wrong thing that it does.
    pub what: &'static str,
    /// The defect that it re-creates, by its public number.
    pub origin: Option<&'static str>,
}

macro_rules! origin {
    () => {
        None
    };
    ($origin:literal) => {
        Some($origin)
    };
}

macro_rules! mutants {
    ($($number:literal $name:ident [$promises:literal, $rule:literal]
       $what:literal $(after $origin:literal)?;)*) => {
        /// Every mutant.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[allow(missing_docs, reason = "the table describes each")]
        pub enum Mutant {
            $($name = $number,)*
        }

        /// Every mutant, described.
        pub const TABLE: &[MutantRow] = &[$(MutantRow {
            mutant: Mutant::$name,
            number: $number,
            name: stringify!($name),
            promises: $promises,
            rule: $rule,
            what: $what,
            origin: origin!($($origin)?),
        },)*];
    };
}

// These are left out, since no harness can tell them from the original (a second safeguard does the
// same), or only threads can:
// - the sync of CURRENT's temporary file alone: closing the file syncs it too;
// - the sync of a checkpoint's directory before its manifest: making the manifest
//   syncs it too, before CURRENT is there;
// - a checkpoint's CURRENT before its tables: a table that is missing is refused;
// - the check of a merge's counts alone: `MergeEndsAtError` covers its purpose;
// - the footer's check of the uid alone: every block's checksum is seeded with it;
// - the manifest's uid in CURRENT alone: its tables and logs are known by theirs;
// - the kind of a block alone: a checksum seeded with the place implies it;
// - the length that a clean close records alone: the log's entry has it too;
// - the limit on values alone: a value over it is over the limit on batches too;
// - RocksDB #9922 (recovery's manifest durable before its log): here the new
//   manifest needs no log, and names one only when that is durable;
// - the folders of backups that each open makes durable: the simulated file system has no folder that
//   is not;
// - publication out of order, and a checkpoint that flushes keyspace by keyspace
//   while others write: nothing runs at the same time in the simulation. loom and
//   shuttle look at these.
mutants! {
    // Durability: each sync of a file or directory.
    1 WalSync ["P1", "R13"] "a synced write is acknowledged without a sync of its log";
    2 WalHeaderSync ["P1 P19", "R5"] "a new log is used before its header is durable";
    3 WalNameSync ["P1", "R9"] "a new log is used before its name is durable"
        after "mongo-rocks #35: the directory of a new log was not synced";
    4 WalOlderFirst ["P1 P2", "R4"] "only the newest log is synced, not those before it"
        after "RocksDB #12489: a newer log was synced without an older one, which left a hole";
    5 WalTailForgotten ["P1 P2", "R4"] "a sealed log that was synced once counts as durable to its end"
        after "RocksDB #10560: a log switched during a sync was taken for synced, its last records never were";
    6 ExplicitSync ["P1", "R13"] "an explicit sync does nothing";
    7 ManifestSync ["P1 P19", "R7"] "an edit counts as durable without a sync of the manifest";
    8 ManifestFirstSync ["P1 P19", "R1"] "a new manifest is named by CURRENT before it is durable"
        after "LevelDB #189 (and goleveldb #335): a new manifest was not synced";
    9 ManifestNameSync ["P1 P19", "R9"] "a new manifest's name is not made durable before CURRENT names it";
    10 CurrentSync ["P1 P19", "R9"] "CURRENT's new contents are not durable when it is renamed into place"
        after "LevelDB #75: CURRENT was found without its contents after power went";
    11 CurrentNameSync ["P1 P19", "R9"] "the directory is not synced after CURRENT was renamed"
        after "RocksDB #10573 and LevelDB #195: the directory was not synced after CURRENT was renamed";
    12 CurrentInPlace ["P1 P19", "R9"] "CURRENT is written in its place, not renamed into it";
    13 TableSync ["P1 P5", "R7"] "a table is named by the manifest before it is durable"
        after "LevelDB #333: an empty table was named by the manifest after power went";
    14 TableNameSync ["P1", "R7"] "a table's name is not made durable"
        after "RocksDB #5287: the directory was not synced after a table was added";
    15 OtherLogsSync ["P2 P3", "R4"] "a flush does not sync the log that holds other keyspaces' writes";
    17 CloseLogSync ["P5", "R10"] "the log that a clean close leaves is not synced";

    // Order: of two steps that are both taken.
    20 TableNameAfterEdit ["P1", "R7"] "a table's name is made durable after the edit that names it";
    21 UnlinkBeforeEdit ["P1 P4", "R7"] "the inputs of a merge are removed before the edit that drops them";
    22 UnlinkUnsyncedEdit ["P1", "R7"] "files are removed when the edit that drops them is written, not synced"
        after "RocksDB #6949: files went whose removal the manifest did not durably hold";
    23 LogsBeforeEdit ["P1", "R3"] "logs are removed before the edit of the flush that replaces them";
    24 OrphansBeforeManifest ["P19", "R3"] "recovery removes the old logs and manifest before its own is in force"
        after "LevelDB #193 and #195: old logs could go before what replaces them was durable";
    25 TailInMemory ["P1 P19", "R3"] "the replayed tail stays in memory, and its logs go"
        after "redb #1290: what a first recovery had shown was gone after a second crash";
    27 LogBeginOfOne ["P1 P2", "R3"] "a flush lets logs go that hold other keyspaces' writes"
        after "RocksDB #5856 and fjall #112: the log's begin moved on for keyspaces that were not flushed";
    28 FirstLogTooNew ["P1", "I4"] "a memtable remembers too new a log as its first"
        after "RocksDB #4718: a record went to one log and its memtable counted for the next";
    29 CheckpointCopiesOver ["P20", "R7"] "a table is copied over the link that failed and is there all the same"
        after "Windrow's own: the copy went into the source's table";
    31 CloseKeepsMemtables ["P1 P14", "R14"] "a close leaves what is in memory unwritten"
        after "RocksDB #12556: close did not make the log's end durable";
    32 ObsoleteTooSoon ["P4", "R7"] "a table goes while readers still hold it";

    // Checksums, and other signs of damage.
    40 LogHeaderCrc ["P5 P6", "R5"] "the checksum of a log record's header is not compared";
    41 LogPayloadCrc ["P2 P3 P5", "R5"] "the checksum of a log record's payload is not compared"
        after "LevelDB #251: a record that had reached the device in part was replayed";
    42 LogFileCrc ["P5", "R5"] "the checksum of a log file's header is not compared";
    43 CurrentCrc ["P5", "R9"] "the checksum of CURRENT is not compared";
    44 BlockCrc ["P5 P11", "R6"] "the checksum of a table's blocks is not compared";
    45 IndexCrc ["P5", "R6"] "the checksum of index blocks is not compared";
    46 FilterCrc ["P5", "R6"] "the checksum of filter blocks is not compared";
    47 TombstoneCrc ["P5", "R6"] "the checksum of a table's range tombstones is not compared";
    48 FooterCrc ["P5", "R6"] "the checksum of a table's footer is not compared";
    49 TableHeaderCrc ["P23", "R6"] "the checksum of a table's header is not compared";
    50 SeedWithoutFile ["P6 P12", "R6"] "checksums are not seeded with the file's identity";
    51 SeedWithoutPlace ["P6", "R6"] "checksums are not seeded with the place in the file";
    52 TableUid ["P12", "R6"] "a table is believed to be the one that the manifest names";
    54 LogUid ["P12", "R11"] "a log is believed to be the one that the manifest names";
    55 DurableMark ["P5", "R5"] "damage to synced records of a log is taken for a torn end"
        after "fjall #311: a damaged record in the middle of the log passed for its end";
    56 ManifestCrossCheck ["P5", "R11"] "what logs remember of the manifest's length is not compared";
    57 LogCrossCheck ["P5", "R4"] "what is remembered of the logs' lengths is not compared";
    58 GapAccepted ["P2", "R4"] "replay goes on after a gap in the sequence numbers"
        after "RocksDB #12488: recovery went on past a hole between two logs";
    59 SyncedGap ["P5", "R5"] "a gap is accepted although the missing records had been synced";
    60 MissingTable ["P5", "R7"] "a table that is missing goes unnoticed at open";
    61 MissingLog ["P5", "R7"] "a log that is missing goes unnoticed at open";
    63 CurrentMissing ["P5", "R1"] "remains without CURRENT pass for no database";
    65 VerifySkipsBytes ["P23", "R6"] "verify does not read the tables' bytes";
    66 RepairTrustsTables ["P23", "R6"] "repair keeps tables without looking at them";
    67 LengthUnchecked ["P22 P5", "R12"] "a record's length is believed beyond the end of its file";

    // Errors: where they must go, and what they must end.
    70 WalAppendWritesOn ["P7", "Q3 R13"] "a failed append to the log leaves writing on"
        after "fjall #308: a failed append of a batch did not end writing, and later ones were lost with it";
    71 WalAppendIgnored ["P1 P7", "R13"] "a failed append to the log is not reported";
    72 WalSyncIgnored ["P1 P7", "R13"] "a failed sync of the log is not reported";
    73 WalSyncRetried ["P7", "R13"] "a failed sync of the log is tried again"
        after "PostgreSQL's fsync defect of 2018: a second sync succeeded and had written nothing";
    74 TableWriteIgnored ["P8 P9", "R13"] "a table whose writing failed is used";
    75 ManifestUsedOn ["P7", "R7"] "a failed append to the manifest leaves it in use"
        after "RocksDB #6331: after a failed append the same manifest went on being written";
    76 FailedEditUnlinks ["P7", "R7"] "a failed edit's tables are removed, though it may be durable"
        after "RocksDB #5379 (found as #4990): tables went after the manifest's sync had failed";
    77 NameSyncIgnored ["P7", "R7"] "a failed sync of the directory is not reported";
    78 UnlinksAfterFailure ["P7", "R7"] "files are removed after a failure has turned writing off";
    79 ReadErrorAbsent ["P9", "P9"] "a read error passes for a key that is not there";
    80 ScanErrorEnds ["P9", "P9"] "a read error passes for the end of a scan";
    81 ScanErrorForgotten ["P9", "P9"] "a scan goes on after an error";
    82 MergeEndsAtError ["P5 P9", "R16"] "a merge takes a read error for the end of its inputs, and does not count"
        after "RocksDB #10377: entries were missing after a compaction";
    83 PanicIgnored ["P24", "P24"] "a panic in the background changes nothing";
    84 CloseErrorIgnored ["P14", "R14"] "close does not report what failed"
        after "LevelDB #1081: errors of closing a log were not looked at";
    86 CheckpointErrorIgnored ["P20", "R7"] "a table that could not be linked is left out of a checkpoint";

    // Batches, order and snapshots.
    90 ReplayTwice ["P2", "I4"] "replay applies what is in tables already";
    91 SnapshotForgotten ["P4", "I6"] "merges do not ask which snapshots are held";
    92 StripeOffByOne ["P4", "I6"] "the newest entry that a snapshot sees counts as newer than it";
    93 DeleteDropsVersions ["P4", "I6"] "a delete at the bottom takes what a snapshot still sees"
        after "SurrealKV #351: a delete at the bottom dropped versions that snapshots needed";
    94 TombstoneTooNew ["P4", "I6"] "a range tombstone hides entries from older snapshots"
        after "CockroachDB #48320: a range tombstone newer than a snapshot changed what it showed";
    95 SeqReused ["P2", "I3"] "sequence numbers begin again at an open";
    96 FlushedTooFar ["P1 P2", "I4"] "a flush records more as flushed than it wrote";
    97 FlushOutOfOrder ["P2 P4", "I4"] "the newest frozen memtable is flushed first";
    98 SeqOfOne ["P2", "Q1"] "a batch of several operations takes one sequence number";

    // Files and their numbers.
    100 NumberReuse ["P19", "R8"] "numbers of files that no manifest names are used again"
        after "RocksDB #7621: a table's number was used again in recovery, and the table removed";
    102 KeyspaceIdReuse ["P2", "R8"] "a dropped keyspace's id is given to the next one";

    // Merges: the entries that they may drop.
    108 CoveredInPart ["P2", "I6"] "a table goes although range tombstones hide but its first keys";
    109 CoveredUnderSnapshot ["P4", "I6"] "a table that range tombstones hide goes although a snapshot sees it";
    110 TombstoneDropped ["P2", "I6"] "a tombstone is dropped although there is older data below";
    111 RangeTombstoneDropped ["P2", "I6"] "a range tombstone is dropped although there is older data below"
        after "RocksDB #2752: deleted keys came back after a compaction of range tombstones";
    112 RangeTombstoneGap ["P2", "I6"] "range tombstones between the tables of a merge are lost"
        after "Pebble #26 (and RocksDB #4432): range tombstones cut to their table lost what lay between";
    113 SingleDeleteBuried ["P2", "I6"] "a single delete under a put goes with it"
        after "Pebble #1103: a single delete under newer entries was lost in a compaction";
    114 OperandsWithoutBase ["P2", "I6"] "operands are resolved although their base may lie below";
    115 SplitKey ["P4", "I1"] "a file ends between two versions of a key"
        after "LevelDB #320: versions of a key in two files of a level were compacted apart";
    116 UnclosedMerge ["P2 P4", "I5"] "a merge leaves out older files that overlap what it takes"
        after "Pebble #944: a compaction left out files that shared a key with it";
    117 ExpiryIgnoresSnapshots ["P4 P16", "I6"] "merges judge expiry by the clock, not by held snapshots";
    118 TimeFloorForgotten ["P16", "P16"] "the time at which a merge judged expiry is not kept";
    119 ExpiryEarly ["P16", "P16"] "entries expire an hour before their time";

    // The rest.
    120 LockIgnored ["P13", "P13"] "a second open is let in";
    121 ReadOnlyLocks ["P17", "P17"] "a read-only open writes the lock file";
    122 ReadOnlyCreates ["P17", "P17"] "a read-only open makes the directory";
    123 KeyLimit ["P15", "P15"] "a key over the limit is written";
    125 BatchLimit ["P15", "P15"] "a batch over the limit is written";
    126 NewerFormat ["P21", "P21"] "a newer format is opened as if it were known";
    127 UnknownFeature ["P21", "P21"] "a directory that needs an unknown feature is opened";
    128 NewerLocked ["P21", "P21"] "a newer format is refused only after the lock file was written";
    129 DescriptorPanic ["P10", "P10"] "a file that cannot be opened is a panic";
    130 MemoryUnbounded ["P18", "P18"] "writers do not wait for flushes when memory is full";
    131 CloseLeavesJobs ["P14", "R14"] "a close does not wait for what runs in the background";
    132 ForeignLog ["P12 P19", "R11"] "a log that the manifest does not name is believed to be its own";
    133 ViewLetGo ["P4", "I6"] "an iterator lets its view go without a snapshot";
    134 ViewKept ["P18", "P18"] "an idle iterator keeps memtables while memory is short";
    135 InstalledUnderSnapshot ["P4", "I6"] "a merge drops what a snapshot taken meanwhile sees";
    136 DropForgetsSeq ["P2", "I3"] "sequence numbers of a dropped keyspace are reused";
    137 DroppedLeavesTables ["P20", "R7"] "what a merge wrote for a keyspace dropped meanwhile stays";
    138 GapKept ["P4", "P4"] "what is put into a gap that scans go over is not cut out of it";
    140 PlaceUnchecked ["P1 P14", "R14"] "a directory that was replaced under the database is not noticed";
    141 StrangersRemoved ["P20", "R7"] "what is not Windrow's is removed for its name";
    145 ForkUnseen ["P13", "P13"] "a forked child uses its parent's database";
    155 UndoneInForce ["P7", "P8"] "an open that fails removes what CURRENT names already";
    156 LogTakesAll ["P8", "P8"] "a log takes the room that its records need in tables";
    157 CloseForgetsLog ["P1", "P8"] "a close without room for tables leaves logs that were not synced";
    158 ResumeForgets ["P1", "P7"] "a resume does not write what is in memory to tables";
    159 ResumedKeyspaces ["P7", "P20"] "a keyspace whose making failed is there after a resume";
    160 BatchMemoryLimit ["P15 P18", "P18"] "a batch is taken that memtables have no room for";
    161 TransactionUnchecked ["P25", "P25"] "a transaction commits although a key that it read was written since";
    162 PhantomUnchecked ["P25", "P25"] "a transaction commits although a key came into a range that it read";
    163 ForgottenWrites ["P25", "P25"] "writes that are forgotten count as none for a transaction";
    164 LockOfTwo ["P25", "P25"] "two transactions hold the lock of a key";
    165 ReadersIgnored ["P26", "P26"] "files are removed that a process reads next to the writer";
    166 FollowedTwice ["P26", "P26"] "a follower shows operands of its log that are in tables by now";
    167 IngestedIntoGap ["P4", "P4"] "what is ingested into a gap that scans go over is not seen";
    168 IngestionForgotten ["P25", "P25"] "a transaction commits although what it read was ingested since";
    169 IngestedTooDeep ["P3", "I3"] "an ingested table goes below older tables that overlap it";
    170 DropUnsynced ["P2", "R4"] "a drop of a keyspace is durable before older writes to others";
    171 RepairMovesFirst ["P23", "R7"] "repair moves damaged files away before a manifest without them is in force";
    172 RepairTracesForgotten ["P23", "R7"] "repair takes what one before it had begun to write for data";
    173 RepairLinksLate ["P23", "R7"] "repair links originals into lost/ after the manifest without them is in force";
    174 RebuildStopsAtGap ["P23", "P23"] "a repair without a manifest stops at a gap in the logs that tables fill";
    175 FollowingError ["P7", "R13"] "an error that only follows from another one takes its place, and a resume is refused for ever";
    176 OutcomeUntold ["P7", "P7"] "a write whose sync or append failed does not say that it may be there all the same";
    177 LogsLetGo ["P1", "R4"] "an ingestion logs how much is durable of logs that the manifest has let go of";
    178 FollowedAhead ["P26", "P26"] "a follower reads on where the log knows more of the manifest than it has read";
    179 CopiedMarks ["P26", "R11"] "a follower's copy has marks of manifests that it does not have";

    // Policies: mutants that only cost.
    180 LevelsUpsideDown ["S1", "S1"] "each level from 3 on holds less than the one above";
    181 FiltersOverMemory ["F2", "F2"] "filters share out four times the memory that there is";
    182 LayersStay ["H1", "H1"] "a HotMap that turns keeps the layer that it retires";

    // Logs.
    183 LeftOutUnsaid ["P23", "P5 P23"] "whole batches behind damage to a log go without a word";

    // Backups.
    184 BackupNotSynced ["P28", "P28"] "what is stored for a backup is not synced";
    185 BackupNameSync ["P28", "P28"] "the names of what is stored for a backup are not synced";
    186 PruneTooMuch ["P28", "P28"] "a prune removes tables that only an older backup needs, which is kept";
    187 BackupSumIgnored ["P28", "R6"] "what a restore copies is not compared with its checksum";
    188 BackupRecordCrc ["P28", "R6"] "the checksum of a backup's record is not compared";
    189 BackupUnpinned ["P28", "R7"] "tables may go while they are copied to a backup";
    190 BackupSourceUnchecked ["P28", "R6"] "what a backup or a checkpoint copies of a table is not checked";

    // The feed of changes.
    191 KeptUnsynced ["P29", "P29"] "a log is kept for the feed of changes and not synced";
    192 DropUnfed ["P29", "P29"] "the drop of a keyspace is not in the feed of changes";
    193 FeedUnwoken ["P29", "P29"] "a write wakes nobody who waits for a change";

    // Backups again.
    194 BackupFoundUnsynced ["P28", "P28"] "a backup relies on names and removals of a killed one that are not durable";

    // Old values in the feed of changes.
    200 OldValueStale ["P29", "P29"] "an old value is that of the snapshot, though the key was put since";
    201 StepUntold ["P29", "P29"] "no snapshot is taken ahead of a consumer of old values";
    202 IngestionKnown ["P29", "P29"] "an old value is given though an ingestion may have replaced it";

    // Kept logs, drops and histories.
    203 KeptRenamedEarly ["P19", "R3"] "an open renames a kept log before its own manifest is in force";
    204 DropUndone ["P29", "P20"] "a drop whose record is durable is undone by a failure behind it";
    205 HistoriesMixed ["P28", "P28"] "a backup has changes since one of a history that a crash took back";
}

#[cfg(test)]
mod tests {
    use super::TABLE;

    #[test]
    fn numbers_ascend() {
        for pair in TABLE.windows(2) {
            assert!(pair[0].number < pair[1].number, "{}", pair[1].name);
            assert_eq!(pair[0].mutant as u32, pair[0].number);
        }
    }

    #[test]
    fn enough_are_historic() {
        assert!(TABLE.iter().filter(|entry| entry.origin.is_some()).count() >= 20);
    }
}
