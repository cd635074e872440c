//! Assembles the order with which a process holder starts a program.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

use algonius_actors::model::program::User;
use uuid::Uuid;

use super::program::{Program, meta};
use crate::output::memory_account::MemoryAccount;
use crate::output::prepare::{Streams, sealed_file, streams};
use crate::process::process_tag::Label;
use crate::protocol::frame::{Guard, HolderOrder, LONGEST, LaunchTerms, Spec};
use crate::{Launch, marks};

/// Prepared launch.
pub(crate) struct Start {
    pub(crate) program: Arc<Program>,
    pub(crate) order: HolderOrder,
    /// Descriptors in the order that the frame defines.
    pub(crate) fds: Vec<Arc<OwnedFd>>,
    /// Supervisor's end of standard input, if that stays open.
    pub(crate) feed: Option<OwnedFd>,
}

/// Creates the resources of the program. The program enters its control group through `entrance`.
///
/// # Errors
/// Fails if the process may not open more files, or memory runs out.
pub(crate) fn start(
    launch: Launch,
    (entrance, account): (Option<OwnedFd>, MemoryAccount),
    instance: Uuid,
    slot: u64,
) -> io::Result<Start> {
    let Streams { stdin, stdout, stderr, ours, feed, journaled } = streams(&launch.stdin)?;
    let (execution, stamp) = (launch.execution, launch.stamp);
    let terms = LaunchTerms {
        slot,
        label: Label::of(instance, execution, stamp).0,
        meta: meta(execution, stamp, launch.scratch),
        cap: launch.cap,
        dies_alone: launch.dies_alone,
    };
    let mut fds: Vec<_> = [stdin, stdout, stderr].into_iter().map(Arc::new).collect();
    fds.extend(ours.iter().map(|ends| Arc::clone(&ends.pipe)));
    fds.extend(ours.iter().map(|ends| Arc::clone(&ends.memory)));
    let guard = Guard {
        is_confined: launch.ruleset.is_some(),
        is_wrapped: launch.wrapper.is_some(),
        is_grouped: entrance.is_some(),
        is_fed: journaled.is_some(),
    };
    let spec = spec(&launch, instance);
    fds.extend(launch.ruleset.into_iter().chain(entrance.map(Arc::new)));
    let input = journaled.iter().flat_map(|ends| [&ends.pipe, &ends.journal]);
    fds.extend(input.map(Arc::clone));
    let encoded = spec.encode();
    let spec = if encoded.len() <= LONGEST {
        Some(spec)
    } else {
        fds.push(Arc::new(sealed_file(&encoded)?));
        None
    };
    let program = Arc::new(Program::new(terms.clone(), ours, account).fed(journaled));
    Ok(Start { program, order: HolderOrder::Launch { terms, spec, guard }, fds, feed })
}

fn spec(launch: &Launch, instance: Uuid) -> Spec {
    let bytes = |text: &OsStr| text.as_bytes().to_vec();
    let inner = bytes(launch.program.as_os_str());
    let args = launch.args.iter().map(|arg| arg.clone().into_bytes());
    let args = std::iter::once(inner).chain(args);
    // A wrapper has a name too, and `--` marks the start of the program's own arguments.
    let wrapper = launch.wrapper.iter().flat_map(|wrapper| {
        let words = wrapper.args.iter().map(OsString::as_os_str).chain([OsStr::new("--")]);
        std::iter::once(wrapper.program.as_os_str()).chain(words).map(bytes)
    });
    let first = launch.wrapper.as_ref().map_or(&launch.program, |wrapper| &wrapper.program);
    let marks = marks(instance, launch.execution, launch.stamp);
    let marks =
        marks.into_iter().map(|(name, value)| [name.as_bytes(), value.as_bytes()].join(&b'='));
    let env =
        launch.env.iter().map(|(name, value)| [name.as_bytes(), value.as_bytes()].join(&b'='));
    Spec {
        args: wrapper.chain(args).collect(),
        env: env.chain(marks).collect(),
        program: bytes(first.as_os_str()),
        working_dir: launch.working_dir.as_os_str().as_bytes().to_vec(),
        limits: launch.limits.clone(),
        rights: launch.rights,
        user: launch.user.map(|User { uid, gid }| (uid, gid)),
    }
}
