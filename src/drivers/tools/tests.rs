//! Tests of the handlers of tools, with notes in memory and a fixed clock.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use algonius_actors::model::agent::cognitive::ToolSpec;
use algonius_actors::model::execution::AttemptId;
use algonius_actors::model::host::resources::ResourceLimits;
use algonius_actors::model::host::sandbox::{Confinement, Sandbox};
use algonius_actors::model::id::{AgentId, ExecutionId};
use algonius_actors::model::program::backend_program::BackendProgram;
use algonius_actors::model::program::tool_program::ToolProgram;
use algonius_actors::ports::ledger::LedgerError;
use algonius_actors::ports::note_store::{NewNote, Note};
use algonius_actors::ports::session_store::NoopSessionStore;
use algonius_actors::ports::tools::TextRedactor;
use algonius_warden::confinement::socket_search::EscapeSocketSearch;
use algonius_warden::confinement::sockets::EscapeSocketLocations;
use algonius_warden::{LaunchRequest, ProgramLauncher, ProgramTakenOver, SpawnedProgram};
use serde_json::Value;
use tokio::sync::Mutex;

use super::*;
use crate::drivers::program::context::{DriverSettings, SharedDriverContext};

struct FixedClock;

impl Clock for FixedClock {
    fn now(&self) -> DateTime<Utc> {
        DateTime::from_timestamp(1_800_000_000, 999_000_000).unwrap()
    }
}

/// Notes in memory, the newest last. A search returns those that contain the query.
#[derive(Default)]
struct InMemoryNoteStore {
    notes: Mutex<Vec<NewNote>>,
    add_note_limits: Mutex<Vec<u32>>,
    is_unavailable: bool,
}

impl InMemoryNoteStore {
    fn check_available(&self) -> Result<(), LedgerError> {
        let cause = "disk of /srv/data is full".to_owned();
        if self.is_unavailable { Err(LedgerError::Unavailable { cause }) } else { Ok(()) }
    }
}

#[async_trait]
impl NoteStore for InMemoryNoteStore {
    async fn add_note(&self, note: NewNote, limit: u32) -> Result<(), LedgerError> {
        self.check_available()?;
        self.add_note_limits.lock().await.push(limit);
        self.notes.lock().await.push(note);
        Ok(())
    }

    async fn search_notes(
        &self,
        agent: &AgentId,
        query: &str,
        limit: u32,
    ) -> Result<Vec<Note>, LedgerError> {
        self.check_available()?;
        let notes = self.notes.lock().await;
        let matching =
            notes.iter().rev().filter(|it| it.agent == *agent && it.note.text.contains(query));
        Ok(matching.take(limit as usize).map(|it| it.note.clone()).collect())
    }
}

/// Launcher of a service whose process holder is lost.
struct LostLauncher;

#[async_trait]
impl ProgramLauncher for LostLauncher {
    async fn launch(&self, _launch: LaunchRequest) -> io::Result<SpawnedProgram> {
        Err(io::ErrorKind::ConnectionAborted.into())
    }

    fn begin_takeover(
        &self,
        _execution: ExecutionId,
        _attempt_id: AttemptId,
    ) -> Option<ProgramTakenOver> {
        None
    }

    async fn complete_takeover(
        &self,
        _execution: ExecutionId,
        _attempt_id: AttemptId,
    ) -> io::Result<SpawnedProgram> {
        Err(io::ErrorKind::NotFound.into())
    }

    async fn kill_all_processes(&self, _execution: ExecutionId, _attempt_id: AttemptId) {}
}

/// Returns the starter of programs with this runtime folder.
fn launcher(runtime_dir: PathBuf) -> BackendLauncher {
    let driver_settings = DriverSettings {
        runtime_dir,
        escape_sockets: Arc::new(EscapeSocketSearch::new(
            EscapeSocketLocations::default(),
            Vec::new(),
        )),
        bubblewrap: None,
        is_runtime_dir_in_memory: true,
    };
    let context =
        SharedDriverContext::new(driver_settings, Arc::default(), Arc::new(NoopSessionStore));
    BackendLauncher { context: Arc::new(context), launcher: Arc::new(LostLauncher) }
}

