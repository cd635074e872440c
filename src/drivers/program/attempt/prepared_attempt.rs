//! Preparation of an attempt whose folders are known: its command line, input, output and success checks.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use algonius_actors::driver::AttemptWork;
use algonius_actors::model::agent::file_delivery::FileDelivery;
use algonius_actors::model::failure::Failure;
use algonius_actors::model::host::resources::{CgroupMode, ResourceLimits};
use algonius_actors::model::program::{InputMethod, OutputMethod, ServiceLossAction};
use algonius_warden::{LaunchRequest, RootCapabilities, StdinSource};

use super::PendingAttempt;
use super::arguments::{
    check_environment_and_size, render_arguments, render_file_name, render_success_check_text,
};
use super::attempt_folder::{AttemptFolderSpec, FolderInput};
use super::detail_variables::{detail_variable_names, detail_variables};
use crate::drivers::files::file_access::AllowedFolders;
use crate::drivers::files::input_files::{self, ListedFile};
use crate::drivers::files::program_file::ProgramOutputFile;
use crate::drivers::files::scratch_dir::ScratchDir;
use crate::drivers::output::recorded_limit::max_recorded_bytes;
use crate::drivers::program::program_environment::attempt_environment;
use crate::drivers::program::running_process::AnswerLocation;
use crate::drivers::program::sandbox::{self, LaunchSandbox, SandboxSubject, is_confined};
use crate::drivers::program::success_checks::{CheckLaunch, SuccessChecks};
use crate::platform::template::{AttemptPaths, ExecutionValues};

/// Variables of the work on one message, so a program that takes several messages does not get them. The variables of
/// the details belong to them.
const MESSAGE_VARIABLES: [&str; 4] = ["A2A_MESSAGE_ID", "A2A_TASK_ID", "TRACEPARENT", "TRACESTATE"];

/// Attempt whose folders are known.
pub(super) struct PreparedAttempt<'a> {
    attempt: &'a PendingAttempt,
    /// Path of the attempt's own folder, which may not exist yet.
    folder: PathBuf,
    working_dir: PathBuf,
    /// Name of the input file; empty if there is none.
    input_file_name: String,
    /// Values for the templates of the configuration, with the text for the program and the paths of its files.
    values: ExecutionValues,
    /// Files of the request that the program receives.
    files: Vec<ListedFile>,
}

impl<'a> PreparedAttempt<'a> {
    /// Returns the preparation of an attempt with these folders.
    ///
    /// # Errors
    /// `input-rejected` if the request leads to no usable name of a file.
    pub(super) fn new(
        attempt: &'a PendingAttempt,
        folder: PathBuf,
        working_dir: PathBuf,
    ) -> Result<Self, Failure> {
        let program = &attempt.program;
        let mut values = attempt.template_values();
        let input_name = match program.input_method {
            InputMethod::File => render_file_name(&program.input_file_template, &values)?,
            InputMethod::Stdin | InputMethod::Args | InputMethod::JsonRpc => String::new(),
        };
        let output_file = match program.output_method {
            OutputMethod::File => {
                folder.join(render_file_name(&program.output_file_template, &values)?)
            }
            OutputMethod::Stdout
            | OutputMethod::Events
            | OutputMethod::Native(_)
            | OutputMethod::JsonRpc => PathBuf::new(),
        };
        let delivery = attempt.work.spec.file_delivery();
        let files = match delivery.writes_files() {
            true => input_files::list_files(&attempt.work.request.input.parts, &folder),
            false => Vec::new(),
        };
        values.paths = AttemptPaths {
            input_file: folder.join(&input_name),
            output_file,
            file_list: input_files::to_lines(&files),
            own_folder: folder.clone(),
        };
        if delivery == FileDelivery::ListInPrompt {
            input_files::add_to_prompt(&mut values.input, &files);
        }
        Ok(Self { attempt, folder, working_dir, input_file_name: input_name, values, files })
    }

