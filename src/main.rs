//! The `algonius` program.

use std::process::ExitCode;
use std::thread::available_parallelism;

use algonius_supervisor::cli::{self, args::Args};
use algonius_warden::startup;
use clap::Parser;
use tokio::runtime::{Builder, Runtime};

/// Environment variable with the number of runtime threads.
const WORKER_THREADS_VARIABLE: &str = "TOKIO_WORKER_THREADS";

fn main() -> ExitCode {
    // Before anything else, while memory contains no secret; the system grants it to every process.
    if startup::protect_process().is_err() {
        return ExitCode::FAILURE;
    }
    // The service starts itself as its own process holder, which has one thread and needs no runtime.
    if std::env::args_os().nth(1).is_some_and(|argument| argument == "warden") {
        return startup::serve().map_or(ExitCode::FAILURE, |()| ExitCode::SUCCESS);
    }
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(error) => {
            let code = if error.use_stderr() { ExitCode::from(4) } else { ExitCode::SUCCESS };
            _ = error.print(); // A failure to print has no other output.
            return code;
        }
    };
    match build_runtime() {
        Ok(runtime) => {
            let code = runtime.block_on(cli::run(args));
            // Running tasks are cut off as by a kill: an orderly shutdown of each task would remove the folders of
            // programs that continue for the next process instance.
            std::mem::forget(runtime);
            code
        }
        Err(_no_threads) => ExitCode::FAILURE,
    }
}

/// Creates the runtime with half as many threads as processors. The others serve the agents, the ledger and the process
/// holder, which work at the same time; more threads here wake each other and wait for each other's memory, without
/// more throughput.
fn build_runtime() -> std::io::Result<Runtime> {
    let mut builder = Builder::new_multi_thread();
    if std::env::var_os(WORKER_THREADS_VARIABLE).is_none() {
        let processors = available_parallelism().map_or(1, Into::into);
        builder.worker_threads((processors / 2).max(1));
    }
    builder.enable_all().build()
}
