//! Fields of an agent card.

pub use algonius_actors::model::access::endpoint_config::{
    Binding, CardDetails, ProtocolVersion, ProviderOrganization,
};
pub use algonius_actors::model::agent::Skill;

/// Address and protocol by which callers can reach an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interface {
    /// Address of the interface.
    pub url: String,
    /// Protocol binding of the interface.
    pub binding: Binding,
    /// Protocol version of the interface.
    pub version: ProtocolVersion,
    /// Tenant that a request must name if the address does not identify the agent.
    pub tenant: Option<String>,
}

impl Interface {
    /// Returns the address as lists of 1.0 have it. Clients of 1.0 connect to host and port over gRPC, also for 0.3,
    /// whose own cards have a URL there.
    #[must_use]
    pub fn v1_interface_url(&self) -> &str {
        match (self.binding, self.url.split_once("://")) {
            (Binding::Grpc, Some((_, address))) => address,
            _ => &self.url,
        }
    }
}

/// Authentication scheme of an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CardSecurity {
    /// `Authorization: Bearer`.
    Bearer,
    /// API key in the header with this name.
    ApiKey(String),
    /// No authentication.
    NoAuthentication,
}

/// Optional features of the protocol that an agent offers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CardCapabilities {
    /// True if the agent streams events.
    pub streaming: bool,
    /// True if the agent sends push notifications.
    pub push_notifications: bool,
    /// True if authenticated callers get an extended card.
    pub has_extended_card: bool,
    /// Extensions that the agent offers: address, description, and true if callers must use the extension.
    pub extensions: Vec<(String, String, bool)>,
}

/// Content of an agent card.
#[derive(Debug, Clone, PartialEq)]
pub struct Card {
    /// Display name of the agent.
    pub name: String,
    /// Description of the agent.
    pub description: String,
    /// Version of the agent.
    pub version: String,
    /// Interfaces of the agent, the preferred one first.
    pub interfaces: Vec<Interface>,
    /// Optional features that the agent offers.
    pub capabilities: CardCapabilities,
    /// Media types that the agent reads.
    pub input_modes: Vec<String>,
    /// Media types that the agent writes.
    pub output_modes: Vec<String>,
    /// Skills of the agent.
    pub skills: Vec<Skill>,
    /// Provider and addresses.
    pub details: CardDetails,
    /// Authentication scheme of the agent.
    pub security: CardSecurity,
}
