//! Handler that runs a program for each call.

use std::sync::Arc;

use algonius_actors::model::code::Code;
use algonius_actors::model::host::resources::CgroupLimitEvents;
use algonius_actors::model::program::ProcessExit;
use algonius_actors::model::program::backend_program::{BackendProgram, BackendRole};
use algonius_actors::model::program::tool_program::ToolProgram;
use algonius_actors::ports::tools::{TextRedactor, ToolInvocation, ToolStopReceiver};
use algonius_warden::{OutputPipe, ProcessTree, SpawnedProgram, StdinSource};
use tokio::io::AsyncReadExt as _;
use tokio::task::spawn_blocking;
use tracing::Instrument as _;

use super::{MAX_RESULT_BYTES, ToolHandlers};
use crate::drivers::output::error_tail::{ErrorTail, redacted_tail};
use crate::drivers::program::backend_process::{
    BackendLaunchSpec, BackendLauncher, BackendProcess, describe_end, describe_exceeded_limit,
    sandbox_explanation,
};
use crate::drivers::program::limit_monitor::wait_until_limit_exceeded;
use crate::platform::template::tool_inputs::ToolTemplate;

/// Program in the sentences about its failure.
const FAILURE_SUBJECT: &str = "the program";

/// Error of a call whose program may have started.
const HOLDER_LOST_SENTENCE: &str =
    "the process holder was lost; the program may have had its effect";

impl ToolHandlers {
    /// Runs the program of a tool, and returns its redacted output.
    pub(super) async fn run_command(
        &self,
        call: ToolInvocation,
        stop: ToolStopReceiver,
    ) -> Result<String, String> {
        let Some(program) = self.backends.programs.get(&call.tool.name) else {
            tracing::error!(tool = call.tool.name, "tool of the kind `command` has no program");
            return Err("the call failed".to_owned());
        };
        let program_call = render_program_call(Arc::clone(program), &call)?;
        let launcher = self.services.launcher.clone();
        // A task of its own, which also ends the processes of a call whose future is dropped.
        let run = run_program(launcher, program_call, call.redactor, stop).in_current_span();
        tokio::spawn(run).await.unwrap_or_else(|error| {
            tracing::error!(%error, "task of a tool call failed");
            Err("the call failed".to_owned())
        })
    }
}

