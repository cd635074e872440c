//! A message of a caller as a request of the inside.

use std::collections::BTreeMap;

use algonius_actors::model::code::Code;
use algonius_actors::model::content;
use algonius_actors::model::failure::Failure;
use algonius_actors::model::id::{AgentId, ContextId, MessageId};
use algonius_actors::model::principal::Caller;
use algonius_actors::model::record::Record;
use algonius_actors::model::request::{Input, Overrides, Request, Trigger};
use serde_json::Value;

use super::beside::Beside;
use crate::wire::a2a::v1::{Content, Message, Part, Role};
use crate::wire::a2a::{OVERRIDES, PARAMETERS};

/// The longest id that a caller may choose, in bytes.
pub(super) const LONGEST_ID: usize = 256;

/// The most parts of a message: each costs more where it is kept than on the wire.
const MOST_PARTS: usize = 1000;

/// The most names in one of a message's lists of extensions and of other tasks.
const MOST_NAMES: usize = 100;

/// The most metadata of a message and of all its parts, in bytes of JSON.
const MOST_METADATA: usize = 64 << 10;

/// The request for an agent that a message is, with what its sender says beside it.
///
/// # Errors
/// `invalid-params`.
pub(super) fn request(
    caller: &Caller,
    agent: &AgentId,
    (message, beside): (Message, Beside),
    continues: Option<&Record>,
) -> Result<Request, Failure> {
    if message.role != Role::User {
        let text = "`message.role` must be \"user\"";
        return Err(Failure::new(Code::InvalidParams, text));
    }
    within_bounds(&message)?;
    let named = [Some(&message.message_id), message.context_id.as_ref()];
    for id in named.into_iter().chain([beside.idempotency.as_ref()]).flatten() {
        if id.len() > LONGEST_ID || id.chars().any(char::is_control) {
            let text = format!("an id has at most {LONGEST_ID} bytes and no control characters");
            return Err(Failure::new(Code::InvalidParams, text));
        }
    }
    let (params, overrides) = (parameters(&message)?, overrides(&message)?);
    Ok(Request {
        agent: agent.clone(),
        owner: caller.principal,
        message: MessageId(message.message_id),
        idempotency: beside.idempotency,
        opens: message.context_id.is_none() && continues.is_none(),
        context: context(message.context_id, continues),
        continues: continues.map(|record| record.id),
        standing: Overrides::default(),
        trigger: Trigger::Api,
        trace: beside.trace,
        input: Input { parts: parts(message.parts), params, overrides },
    })
}

/// Checks what the size of a body does not bound well enough.
fn within_bounds(message: &Message) -> Result<(), Failure> {
    let wrong = |text: String| Err(Failure::new(Code::InvalidParams, text));
    if message.parts.len() > MOST_PARTS {
        return wrong(format!("`message.parts` has at most {MOST_PARTS} parts"));
    }
    if message.extensions.len().max(message.reference_task_ids.len()) > MOST_NAMES {
        return wrong(format!("a list of names in a message has at most {MOST_NAMES}"));
    }
    let all = message.parts.iter().map(|part| &part.metadata).chain([&message.metadata]);
    let sizes = all.filter(|metadata| !metadata.is_empty()).map(|metadata| {
        metadata.iter().map(|(name, value)| name.len() + value.to_string().len()).sum::<usize>()
    });
    if sizes.sum::<usize>() > MOST_METADATA {
        return wrong(format!("the metadata of a message has at most {MOST_METADATA} bytes"));
    }
    Ok(())
}

/// The conversation that the caller names, or that of the task, or a new one.
fn context(named: Option<String>, continues: Option<&Record>) -> ContextId {
    let own = || continues.map_or_else(ContextId::fresh, |record| record.context.clone());
    named.map_or_else(own, ContextId)
}

/// The parts of a message, as the inside has them.
fn parts(parts: Vec<Part>) -> Vec<content::Part> {
    let part = |part: Part| {
        let content = match part.content {
            Content::Text(text) => content::Content::Text(text),
            Content::Data(data) => content::Content::Data(data),
            Content::Raw(bytes) => content::Content::Bytes(bytes),
            Content::Url(url) => content::Content::Url(url),
        };
        let Part { filename, media_type, .. } = part;
        content::Part { content, filename, media_type }
    };
    parts.into_iter().map(part).collect()
}

fn parameters(message: &Message) -> Result<BTreeMap<String, String>, Failure> {
    message.metadata.get(PARAMETERS).map_or_else(
        || Ok(BTreeMap::new()),
        |given| {
            texts(given).ok_or_else(|| {
                let text = "parameters must be an object of texts, numbers and truth values";
                Failure::new(Code::InvalidParams, text)
            })
        },
    )
}

/// What a caller chooses beside its input. Whether it may, the agent says.
fn overrides(message: &Message) -> Result<Overrides, Failure> {
    let wrong = || {
        let text = "overrides must be an object with a text `workingDirectory`, an object \
                    `environment` of texts, numbers and truth values, or both";
        Failure::new(Code::InvalidParams, text)
    };
    let Some(given) = message.metadata.get(OVERRIDES) else { return Ok(Overrides::default()) };
    let mut overrides = Overrides::default();
    for (name, value) in given.as_object().ok_or_else(wrong)? {
        match (name.as_str(), value) {
            ("workingDirectory", Value::String(path)) => {
                overrides.working_dir = Some(path.clone());
            }
            ("environment", given) => overrides.env = texts(given).ok_or_else(wrong)?,
            _ => return Err(wrong()),
        }
    }
    Ok(overrides)
}

/// An object of texts, numbers and truth values, as texts.
fn texts(given: &Value) -> Option<BTreeMap<String, String>> {
    let text = |value: &Value| match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(truth) => Some(truth.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    };
    let given = given.as_object()?.iter();
    given.map(|(name, value)| Some((name.clone(), text(value)?))).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn plain() -> Message {
        Message {
            message_id: "m".to_owned(),
            context_id: None,
            task_id: None,
            role: Role::User,
            parts: vec![Part::text("x")],
            metadata: Default::default(),
            extensions: Vec::new(),
            reference_task_ids: Vec::new(),
        }
    }

    #[test]
    fn a_message_has_so_many_parts_names_and_bytes_of_metadata_and_no_more() {
        let with = |change: &dyn Fn(&mut Message)| {
            let mut message = plain();
            change(&mut message);
            within_bounds(&message).map_err(|failure| failure.code)
        };
        let refused = Err(Code::InvalidParams);
        let parts = |count| vec![Part::text("x"); count];
        assert_eq!(with(&|message| message.parts = parts(MOST_PARTS)), Ok(()));
        assert_eq!(with(&|message| message.parts = parts(MOST_PARTS + 1)), refused);
        let names = |count| vec!["urn:x".to_owned(); count];
        assert_eq!(with(&|message| message.extensions = names(MOST_NAMES)), Ok(()));
        assert_eq!(with(&|message| message.extensions = names(MOST_NAMES + 1)), refused);
        assert_eq!(with(&|message| message.reference_task_ids = names(MOST_NAMES + 1)), refused);
        let long =
            |length: usize| [("n".to_owned(), json!("x".repeat(length)))].into_iter().collect();
        assert_eq!(with(&|message| message.metadata = long(MOST_METADATA - 3)), Ok(()));
        assert_eq!(with(&|message| message.metadata = long(MOST_METADATA)), refused);
        let part = |length| Part { metadata: long(length), ..Part::text("x") };
        let half = MOST_METADATA / 2;
        assert_eq!(with(&|message| message.parts = vec![part(half), part(half)]), refused);
    }
}
