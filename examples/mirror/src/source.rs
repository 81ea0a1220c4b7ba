//! The source's side: a copy where a mirror asks for one, and the feed of changes.
//!
//! It serves what a follower reads, so that the database may be open in another process; or, in the
//! writer's own process, changes that are on the device only. The latter is for machines that lose their
//! power: a mirror of a follower may have a write that the source then has not, and must be copied again.

use crate::Failure;
use crate::frame::{Frame, read_hello};
use std::io::{BufWriter, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::time::Duration;
use windrow::changes::{ChangeOptions, Changes};
use windrow::{Db, Follower};

/// The bytes of a file that go into a frame.
const PIECE_BYTES: usize = 1 << 20;
/// How long a source waits for a change before it says that it is there.
const IDLE: Duration = Duration::from_millis(500);
/// How long a mirror may take none of the bytes that are sent.
const PATIENCE: Duration = Duration::from_secs(30);

/// A database that is mirrored.
#[derive(Clone)]
pub enum Source {
    /// Open in this process.
    Writer(Db),
    /// In this directory, open in another process or in none.
    Elsewhere(PathBuf),
}

impl Source {
    fn changes(&self, from: u64) -> windrow::Result<Changes> {
        let mut options = ChangeOptions::default();
        match self {
            Source::Writer(db) => {
                options.durable_only = true;
                db.changes(from, options)
            }
            Source::Elsewhere(dir) => Follower::open(dir)?.changes(from, options),
        }
    }

    fn checkpoint(&self, to: &Path) -> windrow::Result<()> {
        match self {
            Source::Writer(db) => db.checkpoint(to),
            Source::Elsewhere(dir) => Follower::open(dir)?.checkpoint(to),
        }
    }
}

/// Serves mirrors, each on a thread, until the listener fails. Copies are made in `room`, a directory on
/// the file system of the database, where a copy takes links instead of bytes.
pub fn serve(source: &Source, listener: &TcpListener, room: &Path) -> Result<(), Failure> {
    // Copies of an earlier process.
    if room.exists() {
        std::fs::remove_dir_all(room)?;
    }
    std::fs::create_dir_all(room)?;
    for number in 0u64.. {
        let (stream, peer) = listener.accept()?;
        let (source, copy) = (source.clone(), room.join(number.to_string()));
        std::thread::spawn(move || {
            let served = serve_one(&source, stream, &copy);
            let _ = std::fs::remove_dir_all(&copy);
            if let Err(failure) = served {
                eprintln!("{peer}: {failure}");
            }
        });
    }
    Ok(())
}

fn serve_one(source: &Source, mut stream: TcpStream, copy: &Path) -> Result<(), Failure> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    stream.set_nodelay(true)?;
    let mut out = BufWriter::new(stream.try_clone()?);
    let sent = read_hello(&mut stream).and_then(|next_seq| match next_seq {
        0 => send_copy(source, copy, &mut out),
        from => send_changes(source, from, &mut out),
    });
    if let Err(failure) = &sent {
        // The mirror may be gone, and hear nothing.
        let _ = Frame::Refused(false, failure.to_string()).write(&mut out);
    }
    out.flush()?;
    sent
}

fn send_copy(source: &Source, copy: &Path, out: &mut impl Write) -> Result<(), Failure> {
    source.checkpoint(copy)?;
    Frame::Copy.write(out)?;
    let mut names: Vec<_> = std::fs::read_dir(copy)?.collect::<Result<_, _>>()?;
    names.sort_by_key(|entry| entry.file_name());
    for entry in names {
        let name = entry.file_name().into_string().map_err(|_| "a file's name is no text")?;
        Frame::File(name).write(out)?;
        let mut file = std::fs::File::open(entry.path())?;
        loop {
            let mut piece = Vec::new();
            (&mut file).take(PIECE_BYTES as u64).read_to_end(&mut piece)?;
            if piece.is_empty() {
                break;
            }
            Frame::Bytes(piece).write(out)?;
        }
    }
    // The mirror connects again for what comes behind the copy.
    Frame::CopyEnd.write(out)
}

fn send_changes(source: &Source, from: u64, out: &mut impl Write) -> Result<(), Failure> {
    let mut changes = match source.changes(from) {
        Ok(changes) => changes,
        Err(error) => return refuse(&error, out),
    };
    loop {
        let next = match changes.try_next() {
            // All that there is goes out before a wait.
            Ok(None) => {
                out.flush()?;
                changes.next_within(IDLE)
            }
            next => next,
        };
        let frame = match next {
            Ok(None) => Frame::Idle,
            Ok(Some(change)) => match Frame::of_change(change) {
                Ok(frame) => frame,
                Err(why) => return Frame::Refused(true, why).write(out),
            },
            Err(error) => return refuse(&error, out),
        };
        frame.write(out)?;
    }
}

/// Tells a mirror that the feed does not have what comes next for it.
fn refuse(error: &windrow::Error, out: &mut impl Write) -> Result<(), Failure> {
    let needs_copy = error.kind() == windrow::ErrorKind::InvalidArgument;
    Frame::Refused(needs_copy, error.to_string()).write(out)
}
