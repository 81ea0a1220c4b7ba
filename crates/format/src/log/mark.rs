//! A mark: the durable lengths of other files, and at times the time, recorded in a write-ahead log.
//!
//! No later record in a file says that its last records were durable. A mark in the next log says
//! it: these lengths of the manifest, and of each older log, were on the device before the mark was
//! written. A crash may destroy a mark, but a mark that can be read is true.
//!
//! The time is for a restore to a moment: it takes the place of the length of log 0, which is no
//! log's number, so that programs that know of no times pass it over.
//!
//! Owns: the payload of a record of class `Mark`. Never does: compare it with files.

use windrow_base::coding::{Decoder, put_varint};
use windrow_base::{Error, FileNumber, Result};

/// The durable length of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Length {
    /// The file's number.
    pub number: FileNumber,
    /// Bytes from its start that were on the device.
    pub bytes: u64,
}

/// In place of a log's number: the time.
const TIME: FileNumber = 0;

/// The durable lengths of the other files when the mark was written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mark {
    /// The manifest in force.
    pub manifest: Length,
    /// Logs older than the one that the mark is in, oldest first.
    pub logs: Vec<Length>,
    /// The time, in ms since 1970: every batch before the mark had its place in the order of commits by
    /// then, and no batch behind it.
    pub time_ms: Option<u64>,
}

impl Mark {
    /// The record's payload: the manifest's number and bytes, then the logs', varints all.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(16 * (2 + self.logs.len()));
        let time = self.time_ms.map(|ms| Length { number: TIME, bytes: ms });
        for length in std::iter::once(&self.manifest).chain(&time).chain(&self.logs) {
            put_varint(&mut out, length.number);
            put_varint(&mut out, length.bytes);
        }
        out
    }

    /// Reads a payload.
    ///
    /// # Errors
    /// `Corruption` if it is malformed, or the logs are not in order.
    pub fn decode(payload: &[u8]) -> Result<Mark> {
        let mut decoder = Decoder::new(payload);
        let manifest = length(&mut decoder)?;
        let (mut logs, mut time_ms) = (Vec::<Length>::new(), None);
        while !decoder.is_empty() {
            let log = length(&mut decoder)?;
            if log.number == TIME && time_ms.is_none() && logs.is_empty() {
                time_ms = Some(log.bytes);
                continue;
            }
            if log.number == TIME {
                return Err(Error::corruption("the time of a mark is not in its place"));
            }
            if logs.last().is_some_and(|last| log.number <= last.number) {
                return Err(Error::corruption("the logs of a mark are not in order"));
            }
            logs.push(log);
        }
        Ok(Mark { manifest, logs, time_ms })
    }
}

fn length(decoder: &mut Decoder<'_>) -> Result<Length> {
    Ok(Length { number: decoder.varint()?, bytes: decoder.varint()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_round_trip_and_refuse_what_is_cut() {
        let length = |number, bytes| Length { number, bytes };
        for time_ms in [None, Some(0), Some(1_795_000_000_000)] {
            let (manifest, logs) = (length(300, 70_000), vec![length(5, 64), length(1 << 40, 900)]);
            let mark = Mark { manifest, logs, time_ms };
            let bytes = mark.encode();
            assert_eq!(Mark::decode(&bytes).unwrap(), mark);
            for cut in 0..bytes.len() {
                match Mark::decode(&bytes[..cut]) {
                    Ok(shorter) => assert!(mark.logs.starts_with(&shorter.logs), "cut at {cut}"),
                    Err(error) => assert!(error.is_corruption(), "cut at {cut}: {error}"),
                }
            }
            for wrong in [[length(5, 64); 2], [length(5, 64), length(0, 1)]] {
                let bytes = Mark { logs: wrong.to_vec(), ..mark.clone() }.encode();
                assert!(Mark::decode(&bytes).unwrap_err().is_corruption(), "{wrong:?}");
            }
        }
    }
}
