//! Every command as a person types it: the scripts of `tests/cmd`, run against a real service.
//!
//! A `toml` block is the configuration. In `console` blocks, `$ ` begins a command of the shell and `> `
//! goes on with it, `? N` is its exit code where that is not 0, and what follows is what it prints.
//! `[..]` is any text in a line, and `...` any lines.

use std::fs;
use std::path::{Path, PathBuf};

use crate::harness::{ServiceProcess, Setup, within_deadline};

struct ScriptStep {
    command: String,
    expected_code: i32,
    expected_lines: Vec<String>,
}

fn read_scripts() -> Vec<(PathBuf, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cmd");
    let mut files: Vec<_> =
        fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect();
    files.sort();
    files.into_iter().map(|file| (file.clone(), fs::read_to_string(file).unwrap())).collect()
}

/// The blocks of this language.
fn code_blocks<'t>(text: &'t str, language: &str) -> Vec<&'t str> {
    let opening_fence = format!("```{language}\n");
    text.split(&opening_fence).skip(1).filter_map(|rest| rest.split("```").next()).collect()
}

fn parse_steps(text: &str) -> Vec<ScriptStep> {
    let mut steps: Vec<ScriptStep> = Vec::new();
    for line in code_blocks(text, "console").into_iter().flat_map(str::lines) {
        if let Some(command) = line.strip_prefix("$ ") {
            let command = command.to_owned();
            steps.push(ScriptStep { command, expected_code: 0, expected_lines: Vec::new() });
            continue;
        }
        let step = steps.last_mut().unwrap();
        match (line.strip_prefix("> "), line.strip_prefix("? ")) {
            (Some(more), _) => step.command = format!("{}\n{more}", step.command),
            (_, Some(code)) => step.expected_code = code.parse().unwrap(),
            _ => step.expected_lines.push(line.trim_end().to_owned()),
        }
    }
    steps
}

/// Whether a line is as expected, in which `[..]` is any text.
fn matches_line(expected: &str, line: &str) -> bool {
    let mut pieces = expected.split("[..]");
    let Some(mut rest) = pieces.next().and_then(|first| line.strip_prefix(first)) else {
        return false;
    };
    let pieces: Vec<_> = pieces.collect();
    let Some((last_piece, middle_pieces)) = pieces.split_last() else { return rest.is_empty() };
    for piece in middle_pieces {
        match rest.split_once(piece) {
            Some((_, after)) => rest = after,
            None => return false,
        }
    }
    rest.ends_with(last_piece)
}

/// Whether lines are as expected, among which `...` is any lines.
fn matches_lines(expected: &[String], lines: &[String]) -> bool {
    match (expected.split_first(), lines.split_first()) {
        (None, None) => true,
        (Some((any, rest)), _) if any == "..." => {
            (0..=lines.len()).any(|at| matches_lines(rest, &lines[at..]))
        }
        (Some((one, rest)), Some((line, lines))) => {
            matches_line(one, line) && matches_lines(rest, lines)
        }
        (None, Some(_)) | (Some(_), None) => false,
    }
}

async fn run_step(service: &ServiceProcess, step: &ScriptStep) -> (Option<i32>, Vec<String>) {
    let program = Path::new(env!("CARGO_BIN_EXE_algonius"));
    let test_folder = service.setup.test_folder();
    let folders =
        [program.parent().unwrap(), test_folder].map(|folder| folder.display().to_string());
    let path = format!("{}:/usr/local/bin:/usr/bin:/bin", folders.join(":"));
    let mut shell = tokio::process::Command::new("sh");
    shell.args(["-c", &format!("exec 2>&1\n{}", step.command)]).env_clear();
    shell
        .envs(service.setup.env_variables())
        .env("PATH", path)
        .current_dir(test_folder)
        .kill_on_drop(true);
    shell.env("ALGONIUS_URL", format!("http://{}", service.address));
    shell.stdin(std::process::Stdio::null());
    let output = within_deadline(&step.command, shell.output()).await.unwrap();
    let output_text = String::from_utf8_lossy(&output.stdout).into_owned();
    (output.status.code(), output_text.lines().map(|line| line.trim_end().to_owned()).collect())
}

#[tokio::test]
async fn each_script_prints_its_expected_output() {
    let mut failures = Vec::new();
    for (file, text) in read_scripts() {
        let config = code_blocks(&text, "toml").concat();
        let service = Setup::new(&config).start().await;
        for step in parse_steps(&text) {
            let (code, lines) = run_step(&service, &step).await;
            if code != Some(step.expected_code) || !matches_lines(&step.expected_lines, &lines) {
                let (name, lines) = (file.display(), lines.join("\n"));
                failures.push(format!("{name}: $ {}\n? {code:?}\n{lines}", step.command));
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

/// The commands that have none below them.
async fn leaf_commands(setup: &Setup) -> Vec<Vec<String>> {
    let (mut leaf_commands, mut pending_commands) = (Vec::new(), vec![Vec::new()]);
    while let Some(words) = pending_commands.pop() {
        let arguments: Vec<_> = words.iter().map(String::as_str).chain(["--help"]).collect();
        let help = setup.run_command(&arguments, "").await.stdout;
        let list = help.split("Commands:\n").nth(1).unwrap_or_default();
        let names = list.lines().take_while(|line| !line.is_empty());
        let names = names.filter_map(|line| line.split_whitespace().next());
        let subcommands: Vec<_> = names.filter(|name| *name != "help").collect();
        if subcommands.is_empty() {
            leaf_commands.push(words);
            continue;
        }
        pending_commands
            .extend(subcommands.iter().map(|name| [&words[..], &[(*name).to_owned()]].concat()));
    }
    leaf_commands
}

#[tokio::test]
async fn every_command_has_a_script() {
    let all_steps: Vec<_> = read_scripts().iter().flat_map(|(_, text)| parse_steps(text)).collect();
    let setup = Setup::from_config_text("");
    let commands = leaf_commands(&setup).await;
    assert!(commands.len() > 30, "{commands:?}");
    let has_script = |words: &Vec<String>| {
        let words = format!("algonius {}", words.join(" "));
        all_steps.iter().any(|step| format!("{} ", step.command).contains(&format!("{words} ")))
    };
    let commands_without_script: Vec<_> =
        commands.iter().filter(|words| !has_script(words)).collect();
    assert!(
        commands_without_script.is_empty(),
        "tests/cmd has no script of {commands_without_script:?}"
    );
}

#[test]
fn wildcards_match_omitted_text_only() {
    let to_lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
    for (expected, lines, is_match) in [
        ("a\nb", "a\nb", true),
        ("a\nb", "a", false),
        ("a", "a\nb", false),
        ("a[..]c", "abbc", true),
        ("a[..]c", "abb", false),
        ("a[..]b[..]", "a b c", true),
        ("a[..]d[..]", "a b c", false),
        ("...\nb", "a\na\nb", true),
        ("...\nb", "a\na", false),
        ("a\n...", "a", true),
    ] {
        assert_eq!(
            matches_lines(&to_lines(expected), &to_lines(lines)),
            is_match,
            "{expected:?} {lines:?}"
        );
    }
}
