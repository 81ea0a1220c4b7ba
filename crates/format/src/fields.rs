//! Tagged fields: a record that later versions may extend.
//!
//! Each field is `varint(tag << 1 | required)`, a length and its bytes, in ascending order of tags.
//! A reader skips a field that it does not know, unless the field is marked required: then it
//! refuses the record.
//!
//! Owns: the encoding of a field, and the rule for unknown ones. Never does: give fields a meaning.

use windrow_base::coding::{Decoder, put_slice, put_varint};
use windrow_base::{Error, Result};

/// Writes fields.
pub(crate) struct FieldWriter<'a> {
    out: &'a mut Vec<u8>,
    last_tag: u64,
}

impl<'a> FieldWriter<'a> {
    pub(crate) fn new(out: &'a mut Vec<u8>) -> FieldWriter<'a> {
        FieldWriter { out, last_tag: 0 }
    }

    pub(crate) fn bytes(&mut self, tag: u64, required: bool, value: &[u8]) {
        debug_assert!(tag > self.last_tag, "fields ascend");
        self.last_tag = tag;
        put_varint(self.out, tag << 1 | u64::from(required));
        put_slice(self.out, value);
    }

    pub(crate) fn number(&mut self, tag: u64, required: bool, value: u64) {
        let mut bytes = Vec::with_capacity(10);
        put_varint(&mut bytes, value);
        self.bytes(tag, required, &bytes);
    }
}

/// One field as read.
pub(crate) struct RawField<'a> {
    pub(crate) tag: u64,
    pub(crate) required: bool,
    pub(crate) value: &'a [u8],
}

impl RawField<'_> {
    /// The value as one varint and nothing else.
    pub(crate) fn number(&self) -> Result<u64> {
        let mut d = Decoder::new(self.value);
        let number = d.varint()?;
        if d.is_empty() {
            return Ok(number);
        }
        Err(Error::corruption(format!("field {} is longer than its number", self.tag)))
    }

    /// Decides on a field that the caller does not know: skips it, or refuses the record.
    pub(crate) fn unknown(&self, what: &str) -> Result<()> {
        if self.required {
            let tag = self.tag;
            return Err(Error::not_supported(format!("{what} field {tag} needs a newer Windrow")));
        }
        Ok(())
    }
}

/// Reads fields.
pub(crate) struct FieldReader<'a> {
    decoder: Decoder<'a>,
    last_tag: u64,
}

impl<'a> FieldReader<'a> {
    pub(crate) fn new(input: &'a [u8]) -> FieldReader<'a> {
        FieldReader { decoder: Decoder::new(input), last_tag: 0 }
    }

    /// The next field, `None` at the end.
    ///
    /// # Errors
    /// `Corruption` for a field cut short, repeated or out of order.
    pub(crate) fn next(&mut self) -> Result<Option<RawField<'a>>> {
        if self.decoder.is_empty() {
            return Ok(None);
        }
        let head = self.decoder.varint()?;
        let (tag, required) = (head >> 1, head & 1 == 1);
        if tag <= self.last_tag {
            return Err(Error::corruption(format!("field {tag} is repeated or out of order")));
        }
        self.last_tag = tag;
        Ok(Some(RawField { tag, required, value: self.decoder.slice()? }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windrow_base::ErrorKind;

    #[test]
    fn optional_fields_are_skipped_and_required_ones_refused() {
        let mut out = Vec::new();
        let mut writer = FieldWriter::new(&mut out);
        writer.number(1, true, 300);
        writer.bytes(9, false, b"later");
        writer.bytes(10, true, b"must");
        let mut reader = FieldReader::new(&out);
        assert_eq!(reader.next().unwrap().unwrap().number().unwrap(), 300);
        assert!(reader.next().unwrap().unwrap().unknown("test").is_ok());
        let refused = reader.next().unwrap().unwrap().unknown("test").unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::NotSupported);
        assert!(reader.next().unwrap().is_none());
    }

    #[test]
    fn repeated_fields_are_corruption() {
        let mut reader = FieldReader::new(&[2, 0, 2, 0]);
        reader.next().unwrap();
        assert!(reader.next().err().unwrap().is_corruption());
    }
}
