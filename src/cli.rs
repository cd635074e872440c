//! Command line. It uses a running service only over HTTP; only `init`, `check`, `doctor`, `agents add`, `serve`,
//! `service`, `man` and `redact` read files.

mod accounting;
mod agents;
pub mod args;
mod client;
mod configuration;
mod doctor;
mod error;
mod help;
mod output;
mod schedule;
mod serve;
mod service;
mod status;
mod tasks;
mod token;

use std::process::ExitCode;

use accounting::{quota, usage};
use args::{Args, CliCommand, TasksCommand, TokenCommand};
use client::ServiceClient;
use configuration::{ConfigLocation, check, init, redact, reload};
use error::CliError;
use help::{completions, explain};
use output::CliOutput;
use tasks::{approvals, lookup, send, watch};

/// Runs the command, and reports the result by the exit code.
pub async fn run(args: Args) -> ExitCode {
    let out = CliOutput::new(args.json, args.raw);
    match dispatch(args, &out).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            out.print_error(&error);
            ExitCode::from(error.exit_code())
        }
    }
}

async fn dispatch(args: Args, out: &CliOutput) -> Result<(), CliError> {
    let client = ServiceClient::new(&args.url, args.token_file.as_deref(), args.ca.as_deref());
    match args.command {
        CliCommand::Init { folder, force } => init::run(folder.as_deref(), force, out),
        CliCommand::Check { schema: true, .. } => {
            check::print_schema(out);
            Ok(())
        }
        CliCommand::Check { openapi: true, .. } => {
            check::print_openapi(out);
            Ok(())
        }
        CliCommand::Check { config, strict, .. } => {
            check::run(ConfigLocation::find(config.as_deref()).file.as_deref(), strict, out)
        }
        CliCommand::Doctor { config } => doctor::run(client, config.as_deref(), out).await,
        CliCommand::Explain { code } => explain::run(code.as_deref(), out),
        CliCommand::Redact { ndjson, config, secret_files } => {
            redact::run(ndjson, config.as_deref(), secret_files)
        }
        CliCommand::Service(command) => service::run(command, out),
        CliCommand::Completions { shell } => completions::print_completion_script(shell),
        CliCommand::Man { folder } => completions::write_manual(folder.as_deref(), out),
        CliCommand::Serve { config, listen } => {
            serve::run(&ConfigLocation::find(config.as_deref()), listen, out).await
        }
        CliCommand::Send(send) => send::run(&client?, send, out).await,
        CliCommand::Agents(command) => agents::run(client, command, out).await,
        CliCommand::Quota(command) => quota::run(&client?, command, out).await,
        CliCommand::Approvals(args) => approvals::run(&client?, args, out).await,
        CliCommand::Approve { id } => approvals::approve(&client?, &id, out).await,
        CliCommand::Deny(args) => approvals::deny(&client?, args, out).await,
        CliCommand::Answer(args) => approvals::answer(&client?, args, out).await,
        CliCommand::Reload => reload::run(&client?, out).await,
        CliCommand::Token(TokenCommand::Create(args)) => token::create(&client?, args, out).await,
        CliCommand::Token(TokenCommand::List) => token::list(&client?, out).await,
        CliCommand::Token(TokenCommand::Revoke { name }) => {
            token::revoke(&client?, &name, out).await
        }
        CliCommand::Token(TokenCommand::Rotate) => token::rotate(&client?, out).await,
        CliCommand::Status { watch: false, .. } => status::run(&client?, out).await,
        CliCommand::Status { watch: true, every } => status::watch(&client?, every, out).await,
        CliCommand::Schedule(command) => schedule::run(&client?, command, out).await,
        CliCommand::Logs { follow, agent, tasks, output } => {
            watch::print_logs(&client?, agent, (tasks, follow, output), out).await
        }
        CliCommand::Usage(args) => usage::run(&client?, args, out).await,
        CliCommand::Tasks(command) => run_tasks_command(&client?, command, out).await,
    }
}

async fn run_tasks_command(
    client: &ServiceClient,
    command: TasksCommand,
    out: &CliOutput,
) -> Result<(), CliError> {
    match command {
        TasksCommand::List { filters, limit, cursor } => {
            tasks::list(client, &filters, (limit, cursor), out).await
        }
        TasksCommand::Show { id, events, tree, steps } => {
            let id = lookup::resolve_task_id(client, &id).await?;
            match (tree, steps) {
                (true, _) => tasks::tree::show_tree(client, &id, out).await,
                (_, true) => tasks::steps::show_steps(client, &id, out).await,
                _ => tasks::show(client, &id, events, out).await,
            }
        }
        TasksCommand::Watch { id, output } => {
            watch::watch_task(client, &lookup::resolve_task_id(client, &id).await?, output, out)
                .await
        }
        TasksCommand::Retry { id } => {
            tasks::retry(client, &lookup::resolve_task_id(client, &id).await?, out).await
        }
        TasksCommand::Cancel { id } => {
            tasks::cancel(client, &lookup::resolve_task_id(client, &id).await?, out).await
        }
        TasksCommand::Delete { id } => tasks::delete(client, &id, out).await,
        TasksCommand::Export { filters, text, limit } => {
            tasks::export(client, &filters, (text, limit), out).await
        }
    }
}
