//! The table of operations: every path of the service that is not one of A2A.

mod agents;
mod executions;
mod schedules;
mod service;
mod tokens;

use super::operation::Operation;

/// What operations are about.
pub(super) const TAGS: &[(&str, &str)] = &[
    ("agents", "Agents: what they are, how they are, how their slots are used."),
    ("executions", "Executions: what agents were asked, and what became of it."),
    ("schedules", "Schedules: what agents are asked at set times."),
    ("tokens", "Tokens and the configuration, for administrators."),
    ("service", "The service itself."),
];

/// Every operation.
pub(super) fn operations() -> Vec<Operation> {
    let all = [
        ("agents", agents::operations()),
        ("executions", executions::operations()),
        ("schedules", schedules::operations()),
        ("tokens", tokens::operations()),
        ("service", service::operations()),
    ];
    let tagged = |(tag, operations): (&'static str, Vec<Operation>)| {
        operations.into_iter().map(move |operation| operation.about(tag))
    };
    all.into_iter().flat_map(tagged).collect()
}
