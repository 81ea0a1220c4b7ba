//! The fields of hashes: a value, and the order in which the field was added.
//!
//! Owns: the layout of their rows: the value, then the field's number among all that the hash ever
//! had (u32, little-endian), by which small hashes are listed. Never does: give out numbers.

use std::ops::Deref;
use windrow::{Error, Result, Slice};

const ORDER_BYTES: usize = 4;

/// A field's row: it reads as its value.
#[derive(Clone, Debug)]
pub(crate) struct Field(Slice);

impl Field {
    /// # Errors
    /// `Corruption` if `row` is no field's.
    pub(crate) fn decode(row: Slice) -> Result<Field> {
        if row.len() >= ORDER_BYTES {
            return Ok(Field(row));
        }
        Err(Error::corruption(
            "a row of the keyspace redis.hashes is no field of a hash: another program wrote it; delete it with \
             `windrow delete --keyspace redis.hashes`",
        ))
    }

    pub(crate) fn encode(value: &[u8], order: u32) -> Vec<u8> {
        [value, &order.to_le_bytes()].concat()
    }

    /// Returns its number among all that the hash ever had.
    pub(crate) fn order(&self) -> u32 {
        let (_, order) = self.0.split_at(self.0.len() - ORDER_BYTES);
        order.try_into().map_or(0, u32::from_le_bytes)
    }
}

impl Deref for Field {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0[..self.0.len() - ORDER_BYTES]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_reads_as_its_value() {
        let field = Field::decode(Slice::copy_from(&Field::encode(b"red", 7))).unwrap();
        assert_eq!((&*field, field.order()), (&b"red"[..], 7));
        assert!(Field::decode(Slice::copy_from(b"red")).is_err());
    }
}
