//! Sockets through which programs start outside of every sandbox, and which appear while the service runs.

use std::fs;
use std::os::unix::fs::{MetadataExt, chown};
use std::os::unix::net::UnixListener;
use std::path::PathBuf;

use serde_json::{Value, json};

use super::with_systemd_socket;
use crate::harness::client::{completed_outcome, failed_outcome, task_outcome};
use crate::harness::{ServiceProcess, Setup, message_params, poll_until};
use crate::read_only::skip_without_requirement;

/// Agent that connects to the socket of a service manager and prints whether it could.
fn connecting_agent(settings: &str) -> String {
    let script = r#"use Socket; socket(my $s, PF_UNIX, SOCK_STREAM, 0);
        print connect($s, pack_sockaddr_un("$ENV{PLACE}/run/bus")) ? "connected" : "refused"; "#;
    format!(
        "[agents.one]\ncommand = 'perl'\nargs = ['-e', '''{script}''']\nenv.PLACE = 'HERE'\n{settings}\n"
    )
}

/// Opens the socket of a service manager while the service runs.
fn open_systemd_socket(service: &ServiceProcess) -> (PathBuf, UnixListener) {
    let folder = service.setup.test_folder().join("run");
    let socket = folder.join("bus");
    let listener = UnixListener::bind(&socket).unwrap();
    let owner = fs::metadata(&folder).unwrap().uid();
    chown(&socket, Some(owner), Some(owner)).unwrap();
    (socket, listener)
}

/// Waits until the status reports this boundary.
async fn wait_for_boundary(service: &ServiceProcess, expected: Value) {
    poll_until(&format!("the boundary {expected}"), async || {
        let status = service.fetch_agent_status("one").await;
        (status["boundary"] == expected).then_some(())
    })
    .await;
}

/// Waits until the status reports another boundary than this one, and returns it.
async fn boundary_after_change(service: &ServiceProcess, previous: &Value) -> Value {
    poll_until("another boundary", async || {
        let boundary = service.fetch_agent_status("one").await["boundary"].clone();
        (boundary != *previous).then_some(boundary)
    })
    .await
}

#[tokio::test]
async fn a_socket_that_appears_later_is_a_gap() {
    if skip_without_requirement("Landlock 6") {
        return;
    }
    let service = Setup::new(&connecting_agent("")).without_bubblewrap().start().await;
    wait_for_boundary(&service, json!({"level": "landlock"})).await;
    let (socket, _listener) = open_systemd_socket(&service);
    let boundary = boundary_after_change(&service, &json!({"level": "landlock"})).await;
    // R-151: The status reports a socket that starts programs outside of sandboxes also if it appears later
    assert_eq!(boundary, json!({"level": "landlock", "gaps": ["sockets"]}));
    let log = service.stderr_text();
    for message in ["a socket appeared", "start programs outside of its sandbox through a socket"] {
        assert!(log.contains(message), "{message}: {log}");
    }
    assert_eq!(task_outcome(&service.send("one", "go").await), completed_outcome("connected"));
    fs::remove_file(socket).unwrap();
    wait_for_boundary(&service, json!({"level": "landlock"})).await;
}

/// Bubblewrap hides the socket from each program that starts from then on.
#[tokio::test]
async fn bubblewrap_hides_a_socket_that_appears_later() {
    if skip_without_requirement("bubblewrap") {
        return;
    }
    for settings in ["sandbox.isolation = 'bubblewrap'", "access = 'read-write'"] {
        let service = Setup::new(&connecting_agent(settings)).start().await;
        let (_, _listener) = open_systemd_socket(&service);
        let outcome = task_outcome(&service.send("one", "go").await);
        assert_eq!(outcome, completed_outcome("refused"), "{settings}");
    }
}

