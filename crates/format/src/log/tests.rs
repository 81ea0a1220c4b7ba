//! The log's promise under damage: a prefix of the records, or `Corruption`
//! wherever a record's loss would break what was known to be durable.

use super::*;
use crate::test_files::mem_file;
use windrow_base::ErrorKind;

const UID: u64 = 0x1122_3344_5566_7788;

fn file_header(kind: LogKind) -> FileHeader {
    FileHeader {
        kind,
        number: 12,
        uid: UID,
        manifest_number: 3,
        manifest_durable_bytes: 4096,
        manifest_uid: 0x1234_5678_9abc_def0,
    }
}

struct Log {
    bytes: Vec<u8>,
    payloads: Vec<Vec<u8>>,
    /// End of each record.
    ends: Vec<u64>,
    /// What each record says was durable.
    marks: Vec<u64>,
}

/// A log of records of the given sizes; synced after every third.
fn log_of(sizes: &[usize], preallocated: usize) -> Log {
    let mut log = Log {
        bytes: encode_file_header(&file_header(LogKind::Wal)),
        payloads: Vec::new(),
        ends: Vec::new(),
        marks: Vec::new(),
    };
    let mut durable = 0;
    for (i, &size) in sizes.iter().enumerate() {
        let payload: Vec<u8> = (0..size).map(|j| (i * 31 + j * 7) as u8).collect();
        let at = log.bytes.len() as u64;
        if size <= FRAGMENT_BYTES_MAX && i % 2 == 0 {
            let mut buf = vec![0; HEADER_BYTES];
            buf.extend_from_slice(&payload);
            seal(&mut buf, UID, at, Class::Batch, durable);
            log.bytes.extend_from_slice(&buf);
        } else {
            frame(&mut log.bytes, &payload, UID, at, Class::Batch, durable);
        }
        assert_eq!(log.bytes.len() as u64 - at, framed_bytes(size));
        log.payloads.push(payload);
        log.ends.push(log.bytes.len() as u64);
        log.marks.push(durable);
        if i % 3 == 2 {
            durable = log.bytes.len() as u64;
        }
    }
    log.bytes.resize(log.bytes.len() + preallocated, 0);
    log
}

struct Outcome {
    records: Vec<Vec<u8>>,
    valid_bytes: u64,
    torn: Option<u64>,
}

fn read(bytes: &[u8], known: Option<u64>) -> Result<Outcome> {
    let mut reader = Reader::open(mem_file(bytes.to_vec()), LogKind::Wal, known)?;
    let mut records = Vec::new();
    let mut end = FILE_HEADER_BYTES as u64;
    while let Some(record) = reader.next()? {
        assert_eq!(record.offset, end);
        end = record.end;
        records.push(record.payload.to_vec());
    }
    assert!(reader.next()?.is_none(), "the end stays the end");
    assert_eq!(reader.valid_bytes(), end);
    Ok(Outcome { records, valid_bytes: end, torn: reader.torn() })
}

/// Judges what reading a damaged log gave: records must be a prefix, and none
/// may be missing that a surviving later record, or `known`, says was durable.
fn judge(log: &Log, damaged: &[u8], known: Option<u64>, what: &str) {
    match read(damaged, known) {
        Err(e) => assert!(e.is_corruption(), "{what}: {e}"),
        Ok(outcome) => {
            let kept = outcome.records.len();
            assert!(log.payloads.starts_with(&outcome.records), "{what}: a changed record");
            assert!(known.unwrap_or(0) <= outcome.valid_bytes, "{what}: known to be durable, lost");
            for later in kept + 1..log.ends.len() {
                let at = log.ends[later - 1] as usize..log.ends[later] as usize;
                let intact = damaged.get(at.clone()) == Some(&log.bytes[at]);
                assert!(
                    !intact || log.marks[later] <= outcome.valid_bytes,
                    "{what}: record {later} says more was durable than the {kept} records kept"
                );
            }
        }
    }
}

#[test]
fn records_round_trip() {
    let sizes = [0, 1, 100, FRAGMENT_BYTES_MAX, FRAGMENT_BYTES_MAX + 1, 3 * FRAGMENT_BYTES_MAX, 5];
    for preallocated in [0, 1, 31, 100_000] {
        let log = log_of(&sizes, preallocated);
        let outcome = read(&log.bytes, Some(*log.ends.last().unwrap())).unwrap();
        assert!(outcome.records == log.payloads);
        assert_eq!(outcome.torn, None);
    }
}

