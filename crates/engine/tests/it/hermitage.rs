//! The anomalies of the Hermitage suite (M. Kleppmann, "Hermitage: Testing the 'I' in ACID"), one
//! by one: a transaction prevents each, since only serialisable transactions commit.

use windrow::{Db, ErrorKind, Result, SeqNo, Transaction};

struct Two {
    db: Db,
    _dir: tempfile::TempDir,
}

impl Two {
    /// Two rows, with keys 1 and 2 and values 10 and 20.
    fn new() -> Two {
        let dir = tempfile::tempdir().unwrap();
        let db = Db::open(dir.path()).unwrap();
        db.put("1", "10").unwrap();
        db.put("2", "20").unwrap();
        Two { db, _dir: dir }
    }

    fn begin(&self) -> Transaction {
        self.db.transaction().unwrap()
    }

    fn get(&self, tx: &Transaction, key: &str) -> String {
        String::from_utf8(tx.get(&self.db, key).unwrap().unwrap().to_vec()).unwrap()
    }

    fn put(&self, tx: &mut Transaction, key: &str, value: &str) {
        tx.put(&self.db, key, value).unwrap();
    }

    /// The keys whose value passes `is_one`.
    fn having(&self, tx: &Transaction, is_one: impl Fn(u32) -> bool) -> Vec<String> {
        let rows = tx.iter(&self.db).unwrap().map(|row| row.unwrap());
        let number = |bytes: &[u8]| std::str::from_utf8(bytes).unwrap().parse::<u32>().unwrap();
        let rows = rows.filter(|(_, value)| is_one(number(value)));
        rows.map(|(key, _)| String::from_utf8(key.to_vec()).unwrap()).collect()
    }

    fn rows(&self) -> String {
        let rows = self.db.iter().map(|row| row.unwrap());
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        rows.map(|(k, v)| format!("{}={}", text(&k), text(&v))).collect::<Vec<_>>().join(" ")
    }
}

fn conflicts(result: Result<SeqNo>) -> bool {
    result.is_err_and(|error| error.kind() == ErrorKind::Conflict)
}

/// Write cycles: both rows are of one transaction.
#[test]
fn g0() {
    let two = Two::new();
    let (mut a, mut b) = (two.begin(), two.begin());
    two.put(&mut a, "1", "11");
    two.put(&mut b, "1", "12");
    two.put(&mut a, "2", "21");
    a.commit().unwrap();
    two.put(&mut b, "2", "22");
    b.commit().unwrap();
    assert_eq!(two.rows(), "1=12 2=22");
}

/// Aborted reads.
#[test]
fn g1a() {
    let two = Two::new();
    let (mut a, b) = (two.begin(), two.begin());
    two.put(&mut a, "1", "101");
    assert_eq!(two.get(&b, "1"), "10");
    drop(a);
    assert_eq!(two.get(&b, "1"), "10");
    b.commit().unwrap();
}

/// Intermediate reads.
#[test]
fn g1b() {
    let two = Two::new();
    let (mut a, b) = (two.begin(), two.begin());
    two.put(&mut a, "1", "101");
    assert_eq!(two.get(&b, "1"), "10");
    two.put(&mut a, "1", "11");
    a.commit().unwrap();
    assert_eq!(two.get(&b, "1"), "10");
    b.commit().unwrap();
}

/// Circular information flow.
#[test]
fn g1c() {
    let two = Two::new();
    let (mut a, mut b) = (two.begin(), two.begin());
    two.put(&mut a, "1", "11");
    two.put(&mut b, "2", "22");
    assert_eq!(two.get(&a, "2"), "20");
    assert_eq!(two.get(&b, "1"), "10");
    a.commit().unwrap();
    assert!(conflicts(b.commit()));
}

/// Observed transaction vanishes.
#[test]
fn otv() {
    let two = Two::new();
    let (mut a, mut b, c) = (two.begin(), two.begin(), two.begin());
    two.put(&mut a, "1", "11");
    two.put(&mut a, "2", "19");
    two.put(&mut b, "1", "12");
    a.commit().unwrap();
    assert_eq!(two.get(&c, "1"), "10");
    two.put(&mut b, "2", "18");
    b.commit().unwrap();
    assert_eq!((two.get(&c, "2"), two.get(&c, "1")), ("20".into(), "10".into()));
    c.commit().unwrap();
}

