//! Every kind of bound of `range`, in both orders. The corpus has half-open
//! spans only.

use std::ops::Bound::{self, Excluded, Included, Unbounded};
use windrow::{Db, KeyspaceOptions};
use windrow_testkit::model::REVERSE_ID;
use windrow_testkit::variant::VARIANTS;
use windrow_testkit::world::World;

const KEYS: [&str; 6] = ["a", "b", "b\0", "ba", "c", "d"];
const ENDS: [&str; 5] = ["", "b", "b\0", "bb", "d"];

fn bounds() -> Vec<Bound<&'static str>> {
    let ends = ENDS.iter().flat_map(|end| [Included(*end), Excluded(*end)]);
    ends.chain([Unbounded]).collect()
}

fn check(reverse: bool, flushed: bool) {
    let variant = &VARIANTS[0];
    let world = World::new(variant.ground, 1);
    let mut options = variant.options().expect("options");
    options.components.env = Some(world.env());
    let db = Db::open_with(world.dir(), options).expect("open");
    let comparator = reverse.then(|| REVERSE_ID.to_owned());
    let keyspace = KeyspaceOptions { comparator, ..KeyspaceOptions::default() };
    let keyspace = db.keyspace_with("k", keyspace).expect("keyspace");
    for key in KEYS {
        keyspace.put(key, key).expect("put");
    }
    if flushed {
        keyspace.flush().expect("flush");
    }
    let position = |key: &str, other: &str| {
        let order = key.cmp(other);
        if reverse { order.reverse() } else { order }
    };
    let within = |key: &str, lower: Bound<&str>, upper: Bound<&str>| {
        let after = match lower {
            Included(end) => position(key, end).is_ge(),
            Excluded(end) => position(key, end).is_gt(),
            Unbounded => true,
        };
        after
            && match upper {
                Included(end) => position(key, end).is_le(),
                Excluded(end) => position(key, end).is_lt(),
                Unbounded => true,
            }
    };
    for lower in bounds() {
        for upper in bounds() {
            let mut want: Vec<&str> =
                KEYS.into_iter().filter(|key| within(key, lower, upper)).collect();
            want.sort_by(|a, b| position(a, b));
            let read = |item: windrow_base::Result<(windrow::Slice, windrow::Slice)>| {
                String::from_utf8(item.expect("read").0.to_vec()).expect("text")
            };
            let got: Vec<String> = keyspace.range((lower, upper)).map(read).collect();
            assert_eq!(got, want, "{lower:?} {upper:?}, reverse: {reverse}");
            let mut back: Vec<String> = keyspace.range((lower, upper)).rev().map(read).collect();
            back.reverse();
            assert_eq!(back, want, "backward, {lower:?} {upper:?}, reverse: {reverse}");
        }
    }
}

#[test]
fn every_bound_in_both_orders() {
    for flushed in [false, true] {
        check(false, flushed);
        check(true, flushed);
    }
}
