//! Comparison of 1.0 in JSON with 1.0 over gRPC, by an independent implementation of the JSON mapping.
//!
//! That implementation, `pbjson`, deviates in these points, and the tests work around them:
//! - it reads a null as an absent value, also if null is the value: [`remove_nulls`];
//! - it writes every number with a fraction, `1.0` for `1`: [`convert_whole_numbers`];
//! - it writes times with `+00:00`, which this service reads, and which 1.0 forbids.

use algonius_oracle as oracle;
use chrono::{DateTime, SubsecRound, Utc};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use prost::Message;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Number, Value};

use super::{pb, read, write};
use crate::grpc::conversions;
use crate::grpc::tests::{
    any_event, any_message, any_metadata, any_push_config, any_short_text, any_short_texts,
    any_task, any_time,
};
use crate::v1::{
    Binding, Card, CardCapabilities, CardDetails, CardSecurity, Interface, ListPage,
    ProtocolVersion, ProviderOrganization, SendResponse, Skill, StreamEvent,
};
use crate::v1_json as json;
use crate::{CardFormat, card_json};

/// Converts a message into the type of the other implementation.
fn to_oracle<T: Message + Default>(message: &impl Message) -> T {
    T::decode(&*message.encode_to_vec()).expect("the same message")
}

/// Parses JSON of this service with the other implementation.
fn parse_with_oracle<T: DeserializeOwned>(json_value: Value) -> T {
    serde_json::from_value(json_value.clone())
        .unwrap_or_else(|fault| panic!("{fault}: {json_value}"))
}

/// Writes JSON with the other implementation.
fn write_with_oracle(message: &impl Serialize) -> Value {
    serde_json::to_value(message).expect("JSON")
}

/// Returns a message without the nulls that the other implementation cannot read.
fn remove_nulls<T: Serialize + DeserializeOwned>(message: &T) -> T {
    parse_with_oracle(write_with_oracle(message))
}

/// Returns numbers in their usual JSON form: a whole number has no fraction.
fn convert_whole_numbers(value: Value) -> Value {
    match value {
        Value::Number(number) => Value::Number(to_integer(number)),
        Value::Array(list) => list.into_iter().map(convert_whole_numbers).collect(),
        Value::Object(map) => {
            map.into_iter().map(|(name, value)| (name, convert_whole_numbers(value))).collect()
        }
        other @ (Value::Null | Value::Bool(_) | Value::String(_)) => other,
    }
}

fn to_integer(number: Number) -> Number {
    match number.as_f64() {
        #[expect(clippy::cast_possible_truncation, reason = "the strategies keep it small")]
        Some(float) if number.is_f64() && float.fract() == 0.0 => Number::from(float as i64),
        _ => number,
    }
}

/// Truncates times to milliseconds: JSON has milliseconds, gRPC nanoseconds.
fn truncate_to_milliseconds(mut event: StreamEvent) -> StreamEvent {
    let truncate = |time: &mut DateTime<Utc>| *time = time.trunc_subsecs(3);
    match &mut event {
        StreamEvent::Task(task) => truncate(&mut task.status.timestamp),
        StreamEvent::Status(update) => truncate(&mut update.status.timestamp),
        StreamEvent::Message(_) | StreamEvent::Artifact(_) => {}
    }
    event
}

/// Marks the end of the stream: in 1.0 a stream ends with a terminal state.
fn mark_final(mut event: StreamEvent) -> StreamEvent {
    if let StreamEvent::Status(update) = &mut event {
        update.is_final = update.status.state.is_terminal();
    }
    event
}

fn any_page() -> impl Strategy<Value = ListPage> {
    (vec(any_task(ProtocolVersion::V1_0), 0..3), any_short_text(), 1..=100_u32, any::<u64>())
        .prop_map(|(mut tasks, next_page_token, page_size, total_size)| {
            for task in &mut tasks {
                task.status.timestamp = task.status.timestamp.trunc_subsecs(3);
            }
            ListPage { tasks, next_page_token, page_size, total_size }
        })
}

