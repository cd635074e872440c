//! Starts a backend program: in its sandbox, with a folder for this process.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use algonius_actors::decide::host::denied_access::reports_denied_access;
use algonius_actors::decide::host::resources::cgroup_limit_failure;
use algonius_actors::decide::host::sandbox::bwrap_failed;
use algonius_actors::model::code::Code;
use algonius_actors::model::execution::AttemptId;
use algonius_actors::model::failure::Failure;
use algonius_actors::model::host::resources::{CgroupLimitEvents, ResourceLimits};
use algonius_actors::model::id::ExecutionId;
use algonius_actors::model::program::ProcessExit;
use algonius_actors::model::program::backend_program::{BackendProgram, BackendRole};
use algonius_warden::{
    LaunchRequest, ProgramLauncher, RootCapabilities, SpawnedProgram, StdinSource,
};

use super::attempt::arguments::check_command_line;
use super::attempt::attempt_folder::{AttemptFolderSpec, create_folder_and_sandbox};
use super::context::{SharedDriverContext, attempt_folder_name};
use super::sandbox::{self, SandboxSubject};
use crate::drivers::files::scratch_dir::ScratchDir;
use crate::drivers::start_faults::{self, StartFaultContext, launch_failure};

/// Starter of backend programs. Cheap to clone.
#[derive(Clone)]
pub struct BackendLauncher {
    /// Folders, sandboxes and environment that all programs share.
    pub context: Arc<SharedDriverContext>,
    /// Launcher that starts the programs.
    pub launcher: Arc<dyn ProgramLauncher>,
}

/// Backend program that is started.
pub(in crate::drivers) struct BackendLaunchSpec<'p> {
    /// Program with its sandbox.
    pub(in crate::drivers) program: &'p BackendProgram,
    /// Role of the program, for its errors.
    pub(in crate::drivers) role: &'p BackendRole,
    /// Arguments of the program.
    pub(in crate::drivers) args: Vec<String>,
    /// Variables that replace those of the configuration.
    pub(in crate::drivers) variables: Vec<(&'static str, String)>,
    /// Standard input of the program.
    pub(in crate::drivers) stdin: StdinSource,
}

/// Running backend program, with the folder of the process.
pub(in crate::drivers) struct BackendProcess {
    pub(in crate::drivers) spawned: SpawnedProgram,
    pub(in crate::drivers) folder: Option<ScratchDir>,
}

impl BackendLauncher {
    /// Starts a program, unless `is_cancelled` returns true when everything is prepared. The program ends when the
    /// service does.
    ///
    /// # Errors
    /// `agent-not-started`, `cancelled` or `input-rejected`, with a sentence that a model may read.
    pub(in crate::drivers) async fn launch(
        &self,
        launch_spec: BackendLaunchSpec<'_>,
        is_cancelled: impl Fn() -> bool + Send,
    ) -> Result<BackendProcess, Failure> {
        let launched = self.launch_in_sandbox(launch_spec, is_cancelled).await;
        match launched {
            Err(failure) => Err(self.context.explain_by_runtime_folder(failure).await),
            launched => launched,
        }
    }

    async fn launch_in_sandbox(
        &self,
        launch_spec: BackendLaunchSpec<'_>,
        is_cancelled: impl Fn() -> bool + Send,
    ) -> Result<BackendProcess, Failure> {
        let (program, role) = (launch_spec.program, launch_spec.role);
        // A relative name would be searched in the working directory, where other programs may write.
        if !program.command.is_absolute() {
            return Err(program_missing_failure(program, role));
        }
        if program
            .working_dir
            .as_ref()
            .is_some_and(|it| self.context.service_paths.is_hidden_from_programs(it))
        {
            let noun = role.kind_name();
            let message = format!("the working directory of the {noun} belongs to the service");
            return Err(Failure::new(Code::NotStarted, message));
        }
        let mut launch = self.build_launch(launch_spec);
        check_command_line(&launch.args, &launch.env)?;
        let subject = SandboxSubject::for_backend(program);
        let folder_name = attempt_folder_name((launch.execution, launch.attempt_id));
        let folder = self.context.settings.runtime_dir.join(folder_name);
        let workspace = program.working_dir.as_ref().unwrap_or(&folder);
        let plan = sandbox::plan(&subject, &self.context, workspace).await?;
        let (mut sandbox, slot) = sandbox::prepare(plan, &self.context, &subject).await?;
        let folder = slot.as_ref().map_or(folder, |slot| slot.execution_folder().to_owned());
        sandbox.allow_writing(&folder);
        let inherited = &self.context.inherited_variables;
        sandbox::set_temporary_folder(&mut launch.env, &program.env, inherited, &folder);
        launch.working_dir = program.working_dir.clone().unwrap_or_else(|| folder.clone());
        let working_dir = launch.working_dir.clone();
        let folder_spec =
            AttemptFolderSpec { folder, has_temporary_folder: true, owner: None, input: None };
        let created =
            create_folder_and_sandbox(Some(folder_spec), (sandbox, slot), launch, &self.context);
        let (folder, launch) = match created.await {
            Err(failure) => {
                return Err(explain_failed_start((program, role), failure, working_dir).await);
            }
            Ok(created) => created,
        };
        // The last moment for it: a start is not interrupted, so that no process appears after the clean-up.
        let spawned = match is_cancelled() {
            true => Err(Failure::new(Code::Cancelled, "the call was stopped")),
            false => self.launcher.launch(launch).await.map_err(|error| launch_failure(&error)),
        };
        match spawned {
            Ok(spawned) => Ok(BackendProcess { spawned, folder }),
            Err(failure) => {
                if let Some(folder) = folder {
                    folder.remove().await;
                }
                Err(explain_failed_start((program, role), failure, working_dir).await)
            }
        }
    }

