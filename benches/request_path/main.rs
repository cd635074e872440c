//! The request path end to end, next to a bare spawn of the same program in the same run.
//!
//! `benches/README.md` says how to read what it prints.
#![expect(clippy::expect_used, reason = "a bench that cannot measure must not print numbers")]
#![expect(clippy::disallowed_types, reason = "a bench measures real time")]

mod bare;
mod held;
mod house;
mod measure;

use std::io::{self, Write as _};
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::runtime::Runtime;

use self::bare::{bare, bare_wide, cat};
use self::held::{Hold, held_wide};
use self::house::{House, send_wide};
use self::measure::Bench;

/// How many are in flight in the wide kinds.
const WIDE: usize = 10;

fn main() {
    tracing_subscriber::fmt().with_writer(io::sink).init();
    let runtime = Runtime::new().expect("a runtime");
    let house = Arc::new(runtime.block_on(House::start()));
    let (program, text) = (cat(), house.text.clone());
    let hold = Arc::new(runtime.block_on(Hold::start(program.clone(), text.clone())));
    let mut bench = Bench::new();
    bench.measure("bare, 1 in flight", |times| (0..times).for_each(|_| bare(&program, &text)));
    bench.measure("held, 1 in flight", |times| {
        runtime.block_on(async {
            for _ in 0..times {
                hold.run().await;
            }
        });
    });
    bench.measure("send, 1 in flight", |times| {
        runtime.block_on(async {
            for _ in 0..times {
                house.send().await;
            }
        });
    });
    bench.measure("bare, 10 in flight", |times| bare_wide(&program, &text, times));
    bench.measure("held, 10 in flight", |times| held_wide(&runtime, &hold, times));
    bench.measure("send, 10 in flight", |times| send_wide(&runtime, &house, times));
    let task = runtime.block_on(house.send());
    bench.measure("tasks/get", |times| {
        runtime.block_on(async {
            for _ in 0..times {
                house.call("tasks/get", json!({"id": task})).await;
            }
        });
    });
    bench.measure("status", |times| {
        runtime.block_on(async {
            for _ in 0..times {
                house.ask("/status", None).await;
            }
        });
    });
    bench.criterion.final_summary();
    _ = io::stdout().write_all(bench.summary().as_bytes()); // Nobody reads a closed pipe.
    runtime.block_on(hold.end());
    if let Ok(house) = Arc::try_unwrap(house) {
        runtime.block_on(house.running.stop(Duration::from_secs(5)));
    }
}
