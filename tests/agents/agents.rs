//! Agents under test: their packages, their configuration, and their expected behaviour in failures.
//!
//! In a configuration, `HERE` is the folder of the run, which contains `work` and `key`, and `ADDRESS` the address of
//! the model. The installed program replaces the one that the preset names.

use serde_json::{Value, json};

/// Package of an agent, with its exact version.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Package {
    Npm(&'static str),
    Pip(&'static str),
}

impl Package {
    pub(crate) const fn specifier(self) -> &'static str {
        match self {
            Self::Npm(package) | Self::Pip(package) => package,
        }
    }

    pub(crate) fn version(self) -> &'static str {
        self.specifier().rsplit(['@', '=']).next().unwrap_or_default()
    }
}

/// State of a task, and the code of its failure; an empty code stands for any.
type ExpectedOutcome = (&'static str, &'static str);

const COMPLETED: ExpectedOutcome = ("completed", "");
const NOT_AUTHENTICATED: ExpectedOutcome = ("failed", "not-authenticated");
const RATE_LIMITED: ExpectedOutcome = ("failed", "agent-rate-limited");
const TRANSIENT_FAILURE: ExpectedOutcome = ("failed", "agent-transient");

/// Accuracy of an agent's reported usage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UsageAccuracy {
    /// Usage equals the model's numbers.
    Exact,
    /// Usage exceeds the model's numbers, because the agent sends more than one request.
    AtLeast,
}

const GB: u64 = 1_000_000_000;

/// Control protocol of an agent.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ControlProtocolSetup {
    /// Settings of the agent without a preset.
    pub(crate) settings: &'static str,
    /// Name of the tool that runs a command.
    pub(crate) command_tool: &'static str,
    /// Arguments of the tool for a command that needs permission.
    pub(crate) command_arguments: fn(&str) -> Value,
}

/// Agent under test.
#[derive(Debug)]
pub(crate) struct TestedAgent {
    pub(crate) name: &'static str,
    /// Name of its test.
    pub(crate) test_name: &'static str,
    pub(crate) package: Package,
    /// Path of the program, below the folder of its installation.
    pub(crate) program: &'static str,
    /// Table of the agent in the configuration.
    pub(crate) settings: &'static str,
    /// True if its answer equals the model's word for word.
    pub(crate) is_answer_verbatim: bool,
    /// Seconds of silence after which it counts as hung.
    pub(crate) idle_limit_seconds: u32,
    /// Greatest memory of ten concurrent runs in bytes; this much must be free for them.
    pub(crate) ten_runs_max_bytes: u64,
    /// Call of a tool that reads a file, with `WORK` as the folder.
    pub(crate) read_call: Option<(&'static str, &'static str)>,
    /// Call of a tool that writes a file, which is forbidden.
    pub(crate) write_call: Option<(&'static str, &'static str)>,
    pub(crate) outcome_when_denied: ExpectedOutcome,
    /// True if it reports the denial although it answers.
    pub(crate) reports_denial: bool,
    pub(crate) outcome_when_unauthorised: ExpectedOutcome,
    pub(crate) outcome_when_rate_limited: ExpectedOutcome,
    pub(crate) outcome_when_stream_dropped: ExpectedOutcome,
    /// True if its answer is shown while the model writes it.
    pub(crate) is_streamed: bool,
    pub(crate) usage_accuracy: UsageAccuracy,
    /// Its control protocol; `None` if it is driven without one.
    pub(crate) control_protocol: Option<ControlProtocolSetup>,
    /// Cases that are skipped, with the reasons.
    pub(crate) skipped_cases: &'static [(&'static str, &'static str)],
}

/// Skipped cases of agents without tools.
const CASES_WITHOUT_TOOLS: &[(&str, &str)] = &[
    ("a tool", "has no tools"),
    ("a file of the message", "has no tools"),
    ("permission denied", "has no tools"),
];

