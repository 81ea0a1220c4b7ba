//! The scripts that made the databases under damage, in the testkit's text form.
//!
//! Owns: the texts. Never does: run them.

use std::fmt::Write as _;

/// Two keyspaces, several tables in several levels, every kind of entry. A value that is put and
/// deleted again fills the log, so that the flush starts the next one. It consists of zeros, and a
/// sweep damages few of those.
const CONTENTS: &str = "
keyspace sum operator:add
put a 1
put b w*300
put c 3
put d 4
merge @sum m i:1
put @sum n i:40
put_ttl e soon 3600000
put_ttl f late 36000000000
put bc \\x00*33000
delete bc
compact
put c 33
put g x*700
delete d
merge @sum m i:2
merge @sum n i:2
put dd \\x00*33000
delete dd
flush
clock +7200000
delete_range b..bb
put b again
put h y*900
single_delete g
put i 9
put hh \\x00*33000
delete hh
flush
merge @sum m i:4
delete_range @sum x..z
put j 10
put jj \\x00*33000
delete jj
flush
put k 11
delete a
merge @sum o i:7
put l \\x00\\xff
put kk \\x00*33000
delete kk
flush
put m 12
";

/// Keys of the large script: so long that the index of their table is cut into partitions if those
/// may be small.
const LARGE_KEYS: u64 = 160;

/// The end of a database's session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// By a clean close.
    Closed,
    /// The process dies: all that it wrote stays.
    Killed,
    /// The power fails: everything unsynced is gone.
    PowerLoss,
}

/// A script, and the end of the database's session after it.
#[derive(Clone, Copy, Debug)]
pub struct Script {
    /// Its name in messages.
    pub name: &'static str,
    /// Whether the contents before `tail`, which every image has, are many times longer.
    large: bool,
    /// Its last operations.
    tail: &'static str,
    /// The end of its session.
    pub ending: Ending,
}

impl Script {
    /// Returns the operations.
    pub fn text(&self) -> String {
        let mut text = CONTENTS.to_owned();
        if self.large {
            for key in 0..LARGE_KEYS {
                let place = key * 7919 % 10_000;
                let _ = writeln!(text, "put {place:04}{}{key} v{key}-*40", "k".repeat(60));
            }
            text.push_str("flush\n");
        }
        text + self.tail
    }

    /// Returns the script with many long keys, for small partitions.
    #[must_use]
    pub fn enlarged(self) -> Script {
        Script { large: true, ..self }
    }
}

/// Ends by a clean close.
pub const CLOSED: Script =
    Script { name: "closed", large: false, tail: "", ending: Ending::Closed };

/// Several sync groups in the active log.
const GROUPS: &str = "
put p 1 sync
put q 2
put r 3 sync
merge @sum m i:8 sync
put a back
delete j sync
put s last sync
";

/// Several sync groups, with records behind the last sync.
const UNSYNCED: &str = "
put p 1 sync
put q 2 sync
merge @sum m i:8
put s last
";

/// An older log is kept for a keyspace that was not flushed; both have synced records.
const TWO_LOGS: &str = "
put @sum p i:1 sync
put p 1 sync
merge @sum p i:2
put q 2 sync
put pp \\x00*33000
delete pp
flush @default
put r 3
put s last sync
";

/// An older log is kept, and the active one is empty.
const ROTATED: &str = "
put @sum p i:1 sync
put p 1 sync
put q 2 sync
put pp \\x00*33000
delete pp
flush @default
";

/// A keyspace was made and one was dropped, and nothing was written since.
const KEYSPACES: &str = "
keyspace gone
put @gone x 1 sync
put p 1 sync
keyspace late
drop gone
";

/// The active log is empty.
const FLUSHED: &str = "
put mm \\x00*33000
delete mm
flush
";

/// Ends by crashes.
pub const CRASHES: &[Script] = &[
    crashed("groups", GROUPS, Ending::PowerLoss),
    crashed("unsynced", UNSYNCED, Ending::Killed),
    crashed("two logs", TWO_LOGS, Ending::PowerLoss),
    crashed("rotated", ROTATED, Ending::PowerLoss),
    crashed("keyspaces", KEYSPACES, Ending::PowerLoss),
    crashed("flushed", FLUSHED, Ending::Killed),
];

const fn crashed(name: &'static str, tail: &'static str, ending: Ending) -> Script {
    Script { name, large: false, tail, ending }
}
