//! Clients that others wrote, driven against the real program.
//!
//! They come from a package registry, so they run only where `ALGONIUS_CLIENTS=1` asks for them;
//! a fault of the way there is a failure then.
#![expect(clippy::expect_used, clippy::panic, reason = "a helper that cannot help fails the test")]

#[path = "clients/sdk.rs"]
mod sdk;
#[path = "clients/service.rs"]
mod service;

use std::collections::BTreeMap;
use std::io::Write as _;

use sdk::Sdk;
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

/// Whether clients are wanted.
fn are_wanted(test: &str) -> bool {
    let wanted = std::env::var("ALGONIUS_CLIENTS").is_ok_and(|value| value == "1");
    if !wanted {
        let why = "clients of others are not driven; ALGONIUS_CLIENTS=1 drives them \
            (needs python3 with venv and PyPI, and node with npm and its registry)";
        skip(test, why);
    }
    wanted
}

/// Says it loudly, past the capture of test output.
fn skip(test: &str, why: &str) {
    _ = writeln!(std::io::stderr(), "SKIPPED: {test}: {why}");
}

/// Drives every binding through an SDK.
fn drive(sdk: &Sdk, script: &str, fewest: usize) {
    let service = Service::start(include_str!("clients/own.toml"), STRANGER);
    let report = sdk.report(script, &[service.url(), service.token()]);
    hold(&report, fewest, &service);
    assert!(service.stop().success(), "the service did not end well");
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
    let report = Sdk::Python03.report("python03.py", &["shipped", service.url(), service.token()]);
    hold(&report, 18, &service);
    assert!(service.stop().success(), "the service did not end well");
}

#[test]
fn the_official_python_sdk_sees_cancellations_failures_and_other_callers() {
    if !are_wanted("the official Python SDK, agents of the test") {
        return;
    }
    let service = Service::start(include_str!("clients/own.toml"), STRANGER);
    let report =
        Sdk::Python03.report("python03.py", &["own", service.url(), service.token(), STRANGER]);
    hold(&report, 7, &service);
    assert!(service.stop().success(), "the service did not end well");
}

#[test]
fn every_binding_serves_the_official_python_sdk_of_0_3() {
    if are_wanted("the official Python SDK of 0.3, every binding") {
        drive(&Sdk::Python03, "bindings03.py", 27);
    }
}

#[test]
fn every_binding_serves_the_official_python_sdk_of_1_0() {
    if are_wanted("the official Python SDK of 1.x, every binding") {
        drive(&Sdk::Python10, "bindings10.py", 33);
    }
}

#[test]
fn every_binding_serves_the_official_javascript_sdks() {
    let test = "the official JavaScript SDKs, every binding";
    if !are_wanted(test) {
        return;
    }
    if !sdk::has_node() {
        skip(test, "node or npm is not installed");
        return;
    }
    drive(&Sdk::JavaScript03, "sdk.mjs", 21);
    drive(&Sdk::JavaScript10, "sdk.mjs", 24);
}

#[test]
fn the_numbers_are_read_by_the_client_of_prometheus() {
    if !are_wanted("the client of Prometheus") {
        return;
    }
    let service = Service::start(&shipped(), STRANGER);
    let report = Sdk::Prometheus.report("metrics.py", &[service.url(), service.token()]);
    hold(&report, 6, &service);
    assert!(service.stop().success(), "the service did not end well");
}

#[test]
fn the_api_for_programs_is_as_its_description_says() {
    if !are_wanted("Schemathesis on the API for programs") {
        return;
    }
    let service = Service::start(include_str!("clients/api.toml"), STRANGER);
    let report = Sdk::OpenApi.report("api.py", &[service.url(), STRANGER]);
    hold(&report, 70, &service);
    assert!(service.stop().success(), "the service did not end well");
}
