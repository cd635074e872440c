//! Failures of sandboxes, and the note on what a sandbox may have refused.

use std::io;
use std::path::Path;

use algonius_actors::decide::classify::success_evaluation::{file_write_failure, spawn_failure};
use algonius_actors::model::agent::Access;
use algonius_actors::model::code::Code;
use algonius_actors::model::failure::Failure;
use algonius_actors::model::host::sandbox::Sandbox;
use algonius_warden::confinement::bubblewrap::ViewError;
use nix::errno::Errno;

/// Clause about files of the note on a refusal.
const FILE_RESTRICTION_CLAUSE: &str = "its sandbox lets it change only its own folder, its temporary folder, shared memory if \
     `sandbox.shared_memory` permits it, and what `sandbox.writable` names, and nothing that `sandbox.protected` names; \
     it does not let it read the service's own files";

/// Reason why a program that requires isolation does not start.
const ESCAPE_SOCKET_MESSAGE: &str = "it requires isolation (`sandbox.required`), and a socket is reachable through which \
     it could start programs outside of its sandbox; the log names the socket";

/// Clause about the network of the note on a refusal.
const NETWORK_RESTRICTION_CLAUSE: &str = "its sandbox lets it use no network (`sandbox.network`)";

/// Returns the note on an attempt that failed and complains of a refusal, of this path if it names one.
pub(in crate::drivers::program) fn access_denial_note(
    access: Access,
    sandbox: &Sandbox,
    path: Option<&str>,
) -> String {
    let guards_files = sandbox.restricts_writes(access) || sandbox.needs_bubblewrap();
    let files = guards_files.then_some(FILE_RESTRICTION_CLAUSE);
    let network = (!sandbox.allows_network).then_some(NETWORK_RESTRICTION_CLAUSE);
    let clauses: Vec<_> = files.into_iter().chain(network).collect();
    let path = path.map(|path| format!(" of `{path}`")).unwrap_or_default();
    format!("its error output complains of a refusal{path}: {}", clauses.join("; "))
}

/// Returns the failure of a program whose sandbox could not be prepared.
pub(super) fn sandbox_failure(error: &ViewError) -> Failure {
    let (ViewError::Missing { path }
    | ViewError::MutableLink { path }
    | ViewError::ReplacedByLink { path }) = error
    else {
        tracing::error!(%error, "failed to create sandbox of an execution");
        return match error {
            ViewError::HiddenWorkspace | ViewError::ServiceFolder => {
                Failure::new(Code::NotStarted, error.to_string())
            }
            ViewError::System(error) => system_failure(error),
            _ => setup_failure(),
        };
    };
    tracing::error!(%error, path = %path.display(), "failed to create sandbox of an execution");
    Failure::new(Code::NotStarted, error.to_string())
}

/// Returns the failure of a program whose sandbox the system refused. A lack of resources may pass.
fn system_failure(error: &io::Error) -> Failure {
    let lacks_resources = |errno| spawn_failure(errno).code == Code::NoResources;
    match error.raw_os_error() {
        Some(errno) if [Errno::ENOSPC, Errno::EDQUOT].iter().any(|full| *full as i32 == errno) => {
            file_write_failure(Some(errno))
        }
        Some(errno) if lacks_resources(errno) => spawn_failure(errno),
        _ => setup_failure(),
    }
}

/// Returns the failure of a program that requires isolation, while this socket offers a way around it.
pub(super) fn escape_socket_failure(socket: &Path) -> Failure {
    let socket = socket.display();
    tracing::error!(%socket, "refused to start a program that could start others outside of its sandbox");
    Failure::new(Code::NotStarted, ESCAPE_SOCKET_MESSAGE)
}

/// Returns the failure of a program whose sandbox could not be made.
pub(in crate::drivers::program) fn setup_failure() -> Failure {
    Failure::new(Code::NotStarted, "its sandbox could not be created")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lack_of_resources_is_no_fault_of_the_program() {
        for (errno, expected) in [
            (Errno::EMFILE, Code::NoResources),
            (Errno::ENFILE, Code::NoResources),
            (Errno::ENOMEM, Code::NoResources),
            (Errno::ENOSPC, Code::NoResources),
            (Errno::EDQUOT, Code::NoResources),
            (Errno::EACCES, Code::NotStarted),
            (Errno::E2BIG, Code::NotStarted),
        ] {
            let error = ViewError::from(io::Error::from(errno));
            assert_eq!(sandbox_failure(&error).code, expected, "{errno}");
        }
    }
}
