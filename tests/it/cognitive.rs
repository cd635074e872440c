//! Cognitive agents, with a simulated model and the tools of the service.

use serde_json::{Value, json};

use crate::harness::client::{
    completed_outcome, failed_outcome, json_rpc_request_body, task_id, task_outcome, task_state,
};
use crate::harness::mock_model::{
    MockModel, final_answer_turn, prompt_with_turns, turn_with_calls,
};
use crate::harness::processes::{cpu_ticks, peak_memory_bytes, reset_peak_and_read_rss};
use crate::harness::steps::fetch_steps;
use crate::harness::{ServiceProcess, Setup, message_params, poll_until};

/// Tools, and agents with them. `MODEL` is the address of the model.
const AGENTS: &str = r#"
[models.local]
base_url = "MODEL"
timeout = 5
[tools.now]
source = "handler"
handler = { kind = "clock" }
[tools.remember]
source = "handler"
handler = { kind = "notes", operation = "add" }
[tools.recall]
source = "handler"
handler = { kind = "notes", operation = "search" }
[agents.thinker]
kind = "cognitive"
layer = "perceptual"
model_id = "local/mock-1"
instructions = "Answer in one word."
max_steps = 4
tools = ["now", "remember", "recall"]
[agents.other]
kind = "cognitive"
layer = "abstract"
model_id = "local/mock-1"
tools = ["recall"]
[agents.echo]
command = "cat"
"#;

fn setup(model: &MockModel) -> Setup {
    Setup::new(&AGENTS.replace("MODEL", &model.base_url()))
}

async fn start_with_mock_model() -> (MockModel, ServiceProcess) {
    let model = MockModel::start(&[]);
    let service = setup(&model).start().await;
    (model, service)
}

/// Returns steps as `turn type tool`.
fn step_summaries(steps: &[Value]) -> Vec<String> {
    let word = |step: &Value, name: &str| step[name].as_str().unwrap_or_default().to_owned();
    let line = |step: &Value| {
        let line = format!("{} {} {}", step["turn"], word(step, "stepType"), word(step, "tool"));
        line.trim_end().to_owned()
    };
    steps.iter().map(line).collect()
}

#[tokio::test]
async fn a_model_calls_tools_until_it_has_an_answer() {
    let (model, service) = start_with_mock_model().await;
    let turns = [
        turn_with_calls(&[("now", json!({})), ("remember", json!({"text": "the door is blue"}))]),
        turn_with_calls(&[("recall", json!({"query": "door"}))]),
        final_answer_turn("blue"),
    ];
    let task = service.send("thinker", &prompt_with_turns("Which colour?", &turns)).await;
    assert_eq!(task_outcome(&task), completed_outcome("blue"));
    let steps = fetch_steps(&service, &task_id(&task)).await;
    assert_eq!(
        step_summaries(&steps),
        [
            "1 tool-call now",
            "1 tool-call remember",
            "1 observation now",
            "1 observation remember",
            "2 tool-call recall",
            "2 observation recall",
            "3 tool-call final_answer",
            "3 observation final_answer",
        ]
    );
    assert!(steps[2]["text"].as_str().unwrap().contains("weekday"), "{}", steps[2]);
    assert!(steps[5]["text"].as_str().unwrap().contains("the door is blue"), "{}", steps[5]);
    assert_eq!((&steps[0]["state"], &steps[2]["call"]), (&json!("done"), &json!(1)));
    let requests = model.fetch_requests().await;
    assert_eq!(requests.len(), 3);
    let tools = requests[0]["tools"].to_string();
    assert!(tools.contains("remember") && tools.contains("final_answer"), "{tools}");
    let page =
        service.get(&format!("/api/v1/executions/{}/steps?after=3&limit=2", task_id(&task))).await;
    let page = page.json();
    assert_eq!((&page["steps"][0]["number"], &page["next"]), (&json!(4), &json!(5)), "{page}");
    let card = service.get("/agents/thinker/.well-known/agent-card.json").await.json();
    assert!(card.to_string().contains("Kind of the agent: cognitive."), "{card}");
    assert_eq!(service.fetch_agent_status("thinker").await["kind"], "cognitive");
    let run = service.fetch_execution(&task_id(&task)).await;
    assert_eq!(run["usage"]["turns"], 3, "{run}");
}

#[tokio::test]
async fn notes_last_beyond_a_run_and_belong_to_their_agent() {
    let (_model, mut service) = start_with_mock_model().await;
    let turns = [
        turn_with_calls(&[("remember", json!({"text": "milk is out"}))]),
        final_answer_turn("noted"),
    ];
    let task = service.send("thinker", &prompt_with_turns("note", &turns)).await;
    assert_eq!(task_outcome(&task), completed_outcome("noted"));
    service.kill9().await;
    service.start_again().await;
    let turns = [turn_with_calls(&[("recall", json!({"query": "MILK"}))]), final_answer_turn("ok")];
    for (agent, should_be_found) in [("thinker", true), ("other", false)] {
        let task = service.send(agent, &prompt_with_turns("find", &turns)).await;
        let steps = fetch_steps(&service, &task_id(&task)).await;
        let found = steps[1]["text"].as_str().unwrap().contains("milk is out");
        assert_eq!(found, should_be_found, "{agent}: {steps:?}");
    }
}

