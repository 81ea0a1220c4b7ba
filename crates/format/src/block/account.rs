//! An account of memory: the bytes that are held now, by any holder.
//!
//! A cache knows the blocks that it keeps, but not the blocks that readers still hold after it
//! dropped them. So a block carries its charge, which ends with the block.
//!
//! Owns: the count. Never does: limit it; the owner of the account does.

use windrow_env::sync::Arc;
use windrow_env::sync::atomic::{AtomicU64, Ordering};

/// Counts bytes for as long as their [`Charge`]s live.
#[derive(Clone, Debug, Default)]
pub struct Account(Arc<AtomicU64>);

impl Account {
    /// Counts `bytes` until the charge is dropped.
    #[inline]
    pub fn charge(&self, bytes: u64) -> Charge {
        self.0.fetch_add(bytes, Ordering::Relaxed);
        Charge { account: self.clone(), bytes }
    }

    /// The bytes that are charged now.
    #[inline]
    pub fn bytes(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Bytes that count as held while this lives.
#[derive(Debug)]
pub struct Charge {
    account: Account,
    bytes: u64,
}

impl Charge {
    /// Gives a part of the bytes back.
    pub fn give_back(&mut self, bytes: u64) {
        debug_assert!(bytes <= self.bytes, "{bytes} bytes of {}", self.bytes);
        let bytes = bytes.min(self.bytes);
        self.bytes -= bytes;
        self.account.0.fetch_sub(bytes, Ordering::Relaxed);
    }
}

impl Drop for Charge {
    #[inline]
    fn drop(&mut self) {
        self.account.0.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn charges_count_until_they_are_dropped() {
        let account = Account::default();
        let (mut one, two) = (account.charge(10), account.clone().charge(5));
        assert_eq!(account.bytes(), 15);
        one.give_back(7);
        assert_eq!(account.bytes(), 8);
        drop(one);
        assert_eq!(account.bytes(), 5);
        drop(two);
        assert_eq!(account.bytes(), 0);
    }
}
