//! Sets of tombstones against lists of them, in memory and through the form on disk.
//!
//! Owns: the cases. Never does: search a list by the code of a set.

use super::*;
use proptest::prelude::*;
use windrow_base::KeyOrder;

const ORDER: KeyOrder = KeyOrder::Bytewise;

fn t(start: &str, end: &str, seq: SeqNo) -> RangeTombstone {
    RangeTombstone { start: start.into(), end: end.into(), seq }
}

fn build(list: &[RangeTombstone]) -> Tombstones {
    Tombstones::build(list.iter().map(RangeTombstone::parts), &ORDER)
}

/// The set as a table writer gets it, read back from the form on disk.
fn written(set: &Tombstones) -> Tombstones {
    let mut collector = Collector::default();
    for layer in set.layers() {
        layer.iter().for_each(|f| collector.add_fragment(&ORDER, f).unwrap());
        collector.end_layer();
    }
    let set = collector.finish();
    let mut bytes = Vec::new();
    set.encode(&mut bytes);
    let layered = set.layers().len() > 1;
    assert!(set.is_empty() || Tombstones::decode(&bytes, &ORDER, !layered).is_ok() != layered);
    for cut in 0..bytes.len() {
        let whole_layers = layered && Tombstones::decode(&bytes[..cut], &ORDER, true).is_ok();
        assert!(whole_layers || Tombstones::decode(&bytes[..cut], &ORDER, layered).is_err());
    }
    if set.is_empty() { set } else { Tombstones::decode(&bytes, &ORDER, layered).unwrap() }
}

#[test]
fn overlaps_are_cut_at_each_others_ends() {
    let f = build(&[t("c", "g", 5), t("a", "e", 9), t("x", "x", 1)]);
    let text = Vec::from_iter(f.fragments().map(|f| {
        let key = |k: &[u8]| String::from_utf8_lossy(k).into_owned();
        format!("{}-{}:{:?}", key(f.start), key(f.end), f.seqs)
    }));
    assert_eq!(text, ["a-c:[9]", "c-e:[9, 5]", "e-g:[5]"]);
    assert_eq!(f.newest_covering(&ORDER, b"d", 8), Some(5));
    assert_eq!(f.newest_covering(&ORDER, b"g", 99), None);
    let within = |f: FragmentRef<'_>| f.within(&ORDER, Some(b"b"), Some(b"d")).map(|f| f.end[0]);
    assert_eq!(Vec::from_iter(f.fragments().filter_map(within)), b"cd");
    assert!(build(&[]).is_empty());
    assert_eq!(Tombstones::empty().memory_bytes(), 0);
}

#[test]
fn nested_tombstones_cost_what_snapshots_tell_apart() {
    let nested = Vec::from_iter((1..=100_000u32).map(|i| (i.to_be_bytes(), u64::from(i))));
    let all = || nested.iter().map(|(end, seq)| (&[][..], &end[..], *seq));
    let f = Tombstones::newest_of_stripes(all().collect(), &ORDER, &[]);
    assert_eq!((f.fragments().count(), f.pairs()), (1, 1));
    // A key is under the tombstones whose numbers are above it.
    let f = Tombstones::newest_of_stripes(all().collect(), &ORDER, &[500, 70_000]);
    let seqs = Vec::from_iter(f.fragments().map(|f| f.seqs.to_vec()));
    assert_eq!(seqs, [vec![100_000, 70_000, 500], vec![100_000, 70_000], vec![100_000]]);
}

/// Nested tombstones with a snapshot between any two: the product of both does not fit in one
/// layer.
#[test]
fn nested_tombstones_with_a_snapshot_each_cost_what_they_number() {
    const N: u64 = 8_000;
    let keys = Vec::from_iter((0..2 * N).map(|i| format!("{i:08}").into_bytes()));
    let at = |seq: u64| ((N - seq) as usize, (N + seq - 1) as usize);
    let all = (1..=N).map(|seq| (&keys[at(seq).0][..], &keys[at(seq).1][..], seq));
    let snapshots = Vec::from_iter(1..N);
    let set = Tombstones::newest_of_stripes(all.collect(), &ORDER, &snapshots);
    assert!(set.pairs() <= 64 * N, "{} pairs", set.pairs());
    assert!(set.memory_bytes() < N as usize * 1024, "{} bytes", set.memory_bytes());
    for (key, max_seq) in [(0, N), (1, N), (N, N), (N, 7), (N + 3, N), (N + 3, 4), (N + 3, 3)] {
        let covers = |&seq: &u64| at(seq).0 as u64 <= key && key < at(seq).1 as u64;
        let expected = (1..=max_seq).rev().find(covers);
        let newest = set.newest_covering(&ORDER, &keys[key as usize], max_seq);
        assert_eq!(newest, expected, "{key} at {max_seq}");
    }
    // A merge takes the original number of tombstones, not the pairs.
    assert_eq!(set.rejoined().len() as u64, N);
    let again = Tombstones::newest_of_stripes(set.rejoined(), &ORDER, &snapshots);
    assert_eq!(again.pairs(), set.pairs());
    let mut bytes = Vec::new();
    set.encode(&mut bytes);
    assert!(bytes.len() < N as usize * 256, "{} bytes on disk", bytes.len());
    assert!(Tombstones::decode(&bytes, &ORDER, true).unwrap().fragments().eq(set.fragments()));
}