pub(crate) const CLAUDE: TestedAgent = TestedAgent {
    name: "claude",
    test_name: "claude_code_is_served",
    package: Package::Npm("@anthropic-ai/claude-code@2.1.330"),
    #[cfg(target_arch = "aarch64")]
    program: "node_modules/@anthropic-ai/claude-code-linux-arm64/claude",
    #[cfg(not(target_arch = "aarch64"))]
    program: "node_modules/@anthropic-ai/claude-code-linux-x64/claude",
    settings: include_str!("claude.toml"),
    is_answer_verbatim: true,
    idle_limit_seconds: 6,
    ten_runs_max_bytes: 3 * GB,
    read_call: Some(("Read", r#"{"file_path":"WORK/notes.txt"}"#)),
    write_call: Some(("Write", r#"{"file_path":"WORK/denied.txt","content":"x"}"#)),
    outcome_when_denied: COMPLETED,
    reports_denial: false,
    outcome_when_unauthorised: NOT_AUTHENTICATED,
    outcome_when_rate_limited: RATE_LIMITED,
    outcome_when_stream_dropped: TRANSIENT_FAILURE,
    is_streamed: true,
    usage_accuracy: UsageAccuracy::Exact,
    control_protocol: Some(ControlProtocolSetup {
        settings: include_str!("sessions/claude.toml"),
        command_tool: "Bash",
        command_arguments: |command| json!({"command": command}),
    }),
    skipped_cases: &[],
};

pub(crate) const CODEX: TestedAgent = TestedAgent {
    name: "codex",
    test_name: "codex_is_served",
    package: Package::Npm("@openai/codex@0.169.0"),
    program: "node_modules/.bin/codex",
    settings: include_str!("codex.toml"),
    is_answer_verbatim: true,
    idle_limit_seconds: 6,
    ten_runs_max_bytes: 2 * GB,
    read_call: Some(("exec_command", r#"{"cmd":"cat WORK/notes.txt"}"#)),
    write_call: Some(("exec_command", r#"{"cmd":"touch WORK/denied.txt"}"#)),
    outcome_when_denied: COMPLETED,
    reports_denial: false,
    outcome_when_unauthorised: NOT_AUTHENTICATED,
    outcome_when_rate_limited: RATE_LIMITED,
    outcome_when_stream_dropped: TRANSIENT_FAILURE,
    is_streamed: false,
    usage_accuracy: UsageAccuracy::Exact,
    control_protocol: Some(ControlProtocolSetup {
        settings: include_str!("sessions/codex.toml"),
        command_tool: "exec_command",
        // Codex requests permission for commands that leave its sandbox.
        command_arguments: |command| json!({"cmd": command, "sandbox_permissions": "require_escalated", "justification": "a test"}),
    }),
    skipped_cases: &[],
};

pub(crate) const GEMINI: TestedAgent = TestedAgent {
    name: "gemini",
    test_name: "gemini_is_served",
    package: Package::Npm("@google/gemini-cli@0.61.0"),
    program: "node_modules/.bin/gemini",
    settings: include_str!("gemini.toml"),
    is_answer_verbatim: true,
    idle_limit_seconds: 20,
    ten_runs_max_bytes: 4 * GB,
    read_call: Some(("read_file", r#"{"file_path":"WORK/notes.txt"}"#)),
    write_call: Some(("write_file", r#"{"file_path":"WORK/denied.txt","content":"x"}"#)),
    outcome_when_denied: COMPLETED,
    reports_denial: true,
    outcome_when_unauthorised: NOT_AUTHENTICATED,
    outcome_when_rate_limited: RATE_LIMITED,
    outcome_when_stream_dropped: TRANSIENT_FAILURE,
    is_streamed: true,
    usage_accuracy: UsageAccuracy::Exact,
    control_protocol: Some(ControlProtocolSetup {
        settings: include_str!("sessions/gemini.toml"),
        command_tool: "run_shell_command",
        command_arguments: |command| json!({"command": command}),
    }),
    skipped_cases: &[],
};

pub(crate) const COPILOT: TestedAgent = TestedAgent {
    name: "copilot",
    test_name: "copilot_is_served",
    package: Package::Npm("@github/copilot@1.0.102"),
    program: "node_modules/.bin/copilot",
    settings: include_str!("copilot.toml"),
    is_answer_verbatim: true,
    idle_limit_seconds: 20,
    ten_runs_max_bytes: 5 * GB,
    read_call: Some(("view", r#"{"path":"WORK/notes.txt"}"#)),
    write_call: Some(("create", r#"{"path":"WORK/denied.txt","file_text":"x"}"#)),
    outcome_when_denied: COMPLETED,
    reports_denial: true,
    outcome_when_unauthorised: NOT_AUTHENTICATED,
    outcome_when_rate_limited: RATE_LIMITED,
    outcome_when_stream_dropped: TRANSIENT_FAILURE,
    is_streamed: true,
    usage_accuracy: UsageAccuracy::Exact,
    control_protocol: Some(ControlProtocolSetup {
        settings: include_str!("sessions/copilot.toml"),
        command_tool: "bash",
        command_arguments: |command| json!({"command": command, "description": "a test"}),
    }),
    skipped_cases: &[],
};

pub(crate) const CONTINUE: TestedAgent = TestedAgent {
    name: "continue",
    test_name: "continue_is_served",
    package: Package::Npm("@continuedev/cli@1.5.47"),
    program: "node_modules/.bin/cn",
    settings: include_str!("continue.toml"),
    is_answer_verbatim: true,
    idle_limit_seconds: 20,
    ten_runs_max_bytes: 5 * GB,
    read_call: Some(("Read", r#"{"filepath":"WORK/notes.txt"}"#)),
    write_call: Some(("Write", r#"{"filepath":"WORK/denied.txt","content":"x"}"#)),
    outcome_when_denied: ("failed", "empty-answer"),
    reports_denial: false,
    outcome_when_unauthorised: NOT_AUTHENTICATED,
    outcome_when_rate_limited: RATE_LIMITED,
    outcome_when_stream_dropped: TRANSIENT_FAILURE,
    is_streamed: true,
    usage_accuracy: UsageAccuracy::Exact,
    control_protocol: None,
    skipped_cases: &[],
};

pub(crate) const OPENCODE: TestedAgent = TestedAgent {
    name: "opencode",
    test_name: "opencode_is_served",
    package: Package::Npm("opencode-ai@1.18.33"),
    #[cfg(target_arch = "aarch64")]
    program: "node_modules/opencode-linux-arm64/bin/opencode",
    #[cfg(not(target_arch = "aarch64"))]
    program: "node_modules/opencode-linux-x64/bin/opencode",
    settings: include_str!("opencode.toml"),
    is_answer_verbatim: true,
    idle_limit_seconds: 45,
    ten_runs_max_bytes: 10 * GB,
    read_call: Some(("read", r#"{"filePath":"WORK/notes.txt"}"#)),
    write_call: Some(("write", r#"{"filePath":"WORK/denied.txt","content":"x"}"#)),
    outcome_when_denied: COMPLETED,
    reports_denial: false,
    outcome_when_unauthorised: NOT_AUTHENTICATED,
    outcome_when_rate_limited: RATE_LIMITED,
    outcome_when_stream_dropped: TRANSIENT_FAILURE,
    is_streamed: true,
    usage_accuracy: UsageAccuracy::Exact,
    control_protocol: Some(ControlProtocolSetup {
        settings: include_str!("sessions/opencode.toml"),
        command_tool: "bash",
        command_arguments: |command| json!({"command": command, "description": "a test"}),
    }),
    skipped_cases: &[(
        "a file of the message",
        "its read-only form reads no file outside of its folder",
    )],
};

pub(crate) const QWEN: TestedAgent = TestedAgent {
    name: "qwen",
    test_name: "qwen_code_is_served",
    package: Package::Npm("@qwen-code/qwen-code@0.24.4"),
    program: "node_modules/.bin/qwen",
    settings: include_str!("qwen.toml"),
    is_answer_verbatim: true,
    idle_limit_seconds: 30,
    ten_runs_max_bytes: 4 * GB,
    read_call: Some(("read_file", r#"{"file_path":"WORK/notes.txt"}"#)),
    write_call: Some(("write_file", r#"{"file_path":"WORK/denied.txt","content":"x"}"#)),
    outcome_when_denied: COMPLETED,
    reports_denial: true,
    outcome_when_unauthorised: NOT_AUTHENTICATED,
    outcome_when_rate_limited: RATE_LIMITED,
    outcome_when_stream_dropped: COMPLETED,
    is_streamed: true,
    usage_accuracy: UsageAccuracy::AtLeast,
    control_protocol: Some(ControlProtocolSetup {
        settings: include_str!("sessions/qwen.toml"),
        command_tool: "run_shell_command",
        command_arguments: |command| json!({"command": command, "description": "a test"}),
    }),
    skipped_cases: &[],
};

pub(crate) const LLM: TestedAgent = TestedAgent {
    name: "llm",
    test_name: "llm_is_served",
    package: Package::Pip("llm==0.36"),
    program: "bin/llm",
    settings: include_str!("llm.toml"),
    is_answer_verbatim: true,
    idle_limit_seconds: 20,
    ten_runs_max_bytes: GB,
    read_call: None,
    write_call: None,
    outcome_when_denied: COMPLETED,
    reports_denial: false,
    outcome_when_unauthorised: NOT_AUTHENTICATED,
    outcome_when_rate_limited: RATE_LIMITED,
    outcome_when_stream_dropped: TRANSIENT_FAILURE,
    is_streamed: true,
    usage_accuracy: UsageAccuracy::Exact,
    control_protocol: None,
    skipped_cases: CASES_WITHOUT_TOOLS,
};

pub(crate) const AIDER: TestedAgent = TestedAgent {
    name: "aider",
    test_name: "aider_is_served",
    package: Package::Pip("aider-chat==0.86.2"),
    program: "bin/aider",
    settings: include_str!("aider.toml"),
    is_answer_verbatim: false,
    idle_limit_seconds: 45,
    ten_runs_max_bytes: 4 * GB,
    read_call: None,
    write_call: None,
    outcome_when_denied: COMPLETED,
    reports_denial: false,
    outcome_when_unauthorised: NOT_AUTHENTICATED,
    outcome_when_rate_limited: RATE_LIMITED,
    outcome_when_stream_dropped: TRANSIENT_FAILURE,
    is_streamed: false,
    usage_accuracy: UsageAccuracy::Exact,
    control_protocol: None,
    skipped_cases: CASES_WITHOUT_TOOLS,
};
