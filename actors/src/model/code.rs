//! Error codes: each with its category and a hint for the reader.
//!
//! This table is the only one. Each code has a page of the same name in `docs/errors/`, and a test compares the two
//! lists. The edge's `wire::problem` alone chooses the numbers on the wire.

mod category;

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

pub use self::category::Category;

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $code:literal, $category:ident, $hint:literal;)*) => {
        /// Stable error code. Published; never renamed.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Code { $($(#[$doc])* $name,)* }

        impl Code {
            /// Every code.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// Returns the published name, which is also the name of the code's page.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$name => $code,)* }
            }

            /// Returns the category of the error.
            #[must_use]
            pub const fn category(self) -> Category {
                match self { $(Self::$name => Category::$category,)* }
            }

            /// Page about the code, in Markdown.
            #[must_use]
            pub const fn page(self) -> &'static str {
                match self {
                    $(Self::$name => {
                        include_str!(concat!("../../../docs/errors/", $code, ".md"))
                    })*
                }
            }

            /// Returns the hint for the reader. The hint contains no path and no input.
            #[must_use]
            pub const fn hint(self) -> &'static str {
                match self { $(Self::$name => $hint,)* }
            }
        }
    };
}

codes! {
    /// The queue is full.
    QueueFull = "queue-full", Transient,
        "wait for a running execution to finish, then send the message again";
    /// The execution waited in the queue for too long.
    QueueTimeout = "queue-timeout", Transient,
        "send the message again when the agent is less busy, or raise `queue_timeout`";
    /// The agent is disabled.
    AgentDisabled = "agent-disabled", Permanent,
        "switch it on by `algonius agents enable`, or by `enabled = true` in the configuration";
    /// The agent does not exist.
    AgentUnknown = "agent-unknown", Permanent,
        "choose one of the agents that `algonius status` lists";
    /// The agent is no longer configured.
    AgentRemoved = "agent-removed", Permanent,
        "choose one of the agents that `algonius status` lists, or configure it again";
    /// The program of the agent is not installed.
    AgentUnavailable = "agent-unavailable", System,
        "install the program that the sentence names, or correct `command` of the agent; no restart is needed";
    /// The agent's actor failed too often.
    AgentQuarantined = "agent-quarantined", System,
        "look at `/status` for the reason, then start the service again";
    /// A resource of the machine is short.
    Pressure = "pressure", Transient,
        "send the message again when the machine is less busy; `/status` shows what is short";
    /// A precondition of all executions is not fulfilled.
    ServiceUnready = "service-unready", Transient,
        "look at the service: `/ready` and `algonius status` name the fault, and the service continues by itself when it is repaired";
    /// The service is stopping.
    Draining = "draining", Transient,
        "send the message again when the service is back";
    /// The ledger rejected a record.
    LedgerUnavailable = "ledger-unavailable", System,
        "see that the disk of the data folder has room and can be written, then try again";
    /// The ledger took too long to record a request.
    AcceptTimeout = "accept-timeout", Transient,
        "send the same message with the same id again: it is not run twice; see that the disk of the data folder is fast enough";
    /// The input is larger than the agent allows.
    InputTooLarge = "input-too-large", Permanent,
        "send less text, or raise `max_input_bytes`";
    /// The input cannot be passed to the program.
    InputRejected = "input-rejected", Permanent,
        "change the message as the sentence says, or let the agent read standard input instead";
    /// The agent does not allow this override.
    OverrideRefused = "override-refused", Permanent,
        "leave the choice out, or allow it in `overrides` of the agent";
    /// The message id was used before with another body.
    MessageReused = "message-reused", Permanent,
        "give each new message an id of its own";
    /// Too many services passed the message on.
    TooManyHops = "too-many-hops", Permanent,
        "look for remote agents that call each other, and change the `remote.url` of one of them";
    /// The program could not be started.
    NotStarted = "agent-not-started", Permanent,
        "run `algonius check`, and see that the program exists and may be executed";
    /// The machine could not start another process (resource limit).
    NoResources = "no-resources", Transient,
        "let other programs end, or lower `max_concurrent`";
    /// The program ended with an exit code that means failure.
    Exit = "agent-exit", Agent,
        "read the agent's standard error in the execution's record";
    /// The program was killed by a signal that the service did not send.
    Killed = "agent-killed", Agent,
        "look for a crash or for the out-of-memory killer in the system's log";
    /// The program's failure matched the `transient` conditions.
    TransientFailure = "agent-transient", Transient,
        "it was tried again as configured; see why the agent cannot reach what it needs";
    /// The quota of the agent's account is exhausted.
    QuotaExceeded = "quota-exceeded", Transient,
        "wait until the account's quota is renewed, or give the agent another account; `algonius quota list` says until when the account is shut";
    /// The service behind the agent limits the rate of its requests.
    AgentRateLimited = "agent-rate-limited", Transient,
        "send the message again after the time that the sentence names; where this happens often, lower `max_concurrent` or ask the provider for a higher rate";
    /// The service behind the agent is overloaded.
    AgentOverloaded = "agent-overloaded", Transient,
        "send the message again later; the provider's status page says how long it lasts";
    /// The budget of the agent is exhausted.
    BudgetExceeded = "budget-exceeded", Permanent,
        "wait until the day ends, ask for less in one message, or raise `budget` of the agent";
    /// The program's failure matched the `permanent` conditions.
    PermanentFailure = "agent-permanent", Permanent,
        "read the agent's own message, and change what it complains of";
    /// The service behind the agent rejected the agent's credential.
    NotAuthenticated = "not-authenticated", Permanent,
        "log the agent in as the user of the service, or give it a valid key: a changed `env_file` is noticed within seconds; after a login run `algonius quota reopen ACCOUNT`";
    /// The program ended before it wrote the final event of its output.
    EndedEarly = "ended-early", Agent,
        "look for what ended the agent, and see that `output` is what it writes";
    /// A part of the output that may belong to the answer could not be read.
    OutputUnreadable = "output-unreadable", Agent,
        "read the line in the agent's output; see that `output` is what the agent writes, and that it writes all other text to standard error";
    /// The artifacts and messages of the agent are larger than it may return.
    OutputTooLarge = "output-too-large", Agent,
        "let the agent return less, or raise `max_output_bytes` of the agent";
    /// The agent was denied a tool that it needed, and answered nothing.
    Denied = "denied", Agent,
        "allow the agent the tools that it needs, or ask for something that needs none";
    /// The answer is empty or consists of white space.
    EmptyAnswer = "empty-answer", Agent,
        "read the agent's standard error, or set `success.require_output = false`";
    /// The output matched the failure pattern.
    FailPattern = "failure-pattern", Agent,
        "read the agent's output; it matched `success.fail_regex`";
    /// The configured file or JSON location contains no answer.
    AnswerMissing = "answer-missing", Agent,
        "see that the agent writes its answer to the configured file or JSON place";
    /// The file that the program must create does not exist.
    ArtifactMissing = "artifact-missing", Agent,
        "see where the agent writes the file that `success.artifact` names";
    /// The answer does not match its schema.
    SchemaMismatch = "schema-mismatch", Agent,
        "ask the agent for JSON alone, or widen `success.schema`";
    /// The check command rejected the result.
    CheckFailed = "check-failed", Agent,
        "run the command of `success.check` by hand in the agent's folder, and see what it says";
    /// The program waited for input from a person.
    Interactive = "interactive-input", Agent,
        "let the program ask nothing: give it a flag such as `--yes`, or narrow `interactive_prompts`";
    /// The agent reported its own failure.
    Reported = "agent-reported", Agent,
        "read the agent's own message";
    /// The agent rejected the work.
    Rejected = "agent-rejected", Agent,
        "read the agent's own message, and ask for something that it does";
    /// The run deadline passed.
    Timeout = "execution-timeout", Agent,
        "give the agent less to do, or raise `timeout`";
    /// The program wrote nothing for too long.
    IdleTimeout = "idle-timeout", Agent,
        "see why the agent writes nothing, or raise `idle_timeout`";
    /// The program exceeded its resource limits.
    ResourcesExceeded = "resources-exceeded", Agent,
        "give the agent less to do, or raise what its `resources` allow";
    /// The start deadline passed.
    StartTimeout = "start-timeout", System,
        "see whether the machine is overloaded, or raise `start_timeout`";
    /// A member of the team failed.
    MemberFailed = "member-failed", Agent,
        "read the record of the member's execution, which `algonius tasks show --tree` names";
    /// A member of the team cannot accept requests.
    MemberUnavailable = "member-unavailable", Transient,
        "see in `/status` why the member accepts no request, then send the message again";
    /// A cognitive agent used all its model turns without an answer.
    StepsExhausted = "steps-exhausted", Agent,
        "read the steps with `algonius tasks show --steps`, then request less in one message or raise `max_steps` of the agent";
    /// The provider of the model gave no reply.
    ModelUnavailable = "model-unavailable", Transient,
        "check that the provider at `base_url` runs and can be reached, then send the message again";
    /// The provider of the model refused the request.
    ModelRefused = "model-refused", Permanent,
        "check that the provider has the model of `model_id`, and that the model accepts tools and a conversation of this length";
    /// The replies of the model could not be used.
    ModelUnusable = "model-unusable", Agent,
        "read the steps with `algonius tasks show --steps`, and choose a model that can call tools";
    /// The execution was cancelled.
    Cancelled = "execution-cancelled", Permanent,
        "send the message again if it was called off by mistake";
    /// The supervisor stopped while the execution ran.
    Interrupted = "interrupted", System,
        "look at what the agent had done, then send the message again";
    /// The supervisor stopped before the execution ran, and the input can no longer be read.
    InterruptedNotRun = "interrupted-not-run", System,
        "send the message again; it was never given to the agent. `inputs.key_file` keeps such inputs";
    /// The execution does not exist, or belongs to another caller.
    ExecutionUnknown = "execution-unknown", Permanent,
        "use an id that this service gave to you";
    /// The interaction does not exist, or belongs to another caller.
    InteractionUnknown = "interaction-unknown", Permanent,
        "choose one of the interactions that `algonius approvals` lists";
    /// The interaction is closed.
    InteractionClosed = "interaction-closed", Permanent,
        "nothing is left to answer; `algonius approvals --all` shows who answered";
    /// The question is not the one that the answer names.
    InteractionChanged = "interaction-changed", Permanent,
        "read the interaction again, and answer with the digest that it shows now";
    /// The answer does not fit the question.
    AnswerInvalid = "answer-invalid", Permanent,
        "answer with one of the options, or with values that fit the schema of the question";
    /// The agent began more tool calls in a turn than it may.
    ToolLimit = "tool-limit", Agent,
        "ask for less in one message, or raise `consent.max_tool_calls` of the agent";
    /// The agent made a tool call without permission.
    UnauthorizedTool = "unauthorized-tool", Agent,
        "look at what the agent did; allow the tool by a rule of `consent`, or set a mode in which the agent requests permission";
    /// The agent did not confirm the mode that the service sets.
    ModeRefused = "mode-refused", Agent,
        "set `session.mode` to a mode that the agent offers; the sentence names the modes";
    /// The agent opened no session.
    SessionNotOpened = "session-not-opened", Agent,
        "see that `command` and `args` start an agent of this `protocol`, and read its standard error; a slow agent needs a longer `start_timeout`";
    /// The execution has already ended.
    ExecutionEnded = "execution-ended", Permanent,
        "only executions that have not ended can be cancelled";
    /// The schedule does not exist, or belongs to another caller.
    ScheduleUnknown = "schedule-unknown", Permanent,
        "choose one of the schedules that `algonius schedule list` names";
    /// A schedule with this id or this name already exists.
    ScheduleExists = "schedule-exists", Permanent,
        "give the schedule an id and a name of its own";
    /// The schedule comes from the configuration and can only be changed there.
    ScheduleFixed = "schedule-fixed", Permanent,
        "change it in the configuration, and let the service read it again";
    /// The execution has not ended yet.
    ExecutionUnfinished = "execution-unfinished", Permanent,
        "wait for its end, or cancel it first";
    /// The input of the execution is not stored in its original form.
    NotReplayable = "not-replayable", Permanent,
        "send the message itself again; `inputs.retry_window` says for how long a sealed one is kept";
    /// The input of the schedule is sealed, and its key no longer exists.
    InputSealed = "input-sealed", System,
        "give the schedule its input again, and keep the key in `inputs.key_file`";
    /// The request has no credentials, or invalid ones.
    Unauthenticated = "unauthenticated", Permanent,
        "send `Authorization: Bearer` with a valid token";
    /// The credentials are valid and do not grant the required right.
    Forbidden = "forbidden", Permanent,
        "use a token whose scopes allow this";
    /// The credential is wrong, after too many wrong ones from this address.
    LockedOut = "locked-out", Transient,
        "send a valid token, which is accepted at once, or wait for as long as `Retry-After` says";
    /// The caller exceeded the rate limit of the agent.
    RateLimited = "rate-limited", Transient,
        "wait for as long as `Retry-After` says, then send the request again";
    /// The `Host` header names a host that is not the service's.
    HostUnknown = "host-unknown", Permanent,
        "use the service's own address, or add the name to `server.allowed_hosts`";
    /// The request comes from a web page of another origin.
    OriginForeign = "origin-foreign", Permanent,
        "ask from a program, or add the site to `server.allowed_origins`";
    /// The body is not JSON.
    MalformedJson = "malformed-json", Permanent,
        "send one JSON document in UTF-8";
    /// The body is JSON but not a JSON-RPC request.
    InvalidRequest = "invalid-request", Permanent,
        "send one JSON-RPC 2.0 request object";
    /// The method does not exist.
    MethodUnknown = "method-unknown", Permanent,
        "use a method that this protocol version names";
    /// The parameters are invalid.
    InvalidParams = "invalid-params", Permanent,
        "correct the field that the sentence names";
    /// The path does not exist.
    PathUnknown = "path-unknown", Permanent,
        "see the README for the paths of this service";
    /// The path does not support this HTTP method.
    MethodNotAllowed = "method-not-allowed", Permanent,
        "use the HTTP method that the `Allow` header names";
    /// The body is larger than the service allows.
    BodyTooLarge = "body-too-large", Permanent,
        "send a smaller body, or raise `server.max_body_bytes`";
    /// The body did not arrive in time.
    BodyTimeout = "body-timeout", Transient,
        "send the whole body without pauses";
    /// The media type is not supported.
    ContentType = "content-type-unsupported", Permanent,
        "send `application/json`, and parts of a type that the agent's card names";
    /// The protocol defines the operation, and this agent does not support it.
    Unsupported = "operation-unsupported", Permanent,
        "see the agent's card for what it can do";
    /// The agent does not send push notifications.
    PushUnsupported = "push-unsupported", Permanent,
        "ask with `tasks/get` instead";
    /// The agent has no card for authenticated callers.
    ExtendedCardMissing = "extended-card-missing", Permanent,
        "use the public card; it says all there is";
    /// The agent requires an extension that the request does not name.
    ExtensionRequired = "extension-required", Permanent,
        "support the extensions that the agent's card requires, and name them in the request";
    /// The protocol version is not supported.
    VersionUnsupported = "version-unsupported", Permanent,
        "use a protocol version that the agent's card names";
    /// The configuration is invalid, and the previous one stays in force.
    ConfigurationRejected = "configuration-rejected", Permanent,
        "correct the places that are named, run `algonius check`, and reload";
    /// A token with this name already exists.
    TokenExists = "token-exists", Permanent,
        "choose another name, or replace the token";
    /// No agent uses an account with this name.
    AccountUnknown = "account-unknown", Permanent,
        "choose one of the accounts that `algonius quota list` shows";
    /// No token with this name exists.
    TokenUnknown = "token-unknown", Permanent,
        "choose one of the names that `algonius token list` shows";
    /// Internal error of the supervisor.
    Internal = "internal", System,
        "report it with the execution's id; the service's log has the cause";
}

impl Code {
    /// Parses the published name.
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
    /// Parses a code; an unknown name, from a later release, becomes `internal`.
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let word = String::deserialize(deserializer)?;
        Ok(Self::parse(&word).unwrap_or(Self::Internal))
    }
}
