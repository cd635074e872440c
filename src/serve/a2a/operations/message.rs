//! Conversion of a caller's message into a request of the domain model.

use std::collections::BTreeMap;

use algonius_a2a::v1::{A2aPart, Message, PartContent, Role};
use algonius_a2a::{HOPS_EXTENSION, OVERRIDES_EXTENSION, PARAMETERS_EXTENSION};
use algonius_actors::model::access::principal::Caller;
use algonius_actors::model::code::Code;
use algonius_actors::model::execution::content;
use algonius_actors::model::execution::record::ExecutionRecord;
use algonius_actors::model::execution::request::{
    Input, Overrides, Request, RequestOrigin, Trigger,
};
use algonius_actors::model::failure::Failure;
use algonius_actors::model::id::{AgentId, ContextId, MessageId};
use serde_json::Value;

use super::message_details::{self, ForwardedRequestFields, MAX_METADATA_BYTES};
use crate::serve::a2a::transport_metadata::{MAX_ID_BYTES, TransportMetadata};

/// Maximum number of parts of a message: a stored part takes more memory than a part on the wire.
const MAX_PARTS: usize = 1000;

/// Maximum number of entries in each of a message's lists of extensions and of other tasks.
const MAX_LIST_ENTRIES: usize = 100;

/// Returns the request for an agent that a message, the fields beside it and the headers contain.
///
/// # Errors
/// `invalid-params`.
pub(in crate::serve) fn build_request(
    caller: &Caller,
    agent: &AgentId,
    (message, fields, metadata): (Message, ForwardedRequestFields, TransportMetadata),
    continued_execution: Option<&ExecutionRecord>,
) -> Result<Request, Failure> {
    // First of all checks that look at the content: later ones copy and walk through what is bounded here.
    check_role_and_limits(&message)?;
    let caller_ids = [Some(&message.message_id), message.context_id.as_ref()];
    for id in caller_ids.into_iter().chain([metadata.idempotency_key.as_ref()]).flatten() {
        if id.len() > MAX_ID_BYTES || id.chars().any(char::is_control) {
            let text = format!("an id has at most {MAX_ID_BYTES} bytes and no control characters");
            return Err(Failure::new(Code::InvalidParams, text));
        }
    }
    let service_hops = read_service_hops(&message)?;
    let (params, overrides) = (read_parameters(&message)?, read_overrides(&message)?);
    let details = message_details::read_details(
        &message,
        fields,
        &metadata.extensions,
        continued_execution.is_some(),
    )?;
    Ok(Request {
        agent: agent.clone(),
        origin: RequestOrigin {
            owner: caller.principal,
            trigger: Trigger::Api,
            trace: metadata.trace,
            service_hops,
        },
        message_id: MessageId(message.message_id),
        idempotency_key: metadata.idempotency_key,
        starts_context: message.context_id.is_none() && continued_execution.is_none(),
        context: resolve_context(message.context_id, continued_execution),
        continued_execution: continued_execution.map(|record| record.id),
        inherited_overrides: Overrides::default(),
        input: Input { parts: to_content_parts(message.parts), params, overrides, details },
    })
}

/// Checks the role of a message, and the limits that the size of the body does not imply.
pub(super) fn check_role_and_limits(message: &Message) -> Result<(), Failure> {
    if message.role != Role::User {
        let text = "`message.role` must be \"user\"";
        return Err(Failure::new(Code::InvalidParams, text));
    }
    let invalid_params = |text: String| Err(Failure::new(Code::InvalidParams, text));
    if message.parts.len() > MAX_PARTS {
        return invalid_params(format!("`message.parts` has at most {MAX_PARTS} parts"));
    }
    if message.extensions.len().max(message.reference_task_ids.len()) > MAX_LIST_ENTRIES {
        return invalid_params(format!(
            "a list of names in a message has at most {MAX_LIST_ENTRIES}"
        ));
    }
    let all_metadata = message.parts.iter().map(|part| &part.metadata).chain([&message.metadata]);
    let sizes = all_metadata.filter(|metadata| !metadata.is_empty()).map(|metadata| {
        metadata.iter().map(|(name, value)| name.len() + value.to_string().len()).sum::<usize>()
    });
    if sizes.sum::<usize>() > MAX_METADATA_BYTES {
        return invalid_params(format!(
            "the metadata of a message has at most {MAX_METADATA_BYTES} bytes"
        ));
    }
    Ok(())
}

/// Returns the conversation that the caller names, or that of the task, or a new one.
fn resolve_context(
    context_id: Option<String>,
    continued_execution: Option<&ExecutionRecord>,
) -> ContextId {
    let default_context =
        || continued_execution.map_or_else(ContextId::generate, |record| record.context.clone());
    context_id.map_or_else(default_context, ContextId)
}

/// Converts the parts of a message.
fn to_content_parts(parts: Vec<A2aPart>) -> Vec<content::Part> {
    let part = |part: A2aPart| {
        let content = match part.content {
            PartContent::Text(text) => content::Content::Text(text),
            PartContent::Data(data) => content::Content::Data(data),
            PartContent::Raw(bytes) => content::Content::Bytes(bytes),
            PartContent::Url(url) => content::Content::Url(url),
        };
        // The metadata is one of the details of the message.
        let A2aPart { filename, media_type, metadata: _, .. } = part;
        content::Part { content, filename, media_type }
    };
    parts.into_iter().map(part).collect()
}

