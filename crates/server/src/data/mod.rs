//! Redis values in a Windrow database.
//!
//! | keyspace | key | value |
//! |---|---|---|
//! | `default` | the key | a string, as it is |
//! | `redis.keys` | the key | the head of a value that is no plain string ([`head`]) |
//! | `redis.hashes` | length of the key (u32, big-endian), key, field | the field's value ([`field`]) |
//! | `redis.sets` | length, key, member | nothing |
//! | `redis.lists` | length, key, position (u64, big-endian) | the element |
//! | `redis.members` | length, key, member of a sorted set | its score ([`score`]) |
//! | `redis.scores` | length, key, score, member | nothing |
//! | `redis.streams` | length, key, then as [`stream`] and [`group`] say | entries, and the progress of groups |
//! | `redis.deadlines` | milliseconds since 1970 (u64, big-endian), key | nothing |
//!
//! A key that is in `default` alone is a string without a deadline, so that a pair that another
//! program puts there is a string, and `windrow get` reads one. A string with a deadline has a head
//! too, and both rows expire by the engine's own clock. The rows of a collection are kept until it
//! is deleted: past its deadline it counts as deleted, and the sweeper deletes it.
//!
//! Owns: the table above. Never does: know a command or a client.

pub(crate) mod element;
pub(crate) mod field;
pub(crate) mod group;
pub(crate) mod head;
pub(crate) mod key_locks;
pub(crate) mod keys;
pub(crate) mod positions;
pub(crate) mod rows;
pub(crate) mod rows_ahead;
pub(crate) mod score;
pub(crate) mod space;
pub(crate) mod staged_writes;
pub(crate) mod store;
pub(crate) mod stream;
pub(crate) mod stream_id;
pub(crate) mod value;
pub(crate) mod view;
pub(crate) mod waiting_clients;
pub(crate) mod watched_keys;
