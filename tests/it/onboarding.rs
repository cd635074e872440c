//! First contact: one configuration for all commands, the environment of the service that runs, proxies and
//! authorities, a machine without a network.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::harness::client::{completed_outcome, task_outcome};
use crate::harness::{ServiceClient, Setup, within_deadline};
use crate::presets::preset_programs::{self, API_KEY};

const ECHO_AGENT: &str = "[agents.echo]\ncommand = 'cat'\n";

/// Prints variables of its environment.
const ENV_AGENT: &str =
    "[agents.env]\ncommand = 'sh'\nargs = ['-c', 'env | grep -i -e proxy -e cert -e CA_ | sort']\n";

/// The file of the present user of a setup.
fn user_config_file(setup: &Setup) -> PathBuf {
    setup.test_folder().join("home/.config/algonius/supervisor.toml")
}

fn finding_about<'r>(report: &'r Value, subject: &str) -> &'r Value {
    let findings = report["findings"].as_array().unwrap();
    let finding = findings.iter().find(|finding| finding["about"] == subject);
    finding.unwrap_or_else(|| panic!("{subject} is not in {report}"))
}

async fn doctor_report(setup: &Setup, env: &[(&str, &str)]) -> Value {
    let output = setup.run_command_with_env(&["doctor", "--json"], "", env).await;
    serde_json::from_str(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"))
}

#[tokio::test]
async fn every_command_finds_the_user_configuration() {
    let setup = Setup::new(ECHO_AGENT);
    let file = user_config_file(&setup);
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(&file, "[agents.mine]\ncommand = 'cat'\n").unwrap();
    let check_output = setup.run_command(&["check"], "").await;
    assert!(check_output.stdout.starts_with("good: 1 agents (mine)"), "{check_output:?}");
    let report = doctor_report(&setup, &[]).await;
    let text = finding_about(&report, "configuration file")["text"].as_str().unwrap();
    assert_eq!(text, format!("{} (the file of this user)", file.display()));
    finding_about(&report, "agent mine");
    // What is named wins.
    let config_file = setup.write_config().display().to_string();
    let check_output =
        setup.run_command_with_env(&["check"], "", &[("ALGONIUS_CONFIG", &config_file)]).await;
    assert!(check_output.stdout.starts_with("good: 1 agents (echo)"), "{check_output:?}");
    let help = setup.run_command(&["--help"], "").await;
    for part in
        ["ALGONIUS_CONFIG names", "/etc/algonius/supervisor.toml", "the shipped configuration"]
    {
        assert!(help.stdout.contains(part), "{part}: {help:?}");
    }
}

#[tokio::test]
async fn adding_the_first_agent_creates_the_default_file() {
    let setup = preset_programs::install_all_programs_and_keys(Setup::new(ECHO_AGENT));
    let file = user_config_file(&setup);
    let refused_output = setup.run_command(&["agents", "add", "codex"], "").await;
    assert_eq!((refused_output.exit_code, file.exists()), (Some(1), false), "{refused_output:?}");
    let add_output = setup.run_command(&["agents", "add", "codex", "--yes"], "").await;
    assert_eq!(add_output.exit_code, Some(0), "{add_output:?}");
    assert!(add_output.stdout.contains("supervisor.toml, which is new"), "{add_output:?}");
    let text = fs::read_to_string(&file).unwrap();
    assert!(text.contains("[agents.echo]") && text.ends_with("preset = \"codex\"\n"), "{text}");
    let service = setup.with_config_file(&file).start().await;
    assert_eq!(task_outcome(&service.send("codex", "hi").await).0, "completed");
}

#[tokio::test]
async fn init_without_a_folder_writes_the_default_file() {
    let setup = Setup::new(ECHO_AGENT);
    let output = setup.run_command(&["init"], "").await;
    assert_eq!(output.exit_code, Some(0), "{output:?}");
    assert!(
        user_config_file(&setup).exists()
            && output.stdout.contains("next           algonius serve\n"),
        "{output:?}"
    );
    let second_output = setup.run_command(&["init"], "").await;
    assert_eq!(second_output.exit_code, Some(1), "{second_output:?}");
}

/// Another program may listen at the address of the service.
#[tokio::test]
async fn a_silent_program_at_the_address_holds_up_no_new_agent() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let setup = preset_programs::install_programs(Setup::new(ECHO_AGENT), &["codex"]);
    let token_file = setup.test_folder().join("token");
    fs::write(&token_file, "a".repeat(40)).unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let config = setup.write_config().display().to_string();
    let args = ["agents", "add", "codex", "--yes", "--config", &config, "--url", &url];
    let args = [&args[..], &["--token-file", token_file.to_str().unwrap()]].concat();
    let output = setup.run_command(&args, "").await;
    assert_eq!(output.exit_code, Some(1), "{output:?}");
    assert!(output.stderr.contains(&format!("nothing at {url} answered within 5 s")), "{output:?}");
    assert!(fs::read_to_string(&config).unwrap().contains("preset = \"codex\""), "{output:?}");
}

