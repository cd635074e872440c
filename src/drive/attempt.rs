//! Begins one attempt: fills in its command line, hands over its input, starts its program.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use algonius_actors::decide::contract::spawn_failure;
use algonius_actors::model::code::Code;
use algonius_actors::model::failure::Failure;
use algonius_actors::model::program::{InputPattern, OnLoss, OutputPattern, ProgramSpec};
use algonius_actors::model::resources::{Grouping, Resources};
use algonius_actors::ports::driver::Work;
use algonius_actors::report::Reporter;
use chrono::SecondsFormat;

use super::arguments::{arguments, file_name, filled, fits};
use super::dialogue::Dialogue;
use super::environment::environment;
use super::folder::Folder;
use super::furniture::{Furniture, furnish};
use super::handed;
use super::live::{Live, Output, Process};
use super::process::{Orders, Place};
use super::proof::{Check, Proof};
use super::reach::Reach;
use super::sandbox::{self, is_confined};
use super::thread::{Thread, fresh_id};
use super::workplace::workplace;
use crate::template::Values;
use crate::warden::{Launch, Spawned, Stdin, Warden};

/// Bytes of a stream that are held beyond what is kept of it, to see that there was more.
const BEYOND_THE_LIMIT: u64 = 64 * 1024;

/// Variables that are not of a program which takes more messages than one.
const OF_ONE_MESSAGE: [&str; 4] = ["A2A_MESSAGE_ID", "A2A_TASK_ID", "TRACEPARENT", "TRACESTATE"];

/// An attempt that is to be made.
#[derive(Clone)]
pub(super) struct Attempt {
    /// What is run.
    pub(super) program: Arc<ProgramSpec>,
    /// What all attempts share.
    pub(super) place: Arc<Place>,
    /// Starts it.
    pub(super) warden: Arc<dyn Warden>,
    /// What was asked.
    pub(super) work: Work,
    /// How it goes on with what was said before.
    pub(super) thread: Thread,
}

/// A program that was started.
pub(super) struct Begun {
    pub(super) spawned: Spawned,
    pub(super) folder: Option<Folder>,
    pub(super) output: Output,
    /// What is asked of the work of one attempt.
    pub(super) proof: Option<Proof>,
}

/// Where the files of an attempt stand.
struct Files {
    folder: PathBuf,
    input_name: String,
    output: PathBuf,
}

impl Files {
    /// Of the input and of the output.
    fn paths(&self) -> (PathBuf, PathBuf) {
        (self.folder.join(&self.input_name), self.output.clone())
    }
}

impl Attempt {
    /// Starts the program. What cannot work is refused before anything exists.
    pub(super) async fn begin(self, orders: &Orders) -> Result<(Live, Process), Failure> {
        let dialogue = self.program.dialogue.as_ref();
        let dialogue = dialogue.map(|spec| Dialogue::of(spec, &self.values(), 0)).transpose()?;
        let Begun { spawned, folder, output, proof } = self.launch_for(orders).await?;
        let told = (output, dialogue, proof);
        Ok(Live::new(self.program, (self.work, self.thread), spawned, folder, told))
    }

    /// Starts the program, to be driven by whoever asks.
    pub(super) async fn launch_for(&self, orders: &Orders) -> Result<Begun, Failure> {
        let mut values = self.values();
        let files = self.files(&values)?;
        (values.input_file, values.output_file) = files.paths();
        let place = workplace(&self.program, &self.work).await?;
        let (site, folders) = (&self.place.site, (place.as_path(), files.folder.as_path()));
        let hold = sandbox::hold(&self.program, site, &self.work, folders)?;
        let launch = self.launch(&values, &files, place.clone())?;
        let proof = self.proof(&values, &files, &place).await?;
        let (folder, launch) = furnish(self.furniture(&files), hold, launch, site).await?;
        let output = self.output(folder.as_ref(), files.output, place).await;
        if orders.is_stopped() {
            return Err(Failure::new(Code::Cancelled, "called off before it was started"));
        }
        let spawned = self.warden.launch(launch).await.map_err(|error| unstarted(&error))?;
        Ok(Begun { spawned, folder, output, proof })
    }

