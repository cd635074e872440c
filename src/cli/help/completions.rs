//! `algonius completions` and `algonius man`, generated from the definition of the commands.

use std::io::{self, Write};
use std::path::Path;

use clap::CommandFactory;
use clap_complete::Shell;
use clap_mangen::Man;

use crate::cli::args::Args;
use crate::cli::error::CliError;
use crate::cli::output::CliOutput;

/// Prints the completion script for a shell.
pub(crate) fn print_completion_script(shell: Shell) -> Result<(), CliError> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Args::command(), "algonius", &mut script);
    print_bytes(&script)
}

/// Writes a manual page for each command into a directory, or prints the first one.
pub(crate) fn write_manual(folder: Option<&Path>, out: &CliOutput) -> Result<(), CliError> {
    let Some(folder) = folder else { return print_first_page() };
    let file_error =
        |source| CliError::File { problem: "cannot write to", file: folder.to_owned(), source };
    std::fs::create_dir_all(folder).map_err(file_error)?;
    clap_mangen::generate_to(Args::command(), folder).map_err(file_error)?;
    if out.is_json() {
        out.print_json(&serde_json::json!({"pages": folder.display().to_string()}));
    } else {
        out.print_line(&format!("pages  {}", folder.display()));
    }
    Ok(())
}

fn print_first_page() -> Result<(), CliError> {
    let mut page = Vec::new();
    let rendered = Man::new(Args::command()).render(&mut page);
    rendered.map_err(|source| CliError::Output { source })?;
    print_bytes(&page)
}

fn print_bytes(bytes: &[u8]) -> Result<(), CliError> {
    let mut stdout = io::stdout();
    let written = stdout.write_all(bytes).and_then(|()| stdout.flush());
    written.map_err(|source| CliError::Output { source })
}
