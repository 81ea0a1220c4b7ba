//! Block compression: the codecs, and their use with checked sizes.
//!
//! A compressed payload starts with its raw length (u32), which is checked against the codec's
//! greatest ratio before anything is allocated (R12).
//!
//! Owns: the numbers of the codecs, and the form of a compressed payload. Never does: choose a
//! codec for a table (the writer's options do), or compute checksums (they cover the compressed
//! bytes).

use windrow_base::{Error, Result};
use windrow_env::Buffer;

/// How a block's payload is compressed. The numbers are on disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Codec {
    /// Not compressed.
    #[default]
    None = 0,
    /// LZ4 block format.
    Lz4 = 1,
    /// One Zstandard frame. Needs feature `zstd`.
    Zstd = 2,
}

/// Bytes of the raw length before compressed data.
const RAW_LEN_BYTES: usize = 4;

/// The greatest ratio of raw to compressed bytes. No LZ4 block exceeds it. A Zstandard frame could,
/// but the compressor never keeps such a frame, so a reader may require it of both.
const RATIO_MAX: usize = 255;

/// Raw bytes allowed beyond the ratio, for small payloads.
const RATIO_SLACK_BYTES: usize = 4096;

impl Codec {
    /// The codec of a name, as settings spell it.
    ///
    /// # Errors
    /// `InvalidArgument` for an unknown name; `NotSupported` for one that is not built in.
    pub fn parse(name: &str) -> Result<Codec> {
        let codec = match name {
            "none" => Codec::None,
            "lz4" => Codec::Lz4,
            "zstd" => Codec::Zstd,
            _ => return Err(Error::invalid(format!("no codec named {name:?} (none, lz4, zstd)"))),
        };
        codec.require()?;
        Ok(codec)
    }

    /// The codec's name.
    pub fn name(self) -> &'static str {
        match self {
            Codec::None => "none",
            Codec::Lz4 => "lz4",
            Codec::Zstd => "zstd",
        }
    }

    /// The codec for a number from disk.
    ///
    /// # Errors
    /// `NotSupported` for a number this version does not know.
    pub fn from_u8(byte: u8) -> Result<Codec> {
        Ok(match byte {
            0 => Codec::None,
            1 => Codec::Lz4,
            2 => Codec::Zstd,
            _ => return Err(Error::not_supported(format!("block codec {byte} is not known"))),
        })
    }

    /// Whether this build can use the codec.
    pub fn is_built_in(self) -> bool {
        self != Codec::Zstd || cfg!(feature = "zstd")
    }

    fn require(self) -> Result<()> {
        if self.is_built_in() {
            return Ok(());
        }
        Err(Error::not_supported(format!(
            "codec {} is not built in (feature `{}`)",
            self.name(),
            self.name()
        )))
    }

    /// Decompresses a payload.
    ///
    /// # Errors
    /// `NotSupported` for a codec that is not built in, `Corruption` if the payload is not of the
    /// codec's form. Allocates at most 255 times the payload and 4 KiB.
    pub fn decompress(self, payload: &[u8]) -> Result<Buffer> {
        self.require()?;
        if self == Codec::None {
            return Ok(Buffer::copy_of(payload));
        }
        let Some((head, body)) = payload.split_first_chunk::<RAW_LEN_BYTES>() else {
            return Err(Error::corruption("compressed block shorter than its length field"));
        };
        let raw_bytes = u32::from_le_bytes(*head) as usize;
        if raw_bytes > raw_bytes_max(body.len()) {
            return Err(Error::corruption("compressed block claims an impossible raw length"));
        }
        // Only what the payload fills takes memory: the length is no more than a claim.
        let mut raw = Buffer::filled_later(raw_bytes);
        let done = match self {
            Codec::Lz4 => lz4_flex::block::decompress_into(body, &mut raw).ok(),
            _ => decompress_zstd(body, &mut raw),
        };
        if done != Some(raw_bytes) {
            return Err(Error::corruption(format!("{} block does not decompress", self.name())));
        }
        Ok(raw)
    }
}

fn raw_bytes_max(compressed_bytes: usize) -> usize {
    compressed_bytes.saturating_mul(RATIO_MAX).saturating_add(RATIO_SLACK_BYTES)
}

#[cfg(feature = "zstd")]
fn decompress_zstd(body: &[u8], raw: &mut [u8]) -> Option<usize> {
    zstd::bulk::decompress_to_buffer(body, raw).ok()
}

#[cfg(not(feature = "zstd"))]
fn decompress_zstd(_body: &[u8], _raw: &mut [u8]) -> Option<usize> {
    None
}

/// Compresses block after block with one codec; keeps its working memory.
pub struct Compressor {
    codec: Codec,
    lz4: lz4_flex::block::CompressTable,
    #[cfg(feature = "zstd")]
    zstd: Option<zstd::bulk::Compressor<'static>>,
    out: Vec<u8>,
}

