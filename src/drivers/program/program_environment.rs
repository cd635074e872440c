//! Environment variables of a program: an allow-list, its own variables, and the ids of its work.

use std::collections::BTreeMap;
use std::env;
use std::ffi::OsString;

use algonius_actors::driver::AttemptWork;
use algonius_actors::model::execution::trace::TraceContext;
use algonius_actors::model::program::ProgramSpec;

/// Variables of the service that every program may see. All other variables of the service, tokens above all, stay with
/// the service.
const INHERITED_NAMES: &[&str] =
    &["PATH", "HOME", "LANG", "LC_ALL", "TERM", "TZ", "USER", "LOGNAME", "SHELL", "TMPDIR"];

/// Allowed part of the service's environment.
pub(super) type InheritedVariables = BTreeMap<OsString, OsString>;

/// Reads the allowed part of this process's environment.
pub(super) fn inherited_variables() -> InheritedVariables {
    let allowed =
        INHERITED_NAMES.iter().filter_map(|name| Some(((*name).into(), env::var_os(name)?)));
    allowed.collect()
}

/// Returns the environment of one attempt without the labels that the launcher adds. Configured variables override
/// inherited ones, the caller's choice overrides both, and the ids of the work override all.
pub(super) fn attempt_environment(
    program: &ProgramSpec,
    inherited: &InheritedVariables,
    work: &AttemptWork,
) -> BTreeMap<OsString, OsString> {
    let configured = program.env.iter().map(|(name, variable)| (name, variable.value.clone()));
    let id_variables = [
        ("A2A_MESSAGE_ID", work.request.message_id.0.clone()),
        ("A2A_TASK_ID", work.execution.to_string()),
        ("A2A_CONTEXT_ID", work.request.context.0.clone()),
        ("ALGONIUS_AGENT_ID", work.spec.id.to_string()),
    ];
    let trace = TraceContext::for_attempt(
        work.request.origin.trace.as_ref(),
        work.execution,
        work.attempt_id,
    );
    let trace_variables = [("TRACEPARENT", trace.traceparent()), ("TRACESTATE", trace.tracestate)];
    let override_variables = work.request.effective_overrides().env;
    let mut environment = inherited.clone();
    environment.extend(configured.map(|(name, value)| (name.into(), value.into())));
    environment
        .extend(override_variables.into_iter().map(|(name, value)| (name.into(), value.into())));
    // The ids come late, so that neither the configuration nor a caller can replace them.
    environment.extend(id_variables.map(|(name, value)| (name.into(), value.into())));
    environment.extend(
        trace_variables
            .into_iter()
            .filter(|(_, value)| !value.is_empty())
            .map(|(name, value)| (name.into(), value.into())),
    );
    environment
}
