//! Tests of the entries that merges drop, on histories written as text.
//!
//! `key seq kind[=value]`, newest first per key; the answer has the same form.
//!
//! Owns: the cases. Never does: write a table, or call the code of a whole merge.

use super::dropper::{DropRules, Dropper, Sink, surviving_tombstones};
use std::cmp::Ordering;
use std::sync::Arc;
use windrow_base::key::{Kind, VALUE_BYTES_MAX, trailer, trailer_kind, trailer_seq};
use windrow_base::{Comparator, KeyOrder, Result};
use windrow_format::tombstone::Tombstones;
use windrow_plan::tree::{OlderFiles, Place, Span, Version};
use windrow_read::operators::{CompactionFilter, FilterDecision, MergeOperator};
use windrow_read::snapshot_list::LiveSnapshots;

/// Longer than a value may be; nobody touches its pages.
fn too_long() -> Vec<u8> {
    vec![0; VALUE_BYTES_MAX + 1]
}

/// Joins operands with dots; combines partially if asked to. `huge` is longer
/// than its parts.
struct Join {
    partial: bool,
}

impl MergeOperator for Join {
    fn name(&self) -> &str {
        "join"
    }

    fn full_merge(&self, _: &[u8], base: Option<&[u8]>, operands: &[&[u8]]) -> Option<Vec<u8>> {
        if operands.contains(&&b"huge"[..]) {
            return Some(too_long());
        }
        let mut parts: Vec<&[u8]> = base.into_iter().collect();
        parts.extend(operands);
        Some(parts.join(&b'.'))
    }

    fn partial_merge(&self, _: &[u8], operands: &[&[u8]]) -> Option<Vec<u8>> {
        let is_huge = operands[1..].contains(&&b"huge"[..]);
        let joined = if is_huge { too_long() } else { operands.join(&b'.') };
        self.partial.then_some(joined)
    }
}

struct DropX;

impl CompactionFilter for DropX {
    fn name(&self) -> &str {
        "drop-x"
    }

    fn filter(&self, _: u32, _: &[u8], value: &[u8]) -> FilterDecision {
        match value {
            b"x" => FilterDecision::Remove,
            b"c" => FilterDecision::Change(b"changed".to_vec()),
            b"huge" => FilterDecision::Change(too_long()),
            _ => FilterDecision::Keep,
        }
    }
}

/// Treats keys that differ in case as equal.
struct CaseBlind;

impl Comparator for CaseBlind {
    fn id(&self) -> &str {
        "case-blind"
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        a.to_ascii_lowercase().cmp(&b.to_ascii_lowercase())
    }

    fn equality_is_bytewise(&self) -> bool {
        false
    }
}

#[derive(Default)]
struct KeptEntries(Vec<String>, Vec<bool>);

impl Sink for KeptEntries {
    fn keep(&mut self, user_key: &[u8], t: u64, value: &[u8], first: bool) -> Result<()> {
        let kind = Kind::from_u8(trailer_kind(t))?;
        let name = match kind {
            Kind::Put | Kind::PutExpiry => "put",
            Kind::Merge | Kind::MergeExpiry => "merge",
            Kind::SingleDelete => "single",
            _ => "delete",
        };
        let value = if kind.has_expiry() { &value[8..] } else { value };
        let key = String::from_utf8_lossy(user_key);
        let value = String::from_utf8_lossy(value);
        let eq = if value.is_empty() { "" } else { "=" };
        self.0.push(format!("{key} {} {name}{eq}{value}", trailer_seq(t)));
        self.1.push(first);
        Ok(())
    }
}

/// The tables outside the job, the held snapshots, and the options of a case.
#[derive(Default)]
struct Setting {
    snapshots: Vec<u64>,
    /// Whether nothing outside may hold any key.
    bottom: bool,
    partial: bool,
    filter: bool,
    case_blind: bool,
    ranges: Vec<(&'static str, &'static str, u64)>,
}

fn fragments(setting: &Setting) -> Tombstones {
    let ranges = setting.ranges.iter();
    let parts = ranges.map(|&(start, end, seq)| (start.as_bytes(), end.as_bytes(), seq));
    Tombstones::build(parts, &KeyOrder::Bytewise)
}

/// An `OlderFiles` that holds nothing.
fn nothing_outside() -> OlderFiles {
    let version = Version::empty(KeyOrder::Bytewise);
    let everywhere = Span::closed(b"", b"~");
    OlderFiles::below(&version, Place::run(1), &everywhere, |_| false)
}

fn dropper(setting: &Setting) -> Dropper {
    dropper_with(setting, Arc::new(Join { partial: setting.partial }))
}

