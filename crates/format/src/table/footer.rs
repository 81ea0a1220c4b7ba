//! The fixed ends of a table file: header at byte 0, footer at the end.
//!
//! Both sizes, and the places of magic, version, uid and checksum in them, are the same in every
//! format version, so that an older program can tell a newer table (`NotSupported`) from a damaged
//! one (`Corruption`).
//!
//! Owns: the bytes of header and footer. Never does: read a file, or the blocks that the footer
//! points to.

use super::BlockHandle;
use windrow_base::coding::Decoder;
use windrow_base::{Error, FileUid, Result};
use windrow_env::checksum::{checksum, crc32c};

/// Bytes of the file header.
pub const HEADER_BYTES: usize = 28;

/// Bytes of the footer.
pub const FOOTER_BYTES: usize = 84;

/// The first bytes of a table.
pub const HEADER_MAGIC: [u8; 8] = *b"WndrTabl";
const FOOTER_MAGIC: [u8; 8] = *b"WndrTEnd";

/// Version of the table format this build writes, and the newest it reads.
const FORMAT_VERSION: u32 = 1;

/// Encryption scheme: none.
const SCHEME_PLAIN: u8 = 0;

/// Blocked Bloom filter of `crate::filter`, hashed with XXH3.
const FILTER_BLOCKED_BLOOM: u8 = 1;

/// The file header.
pub(super) fn encode_header(uid: FileUid) -> [u8; HEADER_BYTES] {
    let mut out = [0; HEADER_BYTES];
    out[..8].copy_from_slice(&HEADER_MAGIC);
    out[8..12].copy_from_slice(&FORMAT_VERSION.to_le_bytes());
    out[12] = SCHEME_PLAIN; // and three zeros
    out[16..24].copy_from_slice(&uid.to_le_bytes());
    let crc = crc32c(&out[..24]);
    out[24..].copy_from_slice(&crc.to_le_bytes());
    out
}

/// Checks the file header, and returns the uid in it.
pub(super) fn decode_header(bytes: &[u8; HEADER_BYTES]) -> Result<FileUid> {
    let mut d = Decoder::new(bytes);
    let magic = d.bytes(8)?;
    let version = d.u32()?;
    let (scheme, zeros) = (d.u8()?, d.bytes(3)?);
    let uid = d.u64()?;
    let is_whole = d.u32()? == crc32c(&bytes[..24]);
    if !is_whole || magic != HEADER_MAGIC {
        return Err(Error::corruption("table header fails its checksum").with_offset(0));
    }
    check_version(version, scheme)?;
    if zeros != [0; 3] {
        return Err(Error::not_supported("table header with flags that need a newer Windrow"));
    }
    Ok(uid)
}

fn check_version(version: u32, scheme: u8) -> Result<()> {
    if version != FORMAT_VERSION {
        return Err(Error::not_supported(format!(
            "table format version {version} (this build reads {FORMAT_VERSION})"
        )));
    }
    if scheme != SCHEME_PLAIN {
        return Err(Error::not_supported(format!("table encrypted by scheme {scheme}")));
    }
    Ok(())
}

/// The places of the meta blocks. A handle of 0 bytes means no block.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Footer {
    pub(super) uid: FileUid,
    pub(super) file_bytes: u64,
    pub(super) tombstones: BlockHandle,
    pub(super) filter: BlockHandle,
    pub(super) index: BlockHandle,
    pub(super) properties: BlockHandle,
    pub(super) partitioned: bool,
    /// Whether there is a filter, whole or in partitions.
    pub(super) filtered: bool,
    /// Whether the range tombstones are of several layers.
    pub(super) layered: bool,
}

impl Footer {
    pub(super) fn encode(&self) -> [u8; FOOTER_BYTES] {
        let mut out = Vec::with_capacity(FOOTER_BYTES);
        out.extend_from_slice(&self.uid.to_le_bytes());
        out.extend_from_slice(&self.file_bytes.to_le_bytes());
        for handle in self.handles() {
            out.extend_from_slice(&handle.offset.to_le_bytes());
            out.extend_from_slice(&handle.bytes.to_le_bytes());
        }
        out.extend_from_slice(&FORMAT_VERSION.to_le_bytes());
        let filter = if self.filtered { FILTER_BLOCKED_BLOOM } else { 0 };
        let flags = [SCHEME_PLAIN, self.partitioned.into(), filter, self.layered.into()];
        out.extend_from_slice(&flags);
        out.extend_from_slice(&FOOTER_MAGIC);
        let crc = checksum(self.uid, self.file_bytes - FOOTER_BYTES as u64, &[&out]);
        out.extend_from_slice(&crc.to_le_bytes());
        std::array::from_fn(|i| out[i])
    }

    /// Reads the footer of a file of `file_bytes` and identity `uid`.
    pub(super) fn decode(bytes: &[u8], file_bytes: u64, uid: FileUid) -> Result<Footer> {
        let mut d = Decoder::new(bytes);
        let stored_uid = d.u64()?;
        let stored_bytes = d.u64()?;
        let mut handle =
            || -> Result<BlockHandle> { Ok(BlockHandle { offset: d.u64()?, bytes: d.u32()? }) };
        let (tombstones, filter, index, properties) = (handle()?, handle()?, handle()?, handle()?);
        let version = d.u32()?;
        let (scheme, partitioned, filter_id, layered) = (d.u8()?, d.u8()?, d.u8()?, d.u8()?);
        let magic = d.bytes(8)?;
        let covered = &bytes[..d.position()];
        let offset = file_bytes - FOOTER_BYTES as u64;
        let is_whole = d.u32()? == checksum(stored_uid, offset, &[covered]);
        if !is_whole || magic != FOOTER_MAGIC {
            return Err(Error::corruption("table footer fails its checksum"));
        }
        check_version(version, scheme)?;
        if stored_uid != uid {
            return Err(Error::corruption(format!(
                "table has uid {stored_uid:016x}, the manifest says {uid:016x}: another file is in its place"
            )));
        }
        if filter_id > FILTER_BLOCKED_BLOOM || partitioned > 1 || layered > 1 {
            return Err(Error::not_supported("table with flags that need a newer Windrow"));
        }
        let footer = Footer {
            uid,
            file_bytes,
            tombstones,
            filter,
            index,
            properties,
            partitioned: partitioned == 1,
            filtered: filter_id != 0,
            layered: layered == 1,
        };
        footer.check(stored_bytes)?;
        Ok(footer)
    }

    /// The meta blocks in their order in the file.
    pub(super) fn handles(&self) -> [BlockHandle; 4] {
        [self.tombstones, self.filter, self.index, self.properties]
    }

    /// The offset of the first meta block.
    pub(super) fn meta_offset(&self) -> u64 {
        let present = self.handles().into_iter().find(|h| h.bytes > 0);
        present.map_or(self.file_bytes, |h| h.offset)
    }

    /// Checks that the meta blocks lie back to back before the footer.
    fn check(&self, stored_bytes: u64) -> Result<()> {
        let mut at = self.meta_offset();
        let mut ordered = stored_bytes == self.file_bytes && at >= HEADER_BYTES as u64;
        for handle in self.handles().into_iter().filter(|h| h.bytes > 0) {
            ordered &= handle.offset == at;
            at = handle.end();
        }
        ordered &= at == self.file_bytes - FOOTER_BYTES as u64;
        ordered &= self.index.bytes > 0 && self.properties.bytes > 0;
        ordered &= self.filter.bytes == 0 || (self.filtered && !self.partitioned);
        if ordered {
            return Ok(());
        }
        Err(Error::corruption("table footer points outside its file"))
    }
}
