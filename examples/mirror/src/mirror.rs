//! The mirror's side: takes the copy, then applies changes.
//!
//! The copy is received in a directory of another name, which becomes the mirror's by a rename once the
//! database in it has opened. The number that comes next is in a keyspace of the mirror's own, and is
//! written with each batch. A copy has no such number: its own last sequence number is where it ends.

use crate::Failure;
use crate::frame::{Frame, Op, OpKind, write_hello};
use std::fs::File;
use std::io::{BufReader, Write};
use std::net::TcpStream;
use std::path::{Component, Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use windrow::{Batch, Db, Options, WriteSync};

/// The keyspace of the number that comes next.
pub const STATE: &str = "windrow.mirror";
const NEXT_SEQ: &str = "next_seq";

/// A source that says nothing for so long is gone.
const SILENCE: Duration = Duration::from_secs(10);
/// The time between two attempts to connect.
const PAUSE: Duration = Duration::from_millis(200);

/// Why a mirror ends.
#[derive(Debug)]
pub enum End {
    /// The connection ended; another one may go on.
    Lost(Failure),
    /// Only another copy helps: the mirror's directory must go.
    NeedsCopy(String),
    /// It cannot go on.
    Failed(Failure),
}

/// Keeps the mirror in `dir` until it cannot go on.
pub fn follow(address: &str, dir: &Path) -> Result<(), Failure> {
    loop {
        let end = match dir.exists() {
            false => receive_copy(address, dir),
            true => apply_changes(address, dir),
        };
        match end {
            Ok(()) => {}
            Err(End::Lost(why)) => {
                eprintln!("{why}; connecting again");
                std::thread::sleep(PAUSE);
            }
            Err(End::NeedsCopy(why)) => {
                let dir = dir.display();
                return Err(format!("{why}: remove {dir} to have it copied again").into());
            }
            Err(End::Failed(why)) => return Err(why),
        }
    }
}

fn connected(address: &str, next_seq: u64) -> Result<BufReader<TcpStream>, Failure> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(SILENCE))?;
    stream.set_write_timeout(Some(SILENCE))?;
    write_hello(&mut stream, next_seq)?;
    Ok(BufReader::with_capacity(1 << 20, stream))
}

/// Receives a copy. It is there whole, or not at all.
fn receive_copy(address: &str, dir: &Path) -> Result<(), End> {
    let mut from = connected(address, 0).map_err(End::Lost)?;
    let unfinished = named_next_to(dir, ".unfinished");
    let local = |error: std::io::Error| End::Failed(error.into());
    if unfinished.exists() {
        std::fs::remove_dir_all(&unfinished).map_err(local)?;
    }
    std::fs::create_dir_all(&unfinished).map_err(local)?;
    let mut file: Option<File> = None;
    loop {
        match Frame::read(&mut from).map_err(End::Lost)? {
            Frame::Copy | Frame::Idle => {}
            Frame::File(name) => {
                finish(file.take()).map_err(local)?;
                file = Some(File::create_new(unfinished.join(checked(&name)?)).map_err(local)?);
            }
            Frame::Bytes(bytes) => match &mut file {
                Some(file) => file.write_all(&bytes).map_err(local)?,
                None => return Err(End::Lost("bytes of no file".into())),
            },
            Frame::CopyEnd => {
                finish(file.take()).map_err(local)?;
                break;
            }
            Frame::Refused(_, why) => return Err(End::Lost(why.into())),
            Frame::Change(..) => return Err(End::Lost("a change within a copy".into())),
        }
    }
    File::open(&unfinished).and_then(|dir| dir.sync_all()).map_err(local)?;
    // A copy that does not open is none.
    let database = |error: windrow::Error| End::Failed(error.into());
    Db::open(&unfinished).and_then(|db| db.close()).map_err(database)?;
    std::fs::rename(&unfinished, dir).map_err(local)?;
    let parent = dir.parent().filter(|parent| !parent.as_os_str().is_empty());
    let parent = File::open(parent.unwrap_or(Path::new(".")));
    parent.and_then(|parent| parent.sync_all()).map_err(local)
}

