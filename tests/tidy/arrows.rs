//! Who may name whom.

use crate::rust::{Path, paths};
use crate::tree::{Faults, File, rust_files};

/// A room, the rooms of its own crate that it may name, and the parts of the inside that it may
/// name. A room may always name itself; only `lib.rs`, `main.rs` and a room's tests name everything.
struct Room {
    name: &'static str,
    ours: &'static [&'static str],
    inside: &'static [&'static str],
}

const fn room(
    name: &'static str,
    ours: &'static [&'static str],
    inside: &'static [&'static str],
) -> Room {
    Room { name, ours, inside }
}

/// The edge. `start`, `rungs`, `Running` and `StartError` are the composition root's own items.
const EDGE: &[Room] = &[
    room(
        "cli",
        &[
            "config",
            "programs",
            "telemetry",
            "tls",
            "token",
            "wire",
            "openapi",
            "start_as",
            "rungs",
            "Running",
            "StartError",
        ],
        &["decide", "model"],
    ),
    room("serve", &["observe", "push", "tls", "wire"], &["decide", "door", "follow", "model"]),
    room("observe", &["push"], &["model", "ports"]),
    room("alert", &["push", "warden"], &["decide", "model"]),
    room(
        "watching",
        &["StartError", "alert", "config", "observe", "push", "telling", "warden"],
        &["model"],
    ),
    room("wire", &[], &["model"]),
    room("config", &["form", "template", "tls"], &["model"]),
    room("template", &[], &[]),
    room("form", &[], &[]),
    room("drive", &["form", "template", "warden"], &["decide", "model", "ports", "report"]),
    room("warden", &[], &["model"]),
    room("store", &[], &["model", "ports", "report"]),
    room("push", &[], &["decide", "model", "ports"]),
    room("starting", &["store", "tls"], &["model", "ports"]),
    room("admit", &["StartError", "config", "front", "serve", "token"], &["model", "ports"]),
    room(
        "front",
        &["observe", "config", "programs", "push", "serve", "warden"],
        &["door", "model"],
    ),
    room("programs", &["drive"], &["model"]),
    room(
        "reload",
        &["StartError", "admit", "config", "front", "serve", "store", "token", "wire", "workshop"],
        &["decide", "kit", "model", "ports", "root"],
    ),
    room(
        "workshop",
        &["StartError", "config", "drive", "programs", "settle", "warden"],
        &["model", "ports", "root"],
    ),
    room(
        "ground",
        &[
            "StartError",
            "admit",
            "config",
            "observe",
            "rungs",
            "serve",
            "settle",
            "store",
            "tls",
            "warden",
            "workshop",
        ],
        &["decide", "kit", "lookout", "model", "ports", "turns"],
    ),
    room(
        "opening",
        &[
            "Running",
            "StartError",
            "admit",
            "config",
            "front",
            "ground",
            "observe",
            "push",
            "reload",
            "serve",
            "store",
            "telling",
            "watching",
            "wording",
            "workshop",
            "warden",
        ],
        &["kit", "model", "monitor", "ports", "retention", "root", "scheduler", "tree"],
    ),
    room(
        "telling",
        &["StartError", "config", "push", "serve", "store"],
        &["decide", "door", "model", "ports"],
    ),
    room("wording", &["template"], &["model", "ports"]),
    room("settle", &["StartError", "config", "warden"], &["decide", "model"]),
    room("clock", &[], &["model", "ports"]),
    room("meter", &[], &["model", "ports"]),
    room("telemetry", &["clock", "observe"], &["ports"]),
    room("tls", &[], &[]),
    room("token", &[], &[]),
];

/// The inside. Every other room of it is an actor or a part of one: it performs what is decided,
/// may name all of these and its like, and is named by none of these.
const INSIDE: &[Room] = &[
    room("model", &[], &[]),
    room("decide", &["model"], &[]),
    room("ports", &["model", "report"], &[]),
    room("report", &["decide", "model", "ports"], &[]),
];

/// What holds for a room without a line.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Unlisted {
    Refused,
    Free,
}

