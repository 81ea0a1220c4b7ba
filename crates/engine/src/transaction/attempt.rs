//! What is done in a transaction until it goes through.
//!
//! Owns: how often, and how long between. Never does: what a transaction does.

use super::{Transaction, TransactionOptions};
use crate::db::Db;
use crate::handle::Handle;
use windrow_base::{Error, ErrorKind, Result};

/// After so many conflicts in a row the caller is told.
pub(super) const ATTEMPTS_MAX: u32 = 100;

/// The pause after the first conflict; each further one is twice as long.
const PAUSE_NS_MIN: u64 = 2_000;

/// The longest pause.
const PAUSE_NS_MAX: u64 = 5_000_000;

/// Runs `work` in a transaction, and again where it conflicts.
fn transact<T, E: From<Error>>(
    database: &Handle,
    options: &TransactionOptions,
    mut work: impl FnMut(&mut Transaction) -> Result<T, E>,
) -> Result<T, E> {
    let mut attempt = 0;
    loop {
        attempt += 1;
        let is_last = attempt == ATTEMPTS_MAX;
        let mut transaction = Transaction::begin(database, options.clone())?;
        match work(&mut transaction) {
            Err(_) if transaction.is_lost && !is_last => drop(transaction),
            Err(error) => return Err(error),
            Ok(done) => match transaction.commit() {
                Ok(_) => return Ok(done),
                Err(error) if error.kind() == ErrorKind::Conflict && !is_last => {}
                Err(error) => return Err(error.into()),
            },
        }
        // Its locks are free by now.
        pause(database, attempt);
    }
}

/// Waits for a random part of a time that doubles: two that conflict do not meet again.
pub(super) fn pause(database: &Handle, attempt: u32) {
    let env = &database.env;
    if env.jobs.step() {
        return;
    }
    let most = (PAUSE_NS_MIN << attempt.min(20)).min(PAUSE_NS_MAX);
    env.clock.sleep_ns(env.random.next_u64() % most);
}

impl Db {
    /// Begins a transaction over all keyspaces.
    ///
    /// # Errors
    /// `Closed`.
    pub fn transaction(&self) -> Result<Transaction> {
        Transaction::begin(self.handle(), TransactionOptions::default())
    }

    /// Begins a transaction that is run as `options` say.
    ///
    /// # Errors
    /// `Closed`.
    pub fn transaction_with(&self, options: &TransactionOptions) -> Result<Transaction> {
        Transaction::begin(self.handle(), options.clone())
    }

    /// Runs `work` in a transaction and commits it; runs it again, after a short pause, where
    /// it conflicts with others, up to a hundred times. `work` must have no other effects.
    /// An error that it returns ends the transaction with nothing written.
    ///
    /// # Errors
    /// Those of `work`; `Conflict` after the hundredth; as [`Db::write`].
    pub fn transact<T, E: From<Error>>(
        &self,
        work: impl FnMut(&mut Transaction) -> Result<T, E>,
    ) -> Result<T, E> {
        transact(self.handle(), &TransactionOptions::default(), work)
    }

    /// As [`Db::transact`], run as `options` say. A deadlock is a conflict like any other here.
    ///
    /// # Errors
    /// As [`Db::transact`]; `Busy` if a lock was not free for `lock_timeout`.
    pub fn transact_with<T, E: From<Error>>(
        &self,
        options: &TransactionOptions,
        work: impl FnMut(&mut Transaction) -> Result<T, E>,
    ) -> Result<T, E> {
        transact(self.handle(), options, work)
    }
}
