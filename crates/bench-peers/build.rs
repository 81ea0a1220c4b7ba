//! Finds LevelDB's library, and the versions of the other peers for the report:
//! neither crate tells its version at run time, so they are read from
//! Cargo.lock.

#![allow(clippy::disallowed_methods, reason = "a build script reads a file of the workspace")]

use std::path::Path;

fn main() {
    let root = std::env::var("CARGO_MANIFEST_DIR").unwrap_or_default();
    let lock = Path::new(&root).join("../../Cargo.lock");
    println!("cargo::rerun-if-changed={}", lock.display());
    let text = std::fs::read_to_string(&lock).unwrap_or_default();
    // After the plus comes the version of the C++ library.
    let rocksdb = version(&text, "librocksdb-sys").and_then(|v| v.split_once('+'));
    println!("cargo::rustc-env=ROCKSDB_VERSION={}", rocksdb.map_or("unknown", |(_, cpp)| cpp));
    // The compiler knows where the system keeps its libraries.
    let library = std::process::Command::new("cc").arg("-print-file-name=libleveldb.a").output();
    let path = library.map(|out| String::from_utf8_lossy(&out.stdout).trim().to_owned());
    if let Some(dir) = path.ok().as_deref().and_then(|path| Path::new(path).parent()) {
        println!("cargo::rustc-link-search=native={}", dir.display());
    }
    println!("cargo::rustc-link-lib=snappy");
    println!("cargo::rustc-link-lib=stdc++");
    println!("cargo::rustc-env=FJALL_VERSION={}", version(&text, "fjall").unwrap_or("unknown"));
}

/// The version of a package in a lock file.
fn version<'a>(lock: &'a str, package: &str) -> Option<&'a str> {
    let entry = lock.split_once(&format!("name = \"{package}\"\nversion = \""))?.1;
    Some(entry.split_once('"')?.0)
}
