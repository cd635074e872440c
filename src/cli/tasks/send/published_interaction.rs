//! Open question of an agent as the status of its task publishes it, and the answer that a typed line gives.

use algonius_a2a::interaction::INTERACTIONS_EXTENSION;
use algonius_actors::decide::permission::answer::{self, NO_OPTION_ID, YES_OPTION_ID};
use algonius_actors::model::interaction::{AnswerValue, Question, QuestionKind, QuestionOption};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::platform::terminal_text;

/// Open interaction of a paused task.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(super) struct PublishedInteraction {
    pub(super) id: String,
    /// Teams whose runs passed the request on, and the agent that opened the question; empty without a team.
    #[serde(default)]
    path: Vec<String>,
    kind: QuestionKind,
    message: String,
    #[serde(default)]
    options: Vec<QuestionOption>,
    tool: Option<RequestedCall>,
    schema: Option<Value>,
    digest: String,
}

/// Tool call that the agent requests permission for.
#[derive(Debug, Clone, PartialEq, Deserialize)]
struct RequestedCall {
    command: Option<String>,
    #[serde(default)]
    paths: Vec<String>,
    url: Option<String>,
    #[serde(default)]
    args: Value,
}

impl PublishedInteraction {
    /// Returns the open interactions of a task or of a status event, in their order.
    pub(super) fn list_from_status(task: &Value) -> Vec<Self> {
        let metadata = task.pointer("/status/message/metadata");
        let list = metadata.and_then(|metadata| {
            metadata.get(INTERACTIONS_EXTENSION)?.get("interactions")?.as_array()
        });
        // A kind that a later service adds is answered by other means.
        list.into_iter()
            .flatten()
            .filter_map(|entry| serde_json::from_value(entry.clone()).ok())
            .collect()
    }

    /// Returns the question with everything that an answer depends on. Each value of a tool call takes one line, so
    /// that a value of the agent cannot look like another one.
    pub(super) fn text(&self) -> String {
        let mut lines = vec![match self.kind.is_permission() {
            true => terminal_text::escape_showing_line_breaks(self.message.trim_end()),
            false => self.message.trim_end().to_owned(),
        }];
        let row = |name: &str, value: &String| {
            format!("  {name:<7}  {}", terminal_text::escape_showing_line_breaks(value))
        };
        if !self.path.is_empty() {
            lines.push(row("agent", &self.path.join(" > ")));
        }
        if let Some(call) = &self.tool {
            lines.extend(call.command.iter().map(|command| row("command", command)));
            lines.extend(call.paths.iter().map(|path| row("path", path)));
            lines.extend(call.url.iter().map(|url| row("url", url)));
            if call.args.as_object().is_some_and(|args| !args.is_empty()) {
                lines.push(format!("  args     {}", call.args));
            }
        }
        if !self.kind.is_permission() {
            let options = self.options.iter();
            lines.extend(options.map(|option| {
                terminal_text::escape_showing_line_breaks(&format!(
                    "  {}  {}",
                    option.id, option.name
                ))
            }));
        }
        lines.extend(self.schema.iter().map(|schema| format!("  schema   {schema}")));
        lines.join("\n")
    }

