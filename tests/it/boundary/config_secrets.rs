//! Agents cannot read a configuration or a preset with a secret, in each form in which a secret is written.

use std::fs;

use super::{BUBBLEWRAP_SETTING, UNCONFINED_SETTING, write_private_file};
use crate::harness::Setup;
use crate::harness::client::{completed_outcome, task_outcome};
use crate::read_only::skip_without_requirement;

/// Agent that prints how many lines of the configuration and of a preset it can read.
fn counting_agent(settings: &str, other_agent: &str) -> String {
    let script = "for f in supervisor.toml presets/spare.toml; do cat HERE/../service/$f 2>/dev/null | grep -c .; done; true";
    format!(
        "[agents.one]\ncommand = 'sh'\nargs = ['-c', '''{script}''']\nworking_dir = 'HERE/home'\n{settings}\n\
         [agents.keyed]\ncommand = 'cat'\n{other_agent}\n"
    )
}

/// Returns a setup with a preset that no agent uses.
fn setup_with_spare_preset(agents: &str, preset: &str) -> Setup {
    let setup = Setup::new(agents);
    let presets = setup.config_sibling_path("presets");
    fs::create_dir(&presets).unwrap();
    write_private_file(&presets.join("spare.toml"), preset);
    setup
}

async fn expect_readable(setup: Setup, expected: [bool; 2], context: &str) {
    let service = setup.start().await;
    let (state, text) = task_outcome(&service.send("one", "go").await);
    let readable: Vec<_> = text.lines().map(|count| count != "0").collect();
    assert_eq!(
        (state.as_str(), readable.as_slice()),
        ("completed", expected.as_slice()),
        "{context}"
    );
}

const HARMLESS_PRESET: &str = "[about]\n[agent]\ncommand = 'cat'\n";

/// Variables with a secret, as the text of the configuration.
const SECRET_VARIABLES: [&str; 4] = [
    r#"env.API_KEY = "second\\secret\u002dvalue""#,
    "env.API_KEY = 'second$$secret$$value'",
    "env.API_KEY = 'short'",
    "env.DATABASE_URL = 'postgres://user:s3cr3t-pw@host/db'",
];

#[tokio::test]
async fn a_secret_in_the_configuration_closes_it_under_landlock() {
    if skip_without_requirement("Landlock 6") {
        return;
    }
    for other_agent in SECRET_VARIABLES {
        let agents = counting_agent("", other_agent);
        let setup = setup_with_spare_preset(&agents, HARMLESS_PRESET).without_bubblewrap();
        expect_readable(setup, [false, true], other_agent).await;
    }
    let preset = format!("{HARMLESS_PRESET}env.API_KEY = 'short'\n");
    let agents = counting_agent("", "env.OTHER = 'value'");
    let setup = setup_with_spare_preset(&agents, &preset).without_bubblewrap();
    expect_readable(setup, [true, false], "an unused preset").await;
}

#[tokio::test]
async fn a_secret_in_the_configuration_closes_it_in_bubblewrap() {
    if skip_without_requirement("bubblewrap") {
        return;
    }
    for settings in [BUBBLEWRAP_SETTING, UNCONFINED_SETTING] {
        for other_agent in SECRET_VARIABLES {
            let agents = counting_agent(settings, other_agent);
            let setup = setup_with_spare_preset(&agents, HARMLESS_PRESET);
            expect_readable(setup, [false, true], other_agent).await;
        }
        let preset = format!("{HARMLESS_PRESET}env.API_KEY = 'short'\n");
        let agents = counting_agent(settings, "env.OTHER = 'value'");
        expect_readable(setup_with_spare_preset(&agents, &preset), [true, false], settings).await;
    }
}

/// Agents that start after a reload cannot read a configuration that has a secret now.
#[tokio::test]
async fn a_reload_closes_a_configuration_that_gained_a_secret() {
    if skip_without_requirement("Landlock 6") {
        return;
    }
    let agents = counting_agent("", "env.OTHER = 'value'");
    let setup = setup_with_spare_preset(&agents, HARMLESS_PRESET).without_bubblewrap();
    let mut service = setup.start().await;
    let (state, text) = task_outcome(&service.send("one", "go").await);
    assert_eq!(state, "completed");
    assert!(text.ends_with("\n3\n") && !text.starts_with('0'), "{text}");
    service.setup.set_config_text(&counting_agent("", SECRET_VARIABLES[2]));
    service.setup.write_config();
    let output = service.run_command(&["reload"], "").await;
    assert_eq!(output.exit_code, Some(0), "{}", output.stderr);
    let outcome = task_outcome(&service.send("one", "go").await);
    assert_eq!(outcome, completed_outcome("0\n3\n"));
}