#[tokio::test]
async fn a_wrong_reply_is_an_error_that_the_model_reads() {
    let (_model, service) = start_with_mock_model().await;
    let turns = [
        json!({"text": "I think it is blue."}),
        turn_with_calls(&[("open", json!({}))]),
        turn_with_calls(&[("remember", json!({"words": 1}))]),
        final_answer_turn("late"),
    ];
    let task = service.send("thinker", &prompt_with_turns("wrong", &turns)).await;
    assert_eq!(task_outcome(&task), completed_outcome("late"));
    let steps = fetch_steps(&service, &task_id(&task)).await;
    let errors: Vec<_> = steps.iter().filter(|step| step["stepType"] == "error").collect();
    let reasons = ["calls no tool", "no tool `open`", "`text` is needed"];
    assert_eq!(errors.len(), reasons.len(), "{steps:?}");
    for (error, reason) in errors.iter().zip(reasons) {
        assert_eq!(error["cause"], "refused-reply");
        let text = error["text"].as_str().unwrap();
        assert!(text.contains(reason) && text.contains("`recall`, `final_answer`"), "{text}");
    }
}

#[tokio::test]
async fn a_run_fails_with_the_reason_of_its_model() {
    let (model, service) = start_with_mock_model().await;
    let repeated_turns = [turn_with_calls(&[("now", json!({}))])];
    let cases = [
        (prompt_with_turns("long", &repeated_turns), "steps-exhausted"),
        ("[[mock status=400]]".to_owned(), "model-refused"),
        ("[[mock status=403]]".to_owned(), "model-refused"),
        ("[[mock status=404]]".to_owned(), "model-refused"),
        ("[[mock garbage turns=[{}]]]".to_owned(), "model-unusable"),
        (prompt_with_turns("empty", &[json!({"text": ""})]), "model-unusable"),
        // The last one: no further request is sent with a key that was refused.
        ("[[mock status=401]]".to_owned(), "not-authenticated"),
    ];
    for (text, code) in cases {
        let task = service.send("thinker", &text).await;
        assert_eq!(task_outcome(&task), failed_outcome(code), "{text}: {task}");
    }
    let request_count = model.fetch_requests().await.len();
    let id = service.start_task("thinker", "again").await;
    assert_eq!(task_outcome(&service.send("echo", "served").await), completed_outcome("served"));
    let waiting_execution = service.fetch_execution(&id).await;
    assert!(
        waiting_execution["outcome"].is_null(),
        "it waits for another key: {waiting_execution}"
    );
    assert_eq!(
        model.fetch_requests().await.len(),
        request_count,
        "a refused key is not sent again"
    );
}

#[tokio::test]
async fn a_provider_that_fails_for_a_moment_is_called_again() {
    let (model, service) = start_with_mock_model().await;
    let text = "[[mock status=503 times=1 turns=[{\"calls\":[{\"name\":\"final_answer\",\"args\":{\"answer\":\"up\"}}]}]]]";
    let task = service.send("thinker", text).await;
    assert_eq!(task_outcome(&task), completed_outcome("up"));
    assert_eq!(model.fetch_requests().await.len(), 2);
    let task = service.send("thinker", "[[mock status=503]]").await;
    assert_eq!(task_outcome(&task), failed_outcome("model-unavailable"), "{task}");
}

/// Starts a provider that answers each request with this body, and returns its address.
async fn start_provider_with_body(body: String) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let router = axum::Router::new().fallback(async move || body.clone());
    tokio::spawn(async move { axum::serve(listener, router).await });
    format!("http://{address}/v1")
}

