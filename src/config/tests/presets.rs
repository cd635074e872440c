//! Tests of presets: each one merged under an agent, the rules of merging, and custom presets.

use crate::config::presets::available_presets;
use crate::platform::template::{AttemptPaths, ExecutionValues, Template};

use super::*;

/// Variable that rewrites the snapshot instead of comparing.
const REWRITE_VARIABLE: &str = "ALGONIUS_REWRITE_SNAPSHOTS";

/// Returns the command line of an agent and its environment for the text `PROMPT`.
fn render_command_and_env(agent: &ConfiguredAgent) -> String {
    let program = agent.program().unwrap();
    let values = ExecutionValues {
        input: "PROMPT".to_owned(),
        paths: AttemptPaths { input_file: "/run/input.txt".into(), ..AttemptPaths::default() },
        model: program.runtime_settings.model.clone().unwrap_or_default(),
        home: PathBuf::from("/HOME"),
        ..ExecutionValues::default()
    };
    let words = program.args.iter().map(|arg| Template::new(arg).unwrap().render(&values).unwrap());
    let words: Vec<_> = words.map(|word| format!("{word:?}")).collect();
    let variables = program.env.iter().filter(|(name, _)| *name != "HOME");
    let variables = variables.map(|(name, variable)| match variable.secrecy {
        VariableSecrecy::Secret => format!("  {name}=(secret)\n"),
        VariableSecrecy::Plain => format!("  {name}={}\n", variable.value),
    });
    let command = program.command.display();
    format!("  {command} {}\n{}", words.join(" "), variables.collect::<String>())
}

/// Returns an agent of a preset with further lines; disabled, because this machine has no such program.
fn agent_with_preset(preset: &str, lines: &str) -> ConfiguredAgent {
    let (command, model_args_line) = match preset {
        "generic" => ("command = \"cat\"\n", "model_args = [\"--model={{ model }}\"]\n"),
        "continue" => ("", "model_args = [\"--model\", \"{{ model }}\"]\n"),
        _ => ("", ""),
    };
    let data_dir = "[server]\ndata_dir = \"/var/lib/algonius\"\n";
    let text = format!(
        "{data_dir}[agents.a]\nenabled = false\npreset = \"{preset}\"\n{command}{model_args_line}{lines}"
    );
    load_settings(&text).agents.remove(0)
}

#[test]
fn preset_command_lines_match_the_recorded_ones() {
    let mut rendered_lines = String::new();
    for preset_summary in available_presets(None).unwrap() {
        for access in ["read-only", "read-write"] {
            for model in ["", "model = \"MODEL\"\n"] {
                let agent = agent_with_preset(
                    &preset_summary.name,
                    &format!("access = \"{access}\"\n{model}"),
                );
                let model_note = if model.is_empty() { "" } else { ", a model" };
                rendered_lines.push_str(&format!(
                    "{}, {access}{model_note}\n{}",
                    preset_summary.name,
                    render_command_and_env(&agent)
                ));
            }
        }
    }
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/config/tests/presets.txt");
    if std::env::var_os(REWRITE_VARIABLE).is_some() {
        fs::write(&file, &rendered_lines).unwrap();
    }
    let recorded_lines = fs::read_to_string(&file).unwrap_or_default();
    assert!(
        recorded_lines == rendered_lines,
        "another command line than is kept; {REWRITE_VARIABLE}=1 keeps it\n{rendered_lines}"
    );
}

#[test]
fn each_preset_but_generic_has_a_home_and_a_version() {
    for preset_summary in available_presets(None)
        .unwrap()
        .iter()
        .filter(|preset_summary| preset_summary.name != "generic")
    {
        let agent = agent_with_preset(&preset_summary.name, "");
        let program = agent.program().unwrap();
        let ConfiguredAgent { spec, preset_metadata: metadata, .. } = &agent;
        assert_eq!(
            (metadata, spec.access),
            (&preset_summary.metadata, Access::ReadOnly),
            "{}",
            preset_summary.name
        );
        let home = program.runtime_settings.agent_home.clone().unwrap().path;
        assert_eq!(home, Path::new("/var/lib/algonius/homes/a"), "{}", preset_summary.name);
        assert_eq!(program.env["HOME"].value, "/var/lib/algonius/homes/a");
        assert!(
            program.success_criteria.require_output && !metadata.install_instructions.is_empty(),
            "{}",
            preset_summary.name
        );
        assert!(
            !metadata.credential_variables.is_empty() && !metadata.title.is_empty(),
            "{}",
            preset_summary.name
        );
        let version = program.runtime_settings.version_check.clone().unwrap();
        assert_eq!(
            version.tested_versions.is_some(),
            metadata.is_verified,
            "{}",
            preset_summary.name
        );
        assert_eq!(
            program.runtime_settings.preset.clone().unwrap().is_verified,
            metadata.is_verified
        );
    }
}

