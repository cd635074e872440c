//! `algonius agents add`, as a person types it: found, too old, without a key, not found.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use super::preset_programs::{self, API_KEY, FAKE_PROGRAMS, RecordedInvocation};
use crate::doctor::install_unit;
use crate::harness::{Setup, fake_agent_config};

/// A configuration that its writer has put comments into.
const CONFIG: &str = "# mine\n[agents.echo]   # the first\ncommand = 'cat'\n# the end";

fn setup_with_all_programs() -> Setup {
    preset_programs::install_all_programs_and_keys(Setup::new(CONFIG))
}

/// The words of `agents add` for this configuration.
fn agents_add_arguments<'w>(config: &'w str, arguments: &[&'w str]) -> Vec<&'w str> {
    [&["agents", "add"], arguments, &["--config", config]].concat()
}

#[tokio::test]
async fn an_added_agent_is_loaded_and_probed() {
    let service = setup_with_all_programs().start().await;
    let config = service.setup.write_config().display().to_string();
    fs::set_permissions(&config, fs::Permissions::from_mode(0o640)).unwrap();
    let config_before = fs::read_to_string(&config).unwrap();
    let arguments = ["claude-code", "--model", "a \"large\" one", "--id", "helper", "--yes"];
    let output = service.run_command(&agents_add_arguments(&config, &arguments), "").await;
    assert_eq!(output.exit_code, Some(0), "{output:?}");
    for part in [
        "good     agent helper, program: ",
        "2.1.330",
        "ANTHROPIC_API_KEY is set",
        "it works",
        "a probe of operator",
    ] {
        assert!(output.stdout.contains(part), "{part}: {output:?}");
    }
    let config_after = fs::read_to_string(&config).unwrap();
    let table = "[agents.helper]\npreset = \"claude-code\"\nmodel = \"a \\\"large\\\" one\"\n";
    assert_eq!(config_after, format!("{config_before}\n\n{table}"));
    assert_eq!(fs::metadata(&config).unwrap().permissions().mode() & 0o777, 0o640);
    let argv = RecordedInvocation::read_for_agent(&service.setup, "helper").argv;
    assert!(argv.ends_with("--model\na \"large\" one\n"), "{argv}");
    let repeated_output = service.run_command(&agents_add_arguments(&config, &arguments), "").await;
    assert_eq!(
        (repeated_output.exit_code, fs::read_to_string(&config).unwrap()),
        (Some(4), config_after)
    );
    let expected_error =
        "there is an agent `helper` already\n  hint: give this one another name by --id";
    assert!(repeated_output.stderr.contains(expected_error), "{repeated_output:?}");
}

#[tokio::test]
async fn an_agent_is_added_with_its_access_and_folder() {
    let service = setup_with_all_programs().start().await;
    let config = service.setup.write_config().display().to_string();
    let folder = service.setup.test_folder().join("work");
    fs::create_dir(&folder).unwrap();
    let folder = folder.display().to_string();
    let arguments = ["codex", "--read-write", "--working-dir", &folder, "--yes", "--json"];
    let output = service.run_command(&agents_add_arguments(&config, &arguments), "").await;
    assert_eq!(output.exit_code, Some(0), "{output:?}");
    let report: Value = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!((&report["agent"], &report["applied"]), (&json!("codex"), &json!(true)), "{report}");
    assert!(report["probe"]["answer"].as_str().unwrap().contains("it works"), "{report}");
    assert_eq!(report["probe"]["good"], json!(true), "{report}");
    assert!(report["table"].as_str().unwrap().contains("access = \"read-write\"\nworking_dir = "));
    let env = RecordedInvocation::read_for_agent(&service.setup, "codex").env;
    assert!(env.contains(&format!("PWD={folder}")), "{env}");
}

#[tokio::test]
async fn adding_an_agent_without_its_program_writes_nothing() {
    let setup = preset_programs::install_programs(Setup::new(CONFIG), &[]);
    let config = setup.write_config().display().to_string();
    let config_before = fs::read_to_string(&config).unwrap();
    let output =
        setup.run_command(&agents_add_arguments(&config, &["claude-code", "--yes"]), "").await;
    assert_eq!(
        (output.exit_code, fs::read_to_string(&config).unwrap()),
        (Some(1), config_before),
        "{output:?}"
    );
    assert!(
        output.stdout.contains("BAD      agent claude-code, program: claude is not on the PATH")
    );
    assert!(output.stdout.contains("npm install -g @anthropic-ai/claude-code"), "{output:?}");
    let expected_error = "nothing was written, because a prerequisite is missing\n  hint: ";
    assert!(output.stderr.contains(expected_error), "{output:?}");
}

/// As the doctor does: keys and programs of the terminal are none of the service.
#[tokio::test]
async fn an_added_agent_is_checked_as_the_installed_service() {
    let setup = setup_with_all_programs();
    let config = setup.write_config().display().to_string();
    install_unit(&setup, "/usr/bin:/bin").await;
    let output = setup.run_command(&agents_add_arguments(&config, &["codex", "--yes"]), "").await;
    assert_eq!(output.exit_code, Some(1), "{output:?}");
    assert!(output.stdout.contains("algonius.service starts it on "), "{output:?}");
    assert!(output.stdout.contains("BAD      agent codex, program: codex is not on the PATH"));
    install_unit(&setup, &format!("{}:/usr/bin:/bin", setup.test_folder().display())).await;
    let output = setup.run_command(&agents_add_arguments(&config, &["codex", "--yes"]), "").await;
    assert_eq!(output.exit_code, Some(0), "{output:?}");
    assert!(
        output.stdout.contains("warning  agent codex, key: the agent has no key"),
        "{output:?}"
    );
    let file = setup.config_sibling_path("environment");
    fs::write(&file, format!("CODEX_API_KEY={API_KEY}\n")).unwrap();
    let output = setup
        .run_command(&agents_add_arguments(&config, &["codex", "--id", "second", "--yes"]), "")
        .await;
    assert_eq!(output.exit_code, Some(0), "{output:?}");
    assert!(
        output.stdout.contains("CODEX_API_KEY is set") && !output.stdout.contains(API_KEY),
        "{output:?}"
    );
}

/// What it answers is told with its hint, as `agents test` tells it.
#[tokio::test]
async fn an_added_agent_that_does_not_work_is_reported() {
    let setup = setup_with_all_programs()
        .with_executable("codex", "#!/bin/sh\necho 'no licence' >&2\nexit 3\n");
    let service = setup.start().await;
    let config = service.setup.write_config().display().to_string();
    let output = service.run_command(&agents_add_arguments(&config, &["codex", "--yes"]), "").await;
    assert_eq!(output.exit_code, Some(5), "{output:?}");
    for part in ["hint: ", "(agent-exit, agent)", "standard error: no licence"] {
        assert!(output.stderr.contains(part), "{part}: {output:?}");
    }
    assert!(fs::read_to_string(&config).unwrap().contains("[agents.codex]"));
}

#[tokio::test]
async fn an_old_version_and_a_missing_key_are_warnings_with_fixes() {
    let setup = preset_programs::install_programs(Setup::new(CONFIG), &["claude"]);
    preset_programs::set_program_version(&setup, "claude", "1.0.9");
    let config = setup.write_config().display().to_string();
    let output =
        setup.run_command(&agents_add_arguments(&config, &["claude-code", "--yes"]), "").await;
    assert_eq!(output.exit_code, Some(0), "{output:?}");
    for part in [
        "warning  agent claude-code, version: version 1.0.9 was not tested: >=2.1, <3 was",
        "warning  agent claude-code, key: the agent has no key for its model",
        "fix: set ANTHROPIC_API_KEY or CLAUDE_CODE_OAUTH_TOKEN or ",
        "homes/claude-code claude /login",
        "no service runs here yet",
        "algonius serve --config ",
    ] {
        assert!(output.stdout.contains(part), "{part}: {output:?}");
    }
    assert!(fs::read_to_string(&config).unwrap().ends_with("preset = \"claude-code\"\n"));
    assert!(!setup.test_folder().join("state/algonius/homes").exists(), "made by who only looked");
}

#[tokio::test]
async fn an_agent_is_not_added_unconfirmed_or_if_refused() {
    let service = setup_with_all_programs().start().await;
    let config = service.setup.write_config().display().to_string();
    let config_before = fs::read_to_string(&config).unwrap();
    let unconfirmed_output =
        service.run_command(&agents_add_arguments(&config, &["codex"]), "").await;
    assert_eq!(unconfirmed_output.exit_code, Some(1), "{unconfirmed_output:?}");
    assert!(unconfirmed_output.stderr.contains("[agents.codex]"), "{unconfirmed_output:?}");
    let unknown_preset_output =
        service.run_command(&agents_add_arguments(&config, &["nobody", "--yes"]), "").await;
    assert_eq!(unknown_preset_output.exit_code, Some(4), "{unknown_preset_output:?}");
    assert!(
        unknown_preset_output.stderr.contains("there is no such preset"),
        "{unknown_preset_output:?}"
    );
    // Who types has a program that the service does not find.
    let folder = service.setup.test_folder().join("mine");
    fs::create_dir(&folder).unwrap();
    fs::rename(service.setup.test_folder().join("qwen"), folder.join("qwen")).unwrap();
    let path = format!("{}:/usr/bin:/bin", folder.display());
    let url = format!("http://{}", service.address);
    let env = [("PATH", path.as_str()), ("ALGONIUS_URL", &url)];
    let arguments = agents_add_arguments(&config, &["qwen", "--yes"]);
    let refused_output = service.setup.run_command_with_env(&arguments, "", &env).await;
    assert_eq!(refused_output.exit_code, Some(4), "{refused_output:?}");
    assert!(refused_output.stderr.contains("no such program on the PATH"), "{refused_output:?}");
    assert_eq!(fs::read_to_string(&config).unwrap(), config_before);
}

#[tokio::test]
async fn a_service_of_another_configuration_is_not_mistaken() {
    let service = setup_with_all_programs().start().await;
    let other_config = service.setup.test_folder().join("other.toml");
    fs::write(&other_config, CONFIG).unwrap();
    let other_config = other_config.display().to_string();
    let output =
        service.run_command(&agents_add_arguments(&other_config, &["codex", "--yes"]), "").await;
    assert_eq!(output.exit_code, Some(1), "{output:?}");
    assert!(
        output.stderr.contains("does not read ") && output.stderr.contains("other.toml"),
        "{output:?}"
    );
}

#[tokio::test]
async fn known_programs_are_listed_and_used_ones_are_examined() {
    let agents = format!("[agents.llm]\npreset = 'llm'\n{}", fake_agent_config("echo", "echo", ""));
    let setup = preset_programs::install_programs(Setup::new(&agents), &["llm", "codex"])
        .env("OPENAI_API_KEY", API_KEY);
    let config = setup.write_config().display().to_string();
    let list_output =
        setup.run_command(&["agents", "presets", "--config", &config, "--json"], "").await;
    let preset_list: Value = serde_json::from_str(&list_output.stdout).unwrap();
    let listed_preset = |name: &str| {
        let presets = preset_list["presets"].as_array().unwrap();
        presets.iter().find(|preset| preset["preset"] == name).unwrap().clone()
    };
    assert_eq!(preset_list["presets"].as_array().unwrap().len(), FAKE_PROGRAMS.len() + 1);
    assert_eq!(
        (&listed_preset("codex")["version"], &listed_preset("claude-code")["program"]),
        (&json!("0.169.0"), &json!(null))
    );
    assert_eq!(listed_preset("goose")["verified"], json!(false));
    let output = setup.run_command(&["doctor", &config], "").await;
    for part in
        ["agent llm, version: 0.36 (tested: >=0.36, <1)", "agent llm, key: OPENAI_API_KEY is set"]
    {
        assert!(output.stdout.contains(part), "{part}: {output:?}");
    }
    assert!(
        !output.stdout.contains(API_KEY) && !output.stdout.contains("agent echo, "),
        "{output:?}"
    );
}
