//! Serialized form of raw texts for sealing, and its inverse.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::model::execution::content::{Content, Part};
use crate::model::execution::message_details::MessageDetails;
use crate::model::execution::request::{Input, Overrides};
use crate::model::schedule::ScheduleSpec;

/// Input without its overrides, which are stored in plain form.
#[derive(Serialize, Deserialize)]
struct RawInput<'i> {
    parts: Vec<RawPart<'i>>,
    params: Cow<'i, BTreeMap<String, String>>,
    #[serde(default, skip_serializing_if = "has_no_details")]
    details: Cow<'i, MessageDetails>,
}

#[derive(Serialize, Deserialize)]
struct RawPart<'p> {
    #[serde(flatten)]
    content: RawContent<'p>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    filename: Option<Cow<'p, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    media_type: Option<Cow<'p, str>>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum RawContent<'c> {
    Text(Cow<'c, str>),
    Data(Cow<'c, Value>),
    Bytes(Cow<'c, str>),
    Url(Cow<'c, str>),
}

/// Texts of a schedule that may contain a secret.
#[derive(Serialize, Deserialize)]
struct RawScheduleTexts<'s> {
    name: Cow<'s, str>,
    input: Cow<'s, str>,
    params: Cow<'s, BTreeMap<String, String>>,
}

/// Returns the bytes of an input to seal.
#[must_use]
pub fn encode_input(input: &Input) -> Vec<u8> {
    let parts = input.parts.iter().map(encode_part).collect();
    let (params, details) = (Cow::Borrowed(&input.params), Cow::Borrowed(&input.details));
    encode(&RawInput { parts, params, details })
}

/// Returns the input of bytes that were sealed; `None` if they are not valid.
#[must_use]
pub fn decode_input(bytes: &[u8], overrides: Overrides) -> Option<Input> {
    let RawInput { parts, params, details } = serde_json::from_slice(bytes).ok()?;
    let parts = parts.into_iter().map(decode_part).collect();
    let (params, details) = (params.into_owned(), details.into_owned());
    Some(Input { parts, params, overrides, details })
}

/// Returns the bytes of a schedule's texts to seal.
#[must_use]
pub fn encode_schedule_texts(spec: &ScheduleSpec) -> Vec<u8> {
    let (name, input) = (Cow::Borrowed(spec.name.as_str()), Cow::Borrowed(spec.input.as_str()));
    encode(&RawScheduleTexts { name, input, params: Cow::Borrowed(&spec.params) })
}

/// Returns the schedule with the texts that were sealed; `None` if the bytes are not valid.
#[must_use]
pub fn decode_schedule_texts(bytes: &[u8], redacted: ScheduleSpec) -> Option<ScheduleSpec> {
    let RawScheduleTexts { name, input, params } = serde_json::from_slice(bytes).ok()?;
    let (name, input, params) = (name.into_owned(), input.into_owned(), params.into_owned());
    Some(ScheduleSpec { name, input, params, ..redacted })
}

fn has_no_details(details: &MessageDetails) -> bool {
    details.is_empty()
}

fn encode(raw: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(raw).unwrap_or_default() // Maps with texts as keys always have a JSON form.
}

fn encode_part(part: &Part) -> RawPart<'_> {
    let content = match &part.content {
        Content::Text(text) => RawContent::Text(text.into()),
        Content::Data(data) => RawContent::Data(Cow::Borrowed(data)),
        Content::Bytes(encoded) => RawContent::Bytes(encoded.into()),
        Content::Url(url) => RawContent::Url(url.into()),
    };
    let (filename, media_type) = (part.filename.as_ref(), part.media_type.as_ref());
    RawPart { content, filename: filename.map(Into::into), media_type: media_type.map(Into::into) }
}

fn decode_part(raw: RawPart<'_>) -> Part {
    let content = match raw.content {
        RawContent::Text(text) => Content::Text(text.into_owned()),
        RawContent::Data(data) => Content::Data(data.into_owned()),
        RawContent::Bytes(encoded) => Content::Bytes(encoded.into_owned()),
        RawContent::Url(url) => Content::Url(url.into_owned()),
    };
    let (filename, media_type) = (raw.filename, raw.media_type);
    Part {
        content,
        filename: filename.map(Cow::into_owned),
        media_type: media_type.map(Cow::into_owned),
    }
}

#[cfg(test)]
mod tests {
    use crate::model::execution::message_details::PartMetadata;
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn any_content() -> impl Strategy<Value = Content> {
        let data = prop_oneof![
            any::<f64>()
                .prop_filter("JSON has no other numbers", |it| it.is_finite())
                .prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            ".{0,20}".prop_map(|text| json!({"a": [text, null, true]})),
        ];
        prop_oneof![
            ".{0,80}".prop_map(Content::Text),
            data.prop_map(Content::Data),
            "[A-Za-z0-9+/]{0,40}".prop_map(Content::Bytes),
            ".{0,40}".prop_map(Content::Url),
        ]
    }

    fn any_part() -> impl Strategy<Value = Part> {
        let any_name = || proptest::option::of(".{0,20}");
        (any_content(), any_name(), any_name()).prop_map(|(content, filename, media_type)| Part {
            content,
            filename,
            media_type,
        })
    }

    proptest! {
        #[test]
        fn an_input_survives_a_round_trip(
            parts in proptest::collection::vec(any_part(), 0..5),
            params in proptest::collection::btree_map(".{0,9}", ".{0,40}", 0..4),
            working_dir in proptest::option::of(".{0,9}"),
        ) {
            let overrides = Overrides { working_dir, ..Overrides::default() };
            let details = MessageDetails {
                metadata: params.iter().map(|(name, value)| (name.clone(), json!(value))).collect(),
                part_metadata: vec![PartMetadata {
                    part: 3,
                    metadata: serde_json::Map::from_iter([("a".to_owned(), json!([1]))]),
                }],
                reference_tasks: params.keys().cloned().collect(),
                ..MessageDetails::default()
            };
            let input = Input { parts, params, overrides: overrides.clone(), details };
            let decoded = decode_input(&encode_input(&input), overrides);
            prop_assert!(decoded == Some(input));
        }
    }

    #[test]
    fn an_input_of_an_earlier_release_is_read() {
        let bytes = br#"{"parts":[{"text":"a"}],"params":{}}"#;
        assert!(decode_input(bytes, Overrides::default()) == Some(Input::from_text("a")));
    }

    #[test]
    fn invalid_input_bytes_are_rejected() {
        for bytes in [&b""[..], b"{}", b"[1]", b"{\"parts\":[{}],\"params\":{}}"] {
            assert!(decode_input(bytes, Overrides::default()).is_none());
        }
    }
}