#[test]
fn every_flip_gives_a_prefix_or_corruption() {
    let log = log_of(&[5, 40, 0, 17, 90, 3, 60, 8], 70);
    for byte in 0..log.bytes.len() {
        for bit in 0..8 {
            let mut bad = log.bytes.clone();
            bad[byte] ^= 1 << bit;
            let what = format!("byte {byte} bit {bit}");
            judge(&log, &bad, None, &what);
            // A length known from the manifest leaves nothing undecided.
            let known = *log.ends.last().unwrap();
            match read(&bad, Some(known)) {
                Ok(outcome) => {
                    assert!(byte as u64 >= known, "{what}: lost in silence");
                    assert!(outcome.records == log.payloads && outcome.torn.is_some());
                }
                Err(e) => assert!(e.is_corruption(), "{what}: {e}"),
            }
        }
    }
}

#[test]
fn damage_to_what_a_later_record_saw_synced_is_never_silent() {
    let log = log_of(&[20; 9], 0);
    let last_mark = *log.marks.last().unwrap();
    for byte in FILE_HEADER_BYTES..last_mark as usize {
        let mut bad = log.bytes.clone();
        bad[byte] ^= 0x10;
        let e = read(&bad, None).err().unwrap_or_else(|| panic!("byte {byte} lost in silence"));
        assert!(e.is_corruption() && e.file().is_some() && e.offset().is_some());
    }
    // No record confirms the last sync group: a torn tail, and it is reported.
    let mut bad = log.bytes.clone();
    bad[last_mark as usize + 5] ^= 1;
    let outcome = read(&bad, None).unwrap();
    assert_eq!(outcome.records.len(), 6);
    assert_eq!(outcome.torn, Some(log.bytes.len() as u64 - last_mark));
}

#[test]
fn every_cut_gives_a_prefix_or_corruption() {
    let log = log_of(&[5, 40, 0, 17, 90, 3, 60, 8], 70);
    let end = *log.ends.last().unwrap();
    for len in 0..log.bytes.len() {
        judge(&log, &log.bytes[..len], None, &format!("cut at {len}"));
        let known = read(&log.bytes[..len], Some(end));
        assert_eq!(known.is_ok(), len as u64 >= end, "cut at {len}");
        let mut zeroed = log.bytes.clone();
        zeroed[len..].fill(0);
        judge(&log, &zeroed, None, &format!("zeros from {len}"));
    }
}

#[test]
fn lost_sectors_give_a_prefix_or_corruption() {
    let log = log_of(&[300; 20], 1000);
    for from in (0..log.bytes.len()).step_by(64) {
        for len in [64, 512, 2048] {
            let mut bad = log.bytes.clone();
            let to = (from + len).min(bad.len());
            bad[from..to].fill(0);
            judge(&log, &bad, None, &format!("zeros at {from}, {len} long"));
        }
    }
}

#[test]
fn a_large_record_is_all_or_nothing() {
    let sizes = [10, 2 * FRAGMENT_BYTES_MAX + 77, 10];
    let log = log_of(&sizes, 0);
    let (from, to) = (log.ends[0] as usize, log.ends[1] as usize);
    let fragment = HEADER_BYTES + FRAGMENT_BYTES_MAX;
    for place in [0, 31, 40, fragment - 1, fragment, fragment + 20, 2 * fragment + 3] {
        let mut bad = log.bytes.clone();
        bad[from + place] ^= 4;
        assert_eq!(read(&bad, None).unwrap().records.len(), 1, "damaged at {place}");
        assert_eq!(read(&log.bytes[..from + place], None).unwrap().records.len(), 1);
    }
    assert_eq!(read(&log.bytes[..to], None).unwrap().records.len(), 2);
    // A fragment alone is not a record, however valid.
    for fragment in [Fragment::Middle, Fragment::Last, Fragment::First] {
        let header = FragmentHeader {
            payload_crc: payload_crc(UID, from as u64, b"alone"),
            len: 5,
            class: Class::Batch as u8,
            fragment: fragment as u8,
            stream: 0,
            durable_up_to: 0,
        };
        let mut head = [0; HEADER_BYTES];
        header.write(&mut head, UID, from as u64);
        let alone = [&log.bytes[..from], &head, b"alone"].concat();
        let outcome = read(&alone, None).unwrap();
        assert_eq!((outcome.records.len(), outcome.torn), (1, Some(37)));
    }
}

