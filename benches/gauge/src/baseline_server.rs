//! Minimal servers: the baselines of the service.

use std::process::Stdio;

use axum::Router;
use axum::body::Body;
use axum::extract::Path;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::serve::ListenerExt as _;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::process::Command;

use crate::spawn::plain_text;
use crate::spawn_limit::find_program;

/// Answers `POST /<bytes>` with JSON of this many bytes, built anew for each request.
pub(crate) fn serve_json() {
    let handler = async |Path(bytes): Path<usize>, body: axum::body::Bytes| {
        let request: Value = serde_json::from_slice(&body).unwrap_or_default();
        let id = request.get("id").cloned().unwrap_or_default();
        let frame_bytes = json!({"id": id, "text": ""}).to_string().len();
        // A line end takes two bytes in JSON.
        let text = plain_text(bytes.saturating_sub(frame_bytes)).replace('\n', " ");
        json_response(&json!({"id": id, "text": text}))
    };
    serve(Router::new().route("/{bytes}", post(handler)));
}

/// Answers `POST /?file` with the output of `cat` for the file, as JSON: neither examined nor stored.
pub(crate) fn serve_cat_output() {
    let cat = find_program("cat");
    let handler = async move |uri: axum::http::Uri| {
        let mut command = Command::new(cat);
        command.arg(uri.query().unwrap_or_default());
        command.stdin(Stdio::null()).stderr(Stdio::piped());
        let output = command.output().await.expect("what it said");
        assert!(output.status.success());
        let text = String::from_utf8_lossy(&output.stdout);
        json_response(&json!({"jsonrpc": "2.0", "id": 1, "result": {"text": text}}))
    };
    serve(Router::new().route("/", post(handler)));
}

fn json_response(value: &Value) -> Response {
    ([(CONTENT_TYPE, "application/json")], Body::from(value.to_string())).into_response()
}

fn serve(router: Router) {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        println!("{}", listener.local_addr().expect("an address"));
        let listener = listener.tap_io(|connection| {
            _ = connection.set_nodelay(true); // The connection may be gone.
        });
        axum::serve(listener, router).await.expect("a server");
    });
}