fn any_send_request() -> impl Strategy<Value = pb::SendMessageRequest> {
    let message = any_message(ProtocolVersion::V1_0)
        .prop_map(|message| write::message(message).expect("written"));
    let push = option::of(any_push_config().prop_map(write::push_config));
    let configuration = (any_short_texts(), push, option::of(0..1000), any::<bool>()).prop_map(
        |(
            accepted_output_modes,
            task_push_notification_config,
            history_length,
            return_immediately,
        )| {
            pb::SendMessageConfiguration {
                accepted_output_modes,
                task_push_notification_config,
                history_length,
                return_immediately,
            }
        },
    );
    (any_short_text(), message, option::of(configuration), any_metadata()).prop_map(
        |(tenant, message, configuration, metadata)| pb::SendMessageRequest {
            tenant,
            message: Some(message),
            configuration,
            metadata: conversions::write_metadata(metadata),
        },
    )
}

fn any_list_request() -> impl Strategy<Value = pb::ListTasksRequest> {
    let texts = (option::of(any_short_text()), option::of(any_short_text()));
    let since = option::of(any_time().prop_map(conversions::to_timestamp));
    let counts = (option::of(1..=100), option::of(0..1000));
    (texts, 0..=8, counts, since, option::of(any::<bool>())).prop_map(
        |((context, token), status, (page_size, history_length), since, include_artifacts)| {
            pb::ListTasksRequest {
                tenant: String::new(),
                context_id: context.unwrap_or_default(),
                status,
                page_size,
                page_token: token.unwrap_or_default(),
                history_length,
                status_timestamp_after: since,
                include_artifacts,
            }
        },
    )
}

fn any_skill() -> impl Strategy<Value = Skill> {
    let texts = (any_short_text(), any_short_text(), any_short_text());
    (texts, [any_short_texts(), any_short_texts(), any_short_texts(), any_short_texts()]).prop_map(
        |((id, name, description), lists)| {
            let [tags, examples, input_modes, output_modes] = lists;
            Skill { id, name, description, tags, examples, input_modes, output_modes }
        },
    )
}

fn any_card_details() -> impl Strategy<Value = CardDetails> {
    let provider = (any_short_text(), any_short_text())
        .prop_map(|(organization, url)| ProviderOrganization { organization, url });
    (option::of(provider), option::of(any_short_text()), option::of(any_short_text())).prop_map(
        |(provider, documentation_url, icon_url)| CardDetails {
            provider,
            documentation_url,
            icon_url,
        },
    )
}

/// Returns interfaces of both versions, in any order.
fn any_interface() -> impl Strategy<Value = Interface> {
    let binding = proptest::sample::select(Binding::ALL);
    let version = proptest::sample::select(ProtocolVersion::ALL);
    let url =
        prop_oneof![any_short_text(), any_short_text().prop_map(|host| format!("http://{host}"))];
    (url, binding, version, option::of(any_short_text()))
        .prop_map(|(url, binding, version, tenant)| Interface { url, binding, version, tenant })
}

