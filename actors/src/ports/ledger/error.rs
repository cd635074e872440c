//! Errors of ledger operations.

/// Error of a ledger operation.
#[derive(Debug, Clone, thiserror::Error)]
pub enum LedgerError {
    /// The store is full, closed or broken. The call committed nothing.
    #[error("the ledger could not commit: {cause}")]
    Unavailable {
        /// Cause for the log; never shown to a caller.
        cause: String,
    },
    /// A row cannot be decoded.
    #[error("the ledger holds a row that cannot be read: {cause}")]
    Unreadable {
        /// Cause for the log; never shown to a caller.
        cause: String,
    },
}
