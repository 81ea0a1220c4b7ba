//! Windrow for the JVM: the native methods of the class `org.windrow.Native`, which the Maven project in `java` builds on.
//!
//! A handle that Java holds is a number, which a table resolves (`table.rs`): a number whose handle is closed, or that
//! was never given out, is an exception, on any thread. Every native method runs in [`edge::edge`], which no panic
//! passes.
//!
//! Owns: the conversion of types and errors. Never does: anything that the library in Rust does not.

// The native methods are declared in one Java class, with flat argument lists.
#![allow(clippy::too_many_arguments)]
// The JVM finds native methods by names that it derives from Java's.
#![allow(non_snake_case)]

mod bytes;
mod callbacks;
mod cursor;
mod database;
mod edge;
mod failure;
mod follower;
mod ingest;
mod jvm;
mod kept;
mod keyspace;
mod options;
mod reads;
mod scan;
mod stats;
mod table;
mod transaction;
mod work;
mod write;
