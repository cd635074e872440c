//! Paths of tool calls: strict for rules that allow, liberal for rules that deny or ask.
//!
//! The module reads paths as text. The caller, which knows the file system, resolves links before.

use super::pattern::matches;

/// Returns true if the patterns of a rule that allows cover every path of a call, and the call has at least one.
///
/// A relative pattern covers paths in the workspace only. A path is not covered if it has a component `..`, begins
/// with `~` or `$`, contains a backslash or a control character, has a scheme or a drive before its first `/`, or is
/// relative without a workspace. A workspace whose path contains U+FFFD counts as none: the text may also be that of
/// another folder.
pub(super) fn covers(patterns: &[String], paths: &[String], workspace: Option<&str>) -> bool {
    let is_lossless = |path: &&str| !path.contains(char::REPLACEMENT_CHARACTER);
    let workspace = workspace.filter(is_lossless).and_then(normalize_absolute);
    let workspace = workspace.as_deref();
    !paths.is_empty() && paths.iter().all(|path| is_covered(patterns, path, workspace))
}

/// Returns true if a pattern of a rule that denies or asks matches any path of a call.
///
/// A pattern matches the path as written, the path without `.` and `..`, and each end of it that begins at a
/// component. So `.env` matches `a/.env`, and an agent cannot evade a rule by another spelling of the folder.
pub(super) fn matches_any_path(
    patterns: &[String],
    paths: &[String],
    workspace: Option<&str>,
) -> bool {
    paths.iter().any(|path| {
        let candidates = interpretations(path, workspace.unwrap_or_default());
        patterns.iter().any(|pattern| {
            let pattern = pattern.strip_prefix("./").unwrap_or(pattern);
            let suffix_pattern = format!("*/{pattern}");
            candidates
                .iter()
                .any(|candidate| matches(pattern, candidate) || matches(&suffix_pattern, candidate))
        })
    })
}

fn is_covered(patterns: &[String], path: &str, workspace: Option<&str>) -> bool {
    if !is_unambiguous(path) {
        return false;
    }
    let joined = match workspace {
        _ if path.starts_with('/') => path.to_owned(),
        Some(workspace) => format!("{workspace}/{path}"),
        None => return false,
    };
    let Some(path) = normalize_absolute(&joined) else { return false };
    let relative_path = workspace.and_then(|workspace| relative_to(&path, workspace));
    patterns.iter().any(|pattern| {
        if pattern.starts_with('/') {
            !has_parent_component(pattern) && matches(pattern, &path)
        } else {
            let pattern = pattern.strip_prefix("./").unwrap_or(pattern);
            relative_path.is_some_and(|relative_path| matches(pattern, relative_path))
        }
    })
}

/// Returns true if every program reads a path as it is written.
fn is_unambiguous(path: &str) -> bool {
    let first_component = path.split('/').next().unwrap_or_default();
    !path.is_empty()
        && !path.starts_with(['~', '$'])
        && !path.contains('\\')
        && !path.contains(char::is_control)
        && !first_component.contains(':')
}

/// Returns an absolute path without empty components and without `.`; `None` for other paths and for those with `..`.
fn normalize_absolute(path: &str) -> Option<String> {
    if !path.starts_with('/') || has_parent_component(path) {
        return None;
    }
    let parts: Vec<_> = path.split('/').filter(|part| !matches!(*part, "" | ".")).collect();
    Some(format!("/{}", parts.join("/")))
}

fn has_parent_component(path: &str) -> bool {
    path.split('/').any(|part| part == "..")
}

/// Returns the part of a path below the workspace; the workspace itself is the empty text.
fn relative_to<'p>(path: &'p str, workspace: &str) -> Option<&'p str> {
    let rest = path.strip_prefix(workspace.trim_end_matches('/'))?;
    if rest.is_empty() { Some(rest) } else { rest.strip_prefix('/') }
}

