//! Common form of the requests of all dialects: the last text of the user, and the tool results since.

use serde_json::Value;

use crate::dialect::ApiDialect;
use crate::directive::Directive;

/// Suffixes of element names that agents put around the text of the user.
const WRAPPER_SUFFIXES: [&str; 10] = [
    "reminder",
    "context",
    "details",
    "instructions",
    "datetime",
    "environment",
    "tools",
    "info",
    "notification",
    "metadata",
];

/// Request for one answer.
#[derive(Debug, Default)]
pub(crate) struct ModelRequest {
    pub(crate) model: String,
    pub(crate) is_streamed: bool,
    pub(crate) tool_names: Vec<String>,
    /// Text of the user, with its directives.
    pub(crate) user_text: String,
    /// Tools as they are offered.
    pub(crate) tool_definitions: Value,
    /// Number of messages of the user, including this one.
    pub(crate) user_message_count: u64,
    /// Tool results after that text.
    pub(crate) tool_results: Vec<String>,
    /// Number of messages of the model after that text; only the chat dialect counts them.
    pub(crate) reply_count_after_text: usize,
    /// Number of all messages of the model; only the chat dialect counts them.
    pub(crate) reply_count: usize,
    /// JSON schema of the answer, if the request has one.
    pub(crate) schema: Option<Value>,
}

impl ModelRequest {
    /// Reads the body of a request; `path` names the model if the body does not.
    pub(crate) fn parse(dialect: ApiDialect, path: &str, body: &Value) -> Self {
        let mut request = Self {
            tool_names: offered_tool_names(&body["tools"]),
            tool_definitions: body["tools"].clone(),
            ..Self::default()
        };
        request.model = body["model"].as_str().map_or_else(|| model_from_path(path), str::to_owned);
        request.is_streamed = body["stream"] == true || path.ends_with(":streamGenerateContent");
        request.schema = answer_schema(dialect, body).filter(|schema| !schema.is_null()).cloned();
        match dialect {
            ApiDialect::Anthropic => request.read_anthropic(body),
            ApiDialect::Chat => request.read_chat(body),
            ApiDialect::Responses => request.read_responses(body),
            ApiDialect::Gemini => request.read_gemini(body),
        }
        request
    }

    fn read_anthropic(&mut self, body: &Value) {
        for message in array_elements(&body["messages"]).filter(|message| message["role"] == "user")
        {
            let parts = &message["content"];
            let results = array_elements(parts).filter(|part| part["type"] == "tool_result");
            let results: Vec<_> = results.map(|part| result_text(&part["content"])).collect();
            self.add_user_message(content_texts(parts), results);
        }
    }

    fn read_chat(&mut self, body: &Value) {
        for message in array_elements(&body["messages"]) {
            match message["role"].as_str() {
                Some("user") => {
                    self.add_user_message(content_texts(&message["content"]), Vec::new());
                }
                Some("tool" | "function") => {
                    self.tool_results.push(result_text(&message["content"]));
                }
                Some("assistant") => {
                    self.reply_count += 1;
                    self.reply_count_after_text += 1;
                }
                _ => {}
            }
        }
    }

    fn read_responses(&mut self, body: &Value) {
        if let Some(text) = body["input"].as_str() {
            self.add_user_message(vec![text], Vec::new());
        }
        for item in array_elements(&body["input"]) {
            let kind = item["type"].as_str().unwrap_or("message");
            if kind == "message" && item["role"] == "user" {
                self.add_user_message(content_texts(&item["content"]), Vec::new());
            } else if kind.ends_with("_call_output") {
                self.tool_results.push(result_text(&item["output"]));
            }
        }
    }

    fn read_gemini(&mut self, body: &Value) {
        for content in
            array_elements(&body["contents"]).filter(|content| content["role"] != "model")
        {
            let parts = &content["parts"];
            let results = array_elements(parts).filter_map(|part| part.get("functionResponse"));
            let results: Vec<_> = results.map(|result| result_text(&result["response"])).collect();
            self.add_user_message(content_texts(parts), results);
        }
    }

    /// Adds one message. Texts beside tool results are remarks of the agent, not text of the user.
    fn add_user_message(&mut self, texts: Vec<&str>, results: Vec<String>) {
        if !results.is_empty() {
            self.tool_results.extend(results);
            return;
        }
        let texts = texts.into_iter().map(strip_wrappers).filter(|text| !text.is_empty());
        let texts: Vec<_> = texts.collect();
        let prompt = texts.iter().rev().find(|text| Directive::is_in(text)).or(texts.last());
        let Some(prompt) = prompt else { return };
        self.user_message_count += 1;
        if Directive::is_in(prompt) || !self.has_scripted_turns() {
            (*prompt).clone_into(&mut self.user_text);
            self.tool_results.clear();
            self.reply_count_after_text = 0;
        }
    }

