//! Comparison of 1.0 in JSON with 1.0 over gRPC, by an independent implementation of the JSON mapping.
//!
//! That implementation, `pbjson`, deviates in these points, and the tests work around them:
//! - it reads a null as an absent value, also if null is the value: [`again`];
//! - it writes every number with a fraction, `1.0` for `1`: [`whole`];
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
use crate::grpc::tests::{event, message, metadata, push, task, time, word, words};
use crate::grpc::value;
use crate::v1::{
    Binding, Card, CardCapabilities, CardDetails, CardSecurity, Interface, ListPage,
    ProtocolVersion, Provider, Reply, Skill, StreamEvent,
};
use crate::v1_json as json;
use crate::{CardForm, card};

/// Converts a message into the type of the other implementation.
fn theirs<T: Message + Default>(ours: &impl Message) -> T {
    T::decode(&*ours.encode_to_vec()).expect("the same message")
}

/// Parses JSON of this service with the other implementation.
fn heard<T: DeserializeOwned>(told: Value) -> T {
    serde_json::from_value(told.clone()).unwrap_or_else(|fault| panic!("{fault}: {told}"))
}

/// Writes JSON with the other implementation.
fn told(message: &impl Serialize) -> Value {
    serde_json::to_value(message).expect("JSON")
}

/// Returns a message without the nulls that the other implementation cannot read.
fn again<T: Serialize + DeserializeOwned>(message: &T) -> T {
    heard(told(message))
}

/// Returns numbers in their usual JSON form: a whole number has no fraction.
fn whole(value: Value) -> Value {
    match value {
        Value::Number(number) => Value::Number(whole_number(number)),
        Value::Array(list) => list.into_iter().map(whole).collect(),
        Value::Object(map) => map.into_iter().map(|(name, value)| (name, whole(value))).collect(),
        other @ (Value::Null | Value::Bool(_) | Value::String(_)) => other,
    }
}

fn whole_number(number: Number) -> Number {
    match number.as_f64() {
        #[expect(clippy::cast_possible_truncation, reason = "the strategies keep it small")]
        Some(float) if number.is_f64() && float.fract() == 0.0 => Number::from(float as i64),
        _ => number,
    }
}

/// Truncates times to milliseconds: JSON has milliseconds, gRPC nanoseconds.
fn in_milliseconds(mut event: StreamEvent) -> StreamEvent {
    let cut = |time: &mut DateTime<Utc>| *time = time.trunc_subsecs(3);
    match &mut event {
        StreamEvent::Task(task) => cut(&mut task.status.timestamp),
        StreamEvent::Status(update) => cut(&mut update.status.timestamp),
        StreamEvent::Message(_) | StreamEvent::Artifact(_) => {}
    }
    event
}

/// Marks the end of the stream: in 1.0 a stream ends with a terminal state.
fn ending(mut event: StreamEvent) -> StreamEvent {
    if let StreamEvent::Status(update) = &mut event {
        update.is_final = update.status.state.is_terminal();
    }
    event
}

fn page() -> impl Strategy<Value = ListPage> {
    (vec(task(ProtocolVersion::V1_0), 0..3), word(), 1..=100_u32, any::<u64>()).prop_map(
        |(mut tasks, next_page_token, page_size, total_size)| {
            for task in &mut tasks {
                task.status.timestamp = task.status.timestamp.trunc_subsecs(3);
            }
            ListPage { tasks, next_page_token, page_size, total_size }
        },
    )
}

fn send() -> impl Strategy<Value = pb::SendMessageRequest> {
    let said =
        message(ProtocolVersion::V1_0).prop_map(|said| write::message(said).expect("written"));
    let push = option::of(push().prop_map(write::registration));
    let configuration = (words(), push, option::of(0..1000), any::<bool>()).prop_map(
        |(accepted_output_modes, task_push_notification_config, history_length, at_once)| {
            pb::SendMessageConfiguration {
                accepted_output_modes,
                task_push_notification_config,
                history_length,
                return_immediately: at_once,
            }
        },
    );
    (word(), said, option::of(configuration), metadata()).prop_map(
        |(tenant, said, configuration, data)| pb::SendMessageRequest {
            tenant,
            message: Some(said),
            configuration,
            metadata: value::written(data),
        },
    )
}