fn handlers(notes: &Arc<InMemoryNoteStore>) -> ToolHandlers {
    let launcher = launcher(PathBuf::from("/nonexistent"));
    let services = ToolServices {
        clock: Arc::new(FixedClock),
        notes: Arc::clone(notes) as _,
        mcp_servers: McpServers::new(launcher.clone()),
        launcher,
    };
    ToolHandlers::new(services, ToolBackends::default())
}

fn tool_call(handler: ToolHandler, arguments: Value) -> ToolInvocation {
    let tool = ToolSpec {
        name: "tool".to_owned(),
        description: String::new(),
        inputs: Some(BTreeMap::new()),
        idempotent: true,
        timeout: Duration::from_secs(1),
        handler,
    };
    let Value::Object(arguments) = arguments else { panic!("arguments are an object") };
    ToolInvocation {
        agent: AgentId::new("thinker").unwrap(),
        execution: ExecutionId::generate(),
        step_number: 3,
        tool: Arc::new(tool),
        arguments,
        redactor: TextRedactor(Arc::new(|text| text.replace("canary", "***"))),
    }
}

/// Performs a call that nothing stops.
async fn perform(tools: &ToolHandlers, call: ToolInvocation) -> Result<String, String> {
    let (_stop_sender, stop) = ToolStopReceiver::channel();
    tools.call(call, stop).await
}

async fn call_and_parse(
    tools: &ToolHandlers,
    handler: ToolHandler,
    arguments: Value,
) -> Result<Value, String> {
    let result = perform(tools, tool_call(handler, arguments)).await?;
    Ok(serde_json::from_str(&result).unwrap())
}

#[tokio::test]
async fn the_clock_returns_the_time_and_the_weekday() {
    let tools = handlers(&Arc::default());
    let expected = json!({ "time": "2027-01-15T08:00:00Z", "weekday": "Friday" });
    assert_eq!(call_and_parse(&tools, ToolHandler::Clock, json!({})).await, Ok(expected));
}

