//! Clients that others wrote, driven against the real program.
//!
//! They come from a package registry, so they run only where `ALGONIUS_CLIENTS=1` asks for them;
//! a fault of the way there is a failure then.
#![expect(clippy::expect_used, clippy::panic, reason = "a helper that cannot help fails the test")]

#[path = "clients/python.rs"]
mod python;
#[path = "clients/service.rs"]
mod service;

use std::collections::BTreeMap;
use std::io::Write as _;

use service::Service;

/// A token that the agents of the test know, for one of them only.
const STRANGER: &str = "stranger-0123456789-0123456789-0123456789";

/// The shipped configuration; bad tokens are tried by the dozen here, so nobody is locked out.
fn shipped() -> String {
    let text = include_str!("../config/supervisor.toml");
    let open = text.replace("[lockout]\n", "[lockout]\nenabled = false\n");
    assert_ne!(text, open, "the shipped configuration has no lockout");
    open
}

/// Whether clients are wanted; says loudly, past the capture of test output, when they are not.
fn are_wanted(test: &str) -> bool {
    let wanted = std::env::var("ALGONIUS_CLIENTS").is_ok_and(|value| value == "1");
    if !wanted {
        let why = "clients of others are not driven; ALGONIUS_CLIENTS=1 drives them \
            (needs python3 with venv, and PyPI)";
        _ = writeln!(std::io::stderr(), "SKIPPED: {test}: {why}");
    }
    wanted
}

/// Asserts that a client says "ok" to at least so many scenarios and nothing else to any.
fn hold(report: &BTreeMap<String, String>, fewest: usize, service: &Service) {
    let bad: Vec<_> = report.iter().filter(|(_, verdict)| *verdict != "ok").collect();
    assert!(bad.is_empty(), "{bad:#?}\nthe service said:\n{}", service.said());
    assert!(report.len() >= fewest, "only {} scenarios: {report:#?}", report.len());
}

#[test]
fn the_official_python_sdk_is_served_with_the_shipped_configuration() {
    if !are_wanted("the official Python SDK, shipped configuration") {
        return;
    }
    let service = Service::start(&shipped(), STRANGER);
    let report = python::report(&["shipped", service.url(), service.token()]);
    hold(&report, 18, &service);
    assert!(service.stop().success(), "the service did not end well");
}

#[test]
fn the_official_python_sdk_sees_cancellations_failures_and_other_callers() {
    if !are_wanted("the official Python SDK, agents of the test") {
        return;
    }
    let service = Service::start(include_str!("clients/own.toml"), STRANGER);
    let report = python::report(&["own", service.url(), service.token(), STRANGER]);
    hold(&report, 7, &service);
    assert!(service.stop().success(), "the service did not end well");
}
