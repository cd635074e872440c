//! Dependencies between modules: which modules and which crates a module may name.

use crate::rust::{CodePath, code_paths};
use crate::tree::{Faults, RepoFile, rust_files};

/// Module of a crate, the modules of its own crate that it may name, and the modules of the actors crate that it may
/// name. A module may always name itself; only `lib.rs`, `main.rs` and tests may name everything.
struct ModuleRule {
    name: &'static str,
    /// Names such as `config`, or `app::confinement` for one module in another, or `algonius_warden` for a crate.
    allowed_names: &'static [&'static str],
    allowed_actor_modules: &'static [&'static str],
}

const fn module_rule(
    name: &'static str,
    allowed_names: &'static [&'static str],
    allowed_actor_modules: &'static [&'static str],
) -> ModuleRule {
    ModuleRule { name, allowed_names, allowed_actor_modules }
}

/// Modules of the edge, from the bottom to the top.
const EDGE_MODULES: &[ModuleRule] = &[
    module_rule("platform", &[], &["model", "ports"]),
    module_rule("wire", &["algonius_a2a"], &["model"]),
    module_rule("push", &[], &["decide", "model", "ports"]),
    module_rule("observe", &["platform", "push"], &["model", "ports"]),
    module_rule("config", &["algonius_redact", "platform"], &["model"]),
    module_rule("alert", &["algonius_warden", "push"], &["decide", "model"]),
    module_rule(
        "drivers",
        &["algonius_a2a", "algonius_mcp", "algonius_protocols", "algonius_warden", "platform"],
        &["decide", "driver", "model", "ports"],
    ),
    module_rule(
        "serve",
        &["algonius_a2a", "observe", "platform", "push", "wire"],
        &["api", "decide", "model"],
    ),
    module_rule(
        "app",
        &[
            "ListenerAddress",
            "RunningService",
            "StartError",
            "algonius_redact",
            "algonius_store",
            "algonius_warden",
            "alert",
            "config",
            "drivers",
            "observe",
            "platform",
            "push",
            "host_capabilities",
            "serve",
            "wire",
        ],
        &[
            "api",
            "decide",
            "driver",
            "maintenance",
            "model",
            "ports",
            "root",
            "scheduler",
            "services",
            "runs",
            "testing",
        ],
    ),
    module_rule(
        "cli",
        &[
            "InheritedProcessState",
            "RunningService",
            "StartError",
            "algonius_a2a",
            "algonius_redact",
            "app::confinement",
            "app::file_trust",
            "app::program_versions",
            "config",
            "observe::logging",
            "openapi",
            "platform",
            "host_capabilities",
            "start_with_source",
            "wire",
        ],
        &["decide", "model"],
    ),
];

/// Modules at the bottom of the actors crate. Every other module of it is an actor or a part of one: it may name all of
/// these, and is named by none of these.
const ACTOR_MODULES: &[ModuleRule] = &[
    module_rule("model", &[], &[]),
    module_rule("decide", &["algonius_redact", "model"], &[]),
    module_rule("ports", &["model"], &[]),
    module_rule("driver", &["algonius_redact", "decide", "model", "ports"], &[]),
];

/// Whether a module without an entry is refused.
#[derive(Clone, Copy, PartialEq, Eq)]
enum UnlistedModules {
    Refused,
    Allowed,
}

/// Library of the project: its folder, the crates of the project that it may name, and the modules of the actors crate
/// that it may name.
struct Library {
    folder: &'static str,
    allowed_crates: &'static [&'static str],
    allowed_actor_modules: &'static [&'static str],
}

