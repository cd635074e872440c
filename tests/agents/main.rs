//! Tests of real command-line agents, driven over A2A without a network, against a simulated model.
//!
//! The agents come from package registries, so they run only if `ALGONIUS_AGENTS=1` selects all of them, or
//! `ALGONIUS_AGENTS=claude,codex` these. Each has a namespace of its own with loopback alone, in which the real service
//! and the fake model run too.
#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a helper that cannot help fails the test"
)]

mod agents;
mod cases;
mod client;
mod fixture;
mod install;
mod leftover_files;
mod limits;
mod measurements;
mod model;
mod network_namespace;
#[path = "../clients/package_install.rs"]
mod package_install;
mod permissions;
mod processes;
#[path = "../clients/service.rs"]
mod service;

use std::io::Write as _;

use agents::TestedAgent;
use algonius_skips::skip;

/// Installs an agent and runs every case with it, if it is selected and available.
fn install_and_run_cases(agent: &TestedAgent) {
    if network_namespace::is_inside() {
        fixture::run_cases(agent);
        return;
    }
    let skip_reason = match std::env::var("ALGONIUS_AGENTS") {
        Err(_) => Some("real agents are not driven; ALGONIUS_AGENTS=1 drives them".to_owned()),
        Ok(selection)
            if selection != "1" && !selection.split(',').any(|name| name == agent.name) =>
        {
            Some(format!("not among ALGONIUS_AGENTS={selection}"))
        }
        Ok(_) => {
            install::missing_requirement(agent).or_else(network_namespace::missing_requirement)
        }
    };
    match skip_reason {
        Some(reason) => skip(&format!("{}: {reason}", agent.name)),
        None => match install::install_agent(agent) {
            Ok(folders) => {
                print_report(&network_namespace::run_test_inside(agent.test_name, &folders));
            }
            Err(reason) => skip(&format!("{}: {reason}", agent.name)),
        },
    }
}

/// Prints the report of an agent past the capture of test output.
fn print_report(text: &str) {
    _ = writeln!(std::io::stderr(), "{text}");
}

#[test]
fn claude_code_is_served() {
    install_and_run_cases(&agents::CLAUDE);
}

#[test]
fn codex_is_served() {
    install_and_run_cases(&agents::CODEX);
}

#[test]
fn gemini_is_served() {
    install_and_run_cases(&agents::GEMINI);
}

#[test]
fn copilot_is_served() {
    install_and_run_cases(&agents::COPILOT);
}

#[test]
fn continue_is_served() {
    install_and_run_cases(&agents::CONTINUE);
}

#[test]
fn opencode_is_served() {
    install_and_run_cases(&agents::OPENCODE);
}

#[test]
fn qwen_code_is_served() {
    install_and_run_cases(&agents::QWEN);
}

#[test]
fn llm_is_served() {
    install_and_run_cases(&agents::LLM);
}

#[test]
fn aider_is_served() {
    install_and_run_cases(&agents::AIDER);
}
