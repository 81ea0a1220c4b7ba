//! Tests of `store/src/tree/keyspace_list.rs`, with a whole database.
//!
//! Owns: nothing. Never does: use a real file system or clock.

use crate::{Db, Options};

#[test]
fn a_list_that_grew_and_shrank_has_all_that_are_there() {
    let (env, _handles) = windrow_env::testing::env(1);
    let mut options = Options::default();
    options.components.env = Some(env);
    let db = Db::open_with("db", options).unwrap();
    let name = |n: u32| format!("ks{n}");
    let made: Vec<_> = (0..600).map(|n| db.keyspace(&name(n)).unwrap()).collect();
    let gone = |n: u32| !n.is_multiple_of(7) && n % 100 > 3;
    (0..600).filter(|&n| gone(n)).for_each(|n| db.drop_keyspace(&name(n)).unwrap());
    let again = db.keyspace(&name(5)).unwrap();
    assert_ne!(again.tree.id, made[5].tree.id);
    for (n, made) in (0..).zip(&made) {
        let found = db.open_keyspace(&name(n)).unwrap().map(|space| space.tree.id);
        let expected = (!gone(n)).then_some(made.tree.id).or((n == 5).then_some(again.tree.id));
        assert_eq!(found, expected, "{n}");
        assert_eq!(db.database().tree(made.tree.id).is_ok(), !gone(n), "{n}");
    }
    let trees = db.database().trees();
    let kept = 1 + (0..600).filter(|&n| !gone(n)).count() + 1;
    assert_eq!(trees.iter().count(), kept);
    assert!(trees.iter().zip(trees.iter().skip(1)).all(|(a, b)| a.id < b.id));
    assert!(
        trees.pieces() <= 4 * kept / windrow_store::tree::keyspace_list::PIECE_MAX + 2,
        "{}",
        trees.pieces()
    );
}
