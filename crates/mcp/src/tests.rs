//! Client against scripted servers: both generations of the protocol, and servers that break it.

use std::time::Duration;

use serde_json::{Map, Value, json};
use tokio::io::{
    AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf,
    duplex, split,
};
use tokio::time::timeout;

use crate::{ConnectionEndReason, ListedTool, McpClient, McpError, ToolCallResult};

/// Scripted server.
struct ScriptedServer {
    lines: Lines<BufReader<ReadHalf<DuplexStream>>>,
    output: WriteHalf<DuplexStream>,
}

/// Returns a server, and the pipes to it.
fn scripted_server() -> (ScriptedServer, (WriteHalf<DuplexStream>, ReadHalf<DuplexStream>)) {
    let (client_end, server_end) = duplex(64 << 10);
    let ((output, input), (server_input, server_output)) = (split(client_end), split(server_end));
    (
        ScriptedServer { lines: BufReader::new(server_input).lines(), output: server_output },
        (input, output),
    )
}

impl ScriptedServer {
    async fn next_message(&mut self) -> Value {
        let line = timeout(Duration::from_secs(45), self.lines.next_line()).await.unwrap();
        serde_json::from_str(&line.unwrap().expect("the client closed the input")).unwrap()
    }

    async fn write_line(&mut self, text: &str) {
        // The client closes a connection whose server writes too much.
        _ = self.output.write_all(text.as_bytes()).await;
        _ = self.output.write_all(b"\n").await;
    }

    async fn send(&mut self, message: Value) {
        self.write_line(&message.to_string()).await;
    }

    /// Answers a request.
    async fn answer(&mut self, request: &Value, result: Value) {
        self.send(json!({"jsonrpc": "2.0", "id": request["id"], "result": result})).await;
    }

    async fn refuse(&mut self, request: &Value, code: i32, message: &str) {
        let error = json!({"code": code, "message": message});
        self.send(json!({"jsonrpc": "2.0", "id": request["id"], "error": error})).await;
    }

    /// Starts as a server of the present generation.
    async fn answer_discovery(mut self) -> Self {
        let discover = self.next_message().await;
        assert_eq!(discover["method"], "server/discover");
        let result = json!({
            "resultType": "complete", "supportedVersions": ["2026-07-28"],
            "capabilities": {"tools": {}}, "ttlMs": 0, "cacheScope": "private",
        });
        self.answer(&discover, result).await;
        self
    }
}

async fn connect(
    (input, output): (WriteHalf<DuplexStream>, ReadHalf<DuplexStream>),
) -> Result<McpClient, McpError> {
    McpClient::connect(input, output, "1.2.3").await
}

/// Returns a connection to a server of the present generation.
async fn connect_to_scripted_server() -> (ScriptedServer, McpClient) {
    let (server, pipes) = scripted_server();
    let (server, client) = tokio::join!(server.answer_discovery(), connect(pipes));
    (server, client.unwrap())
}

fn text_result(text: &str) -> Value {
    json!({"resultType": "complete", "content": [{"type": "text", "text": text}]})
}

async fn call(client: &McpClient) -> Result<ToolCallResult, McpError> {
    client.call_tool("look", Map::from_iter([("at".to_owned(), json!(1))])).await
}

#[tokio::test]
async fn without_a_handshake_each_request_has_the_version() {
    let (mut server, client) = connect_to_scripted_server().await;
    let (answer, request) = tokio::join!(call(&client), async {
        let request = server.next_message().await;
        server.answer(&request, text_result("found")).await;
        request
    });
    assert_eq!(answer, Ok(ToolCallResult { text: "found".to_owned(), is_error: false }));
    assert_eq!(request["method"], "tools/call");
    assert_eq!(request["params"]["name"], "look");
    assert_eq!(request["params"]["arguments"], json!({"at": 1}));
    let meta = &request["params"]["_meta"];
    assert_eq!(meta["io.modelcontextprotocol/protocolVersion"], "2026-07-28");
    let info = &meta["io.modelcontextprotocol/clientInfo"];
    assert_eq!((&info["name"], &info["version"]), (&json!("algonius-supervisor"), &json!("1.2.3")));
}

