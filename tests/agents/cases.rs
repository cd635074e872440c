//! Cases for every agent.

use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use crate::agents::UsageAccuracy;
use crate::client::{answer_text, task_state_and_code};
use crate::fixture::{
    AGENT, AgentFixture, DEFERRING_AGENT, PRESET_AGENT, SECRET_WORD, SHORT_IDLE_AGENT,
};
use crate::limits::MAX_REQUESTS_PER_MESSAGE;

/// Case with the fixture of an agent.
pub(crate) type AgentCase = fn(&AgentFixture<'_>);

/// Cases by name, in their order.
pub(crate) const CASES: &[(&str, AgentCase)] = &[
    ("version", program_version),
    ("three commands", three_commands),
    ("a tool", tool_call),
    ("a file of the message", file_of_message),
    ("permission denied", permission_denied),
    ("401", refused_key),
    ("429", exhausted_quota),
    ("429 then success", quota_deferral),
    ("500 then success", recovery_after_error),
    ("dropped stream", dropped_stream),
    ("cut answer", truncated_stream),
    ("streamed", streamed_answer),
    ("hang", hanging_model),
    ("cancel", cancellation),
    ("2 MB", large_answer),
    (TEN_AT_ONCE, ten_at_once),
    ("secret prompt", secret_prompt),
    ("usage", reported_usage),
    ("session", resumed_session),
];

/// Case with the greatest memory usage.
pub(crate) const TEN_AT_ONCE: &str = "ten at once";

/// Text in the prompt that is answered with an exhausted quota.
const QUOTA_PROMPT: &str = "too much";
/// Directive of that answer.
const QUOTA_DIRECTIVE: &str = "status=429 retry_after=1 reset=1";

/// Case: the version is the installed one, and one that its preset was tested with.
fn program_version(fixture: &AgentFixture<'_>) {
    for id in [AGENT, SHORT_IDLE_AGENT, DEFERRING_AGENT, PRESET_AGENT] {
        let program = fixture.client.wait_for_program(id);
        assert_eq!(program["version"], fixture.agent.package.version(), "{program}");
        assert!(program["warning"].is_null(), "{program}");
    }
}

/// Case: three requests, one of them with all characters that a shell would interpret.
fn three_commands(fixture: &AgentFixture<'_>) {
    let started_at = Instant::now();
    for text in
        ["say hello", "count to three", "first \"line\"\nsecond $HOME `id` 'ünïcode' & done"]
    {
        let task = fixture.client.send(AGENT, text);
        fixture.assert_completed(&task, &format!("ECHO: {text}"));
    }
    fixture.add_measurement(
        "short answer",
        &format!("{:.1} s", started_at.elapsed().as_secs_f64() / 3.0),
    );
}

/// Case: a tool reads a file of the working directory, and the model receives its contents.
fn tool_call(fixture: &AgentFixture<'_>) {
    let tool = fixture.agent.read_call.expect("an agent with tools");
    let prompt = format!("read it {}", fixture.tool_directive(tool));
    fixture.assert_completed(&fixture.client.send(AGENT, &prompt), "a note for the test");
}

/// Case: the prompt has the path of a file of the message, and a tool of the read-only agent reads it there.
fn file_of_message(fixture: &AgentFixture<'_>) {
    let (name, arguments) = fixture.agent.read_call.expect("an agent with tools");
    let arguments = arguments.replace("WORK/notes.txt", "LISTED_FILE");
    let prompt = format!("read mine [[mock tool={name} args={arguments}]]");
    let content = "YSBub3RlIG9mIHRoZSBjYWxsZXI="; // a note of the caller
    let file = json!({"name": "mine.txt", "mimeType": "text/plain", "bytes": content});
    let task = fixture.client.send_with_file(AGENT, &prompt, file);
    fixture.assert_completed(&task, "a note of the caller");
}

/// Case: the agent does not do what it may not, however the model requests it.
fn permission_denied(fixture: &AgentFixture<'_>) {
    let tool = fixture.agent.write_call.expect("an agent with tools");
    let task = fixture.client.send(AGENT, &format!("write it {}", fixture.tool_directive(tool)));
    assert!(!fixture.work_folder.join("denied.txt").exists(), "it wrote what it may not: {task}");
    fixture.assert_ended(&task, fixture.agent.outcome_when_denied);
    let reports_denial = fixture.events_of_kind(&task, "warning").iter().any(|event| {
        event["message"]
            .as_str()
            .is_some_and(|message| message.starts_with("it answered, but was not"))
    });
    assert_eq!(reports_denial, fixture.agent.reports_denial, "{}", fixture.client.execution(&task));
}

/// Case: a refused key is reported at once, without another attempt.
fn refused_key(fixture: &AgentFixture<'_>) {
    let task = fixture.client.send(AGENT, "not for you [[mock status=401]]");
    fixture.assert_ended(&task, fixture.agent.outcome_when_unauthorised);
    assert_eq!(fixture.attempt_count(&task), 1, "{task}");
}

/// Case: an exhausted quota is not retried if no deferral is permitted.
fn exhausted_quota(fixture: &AgentFixture<'_>) {
    let task = fixture.client.send(AGENT, &format!("{QUOTA_PROMPT} [[mock {QUOTA_DIRECTIVE}]]"));
    fixture.assert_ended(&task, fixture.agent.outcome_when_rate_limited);
    assert_eq!(fixture.attempt_count(&task), 1, "{task}");
}

/// Case: with deferral permitted, the execution continues after the quota is renewed. The quota is exhausted for as
/// many requests as the agent sent before.
fn quota_deferral(fixture: &AgentFixture<'_>) {
    let request_count = fixture.model.requests_containing(QUOTA_PROMPT).len();
    let task = fixture.client.send(
        DEFERRING_AGENT,
        &format!("go on then [[mock {QUOTA_DIRECTIVE} times={request_count}]]"),
    );
    fixture.assert_completed(&task, "ECHO: go on then");
    assert_eq!(
        fixture.events_of_kind(&task, "deferred").len(),
        1,
        "{}",
        fixture.client.execution(&task)
    );
    assert_eq!(fixture.attempt_count(&task), 2, "{task}");
}

/// Case: a transient failure is overcome, by the agent itself or by another attempt.
fn recovery_after_error(fixture: &AgentFixture<'_>) {
    let task = fixture.client.send(AGENT, "try again [[mock status=500 times=1]]");
    fixture.assert_completed(&task, "ECHO: try again");
    assert!(fixture.model.requests_containing("try again").len() > 1, "nobody tried again");
}

/// Case: the connection breaks in the middle of every answer.
fn dropped_stream(fixture: &AgentFixture<'_>) {
    let task = fixture.client.send(AGENT, "some words that will be broken off [[mock drop]]");
    fixture.assert_ended(&task, fixture.agent.outcome_when_stream_dropped);
}

/// Case: the stream of every answer ends in the middle without an error. Half an answer is never a success, and the
/// number of requests is bounded.
fn truncated_stream(fixture: &AgentFixture<'_>) {
    let prompt = "words that will be cut off, so that nobody takes them for all [[mock cut]]";
    let task = fixture.client.send(AGENT, prompt);
    let (state, code) = task_state_and_code(&task);
    assert_eq!(state, "failed", "{task}");
    let request_count = fixture.model.requests_containing("words that will be cut off").len();
    assert!(request_count <= MAX_REQUESTS_PER_MESSAGE, "{request_count} requests");
    fixture.add_measurement(
        "cut answer",
        &format!("`{code}` after {request_count} calls of the model"),
    );
}

/// Case: a follower has the start of the answer long before the model has written its end, and the pieces together are
/// the answer.
fn streamed_answer(fixture: &AgentFixture<'_>) {
    let text = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen";
    let events = fixture
        .client
        .send_and_follow(AGENT, &format!("[[mock text=\"{text}\" piece=6 drip=0.25]]"));
    let (end_time, last_event) = events.last().expect("an end");
    assert_eq!(last_event.pointer("/status/state"), Some(&"completed".into()), "{last_event}");
    let pieces: Vec<_> =
        events.iter().filter(|(_, event)| event["kind"] == "artifact-update").collect();
    // Some programs write lines of their own before the model's first text.
    let (mut streamed_text, mut first_text_time) = (String::new(), None);
    for (elapsed, piece) in &pieces {
        if piece["append"] != true {
            streamed_text.clear();
        }
        streamed_text +=
            piece.pointer("/artifact/parts/0/text").and_then(Value::as_str).unwrap_or("");
        first_text_time =
            first_text_time.or_else(|| streamed_text.contains("one two").then_some(*elapsed));
    }
    let id = last_event["taskId"].as_str().expect("a task");
    let task = fixture.client.task(AGENT, id);
    assert_eq!(streamed_text, answer_text(&task), "the pieces are another text: {pieces:?}");
    fixture.assert_completed(&task, text);
    // The model writes 14 pieces, with a quarter of a second after each. Some programs work for a second after their
    // answer.
    let lead_time = end_time.saturating_sub(first_text_time.expect("the beginning of the answer"));
    let is_streamed = pieces.len() > 3 && lead_time > Duration::from_secs(2);
    assert_eq!(is_streamed, fixture.agent.is_streamed, "{} pieces, {lead_time:?}", pieces.len());
    fixture.add_measurement(
        "stream",
        if is_streamed { "while the model writes" } else { "at the end" },
    );
}

/// Case: a silent program is ended.
fn hanging_model(fixture: &AgentFixture<'_>) {
    let task = fixture.client.send(SHORT_IDLE_AGENT, "are you there? [[mock hang]]");
    assert_eq!(task_state_and_code(&task).1, "idle-timeout", "{task}");
}

/// Case: a program that is cancelled while the model thinks is gone when the caller gets the answer.
fn cancellation(fixture: &AgentFixture<'_>) {
    let id = fixture.client.start_task(AGENT, "call this off [[mock hang]]");
    fixture.model.wait_for_request("call this off");
    let started_at = Instant::now();
    let task = fixture.client.cancel(AGENT, &id);
    assert_eq!(task_state_and_code(&task).0, "canceled", "{task}");
    fixture.add_measurement(
        "cancel",
        &format!("after {} ms, no process is left", started_at.elapsed().as_millis()),
    );
}

/// Case: an answer of two million bytes arrives whole.
fn large_answer(fixture: &AgentFixture<'_>) {
    let task = fixture.client.send(AGENT, "at length [[mock size=2000000]]");
    assert_eq!(task_state_and_code(&task).0, "completed", "{:?}", task_state_and_code(&task));
    let answer = answer_text(&task);
    let line_count = answer.matches("line 00").count();
    assert!(
        answer.len() >= 2_000_000 && line_count > 40_000,
        "{} bytes, {line_count} lines",
        answer.len()
    );
}

/// Case: ten runs are active at once, because the model answers none before an eleventh request arrives, and each has
/// its own answer. Their memory is bounded; their slowdown is only reported, because it depends on the processors of
/// the machine.
fn ten_at_once(fixture: &AgentFixture<'_>) {
    const TOGETHER_DIRECTIVE: &str = "[[mock together=11]]";
    let started_at = Instant::now();
    fixture.assert_completed(&fixture.client.send(AGENT, "one alone"), "ECHO: one alone");
    let single_duration = started_at.elapsed();
    let texts: Vec<_> = (0..10).map(|number| format!("number {number} of ten")).collect();
    let (client, started_at) = (&fixture.client, Instant::now());
    let (memory_bytes, tasks) = thread::scope(|scope| {
        let send = |text| client.send(AGENT, &format!("{text} {TOGETHER_DIRECTIVE}"));
        let senders: Vec<_> = texts.iter().map(|text| scope.spawn(move || send(text))).collect();
        texts.iter().for_each(|text| fixture.model.wait_for_request(text));
        let memory_bytes = fixture.memory_bytes();
        fixture.model.send_prompt(&format!("the eleventh {TOGETHER_DIRECTIVE}"));
        let tasks = senders.into_iter().map(|sender| sender.join().expect("a task"));
        (memory_bytes, tasks.collect::<Vec<_>>())
    });
    let concurrent_duration = started_at.elapsed();
    for (task, text) in tasks.iter().zip(&texts) {
        fixture.assert_completed(task, &format!("ECHO: {text}"));
    }
    assert!(memory_bytes < fixture.agent.ten_runs_max_bytes, "they take {memory_bytes} bytes");
    fixture.add_note(format!(
        "in {:.1} s and {} MB, where one takes {:.1} s; {} processors",
        concurrent_duration.as_secs_f64(),
        memory_bytes / 1_000_000,
        single_duration.as_secs_f64(),
        thread::available_parallelism().map_or(1, usize::from),
    ));
}

/// Case: no file outside the home of the agent contains the prompt; the check follows at the end.
fn secret_prompt(fixture: &AgentFixture<'_>) {
    let task =
        fixture.client.send(AGENT, &format!("keep {SECRET_WORD} [[mock text=\"no word of it\"]]"));
    fixture.assert_completed(&task, "no word of it");
    assert!(!fixture.model.requests_containing(SECRET_WORD).is_empty(), "the model was not asked");
}

/// Case: the reported usage matches the model's numbers.
fn reported_usage(fixture: &AgentFixture<'_>) {
    let task = fixture.client.send(AGENT, "count this [[mock usage=1000,50]]");
    let execution = fixture.client.execution(&task);
    let usage = execution.pointer("/attempts/0/used").unwrap_or(&Value::Null);
    let reported_tokens = [&usage["input_tokens"], &usage["output_tokens"]].map(Value::as_u64);
    let expected = [Some(1000), Some(50)];
    match fixture.agent.usage_accuracy {
        UsageAccuracy::Exact => assert_eq!(reported_tokens, expected, "{execution}"),
        UsageAccuracy::AtLeast => {
            assert!(
                reported_tokens[0] > expected[0] && reported_tokens[1] > expected[1],
                "{execution}"
            );
        }
    }
    fixture.add_measurement(
        "tokens",
        match fixture.agent.usage_accuracy {
            UsageAccuracy::Exact => "as the model counts them",
            UsageAccuracy::AtLeast => "as the model counts them, with those of further calls",
        },
    );
}

/// Case: a second message of the same conversation resumes the agent's own session: the model receives the first one
/// too.
fn resumed_session(fixture: &AgentFixture<'_>) {
    let first = fixture.client.send(AGENT, "the first turn");
    let context = first["contextId"].as_str().expect("a task has a context");
    let second = fixture.client.send_in_context(AGENT, "the second turn", context);
    fixture.assert_completed(&second, "ECHO: the second turn");
    let requests = fixture.model.requests_containing("the second turn");
    let turns = requests.last().and_then(|line| line["turns"].as_u64());
    assert!(turns >= Some(2), "the agent began anew: {requests:?}");
    fixture.add_measurement("session", "the second turn knows the first");
}

impl AgentFixture<'_> {
    /// Asserts that a task was completed, and that its answer contains this text.
    pub(crate) fn assert_completed(&self, task: &Value, text: &str) {
        assert_eq!(task_state_and_code(task).0, "completed", "{task}");
        let answer = answer_text(task);
        let is_expected = if self.agent.is_answer_verbatim && text.starts_with("ECHO") {
            answer.trim() == text
        } else {
            answer.contains(text)
        };
        assert!(is_expected, "expected {text:?}, got {answer:?}");
    }

    fn assert_ended(&self, task: &Value, (state, code): (&str, &str)) {
        let (actual_state, actual_code) = task_state_and_code(task);
        let is_expected_code = code.is_empty() && state == "failed" || actual_code == code;
        assert!(
            actual_state == state && is_expected_code,
            "expected {state} {code}, got {actual_state} {actual_code}: {task}"
        );
    }

    /// Returns the events of this kind of a task.
    fn events_of_kind(&self, task: &Value, kind: &str) -> Vec<Value> {
        let execution = self.client.execution(task);
        let events = execution["events"].as_array().unwrap_or_else(|| panic!("{execution}"));
        let event_data = events.iter().map(|event| &event["data"]);
        event_data.filter(|data| data["kind"] == kind).cloned().collect()
    }

    pub(crate) fn attempt_count(&self, task: &Value) -> usize {
        let execution = self.client.execution(task);
        execution["attempts"].as_array().unwrap_or_else(|| panic!("{execution}")).len()
    }

    /// Returns a directive to call this tool, in the working directory.
    fn tool_directive(&self, (name, arguments): (&str, &str)) -> String {
        let arguments = arguments.replace("WORK", &self.work_folder.display().to_string());
        format!("[[mock tool={name} args={arguments}]]")
    }
}
