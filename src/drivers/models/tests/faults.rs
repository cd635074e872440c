//! Tests of calls without a reply: repetitions, and failures.

use super::provider::STEP_TIMEOUT;
use super::*;

/// Returns the failure of a call, and the number of requests.
async fn failure_and_request_count(
    responses: impl IntoIterator<Item = ScriptedResponse>,
) -> (Failure, usize) {
    let mut provider = ScriptedProvider::start(responses).await;
    match complete(&provider).await {
        Err(CompletionError::Failed(failure)) => (failure, provider.drain_request_count()),
        result => panic!("no failure: {result:?}"),
    }
}

fn status_response(status: u16) -> ScriptedResponse {
    ScriptedResponse::status(status, "", "{\"error\": {\"message\": \"body-canary\"}}")
}

fn rate_limited_response(retry_after: &str) -> ScriptedResponse {
    ScriptedResponse::status(429, &format!("retry-after: {retry_after}\r\n"), "")
}

#[tokio::test]
async fn a_reply_after_three_faults_is_returned() {
    let responses = [
        status_response(503),
        ScriptedResponse::RawResponse(String::new()),
        status_response(408),
        ScriptedResponse::text("at last"),
    ];
    let mut provider = ScriptedProvider::start(responses).await;
    assert_eq!(complete(&provider).await.unwrap().text, "at last");
    assert_eq!(provider.drain_request_count(), 4);
}

#[tokio::test]
async fn a_provider_with_lasting_faults_is_unavailable() {
    let (failure, count) =
        failure_and_request_count([status_response(500), status_response(503)]).await;
    assert_eq!((failure.code, count), (Code::ModelUnavailable, 4));
    assert_eq!(failure.message, "the provider `local` answered with status 503");
    let early_end = "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{\"choices\":";
    let (failure, count) =
        failure_and_request_count([ScriptedResponse::RawResponse(early_end.to_owned())]).await;
    assert_eq!((failure.code, count), (Code::ModelUnavailable, 4));
    assert_eq!(failure.message, "the provider `local` ended its reply early");
}

#[tokio::test]
async fn a_refusal_is_not_repeated_and_hides_its_text() {
    for (number, code, clause) in [
        (302, Code::ModelRefused, "refused the request with status 302"),
        (400, Code::ModelRefused, "refused the request with status 400"),
        (404, Code::ModelRefused, "refused the request with status 404"),
        (422, Code::ModelRefused, "refused the request with status 422"),
        (401, Code::NotAuthenticated, "did not accept the key, with status 401"),
        (403, Code::ModelRefused, "refused the request with status 403"),
    ] {
        let (failure, count) = failure_and_request_count([status_response(number)]).await;
        assert_eq!((failure.code, count), (code, 1), "{number}");
        assert_eq!(failure.message, format!("the provider `local` {clause}"));
    }
}

#[tokio::test]
async fn each_cause_of_a_failed_connection_has_its_own_sentence() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let closed_port_url = format!("http://{}/v1", listener.local_addr().unwrap());
    drop(listener);
    // The resolver refuses so long a label itself, without a network.
    let unresolvable_url = format!("http://{}.invalid/v1", "x".repeat(64));
    for (base_url, clause) in [
        (closed_port_url, "refused the connection: nothing listens there"),
        (unresolvable_url, "has a host name that does not resolve"),
    ] {
        let client = connections().client(Arc::new(model_provider(&base_url)));
        let Err(CompletionError::Failed(failure)) = client.complete(greeting()).await else {
            panic!("nothing listens at {base_url}");
        };
        assert_eq!(failure.code, Code::ModelUnavailable);
        assert_eq!(failure.message, format!("the provider `local` {clause}"));
    }
}

#[tokio::test]
async fn a_provider_without_an_answer_exceeds_its_timeout() {
    let provider = ScriptedProvider::start([ScriptedResponse::Silence]).await;
    let impatient = ModelProvider {
        timeout: Duration::from_millis(50),
        ..model_provider(&provider.base_url())
    };
    let client = connections().client(Arc::new(impatient));
    let Err(CompletionError::Failed(failure)) = client.complete(greeting()).await else {
        panic!("the provider is silent");
    };
    assert_eq!(failure.code, Code::ModelUnavailable);
    assert_eq!(failure.message, "the provider `local` gave no whole reply within 0.05 s");
}