/// The reply has 7 MiB. As a tree of values it would need about 700 MiB.
#[tokio::test]
async fn a_hostile_reply_needs_little_memory() {
    let objects = r#"{"":0},"#.repeat(1 << 18);
    let body = format!(r#"{{"choices":[{{"message":{{"content":[{objects}0]}}}}]}}"#);
    let provider = start_provider_with_body(body).await;
    let service = Setup::new(&AGENTS.replace("MODEL", &provider)).start().await;
    let initial_bytes = reset_peak_and_read_rss(service.pid());
    let task = service.send("thinker", "go").await;
    assert_eq!(task_outcome(&task), failed_outcome("model-unusable"), "{task}");
    let growth = peak_memory_bytes(service.pid()).saturating_sub(initial_bytes);
    assert!(growth < 40 << 20, "{} MiB more", growth >> 20);
}

#[tokio::test]
async fn a_run_is_cancelled_while_its_model_replies() {
    let (model, service) = start_with_mock_model().await;
    let id = service.start_task("thinker", "[[mock hang]] endless").await;
    model.wait_for_request("endless").await;
    let cancelled = service.cancel("thinker", &id).await;
    assert_eq!(task_state(&cancelled), "canceled", "{cancelled}");
}

#[tokio::test]
async fn a_stream_shows_the_steps_without_their_text() {
    let (_model, service) = start_with_mock_model().await;
    let turns =
        [turn_with_calls(&[("remember", json!({"text": "hidden"}))]), final_answer_turn("done")];
    let body =
        json_rpc_request_body("message/stream", &message_params(&prompt_with_turns("go", &turns)));
    let text = service.post("/agents/thinker/v1", &body).await.body;
    // The result of the tool is in the text of the observation only.
    assert!(!text.contains("stored"), "{text}");
    for expected in [r#""step":"tool-call""#, r#""step":"observation""#, r#""tool":"remember""#] {
        assert!(text.contains(expected), "no {expected} in {text}");
    }
}

#[tokio::test]
async fn the_command_line_shows_the_steps() {
    let (_model, service) = start_with_mock_model().await;
    let turns = [turn_with_calls(&[("now", json!({}))]), final_answer_turn("two\nlines")];
    let task = service.send("thinker", &prompt_with_turns("go", &turns)).await;
    let output = service.run_command(&["tasks", "show", &task_id(&task), "--steps"], "").await;
    assert_eq!(output.exit_code, Some(0), "{output:?}");
    let lines: Vec<_> = output.stdout.lines().map(str::trim_start).collect();
    assert_eq!(lines.len(), 4, "{output:?}");
    assert!(lines[0].starts_with("1  turn 1  call now: {}"), "{output:?}");
    assert!(lines[1].starts_with("2  turn 1  result of now (1), "), "{output:?}");
    assert!(lines[3].ends_with(r": two\nlines"), "{output:?}");
    let echo = service.send("echo", "x").await;
    let output = service.run_command(&["tasks", "show", &task_id(&echo), "--steps"], "").await;
    assert_eq!((output.exit_code, output.stdout.as_str()), (Some(0), ""), "{output:?}");
    assert!(output.stderr.contains("this task has no steps"), "{output:?}");
}

/// Key of the model, which is a secret of the configuration.
const MODEL_KEY: &str = "model-key-1234567890";

fn setup_with_key(model: &MockModel) -> Setup {
    let provider = "[models.local]\napi_key_env = \"MODEL_KEY\"";
    let text = AGENTS.replace("MODEL", &model.base_url()).replace("[models.local]", provider);
    Setup::new(&text).env("MODEL_KEY", MODEL_KEY)
}

#[tokio::test]
async fn an_interrupted_run_with_a_redacted_step_fails() {
    let model = MockModel::start(&["--key", MODEL_KEY]);
    let mut service = setup_with_key(&model).start().await;
    let turns = [
        turn_with_calls(&[("remember", json!({"text": MODEL_KEY}))]),
        json!({"text": "late", "delay": 4}),
    ];
    let run_id = service.start_task("thinker", &prompt_with_turns("go", &turns)).await;
    let has_second_request = async || (model.fetch_requests().await.len() >= 2).then_some(());
    poll_until("the second request", has_second_request).await;
    service.kill9().await;
    service.start_again().await;
    let task = service.wait_for_task_end("thinker", &run_id).await;
    assert_eq!(task_outcome(&task), failed_outcome("interrupted"));
}

#[tokio::test]
async fn secrets_are_redacted_in_steps_and_notes() {
    let model = MockModel::start(&["--key", MODEL_KEY]);
    let service = setup_with_key(&model).start().await;
    let turns = [
        turn_with_calls(&[("remember", json!({"text": "the key is model-key-1234567890"}))]),
        turn_with_calls(&[("recall", json!({"query": "key"}))]),
        final_answer_turn("model-key-1234567890"),
    ];
    let task = service.send("thinker", &prompt_with_turns("go", &turns)).await;
    assert_eq!(task_state(&task), "completed", "{task}");
    let steps = fetch_steps(&service, &task_id(&task)).await;
    let steps_and_task_text = format!("{steps:?}{task}");
    assert!(!steps_and_task_text.contains("model-key-1234567890"), "{steps_and_task_text}");
    let redacted_steps: Vec<_> = steps.iter().filter(|step| step["redacted"] == 1).collect();
    // The note, and the call and the result with the answer. The found note was stored redacted.
    assert_eq!(redacted_steps.len(), 3, "{steps:?}");
    let ledger = service.setup.read_ledger_files();
    let key = b"model-key-1234567890";
    assert!(!ledger.windows(key.len()).any(|bytes| bytes == key), "the key is in the ledger");
}

/// A busy loop would use about 200 ticks in two seconds.
#[tokio::test]
async fn a_run_that_waits_for_a_reply_runs_no_busy_loop() {
    let (model, service) = start_with_mock_model().await;
    let id = service.start_task("thinker", "[[mock hang]] slow").await;
    model.wait_for_request("slow").await;
    let initial_ticks = cpu_ticks(service.pid());
    // The processor time during the wait is the subject of the test.
    tokio::time::sleep(std::time::Duration::from_secs(2)).await;
    let used_ticks = cpu_ticks(service.pid()) - initial_ticks;
    assert!(used_ticks < 50, "{used_ticks} ticks in two seconds");
    assert_eq!(task_state(&service.cancel("thinker", &id).await), "canceled", "the run waited");
}
