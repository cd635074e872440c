//! Files of the ledger that a crash of the machine has torn, or somebody has damaged.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use serde_json::json;

use crate::harness::client::{completed_outcome, message_params_with_id, task_id, task_outcome};
use crate::harness::processes::pids_with_env;
use crate::harness::{ServiceProcess, Setup, fake_agent_config, gated_agent_config, poll_until};

/// The head of a log, and of each page in it.
const WAL_HEADER_BYTES: u64 = 32;
const WAL_FRAME_BYTES: u64 = 24 + PAGE_BYTES;
const PAGE_BYTES: u64 = 4096;

/// What is done to a file of so many bytes.
type FileDamage = (&'static str, fn(&File, u64));

fn ledger_file(setup: &Setup, name: &str) -> PathBuf {
    setup.test_folder().join("state/algonius").join(name)
}

/// Does it; what the file is then.
fn apply_damage(setup: &Setup, name: &str, (description, apply): FileDamage) -> Vec<u8> {
    let path = ledger_file(setup, name);
    let file = OpenOptions::new().read(true).write(true).open(&path).unwrap();
    let length = file.metadata().unwrap().len();
    println!("{name} of {length} bytes: {description}");
    assert!(length > PAGE_BYTES, "{name} has {length} bytes");
    apply(&file, length);
    fs::read(path).unwrap()
}

fn agents_config() -> String {
    [fake_agent_config("echo", "echo", ""), gated_agent_config("one", "access = 'read-write'")]
        .concat()
}

/// What a torn log is: its last record is not whole, or something else comes after it.
const TORN_LOG_DAMAGES: &[FileDamage] = &[
    ("cut by 7 bytes", |file, length| file.set_len(length - 7).unwrap()),
    ("cut by half a page", |file, length| file.set_len(length - WAL_FRAME_BYTES / 2).unwrap()),
    ("the last page garbled", |file, length| {
        file.write_all_at(&[0xa5; 512], length - PAGE_BYTES / 2).unwrap();
    }),
    ("followed by others' bytes", |file, length| {
        file.write_all_at(&[0x5a; 10_000], length).unwrap();
    }),
    ("followed by an old record of its own", |file, length| {
        let mut frame = vec![0; usize::try_from(WAL_FRAME_BYTES).unwrap()];
        file.read_exact_at(&mut frame, WAL_HEADER_BYTES).unwrap();
        file.write_all_at(&frame, length).unwrap();
    }),
];

#[tokio::test]
async fn a_torn_log_costs_at_most_its_last_record() {
    for &damage in TORN_LOG_DAMAGES {
        let mut service = ServiceProcess::start(&agents_config()).await;
        let mut tasks = Vec::new();
        for word in ["a", "b", "c"] {
            tasks.push(service.send("echo", word).await);
        }
        let running_id = service.start_task("one", "ann").await;
        service.setup.wait_for_file_text("log", "start ann\n").await;
        poll_until("it runs", async || {
            (service.fetch_execution(&running_id).await["state"] == "running").then_some(())
        })
        .await;
        let last_message = message_params_with_id("m-last", "bob");
        let queued_id = task_id(&service.submit("one", last_message.clone()).await);
        service.kill9().await;
        apply_damage(&service.setup, "ledger.db-wal", damage);
        service.start_again().await;
        for task in tasks {
            assert_eq!(service.fetch_task("echo", &task_id(&task)).await, task);
        }
        let resent_id = task_id(&service.submit("one", last_message).await);
        // A torn write-ahead log of the ledger loses at most its last record, and every other
        // execution settles
        assert!(
            resent_id == queued_id || !damage.0.starts_with("followed"),
            "what was whole is lost"
        );
        service.setup.open_gate("go");
        assert_eq!(
            task_outcome(&service.wait_for_task_end("one", &running_id).await),
            completed_outcome("ann\n")
        );
        assert_eq!(
            task_outcome(&service.wait_for_task_end("one", &resent_id).await),
            completed_outcome("bob\n")
        );
        assert_eq!(service.setup.read_file("log"), "start ann\nend ann\nstart bob\nend bob\n");
        let list = service.get("/api/v1/executions").await.json();
        assert_eq!(list["executions"].as_array().unwrap().len(), 5);
    }
}

/// A log of which nothing is left.
const LOST_LOG_DAMAGES: &[FileDamage] = &[
    ("cut to nothing", |file, _| file.set_len(0).unwrap()),
    ("its head garbled", |file, _| file.write_all_at(&[0xa5; 32], 0).unwrap()),
];

#[tokio::test]
async fn a_lost_log_costs_its_records_and_leaves_no_process() {
    for &damage in LOST_LOG_DAMAGES {
        let mut service = ServiceProcess::start(&agents_config()).await;
        let task_before = service.send("echo", "before").await;
        service.send_sigterm();
        assert!(service.wait_for_exit().await.success());
        service.start_again().await;
        let running_id = service.start_task("one", "ann").await;
        service.setup.wait_for_file_text("log", "start ann\n").await;
        service.kill9().await;
        let env_entry = format!("ALGONIUS_EXECUTION_ID={running_id}");
        assert!(!pids_with_env(&env_entry).is_empty());
        apply_damage(&service.setup, "ledger.db-wal", damage);
        service.start_again().await;
        assert_eq!(service.fetch_task("echo", &task_id(&task_before)).await, task_before);
        let lost = service.expect_refusal("one", "tasks/get", json!({"id": running_id})).await;
        // A missing write-ahead log loses only the records that it alone had, and leaves no
        // process running
        assert_eq!(lost.1, "execution-unknown");
        let have_processes_ended = async || pids_with_env(&env_entry).is_empty().then_some(());
        poll_until("the end of what nobody knows", have_processes_ended).await;
        let unfinished = service.get("/api/v1/executions?unfinished=true").await.json();
        assert_eq!(unfinished["executions"], json!([]));
        assert_eq!(task_outcome(&service.send("echo", "after").await), completed_outcome("after"));
    }
}

/// What makes a database unreadable.
const DATABASE_DAMAGES: &[FileDamage] = &[
    ("its head zeroed", |file, _| file.write_all_at(&[0; 100], 0).unwrap()),
    ("cut to half", |file, length| file.set_len(length / 2).unwrap()),
    ("cut by a byte", |file, length| file.set_len(length - 1).unwrap()),
    ("another file", |mut file, _| {
        file.set_len(0).unwrap();
        file.write_all(b"the shopping list\n".repeat(300).as_slice()).unwrap();
    }),
    ("its table of tables garbled", |file, _| file.write_all_at(&[0xa5; 3996], 100).unwrap()),
];

#[tokio::test]
async fn a_damaged_database_is_refused_and_left_unchanged() {
    for &damage in DATABASE_DAMAGES {
        let mut service = ServiceProcess::start(&agents_config()).await;
        service.send("echo", "before").await;
        service.send_sigterm();
        assert!(service.wait_for_exit().await.success());
        let bytes = apply_damage(&service.setup, "ledger.db", damage);
        let setup = &service.setup;
        let config = setup.write_config().display().to_string();
        let serve_args = ["serve", "--config", &config, "--listen", "127.0.0.1:0"];
        let output = setup.run_command(&serve_args, "").await;
        let path = ledger_file(setup, "ledger.db");
        let canonical_path = path.canonicalize().unwrap();
        let expected =
            format!("error: the ledger `{}` is damaged; put a copy", canonical_path.display());
        assert!(output.stderr.contains(&expected), "{output:?}");
        assert!(!output.stderr.contains("panicked"), "{output:?}");
        // The service refuses a damaged database by name with exit code 1, and leaves it
        // unchanged
        assert_eq!((output.exit_code, output.stdout.as_str()), (Some(1), ""));
        assert!(fs::read(&path).unwrap() == bytes, "the damaged file was changed");
        for name in ["ledger.db", "ledger.db-wal", "ledger.db-shm"] {
            _ = fs::rename(
                ledger_file(setup, name),
                ledger_file(setup, "before").with_extension(name),
            );
        }
        service.start_again().await;
        assert_eq!(task_outcome(&service.send("echo", "after").await), completed_outcome("after"));
        let list = service.get("/api/v1/executions").await.json();
        assert_eq!(list["executions"].as_array().map(Vec::len), Some(1));
    }
}

/// The database while its log has what came last: SQLite may find there what is missing here.
#[tokio::test]
async fn a_damaged_database_with_a_log_is_repaired_or_refused() {
    for &damage in DATABASE_DAMAGES {
        let mut service = ServiceProcess::start(&agents_config()).await;
        let mut tasks = vec![service.send("echo", "before").await];
        service.send_sigterm();
        assert!(service.wait_for_exit().await.success());
        service.start_again().await;
        tasks.push(service.send("echo", "last").await);
        service.kill9().await;
        apply_damage(&service.setup, "ledger.db", damage);
        let mut setup = Setup::new("");
        std::mem::swap(&mut setup, &mut service.setup);
        match setup.try_start().await {
            Ok(service) => {
                for task in tasks {
                    // The service repairs a damaged database from the write-ahead log beside
                    // it, or refuses it
                    assert_eq!(service.fetch_task("echo", &task_id(&task)).await, task);
                }
            }
            Err((_, output)) => {
                let is_reported = output.stderr.contains("ledger.db` is damaged");
                assert!(is_reported && !output.stderr.contains("panicked"), "{output:?}");
                assert_eq!(output.exit_code, Some(1));
            }
        }
    }
}
