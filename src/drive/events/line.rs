//! One line of a program's events, as the program writes it.

use algonius_actors::model::content::{Content, Part};
pub(super) use algonius_actors::model::event::{Change, Stage};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::{Map, Value};

pub(super) use super::failing::Failing;
use super::named::{Item, Named};

/// The longest line of events of ours that is read; a longer one is passed over.
pub(super) const LONGEST: usize = 1024 * 1024;

/// The longest line of another kind: it holds the whole answer, with whatever else stands there.
pub(super) const LONGEST_NATIVE: usize = 16 * 1024 * 1024;

/// A line that arrives in pieces.
pub(super) struct Line {
    bytes: Vec<u8>,
    longest: usize,
    is_too_long: bool,
}

impl Line {
    /// An empty line, which may become so long.
    pub(super) const fn new(longest: usize) -> Self {
        Self { bytes: Vec::new(), longest, is_too_long: false }
    }

    /// Takes the line away, and begins the next.
    pub(super) fn take(&mut self) -> Self {
        std::mem::replace(self, Self::new(self.longest))
    }

    /// Takes the next piece.
    pub(super) fn extend(&mut self, bytes: &[u8]) {
        if self.bytes.len() + bytes.len() > self.longest {
            (self.bytes, self.is_too_long) = (Vec::new(), true);
        }
        if !self.is_too_long {
            self.bytes.extend_from_slice(bytes);
        }
    }

    /// Whether it says nothing at all.
    pub(super) fn is_blank(&self) -> bool {
        !self.is_too_long && self.bytes.trim_ascii().is_empty()
    }

    /// What it says; `None` where that cannot be read.
    pub(super) fn event(&self) -> Option<Event> {
        if self.is_too_long { None } else { serde_json::from_slice(&self.bytes).ok() }
    }

    /// Its object; `None` where it is none.
    pub(super) fn object(&self) -> Option<Value> {
        if self.is_too_long {
            return None;
        }
        serde_json::from_slice(&self.bytes).ok().filter(Value::is_object)
    }
}

/// One event.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(in crate::drive) enum Event {
    /// The answer goes on.
    Text { text: String },
    /// Something was made, or a piece of it.
    Artifact(Making),
    /// A word about the progress, or about the end.
    Status {
        #[serde(default)]
        state: String,
        #[serde(flatten)]
        words: Option<Words>,
    },
    /// The answer is a word alone.
    Message {
        #[serde(flatten)]
        words: Words,
    },
    /// The agent asks, and then ends.
    InputRequired {
        #[serde(flatten)]
        words: Option<Words>,
    },
    /// The agent will not do it.
    Rejected {
        #[serde(default)]
        message: String,
    },
    /// The work failed.
    Failed(Failing),
    /// What was used, in numbers by name.
    Usage {
        /// Whether it is counted since the session began.
        #[serde(default)]
        cumulative: bool,
        #[serde(flatten)]
        fields: Map<String, Value>,
    },
    /// The agent thinks. What it thinks is its own.
    Thinking {},
    /// A tool is used.
    ToolCall {
        id: Option<String>,
        tool: String,
        #[serde(default = "started")]
        stage: Stage,
    },
    /// A file was changed.
    FileChange {
        path: String,
        #[serde(default = "modified")]
        change: Change,
    },
    /// A tool was not let be used.
    PermissionDenied { tool: String },
    /// The agent is done, and why.
    Stop {
        #[serde(default)]
        reason: String,
    },
    /// The agent's own session.
    Session { id: String },
    /// Of a later release.
    #[serde(other)]
    Unknown,
}

const fn started() -> Stage {
    Stage::Started
}

const fn modified() -> Change {
    Change::Modified
}

/// Something made.
#[derive(Debug, Deserialize)]
pub(in crate::drive) struct Making {
    /// Its id within the execution.
    pub(super) id: Option<String>,
    /// Its name for people.
    pub(super) name: Option<String>,
    /// What it is.
    pub(super) description: Option<String>,
    /// What it is made of.
    #[serde(flatten)]
    pub(super) words: Words,
    /// Whether it goes on.
    #[serde(default)]
    pub(super) append: bool,
    /// Whether nothing more of it will come.
    #[serde(default = "yes")]
    pub(super) last: bool,
}

const fn yes() -> bool {
    true
}

/// Content: a list of parts, or a single one in the event itself.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(in crate::drive) enum Words {
    /// A list.
    Many { parts: Vec<Word> },
    /// A single part.
    One(Word),
}

/// One part.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(in crate::drive) enum Word {
    /// Text.
    Text { text: String },
    /// Any JSON.
    Data { data: Value },
    /// A file.
    File { file: File },
    /// Where a file is.
    Url { url: String, name: Option<String>, media_type: Option<String> },
}

/// A file: in base64, as text, or by its path.
#[derive(Debug, Deserialize)]
pub(in crate::drive) struct File {
    name: Option<String>,
    media_type: Option<String>,
    bytes: Option<String>,
    text: Option<String>,
    path: Option<String>,
}

