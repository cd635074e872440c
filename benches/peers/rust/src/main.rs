//! Serves a program through the A2A SDK for Rust: the program reads a text, and its output is the artifact.
//!
//! ```text
//! algonius-peer PROGRAM
//! ```
//!
//! Prints its address and its components in one line, and serves until it is killed.

use std::error::Error;
use std::io;
use std::process::{Output, Stdio};
use std::sync::Arc;

use a2a::{
    A2AError, AgentCard, Artifact, Part, StreamResponse, Task, TaskArtifactUpdateEvent, TaskState,
    TaskStatus, TaskStatusUpdateEvent, new_artifact_id,
};
use a2a_server::agent_card::agent_card_router;
use a2a_server::jsonrpc::jsonrpc_router;
use a2a_server::{
    AgentExecutor, DefaultRequestHandler, ExecutorContext, InMemoryTaskStore, StaticAgentCard,
};
use axum::serve::ListenerExt as _;
use chrono::Utc;
use futures::StreamExt as _;
use futures::stream::{self, BoxStream};
use serde_json::json;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpListener;
use tokio::process::Command;

type EventStream = BoxStream<'static, Result<StreamResponse, A2AError>>;

/// Executor that runs the program with this absolute path once for each message.
struct ProgramExecutor(String);

impl AgentExecutor for ProgramExecutor {
    fn execute(&self, context: ExecutorContext) -> EventStream {
        let (task, conversation) = context.task_info();
        let text = context.message.iter().filter_map(|message| message.text()).collect::<String>();
        let working = StreamResponse::Task(Task {
            id: task.clone(),
            context_id: conversation.clone(),
            status: status(TaskState::Working),
            artifacts: None,
            history: context.message.map(|message| vec![message]),
            metadata: None,
        });
        let path = self.0.clone();
        let final_events = async move {
            let result = run_program(&path, &text).await;
            stream::iter(result_events(result, (task, conversation)).into_iter().map(Ok))
        };
        stream::iter([Ok(working)]).chain(stream::once(final_events).flatten()).boxed()
    }

    fn cancel(&self, context: ExecutorContext) -> EventStream {
        stream::iter([Ok(status_update(context.task_info(), TaskState::Canceled))]).boxed()
    }
}

/// Runs the program with the text as its input, and returns its output.
async fn run_program(path: &str, text: &str) -> io::Result<Output> {
    let mut command = Command::new(path);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    let mut child = command.spawn()?;
    if let Some(mut input) = child.stdin.take() {
        input.write_all(text.as_bytes()).await?;
    }
    child.wait_with_output().await
}

fn result_events(result: io::Result<Output>, ids: (String, String)) -> Vec<StreamResponse> {
    match result {
        Ok(output) if output.status.success() => {
            let artifact = artifact_update(String::from_utf8_lossy(&output.stdout).into_owned(), ids.clone());
            vec![artifact, status_update(ids, TaskState::Completed)]
        }
        _ => vec![status_update(ids, TaskState::Failed)],
    }
}

fn artifact_update(text: String, (task_id, context_id): (String, String)) -> StreamResponse {
    let artifact = Artifact {
        artifact_id: new_artifact_id(),
        name: None,
        description: None,
        parts: vec![Part::text(text)],
        metadata: None,
        extensions: None,
    };
    StreamResponse::ArtifactUpdate(TaskArtifactUpdateEvent {
        task_id,
        context_id,
        artifact,
        append: None,
        last_chunk: Some(true),
        metadata: None,
    })
}

fn status_update((task_id, context_id): (String, String), state: TaskState) -> StreamResponse {
    let status = status(state);
    StreamResponse::StatusUpdate(TaskStatusUpdateEvent {
        task_id,
        context_id,
        status,
        metadata: None,
    })
}

fn status(state: TaskState) -> TaskStatus {
    TaskStatus { state, message: None, timestamp: Some(Utc::now()) }
}

fn agent_card(address: &str) -> serde_json::Result<AgentCard> {
    let url = format!("http://{address}/");
    serde_json::from_value(json!({
        "name": "program",
        "description": "Says what a program says.",
        "version": "1",
        "supportedInterfaces": [{"url": url, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}],
        "capabilities": {},
        "defaultInputModes": ["text/plain"],
        "defaultOutputModes": ["text/plain"],
        "skills": [{"id": "say", "name": "Say", "description": "Says what a program says.", "tags": ["text"]}],
    }))
}

/// Returns the name and the version of a package in the lock file.
fn package_version(name: &str) -> String {
    let start = format!("name = \"{name}\"\nversion = \"");
    let rest = include_str!("../Cargo.lock").split_once(&start).map_or("", |(_, rest)| rest);
    format!("{name} {}", rest.split('"').next().unwrap_or_default())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let program = ProgramExecutor(std::env::args().nth(1).ok_or("algonius-peer PROGRAM")?);
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?.to_string();
    let handler = DefaultRequestHandler::new(program, InMemoryTaskStore::new());
    let cards = agent_card_router(Arc::new(StaticAgentCard::new(agent_card(&address)?)));
    let listener = listener.tap_io(|connection| {
        _ = connection.set_nodelay(true); // The connection may be gone.
    });
    println!("{address} {}, {}", package_version("a2a-server-lf"), package_version("axum"));
    axum::serve(listener, jsonrpc_router(Arc::new(handler)).merge(cards)).await?;
    Ok(())
}
