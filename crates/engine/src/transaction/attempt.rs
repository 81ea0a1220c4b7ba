//! Running work in a transaction until it commits, and the operations of a database that use
//! transactions. Those of one keyspace are in `conditional_writes.rs`.
//!
//! Owns: the loop, and these operations of [`Db`]. Never does: the steps of a transaction.

use super::conditional_writes::{Conditions, write_if};
use super::retry::retry;
use super::{Transaction, TransactionOptions};
use crate::db::Db;
use std::borrow::BorrowMut;
use windrow_base::{Error, ErrorKind, Result, SeqNo};
use windrow_read::options::WriteSync;
use windrow_recover::handle::Handle;
use windrow_store::write::batch::Batch;

/// Runs `work` in a transaction, and again where it conflicts.
fn transact<T, E: From<Error>>(
    database: &Handle,
    options: &TransactionOptions,
    mut work: impl FnMut(&mut Transaction) -> Result<T, E>,
) -> Result<T, E> {
    retry(database, |is_last| {
        let mut transaction = Transaction::begin(database, options.clone())?;
        // Its locks are free before the pause.
        match work(&mut transaction) {
            Err(_) if transaction.is_lost && !is_last => Ok(None),
            Err(error) => Err(error),
            Ok(done) => match transaction.commit() {
                Ok(_) => Ok(Some(done)),
                Err(error) if error.kind() == ErrorKind::Conflict && !is_last => Ok(None),
                Err(error) => Err(error.into()),
            },
        }
    })
}

impl Db {
    /// The options of transactions where the caller gives none.
    fn options(&self) -> TransactionOptions {
        TransactionOptions { sync: self.sync, ..TransactionOptions::default() }
    }

    /// Begins a transaction over all keyspaces.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = windrow::Db::open(dir.path()).unwrap();
    /// use windrow::ErrorKind;
    /// db.put("seats", [1])?;
    /// let mut mine = db.transaction()?;
    /// let seats = mine.get(&db, "seats")?.expect("it was put")[0];
    /// mine.put(&db, "seats", [seats - 1])?;
    /// db.put("seats", [0])?; // somebody else was faster
    /// assert_eq!(mine.commit().unwrap_err().kind(), ErrorKind::Conflict);
    /// # Ok::<(), windrow::Error>(())
    /// ```
    ///
    /// # Errors
    /// `Closed`.
    pub fn transaction(&self) -> Result<Transaction> {
        Transaction::begin(self.handle(), self.options())
    }

    /// Begins a transaction with these options.
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
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = windrow::Db::open(dir.path()).unwrap();
    /// #[derive(Debug)]
    /// enum Refused {
    ///     SoldOut,
    ///     Database(windrow::Error),
    /// }
    /// impl From<windrow::Error> for Refused {
    ///     fn from(error: windrow::Error) -> Refused {
    ///         Refused::Database(error)
    ///     }
    /// }
    /// let sell = || {
    ///     db.transact(|tx| match tx.get(&db, "seats")?.as_deref() {
    ///         None | Some([0]) => Err(Refused::SoldOut),
    ///         Some(left) => Ok(tx.put(&db, "seats", [left[0] - 1])?),
    ///     })
    /// };
    /// db.put("seats", [1])?;
    /// assert!(sell().is_ok());
    /// assert!(matches!(sell(), Err(Refused::SoldOut)));
    /// # Ok::<(), windrow::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of `work`; `Conflict` after the hundredth; as [`Db::write`]. It is not run again
    /// after `OutcomeUnknown`: it may have been committed.
    pub fn transact<T, E: From<Error>>(
        &self,
        work: impl FnMut(&mut Transaction) -> Result<T, E>,
    ) -> Result<T, E> {
        transact(self.handle(), &self.options(), work)
    }

    /// As [`Db::transact`], with these options. A deadlock is a conflict like any other here.
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

    /// Writes a batch, or `&mut` one as [`Db::write`] does, if all conditions hold, both in one step.
    /// `None` if one does not.
    ///
    /// # Errors
    /// As [`Db::write`]; `Conflict` if others wrote keys of the conditions, and left them true, in
    /// each of a hundred attempts.
    pub fn write_if(
        &self,
        mut batch: impl BorrowMut<Batch>,
        conditions: &Conditions,
        sync: WriteSync,
    ) -> Result<Option<SeqNo>> {
        write_if(self.handle(), batch.borrow_mut(), conditions, sync)
    }
}