#[test]
fn the_file_overrides_the_preset_key_by_key() {
    let agent = agent_with_preset(
        "gemini",
        "args = [\"--mine\"]\naccess_args.read-only = [\"--tight\"]\nidle_timeout = 7\n\
         success = { fail_regex = \"no\" }\nenv = { TERM = \"vt100\", OWN = \"1\" }\n\
         home_files = { \"x\" = \"y\" }\n",
    );
    let (spec, program) = (&agent.spec, agent.program().unwrap());
    assert_eq!(program.args, ["--mine", "--tight"]);
    assert_eq!(spec.limits.timeouts.idle, Some(Duration::from_secs(7)));
    assert!(
        program.success_criteria.require_output && program.success_criteria.fail_regex.is_some()
    );
    let value = |name: &str| program.env[name].value.as_str();
    assert_eq!([value("TERM"), value("OWN"), value("NO_COLOR")], ["vt100", "1", "1"]);
    let home = program.runtime_settings.agent_home.clone().unwrap();
    let files: Vec<_> = home.initial_files.keys().map(String::as_str).collect();
    assert_eq!(files, [".gemini/experiments.json", ".gemini/settings.json", "x"]);
}

/// Test of a program that exits with 0 after failures too.
#[test]
fn aider_fails_if_its_output_ends_with_an_error() {
    let failure_regex = agent_with_preset("aider", "")
        .program()
        .unwrap()
        .success_criteria
        .fail_regex
        .clone()
        .unwrap();
    let rate_limit_lines = "litellm.RateLimitError: RateLimitError: OpenAIException - rate limit \n\
                   exceeded\nThe API provider has rate limited you. Try again later.\n";
    let retry_line = "Retrying in 0.5 seconds...\n";
    for (text, has_failed) in [
        (rate_limit_lines.to_owned(), true),
        (format!("{rate_limit_lines}{retry_line}{rate_limit_lines}"), true),
        (format!("{rate_limit_lines}{retry_line}"), false),
        (
            format!("{rate_limit_lines}{retry_line}\nIt works.\n\nTokens: 9 sent, 3 received.\n"),
            false,
        ),
        (format!("{rate_limit_lines}\nTokens: 9 sent, 3 received.\n"), false),
        ("An answer about errors.\n\nTokens: 9 sent, 3 received.\n".to_owned(), false),
    ] {
        assert_eq!(failure_regex.is_match(&text), has_failed, "{text}");
    }
}

#[test]
fn a_custom_preset_replaces_a_shipped_one() {
    let folder = tempfile::tempdir().unwrap();
    let presets = folder.path().join("presets");
    fs::create_dir(&presets).unwrap();
    let preset_head =
        "[about]\ntitle = \"Mine\"\nverified = true\n[agent]\ncommand = \"cat\"\nargs = [";
    fs::write(presets.join("claude-code.toml"), format!("{preset_head}\"-u\"]\n")).unwrap();
    fs::write(presets.join("mine.toml"), format!("{preset_head}\"-v\"]\n")).unwrap();
    let text = "[agents.a]\npreset = \"claude-code\"\n[agents.b]\npreset = \"mine\"\n";
    let settings = load_in_folder(folder.path(), text).unwrap().settings;
    let [a, b] = &settings.agents[..] else { panic!("{settings:?}") };
    assert_eq!([&a.program().unwrap().args[..], &b.program().unwrap().args[..]], [["-u"], ["-v"]]);
    assert_eq!(a.preset_metadata.title, "Mine");
    for file in [presets.clone(), presets.join("claude-code.toml"), presets.join("mine.toml")] {
        assert!(settings.referenced_files.contains(&file), "{:?}", settings.referenced_files);
    }
    let custom_presets: Vec<_> = available_presets(Some(&presets))
        .unwrap()
        .into_iter()
        .filter(|it| it.file.is_some())
        .collect();
    let names: Vec<_> =
        custom_presets.iter().map(|preset_summary| preset_summary.name.as_str()).collect();
    assert_eq!(names, ["claude-code", "mine"]);
    let other_folder = format!("[server]\npresets = \"elsewhere\"\n{text}");
    assert!(load_in_folder(folder.path(), &other_folder).is_err(), "`mine` is in another folder");
    fs::rename(&presets, folder.path().join("elsewhere")).unwrap();
    assert!(load_in_folder(folder.path(), &other_folder).is_ok());
}

