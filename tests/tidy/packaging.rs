//! Dockerfile, and metadata and scripts of the Debian package. `.ci/external` builds the package with `packaging/deb`,
//! `packaging/check` and `packaging/try`, and the image with `packaging/image` if its base images can be pulled.

use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use crate::tree::{Faults, repository_root};

const DOCKERFILE: &str = "Dockerfile";

fn read_file(path: &str) -> String {
    std::fs::read_to_string(repository_root().join(path)).unwrap_or_default()
}

/// Returns the instructions of a Dockerfile, each on one line, with the number of its first line.
fn parse_instructions(dockerfile: &str) -> Vec<(usize, String)> {
    let mut instructions = Vec::new();
    let mut open_instruction: Option<(usize, String)> = None;
    for (index, line) in dockerfile.lines().enumerate() {
        if line.trim().is_empty() || line.trim_start().starts_with('#') {
            continue;
        }
        let (number, mut instruction) =
            open_instruction.take().unwrap_or((index + 1, String::new()));
        instruction.push_str(line.trim_end_matches('\\').trim());
        instruction.push(' ');
        if line.ends_with('\\') {
            open_instruction = Some((number, instruction));
        } else {
            instructions.push((number, instruction.trim().to_owned()));
        }
    }
    instructions
}

/// Returns the faults of a Dockerfile, with their lines.
fn lint_dockerfile(dockerfile: &str) -> Vec<(usize, &'static str)> {
    let instructions = parse_instructions(dockerfile);
    let lines_of = |word: &str| -> Vec<(usize, String)> {
        let start = format!("{word} ");
        instructions.iter().filter(|(_, line)| line.starts_with(&start)).cloned().collect()
    };
    let (stages, users) = (lines_of("FROM"), lines_of("USER"));
    let last_stage_line = stages.last().map_or(0, |(line_number, _)| *line_number);
    let mut faults = Vec::new();
    let mut add_fault_unless = |line_number: usize, holds: bool, message| {
        if !holds {
            faults.push((line_number, message));
        }
    };
    add_fault_unless(1, stages.len() == 2, "the number of stages is not 2");
    for (line_number, from) in &stages {
        let has_version = from.split_whitespace().nth(1).is_some_and(|image| {
            image.rsplit('/').next().is_some_and(|name| name.contains(':'))
                && !image.ends_with(":latest")
        });
        add_fault_unless(*line_number, has_version, "the base image has no version");
    }
    let last_user = users.iter().rfind(|(line_number, _)| *line_number > last_stage_line);
    let is_number = |user: &String| user.starts_with("USER 1");
    add_fault_unless(
        last_stage_line,
        last_user.is_some_and(|(_, user)| is_number(user)),
        "the user is root or a name",
    );
    for (line_number, line) in &instructions {
        add_fault_unless(*line_number, !line.starts_with("ADD "), "`ADD` can download files");
        let fetch_words = ["curl ", "wget ", "git clone", "http://", "https://"];
        add_fault_unless(
            *line_number,
            !fetch_words.iter().any(|word| line.contains(word)),
            "it downloads a file",
        );
        let sets_variable = line.starts_with("ENV ") || line.starts_with("ARG ");
        let names_secret =
            ["TOKEN", "KEY", "SECRET", "PASSWORD"].iter().any(|word| line.contains(word));
        add_fault_unless(
            *line_number,
            !(sets_variable && names_secret),
            "the layer contains a secret",
        );
    }
    for word in ["HEALTHCHECK", "VOLUME", "ENTRYPOINT", "EXPOSE"] {
        add_fault_unless(
            last_stage_line,
            !lines_of(word).is_empty(),
            "HEALTHCHECK, VOLUME, ENTRYPOINT or EXPOSE is missing",
        );
    }
    faults
}

#[test]
fn the_dockerfile_follows_every_rule() {
    let mut faults = Faults::default();
    for (line, message) in lint_dockerfile(&read_file(DOCKERFILE)) {
        faults.add(DOCKERFILE, line, message);
    }
    let dockerignore = read_file(".dockerignore");
    if dockerignore.lines().find(|line| !line.starts_with('#')) != Some("*") {
        faults.add(".dockerignore", 1, "the first pattern is not `*`");
    }
    faults.fail_if_any("correct the Dockerfile; docs/install.md describes the image");
}

#[test]
fn a_dockerfile_that_breaks_a_rule_is_reported() {
    let dockerfile = read_file(DOCKERFILE);
    assert_eq!(lint_dockerfile(&dockerfile), []);
    for (original, replacement, expected) in [
        ("USER 10001:10001", "USER root", "the user is root or a name"),
        ("COPY . .", "ADD https://example.org/x .", "`ADD` can download files"),
        ("EXPOSE 8080", "ENV API_TOKEN=x", "the layer contains a secret"),
        ("debian:trixie-slim", "debian", "the base image has no version"),
        (" AS build", " AS build\nFROM a:1", "the number of stages is not 2"),
    ] {
        let faults = lint_dockerfile(&dockerfile.replace(original, replacement));
        assert!(
            faults.iter().any(|(_, message)| *message == expected),
            "{replacement}: {faults:?}"
        );
    }
}

/// Docker copies only files that `.dockerignore` does not exclude.
#[test]
fn files_of_the_container_build_are_not_ignored() {
    let dockerignore = read_file(".dockerignore");
    let manifest = read_file("Cargo.toml");
    let members = manifest.split("members = [").nth(1).and_then(|rest| rest.split(']').next());
    let members = members.unwrap_or_default().split('"').skip(1).step_by(2);
    let folders: Vec<_> = members.filter_map(|it| it.split('/').next()).collect();
    assert!(folders.contains(&"crates"), "{folders:?}");
    let names = folders.into_iter().filter(|folder| *folder != ".");
    for name in names.chain(["Cargo.toml", "Cargo.lock", "src", "config"]) {
        assert!(dockerignore.lines().any(|line| line == format!("!{name}")), "{name} is ignored");
    }
}

#[test]
fn the_package_is_complete_and_starts_no_service() {
    let manifest = read_file("Cargo.toml");
    let metadata = manifest.split("[package.metadata.deb]").nth(1).unwrap_or_default();
    let metadata = metadata.split("\n[profile").next().unwrap_or_default();
    let sources = metadata.lines().filter_map(|line| line.trim().strip_prefix("[\""));
    let sources: Vec<_> = sources.filter_map(|line| line.split('"').next()).collect();
    assert!(sources.len() > 5, "{metadata}");
    for source in sources.iter().filter(|source| !source.starts_with("target/")) {
        let folder = source.trim_end_matches("*.toml");
        assert!(repository_root().join(folder).exists(), "{source} does not exist");
    }
    for script in ["postinst", "prerm", "postrm"] {
        let path = repository_root().join("packaging/debian").join(script);
        let is_executable =
            path.metadata().is_ok_and(|attributes| attributes.permissions().mode() & 0o111 != 0);
        assert!(is_executable, "{script} is not executable");
        let output = Command::new("sh").arg("-n").arg(&path).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let body = std::fs::read_to_string(&path).unwrap();
        let commands = body.lines().filter(|line| !line.trim_start().starts_with("echo "));
        let mut commands = commands.filter(|line| line.contains("systemctl"));
        let starts_service =
            commands.any(|line| line.contains(" start ") || line.contains(" enable "));
        assert!(!starts_service, "{script} starts or enables a service");
    }
}
