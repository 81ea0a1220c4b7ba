//! The report of a run for its readers: tables for the terminal and for the docs, a page with
//! pictures.
//!
//! Owns: `windrow-bench report`; medians, ratios round by round, and the limit at which they are
//! too wide to say anything. All but the command is pure: lines in, text out. Never does: measure,
//! or leave out a figure that is bad for Windrow.

mod axis;
mod bars;
mod categories;
mod command;
mod compare;
mod curves;
mod headlines;
mod labels;
mod markdown;
mod measure;
mod number;
mod page;
mod palette;
mod paper;
mod pictures;
mod ratios;
mod results;
mod spread;
mod svg;
mod table;
mod timelines;
mod verdicts;

#[cfg(test)]
mod sample;
#[cfg(test)]
mod tests;

pub(crate) use command::write;
pub(crate) use number::number;
pub(crate) use results::{Run, run_of};
pub(crate) use spread::Spread;
pub(crate) use table::{grid, table};
pub(crate) use verdicts::verdicts;
