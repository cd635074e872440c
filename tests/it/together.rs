//! A team of one program, one interactive agent and one cognitive agent, on a schedule. A person allows a tool call in
//! its middle, after a restart of the service.

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::harness::client::{completed_outcome, task_outcome};
use crate::harness::mock_model::{MockModel, final_answer_turn, turn_with_calls};
use crate::harness::steps::fetch_steps;
use crate::harness::{ServiceProcess, Setup, poll_until};

/// The team, its members and its schedule. `MODEL` is the address of the model.
const CONFIG: &str = r#"
[scheduler]
timezone = "UTC"
seconds = true

[models.local]
base_url = "MODEL"

[tools.now]
source = "handler"
handler = { kind = "clock" }

[agents.collect]
command = "sh"
args = ["-c", "echo collected >> HERE/collected; cat"]
sandbox.writable = ["HERE"]

[agents.coder]
command = "FAKE"
args = ["acp"]
protocol = "acp"
sandbox.writable = ["HERE"]
env."F\u0041KE_ACP_STATE" = "HERE/sessions"
env."F\u0041KE_ACP_RAN" = "HERE/ran"

[agents.thinker]
kind = "cognitive"
layer = "perceptual"
model_id = "local/mock-1"
tools = ["now"]

[agents.crew]
kind = "team"
team.steps = ["collect", "coder", "thinker"]

[schedules.nightly]
agent = "crew"
cron = "* * * * * *"
overlap = "skip"
input = '[[tool Bash kind=execute command="make test"]] [[say "All tests pass."]]'
"#;

async fn start_with_model(model: &MockModel) -> ServiceProcess {
    let turns = [turn_with_calls(&[("now", json!({}))]), final_answer_turn("reported")];
    model.set_script(&turns).await;
    let service = Setup::new(&CONFIG.replace("MODEL", &model.base_url())).start().await;
    std::fs::create_dir(service.setup.test_folder().join("sessions")).unwrap();
    service
}

/// Waits for the open question of a member, and returns it.
async fn wait_for_question(service: &ServiceProcess) -> Value {
    poll_until("a question", async || {
        let list = service.get("/api/v1/interactions?state=open").await.json();
        list["interactions"].as_array().unwrap().first().cloned()
    })
    .await
}

/// Waits for the end of the first run of the schedule, and returns its occurrence.
async fn wait_for_completed_occurrence(service: &ServiceProcess) -> Value {
    poll_until("the end of a run", async || {
        let path = "/api/v1/schedules/nightly/occurrences?limit=1000";
        let list = service.get(path).await.json();
        let list = list["occurrences"].as_array().unwrap();
        list.iter().rfind(|occurrence| occurrence["outcome"] == "completed").cloned()
    })
    .await
}

/// Restart of the service.
#[derive(Debug, Clone, Copy)]
enum Restart {
    /// After `kill -9`.
    Crash,
    /// By SIGUSR2: the next process takes over.
    Upgrade,
}

impl Restart {
    async fn perform(self, service: &mut ServiceProcess) {
        match self {
            Self::Crash => service.kill9().await,
            Self::Upgrade => {
                service.send_signal(Signal::SIGUSR2);
                assert_eq!(service.wait_for_exit().await.code(), Some(0));
            }
        }
        service.start_again().await;
    }
}

/// Ended run, with the service and the model that it used.
struct EndedRun {
    service: ServiceProcess,
    id: String,
    _model: MockModel,
}

#[tokio::test]
async fn three_kinds_of_agents_work_as_a_team_on_a_schedule() {
    for restart in [Restart::Crash, Restart::Upgrade] {
        let EndedRun { service, id, _model } = run_with_restart(restart).await;
        let task = service.fetch_task("crew", &id).await;
        // R-145: A question of a member is one question of each run above it, and one answer at any level continues the run, also after a kill
        assert_eq!(task_outcome(&task), completed_outcome("reported"), "{restart:?}: {task}");
        let tree = service.get(&format!("/api/v1/executions/{id}/tree")).await.json();
        let hops = tree["hops"].as_array().unwrap();
        let outcomes: Vec<_> = hops.iter().map(|hop| (&hop["agent"], &hop["outcome"])).collect();
        let members = ["collect", "coder", "thinker"];
        assert_eq!(json!(outcomes), json!(members.map(|member| [member, "completed"])), "{tree}");
        let thinker_id = hops[2]["execution"].as_str().unwrap();
        assert_eq!(service.fetch_execution(thinker_id).await["input"], "All tests pass.");
        let steps = fetch_steps(&service, thinker_id).await;
        assert!(steps.iter().any(|step| step["tool"] == "now"), "{steps:?}");
        for file in ["collected", "ran"] {
            assert_eq!(service.setup.read_file(file).lines().count(), 1, "{restart:?}: {file}");
        }
    }
}

/// Lets the schedule run the team, restarts the service while a question is open, and allows the tool call then.
async fn run_with_restart(restart: Restart) -> EndedRun {
    let model = MockModel::start(&[]);
    let mut service = start_with_model(&model).await;
    let question = wait_for_question(&service).await;
    assert_eq!(question["path"], json!(["crew", "coder"]), "{question}");
    // The open run makes the next times skip, so this run is the only one.
    let pause_output = service.run_command(&["schedule", "pause", "nightly"], "").await;
    assert_eq!(pause_output.exit_code, Some(0), "{pause_output:?}");
    restart.perform(&mut service).await;
    let repeated_question = wait_for_question(&service).await;
    assert_eq!(repeated_question["id"], question["id"], "{restart:?}");
    let approve_output =
        service.run_command(&["approve", question["id"].as_str().unwrap()], "").await;
    assert_eq!(approve_output.exit_code, Some(0), "{approve_output:?}");
    let occurrence = wait_for_completed_occurrence(&service).await;
    let id = occurrence["execution"].as_str().unwrap().to_owned();
    EndedRun { service, id, _model: model }
}
