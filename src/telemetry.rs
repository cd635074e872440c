//! Logs: to standard error, for people or as JSON. Texts of agents never come this way.

use std::io::{IsTerminal, stderr};

use tracing_subscriber::EnvFilter;

/// In which form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// Lines for people.
    Human,
    /// One JSON object a line.
    Json,
}

/// Begins to log. `RUST_LOG` wins over `level`. A second call changes nothing.
pub(crate) fn begin(form: Form, level: &str) {
    let filter = EnvFilter::try_from_default_env()
        .or_else(|_unset| EnvFilter::try_new(level))
        .unwrap_or_else(|_malformed| EnvFilter::new("info"));
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(stderr);
    // What cannot be written is not told where it could not be written: that would panic.
    let log = log.with_ansi(stderr().is_terminal()).log_internal_errors(false);
    let begun = match form {
        Form::Human => log.with_target(false).try_init(),
        Form::Json => log.json().flatten_event(true).try_init(),
    };
    if begun.is_err() {
        tracing::debug!("the log had begun before");
    }
}
