//! Check that agents can reach models on other machines.

use super::finding::Finding;
use crate::platform::network;

/// Checks the routes of this machine.
pub(super) fn check() -> Finding {
    if network::has_route_or_proxy() {
        return Finding::good("route", "a way to other networks exists");
    }
    let text =
        "this machine has no default route and no proxy: agents reach only models on this machine";
    let fix = "connect it, or set HTTPS_PROXY for the service";
    Finding::warning("route", text, fix)
}
