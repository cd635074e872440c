//! The command line. It speaks to a running service over HTTP alone; only `init`, `check`,
//! `doctor`, `agents add`, `serve`, `service`, `man` and `redact` look at files.

mod agents;
pub mod args;
mod check;
mod client;
mod doctor;
mod fault;
pub mod filters;
mod init;
mod line;
mod manual;
mod notify;
mod out;
mod progress;
mod redact;
mod reload;
mod schedule;
mod screen;
mod send;
mod serve;
mod service;
mod status;
mod tail;
mod tasks;
mod token;
mod watch;

use std::process::ExitCode;

use args::{Args, Command, TasksCommand, TokenCommand};
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
        Command::Check { schema: true, .. } => {
            check::schema(out);
            Ok(())
        }
        Command::Check { openapi: true, .. } => {
            check::openapi(out);
            Ok(())
        }
        Command::Check { config, .. } => check::run(config.as_deref(), out),
        Command::Doctor { config } => doctor::run(config.as_deref(), out).await,
        Command::Redact { ndjson, config, secret_files } => {
            redact::run(ndjson, config.as_deref(), secret_files)
        }
        Command::Service(command) => service::run(command, out),
        Command::Completions { shell } => manual::completions(shell),
        Command::Man { folder } => manual::pages(folder.as_deref(), out),
        Command::Serve { config, listen } => serve::run(config.as_deref(), listen, out).await,
        Command::Send(send) => send::run(&client?, send, out).await,
        Command::Agents(command) => agents::run(client, command, out).await,
        Command::Reload => reload::run(&client?, out).await,
        Command::Token(TokenCommand::Create(new)) => token::create(&client?, new, out).await,
        Command::Token(TokenCommand::List) => token::list(&client?, out).await,
        Command::Token(TokenCommand::Revoke { name }) => token::revoke(&client?, &name, out).await,
        Command::Token(TokenCommand::Rotate) => token::rotate(&client?, out).await,
        Command::Status { watch: false, .. } => status::run(&client?, out).await,
        Command::Status { watch: true, every } => status::watch(&client?, every, out).await,
        Command::Schedule(command) => schedule::run(&client?, command, out).await,
        Command::Logs { follow, agent, tasks } => {
            watch::logs(&client?, agent, (tasks, follow), out).await
        }
        Command::Tasks(command) => with_tasks(&client?, command, out).await,
    }
}

async fn with_tasks(client: &Client, command: TasksCommand, out: &Out) -> Result<(), CliError> {
    match command {
        TasksCommand::List { filters, limit, cursor } => {
            tasks::list(client, &filters, (limit, cursor), out).await
        }
        TasksCommand::Show { id } => tasks::show(client, &id, out).await,
        TasksCommand::Watch { id } => watch::task(client, &id, out).await,
        TasksCommand::Retry { id } => tasks::retry(client, &id, out).await,
        TasksCommand::Cancel { id } => tasks::cancel(client, &id, out).await,
        TasksCommand::Delete { id } => tasks::delete(client, &id, out).await,
        TasksCommand::Export { filters, text, limit } => {
            tasks::export(client, &filters, (text, limit)).await
        }
    }
}
