//! Tests of the operating system's files, in a temporary directory.
//!
//! Owns: the cases. Never does: use the simulated file system.

use super::*;
use crate::fs::{
    DIRECT_ALIGN_BYTES, LockMode, ReadFileOptions, ReadRequest, WriteOptions, is_not_found,
};
use crate::sys::aligned::AlignedBuf;
use crate::sys::window::WINDOW_BYTES;
use crate::testing::Rng;
use crate::{Buffer, FileSystem, ReadFile};
use std::path::Path;
use windrow_base::ErrorKind;

fn bytes(seed: u64, len: usize) -> Vec<u8> {
    let mut rng = Rng::new(seed);
    (0..len).map(|_| rng.next_u64() as u8).collect()
}

fn write(fs: &OsFs, path: &Path, bytes: &[u8], options: WriteOptions, piece: usize) {
    let mut file = fs.create(path, options).unwrap();
    assert!(file.is_empty());
    for part in bytes.chunks(piece) {
        file.append(part).unwrap();
    }
    assert_eq!(file.len(), bytes.len() as u64);
    file.finish().unwrap();
    assert!(file.append(b"late").is_err() && file.sync().is_err());
}

#[test]
fn files_read_back_as_written_direct_or_not() {
    let dir = tempfile::tempdir().unwrap();
    let fs = OsFs::new();
    for direct in [false, true] {
        for (case, (len, piece)) in
            [(0, 1), (1, 1), (4_096, 4_096), (300_000, 777), (2_500_000, 100_001)]
                .iter()
                .enumerate()
        {
            let path = dir.path().join(format!("{direct}-{case}"));
            let wanted = bytes(case as u64, *len);
            let options = WriteOptions { direct, preallocate_bytes: 3_000_000 };
            write(&fs, &path, &wanted, options, *piece);
            assert_eq!(fs.len(&path).unwrap(), *len as u64);
            assert!(fs.read_all(&path).unwrap() == wanted, "{direct} {len}");
        }
    }
}

#[test]
fn a_direct_file_can_be_synced_in_the_middle_of_a_block() {
    let dir = tempfile::tempdir().unwrap();
    let (fs, path) = (OsFs::new(), dir.path().join("f"));
    let wanted = bytes(3, 700_000);
    let mut file =
        fs.create(&path, WriteOptions { direct: true, ..WriteOptions::default() }).unwrap();
    for (index, part) in wanted.chunks(70_001).enumerate() {
        file.append(part).unwrap();
        file.sync().unwrap();
        assert_eq!(fs.len(&path).unwrap(), ((index + 1) * 70_001).min(700_000) as u64);
    }
    file.finish().unwrap();
    assert!(fs.read_all(&path).unwrap() == wanted);
}

#[test]
fn unaligned_reads_direct_or_not() {
    let dir = tempfile::tempdir().unwrap();
    let (fs, path) = (OsFs::new(), dir.path().join("f"));
    let wanted = bytes(1, 1_000_003);
    write(&fs, &path, &wanted, WriteOptions::default(), 1 << 20);
    for direct in [false, true] {
        let file = fs.open(&path, ReadFileOptions { direct }).unwrap();
        assert_eq!((file.len(), file.path()), (1_000_003, path.as_path()));
        let mut rng = Rng::new(9);
        for _ in 0..300 {
            let offset = rng.below(1_000_003) as usize;
            let limit = if rng.chance(0.1) { 900_000 } else { 9_000 };
            let len = rng.below(limit.min(1_000_003 - offset as u64) + 1) as usize;
            let mut buf = vec![0; len];
            file.read_at(offset as u64, &mut buf).unwrap();
            assert!(buf == wanted[offset..offset + len], "{direct} {offset} {len}");
        }
        file.read_ahead(0, 100_000);
        let error = file.read_at(1_000_000, &mut [0; 4]).unwrap_err();
        assert!(error.is_corruption(), "{error}");
        assert_eq!(error.offset(), Some(1_000_000));
        assert!(error.message().contains("3 bytes into a read of 4"), "{error}");
        assert!(file.read_at(5_000_000, &mut [0; 4]).unwrap_err().is_corruption());
    }
}

