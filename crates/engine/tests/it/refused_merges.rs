//! A merge operator that does not accept the value under its operands: the key has no value, and
//! reads of it return the error. Every other key is unaffected, and merges of tables lose nothing.

use std::sync::Arc;
use windrow::{Db, Error, ErrorKind, Keyspace, KeyspaceOptions, MergeOperator, Options};
use windrow::{ReadOptions, Slice};

/// `a+b+c`; with `wants_digits` it accepts no other base.
struct Plus {
    wants_digits: bool,
}

impl MergeOperator for Plus {
    fn name(&self) -> &str {
        "plus"
    }

    fn full_merge(&self, _: &[u8], base: Option<&[u8]>, operands: &[&[u8]]) -> Option<Vec<u8>> {
        let base = base.unwrap_or(b"0");
        let fits = !self.wants_digits || base.iter().all(u8::is_ascii_digit);
        let parts: Vec<&[u8]> = [base].into_iter().chain(operands.iter().copied()).collect();
        fits.then(|| parts.join(&b'+'))
    }
}

fn open(dir: &std::path::Path, wants_digits: bool) -> (Db, Keyspace) {
    let mut options = Options::default();
    options.components.merge_operators.push(Arc::new(Plus { wants_digits }));
    let db = Db::open_with(dir, options).unwrap();
    let with = KeyspaceOptions { merge_operator: Some("plus".into()), ..Default::default() };
    let sums = db.keyspace_with("sums", with).unwrap();
    (db, sums)
}

/// `b` and `d` are refused, `a` and `c` are not.
fn fill(sums: &Keyspace) {
    for (key, value) in [("a", "1"), ("b", "one"), ("c", "3"), ("d", "four")] {
        sums.put(key, value).unwrap();
    }
    sums.merge("b", "2").unwrap();
    sums.merge("b", "3").unwrap();
    sums.merge("d", "1").unwrap();
}

/// Keys that have a value, and `!` for each that has none.
fn told(items: impl Iterator<Item = Result<(Slice, Slice), Error>>) -> String {
    let told = items.map(|item| match item {
        Ok((key, _)) => String::from_utf8(key.to_vec()).unwrap(),
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::MergeRefused, "{error}");
            "!".to_owned()
        }
    });
    told.collect()
}

#[test]
fn a_refused_merge_is_an_error_of_its_key_alone_and_says_what_heals_it() {
    let dir = tempfile::tempdir().unwrap();
    let (db, sums) = open(dir.path(), true);
    fill(&sums);
    let error = sums.get("b").unwrap_err();
    assert_eq!(
        error.to_string(),
        "merge refused: merge operator `plus` does not take what is stored for key \"b\" (a value \
         of 3 bytes, 2 merged into it): put or delete the key"
    );
    assert_eq!(told(sums.iter()), "a!c!");
    assert_eq!(told(sums.iter().rev()), "!c!a");
    let keys: Vec<Slice> = sums.iter().keys().collect::<Result<_, _>>().unwrap();
    assert_eq!(keys, ["a", "b", "c", "d"], "they are there");
    assert_eq!(sums.count(..).unwrap(), 4);
    assert!(sums.contains_key("b").unwrap());
    assert!(db.verify().unwrap().into_result().is_ok(), "nothing is damaged");
    let mut cursor = sums.cursor(ReadOptions::default());
    let mut refused = Vec::new();
    let mut moved = cursor.seek_first();
    while !matches!(moved, Ok(false)) {
        if moved.is_err() {
            refused.push(cursor.key().to_vec());
            assert!(!cursor.valid() && cursor.value().is_empty() && cursor.status().is_err());
        }
        moved = cursor.next();
    }
    assert_eq!(refused, [b"b", b"d"]);
    sums.put("b", "7").unwrap();
    sums.delete("d").unwrap();
    assert_eq!(told(sums.iter()), "abc");
}

#[test]
fn merges_of_tables_keep_what_the_operator_refuses() {
    for compactions in [0, 1, 3] {
        let dir = tempfile::tempdir().unwrap();
        let (db, sums) = open(dir.path(), true);
        fill(&sums);
        for _ in 0..compactions {
            sums.flush().unwrap();
            db.compact().unwrap();
            sums.merge("b", "4").unwrap();
        }
        assert_eq!(sums.get("b").unwrap_err().kind(), ErrorKind::MergeRefused);
        db.close().unwrap();
        // An operator that accepts any base shows that all operands are still there.
        let (_db, sums) = open(dir.path(), false);
        let all = format!("one+2+3{}", "+4".repeat(compactions));
        assert_eq!(sums.get("b").unwrap().unwrap(), all.as_bytes());
        assert_eq!(sums.get("d").unwrap().unwrap(), "four+1");
    }
}

#[test]
fn a_transaction_sees_past_a_refused_merge_what_it_has_put_itself() {
    let dir = tempfile::tempdir().unwrap();
    let (db, sums) = open(dir.path(), true);
    fill(&sums);
    let mut tx = db.transaction().unwrap();
    assert_eq!(told(tx.range(&sums, ..).unwrap()), "a!c!");
    assert_eq!(told(tx.range(&sums, ..).unwrap().rev()), "!c!a");
    tx.put(&sums, "b", "2").unwrap();
    tx.merge(&sums, "a", "1").unwrap();
    tx.merge(&sums, "d", "1").unwrap();
    assert_eq!(told(tx.range(&sums, ..).unwrap()), "abc!");
    tx.delete(&sums, "d").unwrap();
    assert_eq!(told(tx.range(&sums, ..).unwrap().rev()), "cba");
    tx.commit().unwrap();
    assert_eq!(told(sums.iter()), "abc");
}
