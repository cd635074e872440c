//! What a program sees of the world: an allow-list, its own variables, and who it works for.

use std::collections::BTreeMap;
use std::env;
use std::ffi::OsString;

use algonius_actors::model::program::ProgramSpec;
use algonius_actors::model::trace::Trace;
use algonius_actors::ports::driver::Work;

/// Variables of the service that every program may see. Whatever else the service was given,
/// tokens above all, stays with the service.
const ALLOWED: &[&str] =
    &["PATH", "HOME", "LANG", "LC_ALL", "TERM", "TZ", "USER", "LOGNAME", "SHELL", "TMPDIR"];

/// The allowed part of the service's environment.
pub(super) type Inherited = BTreeMap<OsString, OsString>;

/// Reads the allowed part of this process's environment.
pub(super) fn inherited() -> Inherited {
    let allowed = ALLOWED.iter().filter_map(|name| Some(((*name).into(), env::var_os(name)?)));
    allowed.collect()
}

/// The environment of one attempt, but for the marks that the warden adds. Configured variables
/// stand over inherited ones, the caller's choice over both, and the names of the work over all.
pub(super) fn environment(
    program: &ProgramSpec,
    inherited: &Inherited,
    work: &Work,
) -> BTreeMap<OsString, OsString> {
    let configured = program.env.iter().map(|(name, variable)| (name, variable.value.clone()));
    let own = [
        ("A2A_MESSAGE_ID", work.request.message.0.clone()),
        ("A2A_TASK_ID", work.execution.to_string()),
        ("A2A_CONTEXT_ID", work.request.context.0.clone()),
        ("ALGONIUS_AGENT_ID", work.spec.id.to_string()),
    ];
    let trace = Trace::of_attempt(work.request.trace.as_ref(), work.execution, work.stamp);
    let traced = [("TRACEPARENT", trace.traceparent()), ("TRACESTATE", trace.state)];
    let chosen = work.request.overrides().env;
    let mut environment = inherited.clone();
    environment.extend(configured.map(|(name, value)| (name.into(), value.into())));
    environment.extend(chosen.into_iter().map(|(name, value)| (name.into(), value.into())));
    environment.extend(own.map(|(name, value)| (name.into(), value.into())));
    environment.extend(
        traced
            .into_iter()
            .filter(|(_, value)| !value.is_empty())
            .map(|(name, value)| (name.into(), value.into())),
    );
    environment
}
