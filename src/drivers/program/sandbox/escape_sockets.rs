//! Sockets through which a program could start others outside of its sandbox, at the start of the program.

use std::path::PathBuf;

use algonius_actors::model::failure::Failure;
use algonius_actors::model::host::sandbox::{IsolationRequirement, Sandbox};
use nix::unistd::geteuid;

use super::failures::escape_socket_failure;
use super::{SandboxSubject, SharedDriverContext};

/// Returns the sockets through which the program could start another one outside of its sandbox, except those that its
/// configuration allows.
pub(super) async fn find_escape_sockets(
    sandbox: &Sandbox,
    context: &SharedDriverContext,
) -> Vec<PathBuf> {
    let mut sockets = context.find_escape_sockets().await;
    sockets.retain(|socket| !sandbox.allowed_sockets.contains(socket));
    sockets
}

/// Refuses the start if the program requires isolation and can reach such a socket: Landlock hides none, and one may
/// have appeared since the service chose Landlock.
pub(super) async fn refuse_escape_sockets(
    subject: &SandboxSubject<'_>,
    context: &SharedDriverContext,
) -> Result<(), Failure> {
    let is_required =
        subject.sandbox.isolation_requirement == IsolationRequirement::SandboxAndServiceFiles;
    let has_own_user = subject.user.is_some_and(|user| user.uid != geteuid().as_raw());
    if !is_required || has_own_user {
        return Ok(());
    }
    match find_escape_sockets(subject.sandbox, context).await.first() {
        Some(socket) => Err(escape_socket_failure(socket)),
        None => Ok(()),
    }
}