/// The stated alignment is enough: reads at every multiple of it, directly into memory of that
/// alignment, alone and in a batch.
#[test]
fn direct_reads_take_the_alignment_that_the_file_states() {
    let dir = tempfile::tempdir().unwrap();
    let (fs, path) = (OsFs::new(), dir.path().join("f"));
    let wanted = bytes(5, 64 << 10);
    write(&fs, &path, &wanted, WriteOptions::default(), 1 << 20);
    assert_eq!(fs.open(&path, ReadFileOptions::default()).unwrap().direct_align(), None);
    let file = fs.open(&path, ReadFileOptions { direct: true }).unwrap();
    // A file system without direct I/O states no alignment.
    let Some(align) = file.direct_align() else { return };
    assert!(align.is_power_of_two() && align <= DIRECT_ALIGN_BYTES, "{align}");
    let mut memory = AlignedBuf::new(wanted.len());
    for (index, piece) in memory.chunks_mut(align).enumerate() {
        file.read_at((index * align) as u64, piece).unwrap();
    }
    assert!(memory[..] == wanted[..]);
    let mut memory = AlignedBuf::new(wanted.len());
    let mut requests: Vec<ReadRequest<'_>> = memory
        .chunks_mut(align)
        .enumerate()
        .map(|(index, buf)| {
            let offset = (index * align) as u64;
            ReadRequest { file: &*file, offset, buf, result: Ok(()) }
        })
        .collect();
    fs.read_many(&mut requests);
    assert!(requests.iter().all(|request| request.result.is_ok()));
    assert!(memory[..] == wanted[..]);
}

/// By one system call, by several, and through scratch memory.
#[test]
fn pieces_are_filled_one_after_the_other() {
    let dir = tempfile::tempdir().unwrap();
    let (fs, path) = (OsFs::new(), dir.path().join("f"));
    let wanted = bytes(3, 3_000_000);
    write(&fs, &path, &wanted, WriteOptions::default(), 1 << 20);
    let files = [true, false].map(|direct| fs.open(&path, ReadFileOptions { direct }).unwrap());
    let mut rng = Rng::new(1);
    for (count, most) in [(1, 5000), (3, 9000), (20, 30_000), (2500, 300), (4, 400_000)] {
        for file in files.iter().flat_map(|file| [file; 20]) {
            let lens = (0..count).map(|_| rng.below(most) as usize);
            let mut pieces: Vec<Buffer> = lens.map(Buffer::new).collect();
            let offset = if rng.chance(0.5) { rng.below(3_000_000) } else { rng.below(700) * 4096 };
            let len: usize = pieces.iter().map(|piece| piece.len()).sum();
            let read = file.read_pieces_at(offset, &mut pieces);
            if offset as usize + len > wanted.len() {
                assert!(read.unwrap_err().is_corruption());
                continue;
            }
            read.unwrap();
            let all: Vec<u8> = pieces.iter().flat_map(|piece| piece.iter().copied()).collect();
            assert!(all == wanted[offset as usize..][..len], "{count} pieces from {offset} on");
        }
    }
}

