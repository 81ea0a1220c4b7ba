//! The feed of a database that another process has open.
//!
//! It has what the follower has read, up to its last refresh, and refreshes it when all of that was
//! handed out. No lease keeps a log for it: one that is gone is an error, as in the writer's process.
//!
//! The drop of a keyspace has the last number that was given out before its record is written to the
//! manifest. Writes go on while that record is synced, and the log has nothing of the drop until the
//! first write behind that, whose mark names the manifest's new length. The writer's feed waits; a
//! follower cannot tell these writes from others, and hands them out before the drop, which it then
//! gives late. A consumer that ends in these few ms, and begins again behind such a write, is taken for
//! one that has had the drop. Rejected: to hand out recent drops again, since the name may be that of
//! another keyspace by now; to wait for a mark, which may never come; to have writers wait.
//!
//! Owns: the time between two looks. Never does: read what the follower has not.

use super::feed::ChangeSource;
use super::log_list::{LogList, taken_back};
use super::of_db::of_state;
use crate::checkpoint::Followed;
use crate::snapshot::Snapshot;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::task::Waker;
use windrow_base::{Error, KeyspaceId, Result, SeqNo};
use windrow_env::Env;
use windrow_env::sync::Mutex;
use windrow_read::lock_ranks;
use windrow_recover::handle::Handle;
use windrow_store::manifest::state::KeyspaceState;
use windrow_store::write::write_steps::StepWatcher;

/// The time after which a follower looks again for a consumer that waits, in ms.
const LOOK_MS: u64 = 10;

/// A follower, by what it has read.
pub(crate) trait FollowedLogs: Send {
    /// Reads on.
    fn read_on(&self) -> Result<()>;

    /// Calls `look` with what it has read.
    fn look(&self, look: &mut dyn FnMut(&Followed<'_>)) -> Result<()>;

    /// The database as of what it has read.
    fn shown(&self) -> Handle;
}

/// A follower as the source of changes.
pub(super) struct OfFollower {
    follower: Box<dyn FollowedLogs>,
    env: Env,
    dir: PathBuf,
    names: BTreeMap<KeyspaceId, Arc<str>>,
}

impl OfFollower {
    pub(super) fn new(follower: Box<dyn FollowedLogs>, env: Env, dir: PathBuf) -> OfFollower {
        OfFollower { follower, env, dir, names: BTreeMap::new() }
    }

    /// The logs as the last refresh has read them.
    fn shown(&mut self) -> Result<LogList> {
        let OfFollower { follower, names, .. } = self;
        let mut list = LogList::default();
        follower.look(&mut |followed| {
            let Followed { state, last_seq, log_end, .. } = followed;
            let name =
                |(id, keyspace): (&KeyspaceId, &KeyspaceState)| (*id, keyspace.record.name.clone());
            *names = state.keyspaces.iter().map(name).collect();
            list = of_state(state, *last_seq, Some(log_end.unwrap_or((0, 0))));
        })?;
        Ok(list)
    }
}

impl ChangeSource for OfFollower {
    fn place(&self) -> (&Env, &Path) {
        (&self.env, &self.dir)
    }

    fn list(&mut self, next_seq: SeqNo) -> Result<Option<LogList>> {
        let shown = self.shown();
        if let Ok(list) = shown
            && next_seq <= list.through
        {
            return Ok(Some(list));
        }
        self.follower.read_on()?;
        let list = self.shown()?;
        if list.through + 1 < next_seq {
            return Err(taken_back(next_seq, list.through + 1));
        }
        Ok(Some(list))
    }

    fn name(&self, id: KeyspaceId) -> Option<Arc<str>> {
        self.names.get(&id).cloned()
    }

    fn listen(&self, waker: &Waker) {
        // Once: a consumer that waits on asks again.
        let waker = Mutex::new(lock_ranks::FEED_BELL, Some(waker.clone()));
        let ring = move || {
            let waker = waker.lock().take();
            waker.into_iter().for_each(Waker::wake);
            false
        };
        self.env.jobs.every(LOOK_MS, Arc::new(ring));
    }

    fn now(&self) -> Handle {
        self.follower.shown()
    }

    fn check(&self, snapshot: &Snapshot) -> Result<()> {
        let (database, now) = (&snapshot.inner.database, self.now());
        if (&database.dir, database.database_uid) != (&now.dir, now.database_uid) {
            return Err(Error::invalid("the snapshot is of another database"));
        }
        snapshot.check_of(database)
    }

    /// A follower reads when it is asked, and takes a moment whenever it has.
    fn watch(&self, _watcher: Weak<dyn StepWatcher>) {}
}