    /// Where it works.
    pub(super) async fn workplace(&self) -> Result<PathBuf, Failure> {
        workplace(&self.program, &self.work).await
    }

    /// Takes over the program that an earlier life started, with the folder that it has.
    pub(super) async fn resume(self, report: &Reporter) -> Result<(Live, Process), Failure> {
        let Work { execution, stamp, .. } = self.work;
        let Ok(spawned) = self.warden.adopt(execution, stamp).await else {
            self.warden.sweep(execution, stamp).await; // Whoever held it, nobody does now.
            let message = "the process that it had is not held any more";
            return Err(Failure::new(Code::Interrupted, message));
        };
        let mut values = self.values();
        let files = self.files(&values)?;
        (values.input_file, values.output_file) = files.paths();
        let place = workplace(&self.program, &self.work).await;
        let place = place.unwrap_or_else(|_gone| self.program.working_dir.clone());
        let proof = self.proof(&values, &files, &place).await?;
        let folder = Folder::find(files.folder.clone());
        let folder = folder.map(|folder| folder.in_memory(self.place.site.in_memory));
        let output = self.output(folder.as_ref(), files.output, place).await;
        report.begin_again().await.map_err(|error| {
            tracing::error!(%execution, %error, "what was written is not given up");
            Failure::new(Code::LedgerUnavailable, "what the agent wrote could not be recorded")
        })?;
        let told = (output, None, proof);
        Ok(Live::new(self.program, (self.work, self.thread), spawned, folder, told))
    }

    pub(super) fn values(&self) -> Values {
        let Work { execution, stamp, spec, request, .. } = &self.work;
        let mut param = self.program.params.clone();
        param.extend(request.input.params.clone());
        Values {
            input: request.input.text(),
            input_file: PathBuf::new(),
            output_file: PathBuf::new(),
            param,
            execution_id: execution.to_string(),
            agent_id: spec.id.to_string(),
            context_id: request.context.0.clone(),
            message_id: request.message.0.clone(),
            attempt: stamp.attempt,
            turn: stamp.turn,
            timestamp: self.accepted_at(),
            model: self.program.outfit.model.clone().unwrap_or_default(),
            home: self.program.outfit.home.clone(),
            session_id: self.thread.resumed(),
            uuid: fresh_id(&self.work).to_string(),
        }
    }

    /// When the execution was accepted, as its id tells.
    fn accepted_at(&self) -> String {
        let at = self.work.execution.accepted_at();
        at.unwrap_or_default().to_rfc3339_opts(SecondsFormat::Millis, true)
    }

    fn files(&self, values: &Values) -> Result<Files, Failure> {
        let Work { execution, stamp, .. } = &self.work;
        let own = format!("{execution}-{}-{}", stamp.turn, stamp.attempt);
        let folder = self.place.site.runtime_dir.join(own);
        let input_name = match self.program.input {
            InputPattern::File => file_name(&self.program.input_file, values)?,
            InputPattern::Stdin | InputPattern::Args | InputPattern::JsonRpc => String::new(),
        };
        let output = match self.program.output {
            OutputPattern::File => folder.join(file_name(&self.program.output_file, values)?),
            OutputPattern::Stdout
            | OutputPattern::Events
            | OutputPattern::Native(_)
            | OutputPattern::JsonRpc => PathBuf::new(),
        };
        Ok(Files { folder, input_name, output })
    }

