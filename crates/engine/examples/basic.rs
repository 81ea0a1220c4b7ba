//! The first ten minutes with Windrow: open, put, get, scan, delete, reopen.
//!
//! `cargo run --example basic`

use windrow::{Db, WriteSync};

pub(crate) fn main() -> windrow::Result<()> {
    let path = std::env::temp_dir().join(format!("windrow-basic-{}", std::process::id()));
    let db = Db::open(&path)?; // created where it is not there

    // Keys and values are bytes. Any type that gives bytes will do.
    db.put("apple", "red")?;
    db.put("banana", "yellow")?;
    db.put("cherry", "red")?;
    db.put(b"\x00binary", vec![0xff; 3])?;
    assert_eq!(db.get("apple")?.as_deref(), Some(&b"red"[..]));

    // Absence is not an error.
    assert!(db.get("durian")?.is_none());

    // A put has reached the kernel when it returns: it survives the death of
    // this process. With `WriteSync::Yes` it is on the device: it survives a power cut.
    db.put_with("durian", "thorny", WriteSync::Yes)?;

    // Keys are in order, both ways.
    for item in db.range("a".."c") {
        let (key, value) = item?;
        println!("{} is {}", text(&key), text(&value));
    }
    let last = db.iter().next_back().transpose()?;
    assert_eq!(last.map(|(key, _)| key.to_vec()), Some(b"durian".to_vec()));

    db.delete("apple")?;
    db.delete_range("b", "d")?; // banana and cherry, by one tombstone
    assert!(db.get("banana")?.is_none());

    // A close returns errors; a drop would close too, but without telling them.
    db.close()?;
    let db = Db::open(&path)?;
    assert_eq!(db.get("durian")?.as_deref(), Some(&b"thorny"[..]));
    println!("{}", db.stats());
    db.close()?;
    Db::destroy(&path)
}

fn text(bytes: &[u8]) -> std::borrow::Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}
