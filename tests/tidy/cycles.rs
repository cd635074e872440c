//! Cycles: no modules of a folder name each other in a cycle.

use std::collections::{BTreeMap, BTreeSet};

use crate::rust::{CodePath, code_paths};
use crate::tree::{Faults, rust_files};

/// Cycles that are left, as the folder and the modules of each. An entry is removed with its cycle.
const KNOWN_CYCLES: &[(&str, &[&str])] = &[];

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
        for (parent, cycle) in find_cycles(folder) {
            let is_known = |known: &(&str, &[&str])| {
                known.0 == parent && known.1.iter().copied().eq(cycle.iter().map(String::as_str))
            };
            if !KNOWN_CYCLES.iter().any(is_known) {
                faults.add(&parent, 1, format!("cycle of {}", cycle.join(", ")));
            }
        }
    }
    faults.fail_if_any("move what both need into a module of its own, or pass it in");
}

/// Names of the modules from the crate down to a module.
type ModulePath = Vec<String>;

/// Modules of one folder, each with the modules beside it that it names.
type ModuleGraph = BTreeMap<String, BTreeSet<String>>;

/// Returns each cycle between the modules of one folder, with the path of the folder. A module includes all modules
/// inside it.
fn find_cycles(folder: &str) -> Vec<(String, Vec<String>)> {
    let files: Vec<_> = rust_files(&[folder])
        .into_iter()
        .filter(|file| !file.is_test_module() && !file.path.contains("/tests/"))
        .filter_map(|file| Some((module_path(&file.path, folder)?, file)))
        .collect();
    let known_modules: BTreeSet<ModulePath> = files
        .iter()
        .flat_map(|(module, _)| (1..=module.len()).map(|end| prefix(module, end)))
        .collect();
    let mut graphs: BTreeMap<ModulePath, ModuleGraph> = BTreeMap::new();
    for (source_module, file) in &files {
        let code = file.text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
        for target_module in code_paths(code)
            .iter()
            .filter_map(|path| resolve_module(source_module, path, &known_modules))
        {
            let common_depth = source_module
                .iter()
                .zip(&target_module)
                .take_while(|(source_name, target_name)| source_name == target_name)
                .count();
            if let (Some(source_name), Some(target_name)) =
                (source_module.get(common_depth), target_module.get(common_depth))
            {
                let graph = graphs.entry(prefix(source_module, common_depth)).or_default();
                graph.entry(source_name.clone()).or_default().insert(target_name.clone());
            }
        }
    }
    let display_path = |parent: &ModulePath| format!("{folder}{}", parent.join("/"));
    let cycles_of = |(parent, graph)| {
        let cycles = cyclic_components(&graph).into_iter();
        cycles.map(|cycle| (display_path(&parent), cycle)).collect::<Vec<_>>()
    };
    graphs.into_iter().flat_map(cycles_of).collect()
}

fn prefix(module: &ModulePath, end: usize) -> ModulePath {
    module.iter().take(end).cloned().collect()
}

fn module_path(path: &str, folder: &str) -> Option<ModulePath> {
    let inner = path.strip_prefix(folder)?.strip_suffix(".rs")?;
    let module: ModulePath = inner.split('/').map(str::to_owned).collect();
    (inner != "lib" && inner != "main").then_some(module)
}

/// Returns the innermost module that a path names.
fn resolve_module(
    source_module: &ModulePath,
    path: &CodePath,
    known_modules: &BTreeSet<ModulePath>,
) -> Option<ModulePath> {
    let super_count = path.names.iter().take_while(|name| *name == "super").count();
    let (base, skipped_count) = match path.names.first()?.as_str() {
        "crate" => (ModulePath::new(), 1),
        "self" => (source_module.clone(), 1),
        "super" => {
            (prefix(source_module, source_module.len().checked_sub(super_count)?), super_count)
        }
        _ => return None,
    };
    let mut module = base;
    for name in path.names.iter().skip(skipped_count) {
        module.push(name.clone());
        if !known_modules.contains(&module) {
            module.pop();
            break;
        }
    }
    (!module.is_empty()).then_some(module)
}

/// Returns the sets of modules that all reach each other, each in alphabetic order.
fn cyclic_components(graph: &ModuleGraph) -> Vec<Vec<String>> {
    let reachable_modules: BTreeMap<_, _> =
        graph.keys().map(|from| (from, reachable_from(graph, from))).collect();
    let reaches = |from: &String, to: &String| {
        reachable_modules.get(from).is_some_and(|reachable_modules| reachable_modules.contains(to))
    };
    let modules_in_cycle = graph.keys().filter(|module| reaches(module, module));
    let mut components: BTreeSet<Vec<String>> = BTreeSet::new();
    for module in modules_in_cycle {
        let members = graph.keys().filter(|other| reaches(module, other) && reaches(other, module));
        components.insert(members.cloned().collect());
    }
    components.into_iter().collect()
}

/// Returns the modules that a module names, directly or through others.
fn reachable_from(graph: &ModuleGraph, from: &String) -> BTreeSet<String> {
    let mut reachable_modules = BTreeSet::new();
    let mut pending_modules = vec![from];
    while let Some(module) = pending_modules.pop() {
        for next in graph.get(module).into_iter().flatten() {
            if reachable_modules.insert(next.clone()) {
                pending_modules.push(next);
            }
        }
    }
    reachable_modules
}

#[test]
fn a_cycle_is_found() {
    let build_graph = |edges: &[(&str, &str)]| {
        let mut graph = ModuleGraph::new();
        for (from, to) in edges {
            graph.entry((*from).to_owned()).or_default().insert((*to).to_owned());
        }
        graph
    };
    assert!(cyclic_components(&build_graph(&[("a", "b"), ("b", "c"), ("a", "c")])).is_empty());
    let components =
        cyclic_components(&build_graph(&[("a", "b"), ("b", "c"), ("c", "b"), ("d", "a")]));
    assert_eq!(components, [["b", "c"]]);
}
