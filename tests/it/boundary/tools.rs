//! The hostile program as the program of a tool: it reaches no more than a read-only agent.

use std::fs;

use serde_json::json;

use super::{
    BUBBLEWRAP_SETTING, MODE_CHANGE_METHODS, attack_with, hostile_setup, with_systemd_socket,
    with_unprivileged_user,
};
use crate::harness::client::{completed_outcome, task_id, task_outcome};
use crate::harness::mock_model::{
    MockModel, final_answer_turn, prompt_with_turns, turn_with_calls,
};
use crate::harness::{ServiceProcess, Setup};
use crate::read_only::skip_without_requirement;

/// Returns a setup in which a tool of the agent `hostile` runs the hostile program.
pub(super) fn setup_with_tool(model: &MockModel, settings: &str) -> Setup {
    let mut setup = hostile_setup("");
    let text = fs::read_to_string(setup.write_config()).unwrap();
    let head = "[agents.hostile]\ncommand";
    let tool = format!(
        "[models.local]\nbase_url = '{}'\n[agents.hostile]\nkind = 'cognitive'\n\
         layer = 'perceptual'\nmodel_id = 'local/mock'\ntools = ['attack']\n\
         [tools.attack]\nsource = 'handler'\ndescription = 'Attacks.'\n\
         [tools.attack.handler]\nkind = 'command'\n{settings}\ncommand",
        model.base_url()
    );
    assert!(text.contains(head), "{text}");
    setup.set_config_text(&text.replace(head, &tool));
    setup
}

/// Calls the tool, and returns its result.
pub(super) async fn call_tool(service: &ServiceProcess) -> String {
    let turns = [turn_with_calls(&[("attack", json!({}))]), final_answer_turn("done")];
    let task = service.send("hostile", &prompt_with_turns("go", &turns)).await;
    assert_eq!(task_outcome(&task), completed_outcome("done"), "{task}");
    let steps = service.get(&format!("/api/v1/executions/{}/steps", task_id(&task))).await.json();
    assert_eq!(steps["steps"][1]["stepType"], "observation", "{steps}");
    steps["steps"][1]["text"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn under_landlock_a_tool_reaches_nothing() {
    if skip_without_requirement("Landlock 6") {
        return;
    }
    let model = MockModel::start(&[]);
    let setup = setup_with_tool(&model, "").without_bubblewrap();
    let attack = attack_with(setup, call_tool).await;
    assert_eq!(attack.successful_methods, MODE_CHANGE_METHODS);
}

#[tokio::test]
async fn under_landlock_a_tool_of_a_plain_user_reaches_nothing() {
    if skip_without_requirement("Landlock 6") || skip_without_requirement("root") {
        return;
    }
    let model = MockModel::start(&[]);
    let setup = with_unprivileged_user(setup_with_tool(&model, "")).without_bubblewrap();
    let attack = attack_with(setup, call_tool).await;
    assert_eq!(attack.successful_methods, MODE_CHANGE_METHODS);
}

#[tokio::test]
async fn under_bubblewrap_a_tool_reaches_nothing() {
    if skip_without_requirement("bubblewrap") {
        return;
    }
    let model = MockModel::start(&[]);
    let (setup, _bus) = with_systemd_socket(setup_with_tool(&model, BUBBLEWRAP_SETTING));
    let attack = attack_with(setup, call_tool).await;
    assert_eq!(attack.successful_methods, Vec::<String>::new());
}
