//! Puts together what a warden needs to start a program.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

use uuid::Uuid;

use super::frame::{Guard, LONGEST, Order, Spec, Terms};
use super::label::Label;
use super::prepare::{Streams, letter, streams};
use super::program::{Program, meta};
use super::{Launch, marks};

/// A launch that is ready.
pub(super) struct Start {
    pub(super) program: Arc<Program>,
    pub(super) order: Order,
    /// In the order in which the frame says.
    pub(super) fds: Vec<Arc<OwnedFd>>,
    /// Our end of its standard input, where that stays open.
    pub(super) feed: Option<OwnedFd>,
}

/// Makes everything that the program will find. It goes through `entrance` into its control group.
///
/// # Errors
/// When the process may not open more, or memory runs out.
pub(super) fn begin(
    launch: Launch,
    entrance: Option<OwnedFd>,
    instance: Uuid,
    slot: u64,
) -> io::Result<Start> {
    let Streams { stdin, stdout, stderr, ours, feed } = streams(&launch.stdin)?;
    let (execution, stamp) = (launch.execution, launch.stamp);
    let terms = Terms {
        slot,
        label: Label::of(instance, execution, stamp).0,
        meta: meta(execution, stamp),
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
    };
    let spec = spec(&launch, instance);
    fds.extend(launch.ruleset.into_iter().chain(entrance).map(Arc::new));
    let encoded = spec.encode();
    let spec = if encoded.len() <= LONGEST {
        Some(spec)
    } else {
        fds.push(Arc::new(letter(&encoded)?));
        None
    };
    let program = Arc::new(Program::new(terms.clone(), ours));
    Ok(Start { program, order: Order::Launch { terms, spec, guard }, fds, feed })
}

fn spec(launch: &Launch, instance: Uuid) -> Spec {
    let bytes = |text: &OsStr| text.as_bytes().to_vec();
    let inner = bytes(launch.program.as_os_str());
    let args = launch.args.iter().map(|arg| arg.clone().into_bytes());
    let args = std::iter::once(inner).chain(args);
    // A wrapper has a name too, and is told where the words of its program begin.
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
    }
}