/// Predicate-many-preceders: a predicate that is read twice, and one that is written by.
#[test]
fn pmp() {
    let two = Two::new();
    let (a, mut b) = (two.begin(), two.begin());
    assert!(two.having(&a, |value| value == 30).is_empty());
    two.put(&mut b, "3", "30");
    b.commit().unwrap();
    assert!(two.having(&a, |value| value % 3 == 0).is_empty());
    a.commit().unwrap();

    let two = Two::new();
    let (mut a, mut b) = (two.begin(), two.begin());
    for row in two.having(&a, |_| true) {
        let more = two.get(&a, &row).parse::<u32>().unwrap() + 10;
        two.put(&mut a, &row, &more.to_string());
    }
    for row in two.having(&b, |value| value == 20) {
        b.delete(&two.db, row).unwrap();
    }
    a.commit().unwrap();
    assert!(conflicts(b.commit()));
    assert_eq!(two.rows(), "1=20 2=30");
}

/// Lost update.
#[test]
fn p4() {
    let two = Two::new();
    let (mut a, mut b) = (two.begin(), two.begin());
    assert_eq!(two.get(&a, "1"), two.get(&b, "1"));
    two.put(&mut a, "1", "11");
    two.put(&mut b, "1", "11");
    a.commit().unwrap();
    assert!(conflicts(b.commit()));
}

/// Single anti-dependency cycles (read skew): by rows, by predicates, and before a write.
#[test]
fn g_single() {
    let two = Two::new();
    let (a, mut b) = (two.begin(), two.begin());
    assert_eq!(two.get(&a, "1"), "10");
    assert_eq!((two.get(&b, "1"), two.get(&b, "2")), ("10".into(), "20".into()));
    two.put(&mut b, "1", "12");
    two.put(&mut b, "2", "18");
    b.commit().unwrap();
    assert_eq!(two.get(&a, "2"), "20");
    a.commit().unwrap();

    let two = Two::new();
    let (a, mut b) = (two.begin(), two.begin());
    assert_eq!(two.having(&a, |value| value % 5 == 0).len(), 2);
    two.put(&mut b, "1", "12");
    b.commit().unwrap();
    assert!(two.having(&a, |value| value % 3 == 0).is_empty());
    a.commit().unwrap();

    let two = Two::new();
    let (mut a, mut b) = (two.begin(), two.begin());
    assert_eq!(two.get(&a, "1"), "10");
    two.put(&mut b, "1", "12");
    two.put(&mut b, "2", "18");
    b.commit().unwrap();
    for row in two.having(&a, |value| value == 20) {
        a.delete(&two.db, row).unwrap();
    }
    assert!(conflicts(a.commit()));
}

/// Item anti-dependency cycles (write skew).
#[test]
fn g2_item() {
    let two = Two::new();
    let (mut a, mut b) = (two.begin(), two.begin());
    assert_eq!((two.get(&a, "1"), two.get(&a, "2")), (two.get(&b, "1"), two.get(&b, "2")));
    two.put(&mut a, "1", "11");
    two.put(&mut b, "2", "21");
    a.commit().unwrap();
    assert!(conflicts(b.commit()));
    assert_eq!(two.rows(), "1=11 2=20");
}

/// Anti-dependency cycles by predicates, of two transactions and of two edges.
#[test]
fn g2() {
    let two = Two::new();
    let (mut a, mut b) = (two.begin(), two.begin());
    assert!(two.having(&a, |value| value % 3 == 0).is_empty());
    assert!(two.having(&b, |value| value % 3 == 0).is_empty());
    two.put(&mut a, "3", "30");
    two.put(&mut b, "4", "42");
    a.commit().unwrap();
    assert!(conflicts(b.commit()));

    let two = Two::new();
    let mut a = two.begin();
    assert_eq!(two.having(&a, |_| true).len(), 2);
    let mut b = two.begin();
    let more = two.get(&b, "2").parse::<u32>().unwrap() + 5;
    two.put(&mut b, "2", &more.to_string());
    b.commit().unwrap();
    let c = two.begin();
    assert_eq!(two.having(&c, |_| true).len(), 2);
    c.commit().unwrap();
    two.put(&mut a, "1", "0");
    assert!(conflicts(a.commit()));
}
