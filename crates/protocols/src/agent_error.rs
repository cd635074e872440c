//! Classification of error texts of agents.

use serde_json::Value;

use crate::model::step::OpenFault;

/// ACP: the agent needs authentication.
const AUTHENTICATION_REQUIRED: i64 = -32000;
/// ACP: the resource, such as a session, does not exist.
const RESOURCE_NOT_FOUND: i64 = -32002;
/// Codes with which agents report an unknown session in words only.
const GENERIC_ERROR_CODES: [i64; 3] = [-32600, -32602, -32603];

/// Texts about missing credentials, in lower case. Measured with agents that received status 401 of their provider.
const AUTHENTICATION_TEXTS: &[&str] = &[
    "401 ",
    "\"code\":401",
    "http 401",
    "unauthorized",
    "unauthenticated",
    "invalid api key",
    "authentication required",
    "not logged in",
    "failed to authenticate",
];

/// Texts about unknown sessions, in lower case.
const UNKNOWN_SESSION_TEXTS: &[&str] = &[
    "not found",
    "no rollout found",
    "invalid session",
    "unknown session",
    "no such session",
    "no conversation found",
    "does not exist",
    "invalid thread id",
];

/// Error of the agent.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct AgentError {
    pub(crate) code: i64,
    pub(crate) message: String,
}

impl AgentError {
    /// Reads the error member of a JSON-RPC response. The details of `data` complete the message.
    pub(crate) fn from_json(error: &Value) -> Self {
        let to_string = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
        let data = error.get("data");
        let details = data.and_then(|data| {
            let field = |name: &str| to_string(data.get(name));
            field("details").or_else(|| field("message")).or_else(|| to_string(Some(data)))
        });
        let message = to_string(error.get("message")).unwrap_or_default();
        let message = match details {
            Some(details) if !message.contains(&details) => format!("{message}: {details}"),
            _ => message,
        };
        let code = error.get("code").and_then(Value::as_i64).unwrap_or_default();
        Self { code, message }
    }

    /// Returns whether the credentials of the agent are missing or invalid.
    pub(crate) fn is_authentication_error(&self) -> bool {
        let has_known_code = [AUTHENTICATION_REQUIRED, 401].contains(&self.code);
        has_known_code || self.contains_any_text(AUTHENTICATION_TEXTS)
    }

    /// Returns the kind of fault of an opening.
    pub(crate) fn to_open_fault(&self, is_resume: bool) -> OpenFault {
        let is_unknown_session = self.code == RESOURCE_NOT_FOUND
            || GENERIC_ERROR_CODES.contains(&self.code)
                && self.contains_any_text(UNKNOWN_SESSION_TEXTS);
        if is_resume && is_unknown_session {
            OpenFault::UnknownSession
        } else if self.is_authentication_error() {
            OpenFault::Authentication
        } else {
            OpenFault::Other
        }
    }

    fn contains_any_text(&self, texts: &[&str]) -> bool {
        let message = self.message.to_lowercase();
        texts.iter().any(|text| message.contains(text))
    }
}
