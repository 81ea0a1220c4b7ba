//! The program as a shell runs it, a module for each kind of command:
//! `cargo test -p windrow-cli --test it load` runs one.

mod backup;
mod changes;
mod common;
mod formats;
mod json;
mod lab;
mod live;
mod load;
mod look;
mod messages;
mod pages;
mod point;
mod serve;
mod session;
mod stop;
mod unknown;
