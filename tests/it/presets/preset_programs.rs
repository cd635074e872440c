//! Programs that play the known ones: they record what they are given, and answer in the form in which
//! the real ones do.

use std::fs;
use std::path::PathBuf;

use crate::harness::Setup;

/// What stands in every variable of a key.
pub(crate) const API_KEY: &str = "canary-key-canary-key-canary-key-1";

/// A program that plays a known one.
pub(super) struct FakeProgram {
    pub(super) preset: &'static str,
    program: &'static str,
    pub(super) key_variable: &'static str,
    pub(super) input_mode: &'static str,
    version: &'static str,
    /// Each line that it answers with.
    answer_lines: &'static [&'static str],
}

const CLAUDE_EVENTS: &[&str] = &[
    r#"{"type":"system","subtype":"init","session_id":"s1"}"#,
    r#"{"type":"result","subtype":"success","is_error":false,"num_turns":1,"result":"it works","session_id":"s1","total_cost_usd":0.01,"usage":{"input_tokens":2,"output_tokens":3},"permission_denials":[]}"#,
];
const CODEX_EVENTS: &[&str] = &[
    r#"{"type":"thread.started","thread_id":"t1"}"#,
    r#"{"type":"turn.started"}"#,
    r#"{"type":"item.completed","item":{"id":"i1","type":"agent_message","text":"it works"}}"#,
    r#"{"type":"turn.completed","usage":{"input_tokens":2,"cached_input_tokens":0,"output_tokens":4}}"#,
];
const GEMINI_EVENTS: &[&str] = &[
    r#"{"type":"init","session_id":"g1","model":"m"}"#,
    r#"{"type":"message","role":"assistant","content":"it works","delta":true}"#,
    r#"{"type":"result","status":"success","stats":{"total_tokens":7,"input_tokens":3,"output_tokens":4}}"#,
];
const COPILOT_EVENTS: &[&str] = &[
    r#"{"type":"assistant.message","data":{"content":"it works","toolRequests":[]}}"#,
    r#"{"type":"result","sessionId":"c1","exitCode":0,"usage":{}}"#,
];
const OPENCODE_EVENTS: &[&str] = &[
    r#"{"type":"text","sessionID":"ses_1","part":{"text":"it works"}}"#,
    r#"{"type":"step_finish","sessionID":"ses_1","part":{"reason":"stop","tokens":{"input":2,"output":3,"reasoning":0,"cache":{"read":0,"write":0}},"cost":0}}"#,
];
const TEXT_ANSWER: &[&str] = &["it works"];

const fn fake_program(
    [preset, program, key_variable]: [&'static str; 3],
    [input_mode, version]: [&'static str; 2],
    answer_lines: &'static [&'static str],
) -> FakeProgram {
    FakeProgram { preset, program, key_variable, input_mode, version, answer_lines }
}

/// One for each preset that names a program.
pub(super) const FAKE_PROGRAMS: [FakeProgram; 11] = [
    fake_program(["aider", "aider", "OPENAI_API_KEY"], ["file", "aider 0.86.2"], TEXT_ANSWER),
    fake_program(
        ["claude-code", "claude", "ANTHROPIC_API_KEY"],
        ["stdin", "2.1.330 (Claude Code)"],
        CLAUDE_EVENTS,
    ),
    fake_program(["codex", "codex", "CODEX_API_KEY"], ["stdin", "codex-cli 0.169.0"], CODEX_EVENTS),
    fake_program(["continue", "cn", "ANTHROPIC_API_KEY"], ["args", "1.5.47"], CLAUDE_EVENTS),
    fake_program(
        ["copilot", "copilot", "COPILOT_GITHUB_TOKEN"],
        ["stdin", "1.0.102"],
        COPILOT_EVENTS,
    ),
    fake_program(
        ["cursor-agent", "cursor-agent", "CURSOR_API_KEY"],
        ["args", "2026.1.1"],
        &[r#"{"type":"result","is_error":false,"result":"it works","session_id":"x"}"#],
    ),
    fake_program(["gemini", "gemini", "GEMINI_API_KEY"], ["stdin", "0.61.0"], GEMINI_EVENTS),
    fake_program(["goose", "goose", "OPENAI_API_KEY"], ["stdin", "1.9.0"], TEXT_ANSWER),
    fake_program(["llm", "llm", "OPENAI_API_KEY"], ["stdin", "llm, version 0.36"], TEXT_ANSWER),
    fake_program(
        ["opencode", "opencode", "ANTHROPIC_API_KEY"],
        ["stdin", "1.18.33"],
        OPENCODE_EVENTS,
    ),
    fake_program(["qwen", "qwen", "OPENAI_API_KEY"], ["stdin", "0.24.4"], CLAUDE_EVENTS),
];

impl FakeProgram {
    /// The program: records, answers, and tells its version; a file beside it may say another one.
    fn script(&self) -> String {
        let Self { version, answer_lines: answer, .. } = self;
        let lines: String = answer.iter().map(|line| format!("{line}\n")).collect();
        format!(
            "#!/bin/sh\n\
             if [ \"$1\" = --version ]; then mkdir -p \"$HOME/.cache\"; cat \"$0.version\" 2>/dev/null || echo '{version}'; exit; fi\n\
             printf '%s\\n' \"$@\" > \"$HOME/argv\"\n\
             env > \"$HOME/env\"\n\
             cat > \"$HOME/stdin\"\n\
             for word in \"$@\"; do [ ! -f \"$word\" ] || cat \"$word\" > \"$HOME/file\"; done\n\
             cat <<'LINES'\n{lines}LINES\n"
        )
    }

    /// The home that the service makes for its agent.
    pub(super) fn home(&self, setup: &Setup) -> PathBuf {
        setup.test_folder().join("state/algonius/homes").join(self.preset)
    }
}

/// A machine with all of the programs, and with every key in the environment.
pub(crate) fn install_all_programs_and_keys(setup: Setup) -> Setup {
    let names: Vec<_> = FAKE_PROGRAMS.iter().map(|fake| fake.program).collect();
    let setup = install_programs(setup, &names);
    let key_variables = FAKE_PROGRAMS.iter().map(|fake| fake.key_variable).chain(["UNLISTED_KEY"]);
    key_variables.fold(setup, |setup, key| setup.env(key, API_KEY))
}

/// A machine with some of the programs.
pub(crate) fn install_programs(setup: Setup, programs: &[&str]) -> Setup {
    let folder = setup.test_folder().display().to_string();
    let path = format!("{folder}:/usr/local/bin:/usr/bin:/bin");
    let fakes = FAKE_PROGRAMS.iter().filter(|fake| programs.contains(&fake.program));
    let setup =
        fakes.fold(setup, |setup, fake| setup.with_executable(fake.program, &fake.script()));
    setup.env("PATH", &path)
}

/// Has a program tell another version.
pub(super) fn set_program_version(setup: &Setup, program: &str, version: &str) {
    fs::write(setup.test_folder().join(format!("{program}.version")), version).unwrap();
}

/// What a program was given.
pub(super) struct RecordedInvocation {
    pub(super) argv: String,
    pub(super) env: String,
    pub(super) stdin: String,
    pub(super) file_content: String,
}

impl RecordedInvocation {
    /// Of the agent of this id.
    pub(super) fn read_for_agent(setup: &Setup, id: &str) -> Self {
        let file = |name: &str| setup.read_file(&format!("state/algonius/homes/{id}/{name}"));
        Self {
            argv: file("argv"),
            env: file("env"),
            stdin: file("stdin"),
            file_content: file("file"),
        }
    }
}
