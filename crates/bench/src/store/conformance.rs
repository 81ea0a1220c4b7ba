//! One test for every adapter: a store answers as a map does.
//!
//! Random writes, reads, scans, drains and reopenings over one key space and over three, then
//! several threads at once. An adapter that gets durability, batches or cursors wrong would still
//! give figures; here it fails.
//!
//! Owns: the model and the comparison. Never does: test an engine beyond the trait (no crashes, no
//! faults of the disk).

use super::{Codec, Common, Engine, Result, Store, Sync, Write};
use crate::data::{Draw, ValueMaker};
use std::collections::BTreeMap;
use std::ops::Bound;
use std::path::{Path, PathBuf};

/// Steps on one thread in each set-up.
const STEPS: u64 = 5000;

/// Keys of a space: few, so that most are overwritten and deleted often.
const KEYS: u64 = 800;

/// Longest value; a few thousand of them make more than one memtable.
const VALUE_BYTES: u64 = 3000;

/// Threads at the end, each with keys of its own.
const CLIENTS: u64 = 4;

/// Steps of each of these threads.
const CLIENT_STEPS: u64 = 1500;

/// Transactions of each client.
const ADDITIONS: u64 = 300;

/// The counters that transactions add to.
const COUNTERS: [&[u8]; 3] = [b"a", b"b", b"c"];

/// Contents of a key space.
type Map = BTreeMap<Vec<u8>, Vec<u8>>;

/// Compares an engine with a map, in new databases below `dir`: the default variant with no
/// settings; direct I/O and LZ4 where the engine has them.
///
/// # Errors
/// The first difference, with the step that it showed in, or the store's.
pub fn check(engine: &Engine, dir: &Path, seed: u64) -> Result<()> {
    for (name, common) in setups(engine) {
        let fail = |why: String| format!("{}, {name}, seed {seed}: {why}", engine.name);
        let dir = dir.join(name.replace(' ', "-"));
        let run = || -> Result<()> {
            let mut run = ConformanceRun::open(engine, dir, common, seed)?;
            for step in 0..STEPS {
                run.step().map_err(|why| format!("step {step}: {why}"))?;
            }
            run.clients()?;
            run.finish()
        };
        run().map_err(|why| fail(why.to_string()))?;
    }
    if engine.abilities.transactions {
        check_transactions(engine, "", &dir.join("transactions"))?;
    }
    Ok(())
}

/// Has several clients add to the same few counters, each addition a transaction that also sets a
/// key of its own: none is lost, none done in part.
///
/// # Errors
/// The first difference, or the store's.
pub fn check_transactions(engine: &Engine, variant: &str, dir: &Path) -> Result<()> {
    let [(_, plain), _] = setups(engine);
    let common = Common { variant: variant.to_owned(), transactions: true, ..plain };
    let store = (engine.open)(dir, &common)?;
    let store = store.as_ref();
    std::thread::scope(|scope| -> Result<()> {
        let start = |number| scope.spawn(move || additions(store, number));
        let started: Vec<_> = (0..CLIENTS).map(start).collect();
        let mut done = started.into_iter().map(|client| client.join());
        done.try_for_each(|done| done.map_err(|_| "a client panicked")?)
    })?;
    let (mut sum, mut value) = (0, Vec::new());
    for key in COUNTERS {
        store.get(0, key, &mut value)?;
        sum += number_in(&value);
    }
    let keys = store.scan(0, b"z", u64::MAX, &mut |_, _| {})?;
    let asked = CLIENTS * ADDITIONS;
    match (sum, keys) == (2 * asked, asked) {
        true => Ok(()),
        false => Err(format!(
            "{} {variant}: {asked} transactions counted {sum} and set {keys} keys",
            engine.name
        )
        .into()),
    }
}

/// Runs one client's transactions, each on two of the three counters.
fn additions(store: &dyn Store, client: u64) -> Result<()> {
    for n in 0..ADDITIONS {
        let left_out = (n + client) as usize % COUNTERS.len();
        let counters = COUNTERS.iter().enumerate().filter(|(i, _)| *i != left_out);
        let keys: Vec<(u32, &[u8])> = counters.map(|(_, key)| (0, *key)).collect();
        let own = format!("z{client}-{n}").into_bytes();
        let mut add = |values: &mut [Vec<u8>]| {
            for value in values {
                *value = (number_in(value) + 1).to_le_bytes().to_vec();
            }
        };
        let more = [Write::Put { space: 0, key: &own, value: b"done" }];
        let times = store.transact(&keys, &mut add, &more, Sync::No)?;
        if times == 0 {
            return Err("a transaction went through without being tried".into());
        }
    }
    Ok(())
}

