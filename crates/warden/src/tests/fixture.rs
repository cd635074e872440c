//! Data directory whose service a test can start and kill.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use algonius_actors::model::execution::AttemptId;
use algonius_actors::model::host::resources::ResourceLimits;
use algonius_actors::model::id::ExecutionId;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use sha2::{Digest, Sha256};
use tokio::io::AsyncReadExt;
use tokio::runtime::{Builder, Runtime};
use tokio::time::{sleep, timeout};
use uuid::Uuid;

use super::holder_options;
use crate::confinement::cgroup::{CgroupRoot, ControlGroups};
use crate::process::process_label::{ProcessLabel, label_of};
use crate::process::procfs::{list_pids, read_process_stat};
use crate::process_holders::{ProcessHolderOptions, ProcessHolders};
use crate::testing::WAIT_TIMEOUT as WAIT;
use crate::{
    LaunchRequest, OutputPipe, ProgramLauncher, RootCapabilities, SpawnedProgram, StdinSource,
};

/// Script with three processes: one that ignores SIGTERM, its child, and one in another session that has only its
/// label.
pub(super) const SCRIPT_IGNORING_SIGTERM: &str =
    r#"trap "" TERM; sleep 600 & setsid env -i sleep 600 & wait"#;

pub(super) struct HolderFixture {
    pub(super) home: tempfile::TempDir,
    pub(super) data_dir_id: Uuid,
    /// Time for which process holders wait for the next process instance.
    pub(super) reattach_grace: Duration,
    /// Parent of the control groups, if there are any.
    pub(super) cgroup_root: Option<CgroupRoot>,
}

/// Process instance of the service. Dropping it is like a kill: its sockets are closed without any order.
pub(super) struct ServiceInstance {
    pub(super) runtime: Runtime,
    pub(super) holders: Arc<ProcessHolders>,
}

impl HolderFixture {
    pub(super) fn new() -> Self {
        let (home, data_dir_id) = (tempfile::tempdir().unwrap(), Uuid::new_v4());
        Self { home, data_dir_id, reattach_grace: WAIT, cgroup_root: None }
    }

    pub(super) fn runtime_dir(&self) -> PathBuf {
        self.home.path().join("run")
    }

    /// Returns the names of the sockets of process holders.
    pub(super) fn socket_names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.runtime_dir()).unwrap().flatten();
        let names = entries.map(|entry| entry.file_name().into_string().unwrap());
        names.filter(|name| name.ends_with(".sock")).collect()
    }

    pub(super) fn start_service(&self) -> ServiceInstance {
        let runtime = Builder::new_multi_thread().enable_all().build().unwrap();
        let groups =
            ControlGroups::open(self.cgroup_root.clone(), self.data_dir_id, true).map(Arc::new);
        let options = ProcessHolderOptions {
            reattach_grace: self.reattach_grace,
            ..holder_options(&self.runtime_dir(), self.data_dir_id)
        };
        let holders = runtime
            .block_on(ProcessHolders::start(ProcessHolderOptions {
                control_groups: groups,
                ..options
            }))
            .unwrap();
        ServiceInstance { runtime, holders }
    }

    /// Waits until a condition is true, without a process instance.
    pub(super) fn wait_until(&self, condition: impl Fn() -> bool) {
        let runtime = Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(wait_until(condition));
    }

    pub(super) fn shell_launch_request(
        &self,
        execution: ExecutionId,
        script: &str,
    ) -> LaunchRequest {
        let path = std::env::var_os("PATH").unwrap_or_default();
        LaunchRequest {
            execution,
            attempt_id: AttemptId::FIRST,
            program: PathBuf::from("/bin/sh"),
            args: vec!["-c".to_owned(), script.to_owned()],
            env: BTreeMap::from([("PATH".into(), path)]),
            working_dir: self.home.path().to_owned(),
            stdin: StdinSource::Bytes(Vec::new()),
            max_recorded_bytes: 64 << 20,
            ends_with_supervisor: false,
            rlimits: Vec::new(),
            ruleset: None,
            scratch_slot: None,
            root_capabilities: RootCapabilities::All,
            user: None,
            wrapper: None,
            resource_limits: ResourceLimits::default(),
        }
    }

    /// Returns the living processes that carry the label of an execution.
    pub(super) fn live_pids(&self, execution: ExecutionId) -> Vec<i32> {
        let label = ProcessLabel::for_attempt(self.data_dir_id, execution, AttemptId::FIRST);
        let is_alive = |pid: &i32| read_process_stat(*pid).is_some_and(|stat| stat.is_alive);
        list_pids()
            .into_iter()
            .filter(|pid| is_alive(pid) && label_of(*pid) == Some(label))
            .collect()
    }
}

impl ServiceInstance {
    pub(super) fn launch(&self, launch: LaunchRequest) -> SpawnedProgram {
        self.wait(self.holders.launch(launch)).unwrap()
    }

    pub(super) fn complete_takeover(&self, execution: ExecutionId) -> SpawnedProgram {
        self.wait(self.holders.complete_takeover(execution, AttemptId::FIRST)).unwrap()
    }

    pub(super) fn wait<T>(&self, future: impl Future<Output = T>) -> T {
        self.runtime.block_on(async { timeout(WAIT, future).await.expect("it took too long") })
    }

    pub(super) fn wait_until(&self, condition: impl Fn() -> bool) {
        self.runtime.block_on(wait_until(condition));
    }

    /// Kills the process holders.
    pub(super) fn kill_process_holders(&self) {
        kill_pids(&self.holders.pids());
    }

    pub(super) fn read(&self, pipe: &mut OutputPipe) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.wait(pipe.read_to_end(&mut bytes)).unwrap();
        bytes
    }
}

async fn wait_until(condition: impl Fn() -> bool) {
    let waiting = async {
        while !condition() {
            sleep(Duration::from_millis(5)).await; // What is asked tells nobody.
        }
    };
    timeout(WAIT, waiting).await.expect("it did not become true in time");
}

pub(super) fn kill_pids(pids: &[u32]) {
    for pid in pids {
        kill(Pid::from_raw((*pid).try_into().unwrap()), Signal::SIGKILL).unwrap();
    }
}

pub(super) fn digest(bytes: &[u8]) -> [u8; 32] {
    Sha256::digest(bytes).into()
}