const LIBRARIES: &[Library] = &[
    Library { folder: "crates/redact/src/", allowed_crates: &[], allowed_actor_modules: &[] },
    Library { folder: "crates/protocols/src/", allowed_crates: &[], allowed_actor_modules: &[] },
    Library {
        folder: "actors/src/",
        allowed_crates: &["algonius_redact"],
        allowed_actor_modules: &[],
    },
    Library { folder: "crates/a2a/src/", allowed_crates: &[], allowed_actor_modules: &["model"] },
    Library {
        folder: "crates/store/src/",
        allowed_crates: &[],
        allowed_actor_modules: &["driver", "model", "ports"],
    },
    Library {
        folder: "crates/warden/src/",
        allowed_crates: &[],
        allowed_actor_modules: &["model"],
    },
];

/// Crates that only some folders or files may name; tests may name more.
const RESERVED_CRATES: &[(&str, &[&str])] = &[
    ("axum", &["src/serve"]),
    ("axum_server", &["src/serve"]),
    ("clap", &["src/cli"]),
    ("clap_complete", &["src/cli"]),
    ("clap_mangen", &["src/cli"]),
    ("jsonschema", &["src/platform/json_schema"]),
    ("minijinja", &["src/platform/template"]),
    ("prost", &["crates/a2a/src/grpc", "src/serve/a2a/grpc/status"]),
    ("prost_types", &["crates/a2a/src/grpc", "src/serve/a2a/grpc/status"]),
    ("rusqlite", &["crates/store/src/engine/sql"]),
    ("rustix", &["src/cli", "src/drivers/files/removal"]),
    ("std::process::Command", &["src/drivers", "crates/warden"]),
    ("tokio::process", &["src/cli/service", "src/drivers", "crates/warden"]),
    ("tonic", &["crates/a2a/src/grpc", "src/serve/a2a/grpc"]),
    ("tonic_prost", &["crates/a2a/src/grpc"]),
];

/// Crates that tests inside a library name.
const TEST_CRATES: &[&str] = &["algonius_oracle", "algonius_skips"];

/// Crates and modules that perform input or output: the actors crate names none of them.
const IO_PATHS: &[&str] = &[
    "axum",
    "hyper",
    "nix",
    "rusqlite",
    "std::env",
    "std::fs",
    "std::io",
    "std::net",
    "std::process",
    "tokio::fs",
    "tokio::net",
    "tokio::process",
    "tokio::signal",
];

const REMEDY: &str = "move the code to a module that may name it, or pass it in through a port; \
     a new dependency or module goes into the tables of tests/tidy/dependencies.rs with a decision record";

#[test]
fn dependencies_between_modules_of_the_edge_point_downwards() {
    assert_allowed_dependencies("src/", EDGE_MODULES, UnlistedModules::Refused);
}

#[test]
fn dependencies_between_modules_of_the_actors_point_downwards() {
    assert_allowed_dependencies("actors/src/", ACTOR_MODULES, UnlistedModules::Allowed);
}

#[test]
fn the_actors_crate_performs_no_input_or_output() {
    let mut faults = Faults::default();
    for file in rust_files(&["actors/src/"]) {
        for path in code_paths(&file.text) {
            if IO_PATHS.iter().any(|io_path| path.starts_with(io_path)) {
                faults.add(
                    &file.path,
                    path.line,
                    format!("`{}` is input or output", path.join_names()),
                );
            }
        }
    }
    faults.fail_if_any("call it through a port, and implement the port in src/");
}

#[test]
fn a_reserved_crate_is_named_in_its_modules_only() {
    let mut faults = Faults::default();
    for file in rust_files(&["src/", "actors/src/", "crates/"]) {
        if ["src/lib.rs", "src/main.rs"].contains(&&*file.path) || is_part_of_a_test(&file) {
            continue;
        }
        let is_in = |owner: &&str| file.is_in(&[*owner]);
        for path in code_paths(&file.text) {
            let is_violated = |(name, owners): &&(&str, &[&str])| {
                path.starts_with(name) && !owners.iter().any(is_in)
            };
            if let Some((name, owners)) = RESERVED_CRATES.iter().find(is_violated) {
                let owners = owners.join(", ");
                faults.add(&file.path, path.line, format!("`{name}` is reserved for {owners}"));
            }
        }
    }
    faults.fail_if_any(REMEDY);
}