#[tokio::test]
async fn an_older_server_gets_a_handshake() {
    let (mut server, pipes) = scripted_server();
    let script = async {
        let discover = server.next_message().await;
        server.refuse(&discover, -32601, "Method not found").await;
        let initialize = server.next_message().await;
        assert_eq!(initialize["method"], "initialize");
        assert_eq!(initialize["params"]["protocolVersion"], "2025-11-25");
        let info = json!({"name": "old", "version": "1"});
        let result = json!({
            "protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": info,
        });
        server.answer(&initialize, result).await;
        assert_eq!(server.next_message().await["method"], "notifications/initialized");
        for (cursor, next_cursor, name) in
            [(json!(null), json!("more"), "a"), (json!("more"), json!(null), "b")]
        {
            let list = server.next_message().await;
            assert_eq!(
                (&list["method"], &list["params"]["cursor"]),
                (&json!("tools/list"), &cursor)
            );
            let tool = json!({
                "name": name, "description": "Looks.", "inputSchema": {"type": "object"},
            });
            let mut result = json!({"tools": [tool]});
            if !next_cursor.is_null() {
                result["nextCursor"] = next_cursor;
            }
            server.answer(&list, result).await;
        }
    };
    let (tools, ()) =
        tokio::join!(async { connect(pipes).await.unwrap().list_tools().await }, script);
    let tools = tools.unwrap();
    let names: Vec<_> = tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["a", "b"]);
    assert_eq!(tools[0].description, "Looks.");
    assert_eq!(tools[0].input_schema, Map::from_iter([("type".to_owned(), json!("object"))]));
}

#[tokio::test]
async fn only_the_answer_to_the_request_counts() {
    let (mut server, client) = connect_to_scripted_server().await;
    let (answer, ()) = tokio::join!(call(&client), async {
        let request = server.next_message().await;
        server.write_line("Listening for requests").await;
        server.write_line("{\"jsonrpc\": \"2.0\"").await;
        server.write_line("[1, 2]").await;
        server.send(json!({"jsonrpc": "2.0", "id": 4711, "result": text_result("other")})).await;
        let log = json!({"level": "info", "data": "x"});
        server
            .send(json!({"jsonrpc": "2.0", "method": "notifications/message", "params": log}))
            .await;
        server.send(json!({"jsonrpc": "2.0", "id": "p", "method": "ping"})).await;
        assert_eq!(server.next_message().await, json!({"jsonrpc": "2.0", "id": "p", "result": {}}));
        server.send(json!({"jsonrpc": "2.0", "id": 9, "method": "roots/list"})).await;
        let refusal = server.next_message().await;
        assert_eq!((&refusal["id"], &refusal["error"]["code"]), (&json!(9), &json!(-32601)));
        server.answer(&request, text_result("right")).await;
        server.answer(&request, text_result("second")).await;
    });
    assert_eq!(answer.unwrap().text, "right");
    let (second, ()) = tokio::join!(call(&client), async {
        let request = server.next_message().await;
        server.refuse(&request, -32602, "no such place").await;
    });
    let message = "no such place".to_owned();
    assert_eq!(
        second,
        Err(McpError::RequestRefused { code: -32602, message, is_truncated: false })
    );
}

#[tokio::test]
async fn a_dropped_call_is_cancelled_at_the_server() {
    let (mut server, client) = connect_to_scripted_server().await;
    let id = {
        let mut call = Box::pin(call(&client));
        let request = tokio::select! {
            request = server.next_message() => request,
            answer = &mut call => panic!("{answer:?}"),
        };
        request["id"].clone()
    };
    let cancel_notification = server.next_message().await;
    assert_eq!(cancel_notification["method"], "notifications/cancelled");
    assert_eq!(cancel_notification["params"]["requestId"], id);
    // The connection stays open, and the late answer is not taken for another.
    let (answer, ()) = tokio::join!(call(&client), async {
        let request = server.next_message().await;
        server.send(json!({"jsonrpc": "2.0", "id": id, "result": text_result("late")})).await;
        server.answer(&request, text_result("next")).await;
    });
    assert_eq!(answer.unwrap().text, "next");
}