#[test]
fn fragments_of_elsewhere_do_not_pass() {
    let log = log_of(&[50, 50, 50], 0);
    let record = log.ends[0] as usize..log.ends[1] as usize;
    // The same record again, where another should be.
    let mut stale = log.bytes.clone();
    let again = stale[record.clone()].to_vec();
    stale.extend_from_slice(&again);
    assert_eq!(read(&stale, None).unwrap().records.len(), 3);
    // A record of another log at the same offset.
    let mut foreign = log.bytes[..record.start].to_vec();
    frame(&mut foreign, b"foreign", UID + 1, record.start as u64, Class::Batch, u64::MAX);
    let outcome = read(&foreign, None).unwrap();
    assert_eq!((outcome.records.len(), outcome.torn), (1, Some(framed_bytes(7))));
}

#[test]
fn newer_records_are_refused_not_skipped() {
    let mut bytes = encode_file_header(&file_header(LogKind::Wal));
    let at = bytes.len() as u64;
    frame(&mut bytes, b"payload", UID, at, Class::Batch, 0);
    let head = bytes[at as usize..].first_chunk_mut::<HEADER_BYTES>().unwrap();
    for change in [|h: &mut FragmentHeader| h.class = 9, |h: &mut FragmentHeader| h.stream = 1] {
        let mut header = FragmentHeader {
            payload_crc: payload_crc(UID, at, b"payload"),
            len: 7,
            class: 1,
            fragment: 1,
            stream: 0,
            durable_up_to: 0,
        };
        change(&mut header);
        header.write(head, UID, at);
        let bytes =
            [&encode_file_header(&file_header(LogKind::Wal))[..], head, b"payload"].concat();
        assert_eq!(read(&bytes, None).err().unwrap().kind(), ErrorKind::NotSupported);
    }
}

#[test]
fn file_headers_are_checked() {
    let bytes = encode_file_header(&file_header(LogKind::Manifest));
    assert_eq!(decode_file_header(&bytes).unwrap(), file_header(LogKind::Manifest));
    for bit in 0..bytes.len() * 8 {
        let mut bad = bytes.clone();
        bad[bit / 8] ^= 1 << (bit % 8);
        assert!(decode_file_header(&bad).unwrap_err().is_corruption(), "bit {bit}");
    }
    assert!(
        Reader::open(mem_file(bytes.clone()), LogKind::Wal, None).err().unwrap().is_corruption()
    );
    assert!(Reader::open(mem_file(bytes.clone()), LogKind::Manifest, Some(65)).is_err());
    assert!(is_blank(&[0; FILE_HEADER_BYTES]) && is_blank(&bytes[..63]) && !is_blank(&bytes));
}

#[test]
fn a_length_is_checked_before_it_is_believed() {
    let mut bytes = encode_file_header(&file_header(LogKind::Wal));
    let header = FragmentHeader {
        payload_crc: 0,
        len: u32::MAX,
        class: 1,
        fragment: 1,
        stream: 0,
        durable_up_to: 0,
    };
    let mut head = [0; HEADER_BYTES];
    header.write(&mut head, UID, bytes.len() as u64);
    bytes.extend_from_slice(&head);
    let outcome = read(&bytes, None).unwrap();
    assert!(outcome.records.is_empty() && outcome.torn.is_some());
}

/// A payload that comes in parts is framed as one that comes whole, and no more of
/// it than a fragment is held.
#[test]
fn a_payload_in_parts_is_framed_as_a_whole_one() {
    for len in [0, 1, FRAGMENT_BYTES_MAX - 1, FRAGMENT_BYTES_MAX, 3 * FRAGMENT_BYTES_MAX + 7] {
        let payload: Vec<u8> = (0..len).map(|i| (i * 7 % 251) as u8).collect();
        let mut whole = Vec::new();
        frame(&mut whole, &payload, UID, 64, Class::Edit, 64);
        for part in [1000, FRAGMENT_BYTES_MAX - 1, FRAGMENT_BYTES_MAX, 2 * FRAGMENT_BYTES_MAX] {
            let mut framer = Framer::new(UID, 64, Class::Edit, 64);
            let mut framed = Vec::new();
            let mut put = |at: u64, fragment: &[u8]| {
                assert_eq!(at, 64 + framed.len() as u64);
                assert!(fragment.len() <= HEADER_BYTES + FRAGMENT_BYTES_MAX);
                framed.extend_from_slice(fragment);
                Ok(())
            };
            payload.chunks(part).for_each(|part| framer.push(part, &mut put).unwrap());
            framer.finish(put).unwrap();
            assert!(framed == whole, "{len} bytes in parts of {part}");
        }
    }
}