fn dropper_with(setting: &Setting, operator: Arc<dyn MergeOperator>) -> Dropper {
    let order = match setting.case_blind {
        true => KeyOrder::Custom(Arc::new(CaseBlind)),
        false => KeyOrder::Bytewise,
    };
    Dropper::new(DropRules {
        order,
        held: LiveSnapshots { seqs: setting.snapshots.clone(), ..LiveSnapshots::default() },
        tombstones: fragments(setting),
        outside: setting.bottom.then(nothing_outside),
        operator: Some(operator),
        filter: setting.filter.then(|| Arc::new(DropX) as Arc<dyn CompactionFilter>),
        judge_ms: 1000,
        output_level: 1,
    })
}

fn check(setting: Setting, input: &[&str], expected: &[&str]) {
    let mut dropper = dropper(&setting);
    let mut kept = KeptEntries::default();
    for line in input {
        let words: Vec<&str> = line.split(' ').collect();
        let (name, value) = words[2].split_once('=').unwrap_or((words[2], ""));
        let mut stored = value.as_bytes().to_vec();
        let kind = match name {
            "put" => Kind::Put,
            "merge" => Kind::Merge,
            "single" => Kind::SingleDelete,
            "delete" => Kind::Delete,
            "old" | "fresh" => {
                let expiry: u64 = if name == "old" { 1000 } else { 1001 };
                stored.splice(0..0, expiry.to_le_bytes());
                Kind::PutExpiry
            }
            "lasting" => {
                stored.splice(0..0, 1001u64.to_le_bytes());
                Kind::MergeExpiry
            }
            other => panic!("kind {other}"),
        };
        let t = trailer(words[1].parse().unwrap(), kind);
        dropper.push(words[0].as_bytes(), t, &stored, &mut kept).unwrap();
    }
    let count = dropper.finish(&mut kept).unwrap();
    assert_eq!(kept.0, expected, "input {input:?}");
    assert_eq!((count.seen, count.kept), (input.len() as u64, expected.len() as u64));
    let key_of = |line: &String| line.split(' ').next().unwrap_or_default().to_owned();
    let firsts: Vec<String> = kept.0.iter().map(key_of).collect();
    let same = |a: &str, b: &str| a == b || setting.case_blind && a.eq_ignore_ascii_case(b);
    let begins = |i: usize| i == 0 || !same(&firsts[i], &firsts[i - 1]);
    assert!((0..kept.1.len()).all(|i| kept.1[i] == begins(i)), "first marks of {:?}", kept.0);
}

#[test]
fn keys_that_descend_are_corruption_even_where_all_are_dropped() {
    for kind in [Kind::Delete, Kind::Merge, Kind::Put] {
        let mut dropper = dropper(&Setting { bottom: true, ..Default::default() });
        let mut kept = KeptEntries::default();
        dropper.push(b"b", trailer(9, kind), b"", &mut kept).unwrap();
        let error = dropper.push(b"a", trailer(5, kind), b"", &mut kept).unwrap_err();
        assert!(error.is_corruption(), "{kind:?}: {error}");
    }
}

#[test]
fn only_the_newest_of_a_stripe_stays() {
    let input = ["a 9 put=3", "a 5 put=2", "a 2 put=1", "b 4 delete", "b 3 put=x"];
    check(Setting::default(), &input, &["a 9 put=3", "b 4 delete"]);
    let held = Setting { snapshots: vec![5], ..Default::default() };
    check(held, &input, &["a 9 put=3", "a 5 put=2", "b 4 delete"]);
    let held = Setting { snapshots: vec![2, 3, 8], ..Default::default() };
    check(held, &input, &["a 9 put=3", "a 5 put=2", "a 2 put=1", "b 4 delete", "b 3 put=x"]);
}

#[test]
fn tombstones_go_only_at_the_bottom_and_below_all_snapshots() {
    let bottom = || Setting { bottom: true, ..Default::default() };
    check(bottom(), &["a 9 delete", "a 5 put=2"], &[]);
    check(
        Setting { snapshots: vec![7], ..bottom() },
        &["a 9 delete", "a 5 put=2"],
        &["a 9 delete", "a 5 put=2"],
    );
    check(Setting { snapshots: vec![20], ..bottom() }, &["a 9 delete", "a 5 put=2"], &[]);
    check(bottom(), &["a 9 old=1", "a 5 put=2", "b 3 fresh=2"], &["b 3 put=2"]);
    check(Setting::default(), &["a 9 old=1", "a 5 put=2"], &["a 9 delete"]);
}

