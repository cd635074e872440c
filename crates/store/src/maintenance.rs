//! Maintenance of the history: removal of old executions, release of disk space, storage statistics.

pub(crate) mod history;
pub(crate) mod retention;
