//! A service is told to end for a new binary: what runs goes on, and the new one takes it up.

use std::fs;
use std::process::Command;

use algonius_skips::skip_without;
use nix::sys::signal::Signal;

use crate::harness::client::{completed_outcome, failed_outcome, task_outcome};
use crate::harness::processes::{is_alive, pids_with_env};
use crate::harness::{ServiceProcess, gated_agent_config, poll_until};

/// Half of the answer comes before the gate, half behind it; into a file, or to standard output.
const TWO_PART_ANSWER_AGENTS: &str = r#"
[agents.file]
sandbox.writable = ['HERE']
command = "sh"
args = ["-c", 'seq 1000 > "$0"; echo file >> HERE/parts; until [ -e HERE/go ]; do sleep 0.02; done; seq 1001 2000 >> "$0"', "{{ output_file }}"]
output = "file"
[agents.lines]
sandbox.writable = ['HERE']
command = "sh"
args = ["-c", 'seq 1000; echo lines >> HERE/parts; until [ -e HERE/go ]; do sleep 0.02; done; seq 1001 2000']
"#;

#[tokio::test]
async fn an_upgrade_of_the_binary_loses_no_work_and_no_byte() {
    let agents =
        [TWO_PART_ANSWER_AGENTS, &gated_agent_config("one", "access = 'read-write'")].concat();
    let mut service = ServiceProcess::start(&agents).await;
    let mut agents_and_task_ids = Vec::new();
    for (agent, parts) in [("file", "file\n"), ("lines", "file\nlines\n")] {
        agents_and_task_ids.push((agent, service.start_task(agent, "go").await));
        service.setup.wait_for_file_text("parts", parts).await;
    }
    let running_id = service.start_task("one", "ann").await;
    let waiting_id = service.start_task("one", "bob").await;
    service.setup.wait_for_file_text("log", "start ann\n").await;
    let program_pids = pids_with_env(&format!("ALGONIUS_EXECUTION_ID={running_id}"));
    service.send_signal(Signal::SIGUSR2);
    assert_eq!(service.wait_for_exit().await.code(), Some(0));
    poll_until("what it did", async || {
        service.stderr_text().contains("3 running go on").then_some(())
    })
    .await;
    // What it waits with comes and goes.
    assert!(program_pids.iter().any(|pid| is_alive(*pid)), "it did not go on");
    let wal_file = service.setup.test_folder().join("state/algonius/ledger.db-wal");
    assert!(!wal_file.exists(), "the ledger was not closed");
    let next_release = service.setup.install_next_release().to_owned();
    service.setup.open_gate("go");
    service.start_again().await;
    assert_eq!(fs::read_link(format!("/proc/{}/exe", service.pid())).unwrap(), next_release);
    let expected: String = (1..=2000).map(|number| format!("{number}\n")).collect();
    for (agent, id) in agents_and_task_ids {
        // R-56: On SIGUSR2, the service exits at once, closes its ledger and leaves running work,
        // which the next binary resumes to the last byte
        assert!(
            task_outcome(&service.wait_for_task_end(agent, &id).await)
                == completed_outcome(&expected),
            "{agent}"
        );
    }
    assert_eq!(
        task_outcome(&service.wait_for_task_end("one", &running_id).await),
        completed_outcome("ann\n")
    );
    assert_eq!(
        task_outcome(&service.wait_for_task_end("one", &waiting_id).await),
        completed_outcome("bob\n")
    );
    assert_eq!(service.setup.read_file("log"), "start ann\nend ann\nstart bob\nend bob\n");
}

#[tokio::test]
async fn an_agent_bound_to_its_service_ends_with_the_upgrade() {
    let mut service =
        ServiceProcess::start(&gated_agent_config("one", "on_supervisor_loss = 'kill'")).await;
    let id = service.start_task("one", "ann").await;
    service.setup.wait_for_file_text("log", "start ann\n").await;
    service.send_signal(Signal::SIGUSR2);
    assert_eq!(service.wait_for_exit().await.code(), Some(0));
    poll_until("what it did", async || service.stderr_text().contains("1 end").then_some(())).await;
    let env_entry = format!("ALGONIUS_EXECUTION_ID={id}");
    // R-57: On SIGUSR2, an agent that must not outlive its service ends with it
    poll_until("the end of its program", async || {
        pids_with_env(&env_entry).is_empty().then_some(())
    })
    .await;
    service.start_again().await;
    assert_eq!(
        task_outcome(&service.wait_for_task_end("one", &id).await),
        failed_outcome("interrupted")
    );
}

/// What systemd itself finds wrong with the unit that is shipped, for this binary.
#[test]
fn the_systemd_unit_is_valid_and_spares_the_wardens() {
    let unit_path = concat!(env!("CARGO_MANIFEST_DIR"), "/config/systemd/algonius.service");
    let unit = fs::read_to_string(unit_path).unwrap();
    for line in
        ["KillMode=process", "RuntimeDirectoryPreserve=yes", "LimitLOCKS=infinity", "Type=notify"]
    {
        assert!(unit.lines().any(|unit_line| unit_line == line), "no {line}");
    }
    let folder = tempfile::tempdir().unwrap();
    let unit_file = folder.path().join("algonius.service");
    let local_unit = unit.replace(
        "/usr/local/bin/algonius serve",
        concat!(env!("CARGO_BIN_EXE_algonius"), " serve"),
    );
    fs::write(&unit_file, local_unit).unwrap();
    let verify_result =
        Command::new("systemd-analyze").args(["verify", "--man=no"]).arg(&unit_file).output();
    let Ok(output) = verify_result else {
        skip_without("systemd-analyze");
        return;
    };
    let stderr = String::from_utf8_lossy(&output.stderr);
    let complaints: Vec<_> =
        stderr.lines().filter(|line| line.contains("algonius.service")).collect();
    // R-58: The unit in `config/systemd` is valid for systemd, and does not end the wardens
    assert!(output.status.success() && complaints.is_empty(), "{stderr}");
}
