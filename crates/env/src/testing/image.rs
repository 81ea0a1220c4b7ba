//! The bytes of a file, sparse and shared: pages of zeros take no memory, and a copy shares all
//! pages until one side writes.
//!
//! Owns: the pages. Never does: know what is durable.

use std::sync::Arc;

const PAGE_BYTES: usize = 4096;

type Page = Arc<[u8; PAGE_BYTES]>;

/// A file's contents. The bytes beyond the stored pages are zeros up to `len`; stored bytes beyond
/// `len` are zeros as well.
#[derive(Clone, Default)]
pub(super) struct Image {
    pages: Vec<Option<Page>>,
    len: u64,
}

impl Image {
    pub(super) fn from_bytes(bytes: &[u8]) -> Image {
        let mut image = Image::default();
        image.write(0, bytes);
        image
    }

    pub(super) fn len(&self) -> u64 {
        self.len
    }

    /// Fills `buf` from `offset`, and returns the number of bytes within the file.
    pub(super) fn read(&self, offset: u64, buf: &mut [u8]) -> usize {
        let got = self.len.saturating_sub(offset).min(buf.len() as u64) as usize;
        let mut done = 0;
        while done < got {
            let at = offset as usize + done;
            let (page, skip) = (at / PAGE_BYTES, at % PAGE_BYTES);
            let now = (PAGE_BYTES - skip).min(got - done);
            match self.pages.get(page) {
                Some(Some(bytes)) => {
                    buf[done..done + now].copy_from_slice(&bytes[skip..skip + now])
                }
                _ => buf[done..done + now].fill(0),
            }
            done += now;
        }
        got
    }

    /// Writes, extending the file where needed.
    pub(super) fn write(&mut self, offset: u64, bytes: &[u8]) {
        let end = offset as usize + bytes.len();
        if !bytes.is_empty() && self.pages.len() * PAGE_BYTES < end {
            self.pages.resize(end.div_ceil(PAGE_BYTES), None);
        }
        let mut done = 0;
        while done < bytes.len() {
            let at = offset as usize + done;
            let (page, skip) = (at / PAGE_BYTES, at % PAGE_BYTES);
            let now = (PAGE_BYTES - skip).min(bytes.len() - done);
            let slot = self.pages[page].get_or_insert_with(|| Arc::new([0; PAGE_BYTES]));
            Arc::make_mut(slot)[skip..skip + now].copy_from_slice(&bytes[done..done + now]);
            done += now;
        }
        self.len = self.len.max(end as u64);
    }

    /// Cuts or extends by zeros.
    pub(super) fn set_len(&mut self, len: u64) {
        if len < self.len {
            let keep = (len as usize).div_ceil(PAGE_BYTES);
            self.pages.truncate(keep);
            let skip = len as usize % PAGE_BYTES;
            if let Some(Some(page)) = self.pages.get_mut(keep.wrapping_sub(1))
                && skip > 0
            {
                Arc::make_mut(page)[skip..].fill(0);
            }
        }
        self.len = len;
    }

    pub(super) fn to_vec(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.len as usize];
        self.read(0, &mut bytes);
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn behaves_as_a_plain_vector_of_bytes() {
        let mut rng = crate::testing::Rng::new(5);
        let (mut image, mut model) = (Image::default(), Vec::<u8>::new());
        for _ in 0..2_000 {
            let at = rng.below(20_000) as usize;
            if rng.chance(0.2) {
                image.set_len(at as u64);
                model.resize(at, 0);
            } else {
                let bytes = vec![rng.next_u64() as u8; rng.below(6_000) as usize];
                let shared = image.clone();
                image.write(at as u64, &bytes);
                assert_eq!(shared.to_vec(), model, "a copy does not change");
                model.resize(model.len().max(at + bytes.len()), 0);
                model[at..at + bytes.len()].copy_from_slice(&bytes);
            }
            assert_eq!(image.to_vec(), model);
        }
    }
}