#[test]
fn operands_are_resolved_where_their_base_is_known() {
    let input = ["a 9 merge=z", "a 8 merge=y", "a 5 put=x", "a 4 put=w"];
    check(Setting::default(), &input, &["a 9 put=x.y.z"]);
    let deleted = ["a 9 merge=z", "a 8 merge=y", "a 5 delete", "a 4 put=w"];
    check(Setting::default(), &deleted, &["a 9 put=y.z"]);
    let bare = ["a 9 merge=z", "a 8 merge=y"];
    check(Setting::default(), &bare, &["a 9 merge=z", "a 8 merge=y"]);
    check(Setting { partial: true, ..Default::default() }, &bare, &["a 9 merge=y.z"]);
    check(Setting { bottom: true, ..Default::default() }, &bare, &["a 9 put=y.z"]);
}

/// Tells how many operands it is given.
struct Number;

impl MergeOperator for Number {
    fn name(&self) -> &str {
        "number"
    }

    fn full_merge(&self, _: &[u8], _: Option<&[u8]>, _: &[&[u8]]) -> Option<Vec<u8>> {
        None
    }

    fn partial_merge(&self, _: &[u8], operands: &[&[u8]]) -> Option<Vec<u8>> {
        Some(operands.len().to_string().into_bytes())
    }
}

#[test]
fn operands_of_a_stripe_are_combined_in_one_call() {
    let setting = Setting { snapshots: vec![7], ..Default::default() };
    let mut dropper = dropper_with(&setting, Arc::new(Number));
    let mut kept = KeptEntries::default();
    for seq in (5..=100).rev() {
        dropper.push(b"a", trailer(seq, Kind::Merge), b"x", &mut kept).unwrap();
    }
    dropper.finish(&mut kept).unwrap();
    assert_eq!(kept.0, ["a 100 merge=93", "a 7 merge=3"]);
}

/// Operands that cannot be resolved stay. A tombstone kept under them at the bottom, where it
/// hides nothing, was reason enough to rewrite its table, again and again.
#[test]
fn a_tombstone_under_operands_that_stay_goes_as_others_do() {
    let input = ["a 9 lasting=z", "a 8 merge=y", "a 5 delete", "a 4 put=w"];
    let kept = ["a 9 merge=z", "a 8 merge=y"];
    check(Setting { bottom: true, ..Default::default() }, &input, &kept);
    let below = [&kept[..], &["a 5 delete"]].concat();
    check(Setting::default(), &input, &below);
    let seen = Setting { snapshots: vec![4], bottom: true, ..Default::default() };
    check(seen, &input, &[&below[..], &["a 4 put=w"]].concat());
    let newer = ["a 9 lasting=z", "a 8 merge=y", "a 5 old=x", "a 4 put=w"];
    check(Setting { bottom: true, ..Default::default() }, &newer, &kept);
}

#[test]
fn operands_are_never_combined_across_a_snapshot() {
    let input = ["a 9 merge=z", "a 8 merge=y", "a 5 merge=x", "a 4 put=w"];
    let held = |partial| Setting { snapshots: vec![6], partial, ..Default::default() };
    check(held(false), &input, &["a 9 merge=z", "a 8 merge=y", "a 5 put=w.x"]);
    check(held(true), &input, &["a 9 merge=y.z", "a 5 put=w.x"]);
    let held = Setting { snapshots: vec![4], bottom: true, ..Default::default() };
    check(held, &["a 9 merge=z", "a 4 put=w"], &["a 9 merge=z", "a 4 put=w"]);
}

#[test]
fn expiring_entries_are_not_combined() {
    let input = ["a 9 merge=z", "a 5 fresh=x", "a 4 put=w"];
    check(Setting::default(), &input, &["a 9 merge=z", "a 5 put=x"]);
    check(Setting::default(), &["a 9 merge=z", "a 5 old=x", "a 4 put=w"], &["a 9 put=z"]);
}

#[test]
fn what_stays_keeps_the_bytes_of_its_own_key() {
    let blind = |snapshots: Vec<u64>, partial| Setting {
        snapshots,
        partial,
        case_blind: true,
        ..Default::default()
    };
    let puts = ["ab 9 put=3", "Ab 5 put=2", "aB 2 put=1", "b 4 delete", "B 3 put=x"];
    check(blind(vec![], false), &puts, &["ab 9 put=3", "b 4 delete"]);
    check(blind(vec![2, 3, 8], false), &puts, &puts);
    // Operands that wait are spelt as the newest of them, not as the key's newest entry.
    let operands = ["ab 9 put=z", "aB 7 merge=y", "Ab 6 merge=x", "AB 4 put=w"];
    check(blind(vec![8], false), &operands, &["ab 9 put=z", "aB 7 put=w.x.y"]);
    check(blind(vec![5, 8], false), &operands, &operands);
    let combined = ["ab 9 put=z", "aB 7 merge=x.y", "AB 4 put=w"];
    check(blind(vec![5, 8], true), &operands, &combined);
    let to_nothing = Setting { bottom: true, ..blind(vec![8], false) };
    check(to_nothing, &operands[..3], &["ab 9 put=z", "aB 7 put=x.y"]);
    let expiring = ["ab 9 merge=z", "AB 5 fresh=x"];
    check(blind(vec![], false), &expiring, &["ab 9 merge=z", "AB 5 put=x"]);
    let single = ["ab 9 single", "AB 5 put=x"];
    check(blind(vec![], false), &single, &[]);
    check(blind(vec![7], false), &single, &single);
}