fn finish(file: Option<File>) -> std::io::Result<()> {
    file.map_or(Ok(()), |file| file.sync_all())
}

/// A name that the source sent: of a file in the directory itself.
fn checked(name: &str) -> Result<&str, End> {
    let mut components = Path::new(name).components();
    match (components.next(), components.next()) {
        (Some(Component::Normal(only)), None) if only == name => Ok(name),
        _ => Err(End::Failed(format!("the source names a file {name:?}").into())),
    }
}

fn named_next_to(dir: &Path, suffix: &str) -> PathBuf {
    let mut name = dir.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// Applies changes until the connection ends.
fn apply_changes(address: &str, dir: &Path) -> Result<(), End> {
    let failed = |error: windrow::Error| End::Failed(error.into());
    let options = Options { create_if_missing: false, ..Options::default() };
    let db = Db::open_with(dir, options).map_err(failed)?;
    let mut from = connected(address, next_seq(&db).map_err(End::Failed)?).map_err(End::Lost)?;
    loop {
        match Frame::read(&mut from).map_err(End::Lost)? {
            Frame::Idle => {}
            Frame::Change(next_seq, ops) => apply(&db, next_seq, &ops).map_err(failed)?,
            Frame::Refused(true, why) => return Err(End::NeedsCopy(why)),
            Frame::Refused(false, why) => return Err(End::Lost(why.into())),
            other => return Err(End::Lost(format!("{other:?} among changes").into())),
        }
    }
}

/// The number of the change that comes next for a mirror.
pub fn next_seq(db: &Db) -> Result<u64, Failure> {
    let state = db.open_keyspace(STATE)?;
    match state.map(|state| state.get(NEXT_SEQ)).transpose()?.flatten() {
        Some(number) => Ok(u64::from_be_bytes(number.as_bytes().try_into()?)),
        None => Ok(db.snapshot().seq() + 1),
    }
}

/// Applies a batch, and writes the number that comes next with it. A drop is no write: it comes by
/// itself, and is done again where the number was not written.
fn apply(db: &Db, next_seq: u64, ops: &[Op]) -> windrow::Result<()> {
    let mut batch = Batch::new();
    for op in ops {
        if op.kind == OpKind::Drop {
            if db.open_keyspace(&op.keyspace)?.is_some() {
                db.drop_keyspace(&op.keyspace)?;
            }
            continue;
        }
        let keyspace = &db.keyspace(&op.keyspace)?;
        let (key, value) = (&op.key, &op.value);
        match (op.kind, op.expiry_ms) {
            (OpKind::Put, None) => batch.put(keyspace, key, value),
            (OpKind::Put, Some(ms)) => {
                batch.put_until(keyspace, key, value, UNIX_EPOCH + Duration::from_millis(ms));
            }
            (OpKind::Merge, None) => batch.merge(keyspace, key, value),
            (OpKind::Merge, Some(ms)) => {
                let until = UNIX_EPOCH + Duration::from_millis(ms);
                match until.duration_since(SystemTime::now()) {
                    Ok(left) => batch.merge_with_ttl(keyspace, key, value, left),
                    // An operand that has expired counts as a delete in its place.
                    Err(_) => batch.delete(keyspace, key),
                }
            }
            (OpKind::Delete, _) => batch.delete(keyspace, key),
            (OpKind::SingleDelete, _) => batch.single_delete(keyspace, key),
            (OpKind::DeleteRange, _) => batch.delete_range(keyspace, key, value),
            (OpKind::Drop, _) => {}
        }
    }
    batch.put(&db.keyspace(STATE)?, NEXT_SEQ, next_seq.to_be_bytes());
    db.write(batch, WriteSync::No).map(drop)
}
