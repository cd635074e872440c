//! Starts the program of a tool: in its sandbox, with a folder for this call, and with the variables of the call.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use algonius_actors::decide::host::sandbox::{bwrap_failed, reports_denied_access};
use algonius_actors::model::code::Code;
use algonius_actors::model::execution::AttemptId;
use algonius_actors::model::failure::Failure;
use algonius_actors::model::id::{AgentId, ExecutionId};
use algonius_actors::model::program::Exit;
use algonius_actors::model::program::tool_program::ToolProgram;
use algonius_actors::ports::tools::CallStop;
use algonius_warden::{Launch, RootCapabilities, SpawnedProgram, Stdin, Warden};

use super::attempt::arguments::check_command_line;
use super::attempt::attempt_folder::{AttemptFolderSpec, create_folder_and_sandbox};
use super::attempt::launch_failure;
use super::context::{SharedDriverContext, folder_name};
use super::sandbox::{self, SandboxSubject};
use crate::drivers::files::scratch_dir::ScratchDir;

/// Note on a failed program whose error output reports a denied access.
const TOOL_REFUSAL_NOTE: &str = "the sandbox of the tool may have refused an access";

/// Starter of the programs of tools. Cheap to clone.
#[derive(Clone)]
pub struct ToolLauncher {
    /// Folders, sandboxes and environment that all programs share.
    pub context: Arc<SharedDriverContext>,
    /// Warden that starts the programs.
    pub warden: Arc<dyn Warden>,
}

/// Call for which a program is started.
pub(in crate::drivers) struct ProgramCall {
    /// Program of the tool.
    pub(in crate::drivers) program: Arc<ToolProgram>,
    /// Agent on whose behalf the tool is called.
    pub(in crate::drivers) agent: AgentId,
    /// Execution of the run that calls the tool.
    pub(in crate::drivers) run: ExecutionId,
    /// Number of the call's step in the run.
    pub(in crate::drivers) step: u32,
    /// Arguments of the program.
    pub(in crate::drivers) args: Vec<String>,
    /// Standard input of the program.
    pub(in crate::drivers) stdin: String,
}

/// Running program of a tool, with the folder of the call.
pub(in crate::drivers) struct ToolProcess {
    pub(in crate::drivers) spawned: SpawnedProgram,
    pub(in crate::drivers) folder: Option<ScratchDir>,
}

impl ToolLauncher {
    /// Starts the program of a call. The program ends when the service does.
    ///
    /// # Errors
    /// `agent-not-started`, `cancelled` or `input-rejected`, with a sentence that a model may read.
    pub(in crate::drivers) async fn launch(
        &self,
        call: ProgramCall,
        stop: &CallStop,
    ) -> Result<ToolProcess, Failure> {
        let program = Arc::clone(&call.program);
        // A relative name would be searched in the working directory, where other programs may write.
        if !program.command.is_absolute() {
            return Err(missing_failure(&program));
        }
        if program.working_dir.as_ref().is_some_and(|it| self.context.service_paths.hides(it)) {
            let message = "the working directory of the tool belongs to the service";
            return Err(Failure::new(Code::NotStarted, message));
        }
        let mut launch = self.launch_order(call);
        check_command_line(&launch.args, &launch.env)?;
        let subject = SandboxSubject::of_tool(&program);
        let folder_name = folder_name((launch.execution, launch.attempt_id));
        let folder = self.context.driver_context.runtime_dir.join(folder_name);
        let workspace = program.working_dir.as_ref().unwrap_or(&folder);
        let plan = sandbox::plan(&subject, &self.context, workspace).await?;
        let (mut sandbox, slot) = sandbox::prepare(plan, &self.context, &subject).await?;
        let folder = slot.as_ref().map_or(folder, |slot| slot.execution_folder().to_owned());
        sandbox.allow(&folder);
        let inherited = &self.context.inherited;
        sandbox::set_temporary_folder(&mut launch.env, &program.env, inherited, &folder);
        launch.working_dir = program.working_dir.clone().unwrap_or_else(|| folder.clone());
        let folder_spec =
            AttemptFolderSpec { folder, has_temporary_folder: true, owner: None, input: None };
        let (folder, launch) =
            create_folder_and_sandbox(Some(folder_spec), (sandbox, slot), launch, &self.context)
                .await
                .map_err(|failure| explain_missing_program(&program, failure))?;
        // The last moment for it: a start is not interrupted, so that no process appears after the clean-up.
        let spawned = match stop.is_given() {
            true => Err(Failure::new(Code::Cancelled, "the call was stopped")),
            false => self.warden.launch(launch).await.map_err(|error| launch_failure(&error)),
        };
        match spawned {
            Ok(spawned) => Ok(ToolProcess { spawned, folder }),
            Err(failure) => {
                if let Some(folder) = folder {
                    folder.remove().await;
                }
                Err(explain_missing_program(&program, failure))
            }
        }
    }

    /// Returns the launch of the program, without its folder and its sandbox.
    fn launch_order(&self, call: ProgramCall) -> Launch {
        let ProgramCall { program, agent, run, step, args, stdin } = call;
        let configured = program.env.iter().map(|(name, variable)| (name, variable.value.clone()));
        let ids = [
            ("A2A_TASK_ID", run.to_string()),
            ("ALGONIUS_AGENT_ID", agent.to_string()),
            ("ALGONIUS_CALL_ID", format!("{run}-{step}")),
        ];
        let mut env: BTreeMap<OsString, OsString> = self.context.inherited.clone();
        env.extend(configured.map(|(name, value)| (name.into(), value.into())));
        // The ids come last, so that no configured variable replaces them.
        env.extend(ids.map(|(name, value)| (name.into(), value.into())));
        Launch {
            // The process holder finds processes by this id, and calls of one run must not be confused.
            execution: ExecutionId::fresh(),
            attempt_id: AttemptId::FIRST,
            program: program.command.clone(),
            args,
            env,
            working_dir: PathBuf::new(),
            stdin: Stdin::Bytes(stdin.into_bytes()),
            // The result of a call is lost with the service that waits for it.
            max_recorded_bytes: 0,
            ends_with_supervisor: true,
            rlimits: Vec::new(),
            ruleset: None,
            root_capabilities: RootCapabilities::All,
            user: None,
            scratch_slot: None,
            wrapper: None,
            resource_limits: program.resources,
        }
    }
}

/// Returns the part of the sandbox in the failure of a program; `None` if nothing suggests that it has one.
pub(in crate::drivers) fn sandbox_explanation(
    program: &ToolProgram,
    exit: Exit,
    stdout: &str,
    stderr: &str,
) -> Option<&'static str> {
    if bwrap_failed(program.confinement.isolation, exit, stdout, stderr) {
        return Some("the sandbox of the tool could not be created");
    }
    let is_confined = SandboxSubject::of_tool(program).is_confined();
    (is_confined && reports_denied_access(stderr)).then_some(TOOL_REFUSAL_NOTE)
}

/// Replaces the failure if the program is not installed. The system reports this with the same error as a missing
/// working directory.
fn explain_missing_program(program: &ToolProgram, failure: Failure) -> Failure {
    let is_missing = failure.code == Code::NotStarted && !program.command.exists();
    if is_missing { missing_failure(program) } else { failure }
}

fn missing_failure(program: &ToolProgram) -> Failure {
    let name = program.command.file_name().unwrap_or(program.command.as_os_str());
    let message = format!("the program `{}` of the tool is not installed", name.to_string_lossy());
    Failure::new(Code::NotStarted, message)
}
