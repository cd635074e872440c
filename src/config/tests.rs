//! Tests of the loader with whole files, and their common functions.

use std::ffi::OsString;
use std::fs;
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use algonius_actors::model::access::principal::Right;
use algonius_actors::model::agent::{
    Access, AgentProfile, AgentSpec, Capacity, OverridePolicy, PhaseTimeouts, ProgramWorkerSpec,
    RetrySpec, SizeLimits, Skill, WorkLimits, WorkerSpec,
};
use algonius_actors::model::id::AgentId;
use algonius_actors::model::program::{InputMethod, OutputMethod, VariableSecrecy};
use proptest::prelude::*;

use super::keys::programs::environment::{ExpandError, expand};
use super::*;

mod access;
mod agent;
mod host;
mod inputs;
mod model_agents;
mod presets;
mod pressure;
mod redaction;
mod retention;
mod schedules;
mod schema;
mod shipped_files;
mod tls;

/// Agent to which most tests add a line.
const CAT: &str = "[agents.a]\ncommand = \"cat\"\n";
/// Text that must not be printed anywhere.
const CANARY: &str = "canary-canary-canary-canary-canary-1";

/// Environment of the tests.
fn test_env(name: &str) -> Option<OsString> {
    let value = match name {
        "LATIN" => return Some(OsString::from_vec(b"caf\xe9".to_vec())),
        "HOME" => "/people/me",
        "PATH" => "/nowhere:/usr/bin:/bin",
        "MY_KEY" | "CI_TOKEN" | "SAME_TOKEN" => CANARY,
        "BAD_TOKEN" => "canary canary canary canary canary 1",
        "LINE_TOKEN" => "canary-canary-canary-canary-32-c\n",
        "NEARLY_TOKEN" => "canary-canary-canary-canary-31-\n",
        "SHORT" => "abc",
        "EMPTY" => "",
        "SEVEN" => "seven-7",
        _ => return None,
    };
    Some(value.into())
}

/// Loads a text as `supervisor.toml` of a folder of its own.
fn load_text(text: &str) -> Result<LoadedConfig, ConfigFaults> {
    let folder = tempfile::tempdir().unwrap();
    load_in_folder(folder.path(), text)
}

/// Loads a text as `supervisor.toml` of a folder.
fn load_in_folder(folder: &Path, text: &str) -> Result<LoadedConfig, ConfigFaults> {
    let file = folder.join("supervisor.toml");
    fs::write(&file, text).unwrap();
    load(&file, &test_env)
}

/// Returns the faults of a text, each from its position on.
fn fault_messages(text: &str) -> Vec<String> {
    let faults = match load_text(text) {
        Ok(loaded) => loaded.warnings,
        Err(faults) => faults.iter().cloned().collect(),
    };
    faults.iter().map(fault_text).collect()
}

/// Returns the text of a fault without the path of the file, which differs from test to test.
fn fault_text(fault: &ConfigFault) -> String {
    ConfigFault { file: PathBuf::from("c"), ..fault.clone() }.to_string()
}

/// Returns the settings of a text without an error.
fn load_settings(text: &str) -> Settings {
    match load_text(text) {
        Ok(loaded) => loaded.settings,
        Err(faults) => panic!("{faults}"),
    }
}

/// Checks the faults of `cat` with further lines; the first of them is line 3.
fn assert_agent_faults(rows: &[(&str, &[&str])]) {
    for (lines, expected) in rows {
        assert_eq!(fault_messages(&format!("{CAT}{lines}\n")), *expected, "{lines}");
    }
}

#[test]
fn a_minimal_file_gives_the_default_settings() {
    let Settings { server, default_agent, callers, secrecy, observability, .. } =
        load_settings(CAT);
    let data_dir = PathBuf::from("/people/me/.local/state/algonius");
    let expected = ServerSettings {
        tls: None,
        listen_address: SocketAddr::from(([127, 0, 0, 1], 8080)),
        public: PublicSettings { url: None, is_card_public: true },
        token_file: data_dir.join("token"),
        runtime_dir: server.runtime_dir.clone(),
        data_dir,
        request_limits: RequestLimits {
            max_body_bytes: 4 << 20,
            max_connections: 1024,
            header_timeout: Duration::from_secs(10),
            body_timeout: Duration::from_secs(30),
            write_timeout: Duration::from_secs(30),
        },
        drain_timeout: Duration::from_secs(30),
        programs: ProgramSettings {
            max_output_memory_bytes: 256 << 20,
            reattach_grace: Duration::from_secs(60),
            agent_uid_range: None,
        },
        durability: DurabilitySetting::Process,
        configuration: ConfigFileSettings {
            reloads_on_change: true,
            presets_dir: server.configuration.presets_dir.clone(),
        },
        request_access: RequestAccessSettings::default(),
    };
    assert_eq!(server, expected);
    assert_eq!(
        observability.log,
        LogSettings { level: tracing::Level::INFO, format: LogFormat::Auto }
    );
    assert_eq!(default_agent, AgentId::new("a").ok());
    assert!(callers.tokens.is_empty() && secrecy.secrets.is_empty());
}

