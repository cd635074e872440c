//! Agents of known programs: two lines each, real children that play the programs, a home of their own.

mod adding;
pub(crate) mod preset_programs;

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::json;

use crate::harness::client::task_outcome;
use crate::harness::{Setup, poll_until};
use preset_programs::{API_KEY, FAKE_PROGRAMS, RecordedInvocation, install_all_programs_and_keys};

/// Every preset that names a program, two lines each.
fn all_presets_config() -> String {
    FAKE_PROGRAMS
        .iter()
        .map(|fake| format!("[agents.{0}]\npreset = '{0}'\n", fake.preset))
        .collect()
}

#[tokio::test]
async fn two_lines_configure_an_agent_of_each_known_program() {
    let service = install_all_programs_and_keys(Setup::new(&all_presets_config())).start().await;
    for fake in FAKE_PROGRAMS {
        let (state, answer) = task_outcome(&service.send(fake.preset, "what is it?").await);
        assert_eq!(state, "completed", "{}: {answer}", fake.preset);
        assert!(answer.contains("it works"), "{}: {answer}", fake.preset);
        let invocation = RecordedInvocation::read_for_agent(&service.setup, fake.preset);
        let recorded_input = match fake.input_mode {
            "args" => invocation.argv.lines().last().unwrap().to_owned(),
            "file" => invocation.file_content,
            _ => invocation.stdin,
        };
        assert_eq!(recorded_input, "what is it?", "{}", fake.preset);
        assert!(
            invocation.env.contains(&format!("{}={API_KEY}", fake.key_variable)),
            "{}",
            invocation.env
        );
        assert!(invocation.env.contains("NO_COLOR=1"), "{}", invocation.env);
        assert!(!invocation.env.contains("UNLISTED"), "{}", invocation.env);
        let mode = fs::metadata(fake.home(&service.setup)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700, "{}", fake.preset);
    }
    assert!(!service.stderr_text().contains(API_KEY));
    assert!(fs::read_dir(service.setup.test_folder().join("home")).unwrap().next().is_none());
}

#[tokio::test]
async fn home_files_are_written_once_and_private() {
    let config = "[agents.gemini]\npreset = 'gemini'\nhome_files = { 'of/mine' = 'one' }\n";
    let mut service = install_all_programs_and_keys(Setup::new(config)).start().await;
    let home = service.setup.test_folder().join("state/algonius/homes/gemini");
    let (preset_file, configured_file) = (home.join(".gemini/settings.json"), home.join("of/mine"));
    for file in [&preset_file, &configured_file] {
        assert_eq!(fs::metadata(file).unwrap().permissions().mode() & 0o777, 0o600);
    }
    assert!(fs::read_to_string(&preset_file).unwrap().contains("gemini-api-key"));
    fs::write(&preset_file, "logged in").unwrap();
    service.kill9().await;
    service.start_again().await;
    assert_eq!(fs::read_to_string(&preset_file).unwrap(), "logged in");
}

#[tokio::test]
async fn model_and_access_become_program_arguments() {
    let config = "[agents.codex]\npreset = 'codex'\nmodel = 'large'\naccess = 'read-write'\n";
    let service = install_all_programs_and_keys(Setup::new(config)).start().await;
    assert_eq!(task_outcome(&service.send("codex", "x").await).0, "completed");
    let argv = RecordedInvocation::read_for_agent(&service.setup, "codex").argv;
    assert!(argv.ends_with("-s\nworkspace-write\n-m\nlarge\n"), "{argv}");
}

#[tokio::test]
async fn a_text_with_a_leading_dash_is_never_an_option() {
    let config = "[agents.continue]\npreset = 'continue'\n\
                [agents.bare]\npreset = 'continue'\ninput_args = ['{{ input }}']\n";
    let service = install_all_programs_and_keys(Setup::new(config)).start().await;
    let task = service.send("bare", "--auto").await;
    assert_eq!(task_outcome(&task).1, "input-rejected", "{task}");
    let long_output = service.run_command(&["send", "bare", "-"], &"x".repeat(110_000)).await;
    assert!(long_output.stderr.contains("input-too-large"), "{long_output:?}");
    assert_eq!(task_outcome(&service.send("continue", "--auto").await).0, "completed");
    let argv = RecordedInvocation::read_for_agent(&service.setup, "continue").argv;
    assert!(argv.ends_with("--\n--auto\n"), "{argv}");
}

