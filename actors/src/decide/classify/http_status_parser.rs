//! Parser of HTTP status codes in the text of error messages.

use regex::Regex;

/// Pattern of a status code: after a word that names it, before its reason phrase, or as the name of an exception.
const STATUS_PATTERN: &str = r#"(?xi-u)
    \b(?:status(?:[\s_-]?code)?|error[\s_-]?code|code|http(?:/\d(?:\.\d)?)?|api\s+error)
        ["'\\]*\s*(?:is|of)?\s*[:=]?\s*["'(\\]*([45]\d\d)\b
  | "message\\*"\s*:\s*\\*"([45]\d\d)\b
  | \brejected\s\(([45]\d\d)\)
  | \b([45]\d\d)\s(?:unauthorized|forbidden|payment\srequired|too\smany\srequests|bad\srequest
        |not\sfound|internal\sserver\serror|bad\sgateway|service\sunavailable|gateway\stime-?out
        |overloaded)\b
  | \blitellm\.(?:api|internalserver)error:(?u:[^\n]*)\b(overloaded)\b
  | \b(?:litellm|openai|anthropic)\.(badrequest|authentication|permissiondenied|notfound|ratelimit
        |internalserver|badgateway|serviceunavailable|overloaded)error\b
"#;

/// Exception names of model client libraries, with the status code that each name stands for.
const EXCEPTION_STATUSES: [(&str, u16); 9] = [
    ("badrequest", 400),
    ("authentication", 401),
    ("permissiondenied", 403),
    ("notfound", 404),
    ("ratelimit", 429),
    ("internalserver", 500),
    ("badgateway", 502),
    ("serviceunavailable", 503),
    ("overloaded", 529),
];

/// Returns the last status code in the text; `None` if there is none.
#[must_use]
pub fn find_last_status(text: &str) -> Option<u16> {
    let pattern = Regex::new(STATUS_PATTERN).ok()?;
    let last_match = pattern.captures_iter(text).last()?;
    let captured_text = last_match.iter().skip(1).flatten().next()?.as_str();
    let exception_status =
        || EXCEPTION_STATUSES.iter().find(|(name, _)| name.eq_ignore_ascii_case(captured_text));
    captured_text.parse().ok().or_else(|| exception_status().map(|(_, status)| *status))
}

/// Phrases that providers use for an exhausted quota, and never for a limit per minute.
const QUOTA_PHRASES: [&str; 12] = [
    "insufficient_quota",
    "usage limit",
    "session limit",
    "weekly limit",
    "daily limit",
    "-hour limit",
    "limit reached",
    "quota exceeded",
    "exceeded your current quota",
    "exceeded your monthly",
    "credit balance is too low",
    "out of credits",
];

/// Returns true if a text reports an exhausted quota.
#[must_use]
pub fn reports_quota(text: &str) -> bool {
    let lowercase = text.to_ascii_lowercase();
    QUOTA_PHRASES.iter().any(|phrase| lowercase.contains(phrase))
}

/// Returns true if a text reports too many requests, without a status code.
#[must_use]
pub fn reports_rate_limit(text: &str) -> bool {
    let lowercase = text.to_ascii_lowercase();
    ["rate limit", "rate_limit", "too many requests", "resource_exhausted", "resource exhausted"]
        .iter()
        .any(|phrase| lowercase.contains(phrase))
}

/// Returns the status code that the words of a text stand for, if the text contains no code.
#[must_use]
pub fn status_from_words(text: &str) -> Option<u16> {
    let is_overload = || text.to_ascii_lowercase().contains("overloaded");
    if reports_rate_limit(text) { Some(429) } else { is_overload().then_some(529) }
}

#[cfg(test)]
mod tests {
    use super::{find_last_status, reports_quota, status_from_words};

    #[test]
    fn messages_distinguish_a_quota_from_a_rate_limit() {
        for text in
            ["You exceeded your current quota", "insufficient_quota", "5-hour limit reached"]
        {
            assert!(reports_quota(text), "{text}");
        }
        for text in ["rate limit exceeded", "429 Too Many Requests", "rate_limit_error"] {
            assert!(!reports_quota(text), "{text}");
        }
        let words = ["mock: rate limit exceeded", "AI_APICallError: mock: Overloaded", "api_error"];
        assert_eq!(words.map(status_from_words), [Some(429), Some(529), None]);
    }

    #[test]
    fn an_http_status_is_recognized_by_its_context() {
        for (text, status) in [
            ("exceeded retry limit, last status: 429 Too Many Requests", 429),
            ("unexpected status 401 Unauthorized: no key, url: http://localhost:4010/v1", 401),
            ("Reconnecting... 1/1 (unexpected status 503 Service Unavailable)", 503),
            ("API Error: Request rejected (429) · rate limit exceeded", 429),
            ("API Error: Repeated 529 Overloaded errors.", 529),
            ("API Error: 500 api_error. This is a server-side issue", 500),
            (r#"[API Error: {"error":{"code":401,"message":"no"}}]"#, 401),
            (r#"{"status":"error","message":"403 no such luck"}"#, 403),
            ("Error code: 404 - {'error': 'x'}", 404),
            ("HTTP/1.1 502 Bad Gateway", 502),
            ("statusCode=503", 503),
            ("status 500, then status 429", 429),
            ("litellm.AuthenticationError: AuthenticationError: OpenAIException - no", 401),
            ("litellm.InternalServerError: x\nRetrying\nlitellm.RateLimitError: y", 429),
            ("openai.PermissionDeniedError: no", 403),
            ("litellm.APIError: APIError: OpenAIException - Overloaded", 529),
            ("litellm.InternalServerError: AnthropicException - Overloaded\nRetrying", 529),
        ] {
            assert_eq!(find_last_status(text), Some(status), "{text}");
        }
    }

    #[test]
    fn a_bare_number_is_not_a_status() {
        for text in [
            "",
            "429",
            "took 503 ms",
            "exited with code 3",
            "line 404 of 500",
            "code 4290",
            "port 500",
            "raise AuthenticationError",
            "litellm.APIConnectionError: no",
        ] {
            assert_eq!(find_last_status(text), None, "{text}");
        }
    }
}
