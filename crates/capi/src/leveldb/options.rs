//! LevelDB's options, and their translation to Windrow's.
//!
//! Owns: the translation of sizes. Never does: open a database.

use super::callbacks::{Order, leveldb_comparator_t, leveldb_filterpolicy_t};
use super::memory::allocated;
use super::snapshot::leveldb_snapshot_t;
use engine::settings::Settings;
use engine::{KeyspaceOptions, Options, ReadOptions, Result, Snapshot, WriteSync};
use libc::{c_char, c_int, c_void};
use std::sync::Arc;

/// LevelDB's defaults for the write buffer and the cache.
const WRITE_BUFFER_BYTES: usize = 4 << 20;
const CACHE_BYTES: usize = 8 << 20;
/// The least budget of memory, so that a program with LevelDB's defaults gets a useful one.
const MEMORY_BYTES_MIN: u64 = 32 << 20;
/// Write buffers that the budget has room for: one is filled while others are flushed.
const WRITE_BUFFERS: u64 = 4;

/// How a database is opened.
pub struct leveldb_options_t {
    order: Option<Arc<Order>>,
    create_if_missing: bool,
    error_if_exists: bool,
    write_buffer_bytes: usize,
    cache_bytes: usize,
    block_bytes: usize,
    compresses: bool,
}

impl leveldb_options_t {
    /// Returns the options of the engine. LevelDB limits buffers and cache separately, Windrow has one budget:
    /// [`WRITE_BUFFERS`] write buffers and the cache.
    pub(super) fn options(&self) -> Result<Options> {
        let buffers = (self.write_buffer_bytes as u64).saturating_mul(WRITE_BUFFERS);
        let memory = buffers.saturating_add(self.cache_bytes as u64).max(MEMORY_BYTES_MIN);
        let mut settings = Settings::default();
        settings.set("memory_bytes", &memory.to_string())?;
        settings.set("block_bytes", &self.block_bytes.clamp(256, 4 << 20).to_string())?;
        settings.set("compression", if self.compresses { "lz4" } else { "none" })?;
        let mut options = Options {
            create_if_missing: self.create_if_missing,
            error_if_exists: self.error_if_exists,
            settings,
            ..Options::default()
        };
        if let Some(order) = &self.order {
            let comparator = Some(engine::Comparator::id(&**order).to_owned());
            options.default_keyspace = KeyspaceOptions { comparator, ..KeyspaceOptions::default() };
            options.components.comparators.push(Arc::clone(order) as Arc<dyn engine::Comparator>);
        }
        Ok(options)
    }
}

/// LevelDB's defaults.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_options_create() -> Box<leveldb_options_t> {
    Box::new(leveldb_options_t {
        order: None,
        create_if_missing: false,
        error_if_exists: false,
        write_buffer_bytes: WRITE_BUFFER_BYTES,
        cache_bytes: CACHE_BYTES,
        block_bytes: 4096,
        compresses: true,
    })
}

/// Frees options.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_options_destroy(options: Option<Box<leveldb_options_t>>) {
    drop(options);
}

fn set(options: Option<&mut leveldb_options_t>, set: impl FnOnce(&mut leveldb_options_t)) {
    if let Some(options) = options {
        set(options);
    }
}

/// The order of keys; NULL: by bytes.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_options_set_comparator(
    options: Option<&mut leveldb_options_t>,
    comparator: Option<&leveldb_comparator_t>,
) {
    set(options, |options| options.order = comparator.map(|of| Arc::clone(&of.0)));
}

/// Does nothing: filters are Windrow's.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_options_set_filter_policy(
    _options: Option<&mut leveldb_options_t>,
    _policy: Option<&leveldb_filterpolicy_t>,
) {
}

/// Whether a database that does not exist is created.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_options_set_create_if_missing(
    options: Option<&mut leveldb_options_t>,
    yes: u8,
) {
    set(options, |options| options.create_if_missing = yes != 0);
}

/// Whether a database that exists is refused.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_options_set_error_if_exists(
    options: Option<&mut leveldb_options_t>,
    yes: u8,
) {
    set(options, |options| options.error_if_exists = yes != 0);
}

/// Does nothing: all checks are always on.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_options_set_paranoid_checks(
    _options: Option<&mut leveldb_options_t>,
    _yes: u8,
) {
}

/// Does nothing: there is one environment.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_options_set_env(
    _options: Option<&mut leveldb_options_t>,
    _env: Option<&leveldb_env_t>,
) {
}

/// Does nothing: no call of this interface makes a logger.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_options_set_info_log(
    _options: Option<&mut leveldb_options_t>,
    _logger: *mut c_void,
) {
}

/// Sets the write buffer's part of the budget of memory.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_options_set_write_buffer_size(
    options: Option<&mut leveldb_options_t>,
    bytes: usize,
) {
    set(options, |options| options.write_buffer_bytes = bytes);
}

/// Does nothing: the number of open files follows from memory and the process's limit.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_options_set_max_open_files(
    _options: Option<&mut leveldb_options_t>,
    _files: c_int,
) {
}

