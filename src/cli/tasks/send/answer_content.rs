//! Content of an answer: the text to print, and notes on what a text cannot show.

use serde_json::{Value, json};

use super::{message_text, text_at};

/// Content of a completed task.
pub(super) struct PrintableAnswer {
    /// Text to print.
    pub(super) text: String,
    /// Notes on parts that are not printed.
    pub(super) notes: Vec<String>,
}

impl PrintableAnswer {
    /// Returns the content of a task. Without a text in its artifacts, the message of its status is the text, or else
    /// their data.
    pub(super) fn from_task(task: &Value) -> Self {
        let texts = [artifact_text(task), message_text(task.pointer("/status/message"))];
        let text = texts.into_iter().find(|text| !text.is_empty());
        let is_data_printed = text.is_none();
        let mut answer = Self { text: text.unwrap_or_default(), notes: Vec::new() };
        let message = task.pointer("/status/message").cloned().unwrap_or_default();
        let message_text = message_text(Some(&message));
        if !answer.text.contains(&message_text) {
            answer.notes.push(format!("the agent adds: {message_text}"));
        }
        for part in artifact_parts(task).chain(parts_of(&message)) {
            match part.get("data") {
                Some(data) if is_data_printed => answer.text.push_str(&format!("{data}\n")),
                Some(_) => {
                    answer.notes.push("the answer has data, which `--json` prints".to_owned());
                }
                None => answer.notes.extend(file_note(&part)),
            }
        }
        answer
    }
}

/// Returns a task with this document as its answer: an agent may answer with a message instead of a task.
pub(super) fn task_from_response(document: Value) -> Value {
    if text_at(&document, "/kind") != "message" {
        return document;
    }
    let id = document.get("taskId").cloned();
    let metadata = document.get("metadata").cloned();
    json!({"id": id, "metadata": metadata, "status": {"state": "completed", "message": document}})
}

/// Returns the text of all artifacts.
pub(super) fn artifact_text(task: &Value) -> String {
    let texts =
        artifact_parts(task).filter_map(|part| Some(part.get("text")?.as_str()?.to_owned()));
    texts.collect()
}

fn artifact_parts(task: &Value) -> impl Iterator<Item = Value> {
    let artifacts = task.get("artifacts").and_then(Value::as_array).cloned().unwrap_or_default();
    artifacts.into_iter().flat_map(|artifact| parts_of(&artifact))
}

fn parts_of(content: &Value) -> impl Iterator<Item = Value> + use<> {
    content.get("parts").and_then(Value::as_array).cloned().unwrap_or_default().into_iter()
}

fn file_note(part: &Value) -> Option<String> {
    let file = part.get("file")?;
    let name = match text_at(file, "/name") {
        "" => String::new(),
        name => format!(" `{name}`"),
    };
    let media_type = match text_at(file, "/mimeType") {
        "" => String::new(),
        media_type => format!(" ({media_type})"),
    };
    Some(match text_at(file, "/uri") {
        "" => format!("the answer has a file{name}{media_type}, which `--json` prints in base64"),
        uri => format!("the answer has a file{name}{media_type} at {uri}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn content_of(artifact_parts: &Value, message_parts: &Value) -> (String, Vec<String>) {
        let message = json!({"kind": "message", "parts": message_parts});
        let task = json!({
            "artifacts": [{"parts": artifact_parts}],
            "status": {"state": "completed", "message": message},
        });
        let PrintableAnswer { text, notes } = PrintableAnswer::from_task(&task);
        (text, notes)
    }

    #[test]
    fn every_part_of_an_answer_is_printed_or_noted() {
        let text = |text: &str| json!({"kind": "text", "text": text});
        let data = json!({"kind": "data", "data": {"n": 1}});
        let file = json!({"kind": "file", "file": {"bytes": "aGk=", "name": "a.pdf", "mimeType": "application/pdf"}});
        let link = json!({"kind": "file", "file": {"uri": "https://a.example"}});
        let data_note = "the answer has data, which `--json` prints";
        let file_note =
            "the answer has a file `a.pdf` (application/pdf), which `--json` prints in base64";
        for (artifact_parts, message_parts, printed, notes) in [
            (
                json!([text("a"), text("b")]),
                json!([text("done")]),
                "ab",
                vec!["the agent adds: done"],
            ),
            (json!([text("all is done")]), json!([text("done")]), "all is done", vec![]),
            (json!([]), json!([text("done")]), "done", vec![]),
            (json!([data]), json!([]), "{\"n\":1}\n", vec![]),
            (json!([text("a"), data]), json!([]), "a", vec![data_note]),
            (json!([file]), json!([]), "", vec![file_note]),
            (
                json!([file]),
                json!([text("see"), link]),
                "see\nhttps://a.example",
                vec![file_note, "the answer has a file at https://a.example"],
            ),
        ] {
            let (text, found_notes) = content_of(&artifact_parts, &message_parts);
            assert_eq!(
                (text.as_str(), found_notes),
                (printed, notes.iter().map(|it| (*it).to_owned()).collect())
            );
        }
    }

    #[test]
    fn a_message_counts_as_a_completed_task() {
        let message =
            json!({"kind": "message", "taskId": "t", "parts": [{"kind": "text", "text": "a"}]});
        let task = task_from_response(message);
        assert_eq!((text_at(&task, "/id"), text_at(&task, "/status/state")), ("t", "completed"));
        assert_eq!(PrintableAnswer::from_task(&task).text, "a");
        let task = json!({"kind": "task", "id": "t"});
        assert_eq!(task_from_response(task.clone()), task);
    }
}
