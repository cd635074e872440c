//! A warden for the tests of this crate: the test program itself, in the part of one.

mod holding;
mod world;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use nix::sys::socket::{SockType, getsockopt, sockopt};
use nix::sys::wait::waitpid;
use nix::unistd::{ForkResult, fork};
use uuid::Uuid;

use super::wardens::{Origin, Terms, Wardens};

/// Not a test: what the process does that [`wardens`] starts. The harness has a thread of its own,
/// and a warden has one in all, so it is a child of that process.
#[test]
#[expect(unsafe_code, reason = "a fork of a process with threads")]
#[expect(clippy::exit, clippy::disallowed_methods, reason = "the harness must not say a word")]
fn process() {
    if !matches!(getsockopt(&std::io::stdin(), sockopt::SockType), Ok(SockType::SeqPacket)) {
        return; // Nobody has started this as a warden.
    }
    // SAFETY: the one other thread waits for this test, and holds nothing that the child needs.
    match unsafe { fork() }.unwrap() {
        ForkResult::Parent { child } => _ = waitpid(child, None),
        ForkResult::Child => {
            super::process::guard().unwrap();
            super::process::serve().unwrap();
        }
    }
    std::process::exit(0);
}

/// No wait of these tests is longer.
const WAIT: Duration = Duration::from_secs(20);

/// Wardens of a data directory.
pub(crate) async fn wardens(runtime_dir: &Path, instance: Uuid) -> Arc<Wardens> {
    Wardens::start(terms(runtime_dir, instance, WAIT)).await.unwrap()
}

fn terms(runtime_dir: &Path, instance: Uuid, patience: Duration) -> Terms {
    let args = ["warden::tests::process", "--exact", "--nocapture"];
    let args = args.into_iter().map(Into::into).collect();
    let origin = Origin { program: "/proc/self/exe".into(), args };
    Terms { origin, runtime_dir: runtime_dir.to_owned(), instance, patience }
}
