//! Alert command: a program that reads the alert on its standard input, with a minimal environment, a time limit, and a
//! kill of all its processes.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use algonius_actors::model::execution::AttemptId;
use algonius_actors::model::host::resources::ResourceLimits;
use algonius_actors::model::id::ExecutionId;
use algonius_actors::model::program::ProcessExit;
use algonius_warden::{
    LaunchRequest, OutputPipe, ProgramLauncher, RootCapabilities, SpawnedProgram, StdinSource,
};
use tokio::io::AsyncReadExt;
use tokio::time::timeout;

use super::RedactFunction;

/// Time limit of the program.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(30);

/// Bytes of its output that are held; the service discards the output.
const MAX_OUTPUT_BYTES: u64 = 64 << 10;

/// Bytes at the end of its standard error that are read for the log.
const ERROR_TAIL_BYTES: usize = 64 << 10;

/// Longest line of its standard error in the log, in characters.
const MAX_LINE_CHARS: usize = 300;

/// Search path of the program.
const SEARCH_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Program that receives alerts.
pub(super) struct AlertCommand {
    pub(super) program: PathBuf,
    pub(super) args: Vec<String>,
    pub(super) launcher: Arc<dyn ProgramLauncher>,
    pub(super) redact: RedactFunction,
}

impl AlertCommand {
    /// Runs the program once. Exit code 0 confirms the delivery.
    pub(super) async fn run_once(&self, body: &[u8]) -> io::Result<()> {
        let SpawnedProgram { stdout, stderr, exit: exit_future, tree, .. } =
            self.launcher.launch(self.launch_request(body)).await?;
        let mut error_output = Vec::new();
        let run_and_drain = async {
            tokio::join!(exit_future, drain(stdout), read_tail(stderr, &mut error_output)).0
        };
        let result = timeout(COMMAND_TIMEOUT, run_and_drain).await;
        // A late program still runs, and a finished one may have left children.
        tree.kill_all_processes().await;
        let end = match result {
            Err(_elapsed) => format!("did not end within {} s", COMMAND_TIMEOUT.as_secs()),
            Ok(exit) => match exit? {
                ProcessExit::Code(0) => return Ok(()),
                ProcessExit::Code(code) => format!("ended with exit code {code}"),
                ProcessExit::Signal(signal) => format!("was ended by signal {signal}"),
            },
        };
        let last_line = self.redacted_last_line(&error_output);
        let clause = if last_line.is_empty() { last_line } else { format!(": {last_line}") };
        Err(io::Error::other(format!("the program {end}{clause}")))
    }

    /// Returns the last line of the program's standard error, redacted: a program such as `curl` prints the URL that it
    /// could not reach, and the URL may contain a key.
    fn redacted_last_line(&self, error_output: &[u8]) -> String {
        let text = (self.redact)(&String::from_utf8_lossy(error_output));
        let line = text.lines().rev().map(str::trim).find(|line| !line.is_empty());
        let line = line.unwrap_or_default();
        let start = line.char_indices().rev().nth(MAX_LINE_CHARS - 1).map_or(0, |(at, _)| at);
        line.get(start..).unwrap_or_default().to_owned()
    }

    fn launch_request(&self, body: &[u8]) -> LaunchRequest {
        LaunchRequest {
            execution: ExecutionId::generate(),
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

/// Reads a stream to its end, and keeps the last bytes.
async fn read_tail(mut pipe: OutputPipe, tail: &mut Vec<u8>) {
    // The stream ends in any case, also by an error.
    while let Ok(1..) = pipe.read_buf(tail).await {
        if tail.len() > 2 * ERROR_TAIL_BYTES {
            tail.drain(..tail.len() - ERROR_TAIL_BYTES);
        }
    }
}

/// Drains a stream, so that the program never blocks at a full pipe.
async fn drain(mut pipe: OutputPipe) {
    _ = tokio::io::copy(&mut pipe, &mut tokio::io::sink()).await; // The stream ends in any case.
}