impl Compressor {
    /// A compressor for `codec`. `level` is the level of Zstandard; the other codecs ignore it.
    ///
    /// # Errors
    /// `NotSupported` for a codec that is not built in; `InvalidArgument` for a bad level.
    pub fn new(codec: Codec, level: i32) -> Result<Compressor> {
        codec.require()?;
        #[cfg(not(feature = "zstd"))]
        let _ = level;
        Ok(Compressor {
            codec,
            lz4: lz4_flex::block::CompressTable::default(),
            #[cfg(feature = "zstd")]
            zstd: match codec {
                Codec::Zstd => {
                    Some(zstd::bulk::Compressor::new(level).map_err(|e| {
                        Error::invalid(format!("zstd level {level}")).with_source(e)
                    })?)
                }
                _ => None,
            },
            out: Vec::new(),
        })
    }

    /// Compresses `raw` if that saves at least an eighth; else returns it unchanged.
    pub fn compress<'a>(&'a mut self, raw: &'a [u8]) -> (Codec, &'a [u8]) {
        if self.codec == Codec::None || raw.len() > u32::MAX as usize {
            return (Codec::None, raw);
        }
        let mut used = self.codec;
        let mut size = match self.codec {
            Codec::Zstd => self.zstd_into(raw),
            _ => self.lz4_into(raw),
        };
        if used == Codec::Zstd && size.is_some_and(|n| raw.len() > raw_bytes_max(n)) {
            used = Codec::Lz4;
            size = self.lz4_into(raw);
        }
        match size {
            Some(n) if n + RAW_LEN_BYTES <= raw.len() - raw.len() / 8 => {
                self.out[..RAW_LEN_BYTES].copy_from_slice(&(raw.len() as u32).to_le_bytes());
                (used, &self.out[..RAW_LEN_BYTES + n])
            }
            _ => (Codec::None, raw),
        }
    }

    /// Bytes of working memory held.
    pub fn memory_bytes(&self) -> usize {
        self.out.capacity() + if self.codec == Codec::None { 0 } else { 16 << 10 }
    }

    fn lz4_into(&mut self, raw: &[u8]) -> Option<usize> {
        let room = RAW_LEN_BYTES + lz4_flex::block::get_maximum_output_size(raw.len());
        if self.out.len() < room {
            self.out.resize(room, 0);
        }
        let body = &mut self.out[RAW_LEN_BYTES..];
        lz4_flex::block::compress_into_with_table(raw, body, &mut self.lz4).ok()
    }

    #[cfg(feature = "zstd")]
    fn zstd_into(&mut self, raw: &[u8]) -> Option<usize> {
        let room = RAW_LEN_BYTES + zstd::zstd_safe::compress_bound(raw.len());
        if self.out.len() < room {
            self.out.resize(room, 0);
        }
        let body = &mut self.out[RAW_LEN_BYTES..];
        self.zstd.as_mut()?.compress_to_buffer(raw, body).ok()
    }

    #[cfg(not(feature = "zstd"))]
    fn zstd_into(&mut self, _raw: &[u8]) -> Option<usize> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windrow_base::ErrorKind;

    fn codecs() -> impl Iterator<Item = Codec> {
        [Codec::None, Codec::Lz4, Codec::Zstd].into_iter().filter(|c| c.is_built_in())
    }

    #[test]
    fn payloads_round_trip_and_noise_stays_raw() {
        let text: Vec<u8> = (0..4000u32).flat_map(|i| (i / 7).to_le_bytes()).collect();
        let noise: Vec<u8> =
            (0..4000u32).map(|i| (crate::filter::hash(&i.to_le_bytes())) as u8).collect();
        let zeros = vec![0u8; 1 << 20];
        for codec in codecs() {
            let mut compressor = Compressor::new(codec, 3).unwrap();
            for raw in [&text, &noise, &zeros, &Vec::new()] {
                let (used, payload) = compressor.compress(raw);
                assert!(used == Codec::None || payload.len() <= raw.len() - raw.len() / 8);
                assert_eq!(&*used.decompress(payload).unwrap(), &**raw, "{}", codec.name());
            }
            assert_eq!(compressor.compress(&noise).0, Codec::None);
            assert_eq!(compressor.compress(&text).0, codec);
        }
    }

    #[test]
    fn claimed_lengths_are_checked_before_allocation() {
        let mut payload = u32::MAX.to_le_bytes().to_vec();
        payload.extend_from_slice(&[0; 64]);
        for codec in codecs().filter(|c| *c != Codec::None) {
            assert!(codec.decompress(&payload).unwrap_err().is_corruption());
            assert!(codec.decompress(&payload[..3]).unwrap_err().is_corruption());
        }
    }

    #[test]
    fn unknown_and_absent_codecs_are_named() {
        assert_eq!(Codec::from_u8(3).unwrap_err().kind(), ErrorKind::NotSupported);
        assert_eq!(Codec::parse("snappy").unwrap_err().kind(), ErrorKind::InvalidArgument);
        for codec in codecs() {
            assert_eq!(Codec::parse(codec.name()).unwrap(), codec);
            assert_eq!(Codec::from_u8(codec as u8).unwrap(), codec);
        }
        if !Codec::Zstd.is_built_in() {
            let e = Codec::Zstd.decompress(&[0; 16]).unwrap_err();
            assert_eq!(e.kind(), ErrorKind::NotSupported);
            assert!(e.message().contains("zstd"));
        }
    }
}