/// Returns the number that a counter holds, 0 if it is empty.
fn number_in(value: &[u8]) -> u64 {
    value.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

/// Returns a plain set-up, and one with all abilities of the engine.
fn setups(engine: &Engine) -> [(&'static str, Common); 2] {
    let plain = Common {
        variant: String::new(),
        memory_bytes: 24 << 20,
        background_threads: 2,
        direct_io: false,
        codec: Codec::None,
        spaces: 1,
        transactions: false,
        settings: Vec::new(),
    };
    let able = Common {
        direct_io: engine.abilities.direct_io,
        codec: if engine.abilities.lz4 { Codec::Lz4 } else { Codec::None },
        spaces: 3,
        ..plain.clone()
    };
    [("one space", plain), ("three spaces", able)]
}

/// A store and the contents that it should have.
struct ConformanceRun<'a> {
    engine: &'a Engine,
    dir: PathBuf,
    common: Common,
    /// `None` only while it is being reopened.
    store: Option<Box<dyn Store>>,
    spaces: Vec<Map>,
    draw: Draw,
    data: ValueMaker,
    /// Point reads since it was opened.
    gets: u64,
}

impl ConformanceRun<'_> {
    fn open(
        engine: &Engine,
        dir: PathBuf,
        common: Common,
        seed: u64,
    ) -> Result<ConformanceRun<'_>> {
        let spaces = vec![Map::new(); common.spaces as usize];
        let data = ValueMaker::new(seed, VALUE_BYTES as usize);
        let store = Some((engine.open)(&dir, &common)?);
        Ok(ConformanceRun {
            engine,
            dir,
            common,
            store,
            spaces,
            draw: Draw::new(seed),
            data,
            gets: 0,
        })
    }

    fn store(&self) -> Result<&dyn Store> {
        Ok(self.store.as_deref().ok_or("the store is closed")?)
    }

    fn step(&mut self) -> Result<()> {
        match self.draw.below(1000) {
            0..350 => self.put(),
            350..500 => self.delete(),
            500..600 => self.batch(),
            600..800 => self.get(),
            800..880 => self.multi_get(),
            880..985 => self.scan(),
            985..988 => self.store()?.sync(),
            988..998 => self.store()?.drain(),
            _ => self.reopen(),
        }
    }

    fn space(&mut self) -> u32 {
        self.draw.below(u64::from(self.common.spaces)) as u32
    }

    /// Returns a key of one to five bytes and more: some are prefixes of others, some have the
    /// least and the greatest byte. Prefixes and bounds go wrong there.
    fn key(&mut self) -> Vec<u8> {
        let number = self.draw.below(KEYS);
        let mut key = vec![[0, b'k', 0xff][(number % 3) as usize]];
        key.extend(number.to_string().bytes());
        if number.is_multiple_of(7) {
            key.extend([0xff; 20]);
        }
        key
    }

    /// Returns a value, sometimes of no bytes.
    fn value(&mut self) -> Vec<u8> {
        let bytes = self.draw.below(VALUE_BYTES) as usize;
        let index = self.draw.below(u64::MAX);
        self.data.value_of(index, if bytes < 30 { 0 } else { bytes }).to_vec()
    }

    /// Returns the durability of a write: one in thirty waits for the device.
    fn sync(&mut self) -> Sync {
        if self.draw.below(30) == 0 { Sync::Yes } else { Sync::No }
    }

    fn put(&mut self) -> Result<()> {
        let (space, key, value, sync) = (self.space(), self.key(), self.value(), self.sync());
        if self.engine.abilities.expiry && self.draw.below(20) == 0 {
            self.store()?.put_for(space, &key, &value, 1_000_000)?;
        } else {
            self.store()?.put(space, &key, &value, sync)?;
        }
        self.spaces[space as usize].insert(key, value);
        Ok(())
    }

    fn delete(&mut self) -> Result<()> {
        let (space, key, sync) = (self.space(), self.key(), self.sync());
        self.store()?.delete(space, &key, sync)?;
        self.spaces[space as usize].remove(&key);
        Ok(())
    }

    /// Does several writes, sometimes of one key more than once: the last counts.
    fn batch(&mut self) -> Result<()> {
        let mut owned: Vec<(u32, Vec<u8>, Option<Vec<u8>>)> = Vec::new();
        for _ in 0..self.draw.below(12) {
            let value = (self.draw.below(3) > 0).then(|| self.value());
            let (space, key) = match owned.last() {
                Some((space, key, _)) if self.draw.below(8) == 0 => (*space, key.clone()),
                _ => (self.space(), self.key()),
            };
            owned.push((space, key, value));
        }
        let sync = self.sync();
        let writes: Vec<Write<'_>> = owned
            .iter()
            .map(|(space, key, value)| match value {
                Some(value) => Write::Put { space: *space, key, value },
                None => Write::Delete { space: *space, key },
            })
            .collect();
        self.store()?.write(&writes, sync)?;
        for (space, key, value) in owned {
            let map = &mut self.spaces[space as usize];
            match value {
                Some(value) => map.insert(key, value),
                None => map.remove(&key),
            };
        }
        Ok(())
    }

    fn get(&mut self) -> Result<()> {
        let (space, key) = (self.space(), self.key());
        self.gets += 1;
        // The old contents of the buffer must not show through.
        let mut value = b"left over".to_vec();
        let found = self.store()?.get(space, &key, &mut value)?;
        let expected = self.spaces[space as usize].get(&key);
        let same = found == expected.is_some() && value == expected.map_or(&[][..], |v| v);
        same.then_some(()).ok_or_else(|| {
            let (got, want) = (value.len(), expected.map(Vec::len));
            format!("get of {key:02x?} in {space}: {found}, {got} bytes, not {want:?}").into()
        })
    }

    fn multi_get(&mut self) -> Result<()> {
        let space = self.space();
        let keys: Vec<Vec<u8>> = (0..self.draw.below(10)).map(|_| self.key()).collect();
        let asked: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
        let mut got: Vec<(usize, Option<Vec<u8>>)> = Vec::new();
        let mut each = |at: usize, value: Option<&[u8]>| got.push((at, value.map(<[u8]>::to_vec)));
        self.store()?.multi_get(space, &asked, &mut each)?;
        let map = &self.spaces[space as usize];
        let expected = keys.iter().map(|key| map.get(key).cloned()).enumerate();
        let same = got.iter().cloned().eq(expected);
        same.then_some(()).ok_or_else(|| format!("multi_get of {keys:02x?} in {space}").into())
    }

    fn scan(&mut self) -> Result<()> {
        let (space, mut from, entries) = (self.space(), self.key(), self.draw.below(40));
        match self.draw.below(4) {
            0 => from.push(0),
            1 => from.truncate(1),
            _ => {}
        }
        same_scan(self.store()?, &self.spaces, space, &from, entries)
    }

    fn reopen(&mut self) -> Result<()> {
        self.store.take().ok_or("the store is closed")?.close()?;
        self.store = Some((self.engine.open)(&self.dir, &self.common)?);
        self.gets = 0;
        self.same_contents()
    }

    /// Compares every space from its start, with a scan of one entry more than it has.
    fn same_contents(&self) -> Result<()> {
        for (space, map) in self.spaces.iter().enumerate() {
            let entries = map.len() as u64 + 1;
            same_scan(self.store()?, &self.spaces, space as u32, &[0], entries)?;
        }
        Ok(())
    }

    /// Runs threads that write and read at once, each its own keys.
    fn clients(&mut self) -> Result<()> {
        let store = self.store()?;
        let (data, spaces) = (&self.data, self.common.spaces);
        let maps: Vec<Vec<Map>> = std::thread::scope(|scope| {
            let start = |number| scope.spawn(move || client(store, data, spaces, number));
            let started: Vec<_> = (0..CLIENTS).map(start).collect();
            let done = started.into_iter().map(|client| client.join());
            done.map(|map| map.map_err(|_| "a client panicked")?).collect::<Result<_>>()
        })?;
        for maps in maps {
            for (space, map) in self.spaces.iter_mut().zip(maps) {
                space.extend(map);
            }
        }
        self.same_contents()
    }

    /// Compares the contents after a drain and after another opening, and checks the store's
    /// counters and tree.
    fn finish(mut self) -> Result<()> {
        self.reopen()?;
        for _ in 0..100 {
            self.get()?;
        }
        let store = self.store()?;
        store.drain()?;
        if let Some(gets) = store.counters().gets.filter(|&gets| gets < self.gets) {
            return Err(format!("{gets} gets counted of {}", self.gets).into());
        }
        if let Some(bytes) = store.tree().bytes.filter(|&bytes| bytes == 0) {
            return Err(format!("{bytes} bytes of tables after a drain").into());
        }
        if store.statistics().is_empty() {
            return Err("no statistics".into());
        }
        self.same_contents()?;
        self.store.take().ok_or("the store is closed")?.close()
    }
}

