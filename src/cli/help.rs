//! Commands that print help: explanations of errors, manual pages and shell completions.

pub(super) mod completions;
pub(super) mod explain;
