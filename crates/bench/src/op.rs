//! The kinds of operation: clients do them, and latencies are kept for each.
//!
//! Owns: their names. Never does: an operation (`client.rs` does).

/// A kind of operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// Sets a key that may exist.
    Put,
    /// Sets a key that never existed: the next record's.
    Insert,
    /// Reads a key that exists, unless it was deleted.
    Get,
    /// Reads a key that never existed.
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
    /// Takes the oldest entry of a queue: seeks to its place, reads it, removes it.
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
    /// The number of kinds.
    pub(crate) const COUNT: usize = 13;

    /// All kinds, in the order of their numbers.
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

    /// Returns its name in workload files and reports.
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
