//! What is written is read; what clients send is read; what nobody should send does no harm.

mod clients;
mod core;
mod losses;

use algonius_actors::model::failure::Failure;
use proptest::prelude::*;
use serde_json::Value;

use super::v0_3::{self, rest};
use super::v1::json;
use crate::wire;
use losses::{OF_0_3, OF_1_0, OF_REST};

/// A key of an object in the spelling of `.proto` files.
fn snake(value: Value) -> Value {
    match value {
        Value::Object(map) => map
            .into_iter()
            .map(|(key, value)| {
                // Free data is nobody's to respell.
                let inner = if key == "metadata" || key == "data" { value } else { snake(value) };
                let mut name = String::new();
                for letter in key.chars() {
                    if letter.is_ascii_uppercase() {
                        name.push('_');
                    }
                    name.push(letter.to_ascii_lowercase());
                }
                (name, inner)
            })
            .collect(),
        Value::Array(list) => list.into_iter().map(snake).collect(),
        other => other,
    }
}

/// Adds a field that nobody knows to every object that is not free data.
fn with_strangers(value: Value) -> Value {
    match value {
        Value::Object(map) => {
            let strange = ("xStranger".to_owned(), serde_json::json!({"y": [1]}));
            let known = map.into_iter().map(|(key, value)| {
                let is_free = key == "metadata" || key == "data";
                let inner = if is_free { value } else { with_strangers(value) };
                (key, inner)
            });
            known.chain([strange]).collect()
        }
        Value::Array(list) => list.into_iter().map(with_strangers).collect(),
        other => other,
    }
}

type Readers = Vec<fn(Value) -> Option<Failure>>;

macro_rules! readers {
    ($($path:path),* $(,)?) => { vec![$(|value| $path(value).err()),*] };
}

/// Every function that reads JSON from outside.
fn readers() -> Readers {
    use v0_3::read as old;
    use {json::read as new, rest::read as http};
    readers![
        old::send,
        old::get,
        old::cancel,
        old::subscribe,
        old::push_set,
        old::push_get,
        old::push_list,
        old::push_delete,
        old::reply,
        old::task,
        old::event,
        http::send,
        http::get,
        http::list,
        http::cancel,
        http::subscribe,
        http::push_set,
        http::push_get,
        http::push_list,
        http::push_delete,
        http::reply,
        http::task,
        http::event,
        new::send,
        new::get,
        new::list,
        new::cancel,
        new::subscribe,
        new::push_set,
        new::push_get,
        new::push_list,
        new::push_delete,
        new::reply,
        new::task,
        new::event,
        crate::wire::envelope::Envelope::read,
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn what_is_told_in_1_0_is_heard_exactly(event in core::event()) {
        let wanted = OF_1_0.event(event.clone());
        let told = json::write::event(event);
        prop_assert_eq!(json::read::event(told.clone()), Ok(wanted.clone()));
        prop_assert_eq!(json::read::event(snake(told.clone())), Ok(wanted.clone()));
        prop_assert_eq!(json::read::event(with_strangers(told)), Ok(wanted));
    }

    #[test]
    fn what_is_told_in_0_3_is_heard_but_for_its_losses(event in core::event()) {
        let wanted = OF_0_3.event(event.clone());
        let told = v0_3::write::event(event);
        prop_assert_eq!(v0_3::read::event(told.clone()), Ok(wanted.clone()));
        prop_assert_eq!(v0_3::read::event(with_strangers(told)), Ok(wanted));
    }

    #[test]
    fn what_is_told_in_0_3_over_http_is_heard_but_for_its_losses(event in core::event()) {
        let wanted = OF_REST.event(event.clone());
        let told = rest::write::event(event);
        prop_assert_eq!(rest::read::event(told.clone()), Ok(wanted.clone()));
        prop_assert_eq!(rest::read::event(snake(told)), Ok(wanted));
    }

    #[test]
    fn what_is_told_once_is_told_the_same_again(event in core::event()) {
        let once = v0_3::write::event(event);
        let heard = v0_3::read::event(once.clone()).expect("an event");
        prop_assert_eq!(v0_3::write::event(heard), once);
    }

    #[test]
    fn a_push_configuration_survives_every_dialect(config in core::push()) {
        prop_assert_eq!(json::read::push_set(json::write::push(config.clone())), Ok(config.clone()));
        prop_assert_eq!(v0_3::read::push_set(v0_3::write::push(config.clone())), Ok(config.clone()));
        let task = config.task_id.clone().unwrap_or_default();
        let body = rest::write::push(config.clone());
        let body = crate::wire::placed(body, &[("taskId", &task)]).expect("a body");
        let heard = rest::read::push_set(body).expect("a configuration");
        let id = config.id.clone().unwrap_or(task);
        prop_assert_eq!(&heard.id, &Some(id));
        prop_assert_eq!(super::v1::PushConfig { id: config.id.clone(), ..heard }, config);
    }

    #[test]
    fn no_json_makes_a_reader_panic(value in core::any_json()) {
        for read in readers() {
            _ = read(value.clone());
        }
    }

    /// A sound body with one value replaced by any other: each refusal is the caller's fault.
    #[test]
    fn a_broken_body_is_refused_as_the_callers_fault(
        event in core::event(),
        at in any::<prop::sample::Index>(),
        other in core::any_json(),
    ) {
        use algonius_actors::model::code::Code;
        let told = [
            json::write::event(event.clone()), v0_3::write::event(event.clone()),
            rest::write::event(event),
        ];
        for whole in told {
            let broken = core::replaced(whole, at, &other);
            for body in [broken.clone(), serde_json::json!({"message": broken})] {
                for read in readers() {
                    let code = read(body.clone()).map_or(Code::InvalidParams, |no| no.code);
                    prop_assert!([Code::InvalidParams, Code::InvalidRequest].contains(&code));
                }
            }
        }
    }

    #[test]
    fn no_bytes_make_a_body_panic(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
        _ = rest::read::body(&bytes);
    }
}