fn list() -> impl Strategy<Value = pb::ListTasksRequest> {
    let texts = (option::of(word()), option::of(word()));
    let since = option::of(time().prop_map(value::to_timestamp));
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

fn a_skill() -> impl Strategy<Value = Skill> {
    let texts = (word(), word(), word());
    (texts, [words(), words(), words(), words()]).prop_map(|((id, name, description), lists)| {
        let [tags, examples, input_modes, output_modes] = lists;
        Skill { id, name, description, tags, examples, input_modes, output_modes }
    })
}

fn details() -> impl Strategy<Value = CardDetails> {
    let provider = (word(), word()).prop_map(|(organization, url)| Provider { organization, url });
    (option::of(provider), option::of(word()), option::of(word())).prop_map(
        |(provider, documentation_url, icon_url)| CardDetails {
            provider,
            documentation_url,
            icon_url,
        },
    )
}

/// Returns interfaces of both versions, in any order.
fn a_way() -> impl Strategy<Value = Interface> {
    let binding = proptest::sample::select(Binding::ALL);
    let version = proptest::sample::select(ProtocolVersion::ALL);
    let url = prop_oneof![word(), word().prop_map(|host| format!("http://{host}"))];
    (url, binding, version, option::of(word()))
        .prop_map(|(url, binding, version, tenant)| Interface { url, binding, version, tenant })
}

fn a_card() -> impl Strategy<Value = Card> {
    let (way, skill) = (a_way(), a_skill());
    let security = prop_oneof![
        Just(CardSecurity::Bearer),
        word().prop_map(CardSecurity::ApiKey),
        Just(CardSecurity::Nothing),
    ];
    let texts = (word(), word(), word());
    let lists = (vec((word(), word(), any::<bool>()), 0..3), words(), words());
    let shown = (any::<[bool; 3]>(), details());
    (texts, vec(way, 0..7), shown, lists, vec(skill, 0..3), security).prop_map(
        |(texts, interfaces, shown, lists, skills, security)| {
            let ([streaming, push, extended], details) = shown;
            let (name, description, version) = texts;
            let (extensions, input_modes, output_modes) = lists;
            Card {
                name,
                description,
                version,
                interfaces,
                capabilities: CardCapabilities { streaming, push, extended, extensions },
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
    fn an_event_is_equal_in_json_and_over_grpc(event in event(ProtocolVersion::V1_0)) {
        let event = in_milliseconds(event);
        let ours = theirs(&write::event(event.clone()).expect("written"));
        let heard: oracle::StreamResponse = heard(json::write::event(event));
        prop_assert_eq!(heard, again(&ours));
    }

    #[test]
    fn an_event_in_foreign_json_equals_the_grpc_event(event in event(ProtocolVersion::V1_0)) {
        let theirs: oracle::StreamResponse = theirs(&write::event(event.clone()).expect("written"));
        prop_assert_eq!(json::read::event(whole(told(&theirs))), Ok(ending(event)));
    }

    #[test]
    fn tasks_and_messages_are_equal_as_answers_and_alone(event in event(ProtocolVersion::V1_0)) {
        let reply = match in_milliseconds(event) {
            StreamEvent::Task(task) => {
                let ours = theirs(&write::task(task.clone()).expect("written"));
                let heard: oracle::Task = heard(json::write::task(task.clone()));
                prop_assert_eq!(heard, again(&ours));
                prop_assert_eq!(json::read::task(whole(told(&ours))), Ok(task.clone()));
                Reply::Task(task)
            }
            StreamEvent::Message(said) => Reply::Message(said),
            StreamEvent::Status(_) | StreamEvent::Artifact(_) => return Ok(()),
        };
        let ours = theirs(&write::reply(reply.clone()).expect("written"));
        let heard: oracle::SendMessageResponse = heard(json::write::reply(reply.clone()));
        prop_assert_eq!(heard, again(&ours));
        prop_assert_eq!(json::read::reply(whole(told(&ours))), Ok(reply));
    }

    #[test]
    fn a_push_configuration_is_equal_in_json_and_over_grpc(config in push()) {
        let ours = theirs(&write::registration(config.clone()));
        let heard: oracle::TaskPushNotificationConfig = heard(json::write::push(config.clone()));
        prop_assert_eq!(&heard, &ours);
        prop_assert_eq!(json::read::push_set(told(&ours)), Ok(config));
    }

    #[test]
    fn a_page_of_tasks_is_equal_in_json_and_over_grpc(page in page()) {
        let ours = theirs(&write::page(page.clone()).expect("written"));
        let heard: oracle::ListTasksResponse = heard(json::write::page(page));
        prop_assert_eq!(heard, again(&ours));
    }

    #[test]
    fn a_card_is_equal_in_json_and_over_grpc(shown in a_card()) {
        let ours = theirs(&write::card(shown.clone()));
        let heard: oracle::AgentCard = heard(card(&shown, CardForm::Pure1_0));
        prop_assert_eq!(heard, ours);
    }

    #[test]
    fn a_send_request_is_equal_in_json_and_over_grpc(asked in send()) {
        let theirs: oracle::SendMessageRequest = theirs(&asked);
        prop_assert_eq!(json::read::send(whole(told(&theirs))), read::send_request(asked));
    }

    #[test]
    fn a_list_request_is_equal_in_json_and_over_grpc(asked in list()) {
        let theirs: oracle::ListTasksRequest = theirs(&asked);
        prop_assert_eq!(json::read::list(told(&theirs)), read::list_request(asked));
    }
}
