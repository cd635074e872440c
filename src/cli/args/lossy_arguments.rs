//! Arguments that are not UTF-8. Paths keep their bytes, and texts get replacement characters.

use std::ffi::OsString;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;

use clap::error::ErrorKind;
use clap::{ArgMatches, Command};

use crate::cli::output::lossy_text::{invalid_byte_count, replacement_note};

/// Greatest number of arguments that are examined one by one.
const MAX_EXAMINED_ARGUMENTS: usize = 64;

/// Parses the arguments of a command. Those that must be texts and are not UTF-8 are converted.
pub(super) fn parse(
    command: &mut Command,
    arguments: Vec<OsString>,
) -> Result<ArgMatches, clap::Error> {
    match command.try_get_matches_from_mut(&arguments) {
        Err(error) if error.kind() == ErrorKind::InvalidUtf8 => {}
        parsed => return parsed,
    }
    let mut accepted_arguments: Vec<OsString> =
        arguments.iter().map(|argument| argument.to_string_lossy().into_owned().into()).collect();
    let invalid_arguments =
        arguments.iter().enumerate().filter(|(_, argument)| argument.to_str().is_none());
    for (index, argument) in invalid_arguments.take(MAX_EXAMINED_ARGUMENTS) {
        let mut candidate = accepted_arguments.clone();
        candidate.splice(index..=index, [argument.clone()]);
        if command.try_get_matches_from_mut(&candidate).is_ok() {
            accepted_arguments = candidate; // It is a path.
        }
    }
    let replaced_byte_count = |(old, new): (&OsString, &OsString)| {
        if old == new { 0 } else { invalid_byte_count(old.as_bytes()) }
    };
    let count = arguments.iter().zip(&accepted_arguments).map(replaced_byte_count).sum();
    let matches = command.try_get_matches_from_mut(accepted_arguments)?;
    if let Some(note) = replacement_note("the arguments", count) {
        _ = writeln!(io::stderr(), "{note}"); // The command itself reports that its output is closed.
    }
    Ok(matches)
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStringExt;

    use clap::{Arg, value_parser};

    use super::*;

    fn parse_latin(arguments: &[&[u8]]) -> Result<ArgMatches, clap::Error> {
        let mut command = Command::new("x")
            .arg(Arg::new("text").required(true))
            .arg(Arg::new("path").long("path").value_parser(value_parser!(OsString)));
        let arguments = arguments.iter().map(|bytes| OsString::from_vec(bytes.to_vec()));
        parse(&mut command, [OsString::from("x")].into_iter().chain(arguments).collect())
    }

    #[test]
    fn a_text_becomes_utf8_and_a_path_keeps_its_bytes() {
        let matches = parse_latin(&[b"caf\xe9"]).unwrap();
        assert_eq!(matches.get_one::<String>("text").unwrap(), "caf\u{fffd}");
        let matches = parse_latin(&[b"tea", b"--path", b"/caf\xe9"]).unwrap();
        let path = matches.get_one::<OsString>("path").unwrap();
        assert_eq!(path.as_bytes(), b"/caf\xe9");
        let matches = parse_latin(&[b"caf\xe9", b"--path", b"/caf\xe9"]).unwrap();
        assert_eq!(matches.get_one::<String>("text").unwrap(), "caf\u{fffd}");
        let path = matches.get_one::<OsString>("path").unwrap();
        assert_eq!(path.as_bytes(), b"/caf\xe9");
        assert_eq!(
            parse_latin(&[b"\xe9", b"--pa\xe9"]).unwrap_err().kind(),
            ErrorKind::UnknownArgument
        );
    }
}