/// Call for which a program is started.
struct ProgramCall {
    program: Arc<ToolProgram>,
    role: BackendRole,
    variables: Vec<(&'static str, String)>,
    args: Vec<String>,
    stdin: String,
}

/// Renders the command line and the standard input of a call.
fn render_program_call(
    program: Arc<ToolProgram>,
    call: &ToolInvocation,
) -> Result<ProgramCall, String> {
    let mut args = Vec::with_capacity(program.args.len());
    let (mut is_after_separator, mut is_previous_left_out) = (false, false);
    for (index, template) in program.args.iter().enumerate() {
        let rendered = ToolTemplate(template).render_argument(&call.arguments);
        let rendered =
            rendered.map_err(|error| format!("argument {} of the program: {error}", index + 1))?;
        // An argument for an input that the call leaves out is left out too.
        let Some(argument) = rendered else {
            is_previous_left_out = true;
            continue;
        };
        if !is_after_separator && argument.is_injected_option() {
            return Err(format!(
                "`{:.40}` starts with `-`, so that the program would read it as an option",
                argument.text
            ));
        }
        // After `--` programs read no argument as an option. An option without its value would read `--` as the value.
        is_after_separator |= template == "--" && !is_previous_left_out;
        is_previous_left_out = false;
        args.push(argument.text);
    }
    let stdin = ToolTemplate(&program.stdin_template).render(&call.arguments);
    let stdin = stdin.map_err(|error| format!("standard input of the program: {error}"))?;
    let (execution, step) = (call.execution, call.step_number);
    let variables = vec![
        ("A2A_TASK_ID", execution.to_string()),
        ("ALGONIUS_AGENT_ID", call.agent.to_string()),
        ("ALGONIUS_CALL_ID", format!("{execution}-{step}")),
    ];
    Ok(ProgramCall {
        program,
        role: BackendRole::Tool(call.tool.name.clone()),
        variables,
        args,
        stdin: stdin.unwrap_or_default(),
    })
}

/// End of a program with its output.
struct ProgramResult {
    exit: std::io::Result<ProcessExit>,
    stdout: CollectedOutput,
    /// End of the standard error.
    stderr: String,
    /// True if the standard error was longer.
    is_stderr_cut: bool,
    /// Limits that the control group of the program enforced.
    limit_events: CgroupLimitEvents,
}

/// Standard output of a program.
enum CollectedOutput {
    Whole(Vec<u8>),
    TooLong,
}

/// Runs a program until its end, or until the call has to stop. Returns after its processes and its folder are removed.
async fn run_program(
    launcher: BackendLauncher,
    call: ProgramCall,
    redactor: TextRedactor,
    mut stop: ToolStopReceiver,
) -> Result<String, String> {
    let ProgramCall { program, role, variables, args, stdin } = call;
    let program = program.program.clone();
    let stdin = StdinSource::Bytes(stdin.into_bytes());
    let launch_spec = BackendLaunchSpec { program: &program, role: &role, args, variables, stdin };
    let launched = launcher.launch(launch_spec, || stop.is_stop_requested()).await;
    let BackendProcess { spawned, folder } = launched.map_err(|failure| match failure.code {
        Code::Interrupted => HOLDER_LOST_SENTENCE.to_owned(),
        _ => failure.message,
    })?;
    let SpawnedProgram { stdout, stderr, exit, tree, .. } = spawned;
    let wait_for_end = async {
        let exit = exit.await;
        // A process that the program left would hold its pipes open.
        tree.kill_all_processes().await;
        exit
    };
    let end = async {
        let (exit, stdout, stderr) = tokio::join!(
            wait_for_end,
            read_bounded_stdout(stdout, &*tree),
            ErrorTail::read(stderr)
        );
        let (is_stderr_cut, stderr) = (stderr.is_cut(), stderr.into_text());
        ProgramResult { exit, stdout, stderr, is_stderr_cut, limit_events: tree.limit_events() }
    };
    let result = tokio::select! {
        result = end => Ok(result),
        excess = wait_until_limit_exceeded(&program.resource_limits, &*tree) => {
            Err(describe_exceeded_limit(FAILURE_SUBJECT, &excess))
        }
        () = stop.wait() => Err("the call was stopped".to_owned()),
    };
    tree.kill_all_processes().await;
    if let Some(folder) = folder {
        folder.remove().await;
    }
    let result = result?;
    // Redaction of 1 MiB takes longer than a task may hold its thread.
    let explanation = result.explain_sandbox((&program, &role)).await;
    let text = spawn_blocking(move || result.into_text(&program, explanation, &redactor)).await;
    text.unwrap_or_else(|error| {
        tracing::error!(%error, "redaction of a tool's result failed");
        Err("the result could not be redacted".to_owned())
    })
}

/// Reads the output to its end. Kills a program that writes more than a result may have.
async fn read_bounded_stdout(pipe: OutputPipe, tree: &dyn ProcessTree) -> CollectedOutput {
    let mut bytes = Vec::new();
    let mut pipe = pipe.take(MAX_RESULT_BYTES as u64 + 1);
    _ = pipe.read_to_end(&mut bytes).await; // A broken pipe is the end of the output.
    if bytes.len() <= MAX_RESULT_BYTES {
        return CollectedOutput::Whole(bytes);
    }
    tree.kill();
    CollectedOutput::TooLong
}

impl ProgramResult {
    /// Returns the part of the sandbox in the failure of the program.
    async fn explain_sandbox(
        &self,
        (program, role): (&BackendProgram, &BackendRole),
    ) -> Option<String> {
        let (Ok(exit), CollectedOutput::Whole(stdout)) = (&self.exit, &self.stdout) else {
            return None;
        };
        if *exit == ProcessExit::Code(0) {
            return None;
        }
        let stdout = String::from_utf8_lossy(stdout);
        sandbox_explanation((program, role), *exit, (&stdout, &self.stderr)).await
    }

    /// Returns the redacted output, or a redacted sentence about the failure.
    fn into_text(
        self,
        program: &BackendProgram,
        sandbox_explanation: Option<String>,
        redactor: &TextRedactor,
    ) -> Result<String, String> {
        let Self { exit, stdout, stderr, is_stderr_cut, limit_events } = self;
        let CollectedOutput::Whole(stdout) = stdout else {
            return Err(
                "the standard output exceeded 1 MiB, and the service killed the program".to_owned()
            );
        };
        let stdout = String::from_utf8_lossy(&stdout);
        let exit = exit.map_err(|_lost| HOLDER_LOST_SENTENCE.to_owned())?;
        if exit == ProcessExit::Code(0) {
            return Ok(redactor.redact(&stdout));
        }
        let mut sentence =
            describe_end(FAILURE_SUBJECT, exit, (&program.resource_limits, limit_events));
        if let Some(text) = sandbox_explanation {
            sentence.extend(["; ", &text]);
        }
        // Many programs report their failures on the standard output.
        let report = if stderr.trim().is_empty() { &*stdout } else { &stderr };
        if let Some(quote) = redacted_tail((report, is_stderr_cut), redactor) {
            sentence.extend([": ", &quote]);
        }
        Err(sentence)
    }
}
