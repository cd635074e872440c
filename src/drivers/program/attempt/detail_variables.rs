//! Metadata and references of a message as texts, for the variables and the templates of a program.

use std::collections::BTreeMap;

use algonius_actors::model::execution::content::{Content, Part};
use algonius_actors::model::execution::message_details::{MessageDetails, RequestDetails};
use algonius_actors::model::execution::request::Input;
use serde_json::{Map, Value, json};

/// Variable with the parameters of the request, on top of the configured ones: a JSON object of texts.
const PARAMS_VARIABLE: &str = "ALGONIUS_PARAMS";

/// Maximum size of the parameters, and of the list of parts with their names, in bytes of JSON.
const MAX_VARIABLE_BYTES: usize = 64 << 10;

/// Names of templates, and the variables with the same texts.
const DETAIL_VARIABLES: [(&str, &str); 7] = [
    ("metadata", "A2A_METADATA"),
    ("request_metadata", "A2A_REQUEST_METADATA"),
    ("extensions", "A2A_EXTENSIONS"),
    ("reference_task_ids", "A2A_REFERENCE_TASK_IDS"),
    ("accepted_output_modes", "A2A_ACCEPTED_OUTPUT_MODES"),
    ("requested_extensions", "A2A_REQUESTED_EXTENSIONS"),
    ("parts", "A2A_PARTS"),
];

/// Returns the texts of an input by the names of templates: JSON each, and absent if the message has none.
pub(super) fn message_detail_values(input: &Input) -> BTreeMap<&'static str, String> {
    let MessageDetails { metadata, part_metadata: _, extensions, reference_tasks, request } =
        &input.details;
    let RequestDetails { metadata: request_metadata, accepted_output_modes, requested_extensions } =
        request;
    let object = |object: &Map<String, Value>| (!object.is_empty()).then(|| json!(object));
    let list = |list: &[String]| (!list.is_empty()).then(|| json!(list));
    let texts = [
        ("metadata", object(metadata)),
        ("request_metadata", object(request_metadata)),
        ("extensions", list(extensions)),
        ("reference_task_ids", list(reference_tasks)),
        ("accepted_output_modes", list(accepted_output_modes)),
        ("requested_extensions", list(requested_extensions)),
        ("parts", describe_parts(input)),
    ];
    texts.into_iter().filter_map(|(name, json)| Some((name, json?.to_string()))).collect()
}

/// Returns the variables of a program that works on one message.
pub(super) fn detail_variables(
    detail_values: &BTreeMap<&'static str, String>,
    params: &BTreeMap<String, String>,
) -> impl Iterator<Item = (&'static str, String)> {
    let details = DETAIL_VARIABLES
        .into_iter()
        .filter_map(|(name, variable)| Some((variable, detail_values.get(name)?.clone())));
    // Templates have each parameter, also a long one of the configuration.
    let params = (!params.is_empty()).then(|| json!(params).to_string());
    let params = params.filter(|text| text.len() <= MAX_VARIABLE_BYTES);
    let params = params.map(|text| (PARAMS_VARIABLE, text));
    details.chain(params).collect::<Vec<_>>().into_iter()
}

/// Returns the names of all variables that describe one message.
pub(super) fn detail_variable_names() -> impl Iterator<Item = &'static str> {
    DETAIL_VARIABLES.into_iter().map(|(_, variable)| variable).chain([PARAMS_VARIABLE])
}

/// Returns what the caller states of each part, or `None` if the text and the list of files have all of it. A list that
/// is too long for a variable has only the metadata.
fn describe_parts(input: &Input) -> Option<Value> {
    let details = &input.details;
    let has_names = |part: &Part| {
        !part.content.is_file() && (part.filename.is_some() || part.media_type.is_some())
    };
    let list = |with_names: bool| {
        let parts = input.parts.iter().enumerate();
        let described = parts
            .map(|(index, part)| describe_part(part, details.metadata_of_part(index), with_names));
        Value::Array(described.collect())
    };
    let is_needed = !details.part_metadata.is_empty() || input.parts.iter().any(has_names);
    let list_with_names = is_needed.then(|| list(true));
    let list_within_limit =
        list_with_names.filter(|list| list.to_string().len() <= MAX_VARIABLE_BYTES);
    list_within_limit.or_else(|| (!details.part_metadata.is_empty()).then(|| list(false)))
}

/// Returns an object with the kind and the metadata of a part, and with its name and media type.
fn describe_part(part: &Part, metadata: Option<&Map<String, Value>>, with_names: bool) -> Value {
    let kind = match &part.content {
        Content::Text(_) => "text",
        Content::Data(_) => "data",
        Content::Bytes(_) | Content::Url(_) => "file",
    };
    let text = |text: &Option<String>| text.as_ref().filter(|_| with_names).map(|text| json!(text));
    let members = [
        ("kind", Some(json!(kind))),
        ("name", text(&part.filename)),
        ("mediaType", text(&part.media_type)),
        ("metadata", metadata.map(|metadata| json!(metadata))),
    ];
    let members = members.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?)));
    Value::Object(members.collect())
}

#[cfg(test)]
mod tests {
    use algonius_actors::model::execution::message_details::PartMetadata;

    use super::*;

    fn input(count: usize, name: &str, has_metadata: bool) -> Input {
        let part = Part { filename: Some(name.to_owned()), ..Part::text("x") };
        let metadata = has_metadata.then(|| PartMetadata {
            part: 0,
            metadata: Map::from_iter([("a".to_owned(), json!(1))]),
        });
        let details = MessageDetails {
            part_metadata: metadata.into_iter().collect(),
            ..MessageDetails::default()
        };
        Input { parts: vec![part; count], details, ..Input::default() }
    }

    #[test]
    fn parameters_that_are_too_long_are_no_variable() {
        let has_params = |length: usize| {
            let params = [("a".to_owned(), "x".repeat(length))].into();
            detail_variables(&BTreeMap::new(), &params).next().is_some()
        };
        assert!(has_params(MAX_VARIABLE_BYTES - 8) && !has_params(MAX_VARIABLE_BYTES));
    }

    #[test]
    fn a_list_of_parts_that_is_too_long_has_only_metadata() {
        let named = json!([{"kind": "text", "name": "n", "metadata": {"a": 1}}]);
        assert_eq!(describe_parts(&input(1, "n", true)), Some(named));
        let long = "n".repeat(100);
        assert_eq!(describe_parts(&input(1000, &long, false)), None);
        let list = describe_parts(&input(1000, &long, true)).unwrap();
        assert_eq!(
            (&list[0], &list[999]),
            (&json!({"kind": "text", "metadata": {"a": 1}}), &json!({"kind": "text"}))
        );
    }
}