#[test]
fn a_library_names_its_crates_only() {
    let mut faults = Faults::default();
    for library in LIBRARIES {
        for file in rust_files(&[library.folder]) {
            if is_part_of_a_test(&file) {
                continue;
            }
            for path in code_paths(&file.text) {
                let name_at = |index: usize| path.names.get(index).map(String::as_str);
                let is_allowed = match name_at(0) {
                    Some("algonius_actors") => name_at(1)
                        .is_some_and(|module| library.allowed_actor_modules.contains(&module)),
                    Some(target) if TEST_CRATES.contains(&target) => true,
                    Some(target) if target.starts_with("algonius_") => {
                        library.allowed_crates.contains(&target)
                    }
                    _ => true,
                };
                if !is_allowed {
                    faults.add(
                        &file.path,
                        path.line,
                        format!("may not name `{}`", path.join_names()),
                    );
                }
            }
        }
    }
    faults.fail_if_any(REMEDY);
}

fn is_part_of_a_test(file: &RepoFile) -> bool {
    ["tests", "tests.rs", "conformance", "testing"]
        .iter()
        .any(|name| file.path.split('/').any(|part| part == *name))
}

fn assert_allowed_dependencies(
    folder: &str,
    modules: &[ModuleRule],
    unlisted_modules: UnlistedModules,
) {
    let mut faults = Faults::default();
    for file in rust_files(&[folder]) {
        let Some(name) = top_module(&file, folder).filter(|_| !is_part_of_a_test(&file)) else {
            continue;
        };
        let Some(rule) = modules.iter().find(|module| module.name == name) else {
            if unlisted_modules == UnlistedModules::Refused {
                faults.add(&file.path, 1, format!("the module `{name}` is not in the table"));
            }
            continue;
        };
        let depth = file.path.matches('/').count() - folder.matches('/').count() + 1;
        for path in code_paths(&file.text) {
            if let Some(target) = forbidden_path(rule, depth, modules, &path) {
                faults.add(&file.path, path.line, format!("`{name}` may not name `{target}`"));
            }
        }
    }
    faults.fail_if_any(REMEDY);
}

/// Returns the top module of a file; `None` for `lib.rs` and `main.rs`.
fn top_module<'f>(file: &'f RepoFile, folder: &str) -> Option<&'f str> {
    let relative_path = file.path.strip_prefix(folder)?;
    let name = relative_path.split('/').next()?.trim_end_matches(".rs");
    (name != "lib" && name != "main").then_some(name)
}

/// Returns the path if the module, whose file is `depth` modules below the crate, may not name it.
fn forbidden_path(
    rule: &ModuleRule,
    depth: usize,
    modules: &[ModuleRule],
    path: &CodePath,
) -> Option<String> {
    let name_at = |index: usize| path.names.get(index).map(String::as_str);
    let super_count = path.names.iter().take_while(|name| *name == "super").count();
    let may_name = |target: &str, inner: Option<&str>| {
        target == rule.name
            || rule.allowed_names.contains(&target)
            || inner
                .is_some_and(|inner| rule.allowed_names.contains(&&*format!("{target}::{inner}")))
    };
    match name_at(0)? {
        "crate" => (!may_name(name_at(1)?, name_at(2))).then(|| path.join_names()),
        "algonius_actors" => {
            let is_allowed =
                name_at(1).is_some_and(|target| rule.allowed_actor_modules.contains(&target));
            (!is_allowed).then(|| path.join_names())
        }
        target if target.starts_with("algonius_") => (!rule.allowed_names.contains(&target)
            && !TEST_CRATES.contains(&target))
        .then(|| path.join_names()),
        "super" if super_count >= depth => {
            let target = name_at(super_count)?;
            let is_known = modules.iter().any(|module| module.name == target);
            (is_known && !may_name(target, name_at(super_count + 1))).then(|| path.join_names())
        }
        _ => None,
    }
}
