//! HTTP client for the service.

use std::io::{Error, Write};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER};
use hyper::{Method, Request, StatusCode};
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::error::Category;

use super::connector;
use super::connector::HttpClient;
use super::error_response::{is_foreign_response, parse_error_response};
use crate::cli::error::CliError;
use crate::config;
use crate::platform::http_client::parse_uri;

/// Client for one service, with its token.
pub(crate) struct ServiceClient {
    url: String,
    token: String,
    http: HttpClient,
}

impl ServiceClient {
    /// Reads the token and checks the address.
    pub(crate) fn new(
        url: &str,
        token_file: Option<&Path>,
        ca_file: Option<&Path>,
    ) -> Result<Self, CliError> {
        let url = url.trim_end_matches('/').to_owned();
        let has_scheme = ["http://", "https://"].iter().any(|scheme| url.starts_with(scheme));
        if !has_scheme || parse_uri(&url).is_none() {
            return Err(CliError::InvalidUrl { url });
        }
        let env = |name: &str| std::env::var_os(name);
        let file = token_file.map(Path::to_owned).or_else(|| config::default_token_file(&env));
        let (token, token_origin) = read_token(file)?;
        // Checked here, because a failed request could not name the place.
        if HeaderValue::from_str(&token).is_err() {
            let source = Error::other("it holds no token");
            return Err(CliError::NoToken { file: token_origin, source });
        }
        Ok(Self { url, token, http: connector::new_client(ca_file)? })
    }

    /// Returns the address of the service.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// Sends GET and returns the parsed response.
    pub(crate) async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, CliError> {
        self.call(Method::GET, path, None).await
    }

    /// Sends POST with a document and returns the parsed response.
    pub(crate) async fn post<T: DeserializeOwned>(
        &self,
        path: &str,
        body: Value,
    ) -> Result<T, CliError> {
        self.call(Method::POST, path, Some(body)).await
    }

    /// Sends PUT with a document and returns the parsed response.
    pub(crate) async fn put<T: DeserializeOwned>(
        &self,
        path: &str,
        body: Value,
    ) -> Result<T, CliError> {
        self.call(Method::PUT, path, Some(body)).await
    }

    /// Sends DELETE and returns the parsed response.
    pub(crate) async fn delete<T: DeserializeOwned>(&self, path: &str) -> Result<T, CliError> {
        self.call(Method::DELETE, path, None).await
    }

    /// Opens a stream of events.
    pub(crate) async fn open_stream(
        &self,
        path: &str,
        headers: &[RequestHeader],
    ) -> Result<Incoming, CliError> {
        into_event_stream(self.send_with_headers(Method::GET, path, None, headers).await?).await
    }

