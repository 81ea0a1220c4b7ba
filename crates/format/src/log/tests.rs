//! The log's promise under damage: a prefix of the records, or `Corruption` wherever the loss of a
//! record would break a promise of durability.
//!
//! Owns: the cases, and the judgement of an outcome by the records that were written. Never does:
//! take the reader's verdict for the expectation.

use super::*;
use crate::test_files::mem_file;
use windrow_base::ErrorKind;

use super::fragment::FragmentHeader;
use super::position::payload_crc;

const UID: u64 = 0x1122_3344_5566_7788;

const BOTH: [Framing; 2] = [Framing::Fixed, Framing::Short];

fn file_header(kind: LogKind, framing: Framing) -> FileHeader {
    FileHeader {
        kind,
        framing,
        number: 12,
        uid: UID,
        manifest_number: 3,
        manifest_durable_bytes: 4096,
        manifest_uid: 0x1234_5678_9abc_def0,
    }
}

struct SampleLog {
    bytes: Vec<u8>,
    payloads: Vec<Vec<u8>>,
    /// End of each record.
    ends: Vec<u64>,
    /// The durable length that each record states.
    marks: Vec<u64>,
}

/// A log of records of the given sizes; synced after every third.
fn log_of(framing: Framing, sizes: &[usize], preallocated: usize) -> SampleLog {
    let mut log = SampleLog {
        bytes: encode_file_header(&file_header(LogKind::Wal, framing)),
        payloads: Vec::new(),
        ends: Vec::new(),
        marks: Vec::new(),
    };
    let mut durable = 0;
    for (i, &size) in sizes.iter().enumerate() {
        let payload: Vec<u8> = (0..size).map(|j| (i * 31 + j * 7) as u8).collect();
        let at = log.bytes.len() as u64;
        let place = LogPosition { framing, uid: UID, offset: at, durable_up_to: durable };
        if size <= FRAGMENT_BYTES_MAX && i % 2 == 0 {
            let mut buf = vec![0; HEADER_BYTES];
            buf.extend_from_slice(&payload);
            log.bytes.extend_from_slice(seal(&mut buf, HEADER_BYTES, Class::Batch, place));
        } else {
            frame(&mut log.bytes, &payload, Class::Batch, place);
        }
        let framed = log.bytes.len() as u64 - at;
        assert_eq!(framed, place.framed_bytes(size));
        assert!(framed <= framed_bytes_max(size));
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

/// A record's place in a log without a known durable length.
fn place(framing: Framing, offset: u64) -> LogPosition {
    LogPosition { framing, uid: UID, offset, durable_up_to: 0 }
}

/// The header of a fragment in this place.
fn header_of(place: LogPosition, class: u8, fragment: u8, payload: &[u8]) -> FragmentHeader {
    let payload_at = place.offset + place.header_bytes(payload.len()) as u64;
    FragmentHeader {
        payload_crc: payload_crc(UID, payload_at, payload),
        len: payload.len() as u32,
        class,
        fragment,
        stream: 0,
        durable_up_to: place.durable_up_to,
    }
}

fn header_bytes(place: LogPosition, header: FragmentHeader) -> Vec<u8> {
    let mut out = vec![0; place.header_bytes(header.len as usize)];
    place.write(&header, &mut out);
    out
}

struct ReadOutcome {
    records: Vec<Vec<u8>>,
    valid_bytes: u64,
    torn: Option<u64>,
    /// Whole batches behind the end, by the reader's count.
    behind: u64,
    /// The batches behind the end, as `pass_gap` reads them.
    passed: Vec<Vec<u8>>,
}

fn read(bytes: &[u8], known: Option<u64>) -> Result<ReadOutcome> {
    let mut reader = LogReader::open(mem_file(bytes.to_vec()), LogKind::Wal, known)?;
    let mut records = Vec::new();
    let mut end = FILE_HEADER_BYTES as u64;
    while let Some(record) = reader.next()? {
        assert_eq!(record.offset, end);
        end = record.end;
        records.push(record.payload.to_vec());
    }
    assert!(reader.next()?.is_none(), "the end stays the end");
    assert_eq!(reader.valid_bytes(), end);
    let (torn, behind) = (reader.torn(), reader.batches_behind());
    let mut passed = Vec::new();
    while reader.pass_gap()? {
        while let Some(record) = reader.next()? {
            assert!(end < record.offset && record.end <= end + torn.unwrap_or(0));
            passed.push(record.payload.to_vec());
        }
    }
    Ok(ReadOutcome { records, valid_bytes: end, torn, behind, passed })
}

/// Judges the outcome of reading a damaged log: its records must be a prefix, and none may be
/// missing that a surviving later record, or `known`, says was durable.
fn judge(log: &SampleLog, damaged: &[u8], known: Option<u64>, what: &str) {
    match read(damaged, known) {
        Err(e) => assert!(e.is_corruption(), "{what}: {e}"),
        Ok(outcome) => {
            let kept = outcome.records.len();
            assert!(log.payloads.starts_with(&outcome.records), "{what}: a changed record");
            let whole = (kept..log.ends.len()).filter(|&later| {
                let from = later.checked_sub(1).map_or(FILE_HEADER_BYTES, |b| log.ends[b] as usize);
                let at = from..log.ends[later] as usize;
                damaged.get(at.clone()) == Some(&log.bytes[at])
            });
            let whole: Vec<_> = whole.map(|later| log.payloads[later].clone()).collect();
            assert_eq!(outcome.behind, whole.len() as u64, "{what}: batches behind the end");
            assert!(outcome.passed == whole, "{what}: other batches behind the end");
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
    for framing in BOTH {
        let sizes =
            [0, 1, 100, FRAGMENT_BYTES_MAX, FRAGMENT_BYTES_MAX + 1, 3 * FRAGMENT_BYTES_MAX, 5];
        for preallocated in [0, 1, 31, 100_000] {
            let log = log_of(framing, &sizes, preallocated);
            let outcome = read(&log.bytes, Some(*log.ends.last().unwrap())).unwrap();
            assert!(outcome.records == log.payloads);
            assert_eq!(outcome.torn, None);
        }
    }
}

#[test]
fn every_flip_gives_a_prefix_or_corruption() {
    for framing in BOTH {
        let log = log_of(framing, &[5, 40, 0, 17, 90, 3, 60, 8], 70);
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
}

#[test]
fn damage_to_what_a_later_record_saw_synced_is_never_silent() {
    for framing in BOTH {
        let log = log_of(framing, &[20; 9], 0);
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
}

#[test]
fn every_cut_gives_a_prefix_or_corruption() {
    for framing in BOTH {
        let log = log_of(framing, &[5, 40, 0, 17, 90, 3, 60, 8], 70);
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
}

#[test]
fn lost_sectors_give_a_prefix_or_corruption() {
    for framing in BOTH {
        let log = log_of(framing, &[300; 20], 1000);
        for from in (0..log.bytes.len()).step_by(64) {
            for len in [64, 512, 2048] {
                let mut bad = log.bytes.clone();
                let to = (from + len).min(bad.len());
                bad[from..to].fill(0);
                judge(&log, &bad, None, &format!("zeros at {from}, {len} long"));
            }
        }
    }
}

#[test]
fn a_large_record_is_all_or_nothing() {
    for framing in BOTH {
        let sizes = [10, 2 * FRAGMENT_BYTES_MAX + 77, 10];
        let log = log_of(framing, &sizes, 0);
        let (from, to) = (log.ends[0] as usize, log.ends[1] as usize);
        let fragment = place(framing, from as u64).header_bytes(FRAGMENT_BYTES_MAX);
        let fragment = fragment + FRAGMENT_BYTES_MAX;
        for place in [0, 7, 8, 31, 40, fragment - 1, fragment, fragment + 20, 2 * fragment + 3] {
            let mut bad = log.bytes.clone();
            bad[from + place] ^= 4;
            assert_eq!(read(&bad, None).unwrap().records.len(), 1, "damaged at {place}");
            assert_eq!(read(&log.bytes[..from + place], None).unwrap().records.len(), 1);
        }
        assert_eq!(read(&log.bytes[..to], None).unwrap().records.len(), 2);
        // A valid fragment alone is not a record.
        for fragment in [FragmentKind::Middle, FragmentKind::Last, FragmentKind::First] {
            let place = place(framing, from as u64);
            let header = header_of(place, Class::Batch as u8, fragment as u8, b"alone");
            let head = header_bytes(place, header);
            let alone = [&log.bytes[..from], &head, b"alone"].concat();
            let outcome = read(&alone, None).unwrap();
            let torn = place.framed_bytes(5);
            assert_eq!((outcome.records.len(), outcome.torn), (1, Some(torn)));
        }
    }
}

#[test]
fn fragments_of_elsewhere_do_not_pass() {
    for framing in BOTH {
        let log = log_of(framing, &[50, 50, 50], 0);
        let record = log.ends[0] as usize..log.ends[1] as usize;
        // A record repeated in the place of another.
        let mut stale = log.bytes.clone();
        let again = stale[record.clone()].to_vec();
        stale.extend_from_slice(&again);
        assert_eq!(read(&stale, None).unwrap().records.len(), 3);
        // A record of another log at the same offset.
        let offset = record.start as u64;
        let mut foreign = log.bytes[..record.start].to_vec();
        let place = LogPosition { framing, uid: UID + 1, offset, durable_up_to: offset };
        frame(&mut foreign, b"foreign", Class::Batch, place);
        let outcome = read(&foreign, None).unwrap();
        assert_eq!((outcome.records.len(), outcome.torn), (1, Some(place.framed_bytes(7))));
    }
}

#[test]
fn newer_records_are_refused_not_skipped() {
    let of_class = |h: &mut FragmentHeader| h.class = 9;
    let of_stream = |h: &mut FragmentHeader| h.stream = 1;
    type HeaderChange = fn(&mut FragmentHeader);
    let changes: [(Framing, HeaderChange); 3] =
        [(Framing::Fixed, of_class), (Framing::Fixed, of_stream), (Framing::Short, of_class)];
    for (framing, change) in changes {
        let mut bytes = encode_file_header(&file_header(LogKind::Wal, framing));
        let place = place(framing, bytes.len() as u64);
        let mut header = header_of(place, 1, 1, b"payload");
        change(&mut header);
        bytes.extend_from_slice(&header_bytes(place, header));
        bytes.extend_from_slice(b"payload");
        assert_eq!(read(&bytes, None).err().unwrap().kind(), ErrorKind::NotSupported);
    }
}

#[test]
fn file_headers_are_checked() {
    let bytes = encode_file_header(&file_header(LogKind::Manifest, Framing::Fixed));
    assert_eq!(decode_file_header(&bytes).unwrap(), file_header(LogKind::Manifest, Framing::Fixed));
    for bit in 0..bytes.len() * 8 {
        let mut bad = bytes.clone();
        bad[bit / 8] ^= 1 << (bit % 8);
        assert!(decode_file_header(&bad).unwrap_err().is_corruption(), "bit {bit}");
    }
    let short = FileHeader { framing: Framing::Short, ..file_header(LogKind::Wal, Framing::Fixed) };
    assert_eq!(decode_file_header(&encode_file_header(&short)).unwrap(), short);
    let newer = FileHeader { kind: LogKind::Manifest, ..short };
    let refused = decode_file_header(&encode_file_header(&newer)).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::NotSupported);
    assert!(
        LogReader::open(mem_file(bytes.clone()), LogKind::Wal, None).err().unwrap().is_corruption()
    );
    assert!(LogReader::open(mem_file(bytes.clone()), LogKind::Manifest, Some(65)).is_err());
    assert!(is_blank(&[0; FILE_HEADER_BYTES]) && is_blank(&bytes[..63]) && !is_blank(&bytes));
}

#[test]
fn a_length_is_checked_before_it_is_believed() {
    for framing in BOTH {
        let mut bytes = encode_file_header(&file_header(LogKind::Wal, framing));
        let place = place(framing, bytes.len() as u64);
        let header = FragmentHeader { len: u32::MAX, ..header_of(place, 1, 1, b"") };
        bytes.extend_from_slice(&header_bytes(place, header));
        let outcome = read(&bytes, None).unwrap();
        assert!(outcome.records.is_empty() && outcome.torn.is_some());
    }
}

/// A payload that comes in parts is framed as one that comes whole, and at most a fragment of it is
/// held in memory.
#[test]
fn a_payload_in_parts_is_framed_as_a_whole_one() {
    for framing in BOTH {
        for len in [0, 1, FRAGMENT_BYTES_MAX - 1, FRAGMENT_BYTES_MAX, 3 * FRAGMENT_BYTES_MAX + 7] {
            let payload: Vec<u8> = (0..len).map(|i| (i * 7 % 251) as u8).collect();
            let mut whole = Vec::new();
            let place = LogPosition { durable_up_to: 64, ..place(framing, 64) };
            frame(&mut whole, &payload, Class::Edit, place);
            for part in [1000, FRAGMENT_BYTES_MAX - 1, FRAGMENT_BYTES_MAX, 2 * FRAGMENT_BYTES_MAX] {
                let mut framer = Framer::new(Class::Edit, place);
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
}

/// Damage of several kinds and in several places at once.
#[test]
fn random_damage_gives_a_prefix_or_corruption() {
    let mut random = 0x2545_f491_4f6c_dd1d_u64;
    let mut draw = move |below: usize| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        (random >> 11) as usize % below
    };
    for round in 0..4000 {
        let sizes: Vec<usize> = (0..1 + draw(30)).map(|_| draw(300)).collect();
        let log = log_of(BOTH[round % 2], &sizes, draw(700));
        let mut bad = log.bytes.clone();
        for _ in 0..1 + draw(3) {
            let from = FILE_HEADER_BYTES + draw(bad.len() - FILE_HEADER_BYTES + 1);
            let to = bad.len().min(from + 1 + draw(600));
            match draw(4) {
                0 if from < bad.len() => bad[from] ^= 1 << draw(8),
                1 => bad[from..to].fill(0),
                2 => bad[from..to].iter_mut().for_each(|byte| *byte = draw(256) as u8),
                _ => bad[from..to].iter_mut().for_each(|byte| *byte = 0x80 | draw(16) as u8),
            }
        }
        judge(&log, &bad, None, &format!("round {round}"));
    }
}

/// A log that ends in damage, followed by this record.
fn behind(framing: Framing, damage: &[u8], record: impl FnOnce(LogPosition) -> Vec<u8>) -> Vec<u8> {
    let mut bytes = encode_file_header(&file_header(LogKind::Wal, framing));
    let durable_up_to = bytes.len() as u64 + 1;
    bytes.extend_from_slice(damage);
    let place = LogPosition { durable_up_to, ..place(framing, bytes.len() as u64) };
    bytes.extend(record(place));
    bytes
}

fn a_record(place: LogPosition) -> Vec<u8> {
    let mut out = Vec::new();
    frame(&mut out, &[0x55; 90], Class::Batch, place);
    out
}

#[test]
fn evidence_is_found_wherever_it_is() {
    const WINDOW: usize = 256 << 10;
    for framing in BOTH {
        for len in (1..100).chain(WINDOW - 160..WINDOW + 60).chain([3 * WINDOW + 7]) {
            let bytes = behind(framing, &vec![0x33; len], a_record);
            let e = read(&bytes, None).err().unwrap_or_else(|| panic!("missed behind {len} bytes"));
            assert!(e.is_corruption() && e.offset() == Some(FILE_HEADER_BYTES as u64));
        }
    }
}

/// The record that a crash cut short is evidence as well.
#[test]
fn a_header_without_its_payload_is_evidence_near_the_damage() {
    for framing in BOTH {
        let cut = |place: LogPosition| {
            let mut record = a_record(place);
            record.truncate(record.len() - 30);
            record
        };
        assert!(read(&behind(framing, &[0x84; 100], cut), None).is_err());
        // Nearly every byte of this may be the kind byte of a short header.
        let tried: Vec<u8> = (0..3000u32).map(|i| 0x84 | ((i * i) >> 3) as u8 & 3).collect();
        let far: Vec<u8> = tried.iter().flat_map(|&kind| [kind, 9, 1]).collect();
        let read_far = read(&behind(framing, &far, cut), None);
        assert_eq!(read_far.is_ok(), framing == Framing::Short, "the tries are used up");
        // With its payload it is evidence everywhere.
        assert!(read(&behind(framing, &far, a_record), None).is_err());
    }
}

#[test]
fn a_torn_tail_is_no_evidence() {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut noise = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        (state >> 56) as u8
    };
    for framing in BOTH {
        let tail: Vec<u8> = (0..2 << 20).map(|_| noise()).chain([1]).collect();
        let outcome = read(&behind(framing, &tail, |_| Vec::new()), None).unwrap();
        assert_eq!((outcome.records.len(), outcome.torn), (0, Some(tail.len() as u64)));
        // Records after the last sync, with one in the middle missing.
        let log = log_of(framing, &[100, 100, 100], 0);
        let mut lost = log.bytes.clone();
        lost[log.ends[0] as usize..log.ends[1] as usize].fill(0);
        let outcome = read(&lost, None).unwrap();
        assert_eq!(outcome.records.len(), 1);
        assert_eq!(outcome.torn, Some(log.ends[2] - log.ends[0]));
    }
}

/// One damaged byte that was not synced, and 200 batches behind it, large ones and a mark among
/// them.
#[test]
fn whole_batches_behind_a_gap_are_counted() {
    for framing in BOTH {
        let mut bytes = encode_file_header(&file_header(LogKind::Wal, framing));
        let mut ends = Vec::new();
        for i in 0..200 {
            let len = if i == 100 { 2 * FRAGMENT_BYTES_MAX + 5 } else { i };
            let class = if i == 50 { Class::Mark } else { Class::Batch };
            let at = place(framing, bytes.len() as u64);
            frame(&mut bytes, &vec![i as u8; len], class, at);
            ends.push(bytes.len());
        }
        // A fragment in the middle of the large one: none of it is whole then.
        for (flipped, kept, behind) in [
            (ends[9] + 20, 10, 188),
            (ends[99] + FRAGMENT_BYTES_MAX + 99, 100, 99),
            (ends[198] + 20, 199, 0),
        ] {
            let mut bad = bytes.clone();
            bad[flipped] ^= 1;
            let outcome = read(&bad, None).unwrap();
            assert_eq!((outcome.records.len(), outcome.behind), (kept, behind), "{framing:?}");
            let marks = usize::from(kept < 50);
            assert_eq!(outcome.passed.len() as u64, behind + marks as u64);
        }
    }
}

#[test]
fn a_reader_up_to_an_offset_gives_the_records_that_end_there() {
    for framing in BOTH {
        let log = log_of(framing, &[5, 100, FRAGMENT_BYTES_MAX + 1, 7], 1000);
        let near = log.ends.iter().flat_map(|end| end - 1..end + 2);
        let all = (FILE_HEADER_BYTES as u64..log.bytes.len() as u64).step_by(101);
        for end in all.chain(near) {
            let file = mem_file(log.bytes.clone());
            let reader = LogReader::open(file, LogKind::Wal, None).unwrap();
            let mut reader = reader.of_live().up_to(end);
            let mut count = 0;
            while reader.next().unwrap().is_some() {
                count += 1;
            }
            assert_eq!(count, log.ends.iter().filter(|&&record| record <= end).count(), "{end}");
        }
    }
}
