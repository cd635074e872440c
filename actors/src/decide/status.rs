//! The HTTP status of which a program's words speak.

use regex::Regex;

/// How a status is told: after a word that names it, or before its phrase.
const FORMS: &str = r#"(?xi-u)
    \b(?:status(?:[\s_-]?code)?|error[\s_-]?code|code|http(?:/\d(?:\.\d)?)?|api\s+error)
        ["'\\]*\s*(?:is|of)?\s*[:=]?\s*["'(\\]*([45]\d\d)\b
  | "message\\*"\s*:\s*\\*"([45]\d\d)\b
  | \brejected\s\(([45]\d\d)\)
  | \b([45]\d\d)\s(?:unauthorized|forbidden|payment\srequired|too\smany\srequests|bad\srequest
        |not\sfound|internal\sserver\serror|bad\sgateway|service\sunavailable|gateway\stime-?out
        |overloaded)\b
"#;

/// The status that is told last; `None` where none is.
#[must_use]
pub fn find(text: &str) -> Option<u16> {
    let forms = Regex::new(FORMS).ok()?;
    let last = forms.captures_iter(text).last()?;
    last.iter().skip(1).flatten().next()?.as_str().parse().ok()
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
        ] {
            assert_eq!(find(text), None, "{text}");
        }
    }
}
