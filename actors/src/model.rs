//! Nouns: what the house talks about. Data only; nothing here decides.

pub mod agent;
pub mod alert;
pub mod code;
pub mod content;
pub mod event;
pub mod execution;
pub mod exposure;
pub mod failure;
pub mod id;
pub mod news;
pub mod pressure;
pub mod principal;
pub mod program;
pub mod progress;
pub mod push;
pub mod queue;
pub mod record;
pub mod redaction;
pub mod request;
pub mod resources;
pub mod rungs;
pub mod sandbox;
pub mod status;
pub mod trace;
pub mod usage;
pub mod workspace;