    fn launch(
        &self,
        values: &Values,
        files: &Files,
        working_dir: PathBuf,
    ) -> Result<Launch, Failure> {
        let inherited = &self.place.inherited;
        let args = arguments(&self.program, self.thread.arguments(&self.program), values)?;
        let mut env = environment(&self.program, inherited, &self.work);
        let listing = handed::listing(&self.work.request.input.parts, &files.folder);
        env.extend(listing.map(|listing| (handed::FILES.into(), listing.into())));
        if is_confined(&self.work) {
            sandbox::give_temporary(&mut env, &self.program, inherited, &files.folder);
        }
        let is_kept = self.program.keeping.is_some();
        if is_kept {
            OF_ONE_MESSAGE.iter().for_each(|name| _ = env.remove(OsStr::new(name)));
        }
        fits(&args, &env)?;
        let stdin = match self.program.input {
            _ if self.program.dialogue.is_some() => Stdin::Open,
            InputPattern::Stdin => Stdin::Whole(self.work.request.input.text().into_bytes()),
            InputPattern::File | InputPattern::Args | InputPattern::JsonRpc => {
                Stdin::Whole(Vec::new())
            }
        };
        let Work { execution, stamp, spec, .. } = &self.work;
        Ok(Launch {
            execution: *execution,
            stamp: *stamp,
            program: self.program.command.clone(),
            args,
            env,
            working_dir,
            stdin,
            // What is kept ends with the service, so nobody reads it again.
            cap: if is_kept { 0 } else { spec.sizes.output as u64 + BEYOND_THE_LIMIT },
            dies_alone: self.program.on_loss == OnLoss::Kill,
            limits: Vec::new(),
            ruleset: None,
            wrapper: None,
            resources: self.program.resources,
        })
    }

    /// What will be asked of the work, where anything is.
    async fn proof(
        &self,
        values: &Values,
        files: &Files,
        place: &Path,
    ) -> Result<Option<Proof>, Failure> {
        let contract = &self.program.success;
        if !Proof::is_asked(contract) {
            return Ok(None);
        }
        let mut proof = Proof { schema: contract.schema.clone(), ..Proof::default() };
        if let Some(path) = &contract.artifact {
            let own = Some(files.folder.clone());
            let hidden = sandbox::hidden(&self.program, &self.place.site);
            let reach = Reach::of(place.to_owned(), own, hidden).await;
            proof.artifact = Some((filled(path, values)?, reach));
        }
        if let Some(check) = &contract.check {
            let args = check.args.iter().map(|word| filled(word, values));
            let launch = Launch {
                program: check.command.clone(),
                args: args.collect::<Result<_, _>>()?,
                stdin: Stdin::Whole(Vec::new()),
                // Nobody takes it up: what it found out is lost with who would have heard it.
                dies_alone: true,
                resources: Resources { grouping: Grouping::Off, ..Resources::default() },
                ..self.launch(values, files, place.to_owned())?
            };
            let (site, folders) = (&self.place.site, (place, files.folder.as_path()));
            let hold = sandbox::hold(&self.program, site, &self.work, folders)?;
            let (warden, limit) = (Arc::clone(&self.warden), check.limit);
            proof.check = Some(Check { hold, launch, warden, limit });
        }
        Ok(Some(proof))
    }

    /// Where the answer will come from. What may be reached is settled before the program starts.
    async fn output(&self, folder: Option<&Folder>, file: PathBuf, place: PathBuf) -> Output {
        let dialect = match self.program.output {
            OutputPattern::Stdout if self.program.dialogue.is_none() => return Output::Stdout,
            OutputPattern::File => return Output::File(file),
            OutputPattern::Stdout | OutputPattern::Events | OutputPattern::JsonRpc => None,
            OutputPattern::Native(dialect) => Some(dialect),
        };
        let folder = folder.map(|folder| folder.path().to_owned());
        let hidden = sandbox::hidden(&self.program, &self.place.site);
        Output::Events(Reach::of(place, folder, hidden).await, dialect)
    }

    fn furniture(&self, files: &Files) -> Option<Furniture> {
        let has_place = is_confined(&self.work);
        let takes_file = self.program.input == InputPattern::File;
        let has_files = handed::has_files(&self.work.request.input.parts);
        let gives_file = self.program.output == OutputPattern::File;
        (has_place || takes_file || has_files || gives_file).then(|| Furniture {
            folder: files.folder.clone(),
            has_place,
            input: takes_file.then(|| files.input_name.clone()),
            has_files,
            request: Arc::clone(&self.work.request),
        })
    }
}

/// Where its warden is lost, nobody knows whether it began.
fn unstarted(error: &io::Error) -> Failure {
    if error.kind() == io::ErrorKind::ConnectionAborted {
        return Failure::new(Code::Interrupted, "the process that held it was lost");
    }
    error.raw_os_error().map_or_else(
        || Failure::new(Code::NotStarted, "the program could not be started"),
        spawn_failure,
    )
}