#[tokio::test]
async fn a_required_pause_is_waited_for() {
    let mut provider =
        ScriptedProvider::start([rate_limited_response("1"), ScriptedResponse::text("ok")]).await;
    let mut connections = connections();
    // With this pause the call would not end in time, so that of the provider is the one in use.
    connections
        .backoffs
        .fill(RetryBackoff { after_rate_limit: STEP_TIMEOUT * 100, ..TEST_BACKOFF });
    let client = connections.client(Arc::new(model_provider(&provider.base_url())));
    let reply = tokio::time::timeout(STEP_TIMEOUT, client.complete(greeting())).await.unwrap();
    assert_eq!(reply.unwrap().text, "ok");
    assert_eq!(provider.drain_request_count(), 2);
}

#[test]
fn every_pause_follows_its_fault() {
    let client = connections().client(Arc::new(model_provider("http://127.0.0.1:1/v1")));
    let pauses = |fault: fn() -> CallFault| {
        RETRY_BACKOFFS.map(|next| client.retry_pause(fault(), Some(next)).unwrap().as_secs())
    };
    assert_eq!(pauses(|| CallFault::Transient { clause: String::new() }), [1, 2, 4]);
    assert_eq!(pauses(|| CallFault::RateLimited { until: None }), [5, 10, 20]);
    let until = |seconds| Some(fixed_time() + chrono::TimeDelta::seconds(seconds));
    for (seconds, pause) in [(60, Some(60)), (1, Some(1)), (61, None)] {
        let fault = CallFault::RateLimited { until: until(seconds) };
        let result = client.retry_pause(fault, Some(TEST_BACKOFF)).ok();
        assert_eq!(result.map(|pause| pause.as_secs()), pause, "{seconds}");
    }
}

#[tokio::test]
async fn a_rate_limit_without_an_end_is_reported_after_repetitions() {
    // The clock of the tests has 08:00:00 of this day.
    let past = "Fri, 15 Jan 2027 07:59:00 GMT";
    for unclear_response in [
        status_response(429),
        rate_limited_response("soon"),
        rate_limited_response("-5"),
        rate_limited_response("0"),
        rate_limited_response(past),
    ] {
        let (failure, count) = failure_and_request_count([unclear_response]).await;
        assert_eq!((failure.code, count, failure.until), (Code::AgentRateLimited, 4, None));
    }
}

#[tokio::test]
async fn a_rate_limit_with_a_late_end_is_reported_at_once() {
    // The clock of the tests has 08:00:00 of this day.
    for (header, seconds) in [("61", 61), ("Fri, 15 Jan 2027 08:05:00 GMT", 300)] {
        let (failure, count) = failure_and_request_count([rate_limited_response(header)]).await;
        assert_eq!((failure.code, count), (Code::AgentRateLimited, 1), "{header}");
        assert_eq!(failure.until, Some(fixed_time() + Duration::from_secs(seconds)));
    }
}