    /// Returns the answers that the question takes.
    pub(super) const fn expected_answer(&self) -> &'static str {
        match self.kind {
            QuestionKind::ToolPermission | QuestionKind::FileApproval => {
                "`yes` allows this call, `no` denies it"
            }
            QuestionKind::Confirmation if self.options.is_empty() => "`yes` or `no`",
            QuestionKind::Confirmation => "the id of an option",
            QuestionKind::Choice => "the id of an option, or a text",
            QuestionKind::TextInput => "a text",
            QuestionKind::Form => "a JSON object with a member for each field",
        }
    }

    /// Returns the metadata of a message with the answer that a line gives; `None` if the line gives none. The digest
    /// binds the answer to the question that the person has read.
    pub(super) fn answer_metadata(&self, line: &str) -> Option<Value> {
        let (name, value) = match self.answer_value(line.trim())? {
            AnswerValue::Allow => ("verdict", "allow".into()),
            AnswerValue::Deny { .. } => ("verdict", "deny".into()),
            AnswerValue::Option { id } => ("option", id.into()),
            AnswerValue::Text { text } => ("text", text.into()),
            AnswerValue::Form { values } => ("values", values),
            AnswerValue::Decline => ("decline", true.into()),
        };
        let mut answer = Map::new();
        answer.insert("id".to_owned(), self.id.as_str().into());
        answer.insert("digest".to_owned(), self.digest.as_str().into());
        answer.insert(name.to_owned(), value);
        Some(json!({INTERACTIONS_EXTENSION: {"answers": [answer]}}))
    }

    fn answer_value(&self, line: &str) -> Option<AnswerValue> {
        if self.kind == QuestionKind::Form {
            let values: Value = serde_json::from_str(line).ok()?;
            return values.is_object().then_some(AnswerValue::Form { values });
        }
        let has_verdict = self.kind.is_permission() || self.kind == QuestionKind::Confirmation;
        let word = match line {
            "y" | "Y" if has_verdict => YES_OPTION_ID,
            "n" | "N" if has_verdict => NO_OPTION_ID,
            line => line,
        };
        answer::parse_answer(&self.question(), word)
    }

    fn question(&self) -> Question {
        Question {
            kind: self.kind,
            message: self.message.clone(),
            options: self.options.clone(),
            subject: None,
            schema: self.schema.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interaction(kind: &str, options: &Value) -> PublishedInteraction {
        let entry = json!({
            "id": "i", "kind": kind, "message": "Run it?", "digest": "d", "options": options,
            "tool": {"id": "c", "name": "Bash", "command": "make", "paths": ["/a"], "args": {"x": 1}},
        });
        let metadata =
            json!({INTERACTIONS_EXTENSION: {"interactions": [entry, {"kind": "later"}]}});
        let task = json!({"status": {"message": {"metadata": metadata}}});
        let [interaction] = PublishedInteraction::list_from_status(&task).try_into().unwrap();
        interaction
    }

    fn answer(interaction: &PublishedInteraction, line: &str) -> Option<Value> {
        interaction
            .answer_metadata(line)
            .map(|answer| answer[INTERACTIONS_EXTENSION]["answers"][0].clone())
    }

    #[test]
    fn a_permission_is_given_by_whole_words_only() {
        let options = json!([
            {"id": "yes", "name": "sure", "kind": "allow_once"},
            {"id": "always", "name": "always", "kind": "allow_always"},
        ]);
        let permission = interaction("tool_permission", &options);
        for (line, verdict) in [("y", "allow"), (" YES ", "allow"), ("n", "deny"), ("Deny", "deny")]
        {
            let expected = json!({"id": "i", "digest": "d", "verdict": verdict});
            assert_eq!(answer(&permission, line), Some(expected), "{line}");
        }
        // The agent chooses the ids of its options.
        for line in ["", "ye", "yes please", "always", "sure", "1"] {
            assert_eq!(answer(&permission, line), None, "{line}");
        }
    }

    #[test]
    fn a_question_shows_its_call_and_its_options() {
        let options = json!([{"id": "a", "name": "first", "kind": "other"}]);
        assert_eq!(
            interaction("tool_permission", &options).text(),
            "Run it?\n  command  make\n  path     /a\n  args     {\"x\":1}"
        );
        assert!(interaction("choice", &options).text().ends_with("\n  a  first"));
    }

    #[test]
    fn a_value_of_the_agent_takes_one_line() {
        let mut permission = interaction("tool_permission", &json!([]));
        permission.message = "Read it?\n  command  ls".to_owned();
        permission.tool.as_mut().unwrap().command = Some("rm -r /\n  command  ls".to_owned());
        let text = permission.text();
        let lines: Vec<_> = text.lines().collect();
        let [question, command, _path, _args] = lines.as_slice() else { panic!("{text}") };
        assert_eq!(*question, r"Read it?\n  command  ls");
        assert_eq!(*command, r"  command  rm -r /\n  command  ls");
    }

    #[test]
    fn other_questions_take_options_texts_and_values() {
        let options = json!([{"id": "a", "name": "first", "kind": "other"}]);
        for (kind, options, line, member) in [
            ("choice", &options, "first", Some(json!({"option": "a"}))),
            ("choice", &options, "another", Some(json!({"text": "another"}))),
            ("confirmation", &options, "a", Some(json!({"option": "a"}))),
            ("confirmation", &options, "yes", None),
            ("confirmation", &json!([]), "Y", Some(json!({"option": "yes"}))),
            ("confirmation", &json!([]), "perhaps", None),
            ("text_input", &json!([]), "blue", Some(json!({"text": "blue"}))),
            ("text_input", &json!([]), "  ", None),
            ("form", &json!([]), r#"{"n": 1}"#, Some(json!({"values": {"n": 1}}))),
            ("form", &json!([]), "7", None),
        ] {
            let expected = member.map(|mut member| {
                member["id"] = "i".into();
                member["digest"] = "d".into();
                member
            });
            assert_eq!(answer(&interaction(kind, options), line), expected, "{kind} {line}");
        }
    }
}
