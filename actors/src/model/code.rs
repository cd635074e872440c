//! Every error there is: its stable code, its category and what the reader can do about it.
//!
//! One table. Each code has a page of the same name in `docs/errors/`, and a test compares the
//! two lists. Numbers on the wire are chosen in the edge's `wire::problem` and nowhere else.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// Whose turn it is after an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Category {
    /// May pass by itself: network, a busy machine.
    Transient,
    /// Will not pass until somebody changes something: configuration, the request.
    Permanent,
    /// The wrapped agent's own.
    Agent,
    /// The supervisor's own.
    System,
}

impl Category {
    /// Every category.
    pub const ALL: &[Self] = &[Self::Transient, Self::Permanent, Self::Agent, Self::System];

    /// Reads the published word.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|category| category.as_str() == word)
    }

    /// The published word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Transient => "transient",
            Self::Permanent => "permanent",
            Self::Agent => "agent",
            Self::System => "system",
        }
    }
}

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $code:literal, $category:ident, $hint:literal;)*) => {
        /// A stable code. Published; never renamed.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Code { $($(#[$doc])* $name,)* }

        impl Code {
            /// Every code.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// The published word, which is also the name of its page.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$name => $code,)* }
            }

            /// Whose turn it is.
            #[must_use]
            pub const fn category(self) -> Category {
                match self { $(Self::$name => Category::$category,)* }
            }

            /// What the reader can do. Names no path and no input.
            #[must_use]
            pub const fn hint(self) -> &'static str {
                match self { $(Self::$name => $hint,)* }
            }
        }
    };
}