/// Compares a scan with the map's.
fn same_scan(
    store: &dyn Store,
    spaces: &[Map],
    space: u32,
    from: &[u8],
    entries: u64,
) -> Result<()> {
    let map = &spaces[space as usize];
    let mut expected =
        map.range::<[u8], _>((Bound::Included(from), Bound::Unbounded)).take(entries as usize);
    let count = expected.clone().count() as u64;
    let mut differs = None;
    let met = store.scan(space, from, entries, &mut |key, value| {
        let same = expected.next().is_some_and(|(k, v)| k == key && v == value);
        if !same && differs.is_none() {
            differs = Some(key.to_vec());
        }
    })?;
    if let Some(key) = differs {
        return Err(format!("scan of {entries} from {from:02x?} in {space}: {key:02x?}").into());
    }
    if met != count || expected.next().is_some() {
        return Err(format!("scan from {from:02x?} in {space}: {met} entries, not {count}").into());
    }
    Ok(())
}

/// Runs one thread's writes and reads; returns the contents that its keys should have.
fn client(store: &dyn Store, data: &ValueMaker, spaces: u32, number: u64) -> Result<Vec<Map>> {
    let mut draw = Draw::new(number);
    let mut maps = vec![Map::new(); spaces as usize];
    let mut got = Vec::new();
    for step in 0..CLIENT_STEPS {
        let space = draw.below(u64::from(spaces)) as u32;
        let map = &mut maps[space as usize];
        // The key begins with a letter that no other client's key begins with.
        let key = format!("z{number}-{}", draw.below(100)).into_bytes();
        match draw.below(5) {
            0 => {
                store.delete(space, &key, Sync::No)?;
                map.remove(&key);
            }
            1 | 2 => {
                let value = data.value_of(draw.below(u64::MAX), draw.below(500) as usize);
                store.write(&[Write::Put { space, key: &key, value }], Sync::No)?;
                map.insert(key, value.to_vec());
            }
            3 => {
                let found = store.get(space, &key, &mut got)?;
                if found.then_some(&got) != map.get(&key) {
                    return Err(format!("client {number}, step {step}: get {key:02x?}").into());
                }
            }
            _ => same_own_scan(store, map, space, number, &key)?,
        }
    }
    Ok(maps)
}

