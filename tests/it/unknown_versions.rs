//! Versions of programs that are unknown, and custom presets that cannot be read: each has its cause.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;

use serde_json::{Value, json};

use crate::harness::{Setup, poll_until};

/// Agents whose programs run such a script for their version.
fn version_agents_config(scripts: &[(&str, &str)]) -> String {
    let agent_config = |(id, script): &(&str, &str)| {
        format!(
            "[agents.{id}]\ncommand = 'sh'\nargs = ['-c', 'cat']\n\
             program_version.args = ['-c', \"{script}\"]\n"
        )
    };
    scripts.iter().map(agent_config).collect()
}

#[tokio::test]
async fn each_cause_of_an_unknown_version_is_reported() {
    let scripts = [
        ("good", "echo tool 1.2"),
        ("onstderr", "echo tool 1.3 >&2"),
        ("long", "echo tool 1.4; head -c 1000000 /dev/zero"),
        ("updater", "echo tool 1.5; sleep 600 & exit 0"),
        ("silent", "exit 0"),
        ("failed", "echo node 18.1 is too old >&2; exit 3"),
        ("killed", "kill -9 $$"),
        ("other", "echo nightly"),
    ];
    let service = Setup::new(&version_agents_config(&scripts)).start().await;
    let program_status = async |id: &str| service.fetch_agent_status(id).await["program"].clone();
    let wait_for_report = async |id: &str| {
        poll_until(id, async || {
            let program = program_status(id).await;
            let is_known = program["version"].is_string() || program["warning"].is_string();
            is_known.then_some((program["version"].clone(), program["warning"].clone()))
        })
        .await
    };
    for (id, version) in [("good", "1.2"), ("onstderr", "1.3"), ("long", "1.4"), ("updater", "1.5")]
    {
        assert_eq!(wait_for_report(id).await, (json!(version), Value::Null), "{id}");
    }
    for (id, warning) in [
        ("silent", "the version command printed nothing"),
        ("failed", "the version command ended with exit code 3 and printed no version"),
        ("killed", "signal 9 ended the version command, and it printed no version"),
        ("other", "the version command printed no text that matches `program_version.regex`"),
    ] {
        assert_eq!(wait_for_report(id).await, (Value::Null, json!(warning)), "{id}");
    }
}

#[tokio::test]
async fn custom_presets_that_cannot_be_read_are_listed_with_the_cause() {
    let mut setup = Setup::new("[agents.a]\ncommand = 'cat'\n");
    let presets_folder = setup.config_sibling_path("presets");
    fs::create_dir(&presets_folder).unwrap();
    let preset_head = "[about]\ntitle = 'Mine'\nverified = true\n[agent]\n";
    for (name, content) in [
        ("good.toml", format!("{preset_head}command = 'cat'\n").into_bytes()),
        ("open.toml", preset_head.as_bytes().to_vec()),
        ("codex.toml", b"[about\n".to_vec()),
        ("latin.toml", b"[about]\ntitle = '\xe9'\n".to_vec()),
        ("long.toml", vec![b'#'; 300_000]),
        ("invalid.toml", format!("{preset_head}command = 'cat'\ntimeout = 5\n").into_bytes()),
        ("typo.toml", format!("{preset_head}command = 'cat'\ntimeuot = 500\n").into_bytes()),
        ("notes.txt", b"no preset".to_vec()),
    ] {
        fs::write(presets_folder.join(name), content).unwrap();
    }
    let name = OsString::from_vec(b"caf\xe9.toml".to_vec());
    fs::write(presets_folder.join(name), format!("{preset_head}command = 'cat'\n")).unwrap();
    let config = setup.write_config().to_str().unwrap().to_owned();
    let list_presets = async || {
        let output =
            setup.run_command(&["agents", "presets", "--json", "--config", &config], "").await;
        serde_json::from_str::<Value>(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"))
    };
    let preset_list = list_presets().await;
    let rows = preset_list["presets"].as_array().unwrap();
    for (name, warning) in [
        ("good", ""),
        ("open", ""),
        ("codex", "line 1: "),
        ("latin", "cannot be read: stream did not contain valid UTF-8"),
        ("long", "cannot be read: it is too long"),
        ("invalid", "line 6: must be 60 to 3600 seconds"),
        ("typo", "line 6: "),
        ("caf\u{fffd}", "cannot be read: its name is not UTF-8"),
    ] {
        let row = rows.iter().find(|row| row["preset"] == name);
        let row = row.unwrap_or_else(|| panic!("{name} is not in {preset_list}"));
        let actual_warning = row["warning"].as_str().unwrap_or_default();
        assert!(
            actual_warning.starts_with(warning) && warning.is_empty() == actual_warning.is_empty(),
            "{row}"
        );
        assert!(row["file"].is_string(), "{row}");
    }
    assert!(!preset_list.to_string().contains("notes"), "{preset_list}");
    fs::remove_dir_all(&presets_folder).unwrap();
    fs::write(&presets_folder, "no folder").unwrap();
    let output = setup.run_command(&["agents", "presets", "--config", &config], "").await;
    assert!(output.exit_code == Some(1) && output.stderr.contains("Not a directory"), "{output:?}");
    setup.set_config_text("[agents.a]\npreset = 'codex'\n");
    setup.write_config();
    let output = setup.run_command(&["check", &config], "").await;
    let cause = "the folder of presets, ";
    assert!(output.exit_code == Some(4) && output.stderr.contains(cause), "{output:?}");
}
