//! The service is killed between a question of an agent, its answer and the delivery of the answer. The files that the
//! agent writes judge.

use std::collections::BTreeMap;
use std::time::Duration;

use algonius_a2a::interaction::INTERACTIONS_EXTENSION;
use serde_json::{Value, json};

use super::seeded_rng::rng_and_rounds_or_default;
use crate::harness::client::{completed_outcome, message_params, task_outcome};
use crate::harness::processes::kill9;
use crate::harness::{ServiceProcess, Setup, poll_until};

/// Agent that requests permission, and a team of it. The agent writes the lines that it reads to `HERE/read`, and its
/// tool calls to `HERE/ran`.
/// Its variables are escaped because the setup replaces `FAKE` by the path of its program.
const INTERACTIVE_AGENTS: &str = r#"
[agents.crew]
kind = "team"
team.steps = ["coder"]
[agents.coder]
command = "FAKE"
args = ["acp"]
protocol = "acp"
sandbox.writable = ["HERE"]
consent.timeout = "1h"
env."F\u0041KE_ACP_LOG" = "HERE/read"
env."F\u0041KE_ACP_RAN" = "HERE/ran"
"#;

/// Latest moment of a kill, in microseconds after the event that precedes it: an answer takes some milliseconds.
const MAX_KILL_DELAY_MICROS: u64 = 6_000;

/// Time of a kill.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum KillTime {
    /// After the question, before its answer.
    AfterQuestion,
    /// After the request with the answer was sent, so that the answer may be unknown, recorded or delivered.
    AfterAnswer,
}

