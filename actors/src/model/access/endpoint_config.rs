//! Endpoint settings of an agent: versions, bindings, operations and credentials.

use std::time::Duration;

/// Version of the A2A protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ProtocolVersion {
    /// Version 0.3.
    V0_3,
    /// Version 1.0.
    V1_0,
}

impl ProtocolVersion {
    /// Every version, the older one first.
    pub const ALL: &[Self] = &[Self::V0_3, Self::V1_0];

    /// Returns the name in the configuration and in `A2A-Version`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::V0_3 => "0.3",
            Self::V1_0 => "1.0",
        }
    }

    /// Parses the name.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|version| version.as_str() == word)
    }
}

/// Protocol binding of calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Binding {
    /// JSON-RPC 2.0 over HTTP.
    JsonRpc,
    /// REST resources over HTTP.
    HttpJson,
    /// gRPC.
    Grpc,
}

impl Binding {
    /// Every binding, the preferred one first.
    pub const ALL: &[Self] = &[Self::JsonRpc, Self::HttpJson, Self::Grpc];

    /// Returns the name in the configuration.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::JsonRpc => "jsonrpc",
            Self::HttpJson => "http+json",
            Self::Grpc => "grpc",
        }
    }
}

/// Operation that a caller can request from an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ProtocolOperation {
    /// Send a message, and wait for the result or receive it by push.
    Send,
    /// Send a message and stream the result.
    Stream,
    /// Get a task.
    Get,
    /// List tasks.
    List,
    /// Cancel a task.
    Cancel,
    /// Subscribe to a task.
    Subscribe,
    /// Create, read or delete the push targets of a task.
    Push,
    /// Get the card for authenticated callers.
    ExtendedCard,
}

impl ProtocolOperation {
    /// Every operation.
    pub const ALL: &[Self] = &[
        Self::Send,
        Self::Stream,
        Self::Get,
        Self::List,
        Self::Cancel,
        Self::Subscribe,
        Self::Push,
        Self::ExtendedCard,
    ];

    /// Returns the name in the configuration.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Send => "send",
            Self::Stream => "stream",
            Self::Get => "get",
            Self::List => "list",
            Self::Cancel => "cancel",
            Self::Subscribe => "subscribe",
            Self::Push => "push",
            Self::ExtendedCard => "extended_card",
        }
    }
}

/// Authentication method for callers of one agent. Tokens of the service are valid for every agent.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum CallerAuth {
    /// Token in `Authorization: Bearer`.
    #[default]
    Bearer,
    /// Additionally an API key in the header of this name, in lower case.
    ApiKeyHeader(String),
    /// No authentication.
    NoAuth,
}

/// Rate limit of the calls to an agent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RateLimit {
    /// Sustained calls per second.
    pub per_second: f64,
    /// Burst: calls at once after a pause.
    pub burst: u32,
}

/// Lockout of addresses that send wrong credentials.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LockoutSpec {
    /// Number of failures that block the address.
    pub max_failures: u32,
    /// Time window in which failures are counted.
    pub window: Duration,
    /// Duration of the block.
    pub block_duration: Duration,
}

impl Default for LockoutSpec {
    /// Blocks for 15 minutes after five failures in ten minutes.
    fn default() -> Self {
        let minutes = |count: u64| Duration::from_secs(60 * count);
        Self { max_failures: 5, window: minutes(10), block_duration: minutes(15) }
    }
}

/// Organization that is responsible for an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderOrganization {
    /// Name of the organization.
    pub organization: String,
    /// Web site of the organization.
    pub url: String,
}

/// Details of a card for people and directories. No call depends on them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CardDetails {
    /// Organization that is responsible for the agent.
    pub provider: Option<ProviderOrganization>,
    /// Address of the agent's documentation.
    pub documentation_url: Option<String>,
    /// Address of the agent's icon.
    pub icon_url: Option<String>,
}

/// Endpoint settings of an agent: what callers can reach, and how.
#[derive(Debug, Clone, PartialEq)]
pub struct EndpointConfig {
    /// Supported protocol versions; never empty.
    pub versions: Vec<ProtocolVersion>,
    /// Supported bindings; never empty, the preferred one first.
    pub bindings: Vec<Binding>,
    /// Bindings that the card lists; never empty.
    pub card_bindings: Vec<Binding>,
    /// Details of the card.
    pub card_details: CardDetails,
    /// Additional path prefix of the agent beside `/agents/<id>`, without a trailing slash.
    pub base_path: Option<String>,
    /// Operations that callers may request. Without [`ProtocolOperation::Stream`] the agent does not stream, and so on.
    pub operations: Vec<ProtocolOperation>,
    /// Media types that the agent reads; `*/*` is any.
    pub input_modes: Vec<String>,
    /// Media types that the agent writes.
    pub output_modes: Vec<String>,
    /// Authentication method of callers.
    pub caller_auth: CallerAuth,
    /// True if callers without credentials are accepted as the anonymous principal. Only on loopback.
    pub allows_anonymous: bool,
    /// Rate limit of calls; `None` is unlimited.
    pub rate_limit: Option<RateLimit>,
    /// Meaning of a message id that was used before.
    pub message_id_policy: MessageIdPolicy,
    /// True if a caller that waits for the answer of its own request receives the raw text of the agent. All text that
    /// is stored, streamed, logged, pushed or fetched later is redacted nevertheless.
    pub returns_raw_answers: bool,
    /// True if streams contain output while the agent produces it, and not only at the end.
    pub stream_output: bool,
}

/// Meaning of a message id that was used before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MessageIdPolicy {
    /// The id identifies the request: the same body returns the existing task, and another body is rejected.
    #[default]
    Unique,
    /// The id has no meaning: every message is a new request and runs again.
    Reusable,
}

impl MessageIdPolicy {
    /// Every meaning.
    pub const ALL: &[Self] = &[Self::Unique, Self::Reusable];

    /// Returns the name in the configuration.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Unique => "unique",
            Self::Reusable => "reused",
        }
    }
}

impl EndpointConfig {
    /// Returns true if callers may request the operation.
    #[must_use]
    pub fn offers(&self, operation: ProtocolOperation) -> bool {
        self.operations.contains(&operation)
    }
}

impl Default for EndpointConfig {
    /// Enables everything: text and data as input, text as output, a bearer token, and no rate limit.
    fn default() -> Self {
        let texts = |list: &[&str]| list.iter().map(|&text| text.to_owned()).collect();
        Self {
            versions: ProtocolVersion::ALL.to_vec(),
            bindings: Binding::ALL.to_vec(),
            card_bindings: Binding::ALL.to_vec(),
            card_details: CardDetails::default(),
            base_path: None,
            operations: ProtocolOperation::ALL.to_vec(),
            input_modes: texts(&["text/plain", "application/json"]),
            output_modes: texts(&["text/plain"]),
            caller_auth: CallerAuth::default(),
            allows_anonymous: false,
            rate_limit: None,
            message_id_policy: MessageIdPolicy::default(),
            returns_raw_answers: false,
            stream_output: true,
        }
    }
}
