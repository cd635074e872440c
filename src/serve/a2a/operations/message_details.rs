//! Details of a caller's message: its metadata and references, which the agent receives and the service does not use.

use algonius_a2a::interaction::INTERACTIONS_EXTENSION;
use algonius_a2a::v1::{Message, Metadata};
use algonius_a2a::{HOPS_EXTENSION, OVERRIDES_EXTENSION, PARAMETERS_EXTENSION};
use algonius_actors::model::code::Code;
use algonius_actors::model::execution::message_details::{
    MessageDetails, PartMetadata, RequestDetails, details_to_json,
};
use algonius_actors::model::failure::Failure;

/// Maximum size of the metadata of a message and of all its parts, in bytes of JSON. All that the agent receives beside
/// the parts has the same limit together.
pub(super) const MAX_METADATA_BYTES: usize = 64 << 10;

/// Fields of a request beside its message, as far as the agent receives them.
#[derive(Debug, Default)]
pub(in crate::serve) struct ForwardedRequestFields {
    /// Media types that the caller can read; an empty list allows all.
    pub(in crate::serve) accepted_output_modes: Vec<String>,
    /// Metadata of the request.
    pub(in crate::serve) metadata: Metadata,
}

/// Keys in the metadata of a message that the service reads.
const SERVICE_KEYS: [&str; 3] = [PARAMETERS_EXTENSION, OVERRIDES_EXTENSION, HOPS_EXTENSION];

/// Beginning of the URIs of extensions that the service provides itself.
const SERVICE_EXTENSION_PREFIX: &str = "https://algonius.dev/a2a/ext/";

/// Returns the details of a message and of the request that carries it. `requested_extensions` are those of a header.
///
/// # Errors
/// `invalid-params` if the details are too long, or if a key of the service has no effect where it is.
pub(super) fn read_details(
    message: &Message,
    fields: ForwardedRequestFields,
    requested_extensions: &[String],
    is_continuation: bool,
) -> Result<MessageDetails, Failure> {
    let invalid_params = |text: String| Err(Failure::new(Code::InvalidParams, text));
    let ForwardedRequestFields { accepted_output_modes, metadata: request_metadata } = fields;
    if let Some(key) = find_misplaced_key(&request_metadata) {
        return invalid_params(format!("`{key}` must be in the metadata of the message"));
    }
    if !is_continuation && message.metadata.contains_key(INTERACTIONS_EXTENSION) {
        return invalid_params(format!("`{INTERACTIONS_EXTENSION}` needs a message with `taskId`"));
    }
    let mut metadata = message.metadata.clone();
    metadata.retain(|key, _| !SERVICE_KEYS.contains(&key.as_str()));
    let parts = message.parts.iter().enumerate().filter(|(_, part)| !part.metadata.is_empty());
    let part_metadata =
        parts.map(|(part, a2a_part)| PartMetadata { part, metadata: a2a_part.metadata.clone() });
    let is_foreign = |uri: &&String| !uri.starts_with(SERVICE_EXTENSION_PREFIX);
    let foreign_extensions = |uris: &[String]| uris.iter().filter(is_foreign).cloned().collect();
    let details = MessageDetails {
        metadata,
        part_metadata: part_metadata.collect(),
        extensions: foreign_extensions(&message.extensions),
        reference_tasks: message.reference_task_ids.clone(),
        request: RequestDetails {
            metadata: request_metadata,
            accepted_output_modes,
            requested_extensions: foreign_extensions(requested_extensions),
        },
    };
    if details_to_json(&details).len() > MAX_METADATA_BYTES {
        return invalid_params(format!(
            "the metadata and the lists of names of a request have at most {MAX_METADATA_BYTES} bytes"
        ));
    }
    Ok(details)
}

/// Returns the first key that only the metadata of a message can have.
fn find_misplaced_key(request_metadata: &Metadata) -> Option<&'static str> {
    let mut keys = SERVICE_KEYS.into_iter().chain([INTERACTIONS_EXTENSION]);
    keys.find(|key| request_metadata.contains_key(*key))
}

#[cfg(test)]
mod tests {
    use algonius_a2a::CURSOR_EXTENSION;
    use algonius_a2a::v1::{A2aPart, Role};
    use serde_json::json;

    use super::*;

    fn message(metadata: Metadata) -> Message {
        Message {
            message_id: "m".to_owned(),
            context_id: None,
            task_id: None,
            role: Role::User,
            parts: vec![
                A2aPart::text("a"),
                A2aPart { metadata: single_entry("p", 1), ..A2aPart::text("b") },
            ],
            metadata,
            extensions: vec!["urn:x".to_owned()],
            reference_task_ids: vec!["t".to_owned()],
        }
    }

    fn single_entry(key: &str, value: u64) -> Metadata {
        Metadata::from_iter([(key.to_owned(), json!(value))])
    }

    #[test]
    fn details_are_all_that_the_service_does_not_read() {
        let mut metadata = single_entry("mine", 2);
        for key in SERVICE_KEYS {
            metadata.insert(key.to_owned(), json!({}));
        }
        let fields = ForwardedRequestFields {
            accepted_output_modes: vec!["text/plain".to_owned()],
            metadata: single_entry("r", 3),
        };
        let mut message = message(metadata);
        message.extensions.push(PARAMETERS_EXTENSION.to_owned());
        let requested = ["urn:y".to_owned(), CURSOR_EXTENSION.to_owned()];
        let expected = MessageDetails {
            metadata: single_entry("mine", 2),
            part_metadata: vec![PartMetadata { part: 1, metadata: single_entry("p", 1) }],
            extensions: vec!["urn:x".to_owned()],
            reference_tasks: vec!["t".to_owned()],
            request: RequestDetails {
                metadata: single_entry("r", 3),
                accepted_output_modes: vec!["text/plain".to_owned()],
                requested_extensions: vec!["urn:y".to_owned()],
            },
        };
        assert!(read_details(&message, fields, &requested, false) == Ok(expected));
    }

    #[test]
    fn a_key_of_the_service_without_effect_is_refused() {
        for key in
            [PARAMETERS_EXTENSION, OVERRIDES_EXTENSION, HOPS_EXTENSION, INTERACTIONS_EXTENSION]
        {
            let fields = ForwardedRequestFields {
                metadata: single_entry(key, 1),
                ..ForwardedRequestFields::default()
            };
            let failure = read_details(&message(Metadata::new()), fields, &[], true).unwrap_err();
            assert_eq!(failure.code, Code::InvalidParams, "{key}");
        }
        let answer = message(single_entry(INTERACTIONS_EXTENSION, 1));
        let read = |is_continuation| {
            read_details(&answer, ForwardedRequestFields::default(), &[], is_continuation)
        };
        assert_eq!(read(false).unwrap_err().code, Code::InvalidParams);
        assert!(read(true).unwrap().metadata.contains_key(INTERACTIONS_EXTENSION));
    }

    #[test]
    fn details_beyond_their_limit_are_refused() {
        let fields_of_length = |length: usize| ForwardedRequestFields {
            metadata: Metadata::from_iter([("a".to_owned(), json!("x".repeat(length)))]),
            accepted_output_modes: vec!["text/plain".to_owned(); 100],
        };
        let read =
            |length| read_details(&message(Metadata::new()), fields_of_length(length), &[], false);
        assert!(read(MAX_METADATA_BYTES / 2).is_ok());
        assert_eq!(read(MAX_METADATA_BYTES - 900).unwrap_err().code, Code::InvalidParams);
    }
}