/// Facts of a round.
struct QuestionRound {
    /// Agent that receives the request: the interactive agent, or its team.
    agent: &'static str,
    task_id: String,
    /// Command that the agent wants to run, which no other round names.
    command: String,
    is_allowed: bool,
    kill_time: KillTime,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kill_of_the_service_keeps_a_question_and_its_answer() {
    let (mut rng, rounds) = rng_and_rounds_or_default(60);
    let kill_count = rounds / 5;
    let mut service = Setup::new(INTERACTIVE_AGENTS).start().await;
    let mut states_after_kills: BTreeMap<String, u32> = BTreeMap::new();
    for number in 0..kill_count {
        let command = format!("make-{number}.");
        let prompt = format!("[[tool Bash command={command}]] [[say done]]");
        let agent = if number % 8 < 4 { "coder" } else { "crew" };
        let round = QuestionRound {
            agent,
            task_id: service.start_task(agent, &prompt).await,
            command,
            is_allowed: number % 2 == 0,
            kill_time: if number % 4 < 2 { KillTime::AfterQuestion } else { KillTime::AfterAnswer },
        };
        let delay = Duration::from_micros(rng.random_below(MAX_KILL_DELAY_MICROS));
        let question = kill_and_answer_question(&mut service, &round, delay).await;
        let is_delivered = question["closed"]["deliveredAt"].is_string();
        let state = format!("{agent} {:?} {} {is_delivered}", round.kill_time, question["state"]);
        *states_after_kills.entry(state).or_default() += 1;
        // R-137: A question of an agent keeps its id and its remaining time, its answer is delivered once, and its tool runs once if it was allowed and never otherwise, if the service is killed
        check_round(&service, &round, &question).await;
    }
    println!("time of the kill, state at the next start, delivered: {states_after_kills:#?}");
    let unfinished = service.get("/api/v1/executions?unfinished=true").await.json();
    assert_eq!(unfinished["executions"].as_array().unwrap().len(), 0, "{unfinished}");
}

/// Kills the service at the time of the round, starts it again, and sees to the answer. Returns the question.
async fn kill_and_answer_question(
    service: &mut ServiceProcess,
    round: &QuestionRound,
    delay: Duration,
) -> Value {
    let question_before_kill = wait_for_question(service, round).await;
    // The moment of the kill is the subject of the test.
    let kill_delay = tokio::time::sleep(delay);
    match round.kill_time {
        KillTime::AfterQuestion => kill_delay.await,
        KillTime::AfterAnswer => {
            let params = answer_params(round, &question_before_kill);
            let pid = service.pid();
            let kill_later = async {
                kill_delay.await;
                kill9(pid);
            };
            tokio::join!(service.try_call(round.agent, "message/send", &params), kill_later);
        }
    }
    service.kill9().await;
    service.start_again().await;
    let question = wait_for_question(service, round).await;
    let identity = |question: &Value| ["id", "askedAt", "dueAt"].map(|it| question[it].clone());
    assert_eq!(identity(&question), identity(&question_before_kill), "{:?}", round.kill_time);
    if question["state"] == "open" {
        let params = answer_params(round, &question);
        service.expect_result(round.agent, "message/send", &params).await;
    }
    question
}

/// Returns the parameters of a message that answers a question.
fn answer_params(round: &QuestionRound, question: &Value) -> Value {
    let verdict = if round.is_allowed { "allow" } else { "deny" };
    let answer = json!({"id": question["id"], "verdict": verdict});
    let mut params = message_params(verdict);
    params["message"]["taskId"] = round.task_id.as_str().into();
    params["message"]["metadata"] = json!({INTERACTIONS_EXTENSION: {"answers": [answer]}});
    params["configuration"] = json!({"blocking": false});
    params
}

/// Waits for the only interaction of the round, whatever its state is.
async fn wait_for_question(service: &ServiceProcess, round: &QuestionRound) -> Value {
    poll_until("the question", async || {
        let path = format!("/api/v1/interactions?execution={}", round.task_id);
        let list = service.get(&path).await.json();
        let questions = list["interactions"].as_array().unwrap();
        assert!(questions.len() <= 1, "{list}");
        questions.first().cloned()
    })
    .await
}

async fn check_round(service: &ServiceProcess, round: &QuestionRound, question: &Value) {
    let kill_time = round.kill_time;
    let task = service.wait_for_task_end(round.agent, &round.task_id).await;
    assert_eq!(task_outcome(&task), completed_outcome("done"), "{kill_time:?}: {task}");
    let tool_run_count = service
        .setup
        .read_file("ran")
        .lines()
        .filter(|line| line.ends_with(&round.command))
        .count();
    assert_eq!(
        tool_run_count,
        usize::from(round.is_allowed),
        "{kill_time:?}: the tool ran {tool_run_count} times"
    );
    let all_lines = service.setup.read_file("read");
    let lines: Vec<_> = lines_of_round(&all_lines, &round.command);
    let answer_count = lines.iter().filter(|line| line.contains(r#""outcome":{"#)).count();
    assert_eq!(answer_count, 1, "{kill_time:?}: {lines:#?}");
    assert!(lines.iter().all(|line| !line.starts_with("unexpected")), "{lines:#?}");
    let id = question["id"].as_str().unwrap();
    let closed_interaction = service.get(&format!("/api/v1/interactions/{id}")).await.json();
    assert_eq!(
        (&closed_interaction["state"], &closed_interaction["closed"]["by"]["source"]),
        (&"answered".into(), &"principal".into())
    );
    assert!(closed_interaction["closed"]["deliveredAt"].is_string(), "{closed_interaction}");
    let list = service.get("/api/v1/permission-decisions?limit=1000").await.json();
    let decisions: Vec<_> = list["decisions"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|decision| decision["execution"] == question["execution"])
        .map(|decision| (&decision["verdict"], &decision["by"]["name"]))
        .collect();
    let verdict = Value::from(if round.is_allowed { "allow" } else { "deny" });
    assert_eq!(decisions, [(&verdict, &"operator".into())], "{kill_time:?}: {list}");
}

/// Returns the lines that the program read which received this command.
fn lines_of_round<'l>(log: &'l str, command: &str) -> Vec<&'l str> {
    let pid = |line: &str| line.split('\t').nth(1).map(str::to_owned);
    let prompt = log.lines().find(|line| line.contains(command));
    let pid_of_round = pid(prompt.unwrap()).unwrap();
    log.lines().filter(|line| pid(line).as_ref() == Some(&pid_of_round)).collect()
}
