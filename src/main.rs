//! The `algonius` program.

use std::io::{self, Write};
use std::num::NonZero;
use std::process::ExitCode;
use std::thread::available_parallelism;

use algonius_supervisor::cli::{self, args::Args};
use algonius_warden::inherited_state::replace_inherited_state;
use algonius_warden::startup;
use tokio::runtime::{Builder, Runtime};

/// Environment variable with the number of runtime threads.
const WORKER_THREADS_VARIABLE: &str = "TOKIO_WORKER_THREADS";

fn main() -> ExitCode {
    let inherited_state = replace_inherited_state().unwrap_or_default();
    // Early, while memory contains no secret; the system grants it to every process.
    if let Err(error) = startup::forbid_inspection_and_adopt_orphans() {
        _ = writeln!(io::stderr(), "error: the process cannot be protected from agents: {error}");
        return ExitCode::FAILURE;
    }
    // The service starts itself as its own process holder, which has one thread and needs no runtime.
    let mut args = std::env::args_os().skip(1);
    if args.next().is_some_and(|command| command == "warden") {
        return startup::serve_as_holder(args).map_or(ExitCode::FAILURE, |()| ExitCode::SUCCESS);
    }
    let args = match Args::read() {
        Ok(args) => args,
        Err(error) => return print_help_or_error(&error),
    };
    match build_runtime() {
        Ok(runtime) => {
            let code = runtime.block_on(cli::run(args, &inherited_state));
            // Running tasks are cut off as by a kill: an orderly shutdown of each task would remove the folders of
            // programs that continue for the next process instance.
            std::mem::forget(runtime);
            code
        }
        Err(error) => {
            _ = writeln!(io::stderr(), "error: no threads can be started: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Prints the help, the version, or the error of the arguments.
fn print_help_or_error(error: &clap::Error) -> ExitCode {
    let printed = error.print().and_then(|()| io::stdout().flush());
    match printed {
        _ if error.use_stderr() => ExitCode::from(4),
        Err(failure) if failure.kind() != io::ErrorKind::BrokenPipe => {
            // A failure to print this has no other output.
            _ = writeln!(io::stderr(), "error: standard output could not be written: {failure}");
            ExitCode::FAILURE
        }
        Ok(()) | Err(_) => ExitCode::SUCCESS,
    }
}

/// Creates the runtime with half as many threads as processors. The others serve the agents, the ledger and the process
/// holder, which work at the same time; more threads here wake each other and wait for each other's memory, without
/// more throughput.
fn build_runtime() -> std::io::Result<Runtime> {
    let count = match std::env::var_os(WORKER_THREADS_VARIABLE).filter(|text| !text.is_empty()) {
        Some(text) => text.to_str().and_then(|text| text.parse().ok()).ok_or_else(|| {
            io::Error::other(format!("the variable {WORKER_THREADS_VARIABLE} is no number above 0"))
        })?,
        None => NonZero::new(available_parallelism().map_or(1, Into::into) / 2_usize)
            .unwrap_or(NonZero::<usize>::MIN),
    };
    Builder::new_multi_thread().worker_threads(count.get()).enable_all().build()
}
