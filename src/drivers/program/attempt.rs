//! Starts one attempt: finds its folders, prepares them and its sandbox, and starts its program.

pub(super) mod arguments;
pub(super) mod attempt_folder;
mod detail_variables;
mod home_restoration;
mod prepared_attempt;
mod turn_plan;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use algonius_actors::decide::access::file_policy;
use algonius_actors::driver::AttemptWork;
use algonius_actors::driver::report::Reporter;
use algonius_actors::model::agent::program_missing_failure;
use algonius_actors::model::code::Code;
use algonius_actors::model::failure::Failure;
use algonius_actors::model::program::ProgramSpec;
use algonius_warden::{ProgramLauncher, SpawnedProgram};
use chrono::SecondsFormat;

use self::attempt_folder::create_folder_and_sandbox;
use self::detail_variables::message_detail_values;
use self::prepared_attempt::PreparedAttempt;
use super::context::{self, SharedDriverContext};
use super::running_process::{AnswerLocation, DialoguePlan, ProcessIo, RunningProcess};
use super::sandbox::{self, SandboxSubject};
use super::session_resume::{AttemptSession, derive_session_id};
use super::success_checks::SuccessChecks;
use super::workspace::resolve_working_dir;
use crate::drivers::files::scratch_dir::ScratchDir;
use crate::drivers::files::scratch_slots::{self, ScratchSlot};
use crate::drivers::lease_commands::LeaseCommandReceiver;
use crate::drivers::output::line_limit::max_line_bytes;
use crate::drivers::start_faults::{self, StartFaultContext, launch_failure};
use crate::drivers::stdio::protocol::StdioTurn;
use crate::platform::template::{AttemptPaths, ExecutionValues, RequestIds};

/// Attempt that has not started yet.
#[derive(Clone)]
pub(super) struct PendingAttempt {
    /// Program to run.
    pub(super) program: Arc<ProgramSpec>,
    /// Context that all attempts share.
    pub(super) context: Arc<SharedDriverContext>,
    /// Launcher that starts the program.
    pub(super) launcher: Arc<dyn ProgramLauncher>,
    /// Request and execution of the attempt.
    pub(super) work: AttemptWork,
    /// Session that the attempt starts or resumes.
    pub(super) session: AttemptSession,
}

/// Program that was started.
pub(super) struct StartedProgram {
    pub(super) spawned: SpawnedProgram,
    pub(super) folder: Option<ScratchDir>,
    pub(super) answer_location: AnswerLocation,
    /// Success checks of the attempt, if any.
    pub(super) checks: Option<SuccessChecks>,
}

impl PendingAttempt {
    /// Starts the program. An attempt that cannot work is refused before any resource exists.
    pub(super) async fn start(
        self,
        commands: &LeaseCommandReceiver,
    ) -> Result<(RunningProcess, ProcessIo), Failure> {
        let dialogue = self.plan_dialogue(commands).await?;
        let StartedProgram { spawned, folder, answer_location, checks } =
            self.launch(commands).await?;
        let plans = (answer_location, dialogue, checks);
        Ok(RunningProcess::new(self.program, (self.work, self.session), spawned, folder, plans))
    }

    /// Returns the dialogue with the program over its standard input, if there is one.
    async fn plan_dialogue(
        &self,
        commands: &LeaseCommandReceiver,
    ) -> Result<Option<DialoguePlan>, Failure> {
        let Some(spec) = &self.program.stdio_protocol else { return Ok(None) };
        let Some(interactive_spec) = self.program.interactive_spec() else {
            let max_message_bytes = max_line_bytes(self.work.spec.limits.sizes.max_output_bytes);
            return StdioTurn::new(spec, &self.template_values(), 0, max_message_bytes)
                .map(|turn| Some(DialoguePlan::Exchange(Box::new(turn))));
        };
        let cwd = resolve_working_dir(&self.program, &self.work).await?;
        let plan = turn_plan::plan_turn(interactive_spec, self, &cwd)?;
        Ok(Some(DialoguePlan::Agent(Box::new(plan), commands.clone())))
    }

    /// Starts the program; the caller drives it.
    pub(super) async fn launch(
        &self,
        commands: &LeaseCommandReceiver,
    ) -> Result<StartedProgram, Failure> {
        let launched = self.launch_in_sandbox(commands).await;
        match launched {
            Err(failure) => Err(self.context.explain_by_runtime_folder(failure).await),
            launched => launched,
        }
    }

