//! Media types of responses over HTTP+JSON, selected by the caller.

use algonius_actors::model::access::endpoint_config::ProtocolVersion;
use axum::http::{HeaderMap, HeaderName, header};

/// Plain JSON.
pub(in crate::serve) const JSON: &str = "application/json";
/// Media type of A2A 1.0.
pub(in crate::serve) const A2A_JSON: &str = "application/a2a+json";

/// Returns the media type of a successful response.
///
/// 1.0 has its own media type, which is used unless the caller requests plain JSON: by `Accept` or, if that header
/// selects neither, by the type of its own body. Callers of 0.3 receive plain JSON unless they name the other type.
pub(super) fn result_media_type(headers: &HeaderMap, version: ProtocolVersion) -> &'static str {
    let accepted_type = accepted_media_type(headers);
    let has_body_type = |media_type| {
        list_items(headers, &header::CONTENT_TYPE).any(|it| matches_type(it, media_type))
    };
    match (accepted_type, version) {
        (Some(media_type), _) => media_type,
        (None, ProtocolVersion::V1_0) if has_body_type(JSON) => JSON,
        (None, ProtocolVersion::V0_3) if !has_body_type(A2A_JSON) => JSON,
        (None, _) => A2A_JSON,
    }
}

/// Returns the media type of an error: plain JSON, unless the caller names that of A2A. The body is a
/// `google.rpc.Status` and no shape of A2A, and the official Go SDK reads errors from plain JSON only.
pub(in crate::serve) fn error_media_type(headers: &HeaderMap) -> &'static str {
    let has_a2a_body =
        list_items(headers, &header::CONTENT_TYPE).any(|it| matches_type(it, A2A_JSON));
    match accepted_media_type(headers) {
        Some(media_type) => media_type,
        None if has_a2a_body => A2A_JSON,
        None => JSON,
    }
}

/// Returns the type that `Accept` names, preferring that of A2A at equal weight; `None` if the header names neither.
fn accepted_media_type(headers: &HeaderMap) -> Option<&'static str> {
    let best_quality = |media_type| {
        let ranges =
            list_items(headers, &header::ACCEPT).filter(|range| matches_type(range, media_type));
        ranges.map(quality).max().filter(|quality| *quality > 0)
    };
    match (best_quality(A2A_JSON), best_quality(JSON)) {
        (None, None) => None,
        (a2a_quality, json_quality) if a2a_quality >= json_quality => Some(A2A_JSON),
        _ => Some(JSON),
    }
}

/// Returns the items of a header that is a list.
fn list_items<'h>(headers: &'h HeaderMap, name: &HeaderName) -> impl Iterator<Item = &'h str> {
    let lines = headers.get_all(name).into_iter().filter_map(|line| line.to_str().ok());
    lines.flat_map(|line| line.split(',')).map(str::trim)
}

fn matches_type(item: &str, media_type: &str) -> bool {
    item.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case(media_type)
}

/// Returns the weight of a media range in thousandths; an unreadable weight counts as the default.
fn quality(range: &str) -> u16 {
    let parameters = range.split(';').skip(1).filter_map(|parameter| parameter.split_once('='));
    let weight = parameters.map(|(name, value)| (name.trim(), value.trim()));
    let weight = weight.filter(|(name, _)| name.eq_ignore_ascii_case("q")).map(|(_, value)| value);
    let to_thousandths = |value: &str| {
        let weight: f32 = value.parse().ok().filter(|weight| (0.0..=1.0).contains(weight))?;
        // The filter above limits the value to the range from 0 to 1000.
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 1000")]
        Some((weight * 1000.0) as u16)
    };
    weight.filter_map(to_thousandths).next().unwrap_or(1000)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(accept: Option<&str>, body: Option<&str>) -> HeaderMap {
        let line = |name, text: Option<&str>| Some((name, text?.parse().expect("a header")));
        [line(header::ACCEPT, accept), line(header::CONTENT_TYPE, body)]
            .into_iter()
            .flatten()
            .collect()
    }

    #[test]
    fn version_1_0_answers_with_the_a2a_type_unless_refused() {
        for (accept, body, expected) in [
            (None, None, A2A_JSON),
            (Some("*/*"), None, A2A_JSON),
            (Some("application/*"), None, A2A_JSON),
            (None, Some(A2A_JSON), A2A_JSON),
            (Some("*/*"), Some("application/json; charset=utf-8"), JSON),
            (Some("application/json"), None, JSON),
            (Some("application/json"), Some(A2A_JSON), JSON),
            (Some("Application/JSON, text/event-stream"), None, JSON),
            (Some("application/a2a+json"), Some(JSON), A2A_JSON),
            (Some("application/json, application/a2a+json"), Some(JSON), A2A_JSON),
            (Some("application/json, application/a2a+json;q=0.5"), None, JSON),
            (Some("application/json;q=0, */*"), None, A2A_JSON),
            (Some("application/json;q=many"), None, JSON),
            (Some("text/html"), None, A2A_JSON),
        ] {
            let headers = headers(accept, body);
            assert_eq!(result_media_type(&headers, ProtocolVersion::V1_0), expected, "{headers:?}");
        }
    }

    #[test]
    fn errors_and_version_0_3_answer_with_plain_json_by_default() {
        for (accept, body, expected) in [
            (None, None, JSON),
            (Some("*/*"), Some(JSON), JSON),
            (Some("application/a2a+json"), None, A2A_JSON),
            (None, Some(A2A_JSON), A2A_JSON),
            (Some("application/json"), Some(A2A_JSON), JSON),
        ] {
            let headers = headers(accept, body);
            assert_eq!(error_media_type(&headers), expected, "{headers:?}");
            assert_eq!(result_media_type(&headers, ProtocolVersion::V0_3), expected, "{headers:?}");
        }
    }
}