#[test]
fn read_many_answers_each_request() {
    let dir = tempfile::tempdir().unwrap();
    let (fs, path) = (OsFs::new(), dir.path().join("f"));
    let wanted = bytes(2, 3_000_000);
    write(&fs, &path, &wanted, WriteOptions::default(), 1 << 20);
    let files: Vec<_> =
        [true, false].map(|direct| fs.open(&path, ReadFileOptions { direct }).unwrap()).into();
    for count in [0, 1, 2, 8, 64, 65, 200] {
        let mut rng = Rng::new(count);
        let mut bufs: Vec<Vec<u8>> =
            (0..count).map(|_| vec![0; rng.below(20_000) as usize]).collect();
        let mut requests: Vec<ReadRequest<'_>> = bufs
            .iter_mut()
            .map(|buf| ReadRequest {
                file: &*files[rng.below(2) as usize],
                offset: rng.below(3_000_000),
                buf,
                result: Ok(()),
            })
            .collect();
        fs.read_many(&mut requests);
        let mut beyond = 0;
        for request in &requests {
            let (start, len) = (request.offset as usize, request.buf.len());
            match &request.result {
                Ok(()) => assert!(*request.buf == wanted[start..start + len], "{count} {start}"),
                Err(error) => {
                    assert!(start + len > wanted.len() && error.is_corruption(), "{error}");
                    beyond += 1;
                }
            }
        }
        assert_eq!(
            beyond,
            requests.iter().filter(|r| r.offset as usize + r.buf.len() > 3_000_000).count()
        );
    }
}

/// Parent and child have rings of their own: neither sees or completes the reads of the other.
#[test]
fn a_forked_child_reads_many_and_so_does_its_parent_again() {
    let dir = tempfile::tempdir().unwrap();
    let (fs, path) = (OsFs::new(), dir.path().join("f"));
    write(&fs, &path, &[2; 100], WriteOptions::default(), 100);
    let file = fs.open(&path, ReadFileOptions::default()).unwrap();
    let read = || {
        let mut bufs = [[0u8; 10]; 8];
        let mut requests: Vec<ReadRequest<'_>> = bufs
            .iter_mut()
            .map(|buf| ReadRequest { file: &*file, offset: 0, buf, result: Ok(()) })
            .collect();
        fs.read_many(&mut requests);
        requests.iter().all(|r| r.result.is_ok()) && bufs == [[2; 10]; 8]
    };
    assert!(read());
    assert!(crate::sys::fork::in_child(|| read() && read()));
    assert!(read() && read());
}

/// A file without a descriptor among others in one batch.
#[test]
fn read_many_takes_files_that_the_ring_cannot() {
    struct Ones;
    impl ReadFile for Ones {
        fn read_at(&self, _offset: u64, buf: &mut [u8]) -> windrow_base::Result<()> {
            buf.fill(1);
            Ok(())
        }
        fn len(&self) -> u64 {
            100
        }
        fn path(&self) -> &Path {
            Path::new("ones")
        }
    }
    let dir = tempfile::tempdir().unwrap();
    let (fs, path) = (OsFs::new(), dir.path().join("f"));
    write(&fs, &path, &[2; 100], WriteOptions::default(), 100);
    let file = fs.open(&path, ReadFileOptions::default()).unwrap();
    let mut bufs = [[0u8; 10]; 4];
    let mut requests: Vec<ReadRequest<'_>> = bufs
        .iter_mut()
        .enumerate()
        .map(|(index, buf)| {
            let file: &dyn ReadFile = if index % 2 == 0 { &Ones } else { &*file };
            ReadRequest { file, offset: 0, buf, result: Ok(()) }
        })
        .collect();
    fs.read_many(&mut requests);
    assert!(requests.iter().all(|r| r.result.is_ok()));
    assert_eq!(bufs, [[1; 10], [2; 10], [1; 10], [2; 10]]);
}

