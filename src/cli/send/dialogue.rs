//! A message and its answer while it is given: what is shown meanwhile, questions, Ctrl-C.

use std::io::{self, BufRead, IsTerminal, Write};

use serde_json::{Value, json};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::oneshot;
use uuid::Uuid;

use super::stream::Stream;
use super::{answer, finish, text};
use crate::cli::client::Client;
use crate::cli::fault::CliError;
use crate::cli::out::Out;
use crate::cli::progress::Progress;

/// How often in a row a stream is taken up again that broke.
const PATIENCE: u32 = 5;

/// A task that is followed.
pub(super) struct Dialogue<'d> {
    client: &'d Client,
    agent: &'d str,
    out: &'d Out,
    progress: Progress,
    /// Ctrl-C, which is heard from the beginning on.
    interrupt: Signal,
    /// Its id, once there is one.
    task: Option<String>,
    state: String,
    /// What of the answer stands on the terminal.
    shown: String,
    /// Whether somebody wanted it to end.
    is_called_off: bool,
}

/// Why nothing more is read for now.
enum Rest {
    /// It has ended.
    Over,
    /// It asks this.
    Asks(String),
}

impl<'d> Dialogue<'d> {
    /// Nothing is sent yet.
    ///
    /// # Errors
    /// When this process cannot hear signals.
    pub(super) fn new(client: &'d Client, agent: &'d str, out: &'d Out) -> Result<Self, CliError> {
        let interrupt = signal(SignalKind::interrupt());
        Ok(Self {
            client,
            agent,
            out,
            progress: Progress::begin(!out.is_json()),
            interrupt: interrupt.map_err(|source| CliError::Input { source })?,
            task: None,
            state: String::new(),
            shown: String::new(),
            is_called_off: false,
        })
    }

    /// Sends, shows what comes, asks the person at the terminal what the agent asks, and tells how it
    /// ended.
    pub(super) async fn hold(mut self, mut params: Value) -> Result<(), CliError> {
        self.progress.say("sent");
        loop {
            let rest = self.follow(params).await?;
            match rest {
                Rest::Asks(question) if self.can_ask() => {
                    let Some(said) = self.ask(&question).await? else { return self.end().await };
                    params = self.reply(&said);
                }
                Rest::Asks(_) | Rest::Over => return self.end().await,
            }
        }
    }

    /// Reads to the end or to a question. A stream that breaks is taken up again.
    async fn follow(&mut self, params: Value) -> Result<Rest, CliError> {
        let mut stream = self.open("message/stream", params).await?;
        let mut broken = 0;
        loop {
            let fault = match self.next(&mut stream).await {
                Ok(Some(event)) => {
                    broken = 0;
                    match self.take(&event) {
                        Some(rest) => return Ok(rest),
                        None => continue,
                    }
                }
                Ok(None) => CliError::Strange { about: "the stream ended before the task did" },
                Err(fault @ (CliError::Broken { .. } | CliError::Unreachable { .. })) => fault,
                Err(fault) => return Err(fault),
            };
            let Some(task) = self.task.clone().filter(|_| broken < PATIENCE) else {
                return Err(fault);
            };
            broken += 1;
            self.progress.say("the connection broke, taken up again");
            self.progress.tick().await;
            match self.open("tasks/resubscribe", json!({"id": task})).await {
                Ok(opened) => stream = opened,
                Err(CliError::Unreachable { .. }) => {} // It is tried again.
                Err(fault) => return Err(fault),
            }
        }
    }

    /// Begins a stream, unless that is interrupted.
    async fn open(&mut self, method: &str, params: Value) -> Result<Stream, CliError> {
        tokio::select! {
            opened = Stream::open(self.client, self.agent, method, params) => opened,
            _ = self.interrupt.recv() => Err(self.left()),
        }
    }

    /// The next event. Ctrl-C calls the task off; once more, and it is left alone.
    async fn next(&mut self, stream: &mut Stream) -> Result<Option<Value>, CliError> {
        loop {
            tokio::select! {
                event = stream.next() => return event,
                () = self.progress.tick() => {}
                _ = self.interrupt.recv() => self.call_off().await?,
            }
        }
    }

    async fn call_off(&mut self) -> Result<(), CliError> {
        self.progress.clear();
        let Some(task) = self.task.clone().filter(|_| !self.is_called_off) else {
            return Err(self.left());
        };
        self.is_called_off = true;
        self.out.note("calling it off; Ctrl-C once more leaves it alone");
        let path = format!("/api/v1/executions/{task}/cancel");
        tokio::select! {
            // What has ended meanwhile need not be called off; the stream tells how it ended.
            _ = self.client.post::<Value>(&path, json!({})) => Ok(()),
            _ = self.interrupt.recv() => Err(self.left()),
        }
    }

