//! Conformance of every engine: it answers as a map does, and names itself and
//! its abilities.

#![allow(clippy::disallowed_methods, reason = "looks at what the engines leave on the disk")]

use std::path::Path;
use windrow_bench::store::{Codec, Common, Engine, Sync, Write, conformance};
use windrow_bench_peers::ENGINES;

fn engine(name: &str) -> &'static Engine {
    ENGINES.iter().find(|engine| engine.name == name).unwrap()
}

fn conforms(name: &str) {
    let dir = tempfile::tempdir().unwrap();
    conformance::check(engine(name), dir.path(), 1).unwrap();
}

#[test]
fn rocksdb_conforms() {
    conforms("rocksdb");
    let dir = tempfile::tempdir().unwrap();
    conformance::check_transactions(engine("rocksdb"), "optimistic", dir.path()).unwrap();
}

#[test]
fn leveldb_conforms() {
    conforms("leveldb");
}

#[test]
fn fjall_conforms() {
    conforms("fjall");
}

fn common(settings: &[(&str, &str)]) -> Common {
    Common {
        variant: String::new(),
        memory_bytes: 16 << 20,
        background_threads: 2,
        direct_io: false,
        codec: Codec::None,
        spaces: 1,
        transactions: false,
        settings: settings.iter().map(|&(n, v)| (n.to_owned(), v.to_owned())).collect(),
    }
}

/// Every setting of an engine opens a database.
#[test]
fn settings_are_accepted_by_the_engines() {
    let rocksdb = "block_bytes=8KiB bytes_per_sync=0 cache=lru cache_bytes=1MiB dynamic_levels=off \
        file_bytes=2MiB filter_bits=2.5 hash_index=off level0_files=2 level0_slowdown=8 level0_stop=12 \
        level_base_bytes=10MiB memtable_bytes=1MiB memtables=3 multiplier=2 pick=round_robin pin=all \
        statistics=on subcompactions=2";
    let rocksdb_without = "cache_bytes=0 filter_bits=0";
    let leveldb = "block_bytes=8KiB cache_bytes=1MiB file_bytes=1MiB filter_bits=0 \
        memtable_bytes=1MiB open_files=100";
    let fjall = "block_bytes=8KiB cache_bytes=1MiB file_bytes=2MiB filter_bits=0 level0_files=2 \
        memtable_bytes=1MiB multiplier=4";
    let given = [
        ("rocksdb", rocksdb),
        ("rocksdb", rocksdb_without),
        ("leveldb", leveldb),
        ("fjall", fjall),
    ];
    for (name, settings) in given {
        let dir = tempfile::tempdir().unwrap();
        let mut common = common(&[]);
        for setting in settings.split_whitespace() {
            let (setting, value) = setting.split_once('=').unwrap();
            common.settings.push((format!("{name}.{setting}"), value.to_owned()));
        }
        let store = (engine(name).open)(dir.path(), &common).unwrap();
        (0..20_000u32).for_each(|i| store.put(0, &i.to_be_bytes(), &[7; 100], Sync::No).unwrap());
        store.drain().unwrap();
        let mut value = Vec::new();
        assert!(store.get(0, &19_999u32.to_be_bytes(), &mut value).unwrap(), "{name} {settings}");
        let gets = store.counters().gets;
        assert_eq!(gets, (settings == rocksdb).then_some(1), "{name} {settings}");
        store.close().unwrap();
    }
}

/// RocksDB's variants differ in what their names say.
#[test]
fn variants_of_rocksdb_set_what_they_name() {
    for (variant, line) in [
        ("", "enable_pipelined_write=false"),
        ("pipelined", "enable_pipelined_write=true"),
        ("small", "write_buffer_size=8388608"),
        ("small", "target_file_size_base=8388608"),
        ("quarter", "write_buffer_size=50331648"),
        ("quarter", "max_bytes_for_level_base=201326592"),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let common = Common { variant: variant.to_owned(), memory_bytes: 192 << 20, ..common(&[]) };
        (engine("rocksdb").open)(dir.path(), &common).unwrap().close().unwrap();
        let options = rocksdb_options(dir.path());
        assert!(options.contains(line), "{variant}: {line}");
    }
}

#[test]
fn rocksdb_counts_as_the_variant_says() {
    for (variant, counted) in [("", false), ("counted", true)] {
        let dir = tempfile::tempdir().unwrap();
        let common = Common { variant: variant.to_owned(), ..common(&[]) };
        let store = (engine("rocksdb").open)(dir.path(), &common).unwrap();
        // Flushes of the same keys, which a compaction then merges.
        for _ in 0..5 {
            (0..1000u32).for_each(|i| store.put(0, &i.to_be_bytes(), &[7; 100], Sync::No).unwrap());
            store.drain().unwrap();
        }
        let counters = store.counters();
        assert!(counters.merges.is_some_and(|merges| merges > 0), "{counters:?}");
        assert_eq!(counters.paused_us, Some(0));
        let written = counters.tables_written_bytes;
        assert_eq!(written.is_some(), counted);
        assert!(written.is_none_or(|bytes| bytes > 5 * 100_000), "{counters:?}");
        store.close().unwrap();
    }
}

/// Returns the file in which RocksDB keeps the options that it was opened with.
fn rocksdb_options(dir: &Path) -> String {
    let files = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    let named = |path: &std::path::PathBuf| {
        path.file_name().unwrap().to_string_lossy().starts_with("OPTIONS-")
    };
    std::fs::read_to_string(files.filter(named).max().unwrap()).unwrap()
}

#[test]
fn versions_are_those_of_the_libraries() {
    let dir = tempfile::tempdir().unwrap();
    (engine("rocksdb").open)(dir.path(), &common(&[])).unwrap().close().unwrap();
    let version = (engine("rocksdb").version)();
    let line = format!("rocksdb_version={version}\n");
    assert!(rocksdb_options(dir.path()).contains(&line), "the library is not {version}");
    assert!((engine("leveldb").version)().starts_with("1."));
    assert!((engine("fjall").version)().starts_with("3."));
}

/// With `Sync::No` the kernel has a write once it is acknowledged, alone or in
/// a batch: the bytes are in some file while the store is open.
#[test]
fn acknowledged_writes_are_with_the_kernel() {
    for engine in &ENGINES {
        let dir = tempfile::tempdir().unwrap();
        let store = (engine.open)(dir.path(), &common(&[])).unwrap();
        store.put(0, b"one", b"a value put alone", Sync::No).unwrap();
        let put = Write::Put { space: 0, key: b"two", value: b"a value in a batch" };
        store.write(&[put], Sync::No).unwrap();
        for value in ["a value put alone", "a value in a batch"] {
            assert!(in_files(dir.path(), value.as_bytes()), "{}: {value}", engine.name);
        }
        store.close().unwrap();
    }
}

/// Whether some file below a directory has these bytes.
fn in_files(dir: &Path, bytes: &[u8]) -> bool {
    std::fs::read_dir(dir).unwrap().any(|entry| {
        let path = entry.unwrap().path();
        if path.is_dir() {
            return in_files(&path, bytes);
        }
        // A log may be renamed or removed meanwhile; then its text is empty.
        let text = std::fs::read(&path).unwrap_or_default();
        text.windows(bytes.len()).any(|window| window == bytes)
    })
}