#[test]
#[allow(clippy::disallowed_methods)] // threads that race on one log
fn log_writers_cross_windows_and_the_end_of_the_reservation() {
    for map in [true, false] {
        let dir = tempfile::tempdir().unwrap();
        let (fs, path) = (OsFs::new().with_mapped_logs(map), dir.path().join("log"));
        let capacity = 2 * WINDOW_BYTES + 10_000;
        let log = fs.create_log(&path, capacity).unwrap();
        assert_eq!(fs.len(&path).unwrap(), capacity);
        let wanted = bytes(4, capacity as usize + 3_000_000);
        let next = crate::sync::real::atomic::AtomicU64::new(0);
        std::thread::scope(|scope| {
            for thread in 0..4u64 {
                let (log, wanted, next) = (&log, &wanted, &next);
                scope.spawn(move || {
                    let mut rng = Rng::new(thread);
                    loop {
                        let limit = if rng.chance(0.01) { 300_000 } else { 2_000 };
                        let len = rng.below(limit) + 1;
                        let at = next.fetch_add(len, crate::sync::real::atomic::Ordering::Relaxed);
                        if at >= wanted.len() as u64 {
                            break;
                        }
                        let end = (at + len).min(wanted.len() as u64);
                        log.write_at(at, &wanted[at as usize..end as usize]).unwrap();
                        if thread == 0 && rng.chance(0.02) {
                            log.sync().unwrap();
                        }
                    }
                });
            }
        });
        log.sync().unwrap();
        let got = fs.read_all(&path).unwrap();
        assert!(got[..wanted.len()] == wanted[..], "mapped {map}");
        assert!(got[wanted.len()..].iter().all(|&byte| byte == 0));
    }
}

#[test]
fn what_a_log_took_is_seen_by_others_before_any_sync() {
    let dir = tempfile::tempdir().unwrap();
    let (fs, path) = (OsFs::new(), dir.path().join("log"));
    let log = fs.create_log(&path, 1 << 20).unwrap();
    for record in 0..2_000u64 {
        log.write_at(record * 116, &[record as u8; 116]).unwrap();
    }
    let file = fs.open(&path, ReadFileOptions::default()).unwrap();
    let mut buf = [0; 116];
    for record in 0..2_000u64 {
        file.read_at(record * 116, &mut buf).unwrap();
        assert_eq!(buf, [record as u8; 116]);
    }
}

#[test]
fn a_reservation_that_does_not_fit_is_no_space() {
    let dir = tempfile::tempdir().unwrap();
    let (fs, path) = (OsFs::new(), dir.path().join("log"));
    assert!(fs.free_bytes(dir.path()).unwrap() > 0);
    // More than any device holds: the free space must stay free, also for the tests that run
    // concurrently.
    let log = fs.create_log(&path, 1 << 20).unwrap();
    let error = log.reserve(1 << 62).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NoSpace, "{error}");
    assert_eq!(error.file(), path.to_str());
    assert_eq!((log.reserved_bytes(), fs.len(&path).unwrap()), (64 << 10, 1 << 20));
    log.write_at(0, b"as sound as before").unwrap();
    // A length that no file can have: no file is left behind.
    let other = dir.path().join("other");
    assert!(fs.create_log(&other, u64::MAX >> 1).is_err());
    assert!(!fs.exists(&other).unwrap(), "the file is gone with what it reserved");
}

/// The bytes that a file takes on the device.
#[allow(clippy::disallowed_methods)] // what no trait tells
fn allocated_bytes(path: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata(path).unwrap().blocks() * 512
}

