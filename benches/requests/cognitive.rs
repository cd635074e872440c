//! A cognitive agent whose model answers at once, so that the processor time is that of the service.

use algonius_gauge::load::{StopCondition, run_load};
use algonius_gauge::process::thread_cpu_time_ms;
use algonius_gauge::report::{BenchReport, Goal, ResultRow};
use algonius_gauge::round::Rounds;
use algonius_gauge::service::Service;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};

use super::PROGRAM;

/// Model turns of a run; the last one gives the answer.
const TURNS_PER_RUN: usize = 10;
/// Bytes of the message.
const MESSAGE_BYTES: usize = 64;

/// Measures row 24: runs of ten turns, one after the other. Each turn but the last calls the clock.
pub(crate) async fn measure(report: &mut BenchReport) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(serve_model(listener));
    let config = format!(
        "[models.bench]\nbase_url = \"http://{address}/v1\"\n\
         [tools.now]\nsource = \"handler\"\nhandler = {{ kind = \"clock\" }}\n\
         [agents.thinker]\nkind = \"cognitive\"\nlayer = \"perceptual\"\n\
         model_id = \"bench/model\"\ntools = [\"now\"]\n"
    );
    let service = Service::start(PROGRAM, "", &config).await;
    let load_request = service.json_rpc_load_request("thinker", MESSAGE_BYTES);
    let stop_condition = StopCondition::Elapsed(Rounds::run_duration());
    // The first runs open connections and fill caches.
    run_load(service.address, &load_request, 1, stop_condition).await;
    let cpu_ms_before = service.sum_over_processes(thread_cpu_time_ms);
    let run_times = run_load(service.address, &load_request, 1, stop_condition).await;
    let cpu_ms = service.sum_over_processes(thread_cpu_time_ms) - cpu_ms_before;
    let run_count = run_times.times.len();
    report.add_row(ResultRow {
        number: 24,
        description: "processor time of one turn of a cognitive agent".to_owned(),
        value: cpu_ms / (run_count * TURNS_PER_RUN).max(1) as f64,
        unit: "ms".to_owned(),
        goal: Goal::AtMost(2.0, 1.0),
        details: format!(
            "{run_count} runs of {TURNS_PER_RUN} turns, each with a call; {:.0} runs/s",
            run_times.rate()
        ),
    });
}

/// Serves replies: a call, until the conversation has enough of them.
async fn serve_model(listener: TcpListener) {
    while let Ok((connection, _)) = listener.accept().await {
        tokio::spawn(serve_connection(connection));
    }
}

async fn serve_connection(connection: TcpStream) -> Option<()> {
    let mut connection = BufReader::new(connection);
    loop {
        let mut length = 0;
        loop {
            let mut line = String::new();
            if connection.read_line(&mut line).await.ok()? == 0 {
                return None;
            }
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().ok()?;
            }
            if line == "\r\n" {
                break;
            }
        }
        let mut body = vec![0; length];
        connection.read_exact(&mut body).await.ok()?;
        let turns = String::from_utf8_lossy(&body).matches(r#""assistant""#).count();
        let body = model_reply(turns + 1 >= TURNS_PER_RUN);
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        connection.write_all((head + &body).as_bytes()).await.ok()?;
    }
}

/// Returns a reply with one call.
fn model_reply(is_last: bool) -> String {
    let (name, arguments) =
        if is_last { ("final_answer", r#"{\"answer\":\"done\"}"#) } else { ("now", "{}") };
    format!(
        r#"{{"choices":[{{"index":0,"finish_reason":"tool_calls","message":{{"role":"assistant","content":null,"tool_calls":[{{"id":"c","type":"function","function":{{"name":"{name}","arguments":"{arguments}"}}}}]}}}}],"usage":{{"prompt_tokens":9,"completion_tokens":3}}}}"#
    )
}
