//! One line of a program's events, in the program's own form.

mod content;
mod event_forms;
#[cfg(test)]
mod tests;

use std::borrow::Cow;

pub(super) use algonius_actors::model::execution::event::{FileChange, ToolStage};
use algonius_protocols::{
    LineItem, UnreadableText, has_too_many_values, has_type, may_have_type, read_json_line,
};
use serde::Deserialize;
use serde_json::{Map, Value};

pub(in crate::drivers) use self::content::EventContent;
use self::content::UnreadableMember;
use self::event_forms::{COMPLETED, is_final};
pub(super) use super::failure::ReportedFailure;

/// Types of events whose loss makes the result of a run incomplete; of status events, only some.
const RESULT_TYPES: [&str; 8] = [
    "text",
    "artifact",
    "message",
    "status",
    "input_required",
    "auth_required",
    "rejected",
    "failed",
];

/// Members of the content of an event.
const CONTENT_MEMBERS: [&str; 5] = ["parts", "text", "data", "file", "url"];

/// Line that arrives in pieces.
pub(super) struct EventLine {
    bytes: Vec<u8>,
    max_bytes: usize,
    is_too_long: bool,
}

impl EventLine {
    /// Returns an empty line with this greatest length.
    pub(super) const fn new(max_bytes: usize) -> Self {
        Self { bytes: Vec::new(), max_bytes, is_too_long: false }
    }

    /// Takes the line, and starts the next one.
    pub(super) fn take(&mut self) -> Self {
        std::mem::replace(self, Self::new(self.max_bytes))
    }

    /// Adds the next piece. Bytes of a line that is too long are not held, and go to `overflow`.
    pub(super) fn extend(&mut self, bytes: &[u8], overflow: &mut Vec<u8>) {
        if self.bytes.len() + bytes.len() > self.max_bytes {
            // The raw output still gets the whole line; only its event is lost.
            overflow.append(&mut self.bytes);
            self.is_too_long = true;
        }
        let target = if self.is_too_long { overflow } else { &mut self.bytes };
        target.extend_from_slice(bytes);
    }

    /// Returns the bytes that are held.
    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// Returns the events of the line in order, none for a blank line. A text that is no event is
    /// [`ProgramEvent::Malformed`].
    pub(super) fn parse_events(&self) -> Vec<ProgramEvent> {
        // Nearly every line is one event, which needs no intermediate value.
        if !has_too_many_values(&self.bytes)
            && let Ok(event) = serde_json::from_slice::<ProgramEvent>(&self.bytes)
            && !matches!(event, ProgramEvent::Unknown)
            && !event.may_have_other_form()
        {
            return vec![event];
        }
        let objects = self.parse_objects(is_result_event, &RESULT_TYPES).into_iter();
        objects
            .flat_map(|parsed| {
                parsed.map_or_else(malformed_event, |object| parse_events_of_object(&object))
            })
            .collect()
    }

    /// Returns the JSON objects of the line in order, none for a blank line, and an error for each text that is no
    /// object. `is_result` returns true for objects whose loss makes the result incomplete, which have one of the
    /// `result_types`.
    pub(super) fn parse_objects(
        &self,
        is_result: impl Fn(&Value) -> bool,
        result_types: &[&str],
    ) -> Vec<Result<Value, EventParseError>> {
        if self.is_too_long {
            let reason = format!("is longer than {} bytes", self.max_bytes).into();
            let (text, loss) = (String::new(), ResultLoss::Likely);
            return vec![Err(EventParseError { reason, text, loss })];
        }
        let items = read_json_line(&self.bytes).into_iter().map(|item| match item {
            LineItem::Object(object) => Ok(object),
            LineItem::UnreadableText(unread) => {
                let is_lost =
                    unread.may_be_message(&is_result, |text| may_have_type(text, result_types));
                let loss = if is_lost { ResultLoss::Likely } else { ResultLoss::Possible };
                let UnreadableText { reason, text } = unread;
                Err(EventParseError { reason: reason.into(), text, loss })
            }
        });
        items.collect()
    }
}

fn malformed_event(error: EventParseError) -> Vec<ProgramEvent> {
    vec![ProgramEvent::Malformed(error)]
}

