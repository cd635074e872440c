//! What is shipped: the recipes of the container and of the Debian package. Neither is built here:
//! `packaging/check` looks into a package, and nobody has built the container.

use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use crate::tree::{Faults, root};

const CONTAINER: &str = "Dockerfile";

fn text(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_default()
}

/// The instructions of a recipe, each on one line, with the number of its first.
fn instructions(recipe: &str) -> Vec<(usize, String)> {
    let mut all = Vec::new();
    let mut open: Option<(usize, String)> = None;
    for (index, line) in recipe.lines().enumerate() {
        if line.trim().is_empty() || line.trim_start().starts_with('#') {
            continue;
        }
        let (number, mut whole) = open.take().unwrap_or((index + 1, String::new()));
        whole.push_str(line.trim_end_matches('\\').trim());
        whole.push(' ');
        if line.ends_with('\\') {
            open = Some((number, whole));
        } else {
            all.push((number, whole.trim().to_owned()));
        }
    }
    all
}

/// What is wrong with a recipe of a container.
fn lint(recipe: &str) -> Vec<(usize, &'static str)> {
    let all = instructions(recipe);
    let of = |word: &str| -> Vec<(usize, String)> {
        let start = format!("{word} ");
        all.iter().filter(|(_, line)| line.starts_with(&start)).cloned().collect()
    };
    let (stages, users) = (of("FROM"), of("USER"));
    let last = stages.last().map_or(0, |(number, _)| *number);
    let mut faults = Vec::new();
    let mut rule = |number: usize, holds: bool, what| {
        if !holds {
            faults.push((number, what));
        }
    };
    rule(1, stages.len() == 2, "there are not two stages");
    for (number, from) in &stages {
        let has_version = from.split_whitespace().nth(1).is_some_and(|image| {
            image.rsplit('/').next().is_some_and(|name| name.contains(':'))
                && !image.ends_with(":latest")
        });
        rule(*number, has_version, "an image has no version");
    }
    let runs_as = users.iter().rfind(|(number, _)| *number > last);
    let is_number = |user: &String| user.starts_with("USER 1");
    rule(last, runs_as.is_some_and(|(_, user)| is_number(user)), "it runs as root, or by a name");
    for (number, line) in &all {
        rule(*number, !line.starts_with("ADD "), "ADD may fetch from the network");
        let fetches = ["curl ", "wget ", "git clone", "http://", "https://"];
        rule(*number, !fetches.iter().any(|word| line.contains(word)), "it fetches something");
        let sets = line.starts_with("ENV ") || line.starts_with("ARG ");
        let secret = ["TOKEN", "KEY", "SECRET", "PASSWORD"].iter().any(|word| line.contains(word));
        rule(*number, !(sets && secret), "a secret in a layer");
    }
    for word in ["HEALTHCHECK", "VOLUME", "ENTRYPOINT", "EXPOSE"] {
        rule(last, !of(word).is_empty(), "it lacks a health, a volume, an entry or a port");
    }
    faults
}

#[test]
fn the_container_has_two_stages_no_root_and_fetches_nothing() {
    let mut faults = Faults::default();
    for (line, what) in lint(&text(CONTAINER)) {
        faults.add(CONTAINER, line, what);
    }
    let ignored = text(".dockerignore");
    if ignored.lines().find(|line| !line.starts_with('#')) != Some("*") {
        faults.add(".dockerignore", 1, "it does not begin with nothing (`*`)");
    }
    faults.settle("correct the recipe; docs/install.md says what it promises");
}

#[test]
fn a_recipe_that_breaks_a_rule_is_found() {
    let good = text(CONTAINER);
    assert_eq!(lint(&good), []);
    for (from, to, what) in [
        ("USER 10001:10001", "USER root", "it runs as root, or by a name"),
        ("COPY . .", "ADD https://example.org/x .", "ADD may fetch from the network"),
        ("EXPOSE 8080", "ENV API_TOKEN=x", "a secret in a layer"),
        ("debian:trixie-slim", "debian", "an image has no version"),
        (" AS build", " AS build\nFROM a:1", "there are not two stages"),
    ] {
        let bad = lint(&good.replace(from, to));
        assert!(bad.iter().any(|(_, found)| *found == what), "{to}: {bad:?}");
    }
}

/// What is copied in must pass what is left out.
#[test]
fn what_the_container_copies_is_not_ignored() {
    let ignored = text(".dockerignore");
    for needed in ["Cargo.toml", "Cargo.lock", "src", "actors", "config", "tests", "benches"] {
        assert!(ignored.lines().any(|line| line == format!("!{needed}")), "{needed} is left out");
    }
}

#[test]
fn the_package_has_what_its_recipe_names_and_starts_nothing() {
    let manifest = text("Cargo.toml");
    let recipe = manifest.split("[package.metadata.deb]").nth(1).unwrap_or_default();
    let recipe = recipe.split("\n[profile").next().unwrap_or_default();
    let sources = recipe.lines().filter_map(|line| line.trim().strip_prefix("[\""));
    let sources: Vec<_> = sources.filter_map(|line| line.split('"').next()).collect();
    assert!(sources.len() > 5, "{recipe}");
    for source in sources.iter().filter(|source| !source.starts_with("target/")) {
        let folder = source.trim_end_matches("*.toml");
        assert!(root().join(folder).exists(), "{source} is not there");
    }
    for script in ["postinst", "prerm", "postrm"] {
        let path = root().join("packaging/debian").join(script);
        let is_run = path.metadata().is_ok_and(|facts| facts.permissions().mode() & 0o111 != 0);
        assert!(is_run, "{script} cannot be run");
        let checked = Command::new("sh").arg("-n").arg(&path).output().unwrap();
        assert!(checked.status.success(), "{checked:?}");
        let body = std::fs::read_to_string(&path).unwrap();
        let starts = body.lines().filter(|line| !line.trim_start().starts_with("echo "));
        let mut starts = starts.filter(|line| line.contains("systemctl"));
        assert!(!starts.any(|l| l.contains(" start ") || l.contains(" enable ")), "{script}");
    }
}
