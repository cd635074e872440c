//! Network that a confined program may use.

/// Network of a program in a domain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum NetworkAccess {
    /// Every network.
    #[default]
    Full,
    /// A network namespace without devices. Sockets that ignore namespaces, such as those of virtual machines, are
    /// refused.
    EmptyNamespace,
    /// No network: all sockets are refused, except Unix sockets and the list of network devices.
    Refused,
}

impl NetworkAccess {
    /// Returns the number in a frame.
    pub(crate) const fn frame_code(self) -> u64 {
        match self {
            Self::Full => 0,
            Self::EmptyNamespace => 1,
            Self::Refused => 2,
        }
    }

    /// Returns the access with this number; a number of a later version refuses the network.
    pub(crate) const fn from_frame_code(number: u64) -> Self {
        match number {
            0 => Self::Full,
            1 => Self::EmptyNamespace,
            _ => Self::Refused,
        }
    }
}
