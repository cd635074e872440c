//! Published pause: the open interactions of a task in every form that callers know.

use algonius_actors::model::interaction::{
    Interaction, QuestionKind, QuestionOption, ToolCallSubject,
};
use serde_json::{Map, Value};

use super::{CONFIRMATION_FUNCTION, HUMAN_IN_THE_LOOP_EXTENSION, INTERACTIONS_EXTENSION};
use crate::json_object::{ObjectBuilder, format_time};
use crate::v1::{A2aPart, Metadata, PartContent};

/// Parts of the status message of a paused task.
#[derive(Debug, Clone, PartialEq)]
pub struct PauseMessage {
    /// Sentence of each question, then a data part for each permission request.
    pub parts: Vec<A2aPart>,
    /// Metadata of the message.
    pub metadata: Metadata,
    /// Extensions of the message.
    pub extensions: Vec<String>,
}

/// Returns the published form of the open interactions of a task. Interactions that are no longer open are left out.
///
/// The extension of kagent has room for either all permission requests or one question. It contains the permission
/// requests if there are any, and otherwise the first question.
#[must_use]
pub fn pause_message(interactions: &[Interaction]) -> PauseMessage {
    let open_interactions: Vec<_> =
        interactions.iter().filter(|interaction| interaction.is_open()).collect();
    if open_interactions.is_empty() {
        return PauseMessage { parts: Vec::new(), metadata: Map::new(), extensions: Vec::new() };
    }
    let permission_requests: Vec<_> =
        open_interactions.iter().filter(|it| it.question.kind.is_permission()).collect();
    let text_parts = open_interactions.iter().map(|interaction| {
        A2aPart::from_content(PartContent::Text(question_sentence(interaction)))
    });
    let parts = text_parts
        .chain(permission_requests.iter().map(|permission| confirmation_part(permission)))
        .collect();
    let interaction_values: Vec<Value> =
        open_interactions.iter().map(|interaction| interaction_json(interaction)).collect();
    let kagent_payload = match (permission_requests.as_slice(), open_interactions.first()) {
        ([first, ..], _) => ObjectBuilder::from_field("type", "tool_approval_request")
            .with_field("hint", question_sentence(first))
            .with_field(
                "tools",
                permission_requests.iter().map(|it| kagent_tool_entry(it)).collect::<Vec<_>>(),
            ),
        ([], Some(question)) => ObjectBuilder::from_field("type", "ask_user_request")
            .with_field("id", question.id.to_string())
            .with_field("questions", kagent_questions(question)),
        ([], None) => ObjectBuilder::default(),
    };
    let metadata = [
        (
            INTERACTIONS_EXTENSION.to_owned(),
            ObjectBuilder::from_field("interactions", interaction_values).into(),
        ),
        (HUMAN_IN_THE_LOOP_EXTENSION.to_owned(), kagent_payload.into()),
    ];
    PauseMessage {
        parts,
        metadata: metadata.into_iter().collect(),
        extensions: vec![INTERACTIONS_EXTENSION.to_owned(), HUMAN_IN_THE_LOOP_EXTENSION.to_owned()],
    }
}

/// Returns the question in one sentence, for callers of a team with the id of the member that opened it.
fn question_sentence(interaction: &Interaction) -> String {
    let message = &interaction.question.message;
    match interaction.origin.teams.is_empty() {
        true => message.clone(),
        false => format!("{}: {message}", interaction.origin.agent),
    }
}

/// Returns an interaction as the extension of this service publishes it.
fn interaction_json(interaction: &Interaction) -> Value {
    let question = &interaction.question;
    let options = question.options.iter().map(option_json).collect();
    let path = interaction.origin.agent_path().filter(|_| !interaction.origin.teams.is_empty());
    ObjectBuilder::from_field("id", interaction.id.to_string())
        .with_non_empty_list("path", path.map(|agent| agent.as_str().to_owned()).collect())
        .with_field("kind", question.kind.as_str())
        .with_field("message", question.message.clone())
        .with_non_empty_list::<Value>("options", options)
        .with_optional_field("tool", question.subject.as_ref().map(subject_json))
        .with_optional_field("schema", question.schema.clone())
        .with_field("askedAt", format_time(interaction.opened_at))
        .with_field("dueAt", format_time(interaction.due_at))
        .with_field("digest", interaction.tool_call_digest.clone())
        .into()
}

