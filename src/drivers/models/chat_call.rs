//! One call of a provider: sends the request, and reads the reply or the reason why there is none.

use std::time::Duration;

use algonius_actors::model::agent::model_provider::ModelProvider;
use algonius_actors::model::code::Code;
use algonius_actors::model::completion::{CompletionRequest, ModelReply};
use algonius_actors::ports::clock::Clock;
use bytes::{Buf as _, Bytes};
use chrono::{DateTime, Utc};
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use hyper::body::{Body as _, Incoming};
use hyper::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderValue, RETRY_AFTER, USER_AGENT};
use hyper::{Request, Response, StatusCode, Uri};
use serde_json::Value;
use tokio::time::timeout;
use tokio_rustls::rustls;

use super::chat_reply::{ChatCompletion, CompletionFault};
use super::chat_request;
use crate::drivers::adapters::failure::parse_retry_after;
use crate::platform::http_client::{
    OutgoingClient, USER_AGENT_VALUE, bearer_header_value, describe_connection_error, find_cause,
    parse_uri,
};

/// Greatest length of a reply in bytes.
const MAX_REPLY_BYTES: usize = 8 << 20;

/// Clause about a longer reply.
const REPLY_TOO_LONG_CLAUSE: &str = "is longer than 8 MiB";

/// Reason why a call has no reply. Clauses about the provider follow its name.
#[derive(Debug, PartialEq)]
pub(super) enum CallFault {
    /// The provider answered, but not with a completion. The clause follows "it", which is the answer.
    UnusableReply(&'static str),
    /// A repetition would fail too.
    Refused { code: Code, clause: String },
    /// A repetition may succeed.
    Transient { clause: String },
    /// The provider received too many calls.
    RateLimited { until: Option<DateTime<Utc>> },
}

/// Call that can be sent several times.
pub(super) struct ChatCall {
    address: Uri,
    authorization: Option<HeaderValue>,
    body: Bytes,
    timeout: Duration,
}

impl ChatCall {
    /// Prepares a call; returns `None` if the address or the key of the provider is not valid in HTTP.
    pub(super) fn new(provider: &ModelProvider, request: &CompletionRequest) -> Option<Self> {
        let authorization = match &provider.api_key {
            Some(key) => Some(bearer_header_value(&key.0)?),
            None => None,
        };
        Some(Self {
            address: parse_uri(&format!("{}/chat/completions", provider.base_url))?,
            authorization,
            body: Bytes::from(chat_request::request_body(request).to_string()),
            timeout: provider.timeout,
        })
    }

    /// Sends the call once.
    ///
    /// # Errors
    /// The reason why there is no reply.
    pub(super) async fn send(
        &self,
        http: &OutgoingClient,
        clock: &dyn Clock,
    ) -> Result<ModelReply, CallFault> {
        let request = self.build_request().ok_or_else(|| {
            let clause = "has an address that cannot be called".to_owned();
            CallFault::Refused { code: Code::ModelUnavailable, clause }
        })?;
        let reply_future = async {
            let response = http.request(request).await.map_err(|error| connection_fault(&error))?;
            match status_fault(&response, clock) {
                Some(fault) => Err(fault),
                None => read_reply(response.into_body()).await,
            }
        };
        timeout(self.timeout, reply_future).await.unwrap_or_else(|_elapsed| {
            let seconds = self.timeout.as_secs_f64();
            Err(CallFault::Transient { clause: format!("gave no whole reply within {seconds} s") })
        })
    }