/// Returns the end of a call during which the server writes this text without an end.
async fn flooded_call_result(text: &str) -> Result<ToolCallResult, McpError> {
    let (mut server, client) = connect_to_scripted_server().await;
    let answer = tokio::select! {
        answer = call(&client) => answer,
        () = async {
            server.next_message().await;
            loop {
                server.write_line(text).await;
                tokio::task::yield_now().await;
            }
        } => unreachable!(),
    };
    if let Err(McpError::ConnectionEnded(end)) = &answer {
        assert_eq!(client.wait_for_end().await, *end);
    }
    answer
}

#[tokio::test]
async fn a_server_that_writes_too_much_loses_its_connection() {
    let long_line = "x".repeat(5 << 20);
    let noise = "noise ".repeat(1000);
    let values = format!("[{}]", "0,".repeat(200_000));
    let answer_with_unknown_id =
        json!({"jsonrpc": "2.0", "id": 99, "result": {"x": noise}}).to_string();
    let answer_without_id =
        json!({"jsonrpc": "2.0", "error": {"code": 1, "message": noise}}).to_string();
    let rows = [
        (long_line.as_str(), ConnectionEndReason::MessageTooLong),
        (values.as_str(), ConnectionEndReason::MessageTooComplex),
        (noise.as_str(), ConnectionEndReason::TooMuchUnrequestedOutput),
        (answer_with_unknown_id.as_str(), ConnectionEndReason::TooMuchUnrequestedOutput),
        (answer_without_id.as_str(), ConnectionEndReason::TooMuchUnrequestedOutput),
    ];
    for (text, expected) in rows {
        let start: String = text.chars().take(40).collect();
        assert_eq!(
            flooded_call_result(text).await,
            Err(McpError::ConnectionEnded(expected)),
            "{start}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_reads_nothing_loses_its_connection() {
    let (server, client) = connect_to_scripted_server().await;
    // The pipe takes the first messages.
    let text = "x".repeat(60 << 10);
    for _ in 0..2 {
        let arguments = Map::from_iter([("text".to_owned(), json!(text))]);
        let answer = timeout(Duration::from_secs(30), client.call_tool("look", arguments)).await;
        if let Ok(answer) = answer {
            assert_eq!(answer, Err(McpError::ConnectionEnded(ConnectionEndReason::InputUnread)));
        }
    }
    assert_eq!(client.wait_for_end().await, ConnectionEndReason::InputUnread);
    drop(server);
}

#[tokio::test]
async fn a_server_that_exits_ends_the_calls() {
    let (mut server, client) = connect_to_scripted_server().await;
    let (answer, ()) = tokio::join!(call(&client), async {
        server.next_message().await;
        drop(server);
    });
    assert_eq!(answer, Err(McpError::ConnectionEnded(ConnectionEndReason::OutputClosed)));
    // So does one that exits before it has answered the first request.
    let (exited_server, pipes) = self::scripted_server();
    drop(exited_server);
    let error = connect(pipes).await.unwrap_err();
    assert!(matches!(error, McpError::ConnectionEnded(_)), "{error:?}");
}

#[tokio::test]
async fn a_closed_or_dropped_client_closes_the_input() {
    let (mut server, client) = connect_to_scripted_server().await;
    client.close();
    assert_eq!(client.wait_for_end().await, ConnectionEndReason::Dropped);
    assert_eq!(call(&client).await, Err(McpError::ConnectionEnded(ConnectionEndReason::Dropped)));
    let end = timeout(Duration::from_secs(45), server.lines.next_line()).await.unwrap();
    assert_eq!(end.unwrap(), None);
    let (mut server, client) = connect_to_scripted_server().await;
    drop(client);
    let end = timeout(Duration::from_secs(45), server.lines.next_line()).await.unwrap();
    assert_eq!(end.unwrap(), None);
}

/// Returns the end of a list whose pages all have these tools, and the number of pages.
async fn endless_list_result(tools: Value) -> (Result<Vec<ListedTool>, McpError>, usize) {
    let (mut server, client) = connect_to_scripted_server().await;
    let mut page_count = 0;
    let list = tokio::select! {
        list = client.list_tools() => list,
        () = async {
            loop {
                let request = server.next_message().await;
                let result = json!({"resultType": "complete", "tools": tools, "nextCursor": "again",
                    "ttlMs": 3_600_000, "cacheScope": "private"});
                server.answer(&request, result).await;
                page_count += 1;
            }
        } => unreachable!(),
    };
    (list, page_count)
}

#[tokio::test]
async fn the_list_of_tools_has_an_end() {
    let tool = |schema: Value| json!({"name": "a", "inputSchema": schema});
    let many_tools = vec![tool(json!({})); 400];
    let tool_with_many_values = tool(json!({"enum": vec![0; 20_000]}));
    let long_tool = tool(json!({"description": "x".repeat(1_500_000)}));
    for (tools, expected) in [
        (json!([]), 100),
        (json!(many_tools), 3),
        (json!([tool_with_many_values]), 3),
        (json!([long_tool]), 3),
    ] {
        let (list, page_count) = endless_list_result(tools).await;
        assert_eq!((list, page_count), (Err(McpError::ToolListTooLong), expected));
    }
}

#[tokio::test]
async fn an_answer_becomes_text() {
    let image = json!({"type": "image", "data": "AAAA", "mimeType": "image/png"});
    let link = json!({"type": "resource_link", "uri": "file:///a", "name": "a"});
    let file = json!({"type": "resource", "resource": {"uri": "file:///b", "text": "inside"}});
    let text_block = |text: &str| json!({"type": "text", "text": text});
    let rows = [
        (json!({"content": [text_block("a"), text_block("b")]}), "a\nb", false),
        (
            json!({"content": [text_block("a")], "structuredContent": {"b": [1]}}),
            "{\"b\":[1]}",
            false,
        ),
        (json!({"content": [text_block("no")], "isError": true}), "no", true),
        (json!({"content": []}), "", false),
        (
            json!({"content": [image, link, file]}),
            "[image image/png: not passed on]\n[link: file:///a]\ninside",
            false,
        ),
    ];
    let (mut server, client) = connect_to_scripted_server().await;
    for (mut result, text, is_error) in rows {
        result["resultType"] = json!("complete");
        let (answer, ()) = tokio::join!(call(&client), async {
            let request = server.next_message().await;
            server.answer(&request, result).await;
        });
        assert_eq!(answer, Ok(ToolCallResult { text: text.to_owned(), is_error }));
    }
    for (result, expected) in [
        (
            json!({"resultType": "input_required", "inputRequests": {}}),
            McpError::UnsupportedToolRequest("requests input"),
        ),
        (
            json!({"resultType": "task", "taskId": "t", "status": "working", "createdAt": "2027-01-15T08:00:00Z",
                "lastUpdatedAt": "2027-01-15T08:00:00Z", "ttlMs": 1000}),
            McpError::UnsupportedToolRequest("defers its result"),
        ),
        (json!("text"), McpError::MalformedAnswer),
        (json!({"unknown": 1}), McpError::MalformedAnswer),
    ] {
        let (answer, ()) = tokio::join!(call(&client), async {
            let request = server.next_message().await;
            server.answer(&request, result).await;
        });
        assert_eq!(answer, Err(expected));
    }
    for error in [json!("boom"), json!({"message": "no code"})] {
        let (answer, ()) = tokio::join!(call(&client), async {
            let request = server.next_message().await;
            server.send(json!({"jsonrpc": "2.0", "id": request["id"], "error": error})).await;
        });
        assert_eq!(answer, Err(McpError::MalformedAnswer));
    }
}