/// Returns the events of a JSON object.
fn parse_events_of_object(object: &Value) -> Vec<ProgramEvent> {
    let events = event_forms::to_documented_events(object).into_iter().flatten();
    events.flat_map(|event| parse_event_with_file_warning(&event)).collect()
}

/// Returns the event of a JSON object in its documented form, and a warning if it names a file in another form.
fn parse_event_with_file_warning(form: &Value) -> Vec<ProgramEvent> {
    let event = parse_event(form).unwrap_or_else(ProgramEvent::Malformed);
    if event.unreadable_member() == UnreadableMember::None || !is_result_event(form) {
        return vec![event];
    }
    vec![event, ProgramEvent::PreviousFileIsText]
}

/// Returns the event of a JSON object in its documented form.
fn parse_event(object: &Value) -> Result<ProgramEvent, EventParseError> {
    // The address of an authentication is a member of the event itself.
    let is_own_member = |name: &str| name == "url" && has_type(object, &["auth_required"]);
    let has_content =
        || CONTENT_MEMBERS.iter().any(|name| object.get(name).is_some() && !is_own_member(name));
    let (reason, loss) = match ProgramEvent::deserialize(object) {
        Ok(ProgramEvent::Unknown) => ("has an unknown `type`", ResultLoss::Possible),
        // Optional content that cannot be read is parsed as none.
        Ok(event) if event.lacks_content() && is_result_event(object) && has_content() => {
            ("has no parts that can be read", ResultLoss::Likely)
        }
        Ok(event)
            if event.unreadable_member() == UnreadableMember::LostContent
                && is_result_event(object) =>
        {
            ("has a file or an address that cannot be read", ResultLoss::Likely)
        }
        Ok(event) => return Ok(event),
        // The parser's own message would quote the line.
        Err(_) if is_result_event(object) => {
            ("does not have the fields of its `type`", ResultLoss::Likely)
        }
        Err(_) if object.get("type").is_some_and(Value::is_string) => {
            ("does not have the fields of its `type`", ResultLoss::None)
        }
        Err(_) => ("has no `type`", ResultLoss::Possible),
    };
    Err(EventParseError { reason: reason.into(), text: object.to_string(), loss })
}

/// Returns true if the loss of an event makes the result of a run incomplete.
fn is_result_event(object: &Value) -> bool {
    match object.get("type").and_then(Value::as_str) {
        Some("status") => {
            object.get("state").is_some_and(|state| state.as_str().is_none_or(is_final))
        }
        Some(event_type) => RESULT_TYPES.contains(&event_type),
        None => false,
    }
}

/// Reason why a line is no event.
#[derive(Debug)]
pub(in crate::drivers) struct EventParseError {
    /// Clause that follows "the line".
    pub(super) reason: Cow<'static, str>,
    /// Raw text; empty if it was too long to be kept.
    pub(super) text: String,
    /// Part of the result that is lost with the text.
    pub(super) loss: ResultLoss,
}

/// Part of the result that is lost with a text that is no event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ResultLoss {
    /// Nothing.
    None,
    /// A part of the result only if there is no other result.
    Possible,
    /// A part of the result.
    Likely,
}

impl EventParseError {
    /// Returns the error of an event that was read, but whose content makes no sense.
    pub(super) const fn for_content(reason: &'static str, loss: ResultLoss) -> Self {
        Self { reason: Cow::Borrowed(reason), text: String::new(), loss }
    }
}