    /// Returns the launch of the program, without its folder and its sandbox.
    fn build_launch(&self, launch_spec: BackendLaunchSpec<'_>) -> LaunchRequest {
        let BackendLaunchSpec { program, args, variables, stdin, .. } = launch_spec;
        let configured = program.env.iter().map(|(name, variable)| (name, variable.value.clone()));
        let mut env: BTreeMap<OsString, OsString> = self.context.inherited_variables.clone();
        env.extend(configured.map(|(name, value)| (name.into(), value.into())));
        // These come last, so that no configured variable replaces them.
        env.extend(variables.into_iter().map(|(name, value)| (name.into(), value.into())));
        LaunchRequest {
            // The process holder finds processes by this id, and two processes must not be confused.
            execution: ExecutionId::generate(),
            attempt_id: AttemptId::FIRST,
            program: program.command.clone(),
            args,
            env,
            working_dir: PathBuf::new(),
            stdin,
            // What the program writes is lost with the service that waits for it.
            max_recorded_bytes: 0,
            ends_with_supervisor: true,
            rlimits: Vec::new(),
            ruleset: None,
            root_capabilities: RootCapabilities::All,
            user: None,
            scratch_slot: None,
            wrapper: None,
            resource_limits: program.resource_limits,
        }
    }
}

/// Returns the sentence about the end of a program. `subject` is its noun with an article.
pub(in crate::drivers) fn describe_end(
    subject: &str,
    exit: ProcessExit,
    (limits, limit_events): (&ResourceLimits, CgroupLimitEvents),
) -> String {
    match (cgroup_limit_failure(limits, limit_events), exit) {
        (Some(excess), _) => format!("{subject} {}", excess.message),
        (None, ProcessExit::Code(code)) => format!("{subject} ended with exit code {code}"),
        (None, ProcessExit::Signal(signal)) => format!("signal {signal} ended {subject}"),
    }
}

/// Returns the sentence about a program that is killed because it exceeds a limit.
pub(in crate::drivers) fn describe_exceeded_limit(subject: &str, excess: &Failure) -> String {
    format!("{subject} {}, and the service killed it", excess.message)
}

/// Returns the part of the sandbox in the failure of a program; `None` if nothing suggests that it has one.
pub(in crate::drivers) async fn sandbox_explanation(
    (program, role): (&BackendProgram, &BackendRole),
    exit: ProcessExit,
    (stdout, stderr): (&str, &str),
) -> Option<String> {
    let noun = role.kind_name();
    if bwrap_failed(program.confinement.isolation, exit, stdout, stderr) {
        let fault_context = start_fault_context(program, program.working_dir.clone());
        let cause = start_faults::find_wrapper_failure_cause(
            program.command.clone(),
            fault_context,
            stderr,
        )
        .await;
        let sentence = || format!("the sandbox of the {noun} could not be created");
        return Some(cause.map_or_else(sentence, |cause| cause.message));
    }
    let is_confined = SandboxSubject::for_backend(program).is_confined();
    (is_confined && reports_denied_access(stderr))
        .then(|| format!("the sandbox of the {noun} may have refused an access"))
}

/// Names the cause of a failed start.
async fn explain_failed_start(
    (program, role): (&BackendProgram, &BackendRole),
    failure: Failure,
    working_dir: PathBuf,
) -> Failure {
    let missing_failure = || program_missing_failure(program, role);
    let fault_context = start_fault_context(program, Some(working_dir));
    start_faults::explain_failed_start(failure, &program.command, fault_context, missing_failure)
        .await
}

fn start_fault_context(
    program: &BackendProgram,
    working_dir: Option<PathBuf>,
) -> StartFaultContext {
    let writable = program.sandbox.writable.iter().flatten().cloned();
    StartFaultContext {
        visible_paths: writable.chain(working_dir.clone()).collect(),
        working_dir: working_dir.unwrap_or_default(),
        search_path: None,
        hidden_paths: program.sandbox.hidden.clone(),
        has_own_user: false,
    }
}

fn program_missing_failure(program: &BackendProgram, role: &BackendRole) -> Failure {
    let name = program.command.file_name().unwrap_or(program.command.as_os_str());
    let (name, noun) = (name.to_string_lossy(), role.kind_name());
    let message = format!("the program `{name}` of the {noun} is not installed");
    Failure::new(Code::NotStarted, message)
}
