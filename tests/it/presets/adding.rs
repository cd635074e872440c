//! `algonius agents add`, as a person types it: found, too old, without a key, not found.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use super::preset_programs::{self, FAKE_PROGRAMS, KEY, RecordedCall};
use crate::doctor::install;
use crate::harness::{Setup, fake};

/// A configuration that its writer has put comments into.
const KEPT: &str = "# mine\n[agents.echo]   # the first\ncommand = 'cat'\n# the end";

fn setup() -> Setup {
    preset_programs::install_all(Setup::new(KEPT))
}

/// The words of `agents add` for this configuration.
fn words<'w>(config: &'w str, more: &[&'w str]) -> Vec<&'w str> {
    [&["agents", "add"], more, &["--config", config]].concat()
}

#[tokio::test]
async fn an_added_agent_is_loaded_and_probed() {
    let service = setup().start().await;
    let config = service.setup.write().display().to_string();
    fs::set_permissions(&config, fs::Permissions::from_mode(0o640)).unwrap();
    let before = fs::read_to_string(&config).unwrap();
    let more = ["claude-code", "--model", "a \"large\" one", "--id", "helper", "--yes"];
    let told = service.command(&words(&config, &more), "").await;
    assert_eq!(told.code, Some(0), "{told:?}");
    for part in [
        "good     agent helper, program: ",
        "2.1.330",
        "ANTHROPIC_API_KEY is set",
        "it works",
        "a probe of operator",
    ] {
        assert!(told.stdout.contains(part), "{part}: {told:?}");
    }
    let after = fs::read_to_string(&config).unwrap();
    let table = "[agents.helper]\npreset = \"claude-code\"\nmodel = \"a \\\"large\\\" one\"\n";
    assert_eq!(after, format!("{before}\n\n{table}"));
    assert_eq!(fs::metadata(&config).unwrap().permissions().mode() & 0o777, 0o640);
    let argv = RecordedCall::read(&service.setup, "helper").argv;
    assert!(argv.ends_with("--model\na \"large\" one\n"), "{argv}");
    let again = service.command(&words(&config, &more), "").await;
    assert_eq!((again.code, fs::read_to_string(&config).unwrap()), (Some(4), after));
    let why = "there is an agent `helper` already\n  hint: give this one another name by --id";
    assert!(again.stderr.contains(why), "{again:?}");
}

#[tokio::test]
async fn an_agent_is_added_with_its_access_and_folder() {
    let service = setup().start().await;
    let config = service.setup.write().display().to_string();
    let folder = service.setup.here().join("work");
    fs::create_dir(&folder).unwrap();
    let folder = folder.display().to_string();
    let more = ["codex", "--read-write", "--working-dir", &folder, "--yes", "--json"];
    let told = service.command(&words(&config, &more), "").await;
    assert_eq!(told.code, Some(0), "{told:?}");
    let told: Value = serde_json::from_str(&told.stdout).unwrap();
    assert_eq!((&told["agent"], &told["applied"]), (&json!("codex"), &json!(true)), "{told}");
    assert!(told["probe"]["answer"].as_str().unwrap().contains("it works"), "{told}");
    assert_eq!(told["probe"]["good"], json!(true), "{told}");
    assert!(told["table"].as_str().unwrap().contains("access = \"read-write\"\nworking_dir = "));
    let env = RecordedCall::read(&service.setup, "codex").env;
    assert!(env.contains(&format!("PWD={folder}")), "{env}");
}

#[tokio::test]
async fn adding_an_agent_without_its_program_writes_nothing() {
    let setup = preset_programs::install(Setup::new(KEPT), &[]);
    let config = setup.write().display().to_string();
    let before = fs::read_to_string(&config).unwrap();
    let told = setup.run(&words(&config, &["claude-code", "--yes"]), "").await;
    assert_eq!((told.code, fs::read_to_string(&config).unwrap()), (Some(1), before), "{told:?}");
    assert!(told.stdout.contains("BAD      agent claude-code, program: claude is not on the PATH"));
    assert!(told.stdout.contains("npm install -g @anthropic-ai/claude-code"), "{told:?}");
    let why = "nothing was written, because a prerequisite is missing\n  hint: ";
    assert!(told.stderr.contains(why), "{told:?}");
}

/// As the doctor does: keys and programs of the terminal are none of the service.
#[tokio::test]
async fn an_added_agent_is_checked_as_the_installed_service() {
    let setup = setup();
    let config = setup.write().display().to_string();
    install(&setup, "/usr/bin:/bin").await;
    let told = setup.run(&words(&config, &["codex", "--yes"]), "").await;
    assert_eq!(told.code, Some(1), "{told:?}");
    assert!(told.stdout.contains("algonius.service starts it on "), "{told:?}");
    assert!(told.stdout.contains("BAD      agent codex, program: codex is not on the PATH"));
    install(&setup, &format!("{}:/usr/bin:/bin", setup.here().display())).await;
    let told = setup.run(&words(&config, &["codex", "--yes"]), "").await;
    assert_eq!(told.code, Some(0), "{told:?}");
    assert!(told.stdout.contains("warning  agent codex, key: the agent has no key"), "{told:?}");
    let file = setup.beside("environment");
    fs::write(&file, format!("CODEX_API_KEY={KEY}\n")).unwrap();
    let told = setup.run(&words(&config, &["codex", "--id", "second", "--yes"]), "").await;
    assert_eq!(told.code, Some(0), "{told:?}");
    assert!(told.stdout.contains("CODEX_API_KEY is set") && !told.stdout.contains(KEY), "{told:?}");
}

/// What it answers is told with its hint, as `agents test` tells it.
#[tokio::test]
async fn an_added_agent_that_does_not_work_is_reported() {
    let setup = setup().executable("codex", "#!/bin/sh\necho 'no licence' >&2\nexit 3\n");
    let service = setup.start().await;
    let config = service.setup.write().display().to_string();
    let told = service.command(&words(&config, &["codex", "--yes"]), "").await;
    assert_eq!(told.code, Some(5), "{told:?}");
    for part in ["hint: ", "(agent-exit, agent)", "standard error: no licence"] {
        assert!(told.stderr.contains(part), "{part}: {told:?}");
    }
    assert!(fs::read_to_string(&config).unwrap().contains("[agents.codex]"));
}

#[tokio::test]
async fn an_old_version_and_a_missing_key_are_warnings_with_fixes() {
    let setup = preset_programs::install(Setup::new(KEPT), &["claude"]);
    preset_programs::set_version(&setup, "claude", "1.0.9");
    let config = setup.write().display().to_string();
    let told = setup.run(&words(&config, &["claude-code", "--yes"]), "").await;
    assert_eq!(told.code, Some(0), "{told:?}");
    for part in [
        "warning  agent claude-code, version: version 1.0.9 was not tested: >=2.1, <3 was",
        "warning  agent claude-code, key: the agent has no key for its model",
        "fix: set ANTHROPIC_API_KEY or CLAUDE_CODE_OAUTH_TOKEN or ",
        "homes/claude-code claude /login",
        "no service runs here yet",
        "algonius serve --config ",
    ] {
        assert!(told.stdout.contains(part), "{part}: {told:?}");
    }
    assert!(fs::read_to_string(&config).unwrap().ends_with("preset = \"claude-code\"\n"));
    assert!(!setup.here().join("state/algonius/homes").exists(), "made by who only looked");
}

#[tokio::test]
async fn an_agent_is_not_added_unconfirmed_or_if_refused() {
    let service = setup().start().await;
    let config = service.setup.write().display().to_string();
    let before = fs::read_to_string(&config).unwrap();
    let unasked = service.command(&words(&config, &["codex"]), "").await;
    assert_eq!(unasked.code, Some(1), "{unasked:?}");
    assert!(unasked.stderr.contains("[agents.codex]"), "{unasked:?}");
    let strange = service.command(&words(&config, &["nobody", "--yes"]), "").await;
    assert_eq!(strange.code, Some(4), "{strange:?}");
    assert!(strange.stderr.contains("there is no such preset"), "{strange:?}");
    // Who types has a program that the service does not find.
    let here = service.setup.here().join("mine");
    fs::create_dir(&here).unwrap();
    fs::rename(service.setup.here().join("qwen"), here.join("qwen")).unwrap();
    let path = format!("{}:/usr/bin:/bin", here.display());
    let url = format!("http://{}", service.address);
    let env = [("PATH", path.as_str()), ("ALGONIUS_URL", &url)];
    let more = words(&config, &["qwen", "--yes"]);
    let refused = service.setup.run_with(&more, "", &env).await;
    assert_eq!(refused.code, Some(4), "{refused:?}");
    assert!(refused.stderr.contains("no such program on the PATH"), "{refused:?}");
    assert_eq!(fs::read_to_string(&config).unwrap(), before);
}

#[tokio::test]
async fn a_service_of_another_configuration_is_not_mistaken() {
    let service = setup().start().await;
    let other = service.setup.here().join("other.toml");
    fs::write(&other, KEPT).unwrap();
    let other = other.display().to_string();
    let told = service.command(&words(&other, &["codex", "--yes"]), "").await;
    assert_eq!(told.code, Some(1), "{told:?}");
    assert!(
        told.stderr.contains("does not read ") && told.stderr.contains("other.toml"),
        "{told:?}"
    );
}

#[tokio::test]
async fn known_programs_are_listed_and_used_ones_are_examined() {
    let agents = format!("[agents.llm]\npreset = 'llm'\n{}", fake("echo", "echo", ""));
    let setup =
        preset_programs::install(Setup::new(&agents), &["llm", "codex"]).env("OPENAI_API_KEY", KEY);
    let config = setup.write().display().to_string();
    let listed = setup.run(&["agents", "presets", "--config", &config, "--json"], "").await;
    let listed: Value = serde_json::from_str(&listed.stdout).unwrap();
    let of = |name: &str| {
        let presets = listed["presets"].as_array().unwrap();
        presets.iter().find(|preset| preset["preset"] == name).unwrap().clone()
    };
    assert_eq!(listed["presets"].as_array().unwrap().len(), FAKE_PROGRAMS.len() + 1);
    assert_eq!(
        (&of("codex")["version"], &of("claude-code")["program"]),
        (&json!("0.169.0"), &json!(null))
    );
    assert_eq!(of("goose")["verified"], json!(false));
    let told = setup.run(&["doctor", &config], "").await;
    for part in
        ["agent llm, version: 0.36 (tested: >=0.36, <1)", "agent llm, key: OPENAI_API_KEY is set"]
    {
        assert!(told.stdout.contains(part), "{part}: {told:?}");
    }
    assert!(!told.stdout.contains(KEY) && !told.stdout.contains("agent echo, "), "{told:?}");
}