/// Compares the next ten entries, as far as they are this client's.
fn same_own_scan(store: &dyn Store, map: &Map, space: u32, number: u64, from: &[u8]) -> Result<()> {
    let prefix = format!("z{number}-").into_bytes();
    let mut got: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
    store.scan(space, from, 10, &mut |key, value| got.push((key.to_vec(), value.to_vec())))?;
    let own = got.iter().filter(|(key, _)| key.starts_with(&prefix));
    let expected = map.range(from.to_vec()..).take(10);
    if own.map(|(k, v)| (k, v)).eq(expected) {
        return Ok(());
    }
    Err(format!("client {number}: scan from {from:02x?} in {space}").into())
}

#[cfg(test)]
mod tests {
    use super::super::windrow::ENGINE as WINDROW;
    use super::super::{Counters, OnEntry, OnValue, Tree};
    use super::*;

    fn run(engine: &Engine) -> Result<()> {
        let dir = tempfile::tempdir()?;
        check(engine, dir.path(), 1)
    }

    #[test]
    fn windrow_conforms() {
        run(&WINDROW).unwrap();
        let dir = tempfile::tempdir().unwrap();
        check_transactions(&WINDROW, "pessimistic", dir.path()).unwrap();
    }

    /// Windrow's adapter with one fault, to test the check itself.
    struct Faulty {
        store: Box<dyn Store>,
        fault: Fault,
    }

