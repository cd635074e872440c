//! Many connections that are slow, idle or deaf: they are cut, they cost little, and others do not
//! notice.

use std::time::Duration;

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::harness::client::{completed_outcome, message_params_with_id, task_id, task_outcome};
use crate::harness::processes::{
    cpu_ticks, open_socket_count, peak_memory_bytes, reset_peak_and_read_rss,
};
use crate::harness::{
    ServiceProcess, Setup, fake_agent_config, json_rpc_request_body, message_params, poll_until,
    within_deadline,
};

const MIB: u64 = 1 << 20;

/// Longer than whatever is heavy here takes on a busy machine.
const HEAVY_WORK_TIMEOUT: Duration = Duration::from_secs(200);

/// By how much the memory of the service grew at most while `work` went on.
async fn measure_memory_growth(service: &ServiceProcess, work: impl Future<Output = ()>) -> u64 {
    let initial_bytes = reset_peak_and_read_rss(service.pid());
    work.await;
    peak_memory_bytes(service.pid()).saturating_sub(initial_bytes)
}

/// Connections that have sent this.
async fn open_connections(service: &ServiceProcess, count: usize, bytes: &[u8]) -> Vec<TcpStream> {
    let mut streams = Vec::with_capacity(count);
    for _ in 0..count {
        let mut stream = service.connect().await;
        _ = stream.write_all(bytes).await; // One too many is closed at once.
        streams.push(stream);
    }
    streams
}

/// A connection that takes in little before somebody reads, and has sent this.
async fn connect_without_reading(service: &ServiceProcess, bytes: &[u8]) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    let mut stream =
        within_deadline("a connection", socket.connect(service.address)).await.unwrap();
    stream.write_all(bytes).await.unwrap();
    stream
}

/// Sends a byte from time to time, until the other side closes.
async fn send_slowly(mut stream: TcpStream) {
    let mut ticks = tokio::time::interval(Duration::from_millis(100));
    let mut buffer = [0; 64];
    loop {
        tokio::select! {
            read = stream.read(&mut buffer) => match read {
                Ok(0) | Err(_) => return,
                Ok(_) => {}
            },
            _ = ticks.tick() => if stream.write_all(b"x").await.is_err() { return },
        }
    }
}

#[tokio::test]
async fn slow_heads_and_bodies_are_cut_and_delay_no_other_caller() {
    let server_settings = "header_timeout = 3\nbody_timeout = 3";
    let service =
        Setup::with_server_settings(server_settings, &fake_agent_config("echo", "echo", ""))
            .start()
            .await;
    let head = b"GET /status HTTP/1.1\r\nHost: localhost\r\nX-Slow: ";
    let body = format!(
        "POST /agents/echo/v1 HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\n\
         Content-Type: application/json\r\nContent-Length: 100000\r\n\r\n{{",
        service.token
    );
    let mut slow_clients = JoinSet::new();
    let growth_bytes = measure_memory_growth(&service, async {
        for stream in open_connections(&service, 300, head).await {
            slow_clients.spawn(send_slowly(stream));
        }
        for stream in open_connections(&service, 40, body.as_bytes()).await {
            slow_clients.spawn(send_slowly(stream));
        }
        for _ in 0..10 {
            assert_eq!(
                task_outcome(&service.send("echo", "hello").await),
                completed_outcome("hello")
            );
        }
    })
    .await;
    assert!(growth_bytes < 64 * MIB, "grew by {growth_bytes} bytes");
    within_deadline("the end of the slow", async {
        while slow_clients.join_next().await.is_some() {}
    })
    .await;
    assert_eq!(task_outcome(&service.send("echo", "again").await), completed_outcome("again"));
}

/// The first bytes of HTTP/2 begin like a request of HTTP/1, and are read without a timer there.
#[tokio::test]
async fn a_connection_without_a_protocol_is_closed() {
    let setup =
        Setup::with_server_settings("header_timeout = 0.5", &fake_agent_config("echo", "echo", ""));
    let service = setup.start().await;
    for bytes in [b"".as_slice(), b"P", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r"] {
        let mut stream = service.connect().await;
        stream.write_all(bytes).await.unwrap();
        let mut received_bytes = Vec::new();
        _ = within_deadline("the close", stream.read_to_end(&mut received_bytes)).await; // A reset is a close.
        assert_eq!(received_bytes, b"");
    }
}

