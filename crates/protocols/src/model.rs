//! Public types: commands, steps, and what they consist of.

pub(crate) mod answer_attachment;
pub(crate) mod command;
pub(crate) mod ids;
pub(crate) mod step;
pub(crate) mod tool_call;
