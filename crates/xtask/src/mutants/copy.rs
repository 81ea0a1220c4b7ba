//! A copy of the source, patched.
//!
//! A file that is already right is left alone, so that a second build is short.
//!
//! Owns: the contents of the copy. Never does: build it.

use std::collections::BTreeMap;
use std::error::Error;
use std::fs;
use std::path::Path;

/// The paths that are copied, from the root: all that a build and its lints read.
const COPIED: &[&str] = &["Cargo.toml", "Cargo.lock", "clippy.toml", "crates"];

/// Makes `to` a copy of the source, with other contents in the patched files.
///
/// # Errors
/// The file that cannot be read or written.
pub(super) fn update(
    root: &Path,
    to: &Path,
    patched: &BTreeMap<String, String>,
) -> Result<(), Box<dyn Error>> {
    fs::create_dir_all(to)?;
    COPIED.iter().try_for_each(|path| one(root, to, path, patched))
}

fn one(
    root: &Path,
    to: &Path,
    path: &str,
    patched: &BTreeMap<String, String>,
) -> Result<(), Box<dyn Error>> {
    let (from, to_path) = (root.join(path), to.join(path));
    if !from.is_dir() {
        let contents = patched.get(path).map(|text| text.clone().into_bytes());
        let contents = contents.map_or_else(|| fs::read(&from), Ok)?;
        let is_same = fs::read(&to_path).is_ok_and(|there| there == contents);
        return if is_same { Ok(()) } else { Ok(fs::write(&to_path, contents)?) };
    }
    fs::create_dir_all(&to_path)?;
    for entry in fs::read_dir(&to_path)? {
        let entry = entry?;
        if !from.join(entry.file_name()).exists() {
            let is_dir = entry.file_type()?.is_dir();
            if is_dir { fs::remove_dir_all(entry.path())? } else { fs::remove_file(entry.path())? }
        }
    }
    for entry in fs::read_dir(&from)? {
        let Ok(name) = entry?.file_name().into_string() else { continue };
        if name != "target" && !name.starts_with('.') {
            one(root, to, &format!("{path}/{name}"), patched)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_is_as_the_source_but_for_what_is_patched() {
        let dir = std::env::temp_dir().join(format!("windrow-copy-{}", std::process::id()));
        let (root, to) = (dir.join("root"), dir.join("to"));
        fs::create_dir_all(root.join("crates/a/target")).unwrap();
        for file in ["Cargo.toml", "Cargo.lock", "clippy.toml", "crates/a/b.rs", "crates/a/c.rs"] {
            fs::write(root.join(file), file).unwrap();
        }
        let patched = BTreeMap::from([("crates/a/b.rs".to_owned(), "patched".to_owned())]);
        update(&root, &to, &patched).unwrap();
        let read = |file: &str| fs::read_to_string(to.join(file)).unwrap();
        assert_eq!(
            (read("crates/a/b.rs"), read("Cargo.lock")),
            ("patched".into(), "Cargo.lock".into())
        );
        assert!(!to.join("crates/a/target").exists());
        let written = || fs::metadata(to.join("crates/a/b.rs")).unwrap().modified().unwrap();
        let first = written();
        fs::remove_file(root.join("crates/a/c.rs")).unwrap();
        update(&root, &to, &patched).unwrap();
        assert!(!to.join("crates/a/c.rs").exists());
        assert_eq!(written(), first);
        update(&root, &to, &BTreeMap::new()).unwrap();
        assert_eq!(read("crates/a/b.rs"), "crates/a/b.rs");
        fs::remove_dir_all(&dir).unwrap();
    }
}