#[test]
fn a_log_takes_space_in_steps_and_gives_back_what_it_does_not_use() {
    const LEN: u64 = 80 << 20;
    for map in [true, false] {
        let dir = tempfile::tempdir().unwrap();
        let (fs, path) = (OsFs::new().with_mapped_logs(map), dir.path().join("log"));
        let log = fs.create_log(&path, LEN).unwrap();
        if log.reserved_bytes() == u64::MAX {
            eprintln!("skipped: this file system reserves nothing");
            return;
        }
        assert!(allocated_bytes(&path) < 256 << 10, "{}", allocated_bytes(&path));
        let wanted = bytes(9, 3 << 20);
        for (index, part) in wanted.chunks(10_000).enumerate() {
            log.write_at(index as u64 * 10_000, part).unwrap();
        }
        let reserved = log.reserved_bytes();
        assert_eq!((reserved, fs.len(&path).unwrap()), (4 << 20, LEN), "the length stays");
        assert!(reserved <= allocated_bytes(&path), "so much is reserved indeed");
        log.reserve(reserved).unwrap();
        assert_eq!(log.reserved_bytes(), reserved, "it had that much");
        log.release(wanted.len() as u64);
        log.release(wanted.len() as u64);
        assert_eq!((log.reserved_bytes(), fs.len(&path).unwrap()), (3 << 20, LEN));
        log.sync().unwrap();
        assert!(allocated_bytes(&path) < (3 << 20) + (256 << 10), "{}", allocated_bytes(&path));
        let got = fs.read_all(&path).unwrap();
        assert!(got[..wanted.len()] == wanted[..] && got[wanted.len()..].iter().all(|&b| b == 0));
        // A later write there still finds space.
        log.write_at(LEN - 2, b"late").unwrap();
        assert!(fs.read_all(&path).unwrap()[LEN as usize - 2..].starts_with(b"late"));
    }
}

#[test]
#[allow(clippy::disallowed_methods)] // what no trait tells
fn what_is_reserved_ahead_goes_back_or_is_not_taken_at_all() {
    use std::os::unix::fs::MetadataExt;
    let dir = tempfile::tempdir().unwrap();
    let fs = OsFs::new();
    let free = fs.free_bytes(dir.path()).unwrap();
    let taken = |path: &Path| std::fs::metadata(path).unwrap().blocks() * 512;
    // More than the share of the free space; more than is used.
    for (name, preallocate_bytes) in [("much", free / 4), ("some", 1 << 20)] {
        let path = dir.path().join(name);
        let options = WriteOptions { direct: false, preallocate_bytes };
        let mut file = fs.create(&path, options).unwrap();
        assert!(taken(&path) <= 1 << 20, "{name}: {} bytes are taken", taken(&path));
        file.append(&[7; 5_000]).unwrap();
        file.finish().unwrap();
        assert!(taken(&path) <= 64 << 10, "{name}: {} bytes stay", taken(&path));
        assert_eq!(fs.len(&path).unwrap(), 5_000);
    }
}

#[test]
fn a_lock_is_busy_for_the_same_process_too() {
    let dir = tempfile::tempdir().unwrap();
    let (fs, path) = (OsFs::new(), dir.path().join("LOCK"));
    drop(fs.lock(&path, LockMode::Shared).unwrap());
    assert!(!fs.exists(&path).unwrap(), "a shared lock creates nothing");

    let lock = fs.lock(&path, LockMode::Exclusive).unwrap();
    let pid = format!("{}\n", std::process::id());
    assert_eq!(fs.read_all(&path).unwrap(), pid.as_bytes());
    for mode in [LockMode::Exclusive, LockMode::Shared] {
        let error = fs.lock(&path, mode).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Busy);
        assert!(
            error.message().starts_with(&format!("database is open in process {}", pid.trim()))
        );
    }
    drop(lock);
    let readers = [LockMode::Shared; 2].map(|mode| fs.lock(&path, mode).unwrap());
    assert_eq!(fs.lock(&path, LockMode::Exclusive).err().unwrap().kind(), ErrorKind::Busy);
    drop(readers);
    drop(fs.lock(&path, LockMode::Exclusive).unwrap());
}

#[test]
fn a_reader_without_a_lock_file_keeps_writers_out() {
    let dir = tempfile::tempdir().unwrap();
    let (fs, path) = (OsFs::new(), dir.path().join("LOCK"));
    let readers = [LockMode::Shared; 2].map(|mode| fs.lock(&path, mode).unwrap());
    assert!(!fs.exists(&path).unwrap(), "a shared lock creates nothing");
    assert_eq!(fs.lock(&path, LockMode::Exclusive).err().unwrap().kind(), ErrorKind::Busy);
    // It left its file, which a reader may lock next to readers of the directory.
    drop(fs.lock(&path, LockMode::Shared).unwrap());
    drop(readers);
    drop(fs.lock(&path, LockMode::Exclusive).unwrap());
}

