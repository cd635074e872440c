//! Process of a server: its start, its failures, and its end.

use std::sync::Arc;
use std::time::Duration;

use algonius_actors::model::code::Code;
use algonius_actors::model::program::ProcessExit;
use algonius_actors::model::program::backend_program::BackendRole;
use algonius_actors::model::program::mcp_server::McpServer;
use algonius_warden::{
    OutputPipe, ProcessTree, ProgramExit, SpawnedProgram, StdinPipe, StdinSource,
};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::server_failure::ServerFailure;
use crate::drivers::files::scratch_dir::ScratchDir;
use crate::drivers::output::error_tail::ErrorTail;
use crate::drivers::program::backend_process::{
    BackendLaunchSpec, BackendLauncher, BackendProcess, describe_end, describe_exceeded_limit,
    sandbox_explanation,
};
use crate::drivers::program::limit_monitor::wait_until_limit_exceeded;

/// Time in which a server has to exit after its input is closed, and again after SIGTERM.
const EXIT_TIMEOUT: Duration = Duration::from_secs(3);

/// Time for the last error output after the end of the process. Another process may hold the pipe open.
const ERROR_OUTPUT_TIMEOUT: Duration = Duration::from_secs(1);

/// Server in the sentences about its failure.
const FAILURE_SUBJECT: &str = "the MCP server";

/// Running process of a server.
pub(super) struct ServerProcess {
    server: Arc<McpServer>,
    role: BackendRole,
    exit: ProgramExit,
    /// Exit, once it is known; an inner `None` if the process holder was lost. Its future must not be polled again.
    known_exit: Option<Option<ProcessExit>>,
    tree: Box<dyn ProcessTree>,
    error_output: JoinHandle<ErrorTail>,
    folder: Option<ScratchDir>,
}

/// Pipes to the input and from the output of a server.
pub(super) type ServerPipes = (StdinPipe, OutputPipe);

impl ServerProcess {
    /// Starts the process.
    ///
    /// # Errors
    /// Returns the reason why it was not started.
    pub(super) async fn start(
        server: Arc<McpServer>,
        launcher: &BackendLauncher,
    ) -> Result<(Self, ServerPipes), ServerFailure> {
        let role = BackendRole::McpServer(server.name.clone());
        let (program, args) = (&server.program, server.args.clone());
        let launch_spec = BackendLaunchSpec {
            program,
            role: &role,
            args,
            variables: Vec::new(),
            stdin: StdinSource::Piped,
        };
        let launched = launcher.launch(launch_spec, || false).await;
        let BackendProcess { spawned, folder } = launched.map_err(|failure| {
            ServerFailure::new(match failure.code {
                Code::Interrupted => "the process holder of the MCP server was lost".to_owned(),
                _ => failure.message,
            })
        })?;
        let SpawnedProgram { stdin, stdout, stderr, exit, tree, .. } = spawned;
        let error_output = tokio::spawn(ErrorTail::read(stderr));
        let process = Self { server, role, exit, known_exit: None, tree, error_output, folder };
        match stdin {
            Some(stdin) => Ok((process, (stdin, stdout))),
            None => {
                process.kill_and_clean_up().await;
                Err(ServerFailure::new("the MCP server has no input"))
            }
        }
    }

    /// Returns when the process has ended or has exceeded a resource limit, with a sentence about it.
    pub(super) async fn wait_for_end_or_limit(&mut self) -> String {
        let resources = &self.server.program.resource_limits;
        tokio::select! {
            exit = &mut self.exit => {
                self.known_exit = Some(exit.as_ref().ok().copied());
                let Ok(exit) = exit else {
                    return "the process holder of the MCP server was lost".to_owned();
                };
                describe_end(FAILURE_SUBJECT, exit, (resources, self.tree.limit_events()))
            }
            excess = wait_until_limit_exceeded(resources, &*self.tree) => {
                describe_exceeded_limit(FAILURE_SUBJECT, &excess)
            }
        }
    }

    /// Waits for the exit after the input was closed. A server that does not exit gets SIGTERM.
    pub(super) async fn wait_for_exit_or_terminate(&mut self) {
        if self.known_exit.is_none()
            && timeout(EXIT_TIMEOUT, self.wait_for_end_or_limit()).await.is_err()
        {
            self.tree.terminate();
            _ = timeout(EXIT_TIMEOUT, self.wait_for_end_or_limit()).await; // The processes that are left are killed.
        }
    }

    /// Kills the process, and returns its failure with the end of its error output. Removes nothing yet.
    pub(super) async fn kill_and_explain(&mut self, sentence: String) -> ServerFailure {
        self.tree.kill();
        let Ok(Ok(tail)) = timeout(ERROR_OUTPUT_TIMEOUT, &mut self.error_output).await else {
            return ServerFailure::new(sentence);
        };
        let (is_cut, error_text) = (tail.is_cut(), tail.into_text());
        let exit = self.known_exit.flatten().unwrap_or(ProcessExit::Code(0));
        let explanation =
            sandbox_explanation((&self.server.program, &self.role), exit, ("", &error_text)).await;
        let sentence = match explanation {
            Some(explanation) => format!("{sentence}; {explanation}"),
            None => sentence,
        };
        ServerFailure { sentence, server_text: error_text, is_cut }
    }

    /// Kills what is left of the process, and removes its folder.
    pub(super) async fn kill_and_clean_up(self) {
        self.tree.kill_all_processes().await;
        self.error_output.abort();
        if let Some(folder) = self.folder {
            folder.remove().await;
        }
    }
}
