//! The number of times that a short-lived process waits for the device: each sync costs about a
//! millisecond, and each that remains has a rule that needs it.

use windrow::{Db, Options, WriteSync};
use windrow_env::testing::{Handles, env};

const DIR: &str = "/db";

fn syncs(handles: &Handles, work: impl FnOnce()) -> u64 {
    let before = handles.fs.syncs();
    work();
    handles.fs.syncs() - before
}

#[test]
fn a_put_of_a_short_lived_process_syncs_what_rules_ask_for_and_no_more() {
    let (_, handles) = env(1);
    for (session, sync) in [(0, WriteSync::No), (1, WriteSync::No), (2, WriteSync::Yes)] {
        let handles = handles.reborn(session);
        let mut options = Options::default();
        options.components.env = Some(handles.env());
        let mut db = None;
        // R9: the manifest, its name, CURRENT's bytes, its name; R4, R5: the log's
        // header, its name, and the record that names it.
        let open = syncs(&handles, || db = Some(Db::open_with(DIR, options).unwrap()));
        assert_eq!(open, 7, "session {session}");
        let db = db.unwrap();
        let put = syncs(&handles, || {
            db.put_with(format!("key{session}"), "value", sync).unwrap();
            db.wait_idle().unwrap();
        });
        assert_eq!(
            put,
            u64::from(sync == WriteSync::Yes),
            "session {session}: no log is made ahead"
        );
        // R7: the table, its name, the edit; R10, R11: the log of the clean close,
        // its name, and the record that says so.
        let close = syncs(&handles, || db.close().unwrap());
        assert_eq!(close, 6, "session {session}");
        assert_eq!(syncs(&handles, || handles.jobs.discard()), 0);
    }
    let handles = handles.reborn(9);
    let mut options = Options::default();
    options.components.env = Some(handles.env());
    let db = Db::open_with(DIR, options).unwrap();
    assert_eq!(db.iter().count(), 3);
    assert_eq!(syncs(&handles, || db.close().unwrap()), 3, "nothing to flush");
}
