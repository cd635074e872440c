//! Cycles: no modules of a folder name each other in a cycle.

use std::collections::{BTreeMap, BTreeSet};

use crate::rust::{CodePath, paths};
use crate::tree::{Faults, rust_files};

/// Cycles that are left, as the folder and the modules of each. An entry is removed with its cycle.
const CYCLES: &[(&str, &[&str])] = &[];

#[test]
fn modules_of_a_folder_have_no_cyclic_dependencies() {
    let mut faults = Faults::default();
    for folder in [
        "src/",
        "actors/src/",
        "crates/a2a/src/",
        "crates/protocols/src/",
        "crates/redact/src/",
        "crates/store/src/",
        "crates/warden/src/",
    ] {
        for (parent, cycle) in cycles(folder) {
            let is_known = |known: &(&str, &[&str])| {
                known.0 == parent && known.1.iter().copied().eq(cycle.iter().map(String::as_str))
            };
            if !CYCLES.iter().any(is_known) {
                faults.add(&parent, 1, format!("cycle of {}", cycle.join(", ")));
            }
        }
    }
    faults.fail_if_any("move what both need into a module of its own, or pass it in");
}

/// Names of the modules from the crate down to a module.
type ModulePath = Vec<String>;

/// Modules of one folder, each with the modules beside it that it names.
type Graph = BTreeMap<String, BTreeSet<String>>;

/// Returns each cycle between the modules of one folder, with the path of the folder. A module includes all modules
/// inside it.
fn cycles(folder: &str) -> Vec<(String, Vec<String>)> {
    let files: Vec<_> = rust_files(&[folder])
        .into_iter()
        .filter(|file| !file.is_test() && !file.path.contains("/tests/"))
        .filter_map(|file| Some((route(&file.path, folder)?, file)))
        .collect();
    let known: BTreeSet<ModulePath> = files
        .iter()
        .flat_map(|(route, _)| (1..=route.len()).map(|end| prefix(route, end)))
        .collect();
    let mut graphs: BTreeMap<ModulePath, Graph> = BTreeMap::new();
    for (from, file) in &files {
        let code = file.text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
        for to in paths(code).iter().filter_map(|path| target(from, path, &known)) {
            let common = from.iter().zip(&to).take_while(|(one, other)| one == other).count();
            if let (Some(one), Some(other)) = (from.get(common), to.get(common)) {
                let graph = graphs.entry(prefix(from, common)).or_default();
                graph.entry(one.clone()).or_default().insert(other.clone());
            }
        }
    }
    let display_path = |parent: &ModulePath| format!("{folder}{}", parent.join("/"));
    let cycles_of = |(parent, graph)| {
        let cycles = components(&graph).into_iter();
        cycles.map(|cycle| (display_path(&parent), cycle)).collect::<Vec<_>>()
    };
    graphs.into_iter().flat_map(cycles_of).collect()
}

fn prefix(route: &ModulePath, end: usize) -> ModulePath {
    route.iter().take(end).cloned().collect()
}

fn route(path: &str, folder: &str) -> Option<ModulePath> {
    let inner = path.strip_prefix(folder)?.strip_suffix(".rs")?;
    let route: ModulePath = inner.split('/').map(str::to_owned).collect();
    (inner != "lib" && inner != "main").then_some(route)
}

/// Returns the innermost module that a path names.
fn target(from: &ModulePath, path: &CodePath, known: &BTreeSet<ModulePath>) -> Option<ModulePath> {
    let super_count = path.names.iter().take_while(|name| *name == "super").count();
    let (base, skipped) = match path.names.first()?.as_str() {
        "crate" => (ModulePath::new(), 1),
        "self" => (from.clone(), 1),
        "super" => (prefix(from, from.len().checked_sub(super_count)?), super_count),
        _ => return None,
    };
    let mut route = base;
    for name in path.names.iter().skip(skipped) {
        route.push(name.clone());
        if !known.contains(&route) {
            route.pop();
            break;
        }
    }
    (!route.is_empty()).then_some(route)
}

/// Returns the sets of modules that all reach each other, each in alphabetic order.
fn components(graph: &Graph) -> Vec<Vec<String>> {
    let reached: BTreeMap<_, _> = graph.keys().map(|from| (from, reach(graph, from))).collect();
    let reaches =
        |from: &String, to: &String| reached.get(from).is_some_and(|reached| reached.contains(to));
    let in_cycle = graph.keys().filter(|module| reaches(module, module));
    let mut found: BTreeSet<Vec<String>> = BTreeSet::new();
    for module in in_cycle {
        let members = graph.keys().filter(|other| reaches(module, other) && reaches(other, module));
        found.insert(members.cloned().collect());
    }
    found.into_iter().collect()
}

/// Returns the modules that a module names, directly or through others.
fn reach(graph: &Graph, from: &String) -> BTreeSet<String> {
    let mut reached = BTreeSet::new();
    let mut pending = vec![from];
    while let Some(module) = pending.pop() {
        for next in graph.get(module).into_iter().flatten() {
            if reached.insert(next.clone()) {
                pending.push(next);
            }
        }
    }
    reached
}

#[test]
fn a_cycle_is_found() {
    let graph = |edges: &[(&str, &str)]| {
        let mut graph = Graph::new();
        for (from, to) in edges {
            graph.entry((*from).to_owned()).or_default().insert((*to).to_owned());
        }
        graph
    };
    assert!(components(&graph(&[("a", "b"), ("b", "c"), ("a", "c")])).is_empty());
    let found = components(&graph(&[("a", "b"), ("b", "c"), ("c", "b"), ("d", "a")]));
    assert_eq!(found, [["b", "c"]]);
}
