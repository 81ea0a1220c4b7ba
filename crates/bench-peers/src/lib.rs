//! RocksDB, LevelDB and fjall behind the benchmark's `Store` trait.
//!
//! Owns: the peers' adapters, with the settings of each for a memory budget and
//! the reasons why they are fair. Never does: measure. Never a default member
//! of the workspace, since it builds RocksDB's C++ and links LevelDB.

mod fjall;
mod leveldb;
mod rocksdb;
mod settings;
mod wait;

use windrow_bench::store::Engine;
use windrow_bench::store::windrow::ENGINE as WINDROW;

/// Windrow and its peers, in the order that they take turns in.
pub const ENGINES: [Engine; 4] = [WINDROW, rocksdb::ENGINE, leveldb::ENGINE, fjall::ENGINE];
