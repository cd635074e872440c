//! Session process of a program, between and during the messages of its conversation.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use algonius_actors::decide::budget::cumulative_usage::CounterValues;
use algonius_actors::model::execution::request::Overrides;
use algonius_actors::model::failure::Failure;
use algonius_actors::model::program::EventDialect;
use algonius_actors::model::session::SessionId;
use algonius_warden::{MemoryAccount, OutputPipe, ProcessTree, ProgramExit, StdinPipe};
use tokio::time::timeout;

use crate::drivers::files::file_access::AllowedFolders;
use crate::drivers::files::scratch_dir::ScratchDir;
use crate::drivers::program::attempt::PendingAttempt;
use crate::drivers::program::attempt::arguments::start_template_values;

/// Session process of a program. Dropping it kills its whole process tree.
pub(super) struct SessionProcess {
    pub(super) pid: u32,
    pub(super) stdout: OutputPipe,
    pub(super) stderr: OutputPipe,
    /// Standard input; `None` after the program stopped reading.
    pub(super) stdin: Option<StdinPipe>,
    pub(super) program_exit: ProgramExit,
    pub(super) tree: Box<dyn ProcessTree>,
    /// Program's account of the memory for output.
    pub(super) memory_account: MemoryAccount,
    pub(super) scratch_dir: Option<ScratchDir>,
    pub(super) allowed_folders: AllowedFolders,
    /// Dialect of the program's events, if they are native.
    pub(super) dialect: Option<EventDialect>,
    pub(super) start_settings: StartSettings,
    pub(super) progress: ConversationProgress,
}

/// Settings with which a program was started: it serves no message that needs other settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct StartSettings {
    pub(super) working_dir: PathBuf,
    pub(super) overrides: Overrides,
    /// Parameters and details of the message that the start of the program used.
    pub(super) template_values: BTreeMap<String, String>,
}

impl StartSettings {
    /// Returns the settings that an attempt needs.
    ///
    /// # Errors
    /// Fails if the working folder cannot be used.
    pub(super) async fn for_attempt(attempt: &PendingAttempt) -> Result<Self, Failure> {
        Ok(Self {
            working_dir: attempt.resolve_working_dir().await?,
            overrides: attempt.work.request.effective_overrides(),
            template_values: start_template_values(&attempt.program, &attempt.template_values()),
        })
    }
}

/// Progress of the conversation with a session process.
#[derive(Default)]
pub(super) struct ConversationProgress {
    /// Number of messages that the program has received.
    pub(super) message_count: u64,
    /// Cumulative counters since the program started, if it reports such.
    pub(super) usage_counters: CounterValues,
    /// Session id of the conversation in the program.
    pub(super) session_id: Option<SessionId>,
}

impl SessionProcess {
    /// Ends the program: by the end of its input, then by SIGTERM, then by SIGKILL.
    pub(super) async fn end(self, grace: Duration) {
        let Self { mut program_exit, tree, stdin: stdin_pipe, scratch_dir: folder, .. } = self;
        drop(stdin_pipe);
        if timeout(grace, &mut program_exit).await.is_err() {
            tree.terminate();
            _ = timeout(grace, &mut program_exit).await; // The processes that remain are killed below.
        }
        kill_and_remove_folder(tree, folder).await;
    }

    /// Removes the remains of a program that has ended.
    pub(super) async fn clean_up(self) {
        let Self { tree, scratch_dir: folder, .. } = self;
        kill_and_remove_folder(tree, folder).await;
    }
}

async fn kill_and_remove_folder(tree: Box<dyn ProcessTree>, folder: Option<ScratchDir>) {
    tree.kill_all_processes().await;
    if let Some(folder) = folder {
        folder.remove().await;
    }
}