/// The terminal has a key and the service has none, and the other way round.
#[tokio::test]
async fn keys_are_checked_in_the_running_service() {
    let service =
        preset_programs::install_programs(Setup::new(ECHO_AGENT), &["codex"]).start().await;
    let config = service.setup.write_config().display().to_string();
    let url = format!("http://{}", service.address);
    let env = [("CODEX_API_KEY", API_KEY), ("ALGONIUS_URL", &url)];
    let args = ["agents", "add", "codex", "--yes", "--config", &config];
    let output = service.setup.run_command_with_env(&args, "", &env).await;
    assert!(
        output.stdout.contains(&format!("read from the service that runs at {url}")),
        "{output:?}"
    );
    assert!(
        output.stdout.contains("warning  agent codex, key: the agent has no key"),
        "{output:?}"
    );

    let mut service =
        preset_programs::install_all_programs_and_keys(Setup::new(ECHO_AGENT)).start().await;
    for name in ["CODEX_API_KEY", "OPENAI_API_KEY"] {
        service.setup.remove_env(name);
    }
    let config = service.setup.write_config().display().to_string();
    let url = format!("http://{}", service.address);
    let args = ["agents", "add", "codex", "--yes", "--config", &config];
    let output = service.setup.run_command_with_env(&args, "", &[("ALGONIUS_URL", &url)]).await;
    assert!(
        output.stdout.contains("good     agent codex, key: CODEX_API_KEY is set"),
        "{output:?}"
    );
    assert!(!format!("{output:?}").contains(API_KEY), "{output:?}");
    let env = [("ALGONIUS_URL", url.as_str()), ("ALGONIUS_CONFIG", config.as_str())];
    let report = doctor_report(&service.setup, &env).await;
    assert_eq!(finding_about(&report, "agent codex, key")["weight"], "good", "{report}");
    let report = doctor_report(&service.setup, &[("ALGONIUS_CONFIG", &config)]).await;
    assert_eq!(finding_about(&report, "agent codex, key")["weight"], "warning", "{report}");
    let source = finding_about(&report, "variables")["text"].as_str().unwrap();
    assert!(source.starts_with("read from this terminal"), "{source}");
    assert!(source.contains("no service answers"), "{source}");
}