    pub(super) async fn call<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: Option<Value>,
    ) -> Result<T, CliError> {
        let response = self.send(method, path, body).await?;
        if !response.is_success {
            return Err(response.into_error().await);
        }
        let ResponseSummary { status, media_type } = response.summary;
        let bytes = collect_body(response.body).await?;
        serde_json::from_slice(&bytes).map_err(|source| match source.classify() {
            Category::Data => CliError::UnreadableResponse { source },
            _ => CliError::ForeignResponse { status, media_type },
        })
    }

    /// Sends DELETE and ignores the body of the response.
    pub(crate) async fn delete_ignoring_body(&self, path: &str) -> Result<(), CliError> {
        let response = self.send(Method::DELETE, path, None).await?;
        if !response.is_success {
            return Err(response.into_error().await);
        }
        collect_body(response.body).await.map(drop)
    }

    /// Copies a response of any length as it arrives.
    pub(crate) async fn download(
        &self,
        path: &str,
        output: &mut impl Write,
    ) -> Result<(), CliError> {
        let mut response = self.send(Method::GET, path, None).await?;
        if !response.is_success {
            return Err(response.into_error().await);
        }
        while let Some(frame) = response.body.frame().await {
            let frame = frame.map_err(|source| CliError::ConnectionLost { source })?;
            let write_result = frame.data_ref().map(|data| output.write_all(data));
            write_result.unwrap_or(Ok(())).map_err(|source| CliError::Output { source })?;
        }
        output.flush().map_err(|source| CliError::Output { source })
    }

    /// Sends a request and returns the start of its response.
    async fn send(
        &self,
        method: Method,
        path: &str,
        body: Option<Value>,
    ) -> Result<ServiceResponse, CliError> {
        self.send_with_headers(method, path, body, &[]).await
    }

    /// Sends a request with additional headers and returns the start of its response.
    pub(super) async fn send_with_headers(
        &self,
        method: Method,
        path: &str,
        body: Option<Value>,
        headers: &[RequestHeader],
    ) -> Result<ServiceResponse, CliError> {
        let body = body.map(|body| body.to_string()).unwrap_or_default();
        let mut request = Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.url))
            .header(AUTHORIZATION, format!("Bearer {}", self.token))
            .header(CONTENT_TYPE, "application/json");
        for (name, value) in headers {
            request = request.header(name, value);
        }
        let request = request.body(Full::from(body));
        let request =
            request.map_err(|_malformed| CliError::InvalidUrl { url: self.url.clone() })?;
        let to_connection_error = |error| connector::connection_error(&self.url, error);
        let response = self.http.request(request).await.map_err(to_connection_error)?;
        let content_type = response.headers().get(CONTENT_TYPE).map(HeaderValue::as_bytes);
        // An error of JSON-RPC has the status 200 too, but it is no stream.
        let is_stream =
            content_type.is_some_and(|content_type| content_type.starts_with(b"text/event-stream"));
        let is_too_many_requests = response.status() == StatusCode::TOO_MANY_REQUESTS;
        let retry_after = response.headers().get(RETRY_AFTER).filter(|_| is_too_many_requests);
        let retry_after =
            retry_after.and_then(|retry_after| retry_after.to_str().ok()?.parse().ok());
        // The login page of a proxy has the status 200.
        let is_html_page =
            content_type.is_some_and(|content_type| content_type.starts_with(b"text/html"));
        let is_success = response.status().is_success() && !is_html_page;
        let content_type = response.headers().get(CONTENT_TYPE).and_then(|it| it.to_str().ok());
        let summary = ResponseSummary {
            status: response.status().as_u16(),
            media_type: content_type.unwrap_or("without a media type").to_owned(),
        };
        Ok(ServiceResponse {
            is_success,
            is_stream,
            retry_after,
            summary,
            body: response.into_body(),
        })
    }
}

/// Start of a response.
pub(super) struct ServiceResponse {
    is_success: bool,
    is_stream: bool,
    /// Number of seconds to wait before the next attempt, if the service refused because of too many requests.
    retry_after: Option<u64>,
    summary: ResponseSummary,
    body: Incoming,
}

/// Facts about a response that name the program which sent it.
struct ResponseSummary {
    status: u16,
    media_type: String,
}

impl ServiceResponse {
    /// Reads the error from the response.
    async fn into_error(self) -> CliError {
        let ResponseSummary { status, media_type } = self.summary;
        match collect_body(self.body).await {
            Ok(bytes) if is_foreign_response(&bytes) => {
                CliError::ForeignResponse { status, media_type }
            }
            Ok(bytes) => match (parse_error_response(&bytes), self.retry_after) {
                (CliError::RequestRefused(error_body), Some(seconds)) => {
                    CliError::TooManyRequests { error_body, seconds }
                }
                (error, _) => error,
            },
            Err(error) => error,
        }
    }
}

/// Header of a request.
pub(crate) type RequestHeader = (HeaderName, HeaderValue);

/// Returns the body of a response that must be a stream of events.
pub(super) async fn into_event_stream(response: ServiceResponse) -> Result<Incoming, CliError> {
    if response.is_success && response.is_stream {
        return Ok(response.body);
    }
    Err(response.into_error().await)
}

async fn collect_body(body: Incoming) -> Result<Bytes, CliError> {
    let collected = body.collect().await;
    Ok(collected.map_err(|source| CliError::ConnectionLost { source })?.to_bytes())
}

/// Returns the token from the environment or from the file, and the place where it is.
fn read_token(file: Option<PathBuf>) -> Result<(String, PathBuf), CliError> {
    if let Some(token) = std::env::var_os("ALGONIUS_TOKEN").filter(|token| !token.is_empty()) {
        let origin = PathBuf::from("the variable ALGONIUS_TOKEN");
        return match token.into_string() {
            Ok(token) => Ok((token, origin)),
            Err(_bytes) => {
                Err(CliError::NoToken { file: origin, source: Error::other("it is not UTF-8") })
            }
        };
    }
    let file = file.ok_or(CliError::NoTokenFolder)?;
    match std::fs::read_to_string(&file) {
        Ok(text) => Ok((text.trim().to_owned(), file)),
        Err(source) => Err(CliError::NoToken { file, source }),
    }
}