#[test]
fn a_lock_of_another_process_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let (fs, path) = (OsFs::new(), dir.path().join("LOCK"));
    let write = |text: &[u8]| {
        let mut file = fs.create(&path, WriteOptions::default()).unwrap();
        file.append(text).unwrap();
        file.finish().unwrap();
    };
    write(b"1234\n");
    // A separate descriptor, as another process would have: not in the register.
    let open = || rustix::fs::open(&path, rustix::fs::OFlags::RDONLY, rustix::fs::Mode::empty());
    let (holder, reader) = (open().unwrap(), open().unwrap());
    rustix::fs::flock(&holder, rustix::fs::FlockOperation::LockExclusive).unwrap();
    for mode in [LockMode::Exclusive, LockMode::Shared] {
        let error = fs.lock(&path, mode).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Busy);
        assert_eq!(error.message(), "database is open in process 1234");
    }
    assert_eq!(fs.read_all(&path).unwrap(), b"1234\n", "a refused lock writes nothing");
    // Closing it is not enough where a child that another test forked has a copy of the descriptor.
    let unlock = |file| rustix::fs::flock(file, rustix::fs::FlockOperation::Unlock).unwrap();
    unlock(holder);
    rustix::fs::flock(&reader, rustix::fs::FlockOperation::LockShared).unwrap();
    let error = fs.lock(&path, LockMode::Exclusive).err().unwrap();
    assert_eq!(error.message(), "database is open in another process, for reading");
    drop(fs.lock(&path, LockMode::Shared).unwrap());
    unlock(reader);
    // The pid of a dead holder does not block.
    drop(fs.lock(&path, LockMode::Exclusive).unwrap());
}

#[test]
fn names_and_directories() {
    let dir = tempfile::tempdir().unwrap();
    let fs = OsFs::new();
    let deep = dir.path().join("a/b/c");
    fs.create_dir(&deep).unwrap();
    fs.create_dir(&deep).unwrap();
    let (one, two) = (deep.join("1"), deep.join("2"));
    write(&fs, &one, b"one", WriteOptions::default(), 9);
    assert!(fs.create_dir(&one.join("x")).is_err(), "a file is no directory");
    fs.link(&one, &two).unwrap();
    assert_eq!(fs.link(&one, &two).unwrap_err().kind(), ErrorKind::Io);
    fs.rename(&two, &deep.join("3")).unwrap();
    fs.sync_dir(&deep).unwrap();
    let mut names = fs.list(&deep).unwrap();
    names.sort();
    assert_eq!(names, ["1", "3"]);
    fs.remove(&one).unwrap();
    assert_eq!(fs.read_all(&deep.join("3")).unwrap(), b"one");
    assert!(fs.remove_dir(&deep).is_err());
    fs.remove(&deep.join("3")).unwrap();
    fs.remove_dir(&deep).unwrap();
    assert!(!fs.exists(&deep).unwrap() && fs.exists(&dir.path().join("a/b")).unwrap());
    for error in [
        fs.open(&one, ReadFileOptions::default()).err().unwrap(),
        fs.list(&deep).unwrap_err(),
        fs.len(&one).unwrap_err(),
        fs.remove(&one).unwrap_err(),
        fs.rename(&one, &two).unwrap_err(),
        fs.create(&one, WriteOptions::default()).err().unwrap(),
        fs.create_log(&one, 10).err().unwrap(),
        fs.sync_dir(&deep).unwrap_err(),
    ] {
        assert!(is_not_found(&error) && error.kind() == ErrorKind::Io, "{error}");
        assert!(error.file().is_some());
    }
    assert!(fs.open_files_max() >= 8);
}
