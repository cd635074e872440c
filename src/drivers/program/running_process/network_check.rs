//! Early warning of a machine without a network: some programs wait for one silently, others retry for minutes.

use std::convert::Infallible;
use std::future::pending;
use std::time::Duration;

use algonius_actors::driver::report::Reporter;
use algonius_actors::model::execution::event::EventKind;
use algonius_actors::model::program::ProgramSpec;
use tokio::time::sleep;

use crate::platform::network;

/// Time after which a program that reaches its model has usually answered, or waits for it.
const WARNING_DELAY: Duration = Duration::from_secs(5);

/// Warning that callers read.
const OFFLINE_WARNING: &str = "this machine has no way to other networks (no default route, no proxy), so the agent cannot \
    reach a model elsewhere";

/// Warns once about an attempt that needs a remote model and has no network. Never returns.
pub(super) async fn warn_if_offline(program: &ProgramSpec, reporter: &Reporter) -> Infallible {
    if needs_remote_model(program) {
        sleep(WARNING_DELAY).await;
        if !network::has_route_or_proxy() {
            let recorded = reporter
                .record_event(EventKind::Warning { message: OFFLINE_WARNING.to_owned() })
                .await;
            if let Err(error) = recorded {
                tracing::warn!(%error, "failed to record warning about missing network");
            }
        }
    }
    // The caller selects over this future, so it must not return.
    pending().await
}

/// Returns true if the program is a known agent that is not configured for a model on this machine.
fn needs_remote_model(program: &ProgramSpec) -> bool {
    let values = program.env.values().map(|variable| variable.value.as_str());
    let files = program
        .runtime_settings
        .agent_home
        .iter()
        .flat_map(|home| home.initial_files.values().map(String::as_str));
    program.runtime_settings.preset.is_some() && !values.chain(files).any(has_loopback_address)
}

fn has_loopback_address(text: &str) -> bool {
    ["://127.", "://localhost", "://[::1]", "://0.0.0.0"]
        .iter()
        .any(|address| text.contains(address))
}
