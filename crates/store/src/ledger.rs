//! Changes of executions: acceptance, claim, events, text, answers and end, each as one command of the writer.

pub(crate) mod accept;
pub(crate) mod answer;
pub(crate) mod append_batch;
pub(crate) mod budget_usage;
pub(crate) mod claim;
pub(crate) mod events;
pub(crate) mod execution_row;
pub(crate) mod interactions;
pub(crate) mod request_keys;
pub(crate) mod sealed_inputs;
pub(crate) mod settle;
pub(crate) mod text_chunks;
