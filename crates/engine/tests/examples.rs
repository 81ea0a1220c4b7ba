//! Runs every example: its assertions are its promise to readers who copy from it.
//!
//! Each is a module here, and not a program that is started. If only some tests are asked for,
//! `cargo test` builds no program of an example that this test could rely on.

#![allow(clippy::print_stdout, reason = "examples print")]

/// The examples by their names, each with a test that runs it.
macro_rules! examples {
    ($($name:ident in $path:literal,)*) => {
        $(
            #[path = $path]
            mod $name;
        )*

        mod run {
            $(
                #[test]
                fn $name() {
                    super::$name::main().unwrap();
                }
            )*
        }

        const PATHS: &[&str] = &[$($path),*];
    };
}

examples! {
    as_fjall in "../examples/as_fjall.rs",
    as_kvdb in "../examples/as_kvdb.rs",
    as_leveldb in "../examples/as_leveldb.rs",
    as_sled in "../examples/as_sled.rs",
    async_service in "../examples/async_service.rs",
    basic in "../examples/basic.rs",
    batch_snapshot in "../examples/batch_snapshot.rs",
    document_store in "../examples/document_store.rs",
    keyspaces_merge in "../examples/keyspaces_merge.rs",
    queue in "../examples/queue.rs",
    time_series in "../examples/time_series.rs",
}

#[test]
#[allow(clippy::disallowed_methods, reason = "it lists the source")]
fn no_example_is_left_out() {
    let dir = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    for entry in std::fs::read_dir(dir).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(PATHS.iter().any(|path| path.contains(&format!("/{name}"))), "{name} is not run");
    }
}
