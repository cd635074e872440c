//! Soft limits of a process. The service raises its own ones, because a small limit of a shell would end it or stop its
//! work; its programs get the inherited ones.

use std::ffi::OsString;
use std::sync::OnceLock;

use nix::libc::RLIM_INFINITY;
use nix::sys::resource::{Resource, getrlimit, rlim_t, setrlimit};

/// Usual soft limit of the stack. Without a limit the kernel would arrange the memory of programs differently.
const STACK_BYTES: rlim_t = 8 << 20;

/// Resources that the service itself needs, each with the name of its limit and the value that suffices.
const RAISED_RESOURCES: [(Resource, &str, rlim_t); 7] = [
    (Resource::RLIMIT_NOFILE, "NOFILE", RLIM_INFINITY),
    (Resource::RLIMIT_NPROC, "NPROC", RLIM_INFINITY),
    (Resource::RLIMIT_FSIZE, "FSIZE", RLIM_INFINITY),
    (Resource::RLIMIT_CPU, "CPU", RLIM_INFINITY),
    (Resource::RLIMIT_AS, "AS", RLIM_INFINITY),
    (Resource::RLIMIT_DATA, "DATA", RLIM_INFINITY),
    (Resource::RLIMIT_STACK, "STACK", STACK_BYTES),
];

/// Soft limits that this process inherited and has raised.
static INHERITED_SOFT_LIMITS: OnceLock<Vec<SoftLimit>> = OnceLock::new();

/// Soft limit of a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SoftLimit {
    pub(crate) resource: Resource,
    pub(crate) value: rlim_t,
}

/// Raises the soft limits of this process as far as its hard limits permit.
pub(super) fn raise() {
    let raised = RAISED_RESOURCES.into_iter().filter_map(|(resource, _, sufficient)| {
        let (soft, hard) = getrlimit(resource).ok()?;
        let target = hard.min(sufficient);
        let is_raised = soft < target && setrlimit(resource, target, hard).is_ok();
        is_raised.then_some(SoftLimit { resource, value: soft })
    });
    // A second call finds nothing to raise, and the first one knows what was inherited.
    _ = INHERITED_SOFT_LIMITS.set(raised.collect());
}

/// Returns the soft limits that this process has raised, as arguments for its process holder.
pub(crate) fn holder_args() -> impl Iterator<Item = OsString> {
    let inherited = INHERITED_SOFT_LIMITS.get().map_or(&[][..], Vec::as_slice);
    inherited.iter().filter_map(|limit| {
        let (_, name, _) = RAISED_RESOURCES.iter().find(|it| it.0 == limit.resource)?;
        Some(format!("{name}={}", limit.value).into())
    })
}

/// Returns the soft limits of programs: those in the arguments of a process holder, and those that this process has
/// raised itself. An unknown argument is of a later version and is ignored.
pub(crate) fn resolve_program_limits(args: impl Iterator<Item = OsString>) -> Vec<SoftLimit> {
    let parse = |arg: OsString| {
        let (name, value) = arg.to_str()?.split_once('=')?;
        let (resource, _, _) = RAISED_RESOURCES.into_iter().find(|it| it.1 == name)?;
        Some(SoftLimit { resource, value: value.parse().ok()? })
    };
    let mut limits: Vec<_> = args.filter_map(parse).collect();
    for own in INHERITED_SOFT_LIMITS.get().into_iter().flatten() {
        if !limits.iter().any(|limit| limit.resource == own.resource) {
            limits.push(*own);
        }
    }
    limits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_of_a_process_holder_name_soft_limits() {
        let args = ["CPU=90", "NOFILE=1024", "LATER=7", "STACK=much", "AS"].map(OsString::from);
        let limits = resolve_program_limits(args.into_iter());
        let expected = [(Resource::RLIMIT_CPU, 90), (Resource::RLIMIT_NOFILE, 1024)]
            .map(|(resource, value)| SoftLimit { resource, value });
        assert_eq!(limits, expected);
    }
}
