//! Callers who send until they are answered, always with the same id of their message.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::watch;

use crate::harness::client::ServiceClient;
use crate::harness::message_params_with_id;

/// How long a caller goes on; services come and go meanwhile.
const CALL_TIMEOUT: Duration = Duration::from_secs(60);

/// What a caller wants, and the id by which it can be told again.
#[derive(Debug, Clone)]
pub(super) struct CallerMessage {
    pub(super) token: String,
    pub(super) agent: &'static str,
    pub(super) id: String,
    /// How many milliseconds the agent shall take.
    pub(super) work_ms: u64,
}

/// Sends a message until an execution is named, and gives its id.
pub(super) async fn send_until_accepted(
    client_receiver: watch::Receiver<ServiceClient>,
    message: CallerMessage,
) -> (CallerMessage, String) {
    let seconds = format!("{}e-3", message.work_ms);
    let mut params = message_params_with_id(&message.id, &seconds);
    params["configuration"] = json!({"blocking": false});
    let result = expect_call_result(&client_receiver, &message, "message/send", &params).await;
    let id = result["id"].as_str().unwrap_or_else(|| panic!("no id: {result}")).to_owned();
    (message, id)
}

/// Calls an execution off, once it is heard; whether it has ended before is no matter.
pub(super) async fn cancel(
    client_receiver: watch::Receiver<ServiceClient>,
    message: CallerMessage,
    id: String,
) {
    let params = json!({"id": id});
    call_until_answered(&client_receiver, &message, "tasks/cancel", &params).await;
}

async fn expect_call_result(
    client_receiver: &watch::Receiver<ServiceClient>,
    message: &CallerMessage,
    method: &str,
    params: &Value,
) -> Value {
    let answer = call_until_answered(client_receiver, message, method, params).await;
    assert_eq!(answer["error"], Value::Null, "{method} of {message:?}");
    answer["result"].clone()
}

/// The first answer that comes whole, from whichever life of the service.
async fn call_until_answered(
    client_receiver: &watch::Receiver<ServiceClient>,
    message: &CallerMessage,
    method: &str,
    params: &Value,
) -> Value {
    let answer_future = tokio::time::timeout(CALL_TIMEOUT, async {
        let mut ticks = tokio::time::interval(Duration::from_millis(20));
        loop {
            ticks.tick().await;
            let client =
                ServiceClient { token: message.token.clone(), ..client_receiver.borrow().clone() };
            if let Some(answer) = client.try_call(message.agent, method, params).await {
                return answer;
            }
        }
    });
    answer_future.await.unwrap_or_else(|_| panic!("{method} of {message:?} was never answered"))
}
