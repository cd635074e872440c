//! Programs without network: Landlock restricts ordinary TCP only, so a seccomp filter refuses other sockets.

use std::fs;
use std::io::ErrorKind;
use std::net::{TcpListener, UdpSocket};
use std::os::unix::fs::PermissionsExt;

use super::tools::{call_tool, setup_with_tool};
use super::{
    BUBBLEWRAP_SETTING, CONFINED_SETTINGS, UNCONFINED_SETTING, hostile_setup,
    with_unprivileged_user,
};
use crate::harness::client::task_outcome;
use crate::harness::mock_model::MockModel;
use crate::harness::{ServiceProcess, Setup};
use crate::read_only::skip_without_requirement;

/// The program, which tries every way to a network.
const NETWORK_SCRIPT: &str = include_str!("network.pl");

/// Last line of the program, after the names of the ways that worked.
const DONE_LINE: &str = "done\n";

const NO_NETWORK_SETTING: &str = "sandbox.network = false";

/// Returns programs that create a socket by the two interfaces for 32-bit programs.
#[cfg(target_arch = "x86_64")]
fn legacy_socket_programs() -> [(&'static str, Vec<u8>); 2] {
    use super::machine_code::{DATA_ADDRESS, i386_call_program};

    let (af_inet, sock_stream) = (2, 1);
    let args = [af_inet, sock_stream, 0_u32].map(u32::to_le_bytes).concat();
    [
        ("gate-socket", i386_call_program(359, [af_inet, sock_stream, 0], &[])),
        ("gate-socketcall", i386_call_program(102, [1, DATA_ADDRESS, 0], &args)),
    ]
}
#[cfg(not(target_arch = "x86_64"))]
const fn legacy_socket_programs() -> [(&'static str, Vec<u8>); 0] {
    []
}

/// Sockets on loopback that a program without network must not reach.
struct Listeners {
    tcp: TcpListener,
    udp: UdpSocket,
}

impl Listeners {
    /// Opens the sockets, and adds the program and their port to the setup.
    fn open_and_add_to_setup(setup: Setup) -> (Self, Setup) {
        let (tcp, udp) = loop {
            let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
            // Another test may hold the same port of the other protocol.
            if let Ok(udp) = UdpSocket::bind(tcp.local_addr().unwrap()) {
                break (tcp, udp);
            }
        };
        let port = tcp.local_addr().unwrap().port();
        tcp.set_nonblocking(true).unwrap();
        udp.set_nonblocking(true).unwrap();
        let setup = setup.with_executable("hostile", NETWORK_SCRIPT);
        let folder = setup.test_folder();
        fs::write(folder.join("port"), port.to_string()).unwrap();
        for (name, program) in legacy_socket_programs() {
            fs::write(folder.join(name), program).unwrap();
        }
        for name in ["hostile"].into_iter().chain(legacy_socket_programs().map(|(name, _)| name)) {
            fs::set_permissions(folder.join(name), PermissionsExt::from_mode(0o755)).unwrap();
        }
        (Self { tcp, udp }, setup)
    }

    fn expect_silence(&self) {
        assert_eq!(self.tcp.accept().unwrap_err().kind(), ErrorKind::WouldBlock);
        assert_eq!(self.udp.recv(&mut [0; 9]).unwrap_err().kind(), ErrorKind::WouldBlock);
    }
}

/// Runs the program as an agent, and returns its output.
async fn run_hostile_agent(service: &ServiceProcess) -> String {
    let task = service.send("hostile", "go").await;
    let (state, text) = task_outcome(&task);
    assert_eq!(state, "completed", "{task}");
    text
}

/// Tries every kind of agent.
async fn expect_no_network(create_setup: fn(&str) -> Setup) {
    for settings in [
        NO_NETWORK_SETTING,
        CONFINED_SETTINGS,
        &format!("{UNCONFINED_SETTING}\n{NO_NETWORK_SETTING}"),
    ] {
        let (listeners, setup) =
            Listeners::open_and_add_to_setup(create_setup(settings).without_bubblewrap());
        let service = setup.start().await;
        let agent = service.fetch_agent_status("hostile").await;
        assert_eq!(run_hostile_agent(&service).await, DONE_LINE, "{settings}");
        listeners.expect_silence();
        assert_eq!(agent["enforcement"], "enforced", "{agent}");
    }
}

#[tokio::test]
async fn an_agent_without_network_gets_no_socket() {
    if !skip_without_requirement("Landlock 6") {
        // Under Landlock, a program without network gets no socket of any network
        expect_no_network(hostile_setup).await;
    }
}

#[tokio::test]
async fn a_plain_agent_without_network_gets_no_socket() {
    if !skip_without_requirement("Landlock 6") && !skip_without_requirement("root") {
        expect_no_network(|settings| with_unprivileged_user(hostile_setup(settings))).await;
    }
}

#[tokio::test]
async fn a_tool_without_network_gets_no_socket() {
    if skip_without_requirement("Landlock 6") {
        return;
    }
    let model = MockModel::start(&[]);
    let (listeners, setup) =
        Listeners::open_and_add_to_setup(setup_with_tool(&model, "").without_bubblewrap());
    let service = setup.start().await;
    assert_eq!(call_tool(&service).await, DONE_LINE);
    listeners.expect_silence();
}

/// Methods that work in the empty network of bubblewrap, where nobody listens.
const METHODS_IN_EMPTY_NETWORK: [&str; 5] =
    ["32-bit socket", "IPv6 socket", "TCP server", "UDP", "pair of internet sockets"];

#[tokio::test]
async fn in_bubblewrap_no_way_leaves_the_empty_network() {
    // A bubblewrap with the set-user-ID bit gets no filter, unless root starts it.
    if skip_without_requirement("bubblewrap")
        || skip_without_requirement("Landlock 6")
        || skip_without_requirement("root")
    {
        return;
    }
    let (listeners, setup) = Listeners::open_and_add_to_setup(hostile_setup(&format!(
        "{BUBBLEWRAP_SETTING}\n{NO_NETWORK_SETTING}"
    )));
    let service = setup.start().await;
    let output = run_hostile_agent(&service).await;
    listeners.expect_silence();
    let mut successful: Vec<_> = output.lines().collect();
    assert_eq!(successful.pop(), Some(DONE_LINE.trim()));
    successful.retain(|method| !METHODS_IN_EMPTY_NETWORK.contains(method));
    assert_eq!(successful, Vec::<&str>::new());
}

/// Methods for which a read-only agent of root has no capability.
const ROOT_ONLY_METHODS: [&str; 3] = ["capability to mount", "packet socket", "raw socket"];

/// Control: with network, the agent can use each method that works outside of every sandbox.
#[tokio::test]
async fn an_agent_with_network_keeps_every_socket() {
    if skip_without_requirement("Landlock 6") {
        return;
    }
    let (listeners, setup) =
        Listeners::open_and_add_to_setup(hostile_setup("").without_bubblewrap());
    let service = setup.start().await;
    let folder = service.setup.test_folder();
    let mut program = std::process::Command::new(folder.join("hostile"));
    let unsandboxed_run = program.env("PLACE", folder).output().unwrap();
    let unsandboxed_output = String::from_utf8(unsandboxed_run.stdout).unwrap();
    // What arrived from this run, so that only the agent's messages are judged.
    while listeners.tcp.accept().is_ok() || listeners.udp.recv(&mut [0; 9]).is_ok() {}
    let expected: Vec<_> =
        unsandboxed_output.lines().filter(|line| !ROOT_ONLY_METHODS.contains(line)).collect();
    let output = run_hostile_agent(&service).await;
    assert_eq!(output.lines().collect::<Vec<_>>(), expected);
    for method in ["TCP", "UDP", "TCP server", DONE_LINE.trim()] {
        assert!(expected.contains(&method), "{method}: {unsandboxed_output}");
    }
    assert!(listeners.tcp.accept().is_ok());
    assert_eq!(listeners.udp.recv(&mut [0; 9]).unwrap(), 5);
}
