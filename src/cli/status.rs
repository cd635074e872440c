//! `algonius status`: prints the tree, once or repeatedly.

mod tree;

use std::pin::pin;
use std::time::Duration;

use super::client::ServiceClient;
use super::error::CliError;
use super::output::CliOutput;
use super::output::screen::{Screen, wait_for_stop_signal};
use crate::wire::api::ServiceStatus;

pub(super) use tree::health_text;

/// Requests the status and prints it.
pub(super) async fn run(client: &ServiceClient, out: &CliOutput) -> Result<(), CliError> {
    let status: ServiceStatus = client.get("/status").await?;
    if out.is_json() {
        out.print_json(&status);
    } else {
        tree::status_lines(&status).iter().for_each(|line| out.print_line(line));
    }
    Ok(())
}

/// Requests and prints the status repeatedly, until a signal or until the reader has gone. A terminal shows one tree
/// that changes; other outputs get one tree after another, or one JSON document per line. After a first response the
/// service may be unavailable for a while.
pub(super) async fn watch(
    client: &ServiceClient,
    interval: Duration,
    out: &CliOutput,
) -> Result<(), CliError> {
    let mut stop_signal = pin!(wait_for_stop_signal());
    let mut screen = Screen::for_stdout().filter(|_| !out.is_json());
    let mut last_status: Option<ServiceStatus> = None;
    loop {
        let response = tokio::select! {
            response = client.get::<ServiceStatus>("/status") => response,
            () = &mut stop_signal => return Ok(()),
        };
        let error_message = match (response, &last_status) {
            (Ok(status), _) => {
                last_status = Some(status);
                None
            }
            (Err(error), Some(_)) if is_transient(&error) => Some(error.to_string()),
            (Err(error), _) => return Err(error),
        };
        let printed =
            last_status.as_ref().map(|status| show(status, error_message, &mut screen, out));
        printed.unwrap_or(Ok(())).map_err(|source| CliError::Output { source })?;
        tokio::select! {
            () = tokio::time::sleep(interval) => {} // The pace of looking; nothing waits for it.
            () = &mut stop_signal => return Ok(()),
        }
    }
}

/// True if a restart of the service resolves the error.
const fn is_transient(error: &CliError) -> bool {
    matches!(error, CliError::Unreachable { .. } | CliError::ConnectionLost { .. })
}

fn show(
    status: &ServiceStatus,
    error_message: Option<String>,
    screen: &mut Option<Screen>,
    out: &CliOutput,
) -> std::io::Result<()> {
    match (screen, error_message) {
        (Some(screen), error_message) => {
            let mut lines = tree::status_lines(status);
            lines.extend(
                error_message.map(|error_message| format!("{error_message}; looking again")),
            );
            screen.draw(&lines)
        }
        (None, Some(error_message)) => {
            out.print_note(&format!("{error_message}; looking again"));
            Ok(())
        }
        (None, None) if out.is_json() => {
            out.print_json_document(&serde_json::to_string(status)?);
            out.take_write_error()
        }
        (None, None) => {
            out.print_line(&[tree::status_lines(status), vec![String::new()]].concat().join("\n"));
            out.take_write_error()
        }
    }
}
