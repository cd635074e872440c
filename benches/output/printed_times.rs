//! Delay of output that contains the time at which its program printed it.

use std::time::{SystemTime, UNIX_EPOCH};

use algonius_gauge::a2a_requests::{request_builder, sized_message_params_0_3};
use algonius_gauge::client::KeepAliveClient;
use algonius_gauge::load::unique_number;
use algonius_gauge::run::{OperationTimes, nanoseconds};
use algonius_gauge::service::Service;
use tokio::time::Instant;

/// Times that the agent `clock` prints in each run.
const TIME_COUNT: usize = 10;

/// Digits of a time of the day in nanoseconds.
const TIME_DIGITS: usize = 19;

/// Follows so many runs of the agent `clock`, which prints `at` with the time of the day in nanoseconds. Returns the
/// times until the follower had each of them.
pub(crate) async fn measure_delays(service: &Service, run_count: usize) -> OperationTimes {
    let build_request = request_builder(&service.json_rpc_request(
        "clock",
        "message/stream",
        &sized_message_params_0_3(1),
    ));
    let mut client = KeepAliveClient::connect(service.address).await;
    let (mut delays, started_at) = (Vec::new(), Instant::now());
    for _ in 0..run_count {
        let mut stream_delays = Vec::new();
        let on_piece = |piece: &[u8]| stream_delays.extend(delays_of_printed_times(piece));
        let answer = client.send_streaming_request(&build_request(unique_number()), on_piece).await;
        assert!(
            answer.is_ok_and_contains("\"state\":\"completed\"")
                && stream_delays.len() >= TIME_COUNT
        );
        delays.extend(stream_delays.into_iter().take(TIME_COUNT)); // The last event repeats the text.
    }
    OperationTimes::new(delays, started_at.elapsed())
}

/// Returns the time since each time in these bytes was printed, in nanoseconds.
#[expect(clippy::disallowed_methods, reason = "the program prints the time of the day")]
fn delays_of_printed_times(bytes: &[u8]) -> Vec<u64> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, nanoseconds);
    let text = String::from_utf8_lossy(bytes);
    let times =
        text.split("at ").skip(1).filter_map(|rest| rest.get(..TIME_DIGITS)?.parse::<u64>().ok());
    times.map(|time| now.saturating_sub(time)).collect()
}
