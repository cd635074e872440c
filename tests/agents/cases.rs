//! What every agent has to go through.

use std::thread;

use serde_json::Value;
use tokio::time::Instant;

use crate::agents::Count;
use crate::door::{answer, outcome};
use crate::stage::{AGENT, IMPATIENT, PATIENT, SECRET_WORD, Stage};

/// What is played on a stage.
type Case = fn(&Stage<'_>);

/// The cases by name, in the order in which they are played.
pub(crate) const CASES: &[(&str, Case)] = &[
    ("version", version),
    ("three commands", three_commands),
    ("a tool", a_tool),
    ("permission denied", permission_denied),
    ("401", unauthorised),
    ("429", limited),
    ("429 then success", parked),
    ("500 then success", recovered),
    ("dropped stream", dropped),
    ("hang", hang),
    ("cancel", cancel),
    ("2 MB", large),
    (TEN, ten_at_once),
    ("secret prompt", secret_prompt),
    ("usage", usage),
    ("session", session),
];

/// The case that takes the most of the machine.
pub(crate) const TEN: &str = "ten at once";

/// In the prompt of which the answer is that the quota is used up.
const LIMITED: &str = "too much";
/// How that is answered.
const USED_UP: &str = "status=429 retry_after=1 reset=1";

/// It is the version that was installed, and one that its preset was tested with.
fn version(stage: &Stage<'_>) {
    for id in [AGENT, IMPATIENT, PATIENT] {
        let program = stage.door.program(id);
        assert_eq!(program["version"], stage.agent.package.version(), "{program}");
        assert!(program["warning"].is_null(), "{program}");
    }
}

/// Three requests, one of them with everything that a shell would trip over.
fn three_commands(stage: &Stage<'_>) {
    for text in
        ["say hello", "count to three", "first \"line\"\nsecond $HOME `id` 'ünïcode' & done"]
    {
        let task = stage.door.send(AGENT, text);
        stage.completed(&task, &format!("ECHO: {text}"));
    }
}

/// A tool reads a file of the working folder, and the model is told what it read.
fn a_tool(stage: &Stage<'_>) {
    let tool = stage.agent.reads.expect("an agent with tools");
    let prompt = format!("read it {}", stage.directive(tool));
    stage.completed(&stage.door.send(AGENT, &prompt), "a note for the test");
}

/// What the agent may not do it does not do, however the model asks.
fn permission_denied(stage: &Stage<'_>) {
    let tool = stage.agent.writes.expect("an agent with tools");
    let task = stage.door.send(AGENT, &format!("write it {}", stage.directive(tool)));
    assert!(!stage.work.join("denied.txt").exists(), "it wrote what it may not: {task}");
    stage.ended(&task, stage.agent.when_denied);
    let is_warned = stage.facts(&task, "warned").iter().any(|fact| {
        fact["message"].as_str().is_some_and(|said| said.starts_with("it answered, but was not"))
    });
    assert_eq!(is_warned, stage.agent.is_warned, "{}", stage.door.execution(&task));
}

/// A key that is refused is told at once: no other attempt is made.
fn unauthorised(stage: &Stage<'_>) {
    let task = stage.door.send(AGENT, "not for you [[mock status=401]]");
    stage.ended(&task, stage.agent.when_unauthorised);
    assert_eq!(stage.attempts(&task), 1, "{task}");
}

/// A quota that is used up is not tried again where nothing may wait for it.
fn limited(stage: &Stage<'_>) {
    let task = stage.door.send(AGENT, &format!("{LIMITED} [[mock {USED_UP}]]"));
    stage.ended(&task, stage.agent.when_limited);
    assert_eq!(stage.attempts(&task), 1, "{task}");
}

/// Where it may be waited for, the work goes on when the quota is renewed. It is used up for as many
/// questions as the agent asked before.
fn parked(stage: &Stage<'_>) {
    let times = stage.model.asked(LIMITED).len();
    let task = stage.door.send(PATIENT, &format!("go on then [[mock {USED_UP} times={times}]]"));
    stage.completed(&task, "ECHO: go on then");
    assert_eq!(stage.facts(&task, "parked").len(), 1, "{}", stage.door.execution(&task));
    assert_eq!(stage.attempts(&task), 2, "{task}");
}

/// A failure that passes is got over, by the agent itself or by another attempt.
fn recovered(stage: &Stage<'_>) {
    let task = stage.door.send(AGENT, "try again [[mock status=500 times=1]]");
    stage.completed(&task, "ECHO: try again");
    assert!(stage.model.asked("try again").len() > 1, "nobody tried again");
}

/// The connection breaks in the middle of every answer.
fn dropped(stage: &Stage<'_>) {
    let task = stage.door.send(AGENT, "some words that will be broken off [[mock drop]]");
    stage.ended(&task, stage.agent.when_dropped);
}

/// Silence is ended.
fn hang(stage: &Stage<'_>) {
    let task = stage.door.send(IMPATIENT, "are you there? [[mock hang]]");
    assert_eq!(outcome(&task).1, "idle-timeout", "{task}");
}

/// Called off while the model thinks, it is gone when the caller is told so.
fn cancel(stage: &Stage<'_>) {
    let id = stage.door.begin(AGENT, "call this off [[mock hang]]");
    stage.model.wait_for("call this off");
    let task = stage.door.cancel(AGENT, &id);
    assert_eq!(outcome(&task).0, "canceled", "{task}");
}

/// An answer of two million bytes comes whole.
fn large(stage: &Stage<'_>) {
    let task = stage.door.send(AGENT, "at length [[mock size=2000000]]");
    assert_eq!(outcome(&task).0, "completed", "{:?}", outcome(&task));
    let answer = answer(&task);
    let lines = answer.matches("line 00").count();
    assert!(answer.len() >= 2_000_000 && lines > 40_000, "{} bytes, {lines} lines", answer.len());
}

/// Ten runs are at work at once, for the model answers none before an eleventh question comes, and each has
/// its own answer. What they take is bounded; how much longer they take than one alone is told, for the
/// processors of the machine decide that.
fn ten_at_once(stage: &Stage<'_>) {
    const TOGETHER: &str = "[[mock together=11]]";
    let begun = Instant::now();
    stage.completed(&stage.door.send(AGENT, "one alone"), "ECHO: one alone");
    let alone = begun.elapsed();
    let texts: Vec<_> = (0..10).map(|number| format!("number {number} of ten")).collect();
    let (door, begun) = (&stage.door, Instant::now());
    let (memory, tasks) = thread::scope(|scope| {
        let send = |text| door.send(AGENT, &format!("{text} {TOGETHER}"));
        let sends: Vec<_> = texts.iter().map(|text| scope.spawn(move || send(text))).collect();
        texts.iter().for_each(|text| stage.model.wait_for(text));
        let memory = stage.memory();
        stage.model.ask(&format!("the eleventh {TOGETHER}"));
        let tasks = sends.into_iter().map(|send| send.join().expect("a task"));
        (memory, tasks.collect::<Vec<_>>())
    });
    let together = begun.elapsed();
    for (task, text) in tasks.iter().zip(&texts) {
        stage.completed(task, &format!("ECHO: {text}"));
    }
    assert!(memory < stage.agent.ten, "they take {memory} bytes");
    stage.note(format!(
        "in {:.1} s and {} MB, where one takes {:.1} s; {} processors",
        together.as_secs_f64(),
        memory / 1_000_000,
        alone.as_secs_f64(),
        thread::available_parallelism().map_or(1, usize::from),
    ));
}

/// What is asked is in no file outside the home of the agent; that is looked up in the end.
fn secret_prompt(stage: &Stage<'_>) {
    let task =
        stage.door.send(AGENT, &format!("keep {SECRET_WORD} [[mock text=\"no word of it\"]]"));
    stage.completed(&task, "no word of it");
    assert!(!stage.model.asked(SECRET_WORD).is_empty(), "the model was not asked");
}

/// What was used is told as the model told it.
fn usage(stage: &Stage<'_>) {
    let task = stage.door.send(AGENT, "count this [[mock usage=1000,50]]");
    let execution = stage.door.execution(&task);
    let used = execution.pointer("/attempts/0/used").unwrap_or(&Value::Null);
    let counted = [&used["input_tokens"], &used["output_tokens"]].map(Value::as_u64);
    let told = [Some(1000), Some(50)];
    match stage.agent.counts {
        Count::Exact => assert_eq!(counted, told, "{execution}"),
        Count::More => assert!(counted[0] > told[0] && counted[1] > told[1], "{execution}"),
    }
}

/// A second message of the same conversation goes on with the agent's own session: the model is told
/// of the first one too.
fn session(stage: &Stage<'_>) {
    let first = stage.door.send(AGENT, "the first turn");
    let context = first["contextId"].as_str().expect("a task has a context");
    let second = stage.door.send_in(AGENT, "the second turn", context);
    stage.completed(&second, "ECHO: the second turn");
    let asked = stage.model.asked("the second turn");
    let turns = asked.last().and_then(|line| line["turns"].as_u64());
    assert!(turns >= Some(2), "the agent began anew: {asked:?}");
}

impl Stage<'_> {
    /// Asserts that a task was completed, and that its answer has this.
    fn completed(&self, task: &Value, text: &str) {
        assert_eq!(outcome(task).0, "completed", "{task}");
        let answer = answer(task);
        let is_right = if self.agent.is_exact && text.starts_with("ECHO") {
            answer.trim() == text
        } else {
            answer.contains(text)
        };
        assert!(is_right, "expected {text:?}, got {answer:?}");
    }

    fn ended(&self, task: &Value, (state, code): (&str, &str)) {
        let (ended, why) = outcome(task);
        let is_why = code.is_empty() && state == "failed" || why == code;
        assert!(ended == state && is_why, "expected {state} {code}, got {ended} {why}: {task}");
    }

    /// What is known of this kind about a task.
    fn facts(&self, task: &Value, kind: &str) -> Vec<Value> {
        let execution = self.door.execution(task);
        let events = execution["events"].as_array().unwrap_or_else(|| panic!("{execution}"));
        let facts = events.iter().map(|event| &event["fact"]);
        facts.filter(|fact| fact["kind"] == kind).cloned().collect()
    }

    fn attempts(&self, task: &Value) -> usize {
        let execution = self.door.execution(task);
        execution["attempts"].as_array().unwrap_or_else(|| panic!("{execution}")).len()
    }

    /// A directive to call this tool, in the working folder.
    fn directive(&self, (name, arguments): (&str, &str)) -> String {
        let arguments = arguments.replace("WORK", &self.work.display().to_string());
        format!("[[mock tool={name} args={arguments}]]")
    }
}
