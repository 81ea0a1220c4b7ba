//! Windrow for the JVM: the native methods of the class `org.windrow.Native`, which the Maven project in `java` builds on.
//!
//! A handle that Java holds is a number, which a table here resolves (`table.rs`): one that was closed, or never was,
//! is an exception whatever thread uses it. Every native method runs in [`edge::edge`], which no panic passes.
//!
//! Owns: how types and errors pass between them. Never does: anything that the library in Rust does not.

// Java knows each of the native methods by its place in one file, and has as many arguments for it as it takes.
#![allow(clippy::too_many_arguments)]
// The JVM finds them by names that it makes of Java's.
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
