//! The agents: where each comes from, how it is configured, and how it takes trouble.
//!
//! In a configuration `HERE` is the folder of the run, in which `work` and `key` are, and `ADDRESS` the address
//! of the model. The program is put in place of the one that the preset names.

/// Where an agent comes from, with its exact version.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Package {
    Npm(&'static str),
    Pip(&'static str),
}

impl Package {
    pub(crate) const fn shown(self) -> &'static str {
        match self {
            Self::Npm(package) | Self::Pip(package) => package,
        }
    }

    pub(crate) fn version(self) -> &'static str {
        self.shown().rsplit(['@', '=']).next().unwrap_or_default()
    }
}

/// A state of a task, and the code of why it made nothing; without a code, for any reason.
type End = (&'static str, &'static str);

const COMPLETED: End = ("completed", "");
const REFUSED: End = ("failed", "not-authenticated");
const QUOTA: End = ("failed", "quota-exceeded");
const TRANSIENT: End = ("failed", "agent-transient");

/// How what an agent used is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Count {
    /// It tells what the model told.
    Exact,
    /// It asks the model more than once, and tells all of it.
    More,
}

const GB: u64 = 1_000_000_000;

/// One agent.
#[derive(Debug)]
pub(crate) struct Agent {
    pub(crate) name: &'static str,
    /// The test that drives it.
    pub(crate) test: &'static str,
    pub(crate) package: Package,
    /// The program, below the folder that it is installed in.
    pub(crate) program: &'static str,
    /// Its table in the configuration.
    pub(crate) settings: &'static str,
    /// Whether its answer is the model's word for word.
    pub(crate) is_exact: bool,
    /// After so many seconds of silence it hangs.
    pub(crate) patience: u32,
    /// Memory that ten runs at once take at most, in bytes; so much must be free for them.
    pub(crate) ten: u64,
    /// A call of a tool that reads a file, `WORK` being the folder.
    pub(crate) reads: Option<(&'static str, &'static str)>,
    /// A call of a tool that writes a file, which it may not.
    pub(crate) writes: Option<(&'static str, &'static str)>,
    pub(crate) when_denied: End,
    /// Whether it says that it was denied something, where it answers all the same.
    pub(crate) is_warned: bool,
    pub(crate) when_unauthorised: End,
    pub(crate) when_limited: End,
    pub(crate) when_dropped: End,
    pub(crate) counts: Count,
    /// Cases that are not played, and why.
    pub(crate) left_out: &'static [(&'static str, &'static str)],
}

/// The program goes on with no session that it could be given by its id.
const FORGETFUL: (&str, &str) = ("session", "goes on with no session by its id");
const COUNTLESS: (&str, &str) = ("usage", "tells no tokens");

/// What those cannot do that only talk.
const TALKERS: &[(&str, &str)] =
    &[FORGETFUL, COUNTLESS, ("a tool", "has no tools"), ("permission denied", "has no tools")];

