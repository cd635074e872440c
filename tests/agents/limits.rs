//! Rate limits, overloads, endless errors and slow models: the number of requests to the model, and the delay for the
//! caller. Each agent is configured as its preset, without other retry settings.

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::Value;
use tokio::time::Instant;

use crate::cases::AgentCase;
use crate::client::task_state_and_code;
use crate::fixture::{AGENT, AgentFixture, PRESET_AGENT};

/// Cases by name, in their order.
pub(crate) const LIMIT_CASES: &[(&str, AgentCase)] = &[
    ("429 with Retry-After", retry_after),
    ("429 without a time", rate_limit_deferral),
    ("500 for ever", endless_errors),
    ("529", overload),
    ("patience", preset_time_limits),
];

/// Delay in seconds that the model requests. The agents' own pauses before their first retries are shorter, so the test
/// can tell which delay was observed.
const REQUESTED_DELAY_SECONDS: i64 = 12;

/// Greatest number of requests per message while the model answers every one with an error, or breaks it off.
pub(crate) const MAX_REQUESTS_PER_MESSAGE: usize = 12;

/// Seconds within which the caller learns that the model answers with errors only.
const MAX_FAILURE_REPORT_SECONDS: u64 = 60;

/// Seconds for which a model may be silent before its first output.
const MAX_MODEL_SILENCE_SECONDS: f64 = 125.0;

/// Seconds for which a coding agent may work.
const MIN_TIMEOUT_SECONDS: f64 = 1800.0;

/// Agents that neither report the provider's delay nor observe it after their own retries.
const AGENTS_IGNORING_DELAY: [&str; 5] = ["codex", "copilot", "llm", "aider", "opencode"];

/// Case: the first request is refused with a delay. No request arrives before its end, and one arrives soon after: from
/// the agent itself, or from another attempt of the service.
fn retry_after(fixture: &AgentFixture<'_>) {
    let text = "one short limit";
    let directive = format!(
        "[[mock status=429 retry_after={REQUESTED_DELAY_SECONDS} reset={REQUESTED_DELAY_SECONDS} times=1]]"
    );
    let started_at = Instant::now();
    let task = fixture.client.send(PRESET_AGENT, &format!("{text} {directive}"));
    fixture.assert_completed(&task, &format!("ECHO: {text}"));
    let seconds = started_at.elapsed().as_secs();
    fixture.add_note(format!(
        "{} requests, after {seconds} s in all",
        fixture.model.requests_containing(text).len()
    ));
    // Agents with shorter pauses of their own retry earlier, and this model answers them.
    assert!(seconds < 60, "answered after {seconds} s");
}

/// Case: a limit without a delay that outlasts the agent's own retries defers the execution for five seconds at first,
/// and never for a quarter of an hour. A limit with a delay defers it for that delay.
fn rate_limit_deferral(fixture: &AgentFixture<'_>) {
    for (text, requested_delay) in
        [("a limit of no time", None), ("a limit of some time", Some(REQUESTED_DELAY_SECONDS))]
    {
        let delay_setting = requested_delay
            .map_or(String::new(), |requested_delay| format!("retry_after={requested_delay}"));
        let id = fixture
            .client
            .start_task(PRESET_AGENT, &format!("{text} [[mock status=429 {delay_setting}]]"));
        let deferral = fixture.wait_for_deferral(&id);
        fixture.client.cancel(PRESET_AGENT, &id);
        let wait_time = deferral.wait_time();
        let expected_delay = match requested_delay {
            Some(requested_delay) if !AGENTS_IGNORING_DELAY.contains(&fixture.agent.name) => {
                requested_delay
            }
            _ => 5,
        };
        // An agent that reports its own pause adds a little to the requested delay; a busy machine records it late.
        let (shortest, longest) =
            (TimeDelta::seconds(expected_delay - 3), TimeDelta::seconds(expected_delay + 3));
        assert_eq!(deferral.cause, "rate-limited", "{text}");
        assert!(shortest <= wait_time && wait_time <= longest, "{text}: it waits for {wait_time}");
    }
}

/// Case: the retries of the agent and of the service are not multiplied, and the caller soon learns of a lasting
/// failure.
fn endless_errors(fixture: &AgentFixture<'_>) {
    let (text, started_at) = ("nothing but errors", Instant::now());
    let task = fixture.client.send(PRESET_AGENT, &format!("{text} [[mock status=500]]"));
    let seconds = started_at.elapsed().as_secs();
    assert_eq!(
        task_state_and_code(&task),
        ("failed".to_owned(), "agent-transient".to_owned()),
        "{task}"
    );
    let request_count = fixture.model.requests_containing(text).len();
    fixture.add_note(format!(
        "{request_count} requests in {seconds} s, {} attempts",
        fixture.attempt_count(&task)
    ));
    assert!(request_count <= MAX_REQUESTS_PER_MESSAGE, "{request_count} requests");
    assert!(seconds <= MAX_FAILURE_REPORT_SECONDS, "known after {seconds} s");
}

/// Case: an overload is neither a limit of the account nor an ordinary error.
fn overload(fixture: &AgentFixture<'_>) {
    let task = fixture.client.send(AGENT, "too busy for now [[mock status=529]]");
    assert_eq!(
        task_state_and_code(&task),
        ("failed".to_owned(), "agent-overloaded".to_owned()),
        "{task}"
    );
    let (text, started_at) = ("too busy for long", Instant::now());
    let id = fixture.client.start_task(PRESET_AGENT, &format!("{text} [[mock status=529]]"));
    let deferral = fixture.wait_for_deferral(&id);
    let seconds = started_at.elapsed().as_secs();
    fixture.client.cancel(PRESET_AGENT, &id);
    assert_eq!(deferral.cause, "overloaded");
    let request_count = fixture.model.requests_containing(text).len();
    fixture.add_note(format!(
        "{request_count} requests in {seconds} s, then deferred for {}",
        deferral.wait_time()
    ));
    assert!(
        request_count * 2 <= MAX_REQUESTS_PER_MESSAGE,
        "{request_count} requests, and as many after the pause"
    );
    assert!(seconds <= MAX_FAILURE_REPORT_SECONDS, "known after {seconds} s");
}

/// Case: the preset lets an agent work for long, and ends no agent whose model is silent for two minutes.
fn preset_time_limits(fixture: &AgentFixture<'_>) {
    let limits = &fixture.client.agent(PRESET_AGENT)["limits"];
    assert!(limits["timeout"].as_f64() >= Some(MIN_TIMEOUT_SECONDS), "{limits}");
    assert!(
        limits["idleTimeout"].as_f64().is_none_or(|idle| idle > MAX_MODEL_SILENCE_SECONDS),
        "{limits}"
    );
}

/// Deferral of an execution.
struct ObservedDeferral {
    deferred_at: DateTime<Utc>,
    deferred_until: DateTime<Utc>,
    cause: String,
}

impl ObservedDeferral {
    fn wait_time(&self) -> TimeDelta {
        self.deferred_until - self.deferred_at
    }
}

impl AgentFixture<'_> {
    /// Returns the first deferral of an execution.
    fn wait_for_deferral(&self, id: &str) -> ObservedDeferral {
        let event = self.client.wait_for_event(id, "deferred");
        let time = |value: &Value| value.as_str().and_then(|text| text.parse().ok());
        let times = (time(&event["at"]), time(&event["data"]["until"]));
        let (Some(at), Some(until)) = times else { panic!("{event}") };
        let cause = event["data"]["cause"].as_str().expect("a cause").to_owned();
        ObservedDeferral { deferred_at: at, deferred_until: until, cause }
    }
}
