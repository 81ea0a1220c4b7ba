//! Windrow behind the `Store` trait: the defaults, but for what every store
//! gets alike (memory, threads, direct I/O, no compression).

use super::{Common, Engine, Result, Store};
use std::path::Path;
use windrow::{Db, Options, ReadOptions, Settings};

/// Windrow.
pub const ENGINE: Engine = Engine { name: "windrow", open };

struct Windrow(Db);

fn open(dir: &Path, common: &Common) -> Result<Box<dyn Store>> {
    let mut settings = Settings {
        memory_bytes: common.memory_bytes,
        background_threads: common.background_threads,
        direct_io: common.direct_io,
        compression: "none".to_owned(),
        ..Settings::default()
    };
    // Names with a dot are a peer's.
    for (name, value) in common.settings.iter().filter(|(name, _)| !name.contains('.')) {
        settings.set(name, value)?;
    }
    let db = Db::open_with(dir, Options { settings, ..Options::default() })?;
    Ok(Box::new(Windrow(db)))
}

impl Store for Windrow {
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        Ok(self.0.put(key, value)?)
    }

    fn get(&mut self, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        value.clear();
        let found = self.0.get(key)?;
        if let Some(bytes) = &found {
            value.extend_from_slice(bytes);
        }
        Ok(found.is_some())
    }

    fn scan(&mut self, from: &[u8], nexts: u32) -> Result<(u32, u64)> {
        let mut cursor = self.0.cursor(ReadOptions::default());
        let (mut entries, mut bytes) = (0, 0);
        let mut valid = cursor.seek(from)?;
        while valid {
            entries += 1;
            bytes += (cursor.key().len() + cursor.value().len()) as u64;
            if entries > nexts {
                break;
            }
            valid = cursor.next()?;
        }
        Ok((entries, bytes))
    }

    fn delete(&mut self, key: &[u8]) -> Result<()> {
        Ok(self.0.delete(key)?)
    }

    fn drain(&mut self) -> Result<()> {
        self.0.flush()?;
        Ok(self.0.wait_idle()?)
    }

    fn statistics(&self) -> String {
        self.0.stats().to_string()
    }

    fn close(self: Box<Self>) -> Result<()> {
        Ok(self.0.close()?)
    }
}
