//! The `algonius` program.

use std::process::ExitCode;

use algonius_supervisor::cli::{self, args::Args};
use algonius_supervisor::warden::process;
use clap::Parser;

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
    match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
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