#[test]
fn layers_out_of_order_are_damage() {
    let one = |seq| build(&[t("a", "b", seq)]);
    let both = |first: SeqNo, second: SeqNo| {
        let mut bytes = Vec::new();
        one(first).encode(&mut bytes);
        one(second).encode(&mut bytes);
        Tombstones::decode(&bytes, &ORDER, true)
    };
    assert_eq!(both(3, 4).unwrap().pairs(), 2);
    for (first, second) in [(4, 4), (4, 3)] {
        assert!(both(first, second).unwrap_err().is_corruption());
    }
    let mut collector = Collector::default();
    collector.add(&ORDER, (b"a", b"c", 5)).unwrap();
    assert!(collector.add(&ORDER, (b"b", b"d", 4)).is_err(), "overlaps the last fragment");
    collector.end_layer();
    assert!(collector.add(&ORDER, (b"a", b"b", 5)).is_err(), "no newer than the layer before");
    collector.add(&ORDER, (b"a", b"b", 6)).unwrap();
    // A layer that is shared as a whole is checked as well.
    let layer = |seq| one(seq).layers()[0].clone();
    assert!(collector.add_layer(&ORDER, &layer(6)).is_err(), "no newer than the layer before");
    collector.add_layer(&ORDER, &layer(7)).unwrap();
    collector.add(&ORDER, (b"a", b"b", 8)).unwrap();
    assert_eq!(collector.finish().layers().len(), 4);
}

proptest! {
    #[test]
    fn a_stripe_hides_what_all_its_tombstones_hide(
        list in prop::collection::vec((0u8..20, 0u8..20, 1u64..40), 0..30),
        mut snapshots in prop::collection::vec(0u64..42, 0..5),
    ) {
        snapshots.sort_unstable();
        let list = Vec::from_iter(list.into_iter().map(|(a, b, seq)| RangeTombstone {
            start: vec![a],
            end: vec![b],
            seq,
        }));
        let all = build(&list);
        let few = Tombstones::newest_of_stripes(all.rejoined(), &ORDER, &snapshots);
        for key in 0..20 {
            for bound in snapshots.iter().copied().chain([u64::MAX]) {
                let of = |f: &Tombstones| f.newest_covering(&ORDER, &[key], bound);
                prop_assert_eq!(of(&few), of(&all), "{} at {}", key, bound);
            }
        }
        let stripes = snapshots.len() as u64 + 1;
        prop_assert!(few.fragments().all(|f| f.seqs.len() as u64 <= stripes));
    }

    /// Sets of any size and overlap, layered or not, and through the form on disk.
    #[test]
    fn a_set_answers_as_the_list_does(
        list in prop::collection::vec((0u8..60, 0u8..60, 1u64..500), 0..200),
        asked in prop::collection::vec((0u8..60, 0u64..502), 1..40),
    ) {
        let list = Vec::from_iter(list.into_iter().map(|(a, b, seq)| RangeTombstone {
            start: vec![a],
            end: vec![b],
            seq,
        }));
        let set = build(&list);
        let back = written(&set);
        prop_assert!(back.fragments().eq(set.fragments()));
        let rejoined = Tombstones::build(set.rejoined().into_iter(), &ORDER);
        for (key, max_seq) in asked {
            let expected = list
                .iter()
                .filter(|t| t.start[0] <= key && key < t.end[0] && t.seq <= max_seq)
                .map(|t| t.seq)
                .max();
            for set in [&set, &back, &rejoined] {
                prop_assert_eq!(set.newest_covering(&ORDER, &[key], max_seq), expected);
            }
        }
        prop_assert!(set.pairs() <= 64 * list.len() as u64);
    }

    #[test]
    fn fragments_answer_as_the_list_does(
        list in prop::collection::vec((0u8..30, 0u8..30, 1u64..20), 0..20),
        asked in 0u8..30, max_seq in 0u64..22,
    ) {
        let list: Vec<RangeTombstone> = list
            .into_iter()
            .map(|(a, b, seq)| RangeTombstone { start: vec![a], end: vec![b], seq })
            .collect();
        let f = Fragments::build(list.iter().map(RangeTombstone::parts), &ORDER);
        let expected = list
            .iter()
            .filter(|t| t.start[0] <= asked && asked < t.end[0] && t.seq <= max_seq)
            .map(|t| t.seq)
            .max();
        prop_assert_eq!(f.newest_covering(&ORDER, &[asked], max_seq), expected);
        prop_assert!(written(&build(&list)).fragments().eq(f.iter()));
        let mut collector = Collector::default();
        for t in build(&list).to_tombstones() {
            collector.add(&ORDER, t.parts()).unwrap();
        }
        prop_assert!(collector.finish().fragments().eq(f.iter()));
    }
}