    /// Returns the path of the attempt's own folder.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the launch of the program, without its sandbox.
    ///
    /// # Errors
    /// `input-rejected` if the request cannot be passed to a program.
    pub(super) fn build_launch(&self) -> Result<LaunchRequest, Failure> {
        let PendingAttempt { program, context, work, session, .. } = self.attempt;
        let inherited = &context.inherited_variables;
        let args = render_arguments(program, session.argument_templates(program), &self.values)?;
        let mut env = attempt_environment(program, inherited, work);
        let listing = input_files::to_json(&self.files);
        env.extend(listing.map(|listing| (input_files::FILES_VARIABLE.into(), listing.into())));
        let details = detail_variables(&self.values.message_details, &self.values.params);
        env.extend(details.map(|(name, text)| (name.into(), text.into())));
        if is_confined(work, program) {
            sandbox::set_temporary_folder(&mut env, &program.env, inherited, &self.folder);
        }
        let is_pooled = program.pool.is_some();
        if is_pooled {
            let names = MESSAGE_VARIABLES.into_iter().chain(detail_variable_names());
            names.for_each(|name| _ = env.remove(OsStr::new(name)));
        }
        check_environment_and_size(&args, &env)?;
        let stdin = match program.input_method {
            _ if program.interactive_spec().is_some() => StdinSource::Journaled,
            _ if program.stdio_protocol.is_some() => StdinSource::Piped,
            // Complete before the start, because the program may outlive the service that would write the rest.
            InputMethod::Stdin => StdinSource::Bytes(self.values.input.clone().into_bytes()),
            InputMethod::File | InputMethod::Args | InputMethod::JsonRpc => {
                StdinSource::Bytes(Vec::new())
            }
        };
        let AttemptWork { execution, attempt_id, spec, .. } = work;
        Ok(LaunchRequest {
            execution: *execution,
            attempt_id: *attempt_id,
            program: program.command.clone(),
            args,
            env,
            working_dir: self.working_dir.clone(),
            stdin,
            max_recorded_bytes: match is_pooled {
                // A pooled process ends with the service, so no later process reads this output again.
                true => 0,
                false => max_recorded_bytes(program, spec.limits.sizes.max_output_bytes),
            },
            ends_with_supervisor: program.on_service_loss == ServiceLossAction::Kill,
            rlimits: Vec::new(),
            ruleset: None,
            scratch_slot: None,
            root_capabilities: RootCapabilities::All,
            user: program.user.ids,
            wrapper: None,
            resource_limits: program.resource_limits,
        })
    }

    /// Returns the success checks of the attempt, if the criteria have any. A check of a resumed program gets a
    /// `sandbox` of its own.
    ///
    /// # Errors
    /// `input-rejected` if the request cannot be passed to a check.
    pub(super) async fn success_checks(
        &self,
        sandbox: Option<&LaunchSandbox>,
    ) -> Result<Option<SuccessChecks>, Failure> {
        let PendingAttempt { program, launcher, .. } = self.attempt;
        let criteria = &program.success_criteria;
        if !SuccessChecks::is_required(criteria) {
            return Ok(None);
        }
        let mut checks =
            SuccessChecks { schema: criteria.answer_schema.clone(), ..SuccessChecks::default() };
        if let Some(path) = &criteria.artifact_path {
            let allowed_folders = self.allowed_folders(Some(self.folder.clone())).await;
            checks.artifact =
                Some((render_success_check_text(path, &self.values)?, allowed_folders));
        }
        if let Some(check) = &criteria.check {
            let args = check.args.iter().map(|arg| render_success_check_text(arg, &self.values));
            let launch = LaunchRequest {
                program: check.command.clone(),
                args: args.collect::<Result<_, _>>()?,
                stdin: StdinSource::Bytes(Vec::new()),
                // A check is never resumed: its result is lost together with the process that waits for it.
                ends_with_supervisor: true,
                // The output of a check need not outlive the service. Without it, the check uses no output memory while
                // the checked program does.
                max_recorded_bytes: 0,
                resource_limits: ResourceLimits {
                    cgroup_mode: CgroupMode::Off,
                    ..ResourceLimits::default()
                },
                ..self.build_launch()?
            };
            let sandbox = match sandbox {
                Some(sandbox) => sandbox.clone(),
                None => self.build_check_sandbox().await?,
            };
            let (launcher, time_limit) = (Arc::clone(launcher), check.timeout);
            checks.command_check = Some(CheckLaunch { sandbox, launch, launcher, time_limit });
        }
        Ok(Some(checks))
    }

