//! A warden for the tests of this crate: the test program itself, in the part of one.

mod grouping;
mod holding;
mod world;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use nix::sys::socket::{SockType, getsockopt, sockopt};
use nix::sys::wait::waitpid;
use nix::unistd::{ForkResult, fork};
use uuid::Uuid;

use super::group::{Groups, Place};
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

/// The same, with control groups.
pub(crate) async fn grouped(runtime_dir: &Path, instance: Uuid, place: Place) -> Arc<Wardens> {
    let groups = Groups::open(Some(place), instance, true).map(Arc::new);
    Wardens::start(Terms { groups, ..terms(runtime_dir, instance, WAIT) }).await.unwrap()
}

/// Lets a folder play a control group that was delegated to us, with every controller, in which these
/// processes are. Its files are plain: what a kernel would make of them does not happen.
pub(crate) fn plays_a_group(folder: &Path, processes: &[u32]) -> Place {
    let processes: String = processes.iter().map(|pid| format!("{pid}\n")).collect();
    for (name, text) in [
        ("cgroup.type", "domain\n"),
        ("cgroup.controllers", "cpuset cpu io memory pids\n"),
        ("cgroup.subtree_control", "cpu\n"),
        ("cgroup.procs", &processes),
    ] {
        std::fs::write(folder.join(name), text).unwrap();
    }
    Place::at(folder)
}

fn terms(runtime_dir: &Path, instance: Uuid, patience: Duration) -> Terms {
    let args = ["warden::tests::process", "--exact", "--nocapture"];
    let args = args.into_iter().map(Into::into).collect();
    let origin = Origin { program: "/proc/self/exe".into(), args };
    Terms { origin, runtime_dir: runtime_dir.to_owned(), instance, patience, groups: None }
}