pub(crate) const CLAUDE: Agent = Agent {
    name: "claude",
    test: "claude_code_is_served",
    package: Package::Npm("@anthropic-ai/claude-code@2.1.330"),
    #[cfg(target_arch = "aarch64")]
    program: "node_modules/@anthropic-ai/claude-code-linux-arm64/claude",
    #[cfg(not(target_arch = "aarch64"))]
    program: "node_modules/@anthropic-ai/claude-code-linux-x64/claude",
    settings: include_str!("claude.toml"),
    is_exact: true,
    patience: 6,
    ten: 3 * GB,
    reads: Some(("Read", r#"{"file_path":"WORK/notes.txt"}"#)),
    writes: Some(("Write", r#"{"file_path":"WORK/denied.txt","content":"x"}"#)),
    when_denied: COMPLETED,
    is_warned: false,
    when_unauthorised: REFUSED,
    when_limited: QUOTA,
    when_dropped: TRANSIENT,
    counts: Count::Exact,
    left_out: &[],
};

pub(crate) const CODEX: Agent = Agent {
    name: "codex",
    test: "codex_is_served",
    package: Package::Npm("@openai/codex@0.169.0"),
    program: "node_modules/.bin/codex",
    settings: include_str!("codex.toml"),
    is_exact: true,
    patience: 6,
    ten: 2 * GB,
    reads: Some(("exec_command", r#"{"cmd":"cat WORK/notes.txt"}"#)),
    writes: Some(("exec_command", r#"{"cmd":"touch WORK/denied.txt"}"#)),
    when_denied: COMPLETED,
    is_warned: false,
    when_unauthorised: REFUSED,
    when_limited: QUOTA,
    when_dropped: TRANSIENT,
    counts: Count::Exact,
    left_out: &[],
};

pub(crate) const GEMINI: Agent = Agent {
    name: "gemini",
    test: "gemini_is_served",
    package: Package::Npm("@google/gemini-cli@0.61.0"),
    program: "node_modules/.bin/gemini",
    settings: include_str!("gemini.toml"),
    is_exact: true,
    patience: 20,
    ten: 4 * GB,
    reads: Some(("read_file", r#"{"file_path":"WORK/notes.txt"}"#)),
    writes: Some(("write_file", r#"{"file_path":"WORK/denied.txt","content":"x"}"#)),
    when_denied: COMPLETED,
    is_warned: true,
    when_unauthorised: REFUSED,
    when_limited: QUOTA,
    when_dropped: TRANSIENT,
    counts: Count::Exact,
    left_out: &[],
};

pub(crate) const COPILOT: Agent = Agent {
    name: "copilot",
    test: "copilot_is_served",
    package: Package::Npm("@github/copilot@1.0.102"),
    program: "node_modules/.bin/copilot",
    settings: include_str!("copilot.toml"),
    is_exact: true,
    patience: 20,
    ten: 5 * GB,
    reads: Some(("view", r#"{"path":"WORK/notes.txt"}"#)),
    writes: Some(("create", r#"{"path":"WORK/denied.txt","file_text":"x"}"#)),
    when_denied: COMPLETED,
    is_warned: true,
    when_unauthorised: REFUSED,
    when_limited: QUOTA,
    when_dropped: TRANSIENT,
    counts: Count::Exact,
    left_out: &[COUNTLESS],
};

pub(crate) const CONTINUE: Agent = Agent {
    name: "continue",
    test: "continue_is_served",
    package: Package::Npm("@continuedev/cli@1.5.47"),
    program: "node_modules/.bin/cn",
    settings: include_str!("continue.toml"),
    is_exact: true,
    patience: 20,
    ten: 5 * GB,
    reads: Some(("Read", r#"{"filepath":"WORK/notes.txt"}"#)),
    writes: Some(("Write", r#"{"filepath":"WORK/denied.txt","content":"x"}"#)),
    when_denied: ("failed", "empty-answer"),
    is_warned: false,
    when_unauthorised: REFUSED,
    when_limited: QUOTA,
    when_dropped: TRANSIENT,
    counts: Count::Exact,
    left_out: &[FORGETFUL, COUNTLESS],
};

pub(crate) const OPENCODE: Agent = Agent {
    name: "opencode",
    test: "opencode_is_served",
    package: Package::Npm("opencode-ai@1.18.33"),
    #[cfg(target_arch = "aarch64")]
    program: "node_modules/opencode-linux-arm64/bin/opencode",
    #[cfg(not(target_arch = "aarch64"))]
    program: "node_modules/opencode-linux-x64/bin/opencode",
    settings: include_str!("opencode.toml"),
    is_exact: true,
    patience: 45,
    ten: 10 * GB,
    reads: Some(("read", r#"{"filePath":"WORK/notes.txt"}"#)),
    writes: Some(("write", r#"{"filePath":"WORK/denied.txt","content":"x"}"#)),
    when_denied: COMPLETED,
    is_warned: false,
    when_unauthorised: REFUSED,
    when_limited: QUOTA,
    when_dropped: TRANSIENT,
    counts: Count::Exact,
    left_out: &[],
};

pub(crate) const QWEN: Agent = Agent {
    name: "qwen",
    test: "qwen_code_is_served",
    package: Package::Npm("@qwen-code/qwen-code@0.24.4"),
    program: "node_modules/.bin/qwen",
    settings: include_str!("qwen.toml"),
    is_exact: true,
    patience: 30,
    ten: 4 * GB,
    reads: Some(("read_file", r#"{"file_path":"WORK/notes.txt"}"#)),
    writes: Some(("write_file", r#"{"file_path":"WORK/denied.txt","content":"x"}"#)),
    when_denied: COMPLETED,
    is_warned: true,
    when_unauthorised: REFUSED,
    when_limited: QUOTA,
    when_dropped: COMPLETED,
    counts: Count::More,
    left_out: &[],
};

pub(crate) const LLM: Agent = Agent {
    name: "llm",
    test: "llm_is_served",
    package: Package::Pip("llm==0.36"),
    program: "bin/llm",
    settings: include_str!("llm.toml"),
    is_exact: true,
    patience: 20,
    ten: GB,
    reads: None,
    writes: None,
    when_denied: COMPLETED,
    is_warned: false,
    when_unauthorised: REFUSED,
    when_limited: QUOTA,
    when_dropped: TRANSIENT,
    counts: Count::Exact,
    left_out: TALKERS,
};

pub(crate) const AIDER: Agent = Agent {
    name: "aider",
    test: "aider_is_served",
    package: Package::Pip("aider-chat==0.86.2"),
    program: "bin/aider",
    settings: include_str!("aider.toml"),
    is_exact: false,
    patience: 45,
    ten: 4 * GB,
    reads: None,
    writes: None,
    when_denied: COMPLETED,
    is_warned: false,
    when_unauthorised: REFUSED,
    when_limited: QUOTA,
    when_dropped: TRANSIENT,
    counts: Count::Exact,
    left_out: TALKERS,
};
