//! Method names of each protocol version and the operation that an agent must offer for each method.

use algonius_actors::model::access::endpoint_config::ProtocolOperation;

/// Method of the protocol, independent of the protocol version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum A2aMethod {
    /// Sends a message and returns one answer.
    Send,
    /// Sends a message and streams the events of its task.
    Stream,
    /// Returns a task.
    Get,
    /// Lists tasks.
    List,
    /// Cancels a task.
    Cancel,
    /// Streams the events of an existing task.
    Subscribe,
    /// Registers a push configuration.
    PushSet,
    /// Returns a push configuration.
    PushGet,
    /// Lists the push configurations of a task.
    PushList,
    /// Deletes a push configuration.
    PushDelete,
    /// Returns the card for authenticated callers.
    ExtendedCard,
    /// Returns only the status of a task; an alias of older clients, unknown to the protocol.
    Status,
    /// Returns the public card; an alias of older clients, unknown to the protocol.
    Card,
}

/// Methods of 0.3, followed by four aliases of older clients.
const METHODS_0_3: &[(&str, A2aMethod)] = &[
    ("message/send", A2aMethod::Send),
    ("message/stream", A2aMethod::Stream),
    ("tasks/get", A2aMethod::Get),
    ("tasks/cancel", A2aMethod::Cancel),
    ("tasks/resubscribe", A2aMethod::Subscribe),
    ("tasks/pushNotificationConfig/set", A2aMethod::PushSet),
    ("tasks/pushNotificationConfig/get", A2aMethod::PushGet),
    ("tasks/pushNotificationConfig/list", A2aMethod::PushList),
    ("tasks/pushNotificationConfig/delete", A2aMethod::PushDelete),
    ("agent/getAuthenticatedExtendedCard", A2aMethod::ExtendedCard),
    ("task/get", A2aMethod::Get),
    ("task/status", A2aMethod::Status),
    ("task/cancel", A2aMethod::Cancel),
    ("agent/card", A2aMethod::Card),
];

/// Methods of 1.0.
const METHODS_1_0: &[(&str, A2aMethod)] = &[
    ("SendMessage", A2aMethod::Send),
    ("SendStreamingMessage", A2aMethod::Stream),
    ("GetTask", A2aMethod::Get),
    ("ListTasks", A2aMethod::List),
    ("CancelTask", A2aMethod::Cancel),
    ("SubscribeToTask", A2aMethod::Subscribe),
    ("CreateTaskPushNotificationConfig", A2aMethod::PushSet),
    ("GetTaskPushNotificationConfig", A2aMethod::PushGet),
    ("ListTaskPushNotificationConfigs", A2aMethod::PushList),
    ("DeleteTaskPushNotificationConfig", A2aMethod::PushDelete),
    ("GetExtendedAgentCard", A2aMethod::ExtendedCard),
];

impl A2aMethod {
    /// Returns the method with this name in 0.3, or with this one of the four aliases.
    #[must_use]
    pub fn from_name_0_3(method: &str) -> Option<Self> {
        find_method(METHODS_0_3, method)
    }

    /// Returns the method with this name in 1.0.
    #[must_use]
    pub fn from_name_1_0(method: &str) -> Option<Self> {
        find_method(METHODS_1_0, method)
    }

    /// Returns the operation that the agent must offer for the method. The public card needs none: it is always
    /// available.
    #[must_use]
    pub const fn operation(self) -> Option<ProtocolOperation> {
        match self {
            Self::Send => Some(ProtocolOperation::Send),
            Self::Stream => Some(ProtocolOperation::Stream),
            Self::Get | Self::Status => Some(ProtocolOperation::Get),
            Self::List => Some(ProtocolOperation::List),
            Self::Cancel => Some(ProtocolOperation::Cancel),
            Self::Subscribe => Some(ProtocolOperation::Subscribe),
            Self::PushSet | Self::PushGet | Self::PushList | Self::PushDelete => {
                Some(ProtocolOperation::Push)
            }
            Self::ExtendedCard => Some(ProtocolOperation::ExtendedCard),
            Self::Card => None,
        }
    }

    /// True if a stream answers the method.
    #[must_use]
    pub const fn is_streamed(self) -> bool {
        matches!(self, Self::Stream | Self::Subscribe)
    }
}

fn find_method(table: &[(&str, A2aMethod)], name: &str) -> Option<A2aMethod> {
    table.iter().find(|(known, _)| *known == name).map(|(_, method)| *method)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn method_names_are_unique_across_versions() {
        let mut names: Vec<_> =
            METHODS_0_3.iter().chain(METHODS_1_0).map(|(name, _)| *name).collect();
        names.sort_unstable();
        let count = names.len();
        names.dedup();
        assert_eq!(names.len(), count);
        assert_eq!(A2aMethod::from_name_1_0("message/send"), None);
        assert_eq!(A2aMethod::from_name_0_3("SendMessage"), None);
        assert_eq!(A2aMethod::from_name_0_3("tasks/list"), None);
    }
}
