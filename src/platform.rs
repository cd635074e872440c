//! Parts of the machine and not of the product: TLS, HTTP client, clock, login session, host metrics, log, templates,
//! file rights.

pub mod clock;
pub(crate) mod executable_file;
pub mod host_metrics;
pub(crate) mod http_client;
pub(crate) mod json_schema;
pub(crate) mod login_session;
pub(crate) mod network;
pub(crate) mod operator_token;
pub(crate) mod template;
pub(crate) mod temporary_folder;
pub(crate) mod terminal_text;
pub mod tls;