    async fn launch_in_sandbox(
        &self,
        commands: &LeaseCommandReceiver,
    ) -> Result<StartedProgram, Failure> {
        self.check_file_delivery()?;
        self.restore_home().await?;
        let working_dir = resolve_working_dir(&self.program, &self.work).await?;
        self.check_outside_service_folders(&working_dir)?;
        let subject = SandboxSubject::for_attempt(&self.program, &self.work);
        let plan = sandbox::plan(&subject, &self.context, &working_dir).await?;
        let (mut sandbox, slot) = sandbox::prepare(plan, &self.context, &subject).await?;
        let folder = slot.as_ref().map(|slot| slot.execution_folder().to_owned());
        let folder = folder.unwrap_or_else(|| self.folder_outside_slots());
        let prepared = PreparedAttempt::new(self, folder, working_dir)?;
        sandbox.allow_writing(prepared.folder());
        let mut launch = prepared.build_launch()?;
        let working_dir = launch.working_dir.clone();
        launch.scratch_slot = slot.as_ref().map(ScratchSlot::number);
        let checks = prepared.success_checks(Some(&sandbox)).await?;
        let folder_spec = prepared.folder_spec();
        let created =
            create_folder_and_sandbox(folder_spec, (sandbox, slot), launch, &self.context).await;
        let (folder, launch) = match created {
            Err(failure) => return Err(self.explain_failed_start(failure, working_dir).await),
            Ok(created) => created,
        };
        let answer_location = prepared.answer_location(folder.as_ref()).await;
        // The last moment for it: a start is not interrupted, so that no process appears after the clean-up.
        if commands.should_stop() {
            return Err(Failure::new(Code::Cancelled, "cancelled before it was started"));
        }
        let spawned = self.launcher.launch(launch).await;
        match spawned {
            Ok(spawned) => Ok(StartedProgram { spawned, folder, answer_location, checks }),
            Err(error) => Err(self.explain_failed_start(launch_failure(&error), working_dir).await),
        }
    }

    /// Refuses files that the program would not receive. The message was accepted before the configuration changed.
    fn check_file_delivery(&self) -> Result<(), Failure> {
        let AttemptWork { spec, request, .. } = &self.work;
        let checked = file_policy::check_files(spec.file_delivery(), &request.input);
        checked.map_err(|failure| Failure::new(Code::InputRejected, failure.message))
    }

    /// Names the cause of a failed start. A program may have been removed after the service last searched for it.
    async fn explain_failed_start(&self, failure: Failure, working_dir: PathBuf) -> Failure {
        let program = &self.program.command;
        let hidden = match sandbox::is_confined(&self.work, &self.program) {
            true => sandbox::hidden_paths(&self.program, &self.context),
            false => Vec::new(),
        };
        let fault_context = StartFaultContext::for_agent(&self.program, working_dir, hidden);
        let name = program.file_name().unwrap_or(program.as_os_str()).to_string_lossy();
        let missing_failure = || program_missing_failure(&self.work.spec.id, &name);
        start_faults::explain_failed_start(failure, program, fault_context, missing_failure).await
    }

    /// Refuses to start the program in a folder of the service, except for the agent's own home, and in a parent of
    /// such a folder if a link leads there. A parent folder that the configuration names is reported as a gap if the
    /// sandbox cannot protect the contents.
    fn check_outside_service_folders(&self, folder: &Path) -> Result<(), Failure> {
        let home = self.program.runtime_settings.agent_home.as_ref();
        let is_in_home = home.is_some_and(|home| folder.starts_with(&home.path));
        let resolved_paths = self.program.sandbox.canonical_paths.as_ref();
        let is_redirected = resolved_paths.is_some_and(|roots| {
            // The working directory of a read-only agent may contain links; the sandbox judges where they lead.
            let is_resolved = self.work.workspace.is_some();
            is_resolved && !roots.working_dirs.iter().any(|root| folder.starts_with(root))
        });
        let service = &self.context.service_paths;
        if is_in_home
            || !(service.is_hidden_from_programs(folder)
                || is_redirected && service.is_exposed_by(folder))
        {
            return Ok(());
        }
        let is_overridden = self.work.request.effective_overrides().working_dir.is_some();
        let code = if is_overridden { Code::OverrideRefused } else { Code::NotStarted };
        Err(Failure::new(code, "the working directory belongs to the service"))
    }

