//! Four API dialects, and the common form of an answer.

use serde_json::Value;

use crate::{anthropic, gemini, openai_chat, openai_responses};

/// API dialect of a model service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ApiDialect {
    /// Anthropic Messages.
    Anthropic,
    /// `OpenAI` chat completions.
    Chat,
    /// `OpenAI` responses.
    Responses,
    /// Gemini `generateContent` and `streamGenerateContent`.
    Gemini,
}

/// Reply of the model.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum AnswerContent {
    Text(String),
    Call { name: String, arguments: Value },
}

/// Text and calls of one turn of a model.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct ScriptedTurn {
    pub(crate) text: String,
    pub(crate) calls: Vec<ScriptedCall>,
    /// Seconds before the answer, beside those of the directive.
    pub(crate) delay_seconds: Option<f64>,
}

/// Call in a turn.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ScriptedCall {
    pub(crate) name: String,
    pub(crate) arguments: Value,
}

impl ScriptedTurn {
    /// Returns the first call, or the text if there is no call.
    pub(crate) fn first_part(&self) -> AnswerContent {
        match self.calls.first() {
            Some(ScriptedCall { name, arguments }) => {
                AnswerContent::Call { name: name.clone(), arguments: arguments.clone() }
            }
            None => AnswerContent::Text(self.text.clone()),
        }
    }
}

impl ScriptedCall {
    /// Returns the arguments as text. A JSON string is sent as it is, for arguments that are no object.
    pub(crate) fn arguments_text(&self) -> String {
        self.arguments.as_str().map_or_else(|| self.arguments.to_string(), str::to_owned)
    }
}

/// Answer before its encoding in a dialect.
#[derive(Debug, Clone)]
pub(crate) struct ModelAnswer {
    pub(crate) model: String,
    pub(crate) reply: AnswerContent,
    /// Whole turn of the directive `turns`; `reply` is the first part of it, for dialects that encode one part only.
    pub(crate) turn: Option<ScriptedTurn>,
    pub(crate) input_tokens: u64,
    pub(crate) output_tokens: u64,
    /// Bytes of one piece of a stream.
    pub(crate) piece_bytes: usize,
    /// Number of the answer within this process, for its id.
    pub(crate) answer_number: u64,
    /// Seconds since 1970.
    pub(crate) created_at: i64,
}

/// Event of a stream.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ModelStreamEvent {
    pub(crate) name: Option<&'static str>,
    pub(crate) data: String,
}

impl ModelStreamEvent {
    /// Returns an event whose name is also in its data.
    pub(crate) fn with_name(name: &'static str, data: &Value) -> Self {
        Self { name: Some(name), data: data.to_string() }
    }

    pub(crate) fn without_name(data: &Value) -> Self {
        Self { name: None, data: data.to_string() }
    }
}

impl ApiDialect {
    /// Returns the dialect of a request, by the end of its path.
    pub(crate) fn from_path(path: &str) -> Option<Self> {
        let path_suffixes = [
            ("/messages", Self::Anthropic),
            ("/chat/completions", Self::Chat),
            ("/responses", Self::Responses),
            (":generateContent", Self::Gemini),
            (":streamGenerateContent", Self::Gemini),
        ];
        path_suffixes.into_iter().find(|(end, _)| path.ends_with(end)).map(|(_, dialect)| dialect)
    }

    /// Returns the answer as one document.
    pub(crate) fn full_document(self, answer: &ModelAnswer) -> Value {
        match self {
            Self::Anthropic => anthropic::full_document(answer),
            Self::Chat => openai_chat::full_document(answer),
            Self::Responses => openai_responses::full_document(answer),
            Self::Gemini => gemini::full_document(answer),
        }
    }

    /// Returns the answer as a stream of events.
    pub(crate) fn events(self, answer: &ModelAnswer) -> Vec<ModelStreamEvent> {
        match self {
            Self::Anthropic => anthropic::events(answer),
            Self::Chat => openai_chat::events(answer),
            Self::Responses => openai_responses::events(answer),
            Self::Gemini => gemini::events(answer),
        }
    }

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Anthropic => "anthropic",
            Self::Chat => "openai-chat",
            Self::Responses => "openai-responses",
            Self::Gemini => "gemini",
        }
    }
}

impl ModelAnswer {
    /// Returns a unique id with this prefix.
    pub(crate) fn id(&self, prefix: &str) -> String {
        format!("{prefix}_mock_{:08}", self.answer_number)
    }

    /// Returns the reply's text or the arguments of its call as text.
    pub(crate) fn reply_text_or_arguments(&self) -> String {
        match &self.reply {
            AnswerContent::Text(text) => text.clone(),
            AnswerContent::Call { arguments, .. } => arguments.to_string(),
        }
    }

    /// Returns that text in pieces of a stream.
    pub(crate) fn reply_pieces(&self) -> Vec<String> {
        self.split_into_pieces(&self.reply_text_or_arguments())
    }

    /// Returns a text in pieces of a stream; one empty piece for an empty text.
    pub(crate) fn split_into_pieces(&self, text: &str) -> Vec<String> {
        let (mut pieces, mut piece) = (Vec::new(), String::new());
        for character in text.chars() {
            piece.push(character);
            if piece.len() >= self.piece_bytes {
                pieces.push(std::mem::take(&mut piece));
            }
        }
        if !piece.is_empty() || pieces.is_empty() {
            pieces.push(piece);
        }
        pieces
    }
}