    #[derive(Clone, Copy, PartialEq)]
    enum Fault {
        /// Forgets the deletes of batches.
        Batch,
        /// Leaves the buffer as it was when a key is absent.
        Get,
        /// Calls back in the wrong order.
        MultiGet,
        /// Begins after the key that it should begin at.
        Scan,
        /// Counts no gets.
        Counters,
        /// Puts into space 0, for any space.
        Space,
    }

    impl Store for Faulty {
        fn put(&self, space: u32, key: &[u8], value: &[u8], sync: Sync) -> Result<()> {
            let space = if self.fault == Fault::Space { 0 } else { space };
            self.store.put(space, key, value, sync)
        }

        fn put_for(&self, space: u32, key: &[u8], value: &[u8], seconds: u64) -> Result<()> {
            self.store.put_for(space, key, value, seconds)
        }

        fn delete(&self, space: u32, key: &[u8], sync: Sync) -> Result<()> {
            self.store.delete(space, key, sync)
        }

        fn write(&self, writes: &[Write<'_>], sync: Sync) -> Result<()> {
            let keep =
                |w: &&Write<'_>| self.fault != Fault::Batch || !matches!(w, Write::Delete { .. });
            let kept: Vec<Write<'_>> = writes.iter().filter(keep).copied().collect();
            self.store.write(&kept, sync)
        }

        fn get(&self, space: u32, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
            let mut own = Vec::new();
            let found = self.store.get(space, key, &mut own)?;
            if found || self.fault != Fault::Get {
                *value = own;
            }
            Ok(found)
        }

        fn multi_get(&self, space: u32, keys: &[&[u8]], each: OnValue<'_>) -> Result<()> {
            if self.fault != Fault::MultiGet {
                return self.store.multi_get(space, keys, each);
            }
            let mut value = Vec::new();
            for (i, key) in keys.iter().enumerate().rev() {
                let found = self.store.get(space, key, &mut value)?;
                each(i, found.then_some(value.as_slice()));
            }
            Ok(())
        }

        fn scan(&self, space: u32, from: &[u8], entries: u64, each: OnEntry<'_>) -> Result<u64> {
            let mut from = from.to_vec();
            if self.fault == Fault::Scan {
                from.push(0);
            }
            self.store.scan(space, &from, entries, each)
        }

        fn sync(&self) -> Result<()> {
            self.store.sync()
        }

        fn drain(&self) -> Result<()> {
            self.store.drain()
        }

        fn counters(&self) -> Counters {
            let gets = if self.fault == Fault::Counters { Some(0) } else { None };
            Counters { gets, ..self.store.counters() }
        }

        fn tree(&self) -> Tree {
            self.store.tree()
        }

        fn statistics(&self) -> String {
            self.store.statistics()
        }

        fn close(self: Box<Self>) -> Result<()> {
            self.store.close()
        }
    }

    fn faulty(dir: &Path, common: &Common, fault: Fault) -> Result<Box<dyn Store>> {
        Ok(Box::new(Faulty { store: (WINDROW.open)(dir, common)?, fault }))
    }

    /// Returns the message that a fault must give.
    fn caught(open: fn(&Path, &Common) -> Result<Box<dyn Store>>) -> String {
        run(&Engine { open, ..WINDROW }).expect_err("a fault went unnoticed").to_string()
    }

    #[test]
    fn faults_are_caught() {
        let said = caught(|dir, common| faulty(dir, common, Fault::Get));
        assert!(said.contains("get of"), "{said}");
        let said = caught(|dir, common| faulty(dir, common, Fault::MultiGet));
        assert!(said.contains("multi_get of"), "{said}");
        let said = caught(|dir, common| faulty(dir, common, Fault::Scan));
        assert!(said.contains("scan"), "{said}");
        let said = caught(|dir, common| faulty(dir, common, Fault::Counters));
        assert!(said.contains("gets counted"), "{said}");
        let said = caught(|dir, common| faulty(dir, common, Fault::Space));
        assert!(said.contains("three spaces"), "{said}");
        // Any of the reads may meet the key first.
        caught(|dir, common| faulty(dir, common, Fault::Batch));
    }
}
