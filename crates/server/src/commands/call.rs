//! One command of one client, while it is run.
//!
//! Owns: the parts of the server that a command may reach, and reading its arguments. Never does:
//! decide which command runs.

use crate::client::Client;
use crate::data::view::View;
use crate::fault::{NOT_FLOAT, NOT_INTEGER, Outcome, SYNTAX, WRONG_TYPE, fail};
use crate::protocol::Reply;
use crate::protocol::number::{parse_f64, parse_i64};
use crate::server_parts::ServerParts;

/// A command under way.
pub(crate) struct Call<'c, 'v> {
    /// The command's name, and its arguments.
    pub(crate) args: &'c [&'c [u8]],
    pub(crate) view: View<'v>,
    pub(crate) client: &'c mut Client,
    pub(crate) shared: &'c ServerParts,
    pub(crate) out: &'c mut Reply,
}

impl<'c> Call<'c, '_> {
    /// Returns the first key, of a command that has one.
    pub(crate) fn key(&self) -> &'c [u8] {
        self.args[1]
    }

    /// Returns an argument.
    ///
    /// # Errors
    /// `syntax error` where there is none.
    pub(crate) fn arg(&self, place: usize) -> Outcome<&'c [u8]> {
        self.args.get(place).copied().map_or_else(|| fail(SYNTAX), Ok)
    }

    /// Returns an integer argument.
    ///
    /// # Errors
    /// `syntax error` where there is none, and the error of a text that is no integer.
    pub(crate) fn int(&self, place: usize) -> Outcome<i64> {
        int(self.arg(place)?)
    }

    /// Returns a floating-point argument.
    ///
    /// # Errors
    /// `syntax error` where there is none, and the error of a text that is no number.
    pub(crate) fn float(&self, place: usize) -> Outcome<f64> {
        float(self.arg(place)?)
    }

    /// Checks the length of a reply; called for every element of one that may be long.
    ///
    /// # Errors
    /// A reply longer than the server may keep.
    pub(crate) fn check_room(&self) -> Outcome {
        if self.out.len() <= self.shared.config.reply_bytes_max {
            return Ok(());
        }
        fail(format!(
            "ERR the reply is longer than reply-max-bytes ({}): ask for parts of it, by SCAN and its \
             like or by ranges",
            self.shared.config.reply_bytes_max
        ))
    }

    /// Returns the result of a look-up. For a command that has waited, another kind of value at its
    /// key is no error: it goes on waiting.
    pub(crate) fn looked_for<T: Default>(&self, found: Outcome<T>) -> Outcome<T> {
        match found {
            Err(fault) if self.client.is_woken && fault.0 == WRONG_TYPE => Ok(T::default()),
            found => found,
        }
    }

    /// Compares the length in an array's head with the number of elements that followed.
    ///
    /// # Errors
    /// A difference: the client would take the next reply for elements.
    pub(crate) fn check_count(&self, said: u64, followed: u64) -> Outcome {
        if said == followed {
            return Ok(());
        }
        let key = String::from_utf8_lossy(self.key());
        fail(format!(
            "ERR {key} has {followed} elements and should have {said}: something else than the server \
             wrote its rows (see docs/server.md); delete it, or restore a checkpoint"
        ))
    }

    /// Fails with the error of a wrong number of arguments.
    pub(crate) fn wrong_number<T>(&self) -> Outcome<T> {
        let name = String::from_utf8_lossy(self.args[0]).to_ascii_lowercase();
        fail(format!("ERR wrong number of arguments for '{name}' command"))
    }
}

/// Reads an integer.
///
/// # Errors
/// A text that is no integer.
pub(crate) fn int(arg: &[u8]) -> Outcome<i64> {
    parse_i64(arg).map_or_else(|| fail(NOT_INTEGER), Ok)
}

/// Reads a floating-point number.
///
/// # Errors
/// A text that is no number.
pub(crate) fn float(arg: &[u8]) -> Outcome<f64> {
    parse_f64(arg).map_or_else(|| fail(NOT_FLOAT), Ok)
}

/// Returns whether an argument is this word, in upper or lower case.
pub(crate) fn is(arg: &[u8], word: &str) -> bool {
    arg.eq_ignore_ascii_case(word.as_bytes())
}
