//! The command line. It speaks to a running service over HTTP alone; only `init`, `check`,
//! `doctor`, `serve`, `service`, `man` and `redact` look at files.

pub mod args;
mod check;
mod client;
mod doctor;
mod fault;
mod init;
mod manual;
mod notify;
mod out;
mod redact;
mod schedule;
mod send;
mod serve;
mod service;
mod status;
mod tasks;

use std::process::ExitCode;

use args::{Args, Command, TasksCommand};
use client::Client;
use fault::CliError;
use out::Out;

/// Does what was asked, and tells how it went by the exit code.
pub async fn run(args: Args) -> ExitCode {
    let out = Out::new(args.json);
    match perform(args, &out).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            out.trouble(&error);
            ExitCode::from(error.exit_code())
        }
    }
}

async fn perform(args: Args, out: &Out) -> Result<(), CliError> {
    let client = Client::new(&args);
    match args.command {
        Command::Init { folder, force } => init::run(&folder, force, out),
        Command::Check { config } => check::run(config.as_deref(), out),
        Command::Doctor { config } => doctor::run(config.as_deref(), out),
        Command::Redact { ndjson, config, secret_files } => {
            redact::run(ndjson, config.as_deref(), secret_files)
        }
        Command::Service(command) => service::run(command, out),
        Command::Completions { shell } => manual::completions(shell),
        Command::Man { folder } => manual::pages(folder.as_deref(), out),
        Command::Serve { config, listen } => serve::run(config.as_deref(), listen, out).await,
        Command::Send(send) => send::run(&client?, send, out).await,
        Command::Status => status::run(&client?, out).await,
        Command::Schedule(command) => schedule::run(&client?, command, out).await,
        Command::Tasks(TasksCommand::List { agent, unfinished, limit }) => {
            tasks::list(&client?, agent, unfinished, limit, out).await
        }
        Command::Tasks(TasksCommand::Show { id }) => tasks::show(&client?, &id, out).await,
        Command::Tasks(TasksCommand::Cancel { id }) => tasks::cancel(&client?, &id, out).await,
    }
}