fn option_json(option: &QuestionOption) -> Value {
    ObjectBuilder::from_field("id", option.id.clone())
        .with_field("name", option.name.clone())
        .with_optional_field("kind", serde_json::to_value(option.kind).ok())
        .into()
}

fn subject_json(subject: &ToolCallSubject) -> Value {
    ObjectBuilder::from_field("id", subject.id.clone())
        .with_field("name", subject.tool.clone())
        .with_optional_field("kind", subject.kind.clone())
        .with_optional_field("title", subject.title.clone())
        .with_optional_field("command", subject.command.clone())
        .with_non_empty_list("paths", subject.paths.clone())
        .with_optional_field("url", subject.url.clone())
        .with_optional_field("args", Some(subject.args.clone()).filter(|args| !args.is_null()))
        .into()
}

/// Returns a permission request as an entry of the extension of kagent.
fn kagent_tool_entry(interaction: &Interaction) -> Value {
    let call = function_call(interaction);
    ObjectBuilder::from_field("id", interaction.id.to_string())
        .with_field("call_id", call.id)
        .with_field("name", call.name)
        .with_field("args", call.args)
        .into()
}

/// Returns a permission request as a function call of the Agent Development Kit.
fn confirmation_part(interaction: &Interaction) -> A2aPart {
    let call = function_call(interaction);
    let original_call = ObjectBuilder::from_field("name", call.name)
        .with_field("args", call.args)
        .with_field("id", call.id);
    let confirmation = ObjectBuilder::from_field("hint", question_sentence(interaction))
        .with_field("confirmed", false);
    let args = ObjectBuilder::from_field("originalFunctionCall", original_call)
        .with_field("toolConfirmation", confirmation);
    let data = ObjectBuilder::from_field("name", CONFIRMATION_FUNCTION)
        .with_field("id", interaction.id.to_string())
        .with_field("args", args);
    let part_metadata = [
        ("adk_type".to_owned(), Value::from("function_call")),
        ("adk_is_long_running".to_owned(), Value::from(true)),
    ];
    let mut part = A2aPart::from_content(PartContent::Data(data.into()));
    part.metadata = part_metadata.into_iter().collect();
    part
}

/// Tool call in the terms of other projects.
struct FunctionCall {
    id: String,
    name: String,
    args: Value,
}

/// Returns the tool call of a permission request. Other projects require that the arguments are an object.
fn function_call(interaction: &Interaction) -> FunctionCall {
    let subject = interaction.question.subject.clone().unwrap_or_default();
    let id = if subject.id.is_empty() { interaction.id.to_string() } else { subject.id };
    let args = if subject.args.is_object() { subject.args } else { Value::Object(Map::new()) };
    FunctionCall { id, name: subject.tool, args }
}

/// Returns the questions of an interaction as the extension of kagent lists them. A form has one question for each
/// field, in the order of the names.
pub(super) fn kagent_questions(interaction: &Interaction) -> Vec<Value> {
    let question = &interaction.question;
    let question_json = |text: &str, choices: Vec<String>, multiple: bool| -> Value {
        ObjectBuilder::from_field("question", text)
            .with_field("choices", choices)
            .with_field("multiple", multiple)
            .into()
    };
    if question.kind != QuestionKind::Form {
        let choices = question.options.iter().map(|option| option.name.clone()).collect();
        return vec![question_json(&question.message, choices, false)];
    }
    let fields = question.schema.as_ref().and_then(|schema| schema.get("properties"));
    let Some(Value::Object(fields)) = fields else { return Vec::new() };
    let mut fields: Vec<_> = fields.iter().collect();
    fields.sort_by_key(|(name, _)| *name);
    let field_question = |(name, schema): (&String, &Value)| {
        let title = schema.get("title").and_then(Value::as_str).unwrap_or(name);
        let item_schema = schema.get("items").unwrap_or(schema);
        question_json(
            title,
            schema_choices(item_schema),
            schema.get("type").is_some_and(|it| it == "array"),
        )
    };
    fields.into_iter().map(field_question).collect()
}

/// Returns the texts that the schema of a field offers.
fn schema_choices(schema: &Value) -> Vec<String> {
    let entries = |name: &str| schema.get(name).and_then(Value::as_array).into_iter().flatten();
    let titled_values =
        entries("oneOf").chain(entries("anyOf")).filter_map(|entry| entry.get("const"));
    entries("enum").chain(titled_values).filter_map(Value::as_str).map(str::to_owned).collect()
}