/// Reads the number of services that passed the message on, and refuses a message that more services passed on than a
/// chain of agents may have: agents of several services that call each other would otherwise never stop.
fn read_service_hops(message: &Message) -> Result<u32, Failure> {
    let Some(value) = message.metadata.get(HOPS_EXTENSION) else { return Ok(0) };
    let count = value.get("count").and_then(Value::as_u64).ok_or_else(|| {
        let text = format!("`{HOPS_EXTENSION}` must be an object with a whole number `count`");
        Failure::new(Code::InvalidParams, text)
    })?;
    let max_hops = RequestOrigin::MAX_SERVICE_HOPS;
    u32::try_from(count).ok().filter(|count| *count <= max_hops).ok_or_else(|| {
        let text = format!("more than {max_hops} services passed the message on, one to the other");
        Failure::new(Code::TooManyHops, text)
    })
}

/// Reads the parameters of a caller.
pub(super) fn read_parameters(message: &Message) -> Result<BTreeMap<String, String>, Failure> {
    message.metadata.get(PARAMETERS_EXTENSION).map_or_else(
        || Ok(BTreeMap::new()),
        |value| {
            string_map(value).ok_or_else(|| {
                let text = "parameters must be an object of strings, numbers and Booleans";
                Failure::new(Code::InvalidParams, text)
            })
        },
    )
}

/// Reads the overrides of a caller. The agent decides later whether it allows them.
pub(super) fn read_overrides(message: &Message) -> Result<Overrides, Failure> {
    let invalid_overrides = || {
        let text = "overrides must be an object with a text `workingDirectory`, an object \
                    `environment` of texts, numbers and truth values, or both";
        Failure::new(Code::InvalidParams, text)
    };
    let Some(object) = message.metadata.get(OVERRIDES_EXTENSION) else {
        return Ok(Overrides::default());
    };
    let mut overrides = Overrides::default();
    for (name, value) in object.as_object().ok_or_else(invalid_overrides)? {
        match (name.as_str(), value) {
            ("workingDirectory", Value::String(path)) => {
                overrides.working_dir = Some(path.clone());
            }
            ("environment", variables) => {
                overrides.env = string_map(variables).ok_or_else(invalid_overrides)?;
            }
            _ => return Err(invalid_overrides()),
        }
    }
    Ok(overrides)
}

/// Converts an object of texts, numbers and Booleans into texts.
fn string_map(object: &Value) -> Option<BTreeMap<String, String>> {
    let text = |value: &Value| match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(boolean) => Some(boolean.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    };
    let members = object.as_object()?.iter();
    members.map(|(name, value)| Some((name.clone(), text(value)?))).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn minimal_message() -> Message {
        Message {
            message_id: "m".to_owned(),
            context_id: None,
            task_id: None,
            role: Role::User,
            parts: vec![A2aPart::text("x")],
            metadata: Default::default(),
            extensions: Vec::new(),
            reference_task_ids: Vec::new(),
        }
    }

    #[test]
    fn a_message_beyond_its_bounds_is_refused() {
        let check_changed = |change: &dyn Fn(&mut Message)| {
            let mut message = minimal_message();
            change(&mut message);
            check_role_and_limits(&message).map_err(|failure| failure.code)
        };
        let refused = Err(Code::InvalidParams);
        let parts = |count| vec![A2aPart::text("x"); count];
        assert_eq!(check_changed(&|message| message.parts = parts(MAX_PARTS)), Ok(()));
        assert_eq!(check_changed(&|message| message.parts = parts(MAX_PARTS + 1)), refused);
        let names = |count| vec!["urn:x".to_owned(); count];
        assert_eq!(check_changed(&|message| message.extensions = names(MAX_LIST_ENTRIES)), Ok(()));
        assert_eq!(
            check_changed(&|message| message.extensions = names(MAX_LIST_ENTRIES + 1)),
            refused
        );
        assert_eq!(
            check_changed(&|message| message.reference_task_ids = names(MAX_LIST_ENTRIES + 1)),
            refused
        );
        let metadata_of_length =
            |length: usize| [("n".to_owned(), json!("x".repeat(length)))].into_iter().collect();
        assert_eq!(
            check_changed(&|message| message.metadata = metadata_of_length(MAX_METADATA_BYTES - 3)),
            Ok(())
        );
        assert_eq!(
            check_changed(&|message| message.metadata = metadata_of_length(MAX_METADATA_BYTES)),
            refused
        );
        let part = |length| A2aPart { metadata: metadata_of_length(length), ..A2aPart::text("x") };
        let half = MAX_METADATA_BYTES / 2;
        assert_eq!(check_changed(&|message| message.parts = vec![part(half), part(half)]), refused);
    }
    #[test]
    fn a_message_is_passed_on_so_often_and_no_more() {
        let hops_of = |value: Value| {
            let metadata = [(HOPS_EXTENSION.to_owned(), value)].into_iter().collect();
            read_service_hops(&Message { metadata, ..minimal_message() })
                .map_err(|failure| failure.code)
        };
        let max_hops = RequestOrigin::MAX_SERVICE_HOPS;
        assert_eq!(read_service_hops(&minimal_message()).map_err(|failure| failure.code), Ok(0));
        assert_eq!(hops_of(json!({"count": max_hops})), Ok(max_hops));
        for count in [u64::from(max_hops) + 1, u64::MAX] {
            assert_eq!(hops_of(json!({"count": count})), Err(Code::TooManyHops));
        }
        for wrong in [json!(1), json!({"count": -1}), json!({"count": "1"}), json!({}), json!(null)]
        {
            assert_eq!(hops_of(wrong), Err(Code::InvalidParams));
        }
    }
}
