//! Parts that belong to the machine and not to the product: TLS, clock, host metrics, log, templates, file rights.

pub mod clock;
pub mod host_metrics;
pub(crate) mod json_schema;
pub(crate) mod network;
pub(crate) mod operator_token;
pub(crate) mod template;
pub(crate) mod terminal_text;
pub mod tls;
