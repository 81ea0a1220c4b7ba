//! `use windrow::*` hides no name of the standard prelude.

use windrow::*;

struct Counted(Vec<u64>);

impl Drop for Counted {
    fn drop(&mut self) {}
}

fn shared<T: Clone + Send + Sync + 'static>(of: T) -> Box<dyn Fn() -> T + Send + Sync> {
    Box::new(move || of.clone())
}

fn fails(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("`{text}` is not a number"))
}

fn opens() -> Result<Option<Slice>> {
    let dir = tempfile::tempdir().expect("a directory");
    let db = Db::open(dir.path())?;
    let mut batch = Batch::new();
    batch.put(&db, "key", "value");
    db.write(batch, WriteSync::Yes)?;
    db.get("key")
}

#[test]
fn a_glob_import_leaves_the_prelude_as_it_is() {
    assert_eq!(shared(String::from("a"))(), "a");
    assert_eq!((fails("7"), fails("x").is_err()), (Ok(7), true));
    assert_eq!(opens().unwrap().as_deref(), Some(&b"value"[..]));
    let total: u64 = Counted(vec![1, 2]).0.iter().sum();
    assert_eq!(total, 3);
}
