//! Delivery of the files of a message to an agent.

/// Method by which an agent receives the files of a message: its parts with bytes or with an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FileDelivery {
    /// None: the agent rejects a message with a file.
    #[default]
    None,
    /// Files in the execution's own folder. The variable `ALGONIUS_FILES` and `{{ files }}` list them.
    ListInVariable,
    /// Same as [`Self::ListInVariable`]; the text of the message lists them too.
    ListInPrompt,
    /// Parts of the protocol between the service and the agent.
    AgentProtocol,
    /// Parts for other agents, which have deliveries of their own.
    Forward,
}

impl FileDelivery {
    /// Returns true if the service writes the files into the execution's own folder.
    #[must_use]
    pub const fn writes_files(self) -> bool {
        matches!(self, Self::ListInVariable | Self::ListInPrompt)
    }
}
