//! What of an agent others can reach, and how.

use std::time::Duration;

/// A version of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Version {
    /// 0.3.
    V0_3,
    /// 1.0.
    V1_0,
}

impl Version {
    /// Every version, the older first.
    pub const ALL: &[Self] = &[Self::V0_3, Self::V1_0];

    /// The word for it, in the configuration and in `A2A-Version`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::V0_3 => "0.3",
            Self::V1_0 => "1.0",
        }
    }

    /// Reads the word.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|version| version.as_str() == word)
    }
}

/// How calls travel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Binding {
    /// JSON-RPC 2.0 over HTTP.
    JsonRpc,
    /// Resources over HTTP.
    HttpJson,
    /// gRPC.
    Grpc,
}

impl Binding {
    /// Every binding, the preferred one first.
    pub const ALL: &[Self] = &[Self::JsonRpc, Self::HttpJson, Self::Grpc];

    /// The word for it in the configuration.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::JsonRpc => "jsonrpc",
            Self::HttpJson => "http+json",
            Self::Grpc => "grpc",
        }
    }
}

/// What a caller can ask an agent to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operation {
    /// Send a message and wait for, or be told of, what comes of it.
    Send,
    /// Send a message and follow what comes of it.
    Stream,
    /// Look one up.
    Get,
    /// List them.
    List,
    /// Call one off.
    Cancel,
    /// Follow one.
    Subscribe,
    /// Set, see or remove where changes are told.
    Push,
    /// See the card that is not for everybody.
    ExtendedCard,
}

impl Operation {
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

    /// The word for it in the configuration.
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

/// How callers of one agent prove who they are. The service's own tokens are good everywhere.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Credential {
    /// `Authorization: Bearer`.
    #[default]
    Bearer,
    /// Also by a key in the header of this name, in lower case.
    ApiKey(String),
    /// Not at all.
    Nothing,
}

/// Calls that an agent takes in a time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RateLimit {
    /// Calls a second in the long run.
    pub per_second: f64,
    /// Calls at once after a pause.
    pub burst: u32,
}

/// How many wrong credentials are borne from one address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LockoutSpec {
    /// The failure after which the address is blocked.
    pub failures: u32,
    /// Within how long.
    pub window: Duration,
    /// For how long.
    pub block: Duration,
}

impl Default for LockoutSpec {
    /// Five in ten minutes block for a quarter of an hour.
    fn default() -> Self {
        let minutes = |count: u64| Duration::from_secs(60 * count);
        Self { failures: 5, window: minutes(10), block: minutes(15) }
    }
}

/// What of an agent others can reach, and how.
#[derive(Debug, Clone, PartialEq)]
pub struct Exposure {
    /// Versions that are spoken; never empty.
    pub versions: Vec<Version>,
    /// Ways in; never empty, the preferred one first.
    pub bindings: Vec<Binding>,
    /// Another beginning of the agent's paths beside `/agents/<id>`; no slash at its end.
    pub base_path: Option<String>,
    /// What may be asked. Without [`Operation::Stream`] the agent does not stream, and so on.
    pub operations: Vec<Operation>,
    /// Media types that are read; `*/*` is any.
    pub input_modes: Vec<String>,
    /// Media types that are written.
    pub output_modes: Vec<String>,
    /// How callers prove who they are.
    pub credential: Credential,
    /// Whether a caller without credentials is let in as nobody in particular. Only on loopback.
    pub open: bool,
    /// Calls in a time; `None` is unlimited.
    pub rate_limit: Option<RateLimit>,
    /// What a message id that was used before means.
    pub message_ids: MessageIds,
    /// Whether who waits for the answer of its own request gets the text as the agent gave it.
    /// Whatever is stored, streamed, logged, pushed or looked up is masked all the same.
    pub raw: bool,
}

/// What a message id that was used before means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MessageIds {
    /// The same request, whose task is answered; with another body it is refused.
    #[default]
    Unique,
    /// Nothing: whatever its id, it is another message. What is sent again runs again.
    Reused,
}

impl MessageIds {
    /// Every rule.
    pub const ALL: &[Self] = &[Self::Unique, Self::Reused];

    /// The word for it, in the configuration.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Unique => "unique",
            Self::Reused => "reused",
        }
    }
}

impl Exposure {
    /// Whether an operation may be asked for.
    #[must_use]
    pub fn offers(&self, operation: Operation) -> bool {
        self.operations.contains(&operation)
    }
}

impl Default for Exposure {
    /// Everything on, text and data in, text out, a bearer token, no limit of calls.
    fn default() -> Self {
        let texts = |list: &[&str]| list.iter().map(|&text| text.to_owned()).collect();
        Self {
            versions: Version::ALL.to_vec(),
            bindings: Binding::ALL.to_vec(),
            base_path: None,
            operations: Operation::ALL.to_vec(),
            input_modes: texts(&["text/plain", "application/json"]),
            output_modes: texts(&["text/plain"]),
            credential: Credential::default(),
            open: false,
            rate_limit: None,
            message_ids: MessageIds::default(),
            raw: false,
        }
    }
}
