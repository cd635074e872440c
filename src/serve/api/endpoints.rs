//! The table of operations: every path of the service that is not one of A2A.

mod admin;
mod agents;
mod executions;
mod interactions;
mod quota;
mod schedules;
mod service;

use super::endpoint::ApiEndpoint;

/// Tags of operations with their descriptions.
pub(super) const TAGS: &[(&str, &str)] = &[
    ("agents", "Agents: definition, health, queue and slots."),
    ("executions", "Executions: requests to agents, with their events and outcomes."),
    ("interactions", "Interactions: questions of agents to people, and their answers."),
    ("schedules", "Schedules: requests to agents at set times."),
    ("quota", "Accounts of model providers, and whether each can be used."),
    ("tokens", "Tokens and configuration, for administrators."),
    ("service", "Health, metrics and the description of this API."),
];

/// All operations.
pub(super) fn operations() -> Vec<ApiEndpoint> {
    let groups = [
        ("agents", agents::operations()),
        ("executions", executions::operations()),
        ("interactions", interactions::operations()),
        ("schedules", schedules::operations()),
        ("quota", quota::operations()),
        ("tokens", admin::operations()),
        ("service", service::operations()),
    ];
    let with_tag = |(tag, operations): (&'static str, Vec<ApiEndpoint>)| {
        operations.into_iter().map(move |operation| operation.with_tag(tag))
    };
    groups.into_iter().flat_map(with_tag).collect()
}
