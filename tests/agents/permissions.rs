//! Permissions of an agent that speaks a control protocol: its call of a tool is allowed, denied, or left without an
//! answer.

use serde_json::{Value, json};

use crate::cases::AgentCase;
use crate::client::task_state_and_code;
use crate::fixture::{
    AgentFixture, CONTROL_PROTOCOL_AGENT, CONTROL_PROTOCOL_TEAM, SHORT_CONSENT_AGENT,
};

/// Cases by name, in their order.
pub(crate) const PERMISSION_CASES: &[(&str, AgentCase)] = &[
    ("allowed", allowed_call),
    ("allowed in a team", call_in_team),
    ("denied", denied_call),
    ("not answered", unanswered_call),
];

/// Case: an allowed call is made once, after the answer.
fn allowed_call(fixture: &AgentFixture<'_>) {
    let case = PermissionCase::start(fixture, CONTROL_PROTOCOL_AGENT, "allowed");
    case.answer("allow");
    let task = case.wait_for_end();
    assert_eq!(task_state_and_code(&task).0, "completed", "{task}");
    assert_eq!(case.run_count(), 1, "{task}");
    case.assert_decision("allow", "principal");
    fixture
        .add_measurement("permission", "requested before a command; allowed, denied, not answered");
}

/// Case: the task of a team shows the question of its member, and a message to this task allows the call.
fn call_in_team(fixture: &AgentFixture<'_>) {
    let case = PermissionCase::start(fixture, CONTROL_PROTOCOL_TEAM, "in-team");
    assert_eq!(
        case.question["path"],
        json!([CONTROL_PROTOCOL_TEAM, CONTROL_PROTOCOL_AGENT]),
        "{}",
        case.question
    );
    let paused_task = fixture.client.task(CONTROL_PROTOCOL_TEAM, &case.task_id);
    assert_eq!(task_state_and_code(&paused_task).0, "input-required", "{paused_task}");
    let task = fixture.client.reply(CONTROL_PROTOCOL_TEAM, &case.task_id, "yes");
    assert_eq!(task_state_and_code(&task).0, "completed", "{task}");
    assert_eq!(case.run_count(), 1, "{task}");
    case.assert_decision("allow", "principal");
}

/// Case: a denied call is not made.
fn denied_call(fixture: &AgentFixture<'_>) {
    let case = PermissionCase::start(fixture, CONTROL_PROTOCOL_AGENT, "denied");
    case.answer("deny");
    case.assert_not_run();
    case.assert_decision("deny", "principal");
}

/// Case: a call about which nobody decides in time is not made.
fn unanswered_call(fixture: &AgentFixture<'_>) {
    let case = PermissionCase::start(fixture, SHORT_CONSENT_AGENT, "unanswered");
    case.assert_not_run();
    case.assert_decision("deny", "timeout");
}

/// Task whose agent requests permission for a command that adds a line to a file.
struct PermissionCase<'f> {
    fixture: &'f AgentFixture<'f>,
    agent: &'static str,
    task_id: String,
    file: std::path::PathBuf,
    question: Value,
}

impl<'f> PermissionCase<'f> {
    /// Starts the task, and waits for the question.
    fn start(fixture: &'f AgentFixture<'f>, agent: &'static str, name: &str) -> Self {
        let protocol = fixture.agent.control_protocol.expect("an agent with a control protocol");
        let file = fixture.work_folder.join(format!("{name}.txt"));
        let command = format!("echo ran >> {}", file.display());
        let args = (protocol.command_arguments)(&command);
        let text = format!("run it [[mock tool={} args={args}]]", protocol.command_tool);
        let task_id = fixture.client.start_task(agent, &text);
        let question = fixture.client.wait_for_question(&task_id);
        assert!(!file.exists(), "the command ran before the answer: {question}");
        Self { fixture, agent, task_id, file, question }
    }

    fn answer(&self, verdict: &str) {
        let id = self.question["id"].as_str().expect("an id");
        let interaction = self.fixture.client.answer_question(id, &json!({"verdict": verdict}));
        assert_eq!(interaction["state"], "answered", "{interaction}");
    }

    fn wait_for_end(&self) -> Value {
        self.fixture.client.wait_for_end(self.agent, &self.task_id)
    }

    /// Returns the number of times that the command ran.
    fn run_count(&self) -> usize {
        std::fs::read_to_string(&self.file).unwrap_or_default().lines().count()
    }

    /// Waits for the end of the task, and asserts that the command did not run. Some agents answer after a denial, and
    /// others end without an answer.
    fn assert_not_run(&self) {
        let task = self.wait_for_end();
        let (state, code) = task_state_and_code(&task);
        assert!(state == "completed" || code == "denied", "{task}");
        assert_eq!(self.run_count(), 0, "{task}");
    }

    /// Asserts that one verdict about the task is recorded.
    fn assert_decision(&self, verdict: &str, source: &str) {
        let execution = self.question["execution"].as_str().expect("an execution");
        let decisions = self.fixture.client.decisions(execution);
        let verdicts_and_sources: Vec<_> = decisions
            .iter()
            .map(|decision| (&decision["verdict"], &decision["by"]["source"]))
            .collect();
        assert_eq!(verdicts_and_sources, [(&verdict.into(), &source.into())], "{decisions:?}");
    }
}