/// What is named in some rooms of the edge, or in a part of one, only; tests may name more.
const RESERVED: &[(&str, &[&str])] = &[
    ("axum", &["serve"]),
    ("axum_server", &["serve"]),
    ("clap", &["cli"]),
    ("clap_complete", &["cli"]),
    ("clap_mangen", &["cli"]),
    ("jsonschema", &["form"]),
    ("minijinja", &["template"]),
    ("prost", &["serve/grpc"]),
    ("prost_types", &["serve/grpc"]),
    ("rusqlite", &["store/sql"]),
    ("rustix", &["cli"]),
    ("std::process::Command", &["drive", "warden", "cli/service"]),
    ("tokio::process", &["cli/doctor", "drive", "warden"]),
    ("tonic", &["serve/grpc"]),
    ("tonic_prost", &["serve/grpc"]),
];

/// What nobody inside names: the world.
const WORLD: &[&str] = &[
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

const REMEDY: &str = "move the code to the room that may do this, or hand it in through a port; \
     a new arrow or room goes into the tables of tests/tidy/arrows.rs with a decision record";

#[test]
fn arrows_between_the_rooms_of_the_edge_point_one_way() {
    check("src/", EDGE, Unlisted::Refused);
}

#[test]
fn arrows_between_the_rooms_of_the_inside_point_one_way() {
    check("actors/src/", INSIDE, Unlisted::Free);
}

#[test]
fn nothing_inside_names_the_world() {
    let mut faults = Faults::default();
    for file in rust_files(&["actors/src/"]) {
        for path in paths(&file.text) {
            if WORLD.iter().any(|world| path.starts_with(world)) {
                faults.add(&file.path, path.line, format!("`{}` is of the world", path.show()));
            }
        }
    }
    faults.settle("reach it through a port, and implement the port in src/");
}

#[test]
fn a_crate_of_one_room_is_named_in_that_room_only() {
    let mut faults = Faults::default();
    for file in rust_files(&["src/"]) {
        if room_of(&file, "src/").is_none() || file.is_test() {
            continue;
        }
        let is_in = |owner: &&str| file.is_in(&[&format!("src/{owner}")]);
        for path in paths(&file.text) {
            let owned = |(name, owners): &&(&str, &[&str])| {
                path.starts_with(name) && !owners.iter().any(is_in)
            };
            if let Some((name, owners)) = RESERVED.iter().find(owned) {
                let owners = owners.join(", ");
                faults.add(&file.path, path.line, format!("`{name}` belongs to {owners}"));
            }
        }
    }
    faults.settle(REMEDY);
}

fn check(folder: &str, rooms: &[Room], unlisted: Unlisted) {
    let mut faults = Faults::default();
    for file in rust_files(&[folder]) {
        let Some(name) = room_of(&file, folder).filter(|_| !file.is_test()) else { continue };
        let Some(room) = rooms.iter().find(|room| room.name == name) else {
            if unlisted == Unlisted::Refused {
                faults.add(&file.path, 1, format!("the room `{name}` has no line in the table"));
            }
            continue;
        };
        let depth = file.path.matches('/').count() - folder.matches('/').count() + 1;
        for path in paths(&file.text) {
            if let Some(target) = forbidden(room, depth, rooms, &path) {
                faults.add(&file.path, path.line, format!("`{name}` may not name `{target}`"));
            }
        }
    }
    faults.settle(REMEDY);
}

/// The room a file belongs to; the composition root belongs to none.
fn room_of<'f>(file: &'f File, folder: &str) -> Option<&'f str> {
    let inner = file.path.strip_prefix(folder)?;
    let name = inner.split('/').next()?.trim_end_matches(".rs");
    (name != "lib" && name != "main").then_some(name)
}

/// What the path names although the room may not, `depth` modules below the crate.
fn forbidden(room: &Room, depth: usize, rooms: &[Room], path: &Path) -> Option<String> {
    let name = |at: usize| path.names.get(at).map(String::as_str);
    let ups = path.names.iter().take_while(|name| *name == "super").count();
    match name(0)? {
        "crate" => {
            let target = name(1)?;
            (target != room.name && !room.ours.contains(&target)).then(|| path.show())
        }
        "algonius_actors" => {
            let fits = name(1).is_some_and(|target| room.inside.contains(&target));
            (!fits).then(|| path.show())
        }
        "super" if ups >= depth => {
            let target = name(ups)?;
            let known = rooms.iter().any(|room| room.name == target);
            (known && target != room.name && !room.ours.contains(&target)).then(|| path.show())
        }
        _ => None,
    }
}
