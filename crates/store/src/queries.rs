//! Reads of executions: single records, lists and pages.

pub(crate) mod listing;
pub(crate) mod page;
pub(crate) mod records;
