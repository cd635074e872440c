//! What each dialect reads of the parameters of each method, and how sound it is then.

use algonius_actors::model::failure::Failure;
use serde_json::Value;

use algonius_a2a::base64;
use algonius_a2a::v0_3::{self, rest};
use algonius_a2a::v1::{
    HistoryLength, ListRequest, PartContent, PushConfig, PushConfigQuery, SendRequest, TaskQuery,
};
use algonius_a2a::v1_json as json;
use algonius_a2a::{A2aMethod, PARAMETERS_EXTENSION};

/// What was asked for.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum ParsedRequest {
    Send(Box<SendRequest>),
    Get(TaskQuery),
    List(ListRequest),
    CancelOrSubscribe(String),
    PushSet(PushConfig),
    PushQuery(PushConfigQuery),
    PushList(String),
    Card,
}

type ReadFn<T> = fn(Value) -> Result<T, Failure>;

/// The readers of a dialect.
pub(super) struct DialectReaders {
    send: ReadFn<SendRequest>,
    get: ReadFn<TaskQuery>,
    list: ReadFn<ListRequest>,
    cancel: ReadFn<String>,
    subscribe: ReadFn<String>,
    push_set: ReadFn<PushConfig>,
    push_get: ReadFn<PushConfigQuery>,
    push_list: ReadFn<String>,
    push_delete: ReadFn<PushConfigQuery>,
}

/// 0.3 on JSON-RPC. It has no list of its own, and takes that of 1.0.
pub(super) const RPC_0_3: DialectReaders = DialectReaders {
    send: v0_3::read::send_request,
    get: v0_3::read::task_query,
    list: json::read::list_request,
    cancel: v0_3::read::cancel_request,
    subscribe: v0_3::read::subscribe_request,
    push_set: v0_3::read::push_set_request,
    push_get: v0_3::read::push_query,
    push_list: v0_3::read::push_list_request,
    push_delete: v0_3::read::push_delete_request,
};

/// 0.3 over HTTP.
pub(super) const REST_0_3: DialectReaders = DialectReaders {
    send: rest::read::send_request,
    get: rest::read::task_query,
    list: rest::read::list_request,
    cancel: rest::read::cancel_request,
    subscribe: rest::read::subscribe_request,
    push_set: rest::read::push_set_request,
    push_get: rest::read::push_query,
    push_list: rest::read::push_list_request,
    push_delete: rest::read::push_delete_request,
};

/// 1.0.
pub(super) const V1_0: DialectReaders = DialectReaders {
    send: json::read::send_request,
    get: json::read::task_query,
    list: json::read::list_request,
    cancel: json::read::cancel_request,
    subscribe: json::read::subscribe_request,
    push_set: json::read::push_set_request,
    push_get: json::read::push_query,
    push_list: json::read::push_list_request,
    push_delete: json::read::push_delete_request,
};

impl DialectReaders {
    /// Reads the parameters of a method. What nobody knows must not change what is heard, and what
    /// is heard must be sound.
    pub(super) fn parse_and_assert_valid(
        &self,
        method: A2aMethod,
        params: &Value,
    ) -> Result<ParsedRequest, Failure> {
        let request = self.parse(method, params.clone());
        if let Value::Object(fields) = params {
            let mut fields = fields.clone();
            fields.insert("xStranger".to_owned(), Value::from(1));
            assert_eq!(self.parse(method, fields.into()), request, "a stranger changes it");
        }
        if let Ok(request) = &request {
            assert_valid_request(request);
        }
        request
    }

    fn parse(&self, method: A2aMethod, params: Value) -> Result<ParsedRequest, Failure> {
        match method {
            A2aMethod::Send | A2aMethod::Stream => {
                (self.send)(params).map(|send| ParsedRequest::Send(Box::new(send)))
            }
            A2aMethod::Get | A2aMethod::Status => (self.get)(params).map(ParsedRequest::Get),
            A2aMethod::List => (self.list)(params).map(ParsedRequest::List),
            A2aMethod::Cancel => (self.cancel)(params).map(ParsedRequest::CancelOrSubscribe),
            A2aMethod::Subscribe => (self.subscribe)(params).map(ParsedRequest::CancelOrSubscribe),
            A2aMethod::PushSet => (self.push_set)(params).map(ParsedRequest::PushSet),
            A2aMethod::PushGet => (self.push_get)(params).map(ParsedRequest::PushQuery),
            A2aMethod::PushList => (self.push_list)(params).map(ParsedRequest::PushList),
            A2aMethod::PushDelete => (self.push_delete)(params).map(ParsedRequest::PushQuery),
            A2aMethod::ExtendedCard | A2aMethod::Card => Ok(ParsedRequest::Card),
        }
    }
}

/// What the inside relies on in what was read.
fn assert_valid_request(request: &ParsedRequest) {
    match request {
        ParsedRequest::Send(send) => assert_valid_send(send),
        ParsedRequest::List(ListRequest { page_size, .. }) => {
            assert!(page_size.is_none_or(|size| (1..=100).contains(&size)), "{request:?}");
        }
        ParsedRequest::PushSet(config) => {
            assert!(config.task_id.is_some(), "{request:?}");
            assert_valid_push(config);
        }
        ParsedRequest::Get(TaskQuery { history_length, .. }) => {
            assert_valid_history(*history_length);
        }
        ParsedRequest::CancelOrSubscribe(_)
        | ParsedRequest::PushQuery(_)
        | ParsedRequest::PushList(_)
        | ParsedRequest::Card => {}
    }
}

pub(super) fn assert_valid_send(send: &SendRequest) {
    assert!(!send.message.message_id.is_empty(), "{send:?}");
    assert!(!send.message.parts.is_empty(), "{send:?}");
    let is_absent_or_filled = |id: &Option<String>| id.as_ref().is_none_or(|id| !id.is_empty());
    assert!(
        is_absent_or_filled(&send.message.context_id) && is_absent_or_filled(&send.message.task_id),
        "{send:?}"
    );
    for part in &send.message.parts {
        if let PartContent::Raw(text) = &part.content {
            let bytes = base64::decode(text).map(|bytes| base64::encode(&bytes));
            assert_eq!(bytes.as_ref(), Some(text), "not in the standard spelling");
        }
    }
    assert!(
        send.message
            .metadata
            .get(PARAMETERS_EXTENSION)
            .is_none_or(|parameters| *parameters != Value::Null)
    );
    assert_valid_history(send.history_length);
    send.push_config.iter().for_each(assert_valid_push);
}

fn assert_valid_history(history: HistoryLength) {
    if let HistoryLength::Last(count) = history {
        assert!(i32::try_from(count).is_ok(), "{count} is more than the protocol can ask for");
    }
}

fn assert_valid_push(config: &PushConfig) {
    assert!(!config.url.is_empty(), "{config:?}");
    let schemes = config.authentication.iter().map(|authentication| authentication.scheme.as_str());
    assert!(schemes.into_iter().all(|scheme| !scheme.is_empty()), "{config:?}");
}
