//! Ingestion: sorted entries, in chunks.
//!
//! Owns: their table, and the native methods. Never does: sort.

use crate::edge::native;
use crate::failure::Failure;
use crate::keyspace::KEYSPACES;
use crate::table::{Alone, Table};
use crate::write::Reader;
use jni_sys::{jbyteArray, jint, jlong, jobject};
use windrow::{Error, ErrorKind, Ingest};

static INGESTS: Table<Alone<Option<Ingest>>> = Table::new("ingestion");

fn ended() -> Failure {
    Error::new(ErrorKind::Closed, "the ingestion has ended, or failed: begin another one").into()
}

native! {
    Java_org_windrow_Native_ingest(_env, _owner: jobject, keyspace: jlong) -> jlong {
        INGESTS.add(Alone::new(Some(KEYSPACES.get(keyspace)?.ingest()?)))
    }
}

native! {
    /// Adds entries: for each, the lengths of key and value, the key, the value. A refused entry ends the ingestion:
    /// Java has added others in the meantime, and could not tell which one was refused.
    Java_org_windrow_Native_ingestOn(
        env, _owner: jobject, ingest: jlong, entries: jbyteArray, len: jint
    ) -> () {
        let entries = env.first_bytes(entries, usize::try_from(len).unwrap_or(0));
        INGESTS.get(ingest)?.with(|held| {
            let mut ingest = held.take().ok_or_else(ended)?;
            let mut reader = Reader(&entries);
            while let Some((key, value)) = reader.int().zip(reader.int()) {
                let (key, value) = reader.take(key).zip(reader.take(value)).ok_or_else(ended)?;
                ingest.put(key, value)?;
            }
            *held = Some(ingest);
            Ok(())
        })
    }
}

native! {
    /// Adds all entries to the keyspace, at once and durably. Returns their number.
    Java_org_windrow_Native_ingestFinish(_env, _owner: jobject, ingest: jlong) -> jlong {
        let ingest = INGESTS.get(ingest)?.with(|held| held.take().ok_or_else(ended))?;
        Ok(ingest.finish()?.entries as jlong)
    }
}

native! {
    Java_org_windrow_Native_freeIngest(_env, ingest: jlong) -> () {
        INGESTS.end(ingest)
    }
}
