//! The HTTP status of which a program's words speak.

use regex::Regex;

/// How a status is told: after a word that names it, before its phrase, or by the name of an exception.
const FORMS: &str = r#"(?xi-u)
    \b(?:status(?:[\s_-]?code)?|error[\s_-]?code|code|http(?:/\d(?:\.\d)?)?|api\s+error)
        ["'\\]*\s*(?:is|of)?\s*[:=]?\s*["'(\\]*([45]\d\d)\b
  | "message\\*"\s*:\s*\\*"([45]\d\d)\b
  | \brejected\s\(([45]\d\d)\)
  | \b([45]\d\d)\s(?:unauthorized|forbidden|payment\srequired|too\smany\srequests|bad\srequest
        |not\sfound|internal\sserver\serror|bad\sgateway|service\sunavailable|gateway\stime-?out
        |overloaded)\b
  | \b(?:litellm|openai|anthropic)\.(badrequest|authentication|permissiondenied|notfound|ratelimit
        |internalserver|badgateway|serviceunavailable|overloaded)error\b
"#;

/// What the libraries with which programs ask models call an answer of that status.
const NAMES: [(&str, u16); 9] = [
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

/// The status that is told last; `None` where none is.
#[must_use]
pub fn find(text: &str) -> Option<u16> {
    let forms = Regex::new(FORMS).ok()?;
    let last = forms.captures_iter(text).last()?;
    let told = last.iter().skip(1).flatten().next()?.as_str();
    let named = || NAMES.iter().find(|(name, _)| name.eq_ignore_ascii_case(told));
    told.parse().ok().or_else(|| named().map(|(_, status)| *status))
}

#[cfg(test)]
mod tests {
    use super::find;

    #[test]
    fn a_status_is_known_by_what_stands_beside_it() {
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
        ] {
            assert_eq!(find(text), Some(status), "{text}");
        }
    }

    #[test]
    fn a_number_alone_is_no_status() {
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
            assert_eq!(find(text), None, "{text}");
        }
    }
}
