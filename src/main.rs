//! The `algonius` program.

use std::process::ExitCode;

use algonius_supervisor::cli::{self, args::Args};
use clap::Parser;

fn main() -> ExitCode {
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(answer) => {
            let code = if answer.use_stderr() { ExitCode::from(4) } else { ExitCode::SUCCESS };
            _ = answer.print(); // Nobody is left to tell.
            return code;
        }
    };
    match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime.block_on(cli::run(args)),
        Err(_no_threads) => ExitCode::FAILURE,
    }
}
