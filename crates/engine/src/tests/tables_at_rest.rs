//! Tests of `recover/src/measure/tables_at_rest.rs`, with a whole database.
//!
//! Owns: nothing. Never does: use a real file system or clock.

use crate::Db;

#[test]
fn what_is_in_tables_and_memtables_is_counted() {
    let (db, _handles) = Db::in_memory();
    let other = db.keyspace("other").unwrap();
    for number in 0..1_000u32 {
        db.put(format!("{number:06}"), [b'v'; 100]).unwrap();
    }
    db.flush().unwrap();
    (0..10u32).for_each(|number| db.delete(format!("{number:06}")).unwrap());
    db.delete_range("000100", "000200").unwrap();
    db.flush().unwrap();
    other.put("key", "value").unwrap();
    let at_rest = db.at_rest().unwrap();
    let names: Vec<&str> = at_rest.iter().map(|keyspace| keyspace.name.as_str()).collect();
    assert_eq!(names, ["default", "other"]);
    let tables = at_rest[0].tables();
    let counts = (tables.entries, tables.tombstones, tables.range_tombstones);
    assert_eq!(counts, (1_010, 10, 1));
    assert_eq!(tables.key_bytes, 1_010 * (6 + 8));
    assert_eq!(tables.value_bytes, 1_000 * 100);
    assert!(tables.data_bytes < tables.bytes && tables.compression_ratio() > 1.0, "{tables:?}");
    assert_eq!((at_rest[0].memtable_entries, at_rest[1].memtable_entries), (0, 1));
    assert_eq!(at_rest[1].tables().tables, 0);
    db.compact().unwrap();
    let merged = db.at_rest().unwrap()[0].tables();
    assert_eq!((merged.entries, merged.tombstones, merged.range_tombstones), (890, 0, 0));
    let of_version: u64 =
        crate::inspect::trees(&db)[0].1.files().map(|(_, _, file)| file.bytes).sum();
    assert_eq!(merged.bytes, of_version);
}