#[tokio::test]
async fn an_untested_program_version_is_only_a_warning() {
    let config = "[agents.claude-code]\npreset = 'claude-code'\n[agents.codex]\npreset = 'codex'\n\
                [agents.goose]\npreset = 'goose'\n[agents.plain]\ncommand = 'cat'\n";
    let setup = install_all_programs_and_keys(Setup::new(config));
    preset_programs::set_program_version(&setup, "codex", "0.12.0");
    let service = setup.start().await;
    let agent_program = |tree: &serde_json::Value, id: &str| {
        let agents = tree["agents"].as_array().unwrap();
        agents.iter().find(|agent| agent["id"] == id).unwrap()["program"].clone()
    };
    let tree = poll_until("all versions", async || {
        let tree = service.get("/status").await.json();
        let is_known = |id| !agent_program(&tree, id)["version"].is_null();
        ["claude-code", "codex", "goose"].into_iter().all(is_known).then_some(tree)
    })
    .await;
    let claude = json!({
        "preset": "claude-code", "verified": true, "version": "2.1.330", "tested": ">=2.1, <3",
        "printsEvents": true,
    });
    assert_eq!(agent_program(&tree, "claude-code"), claude);
    let codex = agent_program(&tree, "codex");
    assert_eq!(codex["warning"], "version 0.12.0 was not tested: >=0.169, <1 was");
    assert_eq!(agent_program(&tree, "goose")["verified"], false);
    assert_eq!(agent_program(&tree, "plain"), json!(null));
    assert!(
        service.stderr_text().contains("version 0.12.0 was not tested"),
        "{}",
        service.stderr_text()
    );
    assert_eq!(task_outcome(&service.send("codex", "x").await).0, "completed");
    let detail = service.get("/api/v1/agents/codex").await.json();
    assert_eq!(detail["status"]["program"], codex);
    let status_text = service.run_command(&["status"], "").await.stdout;
    assert!(status_text.contains("claude-code preset, version 2.1.330"), "{status_text}");
}

/// All of them at once would keep each other from telling in time.
#[tokio::test]
async fn programs_report_their_versions_one_after_the_other() {
    let agent_config = |id: usize| {
        format!(
            "[agents.a{id}]\ncommand = 'HERE/slow'\naccess = 'read-write'\nprogram_version = {{ args = ['--version'] }}\n"
        )
    };
    let script =
        "#!/bin/sh\necho start >> \"$0.log\"\nsleep 0.2\necho end >> \"$0.log\"\necho 1.2.3\n";
    let setup =
        Setup::new(&(0..4).map(agent_config).collect::<String>()).with_executable("slow", script);
    let service = setup.start().await;
    for id in 0..4 {
        poll_until("a version", async || {
            let is_known = service.fetch_agent_status(&format!("a{id}")).await["program"]["version"]
                == "1.2.3";
            is_known.then_some(())
        })
        .await;
    }
    assert_eq!(service.setup.read_file("slow.log"), "start\nend\n".repeat(4));
}

#[tokio::test]
async fn a_custom_preset_is_loaded_while_the_service_runs() {
    // Without bubblewrap the agent could change the configuration, so nothing would be applied automatically.
    let setup = install_all_programs_and_keys(Setup::new(
        "[agents.codex]\npreset = 'codex'\nsandbox.nested = false\n",
    ));
    let presets_folder = setup.config_sibling_path("presets");
    let service = setup.start().await;
    fs::create_dir(&presets_folder).unwrap();
    let preset_text = "[about]\ntitle = 'Mine'\nverified = true\n\
                [agent]\ncommand = 'cat'\nenv = { MINE = '1' }\n";
    fs::write(presets_folder.join("codex.toml"), preset_text).unwrap();
    poll_until("the new preset", async || {
        let (_, answer) = task_outcome(&service.send("codex", "as it was said").await);
        (answer == "as it was said").then_some(())
    })
    .await;
    fs::write(presets_folder.join("codex.toml"), preset_text.replace("verified", "verifed"))
        .unwrap();
    poll_until("the complaint", async || {
        let rejection = service.get("/status").await.json()["configuration"]["rejected"][0].clone();
        (rejection["file"] == "codex.toml" && rejection["line"] == 3).then_some(())
    })
    .await;
}
