//! Changes of executions: acceptance, claim, events, text, answers and end, each as one command of the writer.

pub(crate) mod accept;
pub(crate) mod budget_usage;
pub(crate) mod claim;
pub(crate) mod events;
pub(crate) mod execution_row;
pub(crate) mod idempotency_keys;
pub(crate) mod inputs;
pub(crate) mod interactions;
pub(crate) mod output_chunks;
pub(crate) mod record;
pub(crate) mod resume;
pub(crate) mod settle;