/// Sets the cache's part of the budget of memory; NULL: LevelDB's default.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_options_set_cache(
    options: Option<&mut leveldb_options_t>,
    cache: Option<&leveldb_cache_t>,
) {
    set(options, |options| options.cache_bytes = cache.map_or(CACHE_BYTES, |cache| cache.0));
}

/// Sets the size of a table's block before compression.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_options_set_block_size(
    options: Option<&mut leveldb_options_t>,
    bytes: usize,
) {
    set(options, |options| options.block_bytes = bytes);
}

/// Does nothing: the format has its own interval.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_options_set_block_restart_interval(
    _options: Option<&mut leveldb_options_t>,
    _interval: c_int,
) {
}

/// Does nothing: the sizes of files follow from the budget of memory.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_options_set_max_file_size(
    _options: Option<&mut leveldb_options_t>,
    _bytes: usize,
) {
}

/// 0: none. Anything else: LZ4.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_options_set_compression(
    options: Option<&mut leveldb_options_t>,
    codec: c_int,
) {
    set(options, |options| options.compresses = codec != 0);
}

/// How a read is done.
pub struct leveldb_readoptions_t {
    fill_cache: bool,
    snapshot: Option<Snapshot>,
}

impl leveldb_readoptions_t {
    pub(super) fn options(of: Option<&leveldb_readoptions_t>) -> ReadOptions {
        of.map_or_else(ReadOptions::default, |of| ReadOptions {
            fill_cache: of.fill_cache,
            snapshot: of.snapshot.clone(),
            ..ReadOptions::default()
        })
    }

    pub(super) fn snapshot(of: Option<&leveldb_readoptions_t>) -> Option<&Snapshot> {
        of.and_then(|of| of.snapshot.as_ref())
    }
}

/// LevelDB's defaults.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_readoptions_create() -> Box<leveldb_readoptions_t> {
    Box::new(leveldb_readoptions_t { fill_cache: true, snapshot: None })
}

/// Frees options.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_readoptions_destroy(options: Option<Box<leveldb_readoptions_t>>) {
    drop(options);
}

/// Does nothing: checksums are always verified.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_readoptions_set_verify_checksums(
    _options: Option<&mut leveldb_readoptions_t>,
    _yes: u8,
) {
}

/// Whether the blocks that are read enter the cache.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_readoptions_set_fill_cache(
    options: Option<&mut leveldb_readoptions_t>,
    yes: u8,
) {
    if let Some(options) = options {
        options.fill_cache = yes != 0;
    }
}

/// The snapshot that is read; NULL: the newest state.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_readoptions_set_snapshot(
    options: Option<&mut leveldb_readoptions_t>,
    snapshot: Option<&leveldb_snapshot_t>,
) {
    if let Some(options) = options {
        options.snapshot = snapshot.map(|snapshot| snapshot.0.clone());
    }
}

/// How a write is done.
pub struct leveldb_writeoptions_t {
    sync: bool,
}

impl leveldb_writeoptions_t {
    pub(super) fn sync(of: Option<&leveldb_writeoptions_t>) -> WriteSync {
        if of.is_some_and(|of| of.sync) { WriteSync::Yes } else { WriteSync::No }
    }
}

/// LevelDB's defaults.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_writeoptions_create() -> Box<leveldb_writeoptions_t> {
    Box::new(leveldb_writeoptions_t { sync: false })
}

/// Frees options.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_writeoptions_destroy(options: Option<Box<leveldb_writeoptions_t>>) {
    drop(options);
}

/// Whether a write is on the device when the call returns.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_writeoptions_set_sync(
    options: Option<&mut leveldb_writeoptions_t>,
    yes: u8,
) {
    if let Some(options) = options {
        options.sync = yes != 0;
    }
}

/// The cache's part of the budget, in bytes. Databases do not share it.
pub struct leveldb_cache_t(usize);

/// Makes a cache of `capacity` bytes.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_cache_create_lru(capacity: usize) -> Box<leveldb_cache_t> {
    Box::new(leveldb_cache_t(capacity))
}

/// Frees a cache. Databases keep their memory.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_cache_destroy(cache: Option<Box<leveldb_cache_t>>) {
    drop(cache);
}

/// The operating system.
pub struct leveldb_env_t;

/// The operating system.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_create_default_env() -> Box<leveldb_env_t> {
    Box::new(leveldb_env_t)
}

/// Frees an environment.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_env_destroy(env: Option<Box<leveldb_env_t>>) {
    drop(env);
}

/// A directory for tests, to be freed by `leveldb_free`: `$TEST_TMPDIR`, or one of this user in `/tmp`.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_env_get_test_directory(_env: Option<&leveldb_env_t>) -> *mut c_char {
    // SAFETY: a call without arguments that cannot fail.
    let user = unsafe { libc::geteuid() };
    let chosen =
        std::env::var("TEST_TMPDIR").unwrap_or_else(|_| format!("/tmp/leveldbtest-{user}"));
    // An error shows when the program itself uses the directory.
    #[allow(clippy::disallowed_methods, reason = "a directory for the caller, not for a database")]
    let _ = std::fs::create_dir_all(&chosen);
    allocated(chosen.as_bytes())
}