#[test]
fn an_agent_of_one_line_gets_every_default() {
    let agent = load_settings(CAT).agents.remove(0);
    let (spec, program) = (agent.spec.clone(), agent.program().unwrap().clone());
    let seconds = Duration::from_secs;
    let skill = Skill {
        id: "a".into(),
        name: "a".into(),
        description: "The agent `a`.".into(),
        tags: vec!["a".into()],
        ..Skill::default()
    };
    let expected = AgentSpec {
        id: AgentId::new("a").unwrap(),
        profile: AgentProfile {
            name: "a".into(),
            description: skill.description.clone(),
            version: "1.0.0".into(),
            skills: vec![skill],
        },
        enabled: true,
        access: Access::ReadOnly,
        worker: WorkerSpec::Program(ProgramWorkerSpec {
            heartbeat_interval: Some(seconds(30)),
            ..ProgramWorkerSpec::default()
        }),
        limits: WorkLimits {
            capacity: Capacity {
                max_running: NonZeroU32::new(10),
                max_waiting: 10,
                queue_timeout: seconds(1800),
            },
            timeouts: PhaseTimeouts {
                start: seconds(30),
                run: seconds(300),
                idle: None,
                grace: seconds(5),
                question: seconds(86_400),
            },
            sizes: SizeLimits { max_input_bytes: 1 << 20, max_output_bytes: 10 << 20 },
        },
        retry: RetrySpec::default(),
        quota: Default::default(),
        budget: Default::default(),
        dedup_window: None,
        override_policy: OverridePolicy::default(),
        endpoint_config: Arc::default(),
    };
    assert_eq!(*spec, expected);
    assert_eq!(
        (program.input_method, program.output_method),
        (InputMethod::Stdin, OutputMethod::Stdout)
    );
    assert!(program.command.ends_with("bin/cat") && program.command.is_absolute());
    assert_eq!(program.working_dir, std::env::current_dir().unwrap());
    let file_templates = [&program.input_file_template, &program.output_file_template];
    assert_eq!(file_templates, ["input.txt", "output.txt"]);
    assert_eq!(
        [&program.success_criteria.exit_codes, &program.failure_rules.transient.exit_codes],
        [&[0], &[75]]
    );
}

#[test]
fn all_errors_are_reported_in_the_order_of_the_file() {
    let text = r#"
[server]
listen = "localhost"
max_conections = 5

[agents.echo]
command = "cat"
timeout = 5
acess = "read-only"
access = "read-wirte"
args = ["{{ inptu }}", 7]

[agents."no id"]
command = "cat"

[agents.gone]
command = "no-such-program"
max_concurrent = "many"

[limit]
timeout_max = 5
"#;
    assert_eq!(
        fault_messages(text),
        [
            "c:3:10: error: server.listen = \"localhost\": must be an address and a port, such as \"127.0.0.1:8080\"",
            "c:4:1: error: server.max_conections: unknown key; did you mean `max_connections`?",
            "c:8:11: error: agents.echo.timeout = 5: must be 60 to 3600 seconds",
            "c:9:1: error: agents.echo.acess: unknown key; did you mean `access`?",
            "c:10:10: error: agents.echo.access = \"read-wirte\": must be \"read-only\" or \"read-write\"; did you mean `read-write`?",
            "c:11:9: error: agents.echo.args[0]: `inptu` is not known to templates; did you mean `input`?",
            "c:11:24: error: agents.echo.args[1] = 7: must be text in quotes, not a whole number",
            "c:13:9: error: agents.no id: `no id` is not an id: 1 to 64 of the characters A-Z a-z 0-9 _ -",
            "c:17:11: warning: agents.gone.command = \"no-such-program\": no such program on the PATH; install it; the agent is unavailable until then",
            "c:18:18: error: agents.gone.max_concurrent: must be a whole number, not text",
            "c:20:2: error: limit: unknown key; did you mean `limits`?",
        ]
    );
}

#[test]
fn all_syntax_errors_are_reported_without_follow_up_errors() {
    let lines = fault_messages("[agents.a]\ncommand = cat\ntimeout = \n[agents.a]\n");
    let positions: Vec<_> =
        lines.iter().map(|line| line.rsplit(": ").nth(2).unwrap_or(line)).collect();
    assert_eq!(lines.len(), 3, "{lines:#?}");
    assert!(positions.iter().all(|position| position.starts_with("c:")), "{positions:?}");
    assert_eq!(lines[2], "c:4:9: error: duplicate key");
}

#[test]
fn an_unreadable_file_is_reported_as_a_whole() {
    let faults = load(Path::new("/no/such.toml"), &test_env).unwrap_err();
    let expected = "/no/such.toml: error: cannot be read: No such file or directory (os error 2)";
    assert_eq!((faults.to_string().as_str(), faults.error_count()), (expected, 1));
    assert_eq!(fault_messages(""), ["c:1:1: error: agents: one agent at least is needed"]);
}