    /// Returns the request; `None` if its address is not one of a request.
    pub(super) fn build_request(&self) -> Option<Request<Full<Bytes>>> {
        let mut request = Request::post(self.address.clone())
            .header(USER_AGENT, USER_AGENT_VALUE)
            .header(ACCEPT, "application/json")
            .header(CONTENT_TYPE, "application/json");
        if let Some(authorization) = &self.authorization {
            request = request.header(AUTHORIZATION, authorization.clone());
        }
        request.body(Full::from(self.body.clone())).ok()
    }
}

/// Reads a reply of limited length. Its parts are parsed where they are, so that no copy of the whole exists.
async fn read_reply(body: Incoming) -> Result<ModelReply, CallFault> {
    if body.size_hint().lower() > MAX_REPLY_BYTES as u64 {
        return Err(CallFault::UnusableReply(REPLY_TOO_LONG_CLAUSE));
    }
    let collected_body = Limited::new(body, MAX_REPLY_BYTES).collect().await.map_err(|error| {
        if error.is::<LengthLimitError>() {
            CallFault::UnusableReply(REPLY_TOO_LONG_CLAUSE)
        } else {
            CallFault::Transient { clause: "ended its reply early".to_owned() }
        }
    })?;
    let completion: Result<ChatCompletion, _> =
        serde_json::from_reader(collected_body.aggregate().reader());
    let completion = completion.map_err(|error| {
        let is_json = error.is_data();
        CallFault::UnusableReply(if is_json { "is not a chat completion" } else { "is not JSON" })
    })?;
    completion.into_reply().map_err(|fault| match fault {
        CompletionFault::Unusable(clause) => CallFault::UnusableReply(clause),
        CompletionFault::ReportedError(code) => reported_fault(code),
    })
}

/// Returns the fault for an error that the provider reports in a successful response. Many gateways give it the number
/// of a status.
fn reported_fault(code: Option<i64>) -> CallFault {
    let code_text = code.map(|code| format!(" {code}")).unwrap_or_default();
    let clause = format!("reported the error{code_text} in its reply");
    match code {
        Some(401) => CallFault::Refused { code: Code::NotAuthenticated, clause },
        Some(429) => CallFault::RateLimited { until: None },
        Some(400..=499) if code != Some(408) => {
            CallFault::Refused { code: Code::ModelRefused, clause }
        }
        _ => CallFault::Transient { clause },
    }
}

fn connection_fault(error: &hyper_util::client::legacy::Error) -> CallFault {
    if let Some(rustls::Error::InvalidCertificate(_)) = find_cause(error) {
        // Unlike other faults of a connection, a wrong certificate does not pass by itself.
        let clause = "has a certificate that is not accepted".to_owned();
        return CallFault::Refused { code: Code::ModelUnavailable, clause };
    }
    let clause = match error.is_connect() {
        true => describe_connection_error(error),
        false => "ended the connection before its reply",
    };
    CallFault::Transient { clause: clause.to_owned() }
}

/// Returns the fault of a response without success. The text of the provider may contain input, so it is not read.
fn status_fault(response: &Response<Incoming>, clock: &dyn Clock) -> Option<CallFault> {
    let status = response.status();
    let number = status.as_u16();
    let fault = match status {
        _ if status.is_success() => return None,
        StatusCode::TOO_MANY_REQUESTS => {
            let header = response.headers().get(RETRY_AFTER);
            let header = header.and_then(|value| value.to_str().ok()).map(Value::from);
            let until = header.and_then(|value| parse_retry_after(&value, clock.now()));
            // A time that has passed states no pause; without one, each repetition waits longer.
            let until = until.filter(|until| *until > clock.now());
            CallFault::RateLimited { until }
        }
        StatusCode::UNAUTHORIZED => CallFault::Refused {
            code: Code::NotAuthenticated,
            clause: format!("did not accept the key, with status {number}"),
        },
        _ if status.is_server_error() || status == StatusCode::REQUEST_TIMEOUT => {
            CallFault::Transient { clause: format!("answered with status {number}") }
        }
        // Some providers answer 403 about the content of one request, which does not concern the key.
        // A redirect is a refusal too, so that the key reaches the configured address alone.
        _ => CallFault::Refused {
            code: Code::ModelRefused,
            clause: format!("refused the request with status {number}"),
        },
    };
    Some(fault)
}