/// Event of a program.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(in crate::drivers) enum ProgramEvent {
    /// Continuation of the answer.
    Text { text: String },
    /// Artifact, or a piece of one.
    Artifact(ReportedArtifact),
    /// Report about the progress, or about the end.
    Status {
        #[serde(default)]
        state: String,
        #[serde(flatten)]
        content: Option<EventContent>,
    },
    /// Answer that is a single message.
    Message {
        #[serde(flatten)]
        content: EventContent,
    },
    /// Question of the agent, which then ends.
    InputRequired {
        #[serde(flatten)]
        content: Option<EventContent>,
    },
    /// Request to authenticate elsewhere, after which the agent ends.
    AuthRequired {
        /// URL of the page for the authentication.
        url: Option<String>,
        #[serde(flatten)]
        content: Option<EventContent>,
    },
    /// Refusal of the work.
    Rejected {
        #[serde(default)]
        message: String,
    },
    /// Failure of the work.
    Failed(ReportedFailure),
    /// Used amounts, as numbers by name.
    Usage {
        /// True if the numbers count since the session began.
        #[serde(default)]
        cumulative: bool,
        #[serde(flatten)]
        fields: Map<String, Value>,
    },
    /// Reasoning of the agent, without its content.
    Thinking {},
    /// Use of a tool.
    ToolCall {
        id: Option<String>,
        tool: String,
        #[serde(default = "default_stage")]
        stage: ToolStage,
    },
    /// Change of a file.
    FileChange {
        path: String,
        #[serde(default = "default_change")]
        change: FileChange,
    },
    /// Denial of a tool.
    PermissionDenied { tool: String },
    /// Completion of the agent, with the reason.
    Stop {
        #[serde(default)]
        reason: String,
    },
    /// Session id of the agent itself.
    Session { id: String },
    /// Failed requests to the model, which the program may retry by itself.
    #[serde(skip)]
    ModelRequestsFailed { count: u32 },
    /// Continuation of a message that is the answer unless another one follows.
    #[serde(skip)]
    DraftText { text: String },
    /// Start of another message, so the latest one was not the answer.
    #[serde(skip)]
    DraftSuperseded,
    /// Confirmation that the latest message is the answer.
    #[serde(skip)]
    DraftAccepted,
    /// Confirmation that all text before it is the whole answer, even if lines before it were lost.
    #[serde(skip)]
    WholeAnswerRepeated,
    /// File of the event before it that is a text, and no object as [`EventContent`] has it.
    #[serde(skip)]
    PreviousFileIsText,
    /// Line that is no event.
    #[serde(skip)]
    Malformed(EventParseError),
    /// Event of a later release.
    #[serde(other)]
    Unknown,
}

const fn default_stage() -> ToolStage {
    ToolStage::Started
}

const fn default_change() -> FileChange {
    FileChange::Modified
}

/// Artifact that a program reports.
#[derive(Debug, Deserialize)]
pub(in crate::drivers) struct ReportedArtifact {
    /// Id of the artifact within the execution.
    pub(in crate::drivers) id: Option<String>,
    /// Name for people.
    pub(in crate::drivers) name: Option<String>,
    /// Description of the artifact.
    pub(in crate::drivers) description: Option<String>,
    /// Content of the artifact.
    #[serde(flatten)]
    pub(in crate::drivers) content: EventContent,
    /// True if the content is appended to the artifact.
    #[serde(default)]
    pub(in crate::drivers) append: bool,
    /// True if no more of the artifact will come.
    #[serde(default = "default_true")]
    pub(in crate::drivers) last: bool,
}

const fn default_true() -> bool {
    true
}

impl ProgramEvent {
    /// Returns true for an event that may have been written in another form than the documented one.
    fn may_have_other_form(&self) -> bool {
        match self {
            Self::Status { state, .. } if state != COMPLETED && is_final(state) => true,
            // Rare, and their other members are not known here.
            Self::Failed(_) | Self::Rejected { .. } => true,
            event => event.lacks_content() || event.unreadable_member() != UnreadableMember::None,
        }
    }

    /// Returns the file or address beside the content that was not read.
    const fn unreadable_member(&self) -> UnreadableMember {
        match self {
            Self::Artifact(ReportedArtifact { content, .. })
            | Self::Message { content }
            | Self::Status { content: Some(content), .. }
            | Self::InputRequired { content: Some(content) }
            | Self::AuthRequired { content: Some(content), .. } => content.unreadable_member(),
            _ => UnreadableMember::None,
        }
    }

    /// Returns true for an event with optional content that has none, or whose content could not be read.
    const fn lacks_content(&self) -> bool {
        matches!(
            self,
            Self::Status { content: None, .. }
                | Self::InputRequired { content: None }
                | Self::AuthRequired { content: None, .. }
        )
    }
}