#[test]
fn preset_errors_are_reported_at_their_own_position() {
    let folder = tempfile::tempdir().unwrap();
    let presets = folder.path().join("presets");
    fs::create_dir(&presets).unwrap();
    let fault_messages = |preset: &str, line: &str| -> Vec<String> {
        fs::write(presets.join("mine.toml"), preset).unwrap();
        let text = format!("[agents.a]\npreset = \"mine\"\n{line}");
        let faults = load_in_folder(folder.path(), &text).map(|checked| checked.warnings);
        let faults = faults.unwrap_or_else(|faults| faults.iter().cloned().collect());
        let file_name =
            |fault: &ConfigFault| fault.file.file_name().unwrap().to_string_lossy().into_owned();
        let fault_text_with_file_name =
            |fault: &ConfigFault| fault_text(fault).replacen('c', &file_name(fault), 1);
        faults.iter().map(fault_text_with_file_name).collect()
    };
    let about = "[about]\ntitle = \"Mine\"\nverified = true\n";
    let preset_text = format!("{about}[agent]\ncommand = \"cat\"\n");
    for (preset, line, expected) in [
        (
            format!("{preset_text}timeout = 5\n"),
            "",
            "mine.toml:6:11: error: agents.a.timeout = 5: must be 60 to 3600 seconds",
        ),
        (format!("{preset_text}timeout = 5\n"), "timeout = 60\n", ""),
        (
            format!("{preset_text}tiemout = 60\n"),
            "",
            "mine.toml:6:1: error: agents.a.tiemout: unknown key; did you mean `timeout`?",
        ),
        (
            format!("{preset_text}[agent.env]\nX = []\n"),
            "",
            "mine.toml:7:5: error: agents.a.env.X: must be text in quotes, not a list",
        ),
        (
            format!("{about}verifed = true\n[agent]\ncommand = \"cat\"\n"),
            "",
            "mine.toml:4:1: error: about.verifed: unknown key; did you mean `verified`?",
        ),
        ("[about\n".to_owned(), "", "mine.toml:1:7: error: unclosed table, expected `]`"),
        (
            preset_text.replace("true", "false"),
            "",
            "supervisor.toml:2:10: warning: agents.a.preset = \"mine\": this preset was written from documents, and never run; look closely at the first answers",
        ),
    ] {
        let expected: Vec<&str> =
            Some(expected).filter(|expected| !expected.is_empty()).into_iter().collect();
        assert_eq!(fault_messages(&preset, line), expected, "{preset}");
    }
    assert_eq!(
        super::fault_messages("[agents.a]\npreset = \"claude-cod\"\nnonsense = 1\n"),
        [
            "c:2:10: error: agents.a.preset = \"claude-cod\": there is no such preset; did you mean `claude-code`?"
        ],
    );
}

#[test]
fn settings_of_the_program_environment_are_checked() {
    let messages =
        |line: &str| fault_messages(&format!("[server]\ndata_dir = \"/var/x\"\n{CAT}{line}\n"));
    for (line, expected) in [
        ("model = \"m\"", "c:3:1: error: agents.a.model: needs `model_args` with `{{ model }}`"),
        (
            "model = \"-m\"\nmodel_args = [\"{{ model }}\"]",
            "c:5:9: error: agents.a.model = \"-m\": must not begin with `-`",
        ),
        (
            "args = [\"{{ model }}\"]",
            "c:5:9: error: agents.a.args[0]: `{{ model }}` has a value where `model` is given only",
        ),
        (
            "home = \"per-agen\"",
            "c:5:8: error: agents.a.home = \"per-agen\": must be \"shared\" or \"per-agent\"; did you mean `per-agent`?",
        ),
        (
            "home_files = { a = \"b\" }",
            "c:3:1: error: agents.a.home_files: has a meaning with `home = \"per-agent\"` only",
        ),
        (
            "home = \"per-agent\"\nhome_files = { \"../a\" = \"b\" }",
            "c:6:16: error: agents.a.home_files.../a: must be a path in the home, without `..`",
        ),
        (
            "home = \"per-agent\"\nenv = { HOME = \"/x\" }",
            "c:3:1: error: agents.a.env.HOME: the agent has a home of its own already; leave it out, or set `home = \"shared\"`",
        ),
        (
            "program_version = { tested = \"2\" }",
            "c:5:30: error: agents.a.program_version.tested = \"2\": must be bounds with commas between them; write `>=2.1, <3`",
        ),
        (
            "env_allow = [\"A B\"]",
            "c:5:14: error: agents.a.env_allow[0] = \"A B\": is not the name of a variable",
        ),
        (
            "access_args = { read = [] }",
            "c:5:17: error: agents.a.access_args.read: unknown key; known: read-only, read-write",
        ),
    ] {
        assert_eq!(messages(line), [expected], "{line}");
    }
}

#[test]
fn passed_through_variables_with_secrets_are_masked() {
    let lines =
        "env = { SHORT = \"mine\" }\nenv_allow = [\"MY_KEY\", \"SHORT\", \"HOME\", \"GONE\"]\n";
    let settings = load_settings(&format!("{CAT}{lines}"));
    let env = &settings.agents[0].program().unwrap().env;
    let value = |name: &str| env.get(name).map(|variable| variable.value.as_str());
    assert_eq!(value("MY_KEY"), Some(CANARY));
    assert_eq!([value("SHORT"), value("GONE")], [Some("mine"), None]);
    assert_eq!(settings.secrecy.secrets, [CANARY]);
}
