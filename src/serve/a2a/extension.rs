//! Protocol extensions that agents offer: on their cards and in responses to callers that use them.

use algonius_a2a::interaction::{HUMAN_IN_THE_LOOP_EXTENSION, INTERACTIONS_EXTENSION};
use algonius_a2a::{
    AGENT_KIND_EXTENSION, CURSOR_EXTENSION, ISOLATION_EXTENSION, OVERRIDES_EXTENSION,
    PARAMETERS_EXTENSION, STDERR_EXTENSION,
};
use algonius_actors::model::agent::{AgentKind, AgentSpec};
use algonius_actors::model::host::sandbox::Confinement;
use axum::http::HeaderValue;
use axum::response::Response;

/// Extensions of every agent that runs processes.
const COMMON_ENTRIES: [(&str, &str); 2] = [
    (
        CURSOR_EXTENSION,
        "Each event of a stream carries the cursor from which the stream can be resumed.",
    ),
    (
        STDERR_EXTENSION,
        "Streams contain the standard error of the agent's program while it is written.",
    ),
];

/// Extension of agents that allow overrides.
const OVERRIDES_ENTRY: (&str, &str) = (
    OVERRIDES_EXTENSION,
    "A folder to start in and variables of the environment, as far as the agent allows, in the \
     metadata of a message.",
);

/// Extensions of interactive agents, which ask before they act.
const INTERACTIVE_ENTRIES: [(&str, &str); 2] = [
    (
        INTERACTIONS_EXTENSION,
        "The open questions of the agent in the status of a task, and answers in the metadata of a message.",
    ),
    (HUMAN_IN_THE_LOOP_EXTENSION, "The same questions and answers in the form of kagent."),
];

/// URI of an extension, its description, and true if callers must use the extension.
type Extension = (String, String, bool);

/// Returns the extensions of an agent.
pub(in crate::serve) fn agent_extensions(spec: &AgentSpec) -> Vec<Extension> {
    let overrides_extension = (!spec.override_policy.forbids_folders_and_variables())
        .then(|| extension(&OVERRIDES_ENTRY));
    let common = common_extensions()
        .into_iter()
        .filter(|(uri, ..)| uri != STDERR_EXTENSION || has_processes(spec));
    let interaction_extensions =
        INTERACTIVE_ENTRIES.iter().filter(|_| is_interactive(spec)).map(extension);
    common
        .chain(parameters_extension(spec))
        .chain(overrides_extension)
        .chain(interaction_extensions)
        .chain([isolation_or_kind_extension(spec)])
        .collect()
}

/// Returns true if the agent is controlled by a protocol in which it can ask.
fn is_interactive(spec: &AgentSpec) -> bool {
    spec.program_worker().is_some_and(|program| program.permission_policy.is_some())
}

/// Returns the extensions of every agent.
pub(in crate::serve) fn common_extensions() -> Vec<Extension> {
    COMMON_ENTRIES.iter().map(extension).collect()
}

/// Returns the extension with the parameters that a caller may set; `None` if there are none.
fn parameters_extension(spec: &AgentSpec) -> Option<Extension> {
    let names = spec.override_policy.params.join(", ");
    let text = format!("Values for templates of the agent, in the metadata of a message: {names}.");
    (!names.is_empty()).then(|| (PARAMETERS_EXTENSION.to_owned(), text, false))
}

/// Returns true if the agent runs processes on this machine, which have a standard error.
fn has_processes(spec: &AgentSpec) -> bool {
    spec.confinement().is_some()
}

/// Returns the extension about what performs the work: its isolation, or the kind of an agent that runs nothing here.
fn isolation_or_kind_extension(spec: &AgentSpec) -> Extension {
    spec.confinement().map_or_else(|| kind_extension(spec.kind()), isolation_extension)
}

/// Returns the extension with the isolation level of the agent; the gaps of the isolation are for the operator only.
fn isolation_extension(confinement: &Confinement) -> Extension {
    let level = confinement.boundary.level.as_str();
    (
        ISOLATION_EXTENSION.to_owned(),
        format!("Isolation of the agent from its service: {level}."),
        false,
    )
}

/// Returns the extension with the kind of an agent that runs nothing on this machine.
fn kind_extension(kind: AgentKind) -> Extension {
    (AGENT_KIND_EXTENSION.to_owned(), format!("Kind of the agent: {}.", kind.as_str()), false)
}

fn extension((uri, text): &(&str, &str)) -> Extension {
    ((*uri).to_owned(), (*text).to_owned(), false)
}

/// Adds the extensions that are both requested and offered to a response.
pub(in crate::serve) fn add_extension_headers(
    response: &mut Response,
    requested: &[String],
    offered: &[Extension],
) {
    let is_requested = |uri: &&str| requested.iter().any(|requested| requested == uri);
    let used_uris = offered.iter().map(|(uri, ..)| uri.as_str()).filter(is_requested);
    let value = used_uris.collect::<Vec<_>>().join(", ");
    if let Ok(value) = HeaderValue::from_str(&value)
        && !value.is_empty()
    {
        // 1.0 and 0.3 name the header differently, and clients of both may ask at the same path.
        response.headers_mut().insert("a2a-extensions", value.clone());
        response.headers_mut().insert("x-a2a-extensions", value);
    }
}
