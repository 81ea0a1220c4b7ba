//! The kinds of operation that clients do and latencies are kept of.
//!
//! Owns: their names. Never does: them (`client.rs` does).

/// A kind of operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// Sets a key that may be there.
    Put,
    /// Sets a key that was never there: the next record's.
    Insert,
    /// Reads a key that is there, as far as deletes have left it.
    Get,
    /// Reads a key that was never there.
    Absent,
    /// Seeks to a key and reads on.
    Scan,
    /// Removes a key.
    Delete,
    /// Reads a key, then sets it.
    Update,
    /// Reads several keys at once.
    MultiGet,
    /// Sets several keys at once, all or none.
    Batch,
    /// Takes the oldest entry of a queue: seeks to where it should be, reads it, removes it.
    Pop,
    /// Adds one to a record, in a transaction.
    Count,
    /// Moves an amount from one record to another, in a transaction.
    Transfer,
    /// Takes an order, in a transaction: counts it in one of a few districts, lowers the stock of
    /// several records, and sets a new record for it and one for each of those.
    Order,
}

impl Kind {
    /// How many there are.
    pub(crate) const COUNT: usize = 13;

    /// All of them, in the order of their numbers.
    pub(crate) const ALL: [Kind; Kind::COUNT] = [
        Kind::Put,
        Kind::Insert,
        Kind::Get,
        Kind::Absent,
        Kind::Scan,
        Kind::Delete,
        Kind::Update,
        Kind::MultiGet,
        Kind::Batch,
        Kind::Pop,
        Kind::Count,
        Kind::Transfer,
        Kind::Order,
    ];

    /// As workload files and reports call it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::Put => "put",
            Kind::Insert => "insert",
            Kind::Get => "get",
            Kind::Absent => "absent",
            Kind::Scan => "scan",
            Kind::Delete => "delete",
            Kind::Update => "update",
            Kind::MultiGet => "multi_get",
            Kind::Batch => "batch",
            Kind::Pop => "pop",
            Kind::Count => "count",
            Kind::Transfer => "transfer",
            Kind::Order => "order",
        }
    }

    /// Whether it reads the store.
    pub(crate) fn reads(self) -> bool {
        !matches!(self, Kind::Put | Kind::Insert | Kind::Delete | Kind::Batch)
    }

    /// Whether it is a transaction.
    pub(crate) fn is_transaction(self) -> bool {
        matches!(self, Kind::Count | Kind::Transfer | Kind::Order)
    }

    /// Whether it changes the store.
    pub(crate) fn writes(self) -> bool {
        !matches!(self, Kind::Get | Kind::Absent | Kind::Scan | Kind::MultiGet)
    }
}
