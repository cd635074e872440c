//! First contact: one configuration for all commands, the environment of the service that runs, proxies and
//! authorities, a machine without a network.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::harness::client::{completed, outcome};
use crate::harness::{ServiceClient, Setup, soon};
use crate::presets::preset_programs::{self, KEY};

const ECHO: &str = "[agents.echo]\ncommand = 'cat'\n";

/// Prints variables of its environment.
const ENV: &str =
    "[agents.env]\ncommand = 'sh'\nargs = ['-c', 'env | grep -i -e proxy -e cert -e CA_ | sort']\n";

/// The file of the present user of a setup.
fn of_user(setup: &Setup) -> PathBuf {
    setup.here().join("home/.config/algonius/supervisor.toml")
}

fn finding_about<'r>(report: &'r Value, about: &str) -> &'r Value {
    let findings = report["findings"].as_array().unwrap();
    let found = findings.iter().find(|finding| finding["about"] == about);
    found.unwrap_or_else(|| panic!("{about} is not in {report}"))
}

async fn doctor(setup: &Setup, env: &[(&str, &str)]) -> Value {
    let output = setup.run_with(&["doctor", "--json"], "", env).await;
    serde_json::from_str(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"))
}

#[tokio::test]
async fn every_command_finds_the_user_configuration() {
    let setup = Setup::new(ECHO);
    let file = of_user(&setup);
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(&file, "[agents.mine]\ncommand = 'cat'\n").unwrap();
    let checked = setup.run(&["check"], "").await;
    assert!(checked.stdout.starts_with("good: 1 agents (mine)"), "{checked:?}");
    let report = doctor(&setup, &[]).await;
    let told = finding_about(&report, "configuration file")["text"].as_str().unwrap();
    assert_eq!(told, format!("{} (the file of this user)", file.display()));
    finding_about(&report, "agent mine");
    // What is named wins.
    let named = setup.write().display().to_string();
    let checked = setup.run_with(&["check"], "", &[("ALGONIUS_CONFIG", &named)]).await;
    assert!(checked.stdout.starts_with("good: 1 agents (echo)"), "{checked:?}");
    let help = setup.run(&["--help"], "").await;
    for part in
        ["ALGONIUS_CONFIG names", "/etc/algonius/supervisor.toml", "the shipped configuration"]
    {
        assert!(help.stdout.contains(part), "{part}: {help:?}");
    }
}

#[tokio::test]
async fn adding_the_first_agent_creates_the_default_file() {
    let setup = preset_programs::install_all(Setup::new(ECHO));
    let file = of_user(&setup);
    let refused = setup.run(&["agents", "add", "codex"], "").await;
    assert_eq!((refused.code, file.exists()), (Some(1), false), "{refused:?}");
    let added = setup.run(&["agents", "add", "codex", "--yes"], "").await;
    assert_eq!(added.code, Some(0), "{added:?}");
    assert!(added.stdout.contains("supervisor.toml, which is new"), "{added:?}");
    let text = fs::read_to_string(&file).unwrap();
    assert!(text.contains("[agents.echo]") && text.ends_with("preset = \"codex\"\n"), "{text}");
    let service = setup.configured(&file).start().await;
    assert_eq!(outcome(&service.send("codex", "hi").await).0, "completed");
}

#[tokio::test]
async fn init_without_a_folder_writes_the_default_file() {
    let setup = Setup::new(ECHO);
    let made = setup.run(&["init"], "").await;
    assert_eq!(made.code, Some(0), "{made:?}");
    assert!(
        of_user(&setup).exists() && made.stdout.contains("next           algonius serve\n"),
        "{made:?}"
    );
    let again = setup.run(&["init"], "").await;
    assert_eq!(again.code, Some(1), "{again:?}");
}

/// The terminal has a key and the service has none, and the other way round.
#[tokio::test]
async fn keys_are_checked_in_the_running_service() {
    let service = preset_programs::install(Setup::new(ECHO), &["codex"]).start().await;
    let config = service.setup.write().display().to_string();
    let url = format!("http://{}", service.address);
    let env = [("CODEX_API_KEY", KEY), ("ALGONIUS_URL", &url)];
    let words = ["agents", "add", "codex", "--yes", "--config", &config];
    let told = service.setup.run_with(&words, "", &env).await;
    assert!(told.stdout.contains(&format!("read from the service that runs at {url}")), "{told:?}");
    assert!(told.stdout.contains("warning  agent codex, key: the agent has no key"), "{told:?}");

    let mut service = preset_programs::install_all(Setup::new(ECHO)).start().await;
    for name in ["CODEX_API_KEY", "OPENAI_API_KEY"] {
        service.setup.unset(name);
    }
    let config = service.setup.write().display().to_string();
    let url = format!("http://{}", service.address);
    let words = ["agents", "add", "codex", "--yes", "--config", &config];
    let told = service.setup.run_with(&words, "", &[("ALGONIUS_URL", &url)]).await;
    assert!(told.stdout.contains("good     agent codex, key: CODEX_API_KEY is set"), "{told:?}");
    assert!(!format!("{told:?}").contains(KEY), "{told:?}");
    let env = [("ALGONIUS_URL", url.as_str()), ("ALGONIUS_CONFIG", config.as_str())];
    let told = doctor(&service.setup, &env).await;
    assert_eq!(finding_about(&told, "agent codex, key")["weight"], "good", "{told}");
    let told = doctor(&service.setup, &[("ALGONIUS_CONFIG", &config)]).await;
    assert_eq!(finding_about(&told, "agent codex, key")["weight"], "warning", "{told}");
    let whose = finding_about(&told, "variables")["text"].as_str().unwrap();
    assert!(whose.starts_with("read from this terminal"), "{whose}");
    assert!(whose.contains("no service answers"), "{whose}");
}

#[tokio::test]
async fn administrators_see_environment_names_without_values() {
    let service = Setup::new(ECHO).env("SOME_KEY", KEY).start().await;
    let told = service.get("/api/v1/environment?names=SOME_KEY,OTHER_KEY").await;
    assert_eq!(
        told.json()["variables"],
        json!([
            {"name": "SOME_KEY", "set": true},
            {"name": "OTHER_KEY", "set": false},
        ])
    );
    assert!(!told.body.contains(KEY) && told.json()["readsFile"] == false, "{}", told.body);
    let file = service.setup.write().display().to_string().replace('/', "%2F");
    let told = service.get(&format!("/api/v1/environment?names=PATH&file={file}")).await;
    assert_eq!(told.json()["readsFile"], true);
    for wrong in ["?names=", "?names=A-B", "?names=1A"] {
        assert_eq!(
            service.get(&format!("/api/v1/environment{wrong}")).await.status,
            400,
            "{wrong}"
        );
    }
    let made = service.post("/api/v1/tokens", r#"{"name":"ann","scopes":["read","run"]}"#).await;
    let token = made.json()["token"].as_str().unwrap().to_owned();
    let ann = ServiceClient { address: service.address, token };
    assert_eq!(ann.get("/api/v1/environment?names=PATH").await.status, 403);
}

#[tokio::test]
async fn proxies_and_ca_files_reach_agents_with_a_network() {
    let proxy = "http://ann:pa55-of-the-proxy@127.0.0.1:3128";
    let other = ENV.replace("agents.env", "agents.cut") + "sandbox.network = false\n";
    let own =
        ENV.replace("agents.env", "agents.own") + "env = { HTTPS_PROXY = 'http://other:1' }\n";
    let none = ENV.replace("agents.env", "agents.none") + "network_env = false\n";
    let reads = "[agents.reads]\ncommand = 'sh'\nargs = ['-c', 'cat \"$SSL_CERT_FILE\"']\n";
    let splits = "[agents.splits]\ncommand = 'sh'\n\
                  args = ['-c', 'p=${HTTPS_PROXY#*ann:}; echo password ${p%@*}']\n";
    let setup = Setup::new(&format!("{ENV}{other}{own}{none}{reads}{splits}"));
    let authorities = setup.beside("ca.pem");
    fs::write(&authorities, "an authority").unwrap();
    let authorities = authorities.display().to_string();
    let variables =
        [("HTTPS_PROXY", proxy), ("no_proxy", "localhost"), ("SSL_CERT_FILE", &authorities)];
    let setup = variables.iter().fold(setup, |setup, (name, value)| setup.env(name, value));
    let service = setup.start().await;
    let (state, text) = outcome(&service.send("env", "x").await);
    let expected = format!("SSL_CERT_FILE={authorities}\nno_proxy=localhost\n");
    assert!(state == "completed" && text.ends_with(&expected), "{text}");
    assert!(text.starts_with("HTTPS_PROXY=http://") && !text.contains("pa55"), "{text}");
    assert_eq!(
        outcome(&service.send("own", "x").await).1,
        format!("HTTPS_PROXY=http://other:1\n{expected}")
    );
    for agent in ["cut", "none"] {
        assert_eq!(outcome(&service.send(agent, "x").await), completed(""), "{agent}");
    }
    assert_eq!(outcome(&service.send("reads", "x").await), completed("an authority"));
    let (_, split) = outcome(&service.send("splits", "x").await);
    assert!(split.starts_with("password ") && !split.contains("pa55"), "{split}");
    assert!(!service.stderr_text().contains("pa55"), "{}", service.stderr_text());
    let ledger = service.setup.ledger();
    let secret = b"pa55-of-the-proxy";
    assert!(!ledger.windows(secret.len()).any(|bytes| bytes == secret));
}

#[tokio::test]
async fn certificates_that_an_agent_cannot_read_are_warned_of() {
    let setup = Setup::new(ECHO).env("NODE_EXTRA_CA_CERTS", "/no/such/ca.pem");
    let config = setup.write().display().to_string();
    let told = setup.run(&["check", &config], "").await;
    assert_eq!(told.code, Some(0), "{told:?}");
    assert!(
        told.stderr.contains("NODE_EXTRA_CA_CERTS names /no/such/ca.pem, which does not exist"),
        "{told:?}"
    );
}

/// In a namespace without any route, as on a machine whose cable is out.
#[tokio::test]
async fn a_machine_without_a_network_is_reported_in_seconds() {
    let can = std::process::Command::new("unshare").args(["--net", "true"]).status();
    if !can.is_ok_and(|status| status.success()) {
        return algonius_skips::skip("no namespace without a network can be made here");
    }
    let waits = "#!/bin/sh\n[ \"$1\" = --version ] && exec echo codex-cli 0.169.0\ncat >/dev/null\nsleep 600\n";
    let setup = Setup::new("[agents.codex]\npreset = 'codex'\n").executable("codex", waits);
    let path = format!("{}:/usr/sbin:/usr/bin:/sbin:/bin", setup.here().display());
    let up = "ip link set lo up; exec \"$0\" \"$@\"";
    let setup = setup.env("PATH", &path).through(&["unshare", "--net", "sh", "-c", up]);
    let config = setup.write().display().to_string();
    let report = doctor(&setup, &[("ALGONIUS_CONFIG", &config)]).await;
    assert_eq!(finding_about(&report, "route")["weight"], "warning", "{report}");
    // The service and who asks it share the namespace.
    let script = format!(
        "algonius=$0; \"$algonius\" serve --config '{config}' --listen 127.0.0.1:18080 2>/dev/null & \
         service=$!; export ALGONIUS_URL=http://127.0.0.1:18080; \
         until \"$algonius\" status >/dev/null 2>&1; do sleep 0.1; done; \
         timeout 15 \"$algonius\" send codex hi --json; kill -9 $service; wait $service"
    );
    let program = env!("CARGO_BIN_EXE_algonius");
    let mut command = tokio::process::Command::new("unshare");
    command.args(["--net", "sh", "-c", &format!("ip link set lo up; {script}"), program]);
    command.env_clear().envs(setup.variables()).env("PATH", &path).current_dir(setup.here());
    let told = soon("the warning", command.output()).await.unwrap();
    let told = String::from_utf8_lossy(&told.stdout).into_owned();
    assert!(told.contains("no way to other networks"), "{told}");
}