impl Words {
    /// A text.
    pub(in crate::drive) const fn text(text: String) -> Self {
        Self::One(Word::Text { text })
    }

    /// The parts; `None` where there are none, or one cannot be read.
    pub(super) fn items(self) -> Option<Vec<Item>> {
        let words = match self {
            Self::Many { parts } => parts,
            Self::One(word) => vec![word],
        };
        if words.is_empty() { None } else { words.into_iter().map(Word::item).collect() }
    }
}

impl Word {
    fn item(self) -> Option<Item> {
        Some(Item::Part(match self {
            Self::Text { text } => Part::text(text),
            Self::Data { data } => plain(Content::Data(data)),
            Self::File { file } => return file.item(),
            Self::Url { url, name, media_type } => {
                Part { content: Content::Url(url), filename: name, media_type }
            }
        }))
    }
}

impl File {
    /// What is kept is readable base64, so that readers need not doubt it.
    fn item(self) -> Option<Item> {
        let Self { name, media_type, bytes, text, path } = self;
        let encoded = match (bytes, text, path) {
            (Some(encoded), None, None) => STANDARD.decode(&encoded).is_ok().then_some(encoded)?,
            (None, Some(text), None) => STANDARD.encode(text),
            (None, None, Some(path)) => return Some(Item::Named(Named { path, name, media_type })),
            _ => return None,
        };
        Some(Item::Part(Part { content: Content::Bytes(encoded), filename: name, media_type }))
    }
}

const fn plain(content: Content) -> Part {
    Part { content, filename: None, media_type: None }
}

#[cfg(test)]
mod tests {
    use super::{Event, Item, LONGEST, Line, Named};
    use algonius_actors::model::content::{Content, Part};

    fn read(line: &str) -> Option<Event> {
        let mut whole = Line::new(LONGEST);
        whole.extend(line.as_bytes());
        whole.event()
    }

    fn items(words: &str) -> Option<Vec<Item>> {
        match read(&format!(r#"{{"type":"message",{words}}}"#))? {
            Event::Message { words } => words.items(),
            _ => None,
        }
    }

    fn parts(words: &str) -> Option<Vec<Part>> {
        let parts = items(words)?.into_iter().map(|item| match item {
            Item::Part(part) => Some(part),
            Item::Named(_) => None,
        });
        parts.collect()
    }

    fn contents(words: &str) -> Option<Vec<Content>> {
        parts(words).map(|parts| parts.into_iter().map(|part| part.content).collect())
    }

    #[test]
    fn each_form_of_a_part_is_read() {
        let bytes = || Some(vec![Content::Bytes("aGk=".to_owned())]);
        assert_eq!(contents(r#""text":"a""#), Some(vec![Content::Text("a".to_owned())]));
        assert_eq!(contents(r#""data":null"#), Some(vec![Content::Data(().into())]));
        assert_eq!(contents(r#""file":{"bytes":"aGk="}"#), bytes());
        assert_eq!(contents(r#""file":{"text":"hi"}"#), bytes());
        let parts = parts(r#""parts":[{"text":""},{"url":"u","name":"n","media_type":"m"}]"#);
        let url = parts.unwrap().pop().unwrap();
        assert_eq!(url.content, Content::Url("u".to_owned()));
        assert_eq!((url.filename.as_deref(), url.media_type.as_deref()), (Some("n"), Some("m")));
    }

    #[test]
    fn what_is_no_part_is_not_read() {
        for words in [
            r#""parts":[]"#,
            r#""parts":[{"text":1}]"#,
            r#""file":{"bytes":"?"}"#,
            r#""file":{"bytes":"aGk=","text":"hi"}"#,
            r#""file":{"path":"a","text":"hi"}"#,
            r#""file":{"name":"a"}"#,
            r#""more":1"#,
        ] {
            assert_eq!(items(words), None, "{words}");
        }
    }

    #[test]
    fn a_file_may_be_named_only() {
        let own = |text: &str| Some(text.to_owned());
        let named = |path: &str, name, media_type| {
            Some(vec![Item::Named(Named { path: path.to_owned(), name, media_type })])
        };
        assert_eq!(items(r#""file":{"path":"out/a.txt"}"#), named("out/a.txt", None, None));
        let full = r#""parts":[{"file":{"path":"/a","name":"n","media_type":"m"}}]"#;
        assert_eq!(items(full), named("/a", own("n"), own("m")));
    }

    #[test]
    fn what_is_made_is_whole_unless_it_says_otherwise() {
        let Some(Event::Artifact(made)) = read(r#"{"type":"artifact","name":"n","url":"u"}"#)
        else {
            panic!("not read");
        };
        assert_eq!((made.append, made.last, made.id), (false, true, None));
        assert_eq!(made.name.as_deref(), Some("n"));
        assert_eq!(made.words.items().unwrap().len(), 1);
    }
}