#[tokio::test]
async fn an_answer_that_is_no_completion_is_unusable() {
    let choice = |choice: &str| format!("{{\"choices\": [{choice}]}}");
    let refusal = r#"{"message": {"content": null, "refusal": "I will not"}}"#;
    let refused_part = r#"{"message": {"content": [{"type": "refusal", "refusal": "no"}]}}"#;
    let filtered = r#"{"message": {"content": "half"}, "finish_reason": "content_filter"}"#;
    let unreadable = r#"{"message": {"content": {"text": "a"}}}"#;
    for (body, clause) in [
        ("<html><body>a page of the proxy</body></html>", "is not JSON"),
        ("", "is not JSON"),
        ("{\"choices\": [{\"message\": {\"content\": \"a\"}}]} and more", "is not JSON"),
        ("{\"choices\": []}", "is a chat completion without a choice"),
        ("{\"object\": \"list\"}", "is not a chat completion"),
        ("[]", "is not a chat completion"),
        ("{\"choices\": 7}", "is not a chat completion"),
        (&choice(refusal), "is a refusal of the model"),
        (&choice(refused_part), "is a refusal of the model"),
        (&choice(filtered), "was stopped by a content filter"),
        (&choice(unreadable), "has a content that cannot be read"),
    ] {
        let mut provider = ScriptedProvider::start([ScriptedResponse::status(200, "", body)]).await;
        let unusable = CompletionError::Unusable(clause.to_owned());
        assert_eq!(complete(&provider).await, Err(unusable), "{body}");
        assert_eq!(provider.drain_request_count(), 1, "{body}");
    }
}

#[tokio::test]
async fn an_endless_reply_is_unusable_and_loses_its_connection() {
    let mut provider = ScriptedProvider::start([ScriptedResponse::Endless]).await;
    let unusable = CompletionError::Unusable("is longer than 8 MiB".to_owned());
    assert_eq!(complete(&provider).await, Err(unusable.clone()));
    provider.wait_for_closed_connection().await;
    assert_eq!(provider.drain_request_count(), 1);

    let oversized_head = "HTTP/1.1 200 OK\r\ncontent-length: 200000000\r\n\r\n".to_owned();
    let mut provider =
        ScriptedProvider::start([ScriptedResponse::RawResponse(oversized_head)]).await;
    assert_eq!(complete(&provider).await, Err(unusable));
    assert_eq!(provider.drain_request_count(), 1);
}

#[tokio::test]
async fn a_dropped_call_closes_its_connection() {
    let mut provider = ScriptedProvider::start([ScriptedResponse::Silence]).await;
    let client = connections().client(Arc::new(model_provider(&provider.base_url())));
    let call = tokio::spawn(async move { client.complete(greeting()).await });
    provider.next_request().await;
    call.abort();
    provider.wait_for_closed_connection().await;
}

#[tokio::test]
async fn an_error_in_a_successful_response_is_repeated() {
    let body = "{\"error\": {\"message\": \"body-canary\", \"code\": 502}}";
    let error = || ScriptedResponse::status(200, "", body);
    let mut provider = ScriptedProvider::start([error(), ScriptedResponse::text("at last")]).await;
    assert_eq!(complete(&provider).await.unwrap().text, "at last");
    assert_eq!(provider.drain_request_count(), 2);
    let in_choice = |error: &str| {
        format!("{{\"choices\": [{{\"message\": {{\"content\": \"half\"}}, {error}}}]}}")
    };
    for (body, code, count, clause) in [
        (body.to_owned(), Code::ModelUnavailable, 4, "the error 502"),
        ("{\"error\": \"down\"}".to_owned(), Code::ModelUnavailable, 4, "the error"),
        ("{\"error\": {\"code\": 401}}".to_owned(), Code::NotAuthenticated, 1, "the error 401"),
        ("{\"error\": {\"code\": 400}}".to_owned(), Code::ModelRefused, 1, "the error 400"),
        (in_choice("\"error\": {\"code\": 503}"), Code::ModelUnavailable, 4, "the error 503"),
        (in_choice("\"finish_reason\": \"error\""), Code::ModelUnavailable, 4, "the error"),
    ] {
        let (failure, request_count) =
            failure_and_request_count([ScriptedResponse::status(200, "", &body)]).await;
        assert_eq!((failure.code, request_count), (code, count), "{body}");
        assert_eq!(failure.message, format!("the provider `local` reported {clause} in its reply"));
    }
}

#[tokio::test]
async fn a_content_with_an_unpaired_surrogate_is_read() {
    let body = r#"{"choices": [{"message": {"content": "half \ud83d of it"}}]}"#;
    let provider = ScriptedProvider::start([ScriptedResponse::status(200, "", body)]).await;
    assert_eq!(complete(&provider).await.unwrap().text, "half \u{fffd} of it");
}
