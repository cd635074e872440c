//! Clients that others wrote, driven against the real program.
//!
//! They come from a package registry, so they run only if `ALGONIUS_CLIENTS=1` selects them. A test is skipped if a
//! registry does not deliver its client. A client that was delivered and fails is a failure.
#![expect(clippy::expect_used, clippy::panic, reason = "a helper that cannot help fails the test")]

#[path = "clients/kits.rs"]
mod kits;
#[path = "clients/mcp.rs"]
mod mcp;
#[path = "clients/package_install.rs"]
mod package_install;
#[path = "clients/sdk.rs"]
mod sdk;
#[path = "clients/service.rs"]
mod service;

use std::collections::BTreeMap;

use algonius_skips::skip;
use sdk::ClientPackages;
use service::Service;

/// A token that the agents of the test know, for one of them only.
const STRANGER_TOKEN: &str = "stranger-0123456789-0123456789-0123456789";

/// The shipped configuration; bad tokens are tried by the dozen here, so nobody is locked out.
fn shipped_config_without_lockout() -> String {
    let text = include_str!("../config/supervisor.toml");
    let without_lockout = text.replace("[lockout]\n", "[lockout]\nenabled = false\n");
    assert_ne!(text, without_lockout, "the shipped configuration has no lockout");
    without_lockout
}

/// Returns whether clients are wanted; records the skip of the test otherwise.
fn clients_are_enabled_or_skip() -> bool {
    let is_enabled = std::env::var("ALGONIUS_CLIENTS").is_ok_and(|value| value == "1");
    if !is_enabled {
        skip("clients of others need PyPI and the registry of npm; ALGONIUS_CLIENTS=1 drives them");
    }
    is_enabled
}

/// Drives every binding through an SDK.
fn assert_sdk_script_succeeds(packages: &ClientPackages, script: &str, min_scenarios: usize) {
    let service = Service::start(include_str!("clients/own.toml"), STRANGER_TOKEN);
    let report = packages.run_script(script, &[service.url(), service.token()]);
    assert_report_and_stop(report, min_scenarios, service);
}

/// Asserts that a client reports "ok" for at least so many scenarios and nothing else for any, and that the service
/// ends well. Skips the test if a registry did not deliver the client.
fn assert_report_and_stop(
    report: Result<BTreeMap<String, String>, String>,
    min_scenarios: usize,
    service: Service,
) {
    match report {
        Err(reason) => skip(&reason),
        Ok(report) => {
            let failed_scenarios: Vec<_> =
                report.iter().filter(|(_, result)| *result != "ok").collect();
            assert!(
                failed_scenarios.is_empty(),
                "{failed_scenarios:#?}\nthe service said:\n{}",
                service.stderr_text()
            );
            assert!(report.len() >= min_scenarios, "only {} scenarios: {report:#?}", report.len());
        }
    }
    assert!(service.stop().success(), "the service did not end well");
}

#[test]
fn the_python_sdk_works_with_the_shipped_configuration() {
    if !clients_are_enabled_or_skip() {
        return;
    }
    let service = Service::start(&shipped_config_without_lockout(), STRANGER_TOKEN);
    let report = ClientPackages::Python03
        .run_script("python03.py", &["shipped", service.url(), service.token()]);
    assert_report_and_stop(report, 18, service);
}

#[test]
fn the_python_sdk_handles_cancellations_and_failures() {
    if !clients_are_enabled_or_skip() {
        return;
    }
    let service = Service::start(include_str!("clients/own.toml"), STRANGER_TOKEN);
    let report = ClientPackages::Python03
        .run_script("python03.py", &["own", service.url(), service.token(), STRANGER_TOKEN]);
    assert_report_and_stop(report, 7, service);
}

#[test]
fn the_python_sdk_of_0_3_works_with_every_binding() {
    if clients_are_enabled_or_skip() {
        assert_sdk_script_succeeds(&ClientPackages::Python03, "bindings03.py", 33);
    }
}

#[test]
fn the_python_sdk_of_1_0_works_with_every_binding() {
    if clients_are_enabled_or_skip() {
        assert_sdk_script_succeeds(&ClientPackages::Python10, "bindings10.py", 39);
    }
}

#[test]
fn the_javascript_sdks_work_with_every_binding() {
    if !clients_are_enabled_or_skip() {
        return;
    }
    if !sdk::has_node() {
        skip("node or npm is not installed");
        return;
    }
    assert_sdk_script_succeeds(&ClientPackages::JavaScript03, "sdk.mjs", 24);
    assert_sdk_script_succeeds(&ClientPackages::JavaScript10, "sdk.mjs", 30);
}

#[test]
fn agent_frameworks_work_with_their_known_faults() {
    if clients_are_enabled_or_skip() {
        assert_sdk_script_succeeds(&ClientPackages::Frameworks03, "frameworks.py", 3);
        assert_sdk_script_succeeds(&ClientPackages::Frameworks10, "frameworks.py", 8);
    }
}

#[test]
fn the_prometheus_client_reads_the_metrics() {
    if !clients_are_enabled_or_skip() {
        return;
    }
    let service = Service::start(&shipped_config_without_lockout(), STRANGER_TOKEN);
    let report =
        ClientPackages::Prometheus.run_script("metrics.py", &[service.url(), service.token()]);
    assert_report_and_stop(report, 6, service);
}

#[test]
fn the_api_matches_its_openapi_document() {
    if !clients_are_enabled_or_skip() {
        return;
    }
    let test = std::env::current_exe().expect("the path of the test");
    let fake = algonius_fakes::fake_agent_path(&test).display().to_string();
    let service =
        Service::start(&include_str!("clients/api.toml").replace("FAKE", &fake), STRANGER_TOKEN);
    let report = ClientPackages::OpenApi.run_script("api.py", &[service.url(), STRANGER_TOKEN]);
    assert_report_and_stop(report, 70, service);
}
