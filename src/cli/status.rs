//! `algonius status`: the tree, once or again and again.

mod tree;

use std::pin::pin;
use std::time::Duration;

use super::client::Client;
use super::fault::CliError;
use super::out::Out;
use super::screen::{Screen, asked_to_stop};
use crate::wire::api::ServiceStatus;

pub(super) use tree::{ago, life};

/// Asks and prints.
pub(super) async fn run(client: &Client, out: &Out) -> Result<(), CliError> {
    let status: ServiceStatus = client.get("/status").await?;
    if out.is_json() {
        out.shape(&status);
    } else {
        tree::lines(&status).iter().for_each(|line| out.line(line));
    }
    Ok(())
}

/// Asks and prints again and again, until it is told to stop or nobody reads any more. A terminal has
/// one tree that changes; anything else one after the other, or one JSON document on a line. A service
/// that has answered once may be away for a while.
pub(super) async fn watch(client: &Client, pace: Duration, out: &Out) -> Result<(), CliError> {
    let mut stop = pin!(asked_to_stop());
    let mut screen = Screen::of_stdout().filter(|_| !out.is_json());
    let mut last: Option<ServiceStatus> = None;
    loop {
        let asked = tokio::select! {
            asked = client.get::<ServiceStatus>("/status") => asked,
            () = &mut stop => return Ok(()),
        };
        let away = match (asked, &last) {
            (Ok(status), _) => {
                last = Some(status);
                None
            }
            (Err(error), Some(_)) if is_passing(&error) => Some(error.to_string()),
            (Err(error), _) => return Err(error),
        };
        let shown = last.as_ref().map(|status| show(status, away, &mut screen, out));
        if shown.is_some_and(|shown| shown.is_err()) {
            return Ok(()); // A reader that has gone wants no more.
        }
        tokio::select! {
            () = tokio::time::sleep(pace) => {} // The pace of looking; nothing waits for it.
            () = &mut stop => return Ok(()),
        }
    }
}

/// Whether a service that is started again answers then.
const fn is_passing(error: &CliError) -> bool {
    matches!(error, CliError::Unreachable { .. } | CliError::Broken { .. })
}

fn show(
    status: &ServiceStatus,
    away: Option<String>,
    screen: &mut Option<Screen>,
    out: &Out,
) -> std::io::Result<()> {
    match (screen, away) {
        (Some(screen), away) => {
            let mut lines = tree::lines(status);
            lines.extend(away.map(|away| format!("{away}; looking again")));
            screen.draw(&lines)
        }
        (None, Some(away)) => {
            out.note(&format!("{away}; looking again"));
            Ok(())
        }
        (None, None) if out.is_json() => out.lines(&[serde_json::to_string(status)?]),
        (None, None) => out.lines(&[tree::lines(status), vec![String::new()]].concat()),
    }
}
