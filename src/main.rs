//! The `algonius` program.

use std::process::ExitCode;
use std::thread::available_parallelism;

use algonius_supervisor::cli::{self, args::Args};
use algonius_supervisor::warden::process;
use clap::Parser;
use tokio::runtime::{Builder, Runtime};

/// By this variable of the environment the runtime is told how many threads it has.
const THREADS: &str = "TOKIO_WORKER_THREADS";

fn main() -> ExitCode {
    // First of all, before there is a secret in memory; the system refuses it to nobody.
    if process::guard().is_err() {
        return ExitCode::FAILURE;
    }
    // The service starts itself as its own spawner, which is one thread and needs no runtime.
    if std::env::args_os().nth(1).is_some_and(|word| word == "warden") {
        return process::serve().map_or(ExitCode::FAILURE, |()| ExitCode::SUCCESS);
    }
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(answer) => {
            let code = if answer.use_stderr() { ExitCode::from(4) } else { ExitCode::SUCCESS };
            _ = answer.print(); // Nobody is left to tell.
            return code;
        }
    };
    match runtime() {
        Ok(runtime) => {
            let code = runtime.block_on(cli::run(args));
            // What still runs is to be cut off as by a kill: taken down task by task it would remove
            // the folders of programs that live on for the next service.
            std::mem::forget(runtime);
            code
        }
        Err(_no_threads) => ExitCode::FAILURE,
    }
}

/// The threads of the service: half as many as there are processors. The others are for the agents, the
/// ledger and the warden, which all work while they do; more threads here wake each other and wait for
/// each other's memory, and get no more done.
fn runtime() -> std::io::Result<Runtime> {
    let mut builder = Builder::new_multi_thread();
    if std::env::var_os(THREADS).is_none() {
        let processors = available_parallelism().map_or(1, Into::into);
        builder.worker_threads((processors / 2).max(1));
    }
    builder.enable_all().build()
}