    /// Returns the working directory of the attempt.
    pub(super) async fn resolve_working_dir(&self) -> Result<PathBuf, Failure> {
        resolve_working_dir(&self.program, &self.work).await
    }

    /// Takes over the program that an earlier process instance of the service started, with its folder.
    pub(super) async fn resume(
        self,
        reporter: &Reporter,
        commands: &LeaseCommandReceiver,
    ) -> Result<(RunningProcess, ProcessIo), Failure> {
        let AttemptWork { execution, attempt_id, .. } = self.work;
        let Ok(spawned) = self.launcher.complete_takeover(execution, attempt_id).await else {
            // The previous holder is gone, and no other process holds the program.
            self.launcher.kill_all_processes(execution, attempt_id).await;
            let message = "its process was lost with its process holder";
            return Err(Failure::new(Code::Interrupted, message));
        };
        let runtime_dir = &self.context.settings.runtime_dir;
        let folder_paths = scratch_slots::attempt_folder_paths(
            runtime_dir,
            spawned.scratch_slot,
            &self.folder_name(),
        );
        let working_dir = resolve_working_dir(&self.program, &self.work).await;
        let working_dir = working_dir.unwrap_or_else(|_failure| self.program.working_dir.clone());
        let prepared = PreparedAttempt::new(&self, folder_paths.0.clone(), working_dir)?;
        let checks = prepared.success_checks(None).await?;
        let folder = ScratchDir::adopt(folder_paths);
        let folder = folder
            .map(|folder| folder.with_in_memory(self.context.settings.is_runtime_dir_in_memory));
        let answer_location = prepared.answer_location(folder.as_ref()).await;
        // The program is read again from its first byte, and its output must not be recorded twice.
        reporter.delete_output().await.map_err(|error| {
            tracing::error!(%execution, %error, "failed to discard the output of an earlier process instance");
            Failure::new(Code::LedgerUnavailable, "the output of the agent could not be recorded")
        })?;
        // Every other dialogue ended with the process instance that began it.
        let is_interactive = self.program.interactive_spec().is_some();
        let dialogue = if is_interactive { self.plan_dialogue(commands).await? } else { None };
        let plans = (answer_location, dialogue, checks);
        Ok(RunningProcess::new(self.program, (self.work, self.session), spawned, folder, plans))
    }

    pub(super) fn template_values(&self) -> ExecutionValues {
        let AttemptWork { attempt_id, request, .. } = &self.work;
        let mut params = self.program.params.clone();
        params.extend(request.input.params.clone());
        ExecutionValues {
            input: request.input.text(),
            message_details: message_detail_values(&request.input),
            paths: AttemptPaths::default(),
            params,
            ids: request_ids(&self.work),
            attempt: attempt_id.attempt,
            turn: attempt_id.turn,
            timestamp: self.accepted_at(),
            model: self.program.runtime_settings.model.clone().unwrap_or_default(),
            home: self.program.runtime_settings.home.clone(),
            session_id: self.session.resumed_id(),
            new_session_id: derive_session_id(&self.work).to_string(),
        }
    }

    /// Returns the acceptance time of the execution, which its id contains.
    fn accepted_at(&self) -> String {
        let at = self.work.execution.accepted_at();
        at.unwrap_or_default().to_rfc3339_opts(SecondsFormat::Millis, true)
    }

    /// Returns the name of the attempt's own folder.
    fn folder_name(&self) -> String {
        context::attempt_folder_name((self.work.execution, self.work.attempt_id))
    }

    /// Returns the path of the attempt's own folder if it has no slot.
    fn folder_outside_slots(&self) -> PathBuf {
        self.context.settings.runtime_dir.join(self.folder_name())
    }
}

/// Returns the ids of a request for templates.
fn request_ids(work: &AttemptWork) -> RequestIds {
    RequestIds {
        execution_id: work.execution.to_string(),
        agent_id: work.spec.id.to_string(),
        context_id: work.request.context.0.clone(),
        message_id: work.request.message_id.0.clone(),
    }
}