#[test]
fn a_single_delete_takes_its_put_along() {
    let input = ["a 9 single", "a 5 put=x"];
    check(Setting::default(), &input, &[]);
    check(
        Setting { snapshots: vec![7], ..Default::default() },
        &input,
        &["a 9 single", "a 5 put=x"],
    );
    let twice = ["a 9 single", "a 8 put=y", "a 7 single"];
    check(Setting::default(), &twice, &["a 7 single"]);
    let buried = ["a 9 put=y", "a 7 single"];
    check(Setting::default(), &buried, &["a 9 put=y", "a 7 single"]);
    check(Setting { bottom: true, ..Default::default() }, &buried, &["a 9 put=y"]);
    check(Setting::default(), &["a 9 put=y", "a 7 single", "a 5 put=x"], &["a 9 put=y"]);
    check(
        Setting { snapshots: vec![6], ..Default::default() },
        &["a 9 put=y", "a 7 single", "a 5 put=x"],
        &["a 9 put=y", "a 7 single", "a 5 put=x"],
    );
    check(Setting::default(), &["a 9 single"], &["a 9 single"]);
    check(Setting { bottom: true, ..Default::default() }, &["a 9 single"], &[]);
    check(Setting::default(), &["a 9 single", "a 7 merge=y"], &["a 9 delete"]);
    check(Setting::default(), &["a 9 single", "a 7 delete", "a 5 put=x"], &["a 9 delete"]);
}

#[test]
fn range_tombstones_hide_what_is_older_in_their_stripe() {
    let ranged = |snapshots: Vec<u64>| Setting {
        snapshots,
        ranges: vec![("a", "c", 7)],
        ..Default::default()
    };
    let input = ["a 9 put=n", "a 5 put=o", "b 6 put=p", "c 5 put=q"];
    check(ranged(vec![]), &input, &["a 9 put=n", "c 5 put=q"]);
    check(ranged(vec![6]), &input, &["a 9 put=n", "a 5 put=o", "b 6 put=p", "c 5 put=q"]);
    check(ranged(vec![]), &["a 9 merge=y", "a 5 put=o"], &["a 9 put=y"]);
}

#[test]
fn what_no_table_would_take_stays_in_parts() {
    let parts = ["k 5 merge=huge", "k 4 merge=a", "k 3 put=b"];
    check(Setting { bottom: true, ..Default::default() }, &parts, &parts);
    let open_end = ["k 5 merge=huge", "k 4 merge=a"];
    check(Setting { bottom: true, ..Default::default() }, &open_end, &open_end);
    check(Setting { partial: true, ..Default::default() }, &open_end, &open_end);
    let deleted = ["k 5 merge=huge", "k 4 merge=a", "k 3 delete"];
    check(Setting { bottom: true, ..Default::default() }, &deleted, &open_end);
    check(Setting::default(), &deleted, &deleted);
    let changed = ["k 5 put=huge"];
    check(Setting { filter: true, ..Default::default() }, &changed, &changed);
}

#[test]
fn the_filter_sees_only_what_no_snapshot_sees() {
    let filtered = |bottom, snapshots: Vec<u64>| Setting {
        filter: true,
        bottom,
        snapshots,
        ..Default::default()
    };
    let input = ["a 9 put=x", "b 5 put=c", "c 3 put=k"];
    check(filtered(false, vec![]), &input, &["a 9 delete", "b 5 put=changed", "c 3 put=k"]);
    check(filtered(true, vec![]), &input, &["b 5 put=changed", "c 3 put=k"]);
    check(filtered(true, vec![9]), &input, &input);
}

#[test]
fn range_tombstones_survive_by_stripe() {
    let setting = Setting { ranges: vec![("a", "c", 9), ("a", "c", 5)], ..Default::default() };
    let survivors = |seqs: Vec<u64>, outside: Option<&OlderFiles>| -> Vec<u64> {
        let held = LiveSnapshots { seqs, ..LiveSnapshots::default() };
        let kept = surviving_tombstones(&fragments(&setting), &held, outside);
        kept.fragments().flat_map(|f| f.seqs.to_vec()).collect()
    };
    assert_eq!(survivors(vec![], None), [9]);
    assert_eq!(survivors(vec![6], None), [9, 5]);
    let bottom = nothing_outside();
    assert_eq!(survivors(vec![], Some(&bottom)), [0; 0]);
    assert_eq!(survivors(vec![6], Some(&bottom)), [9]);
}
