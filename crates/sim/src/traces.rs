//! The traces of a seed's run by which two builds of the engine are compared: hashes of every event
//! that the database reported, and of the bytes in its directory at the end of each session.
//!
//! Owns: the two hashes. Never does: judge; a rebuilt engine without intended changes must have the
//! same hashes (`fault --hashes`, `xtask same`).

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;
use std::sync::Arc;
use windrow::{Event, EventListener};
use windrow_env::sync::{Mutex, Rank};
use windrow_env::testing::CrashFs;
use windrow_testkit::world::DIR;

/// Hashes of a run. Clones share them.
#[derive(Clone)]
pub struct Traces {
    events: Arc<Mutex<DefaultHasher>>,
    files: Arc<Mutex<DefaultHasher>>,
}

impl Default for Traces {
    fn default() -> Traces {
        // An event may be reported under any lock. Files are read while their hasher is locked.
        let events = Mutex::new(Rank::INNERMOST, DefaultHasher::default());
        let files = Mutex::new(Rank::OUTERMOST, DefaultHasher::default());
        Traces { events: Arc::new(events), files: Arc::new(files) }
    }
}

impl Traces {
    /// Returns a listener that hashes every event, as text.
    pub fn listener(&self) -> Arc<dyn EventListener> {
        let events = Arc::clone(&self.events);
        Arc::new(move |event: &Event| event.to_string().hash(&mut *events.lock()))
    }

    /// Hashes names and bytes of the database's files as processes see them now.
    pub fn note_files(&self, fs: &CrashFs) {
        let mut hasher = self.files.lock();
        let dir = Path::new(DIR);
        for name in fs.files(dir) {
            fs.read_file(&dir.join(&name)).hash(&mut *hasher);
            name.hash(&mut *hasher);
        }
    }

    /// Returns the hashes of events and of files.
    pub fn hashes(&self) -> (u64, u64) {
        let events = self.events.lock().finish();
        (events, self.files.lock().finish())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windrow::{Db, Options};
    use windrow_env::testing::env;

    fn trace(value: &str, flush: bool) -> (u64, u64) {
        let (env, handles) = env(1);
        let traces = Traces::default();
        let mut options = Options::default();
        options.components.env = Some(env);
        options.components.listener = Some(traces.listener());
        let db = Db::open_with(DIR, options).unwrap();
        db.put("key", value).unwrap();
        if flush {
            db.flush().unwrap();
        }
        traces.note_files(&handles.fs);
        traces.hashes()
    }

    #[test]
    fn a_byte_and_an_event_make_a_difference_and_nothing_else_does() {
        let (events, files) = trace("value", false);
        assert_eq!(trace("value", false), (events, files));
        let other_value = trace("walue", false);
        assert!(other_value.0 == events && other_value.1 != files);
        let flushed = trace("value", true);
        assert!(flushed.0 != events && flushed.1 != files);
    }
}