#[tokio::test]
async fn two_thousand_idle_connections_cost_little_memory() {
    // Half of the places are for one address that does not authenticate.
    let server_settings = "max_connections = 4200\nheader_timeout = 60";
    let service =
        Setup::with_server_settings(server_settings, &fake_agent_config("echo", "echo", ""))
            .start()
            .await;
    let initial_sockets = open_socket_count(service.pid());
    let mut idle_connections = Vec::new();
    let growth_bytes = measure_memory_growth(&service, async {
        idle_connections = open_connections(&service, 2000, b"GET /heal").await;
        poll_until("all of them", async || {
            (open_socket_count(service.pid()) >= initial_sockets + 2000).then_some(())
        })
        .await;
    })
    .await;
    assert!(growth_bytes < 100 * MIB, "grew by {growth_bytes} bytes");
    assert_eq!(task_outcome(&service.send("echo", "hello").await), completed_outcome("hello"));
    drop(idle_connections);
    poll_until("their places", async || {
        (open_socket_count(service.pid()) <= initial_sockets + 1).then_some(())
    })
    .await;
}

/// What says 20 MB in pieces, when the gate is open.
const TALKER_AGENT: &str = r#"
[agents.talker]
command = "sh"
args = ["-c", '''
until [ -e HERE/go ]; do sleep 0.05; done
words=$(printf 'some %.0s' $(seq 1600))
yes "{\"type\":\"text\",\"text\":\"$words\"}" | head -n 2500
''']
output = "events"
max_output_bytes = 40000000
"#;

