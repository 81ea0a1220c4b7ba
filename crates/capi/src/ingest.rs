//! Ingestions: sorted entries that are written straight to tables.
//!
//! Owns: the handle. Never does: sort.

use crate::bytes::windrow_slice;
use crate::edge::{caught, done, given};
use crate::error::windrow_error;
use crate::keyspace::windrow_keyspace;
use engine::{Error, ErrorKind, Ingest, Result};

/// An ingestion: entries for a keyspace, added in the order of their keys. Used by one thread at a
/// time.
pub struct windrow_ingest(Option<Ingest>);

impl windrow_ingest {
    fn going(&mut self) -> Result<&mut Ingest> {
        let ended = || Error::new(ErrorKind::Closed, "the ingestion has ended: begin another one");
        self.0.as_mut().ok_or_else(ended)
    }
}

/// Begins an ingestion. None of its entries is visible before windrow_ingest_finish.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_ingest_new(
    keyspace: Option<&windrow_keyspace>,
    error: *mut *mut windrow_error,
) -> Option<Box<windrow_ingest>> {
    caught(error, || {
        let ingest = given(keyspace, "keyspace")?.keyspace.ingest()?;
        Ok(Box::new(windrow_ingest(Some(ingest))))
    })
}

/// Adds an entry. Its key must be after those added before.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_ingest_put(
    ingest: Option<&mut windrow_ingest>,
    key: windrow_slice,
    value: windrow_slice,
    error: *mut *mut windrow_error,
) -> bool {
    done(error, || given(ingest, "ingestion")?.going()?.put(key.bytes()?, value.bytes()?))
}

/// Makes all entries visible at one moment, durably. The ingestion has ended then, and must be
/// freed.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_ingest_finish(
    ingest: Option<&mut windrow_ingest>,
    error: *mut *mut windrow_error,
) -> bool {
    done(error, || {
        let ingest = given(ingest, "ingestion")?;
        ingest.going()?;
        ingest.0.take().map_or(Ok(()), |ingest| ingest.finish().map(|_| ()))
    })
}

/// Frees an ingestion. One that was not finished leaves no entry.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_ingest_free(ingest: Option<Box<windrow_ingest>>) {
    drop(ingest);
}