    fn left(&self) -> CliError {
        let task = self.task.as_ref().map_or(String::new(), |task| format!(" {task}"));
        let message = format!("left alone; `algonius tasks watch{task}` tells how it goes on");
        CliError::NotDone { message, trouble: None }
    }

    /// What an event means to who waits.
    fn take(&mut self, event: &Value) -> Option<Rest> {
        if self.out.is_json() {
            self.out.line(&event.to_string());
        }
        let kind = event.get("kind").and_then(Value::as_str).unwrap_or_default();
        match kind {
            "artifact-update" => {
                self.show(event);
                None
            }
            _ => self.moved(event, kind),
        }
    }

    /// A state: whether it rests in it.
    fn moved(&mut self, event: &Value, kind: &str) -> Option<Rest> {
        let id = if kind == "task" { "/id" } else { "/taskId" };
        let id = event.pointer(id).and_then(Value::as_str).map(str::to_owned);
        self.task = id.or_else(|| self.task.take());
        text(event, "/status/state").clone_into(&mut self.state);
        let said = text(event, "/status/message/parts/0/text").to_owned();
        let word = if said.is_empty() { self.state.clone() } else { said.clone() };
        self.progress.say(&word);
        match self.state.as_str() {
            "input-required" => Some(Rest::Asks(said)),
            "completed" | "failed" | "canceled" | "rejected" => Some(Rest::Over),
            _ => None,
        }
    }

    /// A piece of the answer, as it comes.
    fn show(&mut self, event: &Value) {
        let is_more = event.get("append").and_then(Value::as_bool).unwrap_or_default();
        let piece = answer(&json!({"artifacts": [event.get("artifact")]}));
        if self.out.is_json() || !io::stdout().is_terminal() || piece.is_empty() {
            return; // The answer is told as a whole.
        }
        self.progress.give_way();
        if !is_more && !self.shown.is_empty() && !self.shown.ends_with('\n') {
            self.out.line("");
        }
        self.shown.push_str(&piece);
        self.out.piece(&piece);
    }

    fn can_ask(&self) -> bool {
        let is_terminal = io::stdin().is_terminal() && io::stderr().is_terminal();
        is_terminal && !self.out.is_json() && !self.is_called_off
    }

    /// Asks the person at the terminal; `None` when that one has nothing to say.
    async fn ask(&mut self, question: &str) -> Result<Option<String>, CliError> {
        self.progress.clear();
        if !self.shown.is_empty() && !self.shown.ends_with('\n') {
            self.out.line("");
        }
        self.shown.clear();
        _ = write!(io::stderr(), "{}\n> ", question.trim_end());
        let (sender, said) = oneshot::channel();
        std::thread::spawn(move || {
            let mut line = String::new();
            let read = io::stdin().lock().read_line(&mut line);
            _ = sender.send(read.map(|length| (length > 0).then_some(line)));
        });
        tokio::select! {
            said = said => match said {
                Ok(Ok(line)) => Ok(line.map(|line| line.trim_end_matches('\n').to_owned())),
                Ok(Err(source)) => Err(CliError::Input { source }),
                Err(_gone) => Ok(None),
            },
            _ = self.interrupt.recv() => {
                self.call_off().await?;
                Ok(None)
            }
        }
    }

    fn reply(&self, said: &str) -> Value {
        json!({"message": {
            "kind": "message",
            "role": "user",
            "messageId": Uuid::new_v4().to_string(),
            "taskId": self.task,
            "parts": [{"kind": "text", "text": said}],
        }})
    }

    /// How it ended. The whole answer is asked for: a stream has the pieces of attempts that failed too.
    async fn end(mut self) -> Result<(), CliError> {
        self.progress.clear();
        let Some(task) = &self.task else {
            return Err(CliError::Strange { about: "the stream has no task" });
        };
        let task = self.client.ask(self.agent, "tasks/get", json!({"id": task})).await?;
        if self.out.is_json() {
            return finish(self.agent, &task, |_| {}, self.out);
        }
        let (shown, out) = (std::mem::take(&mut self.shown), self.out);
        finish(self.agent, &task, |whole| complete(&shown, whole, out), self.out)
    }
}

/// Puts what is missing of an answer after what is shown of it.
fn complete(shown: &str, whole: &str, out: &Out) {
    match whole.strip_prefix(shown) {
        Some("") => {
            if !whole.ends_with('\n') && !whole.is_empty() {
                out.line("");
            }
        }
        Some(rest) => out.text(rest),
        None => {
            if !shown.ends_with('\n') {
                out.line("");
            }
            out.text(whole);
        }
    }
}