#[tokio::test(flavor = "multi_thread")]
async fn followers_that_never_read_are_disconnected() {
    let setup = Setup::with_server_settings("write_timeout = 1", TALKER_AGENT);
    let service = setup.start().await;
    let initial_sockets = open_socket_count(service.pid());
    let task = service.start_task("talker", "talk").await;
    let body = json_rpc_request_body("tasks/resubscribe", &json!({"id": task}));
    let request = format!(
        "POST /agents/talker/v1 HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        service.token,
        body.len()
    );
    let mut clients = Vec::new();
    let growth_bytes = measure_memory_growth(&service, async {
        for _ in 0..20 {
            clients.push(connect_without_reading(&service, request.as_bytes()).await);
        }
        service.setup.open_gate("go");
        let talker_end = async {
            while service.fetch_agent_status("talker").await["running"] != json!([]) {
                // Between two readings; the deadline is around it.
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
        };
        timeout(HEAVY_WORK_TIMEOUT, talker_end).await.expect("the talker ends");
    })
    .await;
    assert!(growth_bytes < 96 * MIB, "grew by {growth_bytes} bytes");
    poll_until("their end", async || {
        (open_socket_count(service.pid()) <= initial_sockets + 1).then_some(())
    })
    .await;
    assert_eq!(clients.len(), 20);
    let list = service.get("/api/v1/executions").await.json();
    assert_eq!(list["executions"][0]["outcome"], "completed", "{list}");
}

/// Prints 50 MB in lines.
const PRINTER_AGENT: &str = r#"
[agents.printer]
command = "sh"
args = ["-c", "yes 'to and fro and so on' | head -c 50000000"]
max_concurrent = 20
queue_depth = 20
"#;

/// The service stores more than a fifth of the output of each program, and no client reads any of it.
#[tokio::test(flavor = "multi_thread")]
async fn twenty_unread_streams_of_50_megabytes_use_little_memory() {
    const MAX_GROWTH_BYTES: u64 = 128 * MIB;
    let agents = [PRINTER_AGENT, &fake_agent_config("echo", "echo", "")].concat();
    let service = Setup::with_server_settings("write_timeout = 3600", &agents).start().await;
    reset_peak_and_read_rss(service.pid());
    let mut clients = Vec::new();
    for number in 0..20 {
        let body = json_rpc_request_body(
            "message/stream",
            &message_params_with_id(&format!("message-{number}"), "print"),
        );
        let request = format!(
            "POST /agents/printer/v1 HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\n\
             Content-Type: application/json\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
            service.token,
            body.len()
        );
        clients.push(connect_without_reading(&service, request.as_bytes()).await);
    }
    let printer_end = async {
        loop {
            let echo_task = service.send("echo", "hello").await;
            assert_eq!(task_outcome(&echo_task), completed_outcome("hello"));
            let printer = service.fetch_agent_status("printer").await;
            if printer["running"] == json!([]) && printer["queued"] == json!([]) {
                return;
            }
            // Pause between two checks; the whole loop has a deadline.
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    };
    timeout(HEAVY_WORK_TIMEOUT, printer_end).await.expect("the programs end");
    let peak_bytes = peak_memory_bytes(service.pid());
    // R-98: Programs that print much output use little memory of the service, also if no client
    // reads their answers
    assert!(peak_bytes < MAX_GROWTH_BYTES, "had {} MiB", peak_bytes / MIB);
    let mut stream = clients.pop().expect("twenty");
    let mut answer = String::new();
    timeout(HEAVY_WORK_TIMEOUT, stream.read_to_string(&mut answer))
        .await
        .expect("the stream ends")
        .unwrap();
    assert!(answer.len() > 10 << 20, "{} bytes", answer.len());
    assert!(answer.contains(" bytes were dropped ...]") && answer.contains("\"completed\""));
    let peak_bytes = peak_memory_bytes(service.pid());
    assert!(peak_bytes < MAX_GROWTH_BYTES, "had {} MiB after a stream was read", peak_bytes / MIB);
}

/// Both print 4 MB; the first ends when the gate is open.
const TWO_PRINTER_AGENTS: &str = r#"
[agents.first]
access = "read-write"
command = "sh"
args = ["-c", "yes 'to and fro' | head -c 4000000; echo > HERE/printed; until [ -e HERE/go ]; do sleep 0.05; done"]
[agents.second]
command = "sh"
args = ["-c", "yes 'to and fro' | head -c 4000000"]
idle_timeout = 3
"#;

#[tokio::test]
async fn a_program_that_waits_for_output_memory_is_not_idle() {
    let agents = [TWO_PRINTER_AGENTS, &fake_agent_config("echo", "echo", "")].concat();
    let service = Setup::with_server_settings("output_memory = 1048576", &agents).start().await;
    let first = service.start_task("first", "").await;
    service.setup.wait_for_file_text("printed", "\n").await;
    let second = service.start_task("second", "").await;
    poll_until("a stream that waits", async || {
        let memory = service.get("/status").await.json()["machine"]["outputMemory"].clone();
        assert_eq!(memory["limitBytes"], 1_048_576, "{memory}");
        (memory["waiting"].as_u64() > Some(0)).then_some(())
    })
    .await;
    let check_deadline = tokio::time::Instant::now() + Duration::from_secs(7);
    while tokio::time::Instant::now() < check_deadline {
        assert_eq!(task_outcome(&service.send("echo", "hello").await), completed_outcome("hello"));
        let state = service.fetch_execution(&second).await["outcome"].clone();
        // R-99: Beyond `output_memory`, a program waits until there is memory for its output, and
        // counts as busy while it waits
        assert_eq!(state, json!(null), "it has ended");
        tokio::time::sleep(Duration::from_millis(200)).await; // Between two readings.
    }
    service.setup.open_gate("go");
    for (agent, task) in [("first", first), ("second", second)] {
        let (state, text) = task_outcome(&service.wait_for_task_end(agent, &task).await);
        assert_eq!((state.as_str(), text.len()), ("completed", 4_000_000), "{agent}");
    }
}

#[tokio::test]
async fn too_many_connections_neither_stop_nor_load_the_service() {
    let setup =
        Setup::with_server_settings("header_timeout = 4", &fake_agent_config("echo", "echo", ""))
            .with_max_open_files(256);
    let service = setup.start().await;
    let connections = open_connections(&service, 400, b"GET /heal").await;
    let initial_ticks = cpu_ticks(service.pid());
    let mut closed_count = 0;
    for mut stream in connections {
        let mut received_bytes = Vec::new();
        _ = within_deadline("the close", stream.read_to_end(&mut received_bytes)).await; // A reset is a close.
        closed_count += 1;
    }
    assert_eq!(closed_count, 400);
    let cpu_used = cpu_ticks(service.pid()) - initial_ticks;
    assert!(cpu_used < 200, "worked for {cpu_used} hundredths of a second");
    assert_eq!(task_outcome(&service.send("echo", "hello").await), completed_outcome("hello"));
    assert!(
        service.stderr_text().contains("connection limit reduced"),
        "{}",
        service.stderr_text()
    );
    assert!(!service.stderr_text().contains("panicked"), "{}", service.stderr_text());
}

/// While as many connections are open as may be, what is asked over one of them is still done.
#[tokio::test]
async fn programs_start_while_all_connections_are_taken() {
    let setup =
        Setup::with_server_settings("header_timeout = 60", &fake_agent_config("echo", "echo", ""))
            .with_max_open_files(256);
    let service = setup.start().await;
    let mut first = service.connect().await;
    let body = json_rpc_request_body("message/send", &message_params("hello"));
    let request = format!(
        "POST /agents/echo/v1 HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\n\
         Content-Type: application/json\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
        service.token,
        body.len()
    );
    first.write_all(request.as_bytes()).await.unwrap();
    let connections = open_connections(&service, 300, b"GET /heal").await;
    first.write_all(body.as_bytes()).await.unwrap();
    let mut answer = String::new();
    within_deadline("the answer", first.read_to_string(&mut answer)).await.unwrap();
    let document = answer.split("\r\n\r\n").nth(1).unwrap();
    let document: serde_json::Value = serde_json::from_str(document).unwrap();
    assert_eq!(task_outcome(&document["result"]), completed_outcome("hello"), "{document}");
    assert!(!task_id(&document["result"]).is_empty() && connections.len() == 300);
}