#[tokio::test]
async fn administrators_see_environment_names_without_values() {
    let service = Setup::new(ECHO_AGENT).env("SOME_KEY", API_KEY).start().await;
    let response = service.get("/api/v1/environment?names=SOME_KEY,OTHER_KEY").await;
    assert_eq!(
        response.json()["variables"],
        json!([
            {"name": "SOME_KEY", "set": true},
            {"name": "OTHER_KEY", "set": false},
        ])
    );
    assert!(
        !response.body.contains(API_KEY) && response.json()["readsFile"] == false,
        "{}",
        response.body
    );
    let file = service.setup.write_config().display().to_string().replace('/', "%2F");
    let response = service.get(&format!("/api/v1/environment?names=PATH&file={file}")).await;
    assert_eq!(response.json()["readsFile"], true);
    for invalid_query in ["?names=", "?names=A-B", "?names=1A"] {
        assert_eq!(
            service.get(&format!("/api/v1/environment{invalid_query}")).await.status,
            400,
            "{invalid_query}"
        );
    }
    let create_response =
        service.post("/api/v1/tokens", r#"{"name":"ann","scopes":["read","run"]}"#).await;
    let token = create_response.json()["token"].as_str().unwrap().to_owned();
    let ann = ServiceClient { address: service.address, token };
    assert_eq!(ann.get("/api/v1/environment?names=PATH").await.status, 403);
}

#[tokio::test]
async fn proxies_and_ca_files_reach_agents_with_a_network() {
    let proxy = "http://ann:pa55-of-the-proxy@127.0.0.1:3128";
    let agent_without_network =
        ENV_AGENT.replace("agents.env", "agents.cut") + "sandbox.network = false\n";
    let agent_with_own_proxy = ENV_AGENT.replace("agents.env", "agents.own")
        + "env = { HTTPS_PROXY = 'http://other:1' }\n";
    let agent_without_variables =
        ENV_AGENT.replace("agents.env", "agents.none") + "network_env = false\n";
    let file_reading_agent =
        "[agents.reads]\ncommand = 'sh'\nargs = ['-c', 'cat \"$SSL_CERT_FILE\"']\n";
    let password_splitting_agent = "[agents.splits]\ncommand = 'sh'\n\
                  args = ['-c', 'p=${HTTPS_PROXY#*ann:}; echo password ${p%@*}']\n";
    let setup = Setup::new(&format!(
        "{ENV_AGENT}{agent_without_network}{agent_with_own_proxy}{agent_without_variables}{file_reading_agent}{password_splitting_agent}"
    ));
    let ca_file = setup.config_sibling_path("ca.pem");
    fs::write(&ca_file, "an authority").unwrap();
    let ca_file = ca_file.display().to_string();
    let variables =
        [("HTTPS_PROXY", proxy), ("no_proxy", "localhost"), ("SSL_CERT_FILE", &ca_file)];
    let setup = variables.iter().fold(setup, |setup, (name, value)| setup.env(name, value));
    let service = setup.start().await;
    let (state, text) = task_outcome(&service.send("env", "x").await);
    let expected = format!("SSL_CERT_FILE={ca_file}\nno_proxy=localhost\n");
    assert!(state == "completed" && text.ends_with(&expected), "{text}");
    assert!(text.starts_with("HTTPS_PROXY=http://") && !text.contains("pa55"), "{text}");
    assert_eq!(
        task_outcome(&service.send("own", "x").await).1,
        format!("HTTPS_PROXY=http://other:1\n{expected}")
    );
    for agent in ["cut", "none"] {
        assert_eq!(task_outcome(&service.send(agent, "x").await), completed_outcome(""), "{agent}");
    }
    assert_eq!(task_outcome(&service.send("reads", "x").await), completed_outcome("an authority"));
    let (_, split_text) = task_outcome(&service.send("splits", "x").await);
    assert!(split_text.starts_with("password ") && !split_text.contains("pa55"), "{split_text}");
    assert!(!service.stderr_text().contains("pa55"), "{}", service.stderr_text());
    let ledger = service.setup.read_ledger_files();
    let secret = b"pa55-of-the-proxy";
    assert!(!ledger.windows(secret.len()).any(|bytes| bytes == secret));
}

#[tokio::test]
async fn certificates_that_an_agent_cannot_read_are_warned_of() {
    let setup = Setup::new(ECHO_AGENT).env("NODE_EXTRA_CA_CERTS", "/no/such/ca.pem");
    let config = setup.write_config().display().to_string();
    let output = setup.run_command(&["check", &config], "").await;
    assert_eq!(output.exit_code, Some(0), "{output:?}");
    assert!(
        output.stderr.contains("NODE_EXTRA_CA_CERTS names /no/such/ca.pem, which does not exist"),
        "{output:?}"
    );
}

/// In a namespace without any route, as on a machine whose cable is out.
#[tokio::test]
async fn a_machine_without_a_network_is_reported_in_seconds() {
    let unshare_status = std::process::Command::new("unshare").args(["--net", "true"]).status();
    if !unshare_status.is_ok_and(|status| status.success()) {
        return algonius_skips::skip("no namespace without a network can be made here");
    }
    let program_text = "#!/bin/sh\n[ \"$1\" = --version ] && exec echo codex-cli 0.169.0\ncat >/dev/null\nsleep 600\n";
    let setup =
        Setup::new("[agents.codex]\npreset = 'codex'\n").with_executable("codex", program_text);
    let path = format!("{}:/usr/sbin:/usr/bin:/sbin:/bin", setup.test_folder().display());
    let setup_script = "ip link set lo up; exec \"$0\" \"$@\"";
    let setup =
        setup.env("PATH", &path).with_launcher(&["unshare", "--net", "sh", "-c", setup_script]);
    let config = setup.write_config().display().to_string();
    let report = doctor_report(&setup, &[("ALGONIUS_CONFIG", &config)]).await;
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
    command
        .env_clear()
        .envs(setup.env_variables())
        .env("PATH", &path)
        .current_dir(setup.test_folder());
    let output = within_deadline("the warning", command.output()).await.unwrap();
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(stdout.contains("no way to other networks"), "{stdout}");
}
