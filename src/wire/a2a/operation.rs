//! Method names: what each version calls what can be asked for.

use Operation as Op;

/// What can be asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operation {
    /// Send a message and get one answer.
    Send,
    /// Send a message and follow what comes of it.
    Stream,
    /// Look a task up.
    Get,
    /// List tasks.
    List,
    /// Call a task off.
    Cancel,
    /// Follow a task.
    Subscribe,
    /// Register a push configuration.
    PushSet,
    /// Look a push configuration up.
    PushGet,
    /// List a task's push configurations.
    PushList,
    /// Remove a push configuration.
    PushDelete,
    /// The card for authenticated callers.
    ExtendedCard,
    /// Where a task is, and nothing else of it; an alias knows it, the protocol does not.
    Status,
    /// The public card; an alias knows it, the protocol does not.
    Card,
}

/// The methods of 0.3, then the four names of older clients.
const OF_0_3: &[(&str, Operation)] = &[
    ("message/send", Op::Send),
    ("message/stream", Op::Stream),
    ("tasks/get", Op::Get),
    ("tasks/cancel", Op::Cancel),
    ("tasks/resubscribe", Op::Subscribe),
    ("tasks/pushNotificationConfig/set", Op::PushSet),
    ("tasks/pushNotificationConfig/get", Op::PushGet),
    ("tasks/pushNotificationConfig/list", Op::PushList),
    ("tasks/pushNotificationConfig/delete", Op::PushDelete),
    ("agent/getAuthenticatedExtendedCard", Op::ExtendedCard),
    ("task/get", Op::Get),
    ("task/status", Op::Status),
    ("task/cancel", Op::Cancel),
    ("agent/card", Op::Card),
];

/// The methods of 1.0.
const OF_1_0: &[(&str, Operation)] = &[
    ("SendMessage", Op::Send),
    ("SendStreamingMessage", Op::Stream),
    ("GetTask", Op::Get),
    ("ListTasks", Op::List),
    ("CancelTask", Op::Cancel),
    ("SubscribeToTask", Op::Subscribe),
    ("CreateTaskPushNotificationConfig", Op::PushSet),
    ("GetTaskPushNotificationConfig", Op::PushGet),
    ("ListTaskPushNotificationConfigs", Op::PushList),
    ("DeleteTaskPushNotificationConfig", Op::PushDelete),
    ("GetExtendedAgentCard", Op::ExtendedCard),
];

impl Operation {
    /// The operation that 0.3 calls so, or one of the four aliases.
    #[must_use]
    pub fn of_0_3(method: &str) -> Option<Self> {
        named(OF_0_3, method)
    }

    /// The operation that 1.0 calls so.
    #[must_use]
    pub fn of_1_0(method: &str) -> Option<Self> {
        named(OF_1_0, method)
    }

    /// Whether it is answered with a stream.
    #[must_use]
    pub const fn is_streamed(self) -> bool {
        matches!(self, Self::Stream | Self::Subscribe)
    }
}

fn named(table: &[(&str, Operation)], method: &str) -> Option<Operation> {
    table.iter().find(|(name, _)| *name == method).map(|(_, operation)| *operation)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_method_is_known_to_both_versions_and_each_stands_once() {
        let mut names: Vec<_> = OF_0_3.iter().chain(OF_1_0).map(|(name, _)| *name).collect();
        names.sort_unstable();
        let count = names.len();
        names.dedup();
        assert_eq!(names.len(), count);
        assert_eq!(Operation::of_1_0("message/send"), None);
        assert_eq!(Operation::of_0_3("SendMessage"), None);
        assert_eq!(Operation::of_0_3("tasks/list"), None);
    }
}
