//! Alert command: a program that reads the alert on its standard input, with a minimal environment, a time limit, and a
//! kill of all its processes.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use algonius_actors::model::execution::AttemptId;
use algonius_actors::model::host::resources::ResourceLimits;
use algonius_actors::model::id::ExecutionId;
use algonius_warden::{
    LaunchRequest, OutputPipe, RootCapabilities, SpawnedProgram, StdinSource, Warden,
};
use tokio::time::timeout;

/// Time limit of the program.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(30);

/// Bytes of its output that are held; the service discards the output.
const MAX_OUTPUT_BYTES: u64 = 64 << 10;

/// Search path of the program.
const SEARCH_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Program that receives alerts.
pub(super) struct AlertCommand {
    pub(super) program: PathBuf,
    pub(super) args: Vec<String>,
    pub(super) warden: Arc<dyn Warden>,
}

impl AlertCommand {
    /// Runs the program once. Exit code 0 confirms the delivery.
    pub(super) async fn run_once(&self, body: &[u8]) -> io::Result<()> {
        let SpawnedProgram { stdout, stderr, exit: exit_future, tree, .. } =
            self.warden.launch(self.launch_spec(body)).await?;
        let run_and_drain = async { tokio::join!(exit_future, drain(stdout), drain(stderr)).0 };
        let result = timeout(COMMAND_TIMEOUT, run_and_drain).await;
        // A late program still runs, and a finished one may have left children.
        tree.kill_all_processes().await;
        let exit =
            result.map_err(|_late| io::Error::other("the program did not end in time"))??;
        if exit.code() == Some(0) {
            Ok(())
        } else {
            Err(io::Error::other(format!("the program ended with {exit:?}")))
        }
    }

    fn launch_spec(&self, body: &[u8]) -> LaunchRequest {
        LaunchRequest {
            execution: ExecutionId::fresh(),
            attempt_id: AttemptId::FIRST,
            program: self.program.clone(),
            args: self.args.clone(),
            env: [("PATH".into(), SEARCH_PATH.into())].into(),
            working_dir: PathBuf::from("/"),
            stdin: StdinSource::Bytes(body.to_vec()),
            max_recorded_bytes: MAX_OUTPUT_BYTES,
            ends_with_supervisor: true,
            rlimits: Vec::new(),
            ruleset: None,
            scratch_slot: None,
            root_capabilities: RootCapabilities::All,
            user: None,
            wrapper: None,
            resource_limits: ResourceLimits::default(),
        }
    }
}

/// Drains a stream, so that the program never blocks at a full pipe.
async fn drain(mut pipe: OutputPipe) {
    _ = tokio::io::copy(&mut pipe, &mut tokio::io::sink()).await; // The stream ends in any case.
}