    /// Returns true if the directive of the text determines several turns. It stays in force after further texts.
    fn has_scripted_turns(&self) -> bool {
        let directive = Directive::extract_from(&self.user_text).1;
        directive.is_some_and(|directive| directive.value("turns").is_some())
    }
}

/// Returns the names of the offered tools.
fn offered_tool_names(tools: &Value) -> Vec<String> {
    let name = |tool: &Value| {
        let names = [&tool["name"], &tool["function"]["name"], &tool["type"]];
        names.into_iter().find_map(Value::as_str).unwrap_or("?").to_owned()
    };
    let tool_names = |tool: &Value| match tool.get("functionDeclarations") {
        Some(declarations) => array_elements(declarations).map(name).collect(),
        None => vec![name(tool)],
    };
    array_elements(tools).flat_map(tool_names).collect()
}

fn answer_schema(dialect: ApiDialect, body: &Value) -> Option<&Value> {
    let pointers: &[&str] = match dialect {
        ApiDialect::Anthropic => &["/output_config/format/schema", "/output_format/schema"],
        ApiDialect::Chat => &["/response_format/json_schema/schema"],
        ApiDialect::Responses => &["/text/format/schema"],
        ApiDialect::Gemini => {
            &["/generationConfig/responseJsonSchema", "/generationConfig/responseSchema"]
        }
    };
    pointers.iter().find_map(|pointer| body.pointer(pointer))
}

/// Returns `gemini-2.5-flash` for `/v1beta/models/gemini-2.5-flash:generateContent`.
fn model_from_path(path: &str) -> String {
    let last_segment = path.rsplit('/').next().unwrap_or_default();
    last_segment.split(':').next().unwrap_or_default().to_owned()
}

fn array_elements(value: &Value) -> impl DoubleEndedIterator<Item = &Value> {
    value.as_array().map(Vec::as_slice).unwrap_or_default().iter()
}

/// Returns the texts of a message's content.
fn content_texts(content: &Value) -> Vec<&str> {
    let plain_text = content.as_str().into_iter();
    plain_text.chain(array_elements(content).filter_map(|part| part["text"].as_str())).collect()
}

/// Returns a tool result as one text.
fn result_text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            parts.iter().map(|part| result_text(part.get("text").unwrap_or(part))).collect()
        }
        Value::Bool(_) | Value::Number(_) | Value::Object(_) => value.to_string(),
    }
}

/// Returns a text without the elements before and after it.
fn strip_wrappers(text: &str) -> &str {
    let mut remaining = text.trim();
    while let Some(shorter) =
        strip_leading_wrapper(remaining).or_else(|| strip_trailing_wrapper(remaining))
    {
        remaining = shorter.trim();
    }
    remaining
}

fn strip_leading_wrapper(text: &str) -> Option<&str> {
    let (tag, _) = text.strip_prefix('<')?.split_once('>')?;
    let name = tag.split_whitespace().next().filter(|name| is_wrapper(name))?;
    text.split_once(&format!("</{name}>")).map(|(_, after)| after)
}

fn strip_trailing_wrapper(text: &str) -> Option<&str> {
    let (_, name) = text.strip_suffix('>')?.rsplit_once("</")?;
    if !is_wrapper(name) {
        return None;
    }
    text.rsplit_once(&format!("<{name}")).map(|(before, _)| before)
}

fn is_wrapper(name: &str) -> bool {
    let is_word = name.chars().all(|c| c.is_ascii_lowercase() || c == '_' || c == '-');
    is_word && WRAPPER_SUFFIXES.iter().any(|end| name.ends_with(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_that_agents_add_around_a_text_are_removed() {
        let text = "<system-reminder>x <b></system-reminder>\n<environment_context a=\"b\">y\
            </environment_context>\n say <this> \n<current_datetime>z</current_datetime>";
        assert_eq!(strip_wrappers(text), "say <this>");
        assert_eq!(strip_wrappers("<p>a paragraph</p>"), "<p>a paragraph</p>");
        assert_eq!(strip_wrappers("<context>never closed"), "<context>never closed");
    }
}
