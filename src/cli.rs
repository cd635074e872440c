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

use crate::InheritedProcessState;
use accounting::{quota, usage};
use args::token::TokenCommand;
use args::{Args, CliCommand, TasksCommand};
use client::ServiceClient;
use configuration::{ConfigLocation, check, init, redact, reload};
use error::CliError;
use help::{completions, explain};
use output::CliOutput;
use tasks::{approvals, lookup, send, watch};

/// Runs the command, and reports the result by the exit code. The service also reports what it inherited.
pub async fn run(args: Args, inherited_state: &InheritedProcessState) -> ExitCode {
    let out = CliOutput::new(args.json, args.raw);
    let is_follower = is_follower(&args.command);
    let result = tokio::select! {
        biased;
        result = dispatch(args, inherited_state, &out) => result,
        // A follower changes nothing, so it can end at any time.
        () = out.wait_for_stdout_failure(), if is_follower => Ok(()),
    };
    report_result(result, is_follower, &out)
}

/// Returns true for commands that only show what happens, for as long as somebody reads it.
const fn is_follower(command: &CliCommand) -> bool {
    matches!(
        command,
        CliCommand::Logs { follow: true, .. } | CliCommand::Tasks(TasksCommand::Watch { .. })
    )
}

/// Prints the errors of a command and of its output. A reader that closes the pipe has enough, which is no error.
fn report_result(result: Result<(), CliError>, is_follower: bool, out: &CliOutput) -> ExitCode {
    let is_stderr_written = out.finish();
    let output_error = out.take_write_error().map_err(|source| CliError::Output { source }).err();
    let errors: Vec<_> =
        result.err().into_iter().chain(output_error).filter(|it| !it.is_closed_pipe()).collect();
    errors.iter().for_each(|error| out.print_error(error));
    match errors.first() {
        Some(error) => ExitCode::from(error.exit_code()),
        // The standard error of a follower has events, and that of other commands has remarks.
        None if is_follower && !is_stderr_written => ExitCode::FAILURE,
        None => ExitCode::SUCCESS,
    }
}

async fn dispatch(
    args: Args,
    inherited_state: &InheritedProcessState,
    out: &CliOutput,
) -> Result<(), CliError> {
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
        CliCommand::Doctor { config } => {
            doctor::run(client, config.as_deref(), inherited_state, out).await
        }
        CliCommand::Explain { code } => explain::run(code.as_deref(), out),
        CliCommand::Redact { ndjson, config, secret_files } => {
            redact::run(ndjson, config.as_deref(), secret_files, out)
        }
        CliCommand::Service(command) => service::run(command, out).await,
        CliCommand::Completions { shell } => completions::print_completion_script(shell),
        CliCommand::Man { folder } => completions::write_manual(folder.as_deref(), out),
        CliCommand::Serve { config, listen } => {
            serve::run(&ConfigLocation::find(config.as_deref()), listen, inherited_state).await
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
        CliCommand::Token(TokenCommand::Rotate) => {
            token::rotate_operator_token(&client?, out).await
        }
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