    /// Returns the sandbox of a check that reads the files of a resumed program.
    async fn build_check_sandbox(&self) -> Result<LaunchSandbox, Failure> {
        let PendingAttempt { program, context, work, .. } = self.attempt;
        let subject = SandboxSubject::for_attempt(program, work);
        let plan = sandbox::plan(&subject, context, &self.working_dir).await?;
        let plan = plan.with_writable_folder(&self.folder);
        let (sandbox, _slot) = sandbox::prepare(plan, context, &subject).await?;
        Ok(sandbox)
    }

    /// Returns the source of the answer. The permitted files are determined before the program starts.
    pub(super) async fn answer_location(&self, folder: Option<&ScratchDir>) -> AnswerLocation {
        let program = &self.attempt.program;
        let dialect = match program.output_method {
            OutputMethod::Stdout if program.stdio_protocol.is_none() => {
                return AnswerLocation::Stdout;
            }
            OutputMethod::File => {
                let file = folder.zip(self.values.paths.output_file.file_name());
                let file = file
                    .map(|(folder, name)| ProgramOutputFile::new(folder, name, program.user.ids));
                return AnswerLocation::File(file.and_then(Result::ok));
            }
            OutputMethod::Stdout | OutputMethod::Events | OutputMethod::JsonRpc => None,
            OutputMethod::Native(dialect) => Some(dialect),
        };
        let folder = folder.map(|folder| folder.path().to_owned());
        AnswerLocation::Events(self.allowed_folders(folder).await, dialect)
    }

    /// Returns the files that the program may hand over: those in its working directory and in `folder`.
    async fn allowed_folders(&self, folder: Option<PathBuf>) -> AllowedFolders {
        let PendingAttempt { program, context, .. } = self.attempt;
        let hidden = sandbox::hidden_paths(program, context);
        let allowed_folders = AllowedFolders::new(self.working_dir.clone(), folder, hidden).await;
        // The service may be root, and could read more than the program.
        allowed_folders.with_program_user(program.user.ids)
    }

    /// Returns the contents of the attempt's own folder, or `None` if it needs no folder.
    pub(super) fn folder_spec(&self) -> Option<AttemptFolderSpec> {
        let PendingAttempt { program, work, .. } = self.attempt;
        let has_temporary_folder = is_confined(work, program);
        let has_input_file = program.input_method == InputMethod::File;
        let has_files = work.spec.file_delivery().writes_files()
            && input_files::has_files_to_write(&work.request.input.parts);
        let has_output_file = program.output_method == OutputMethod::File;
        let templates = self.attempt.session.argument_templates(program);
        let has_own_folder_template =
            templates.iter().any(|template| template.contains("own_folder"));
        let request = has_files.then(|| Arc::clone(&work.request));
        let text =
            has_input_file.then(|| (self.input_file_name.clone(), self.values.input.clone()));
        let input =
            (has_input_file || has_files).then_some(FolderInput { text_file: text, request });
        let is_needed = has_temporary_folder || has_own_folder_template || has_output_file;
        (is_needed || input.is_some()).then(|| AttemptFolderSpec {
            folder: self.folder.clone(),
            has_temporary_folder,
            owner: program.user.ids,
            input,
        })
    }
}