codes! {
    /// The queue has no place left.
    QueueFull = "queue-full", Transient,
        "wait for a running execution to finish, then send the message again";
    /// It waited too long.
    QueueTimeout = "queue-timeout", Transient,
        "send the message again when the agent is less busy, or raise `queue_timeout`";
    /// The agent is switched off.
    AgentDisabled = "agent-disabled", Permanent,
        "switch it on by `algonius agents enable`, or by `enabled = true` in the configuration";
    /// No such agent.
    AgentUnknown = "agent-unknown", Permanent,
        "choose one of the agents that `algonius status` lists";
    /// The agent is configured no longer.
    AgentRemoved = "agent-removed", Permanent,
        "choose one of the agents that `algonius status` lists, or configure it again";
    /// The agent's actor failed too often.
    AgentQuarantined = "agent-quarantined", System,
        "look at `/status` for the reason, then start the service again";
    /// The machine has too little of something.
    Pressure = "pressure", Transient,
        "send the message again when the machine is less busy; `/status` shows what is short";
    /// The service is stopping.
    Draining = "draining", Transient,
        "send the message again when the service is back";
    /// The ledger did not take a record.
    LedgerUnavailable = "ledger-unavailable", System,
        "see that the disk of the data folder has room and can be written, then try again";
    /// More input than the agent takes.
    InputTooLarge = "input-too-large", Permanent,
        "send less text, or raise `max_input_bytes`";
    /// Input that cannot be handed to the program.
    InputRejected = "input-rejected", Permanent,
        "change the message as the sentence says, or let the agent read standard input instead";
    /// A choice that the agent does not leave to callers.
    OverrideRefused = "override-refused", Permanent,
        "leave the choice out, or allow it in `overrides` of the agent";
    /// The same message id with another body.
    MessageReused = "message-reused", Permanent,
        "give each new message an id of its own";
    /// The program could not be started.
    NotStarted = "agent-not-started", Permanent,
        "run `algonius check`, and see that the program exists and may be executed";
    /// The machine could not start another process.
    NoResources = "no-resources", Transient,
        "let other programs end, or lower `max_concurrent`";
    /// An exit code that says failure.
    Exit = "agent-exit", Agent,
        "read the agent's standard error in the execution's record";
    /// Killed by a signal that we did not send.
    Killed = "agent-killed", Agent,
        "look for a crash or for the out-of-memory killer in the system's log";
    /// The transient contract matched.
    TransientFailure = "agent-transient", Transient,
        "it was tried again as configured; see why the agent cannot reach what it needs";
    /// The account behind the agent has used up what it may.
    QuotaExceeded = "quota-exceeded", Transient,
        "wait until the account's quota is renewed, or give the agent another account";
    /// The agent has used up what it may.
    BudgetExceeded = "budget-exceeded", Permanent,
        "wait until the day ends, ask for less in one message, or raise `budget` of the agent";
    /// The permanent contract matched.
    PermanentFailure = "agent-permanent", Permanent,
        "read the agent's own message, and change what it complains of";
    /// What is behind the agent does not know it.
    NotAuthenticated = "not-authenticated", Permanent,
        "log the agent in as the user of the service, or give it a valid key by `env_from` or `env_file`";
    /// It ended without the word that its output ends with.
    EndedEarly = "ended-early", Agent,
        "look for what ended the agent, and see that `output` is what it writes";
    /// It was not let do what it wanted, and answered nothing.
    Denied = "denied", Agent,
        "allow the agent the tools that it needs, or ask for something that needs none";
    /// Nothing but white space came out.
    EmptyAnswer = "empty-answer", Agent,
        "read the agent's standard error, or set `success.require_output = false`";
    /// The failure pattern matched.
    FailPattern = "failure-pattern", Agent,
        "read the agent's output; it matched `success.fail_regex`";
    /// The answer was not where it should be.
    AnswerMissing = "answer-missing", Agent,
        "see that the agent writes its answer to the configured file or JSON place";
    /// The file that it has to make is not there.
    ArtifactMissing = "artifact-missing", Agent,
        "see where the agent writes the file that `success.artifact` names";
    /// The answer does not fit its schema.
    SchemaMismatch = "schema-mismatch", Agent,
        "ask the agent for JSON alone, or widen `success.schema`";
    /// What looks at its work found fault with it.
    CheckFailed = "check-failed", Agent,
        "run the command of `success.check` by hand in the agent's folder, and see what it says";
    /// It waited for a person.
    Interactive = "interactive-input", Agent,
        "let the program ask nothing: give it a flag such as `--yes`, or narrow `interactive_prompts`";
    /// The agent itself said that it failed.
    Reported = "agent-reported", Agent,
        "read the agent's own message";
    /// The agent itself refused the work.
    Rejected = "agent-rejected", Agent,
        "read the agent's own message, and ask for something that it does";
    /// The run deadline passed.
    Timeout = "execution-timeout", Agent,
        "give the agent less to do, or raise `timeout`";
    /// It was silent for too long.
    IdleTimeout = "idle-timeout", Agent,
        "see why the agent writes nothing, or raise `idle_timeout`";
    /// It took more of the machine than it may.
    ResourcesExceeded = "resources-exceeded", Agent,
        "give the agent less to do, or raise what its `resources` allow";
    /// The start deadline passed.
    StartTimeout = "start-timeout", System,
        "see whether the machine is overloaded, or raise `start_timeout`";
    /// Called off.
    Cancelled = "execution-cancelled", Permanent,
        "send the message again if it was called off by mistake";
    /// The supervisor went away while it ran.
    Interrupted = "interrupted", System,
        "look at what the agent had done, then send the message again";
    /// The supervisor went away before it ran, and the input was not kept.
    InterruptedNotRun = "interrupted-not-run", System,
        "send the message again; it was never given to the agent";
    /// No such execution, or not the caller's.
    ExecutionUnknown = "execution-unknown", Permanent,
        "use an id that this service gave to you";
    /// It has ended already.
    ExecutionEnded = "execution-ended", Permanent,
        "only executions that have not ended can be cancelled";
    /// No such schedule, or not the caller's.
    ScheduleUnknown = "schedule-unknown", Permanent,
        "choose one of the schedules that `algonius schedule list` names";
    /// A schedule has this id or this name already.
    ScheduleExists = "schedule-exists", Permanent,
        "give the schedule an id and a name of its own";
    /// The configuration says what it is.
    ScheduleFixed = "schedule-fixed", Permanent,
        "change it in the configuration, and let the service read it again";
    /// It has not ended yet.
    ExecutionUnfinished = "execution-unfinished", Permanent,
        "wait for its end, or cancel it first";
    /// What was asked is not kept as it was.
    NotReplayable = "not-replayable", Permanent,
        "send the message itself again";
    /// No or no valid credentials.
    Unauthenticated = "unauthenticated", Permanent,
        "send `Authorization: Bearer` with a valid token";
    /// Valid credentials without the right.
    Forbidden = "forbidden", Permanent,
        "use a token whose scopes allow this";
    /// Too many wrong credentials from this address.
    LockedOut = "locked-out", Transient,
        "wait for as long as `Retry-After` says, then send valid credentials";
    /// More calls than the agent takes in a time.
    RateLimited = "rate-limited", Transient,
        "wait for as long as `Retry-After` says, then send the request again";
    /// A host name that is not the service's.
    HostUnknown = "host-unknown", Permanent,
        "use the service's own address, or add the name to `server.allowed_hosts`";
    /// A page of another site asked.
    OriginForeign = "origin-foreign", Permanent,
        "ask from a program, or add the site to `server.allowed_origins`";
    /// The body is not JSON.
    MalformedJson = "malformed-json", Permanent,
        "send one JSON document in UTF-8";
    /// The body is JSON, but not a request.
    InvalidRequest = "invalid-request", Permanent,
        "send one JSON-RPC 2.0 request object";
    /// No such method.
    MethodUnknown = "method-unknown", Permanent,
        "use a method that this protocol version names";
    /// Wrong parameters.
    InvalidParams = "invalid-params", Permanent,
        "correct the field that the sentence names";
    /// No such path.
    PathUnknown = "path-unknown", Permanent,
        "see the README for the paths of this service";
    /// A path with another method.
    MethodNotAllowed = "method-not-allowed", Permanent,
        "use the HTTP method that the `Allow` header names";
    /// The body is larger than the service takes.
    BodyTooLarge = "body-too-large", Permanent,
        "send a smaller body, or raise `server.max_body_bytes`";
    /// The body did not arrive in time.
    BodyTimeout = "body-timeout", Transient,
        "send the whole body without pauses";
    /// A media type that cannot be read.
    ContentType = "content-type-unsupported", Permanent,
        "send `application/json`, and parts of a type that the agent's card names";
    /// The protocol knows it, this agent does not do it.
    Unsupported = "operation-unsupported", Permanent,
        "see the agent's card for what it can do";
    /// The agent does not send push notifications.
    PushUnsupported = "push-unsupported", Permanent,
        "ask with `tasks/get` instead";
    /// There is no card for authenticated callers.
    ExtendedCardMissing = "extended-card-missing", Permanent,
        "use the public card; it says all there is";
    /// The agent needs an extension that the request does not name.
    ExtensionRequired = "extension-required", Permanent,
        "support the extensions that the agent's card requires, and name them in the request";
    /// A protocol version that is not served.
    VersionUnsupported = "version-unsupported", Permanent,
        "use a protocol version that the agent's card names";
    /// The configuration is wrong, and the one before stays in force.
    ConfigurationRejected = "configuration-rejected", Permanent,
        "correct the places that are named, run `algonius check`, and reload";
    /// There is a token of that name.
    TokenExists = "token-exists", Permanent,
        "choose another name, or replace the token";
    /// There is no token of that name.
    TokenUnknown = "token-unknown", Permanent,
        "choose one of the names that `algonius token list` shows";
    /// A fault in the supervisor.
    Internal = "internal", System,
        "report it with the execution's id; the service's log has the cause";
}

impl Code {
    /// Reads the published word.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|code| code.as_str() == word)
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for Code {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl JsonSchema for Code {
    fn schema_name() -> Cow<'static, str> {
        "Code".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let words: Vec<_> = Self::ALL.iter().map(|code| code.as_str()).collect();
        json_schema!({
            "description": "A stable code; each has a page of its name. Codes are only added.",
            "type": "string",
            "enum": words,
        })
    }
}

impl<'de> Deserialize<'de> for Code {
    /// An unknown word, from a later release, reads as `internal`.
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let word = String::deserialize(deserializer)?;
        Ok(Self::parse(&word).unwrap_or(Self::Internal))
    }
}
