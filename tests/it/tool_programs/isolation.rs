//! Sandboxes of tools, and the reports about them.

use std::fs;
use std::os::unix::fs::symlink;

use super::{TOOL_AGENT_CONFIG, setup_with_model, shell_call};
use crate::harness::mock_model::MockModel;
use crate::harness::steps::{observation_step, run_tool_calls};
use crate::read_only::skip_without_requirement;

#[tokio::test]
async fn a_program_changes_only_what_its_sandbox_names() {
    if skip_without_requirement("Landlock 6") {
        return;
    }
    let model = MockModel::start(&[]);
    let service = setup_with_model(&model).without_bubblewrap().start().await;
    let folder = service.setup.test_folder().display();
    let connect_script = "perl -MSocket -e 'socket(S, PF_INET, SOCK_STREAM, 0) or die $!; \
                   connect(S, sockaddr_in(PORT, inet_aton(\"127.0.0.1\"))) or die $!'";
    let port = service.address.port();
    let tool_calls = [
        shell_call(&format!("echo x > {folder}/writable/file && cat {folder}/writable/file")),
        shell_call(&format!("echo x > {folder}/file")),
        shell_call(&connect_script.replace("PORT", &port.to_string())),
    ];
    let results = run_tool_calls(&service, "worker", &tool_calls).await;
    assert_eq!(results[0], observation_step("x\n"));
    for (kind, text) in &results[1..] {
        assert!(kind == "error" && text.contains("Permission denied"), "{text}");
        assert!(text.contains("; the sandbox of the tool may have refused an access: "), "{text}");
    }
    assert!(!service.setup.test_folder().join("file").exists());
}

#[tokio::test]
async fn the_doctor_reports_the_isolation_of_tools() {
    if skip_without_requirement("Landlock 6") {
        return;
    }
    let model = MockModel::start(&[]);
    let service = setup_with_model(&model).without_bubblewrap().start().await;
    let config = service.setup.write_config().display().to_string();
    let output = service.run_command(&["doctor", &config], "").await;
    let line_for_tool = |tool: &str| {
        let subject = format!("agent worker, tool {tool}: ");
        let line = output.stdout.lines().find(|line| line.contains(&subject));
        line.unwrap_or_else(|| panic!("{output:?}")).to_owned()
    };
    assert!(
        line_for_tool("shell").contains("sandbox enforced by landlock; boundary landlock"),
        "{output:?}"
    );
    assert!(line_for_tool("absent").contains("no-such-program is not installed"), "{output:?}");
}

#[tokio::test]
async fn a_tool_that_can_change_the_configuration_is_reported() {
    if skip_without_requirement("Landlock 6") {
        return;
    }
    let model = MockModel::start(&[]);
    let config = TOOL_AGENT_CONFIG.replace("MODEL", &model.base_url());
    let config_with_writable_folder = |settings: &str| {
        config.replace(
            "writable = [\"HERE/writable\"]",
            &format!("writable = [\"HERE/../service\"]{settings}"),
        )
    };
    let try_start_with = async |settings: &str| {
        let mut setup = setup_with_model(&model).without_bubblewrap();
        setup.set_config_text(&config_with_writable_folder(settings));
        setup.try_start().await
    };
    let Err((_, output)) = try_start_with("").await else { panic!("it started") };
    let refusal = "cannot enforce the sandbox of the tool `shell` of the agent `worker`";
    assert!(output.stderr.contains(refusal), "{output:?}");
    let Ok(service) = try_start_with(", required = false").await else {
        panic!("it did not start")
    };
    let stderr = service.stderr_text();
    assert!(stderr.contains("backend program is not isolated from the service"), "{stderr}");
    assert!(stderr.contains("the tool `shell` can change the configuration"), "{stderr}");
}

#[tokio::test]
async fn a_tool_whose_interpreter_is_hidden_names_it() {
    if skip_without_requirement("bubblewrap") {
        return;
    }
    let model = MockModel::start(&[]);
    let mut setup = setup_with_model(&model);
    let config = TOOL_AGENT_CONFIG
        .replace("MODEL", &model.base_url())
        .replace("command = \"sh\"", "command = \"HERE/script\"")
        .replace(
            "writable = [\"HERE/writable\"]",
            "isolation = \"bubblewrap\", hidden = [\"HERE/tools\"]",
        );
    setup.set_config_text(&config);
    let folder = setup.test_folder().join("tools");
    fs::create_dir(&folder).unwrap();
    symlink("/bin/sh", folder.join("shell")).unwrap();
    let script = format!("#!{}/shell\n", folder.display());
    let service = setup.with_executable("script", &script).start().await;
    let results = run_tool_calls(&service, "worker", &[shell_call("echo x")]).await;
    let (kind, text) = &results[0];
    let expected = "its sandbox hides its interpreter, `shell`, because of `sandbox.hidden`";
    assert!(kind == "error" && text.contains(expected), "{text}");
}
