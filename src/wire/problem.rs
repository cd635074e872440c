//! The one table of errors on the wire: which number each code has in each protocol.

use algonius_actors::model::code::Code;
use algonius_actors::model::failure::Failure;
use serde_json::{Value, json};

/// The numbers of one code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Numbers {
    /// JSON-RPC: the protocol's own from -32001, ours from -32050.
    pub jsonrpc: i64,
    /// HTTP status, where the error is the whole answer.
    pub http: u16,
}

/// The numbers of a code.
#[must_use]
pub const fn numbers(code: Code) -> Numbers {
    let (jsonrpc, http) = match code {
        Code::MalformedJson => (-32700, 400),
        Code::InvalidRequest => (-32600, 400),
        Code::BodyTooLarge => (-32600, 413),
        Code::BodyTimeout => (-32600, 408),
        Code::MethodNotAllowed => (-32600, 405),
        Code::MethodUnknown | Code::PathUnknown => (-32601, 404),
        Code::InvalidParams | Code::InputRejected => (-32602, 400),
        Code::InputTooLarge => (-32602, 413),
        Code::MessageReused => (-32602, 409),
        Code::Internal => (-32603, 500),
        Code::ExecutionUnknown => (-32001, 404),
        Code::ExecutionEnded => (-32002, 409),
        Code::PushUnsupported => (-32003, 400),
        Code::Unsupported => (-32004, 400),
        Code::ContentType => (-32005, 415),
        Code::VersionUnsupported => (-32009, 400),
        Code::QueueFull => (-32050, 503),
        Code::QueueTimeout => (-32051, 503),
        Code::AgentDisabled => (-32052, 403),
        Code::AgentUnknown => (-32053, 404),
        Code::AgentQuarantined => (-32054, 503),
        Code::Draining => (-32055, 503),
        Code::LedgerUnavailable => (-32056, 503),
        Code::Unauthenticated => (-32058, 401),
        Code::Forbidden => (-32059, 403),
        Code::LockedOut | Code::RateLimited => (-32057, 429),
        Code::HostUnknown => (-32600, 421),
        Code::OriginForeign => (-32600, 403),
        // Ends of executions. They are told as the state of a task, not as an answer's error.
        Code::NotStarted
        | Code::NoResources
        | Code::Exit
        | Code::Killed
        | Code::TransientFailure
        | Code::EmptyAnswer
        | Code::FailPattern
        | Code::AnswerMissing
        | Code::Reported
        | Code::Rejected
        | Code::Timeout
        | Code::StartTimeout
        | Code::Cancelled
        | Code::Interrupted
        | Code::InterruptedNotRun => (-32060, 502),
    };
    Numbers { jsonrpc, http }
}

/// Whether a refusal is about the service's state, so that a JSON-RPC answer has the HTTP status
/// too and a proxy in front can do its part.
#[must_use]
pub const fn is_unavailable(code: Code) -> bool {
    numbers(code).http == 503
}

/// What every protocol tells beside the sentence.
#[must_use]
pub fn details(failure: &Failure) -> Value {
    json!({
        "code": failure.code.as_str(),
        "category": failure.category().as_str(),
        "hint": failure.hint(),
        "page": page(failure.code),
    })
}

/// A whole HTTP answer, in the form of RFC 9457.
#[must_use]
pub fn document(failure: &Failure) -> Value {
    json!({
        "type": format!("urn:algonius:error:{}", failure.code),
        "title": failure.code.as_str(),
        "status": numbers(failure.code).http,
        "detail": failure.message,
        "code": failure.code.as_str(),
        "category": failure.category().as_str(),
        "hint": failure.hint(),
        "page": page(failure.code),
    })
}

fn page(code: Code) -> String {
    format!("docs/errors/{code}.md")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bad_input_never_answers_with_a_server_error() {
        use algonius_actors::model::code::Category;
        for code in Code::ALL.iter().copied() {
            let Numbers { jsonrpc, http } = numbers(code);
            if code.category() == Category::Permanent && jsonrpc != -32060 {
                assert!((400..500).contains(&http), "{code} answers {http}");
            }
        }
    }

    #[test]
    fn numbers_of_our_own_stay_clear_of_the_protocols() {
        for code in Code::ALL.iter().copied() {
            let number = numbers(code).jsonrpc;
            let standard =
                (-32700..=-32600).contains(&number) || (-32009..=-32001).contains(&number);
            assert!(standard || (-32060..=-32050).contains(&number), "{code} is {number}");
        }
    }
}
