//! Tests of `store/src/write/batch.rs`, with a whole database.
//!
//! Owns: nothing. Never does: use a real file system or clock.

use crate::{Db, Options, WriteSync};
use windrow_store::write::batch::*;

#[test]
fn a_batch_over_many_keyspaces_writes_each_its_own() {
    const COUNT: usize = 2000;
    let (env, _handles) = windrow_env::testing::env(1);
    let mut options = Options::default();
    options.components.env = Some(env);
    let db = Db::open_with("db", options).unwrap();
    let names: Vec<String> = (0..COUNT).map(|n| format!("ks{n}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let spaces = db.create_keyspaces(&names).unwrap();
    let mut batch = Batch::new();
    // In the second round the batch has forgotten its keyspaces of the first.
    for (round, used) in [COUNT, FEW + 1, FEW, COUNT].into_iter().enumerate() {
        for i in 0..3 * used {
            let n = i * 7 % used;
            batch.put(&spaces[n], format!("{round} {i}"), n.to_string());
        }
        assert_eq!(batch.touched.len(), used);
        for touched in &batch.touched {
            let n = spaces.iter().position(|s| s.keyspace_id() == touched.id).unwrap();
            let own = (0..3 * used).filter(|i| i * 7 % used == n);
            let bytes = own.map(|i| format!("{round} {i}{n}").len()).sum::<usize>();
            assert_eq!((touched.user_bytes, touched.merges), (bytes, false));
        }
        db.write(&mut batch, WriteSync::No).unwrap();
        for i in 0..3 * used {
            let n = i * 7 % used;
            let found = spaces[n].get(format!("{round} {i}")).unwrap();
            assert_eq!(found.as_deref(), Some(n.to_string().as_bytes()));
        }
        batch.clear();
    }
}
