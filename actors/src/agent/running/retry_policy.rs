//! Retry and backoff policy of an agent's executions. The agent's actor decides it when an execution starts; the
//! execution applies it, attempt by attempt, with [`decide::execution`](crate::decide::execution).

use std::time::Duration;

use crate::decide::execution::ExecutionPolicy;
use crate::execution::StartingPoint;
use crate::model::agent::AgentSpec;

/// Returns the policy of an execution with this definition and starting point. Deferrals and overloads of an earlier
/// process count, so that a restart of the service does not begin the backoff anew.
pub(super) fn execution_policy(
    spec: &AgentSpec,
    starting_point: &StartingPoint,
) -> ExecutionPolicy {
    let mut policy = ExecutionPolicy::of(spec);
    (policy.deferrals, policy.overloads) = (starting_point.deferrals, starting_point.overloads);
    if !starting_point.is_unredacted {
        // Without its input the execution can neither run again nor continue after a deferral.
        policy.retry.max = 0;
        policy.deferral.max_wait = Duration::ZERO;
    }
    policy
}
