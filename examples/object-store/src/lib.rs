//! Backups in an object store: [`windrow::backup::BackupTarget`] over the crate `object_store`.
//!
//! An upload becomes visible as a whole when it is completed, and is durable then, as far as the
//! store is: what a target has to promise. (`LocalFileSystem` syncs nothing: it is for trying.)
//!
//! Nothing here keeps two machines from making backups in one place at once: run them from one.

use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt, stream::BoxStream};
use object_store::{ObjectStore, WriteMultipart, path::Path};
use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::runtime::Runtime;
use windrow::{Error, ErrorKind, Result};
use windrow::backup::{BackupTarget, StoredObject};

/// Bytes of a part of an upload; S3 takes no more than 10,000 of them: objects of up to 160 GB.
const PART_BYTES: usize = 16 << 20;

/// Parts that are on their way at a time.
const PARTS_AT_ONCE: usize = 4;

/// A place for backups in an object store.
#[derive(Debug)]
pub struct ObjectStoreTarget {
    store: Arc<dyn ObjectStore>,
    prefix: Path,
    runtime: Runtime,
    is_claimed: AtomicBool,
}

impl ObjectStoreTarget {
    /// Objects whose names begin with `prefix` and a slash.
    ///
    /// # Errors
    /// `Io` if no thread can be started.
    pub fn new(store: Arc<dyn ObjectStore>, prefix: &str) -> Result<ObjectStoreTarget> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .map_err(|error| io("start a thread", error))?;
        let is_claimed = AtomicBool::new(false);
        Ok(ObjectStoreTarget { store, prefix: Path::from(prefix), runtime, is_claimed })
    }

    /// Where an object is; the names of a target are folder and file.
    fn path(&self, name: &str) -> Path {
        name.split('/').fold(self.prefix.clone(), |path, part| path.child(part))
    }
}

fn io(doing: &str, error: impl std::error::Error + Send + Sync + 'static) -> Error {
    Error::new(ErrorKind::Io, format!("cannot {doing}: {error}")).with_source(error)
}

impl BackupTarget for ObjectStoreTarget {
    fn put(&self, name: &str, from: &mut dyn Read) -> Result<()> {
        let path = self.path(name);
        let failed = |error| io(&format!("store {path}"), error);
        let mut piece = vec![0; 1 << 20];
        self.runtime.block_on(async {
            let upload = self.store.put_multipart(&path).await.map_err(failed)?;
            let mut writer = WriteMultipart::new_with_chunk_size(upload, PART_BYTES);
            loop {
                match from.read(&mut piece) {
                    Ok(0) => break,
                    Ok(len) => {
                        writer.wait_for_capacity(PARTS_AT_ONCE).await.map_err(failed)?;
                        writer.write(&piece[..len]);
                    }
                    Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                    Err(error) => {
                        // Nothing of it becomes an object.
                        let _ = writer.abort().await;
                        return Err(io(&format!("read what {path} is to hold"), error));
                    }
                }
            }
            writer.finish().await.map_err(failed).map(drop)
        })
    }

    fn get(&self, name: &str) -> Result<Box<dyn Read + '_>> {
        let path = self.path(name);
        let found = self.runtime.block_on(self.store.get(&path));
        let stream = found.map_err(|error| io(&format!("read {path}"), error))?.into_stream();
        Ok(Box::new(Reading { target: self, stream, piece: Bytes::new() }))
    }

    fn list(&self, folder: &str) -> Result<Vec<StoredObject>> {
        let path = self.path(folder);
        let found = self.store.list(Some(&path)).try_collect::<Vec<_>>();
        let found = self.runtime.block_on(found).map_err(|e| io(&format!("list {path}"), e))?;
        let stored = |meta: object_store::ObjectMeta| {
            let file = meta.location.filename()?;
            // Objects in a folder below this one are not ours.
            (meta.location == path.child(file))
                .then(|| StoredObject { name: format!("{folder}/{file}"), bytes: meta.size })
        };
        Ok(found.into_iter().filter_map(stored).collect())
    }

    fn remove(&self, name: &str) -> Result<()> {
        let path = self.path(name);
        let removed = self.runtime.block_on(self.store.delete(&path));
        removed.map_err(|error| io(&format!("remove {path}"), error))
    }

    fn claim(&self) -> Result<Box<dyn Send + '_>> {
        struct Claim<'a>(&'a AtomicBool);
        impl Drop for Claim<'_> {
            fn drop(&mut self) {
                self.0.store(false, Ordering::Release);
            }
        }
        if self.is_claimed.swap(true, Ordering::AcqRel) {
            let text = format!("a backup or a prune goes on in {}", self.prefix);
            return Err(Error::new(ErrorKind::Busy, text));
        }
        Ok(Box::new(Claim(&self.is_claimed)))
    }
}

/// An object that is read from its beginning.
struct Reading<'a> {
    target: &'a ObjectStoreTarget,
    stream: BoxStream<'static, object_store::Result<Bytes>>,
    piece: Bytes,
}

impl Read for Reading<'_> {
    fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
        while self.piece.is_empty() {
            match self.target.runtime.block_on(self.stream.next()) {
                Some(piece) => self.piece = piece.map_err(std::io::Error::other)?,
                None => return Ok(0),
            }
        }
        let len = buf.len().min(self.piece.len());
        buf[..len].copy_from_slice(&self.piece.split_to(len));
        Ok(len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use object_store::{local::LocalFileSystem, memory::InMemory};
    use windrow::Db;
    use windrow::backup::{BackupOptions, backups, prune_backups, restore_backup, verify_backup};

    fn round_trip(store: Arc<dyn ObjectStore>) {
        let dir = tempfile::tempdir().unwrap();
        let db = Db::open(dir.path().join("db")).unwrap();
        let target = ObjectStoreTarget::new(store, "backups/of db").unwrap();
        for round in 0..4u32 {
            for key in 0..5_000u32 {
                let value = (key ^ round).to_be_bytes().repeat(100);
                db.put((round * 5_000 + key).to_be_bytes(), value).unwrap();
            }
            db.flush().unwrap();
            let made = db.backup(&target, BackupOptions::default()).unwrap();
            assert_eq!(made.number, u64::from(round) + 1);
        }
        assert_eq!(prune_backups(&target, 2).unwrap(), [1, 2]);
        let kept = backups(&target).unwrap();
        assert_eq!(kept.iter().map(|backup| backup.number).collect::<Vec<_>>(), [3, 4]);
        for backup in kept {
            verify_backup(&target, backup.number).unwrap();
            let copy = dir.path().join(format!("copy-{}", backup.number));
            restore_backup(&target, Some(backup.number), &copy).unwrap();
            let copy = Db::open(copy).unwrap();
            assert_eq!(copy.count(..).unwrap(), backup.number * 5_000);
            copy.verify().unwrap().into_result().unwrap();
        }
    }

    #[test]
    fn backups_in_memory() {
        round_trip(Arc::new(InMemory::new()));
    }

    #[test]
    fn backups_in_a_directory() {
        let dir = tempfile::tempdir().unwrap();
        round_trip(Arc::new(LocalFileSystem::new_with_prefix(dir.path()).unwrap()));
    }

    #[test]
    fn an_object_that_is_not_there_is_an_error() {
        let target = ObjectStoreTarget::new(Arc::new(InMemory::new()), "x").unwrap();
        assert_eq!(target.get("tables/x").map(drop).unwrap_err().kind(), ErrorKind::Io);
        assert_eq!(target.list("tables").unwrap(), []);
    }
}
