//! A wall clock that is set by hours or by a year while an agent works.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use algonius_actors::ports::clock::Clock;
use algonius_supervisor::platform::clock::WallClock;
use chrono::{DateTime, TimeDelta, Utc};

use crate::harness::client::{completed_outcome, task_outcome};
use crate::harness::{EmbeddedService, ServiceProcess, Setup, gated_agent_config};

/// Settings of an agent that writes. Its folder is not that of the test, in which the program of the service may be.
const READ_WRITE_SETTINGS: &str = "access = 'read-write'\nworking_dir = 'HERE'";

/// Two hours, and more than a year, in seconds.
const JUMP_SECONDS: [i64; 4] = [7_200, -7_200, 34_560_000, -34_560_000];

/// The wall's time and so many seconds.
struct OffsetClock(AtomicI64);

impl OffsetClock {
    fn with_offset(seconds: i64) -> Arc<Self> {
        Arc::new(Self(AtomicI64::new(seconds)))
    }
}

impl Clock for OffsetClock {
    fn now(&self) -> DateTime<Utc> {
        WallClock.now() + TimeDelta::seconds(self.0.load(Ordering::SeqCst))
    }
}

#[tokio::test]
async fn a_clock_jump_ends_no_running_and_no_queued_task() {
    for seconds in JUMP_SECONDS {
        let (setup, clock) = (
            Setup::new(&gated_agent_config("one", READ_WRITE_SETTINGS)),
            OffsetClock::with_offset(0),
        );
        let embedded_service =
            EmbeddedService::start_with_clock(&setup, Arc::clone(&clock) as _).await;
        let running_id = embedded_service.client.start_task("one", "ann").await;
        setup.wait_for_file_text("log", "start ann\n").await;
        let waiting_id = embedded_service.client.start_task("one", "bob").await;
        clock.0.store(seconds, Ordering::SeqCst);
        let third_id = embedded_service.client.start_task("one", "cid").await;
        setup.open_gate("go");
        for (id, expected) in [(running_id, "ann\n"), (waiting_id, "bob\n"), (third_id, "cid\n")] {
            let ended_task = embedded_service.client.wait_for_task_end("one", &id).await;
            // Deadlines, retries and queue positions follow a clock that does not jump
            assert_eq!(task_outcome(&ended_task), completed_outcome(expected), "{seconds}");
        }
        embedded_service.stop(&setup).await;
    }
}

#[tokio::test]
async fn a_reattached_task_keeps_its_timeout_after_a_clock_jump() {
    for seconds in JUMP_SECONDS {
        let mut service = ServiceProcess::start(&gated_agent_config("one", "timeout = 3000")).await;
        let id = service.start_task("one", "ann").await;
        service.setup.wait_for_file_text("log", "start ann\n").await;
        service.kill9().await;
        let embedded_service =
            EmbeddedService::start_with_clock(&service.setup, OffsetClock::with_offset(seconds))
                .await;
        service.setup.open_gate("go");
        let ended_task = embedded_service.client.wait_for_task_end("one", &id).await;
        // The run time of resumed work is the lifetime of its process, whatever the wall
        // clock shows
        assert_eq!(task_outcome(&ended_task), completed_outcome("ann\n"), "{seconds}");
        embedded_service.stop(&service.setup).await;
    }
}
