//! Property tests: every written shape can be read again, and malformed input causes no panic.

mod client_requests;
mod losses;
mod strategies;

use algonius_actors::model::failure::Failure;
use proptest::prelude::*;
use serde_json::Value;

use super::v0_3::{self, rest};
use super::{v1, v1_json as json};

use losses::{LOSSES_0_3, LOSSES_0_3_REST, LOSSES_1_0};

/// Returns the value with its object keys in the spelling of `.proto` files.
fn convert_keys_to_snake_case(value: Value) -> Value {
    match value {
        Value::Object(map) => map
            .into_iter()
            .map(|(key, value)| {
                // The keys of free data belong to the caller and keep their spelling.
                let converted = if key == "metadata" || key == "data" {
                    value
                } else {
                    convert_keys_to_snake_case(value)
                };
                let mut name = String::new();
                for letter in key.chars() {
                    if letter.is_ascii_uppercase() {
                        name.push('_');
                    }
                    name.push(letter.to_ascii_lowercase());
                }
                (name, converted)
            })
            .collect(),
        Value::Array(list) => list.into_iter().map(convert_keys_to_snake_case).collect(),
        other => other,
    }
}

/// Adds an unknown field to every object that is not free data.
fn add_unknown_fields(value: Value) -> Value {
    match value {
        Value::Object(map) => {
            let unknown_field = ("xStranger".to_owned(), serde_json::json!({"y": [1]}));
            let known_fields = map.into_iter().map(|(key, value)| {
                let is_free = key == "metadata" || key == "data";
                let converted = if is_free { value } else { add_unknown_fields(value) };
                (key, converted)
            });
            known_fields.chain([unknown_field]).collect()
        }
        Value::Array(list) => list.into_iter().map(add_unknown_fields).collect(),
        other => other,
    }
}

type ReadChecks = Vec<fn(Value) -> Option<Failure>>;

macro_rules! read_checks {
    ($($path:path),* $(,)?) => { vec![$(|value| $path(value).err()),*] };
}

/// All functions that read JSON from outside the service; each returns its failure.
fn read_checks() -> ReadChecks {
    use v0_3::read as jsonrpc_0_3;
    use {json::read as json_1_0, rest::read as http_0_3};
    read_checks![
        jsonrpc_0_3::send_request,
        jsonrpc_0_3::task_query,
        jsonrpc_0_3::cancel_request,
        jsonrpc_0_3::subscribe_request,
        jsonrpc_0_3::push_set_request,
        jsonrpc_0_3::push_query,
        jsonrpc_0_3::push_list_request,
        jsonrpc_0_3::push_delete_request,
        jsonrpc_0_3::send_response,
        jsonrpc_0_3::task,
        jsonrpc_0_3::event,
        http_0_3::send_request,
        http_0_3::task_query,
        http_0_3::list_request,
        http_0_3::cancel_request,
        http_0_3::subscribe_request,
        http_0_3::push_set_request,
        http_0_3::push_query,
        http_0_3::push_list_request,
        http_0_3::push_delete_request,
        http_0_3::send_response,
        http_0_3::task,
        http_0_3::event,
        json_1_0::send_request,
        json_1_0::task_query,
        json_1_0::list_request,
        json_1_0::cancel_request,
        json_1_0::subscribe_request,
        json_1_0::push_set_request,
        json_1_0::push_query,
        json_1_0::push_list_request,
        json_1_0::push_delete_request,
        json_1_0::send_response,
        json_1_0::task,
        json_1_0::event,
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn events_of_1_0_survive_a_round_trip(event in strategies::any_event()) {
        let expected = LOSSES_1_0.apply_to_event(event.clone());
        let written = json::write::event(event);
        prop_assert_eq!(json::read::event(written.clone()), Ok(expected.clone()));
        prop_assert_eq!(json::read::event(convert_keys_to_snake_case(written.clone())), Ok(expected.clone()));
        prop_assert_eq!(json::read::event(add_unknown_fields(written)), Ok(expected));
    }

    #[test]
    fn events_of_0_3_survive_a_round_trip_except_for_known_losses(event in strategies::any_event()) {
        let expected = LOSSES_0_3.apply_to_event(event.clone());
        let written = v0_3::write::event(event);
        prop_assert_eq!(v0_3::read::event(written.clone()), Ok(expected.clone()));
        prop_assert_eq!(v0_3::read::event(add_unknown_fields(written)), Ok(expected));
    }

    #[test]
    fn events_of_0_3_over_http_survive_except_for_known_losses(event in strategies::any_event()) {
        let expected = LOSSES_0_3_REST.apply_to_event(event.clone());
        let written = rest::write::event(event);
        prop_assert_eq!(rest::read::event(written.clone()), Ok(expected.clone()));
        prop_assert_eq!(rest::read::event(convert_keys_to_snake_case(written)), Ok(expected));
    }

    #[test]
    fn writing_a_read_event_of_0_3_again_changes_nothing(event in strategies::any_event()) {
        let written = v0_3::write::event(event);
        let parsed = v0_3::read::event(written.clone()).expect("an event");
        prop_assert_eq!(v0_3::write::event(parsed), written);
    }

    #[test]
    fn a_push_configuration_survives_every_dialect(config in strategies::any_push_config()) {
        prop_assert_eq!(json::read::push_set_request(json::write::push_config(config.clone())), Ok(config.clone()));
        prop_assert_eq!(v0_3::read::push_set_request(v0_3::write::push_config(config.clone())), Ok(config.clone()));
        let task_id = config.task_id.clone().unwrap_or_default();
        let body = rest::write::push_config(config.clone());
        let body = crate::add_path_params(body, &[("taskId", &task_id)]).expect("a body");
        let parsed = rest::read::push_set_request(body).expect("a configuration");
        let id = config.id.clone().unwrap_or(task_id);
        prop_assert_eq!(&parsed.id, &Some(id));
        prop_assert_eq!(v1::PushConfig { id: config.id.clone(), ..parsed }, config);
    }

    #[test]
    fn no_json_makes_a_reader_panic(value in strategies::any_json()) {
        for read_check in read_checks() {
            _ = read_check(value.clone());
        }
    }

    /// Replaces one value of a valid body by any other value: each rejection is the caller's fault.
    #[test]
    fn a_broken_body_is_a_client_error(
        event in strategies::any_event(),
        position in any::<prop::sample::Index>(),
        replacement in strategies::any_json(),
    ) {
        use algonius_actors::model::code::Code;
        let bodies = [
            json::write::event(event.clone()), v0_3::write::event(event.clone()),
            rest::write::event(event),
        ];
        for valid_body in bodies {
            let broken = strategies::replace_value(valid_body, position, &replacement);
            for body in [broken.clone(), serde_json::json!({"message": broken})] {
                for read_check in read_checks() {
                    let code = read_check(body.clone()).map_or(Code::InvalidParams, |failure| failure.code);
                    prop_assert!([Code::InvalidParams, Code::InvalidRequest].contains(&code));
                }
            }
        }
    }

    #[test]
    fn no_bytes_make_a_body_panic(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
        _ = rest::read::parse_body(&bytes);
    }
}