/// Returns the forms of a path that a program may see.
fn interpretations(path: &str, workspace: &str) -> [String; 3] {
    let bare_path = path.strip_prefix("file://").unwrap_or(path).replace('\\', "/");
    let joined = if bare_path.starts_with('/') {
        bare_path.clone()
    } else {
        format!("{workspace}/{bare_path}")
    };
    let mut parts = Vec::new();
    for part in joined.split('/') {
        match part {
            "" | "." => {}
            ".." => _ = parts.pop(),
            _ => parts.push(part),
        }
    }
    [path.to_owned(), format!("/{}", parts.join("/")), bare_path]
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORKSPACE: Option<&str> = Some("/srv/ws");

    fn list(texts: &[&str]) -> Vec<String> {
        texts.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn paths_in_the_workspace_are_covered() {
        for (pattern, path) in [
            ("src/*", "src/a.rs"),
            ("src/*", "./src//a/./b.rs"),
            ("src/*", "/srv/ws/src/a.rs"),
            ("./src/*", "src/a.rs"),
            ("*.rs", "src/a.rs"),
            ("*", "/srv/ws"),
            ("/srv/ws/*", "src/a.rs"),
            ("/etc/hosts", "/etc/hosts"),
            ("/etc/*", "/etc//./hosts"),
            ("*", "a/b:c"),
            ("*", "a..b/...c"),
        ] {
            assert!(covers(&list(&[pattern]), &list(&[path]), WORKSPACE), "{pattern} {path}");
        }
    }

    #[test]
    fn other_paths_are_not_covered() {
        for (pattern, path) in [
            ("*", ""),
            ("*", "/etc/passwd"),
            ("*", "/srv/wsx/a"),
            ("*", "/srv"),
            ("*", "../ws/a"),
            ("*", "a/.."),
            ("*", "/srv/ws/../../etc/passwd"),
            ("/srv/ws/*", "/srv/ws/../../etc/passwd"),
            ("/srv/../*", "/srv/a"),
            ("*", "~/a"),
            ("*", "~mia/a"),
            ("*", "$HOME/a"),
            ("*", "..\\a"),
            ("*", "file:///etc/passwd"),
            ("*", "file:/etc/passwd"),
            ("*", "C:/a"),
            ("*", "a\0b"),
            ("*", "a\nb"),
            ("src/*", "src"),
            ("src/*", "srcx/a"),
            ("src/*", "Src/a"),
            ("etc/*", "/etc/hosts"),
            ("src/*", "/srv/ws/a/src/b"),
        ] {
            assert!(!covers(&list(&[pattern]), &list(&[path]), WORKSPACE), "{pattern} {path}");
        }
    }

    #[test]
    fn a_workspace_that_is_not_utf8_restricts_and_allows_nothing() {
        let workspace = Some("/srv/caf\u{fffd}");
        assert!(!covers(&list(&["*"]), &list(&["a"]), workspace));
        assert!(matches_any_path(&list(&["/srv/*/a"]), &list(&["b/../a"]), workspace));
    }

    #[test]
    fn every_path_of_a_call_must_be_covered() {
        let patterns = list(&["src/*", "docs/*"]);
        assert!(covers(&patterns, &list(&["src/a", "docs/b"]), WORKSPACE));
        assert!(!covers(&patterns, &list(&["src/a", "b"]), WORKSPACE));
        assert!(!covers(&patterns, &[], WORKSPACE));
        assert!(!covers(&[], &list(&["src/a"]), WORKSPACE));
    }

    #[test]
    fn relative_paths_need_an_absolute_workspace() {
        for workspace in [None, Some("srv/ws"), Some(""), Some("/srv/../ws")] {
            assert!(!covers(&list(&["*"]), &list(&["a"]), workspace), "{workspace:?}");
            assert!(covers(&list(&["/a/*"]), &list(&["/a/b"]), workspace), "{workspace:?}");
        }
        assert!(covers(&list(&["a"]), &list(&["/a"]), Some("/")));
        assert!(covers(&list(&["a"]), &list(&["/srv/a"]), Some("/srv/")));
    }

    #[test]
    fn denied_paths_are_found_in_every_spelling() {
        for (pattern, path) in [
            (".env", ".env"),
            (".env", "./.env"),
            (".env", "a/../.env"),
            (".env", "/srv/ws/.env"),
            (".env", "/other/.env"),
            (".env", "~/.env"),
            (".env", "a/.env"),
            (".env", "a\\.env"),
            ("./.env", ".env"),
            ("/etc/*", "/srv/ws/../../etc/passwd"),
            ("/etc/*", "../../etc/passwd"),
            ("/etc/*", "../../../../../etc/passwd"),
            ("/etc/*", "//etc/./passwd"),
            ("/etc/*", "file:///etc/passwd"),
            ("~/.ssh/*", "~/.ssh/id"),
            ("src/*", "src/../src/a"),
            ("*/.ssh/*", "~/.ssh/id"),
            ("*/.ssh/*", ".ssh/id"),
        ] {
            assert!(
                matches_any_path(&list(&["no", pattern]), &list(&["x", path]), WORKSPACE),
                "{pattern} {path}"
            );
        }
        for (pattern, path) in
            [(".env", ".envrc"), (".env", "a.env"), ("/etc/*", "etc/a"), ("a", "b")]
        {
            assert!(
                !matches_any_path(&list(&[pattern]), &list(&[path]), WORKSPACE),
                "{pattern} {path}"
            );
        }
        assert!(matches_any_path(&list(&["/etc/*"]), &list(&["etc/../../etc/x"]), None));
        assert!(!matches_any_path(&list(&["*"]), &[], WORKSPACE));
    }
}