/// A change of the gaps alone ends no process that the agent keeps for its sessions.
#[tokio::test]
async fn a_later_socket_ends_no_session() {
    if skip_without_requirement("Landlock 6") {
        return;
    }
    let agent = "[agents.one]\ncommand = 'sh'\nmode = 'interactive'\n\
                 args = ['-c', 'while read line; do echo $$; echo END; done']\n\
                 [agents.one.turn]\nend_line = 'END'\n";
    let service = Setup::new(agent).without_bubblewrap().start().await;
    let mut params = message_params("go");
    params["message"]["contextId"] = json!("c");
    let first = service.call("one", "message/send", &params).await.json();
    let (_socket, _listener) = open_systemd_socket(&service);
    wait_for_boundary(&service, json!({"level": "landlock", "gaps": ["sockets"]})).await;
    params["message"]["messageId"] = json!("another");
    let second = service.call("one", "message/send", &params).await.json();
    let first = task_outcome(&first["result"]);
    assert_eq!((first.0.as_str(), &first), ("completed", &task_outcome(&second["result"])));
}

/// The service prefers Landlock until a socket makes it insufficient, and does not return to it when the socket
/// vanishes.
#[tokio::test]
async fn a_later_socket_moves_an_agent_into_bubblewrap() {
    if skip_without_requirement("bubblewrap") || skip_without_requirement("Landlock 6") {
        return;
    }
    let other_agent = "[agents.two]\ncommand = 'cat'\nsandbox.isolation = 'landlock'\n";
    let agents = format!("{}{other_agent}", connecting_agent(""));
    let service = Setup::new(&agents).start().await;
    wait_for_boundary(&service, json!({"level": "landlock"})).await;
    let (socket, _listener) = open_systemd_socket(&service);
    wait_for_boundary(&service, json!({"level": "mount-namespace"})).await;
    assert_eq!(task_outcome(&service.send("one", "go").await), completed_outcome("refused"));
    fs::remove_file(socket).unwrap();
    poll_until("the other agent without a gap", async || {
        let boundary = service.fetch_agent_status("two").await["boundary"].clone();
        (boundary == json!({"level": "landlock"})).then_some(())
    })
    .await;
    wait_for_boundary(&service, json!({"level": "mount-namespace"})).await;
}

#[tokio::test]
async fn required_isolation_permits_no_reachable_socket() {
    if skip_without_requirement("Landlock 6") {
        return;
    }
    let agent = connecting_agent("sandbox.required = true");
    let (setup, _bus) = with_systemd_socket(Setup::new(&agent).without_bubblewrap());
    let (_, output) = setup.try_start().await.err().unwrap();
    let message = "the agent can start programs outside of its sandbox through a socket";
    assert!(output.stderr.contains(message), "{}", output.stderr);

    let service = Setup::new(&agent).without_bubblewrap().start().await;
    assert_eq!(task_outcome(&service.send("one", "go").await), completed_outcome("refused"));
    // At once, and not only after the service has noticed the socket.
    let (_, _listener) = open_systemd_socket(&service);
    let outcome = task_outcome(&service.send("one", "go").await);
    // R-152: An agent that requires isolation does not start while such a socket is reachable
    assert_eq!(outcome, failed_outcome("agent-not-started"));
    wait_for_boundary(&service, json!({"level": "landlock", "gaps": ["sockets"]})).await;
    let outcome = task_outcome(&service.send("one", "go").await);
    assert_eq!(outcome, failed_outcome("agent-not-started"));
}

/// The configuration can permit a socket.
#[tokio::test]
async fn required_isolation_permits_a_configured_socket() {
    if skip_without_requirement("Landlock 6") {
        return;
    }
    let mut setup = Setup::new("").without_bubblewrap();
    let socket = setup.config_sibling_path("run/bus");
    let settings = format!("sandbox.required = true\nsandbox.sockets = ['{}']", socket.display());
    setup.set_config_text(&connecting_agent(&settings));
    let (setup, _bus) = with_systemd_socket(setup);
    let service = setup.start().await;
    assert_eq!(task_outcome(&service.send("one", "go").await), completed_outcome("connected"));
    wait_for_boundary(&service, json!({"level": "landlock", "gaps": ["sockets"]})).await;
}