fn any_card() -> impl Strategy<Value = Card> {
    let (interface, skill) = (any_interface(), any_skill());
    let security = prop_oneof![
        Just(CardSecurity::Bearer),
        any_short_text().prop_map(CardSecurity::ApiKey),
        Just(CardSecurity::NoAuthentication),
    ];
    let texts = (any_short_text(), any_short_text(), any_short_text());
    let lists = (
        vec((any_short_text(), any_short_text(), any::<bool>()), 0..3),
        any_short_texts(),
        any_short_texts(),
    );
    let capabilities = (any::<[bool; 3]>(), any_card_details());
    (texts, vec(interface, 0..7), capabilities, lists, vec(skill, 0..3), security).prop_map(
        |(texts, interfaces, capabilities, lists, skills, security)| {
            let ([streaming, push_notifications, extended], details) = capabilities;
            let (name, description, version) = texts;
            let (extensions, input_modes, output_modes) = lists;
            Card {
                name,
                description,
                version,
                interfaces,
                capabilities: CardCapabilities {
                    streaming,
                    push_notifications,
                    has_extended_card: extended,
                    extensions,
                },
                input_modes,
                output_modes,
                skills,
                details,
                security,
            }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn an_event_is_equal_in_json_and_over_grpc(event in any_event(ProtocolVersion::V1_0)) {
        let event = truncate_to_milliseconds(event);
        let expected = to_oracle(&write::event(event.clone()).expect("written"));
        let parsed: oracle::StreamResponse = parse_with_oracle(json::write::event(event));
        prop_assert_eq!(parsed, remove_nulls(&expected));
    }

    #[test]
    fn an_event_in_foreign_json_equals_the_grpc_event(event in any_event(ProtocolVersion::V1_0)) {
        let oracle_event: oracle::StreamResponse = to_oracle(&write::event(event.clone()).expect("written"));
        prop_assert_eq!(json::read::event(convert_whole_numbers(write_with_oracle(&oracle_event))), Ok(mark_final(event)));
    }

    #[test]
    fn tasks_and_messages_are_equal_as_answers_and_alone(event in any_event(ProtocolVersion::V1_0)) {
        let reply = match truncate_to_milliseconds(event) {
            StreamEvent::Task(task) => {
                let expected = to_oracle(&write::task(task.clone()).expect("written"));
                let parsed: oracle::Task = parse_with_oracle(json::write::task(task.clone()));
                prop_assert_eq!(parsed, remove_nulls(&expected));
                prop_assert_eq!(json::read::task(convert_whole_numbers(write_with_oracle(&expected))), Ok(task.clone()));
                SendResponse::Task(task)
            }
            StreamEvent::Message(message) => SendResponse::Message(message),
            StreamEvent::Status(_) | StreamEvent::Artifact(_) => return Ok(()),
        };
        let expected = to_oracle(&write::send_response(reply.clone()).expect("written"));
        let parsed: oracle::SendMessageResponse = parse_with_oracle(json::write::send_response(reply.clone()));
        prop_assert_eq!(parsed, remove_nulls(&expected));
        prop_assert_eq!(json::read::send_response(convert_whole_numbers(write_with_oracle(&expected))), Ok(reply));
    }

    #[test]
    fn a_push_configuration_is_equal_in_json_and_over_grpc(config in any_push_config()) {
        let expected = to_oracle(&write::push_config(config.clone()));
        let parsed: oracle::TaskPushNotificationConfig = parse_with_oracle(json::write::push_config(config.clone()));
        prop_assert_eq!(&parsed, &expected);
        prop_assert_eq!(json::read::push_set_request(write_with_oracle(&expected)), Ok(config));
    }

    #[test]
    fn a_page_of_tasks_is_equal_in_json_and_over_grpc(page in any_page()) {
        let expected = to_oracle(&write::page(page.clone()).expect("written"));
        let parsed: oracle::ListTasksResponse = parse_with_oracle(json::write::page(page));
        prop_assert_eq!(parsed, remove_nulls(&expected));
    }

    #[test]
    fn a_card_is_equal_in_json_and_over_grpc(agent_card in any_card()) {
        let expected = to_oracle(&write::card(agent_card.clone()));
        let parsed: oracle::AgentCard = parse_with_oracle(card_json(&agent_card, CardFormat::Only1_0));
        prop_assert_eq!(parsed, expected);
    }

    #[test]
    fn a_send_request_is_equal_in_json_and_over_grpc(request in any_send_request()) {
        let oracle_request: oracle::SendMessageRequest = to_oracle(&request);
        prop_assert_eq!(json::read::send_request(convert_whole_numbers(write_with_oracle(&oracle_request))), read::send_request(request));
    }

    #[test]
    fn a_list_request_is_equal_in_json_and_over_grpc(request in any_list_request()) {
        let oracle_request: oracle::ListTasksRequest = to_oracle(&request);
        prop_assert_eq!(json::read::list_request(write_with_oracle(&oracle_request)), read::list_request(request));
    }
}