#[tokio::test]
async fn a_note_is_stored_redacted_with_its_origin() {
    let notes = Arc::<InMemoryNoteStore>::default();
    let tools = handlers(&notes);
    let add = tool_call(ToolHandler::AddNote, json!({ "text": "the key is canary" }));
    assert_eq!(perform(&tools, add.clone()).await.as_deref(), Ok(r#"{"stored":true}"#));
    let note = Note { at: FixedClock.now(), text: "the key is ***".to_owned() };
    let expected = NewNote { agent: add.agent, origin: (add.execution, 3), note };
    assert_eq!(*notes.notes.lock().await, [expected]);
    assert_eq!(*notes.add_note_limits.lock().await, [1000]);
}

#[tokio::test]
async fn the_text_of_a_note_has_1_to_16384_bytes() {
    let notes = Arc::<InMemoryNoteStore>::default();
    let tools = handlers(&notes);
    for (text, is_accepted) in [
        (String::new(), false),
        ("x".to_owned(), true),
        ("x".repeat(16_384), true),
        ("x".repeat(16_385), false),
        ("é".repeat(8193), false),
    ] {
        let length = text.len();
        let result = call_and_parse(&tools, ToolHandler::AddNote, json!({ "text": text })).await;
        let refusal = "the argument `text` must have 1 to 16384 bytes".to_owned();
        let expected = if is_accepted { Ok(json!({ "stored": true })) } else { Err(refusal) };
        assert_eq!(result, expected, "{length}");
    }
    assert_eq!(notes.notes.lock().await.len(), 2);
}

#[tokio::test]
async fn a_search_returns_ten_notes_of_the_agent() {
    let notes = Arc::<InMemoryNoteStore>::default();
    let tools = handlers(&notes);
    for number in 0..12 {
        let text = format!("number {number}");
        call_and_parse(&tools, ToolHandler::AddNote, json!({ "text": text })).await.unwrap();
    }
    let at = "2027-01-15T08:00:00Z";
    let found =
        call_and_parse(&tools, ToolHandler::SearchNotes, json!({ "query": "number 1" })).await;
    let expected =
        ["number 11", "number 10", "number 1"].map(|text| json!({ "at": at, "text": text }));
    assert_eq!(found, Ok(json!(expected)));
    for arguments in [json!({}), json!({ "query": null }), json!({ "query": "" })] {
        let newest = call_and_parse(&tools, ToolHandler::SearchNotes, arguments).await.unwrap();
        let (remark, notes) = newest.as_array().unwrap().split_last().unwrap();
        assert!(remark["remark"].as_str().unwrap().starts_with("more notes match"), "{remark}");
        assert_eq!(notes.len(), 10);
    }
    let other_agent = AgentId::new("other").unwrap();
    let search = tool_call(ToolHandler::SearchNotes, json!({}));
    let other_search = ToolInvocation { agent: other_agent, ..search };
    assert_eq!(perform(&tools, other_search).await.as_deref(), Ok("[]"));
}

#[tokio::test]
async fn an_error_of_the_store_is_reported_without_its_cause() {
    let notes =
        Arc::new(InMemoryNoteStore { is_unavailable: true, ..InMemoryNoteStore::default() });
    let tools = handlers(&notes);
    for (handler, arguments, sentence) in [
        (ToolHandler::AddNote, json!({ "text": "a" }), "the note was not stored"),
        (ToolHandler::SearchNotes, json!({}), "the notes could not be searched"),
    ] {
        assert_eq!(call_and_parse(&tools, handler, arguments).await, Err(sentence.to_owned()));
    }
}

#[tokio::test]
async fn long_notes_make_a_valid_list_of_limited_length() {
    for (text, count) in
        [("x".repeat(16_384), 1), ("\u{1}".repeat(16_384), 1), ("x".repeat(3000), 6)]
    {
        let notes = Arc::<InMemoryNoteStore>::default();
        let tools = handlers(&notes);
        for _ in 0..10 {
            call_and_parse(&tools, ToolHandler::AddNote, json!({ "text": text })).await.unwrap();
        }
        let search = tool_call(ToolHandler::SearchNotes, json!({}));
        let list = perform(&tools, search).await.unwrap();
        let found: Vec<Value> = serde_json::from_str(&list).unwrap();
        let (remark, notes) = found.split_last().unwrap();
        assert!(remark["remark"].is_string(), "{remark}");
        assert_eq!(notes.len(), count);
        assert!(list.len() <= 20 << 10, "{}", list.len());
    }
}

/// Returns handlers whose tool `tool` has a program, and the folder of its calls.
fn handlers_with_program() -> (ToolHandlers, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let mut handlers = handlers(&Arc::default());
    handlers.services.launcher = launcher(folder.path().to_owned());
    let program = BackendProgram {
        command: PathBuf::from("/bin/true"),
        env: BTreeMap::new(),
        working_dir: None,
        home: PathBuf::new(),
        sandbox: Sandbox::default(),
        resource_limits: ResourceLimits::default(),
        confinement: Confinement::default(),
    };
    let program = ToolProgram { program, args: Vec::new(), stdin_template: String::new() };
    handlers.backends.programs.insert("tool".to_owned(), Arc::new(program));
    (handlers, folder)
}

#[tokio::test]
async fn a_call_that_was_stopped_starts_no_program() {
    let (tools, folder) = handlers_with_program();
    let (stop_sender, stop) = ToolStopReceiver::channel();
    stop_sender.request_stop();
    let call = tool_call(ToolHandler::Command, json!({}));
    assert_eq!(tools.call(call, stop).await, Err("the call was stopped".to_owned()));
    assert_eq!(folder.path().read_dir().unwrap().count(), 0, "its folder is left");
}

#[tokio::test]
async fn a_failed_start_leaves_no_folder() {
    let (tools, folder) = handlers_with_program();
    let result = perform(&tools, tool_call(ToolHandler::Command, json!({}))).await;
    assert_eq!(
        result,
        Err("the process holder was lost; the program may have had its effect".to_owned())
    );
    assert_eq!(folder.path().read_dir().unwrap().count(), 0, "its folder is left");
}
