//! Command lines and paths that try to run more than a rule allows. None of them is allowed.

use algonius_actors::model::interaction::ToolCallSubject;
use algonius_actors::model::permission::{PermissionPolicy, PermissionRule, PermissionVerdict};

use super::{decide_permission, policy_allowing, shell_call, to_strings};

/// Patterns of a careful operator.
const NARROW_PATTERNS: &[&str] = &["git status*", "cargo test*", "cat *", "echo *", "./build.sh *"];

/// Lines that no pattern with a wildcard allows, not even `*`.
const UNCOVERED_LINES: &[&str] = &[
    // Chains.
    "git status; rm x",
    "git status;rm x",
    "git status ;",
    "git status && rm x",
    "git status || rm x",
    "git status & rm x",
    "git status &",
    "git status | sh",
    "git status |& sh",
    "git status ;; rm x",
    "git status\nrm x",
    "git status\r\nrm x",
    "git status\rrm x",
    "git status \n",
    "\ngit status",
    "git status \\\n; rm x",
    // Line breaks and blanks of Unicode, and invisible characters.
    "git status\u{2028}rm x",
    "git status\u{2029}rm x",
    "git status\u{85}rm x",
    "git status\u{b}rm x",
    "git status\u{c}rm x",
    "git status\0rm x",
    "git status\u{1b}[2Krm x",
    "git status\u{a0}x",
    "git status\u{3000}x",
    "git status\u{200b}x",
    "git status \u{202e}x",
    "git status \u{feff}x",
    "git status \u{7f}x",
    "git status\tx",
    "echo 'a\nb'",
    "echo 'a\0b'",
    "echo 'a\u{1b}[2Kb'",
    "echo 'a\u{202e}b'",
    "echo \u{ff1b}rm",
    // Substitutions.
    "git status $(rm x)",
    "git status `rm x`",
    "git status \"$(rm x)\"",
    "git status \"`rm x`\"",
    "git status $((a[$(rm x)]))",
    "git status ${a:-$(rm x)}",
    "git status <(rm x)",
    "git status >(rm x)",
    "git status =(rm x)",
    "git status $HOME",
    "git status \"$HOME\"",
    "git status $'\\n'rm",
    "git status $\"x\"",
    "cat @(a|b)",
    "echo $IFS",
    // Redirections and here-documents.
    "git status > .git/hooks/pre-commit",
    "git status >> x",
    "git status >| x",
    "git status 2>x",
    "git status &>x",
    "cat < /etc/shadow",
    "cat <<EOF\n$(rm x)\nEOF",
    "cat <<'EOF' > x\na\nEOF",
    "cat <<<$(rm x)",
    "cat 3<>x",
    // Groups, functions and compound commands.
    "(git status)",
    "{ git status; }",
    "git status() { rm x; }",
    "if git status; then rm x; fi",
    "! git status",
    // Quotes and escapes.
    "git status 'a'; rm x 'b'",
    "git status '\\''; rm x '",
    "git status 'a\\' 'b; rm x'",
    "git status 'a\\'",
    "git status \"a\\\"; rm x\"",
    "git status \"a;b\"",
    "git status \"'\"; rm x \"'\"",
    "git status '\"'; rm x '\"'",
    "git status \\; rm x",
    "git status '",
    "git status \"",
    "git status \\",
    "git status \"!x\"",
    "git status !!",
    "'git' status",
    "\"git\" status",
    "g''it status",
    "g\\it status",
    "'git status'",
    // Assignments.
    "PATH=/tmp git status",
    "GIT_PAGER=x git status",
    "A=1 B=2 git status",
    "A+=1 git status",
    "A[0]=1 git status",
    "LD_PRELOAD=./x.so cat a",
    // Wrappers.
    "env git status",
    "env -S 'rm x' git status",
    "sudo git status",
    "doas git status",
    "xargs git status",
    "nohup git status",
    "sh -c 'git status'",
    "bash -c 'rm x' git status",
    "eval git status",
    "exec git status",
    "command git status",
    "time git status",
    "timeout 5 git status",
    "busybox cat a",
    "ssh host git status",
    // Patterns of file names, braces, tildes and comments.
    "cat *",
    "cat a?",
    "cat [a]",
    "cat /etc/{passwd,shadow}",
    "cat {a..z}",
    "cat ~/.ssh/id",
    "cat ~root/.ssh/id",
    "cat a=~/.ssh/id",
    "cat a:~/.ssh/id",
    "cat ''~/x",
    "cat =ls",
    "cat ^a",
    "cat (N)",
    "git status # --dry-run",
    "git status #",
    "cat a#b",
    // Parent folders.
    "cat ../x",
    "cat a/../../x",
    "cat /srv/ws/../../etc/shadow",
    "cat ..",
    "cat a/..",
    "cat '..'/x",
    "cat .'.'/x",
    "cat \"../x\"",
    "cat --file=../x",
    "cat -f../x",
    "git status -C..",
    // Programs by their path.
    "~/git status",
    "../git status",
    "/tmp/git/../git status",
];

/// Lines that are simple commands, but not those of the careful operator.
const OTHER_COMMANDS: &[&str] = &[
    "git 'status'",
    // Other programs with the same name.
    "/tmp/git status",
    "./git status",
    "git-x status",
    "xgit status",
    "GIT status",
    "Git status",
    "./build.shx a",
    "a/build.sh a",
    "././build.sh a",
    // Other commands.
    "git",
    "git stat",
    "git -c core.pager=x status",
    "git --exec-path=x status",
    "cargo +x test",
    "cargo --config x test",
    "",
    " ",
];

/// Lines against patterns that begin or end with a wildcard, each with its pattern.
const WIDE_PATTERN_CASES: &[(&str, &str)] = &[
    ("*", "sudo id"),
    ("*", "/usr/bin/env id"),
    ("*", "bash x"),
    ("*", "zsh-5.9 x"),
    ("*", "/lib64/ld-linux-x86-64.so.2 x"),
    ("*", "source x"),
    ("*", ". x"),
    ("*", "alias ls=x"),
    ("*", "export PATH=x"),
    ("*", "trap x EXIT"),
    ("*", "/tmp/x"),
    ("*", "./x"),
    ("*", "X=1 id"),
    ("*", "a;b"),
    ("* status", "sudo git status"),
    ("* status", "/tmp/git status"),
    ("*git status", "/tmp/git status"),
    ("*--dry-run", "rm x # --dry-run"),
    ("*--dry-run", "rm x; : --dry-run"),
    ("rm *--dry-run", "rm x ; echo --dry-run"),
    ("scripts/*", "scripts/x"),
    ("scripts/*", "scripts/../../x"),
    ("./build*", "./build-x"),
    ("./build*", "./build/../x"),
    ("/usr/bin/*", "/usr/bin/../../tmp/x"),
    ("bash *", "bash -c id"),
    ("bash build*", "bash build.sh"),
    ("env *", "env id"),
    ("sudo systemctl *", "sudo systemctl restart web"),
    ("A=1 *", "A=1 id"),
    ("A=1 id", "A=1 id"),
    ("echo a; echo b", "echo a; echo b"),
    ("make -C *", "make -C .."),
];

#[test]
fn no_line_runs_more_than_a_narrow_rule_allows() {
    assert!(UNCOVERED_LINES.len() > 80);
    let policy = policy_allowing(NARROW_PATTERNS);
    for line in UNCOVERED_LINES.iter().chain(OTHER_COMMANDS) {
        assert_eq!(
            decide_permission(&policy, &shell_call(line)),
            PermissionVerdict::Ask,
            "{line:?}"
        );
    }
    for line in ["git status --short", "cargo test -p x", "cat a 'b;c'", "./build.sh a"] {
        assert_eq!(
            decide_permission(&policy, &shell_call(line)),
            PermissionVerdict::Allow,
            "{line:?}"
        );
    }
}

#[test]
fn no_line_runs_more_than_a_wide_rule_allows() {
    for line in UNCOVERED_LINES {
        let actual = decide_permission(&policy_allowing(&["*"]), &shell_call(line));
        assert_eq!(actual, PermissionVerdict::Ask, "{line:?}");
    }
    for (pattern, line) in WIDE_PATTERN_CASES {
        let actual = decide_permission(&policy_allowing(&[pattern]), &shell_call(line));
        assert_eq!(actual, PermissionVerdict::Ask, "{pattern:?} {line:?}");
    }
}

/// A denial that precedes a permission finds its command in chains, wrappers and quotes.
#[test]
fn a_denial_is_found_in_lines_that_another_rule_allows() {
    let deny = PermissionRule {
        command_patterns: to_strings(&["rm *", "git push*"]),
        verdict: Some(PermissionVerdict::Deny),
        ..Default::default()
    };
    let mut policy = policy_allowing(&["*"]);
    policy.rules.insert(0, deny);
    policy.tool_verdicts.insert("Bash".to_owned(), PermissionVerdict::Allow);
    policy.default_verdict = PermissionVerdict::Allow;
    for line in [
        "ls; rm x",
        "sudo rm x",
        "'rm' x",
        "r\\m x",
        "/bin/rm x",
        "echo $(rm x)",
        "bash -c 'rm x'",
        "ls\nrm x",
        "rm${IFS}x",
        "git   push",
        "git 'push' origin",
        "cd a && git push",
    ] {
        assert_eq!(
            decide_permission(&policy, &shell_call(line)),
            PermissionVerdict::Deny,
            "{line:?}"
        );
    }
    assert_eq!(decide_permission(&policy, &shell_call("ls")), PermissionVerdict::Allow);
}

#[test]
fn no_path_leaves_the_workspace_of_a_rule() {
    let rule = PermissionRule {
        tool_kinds: to_strings(&["edit"]),
        path_patterns: to_strings(&["*", "/srv/other/*"]),
        verdict: Some(PermissionVerdict::Allow),
        ..Default::default()
    };
    let policy = PermissionPolicy { rules: vec![rule], ..Default::default() };
    let edit_call = |paths: &[&str]| ToolCallSubject {
        tool: "Write".to_owned(),
        kind: Some("edit".to_owned()),
        paths: to_strings(paths),
        ..Default::default()
    };
    for paths in [
        &[][..],
        &[""],
        &["../x"],
        &["a/../../x"],
        &["/srv/ws/../x"],
        &["/srv/wsx/a"],
        &["/srv/other/../x"],
        &["/etc/passwd"],
        &["//etc/passwd"],
        &["~/x"],
        &["~root/x"],
        &["$HOME/x"],
        &["file:///etc/passwd"],
        &["file:/etc/passwd"],
        &["..\\x"],
        &["a\0"],
        &["a\n/etc/passwd"],
        &["a", "/etc/passwd"],
        &["a", ""],
    ] {
        assert_eq!(
            decide_permission(&policy, &edit_call(paths)),
            PermissionVerdict::Ask,
            "{paths:?}"
        );
    }
    for paths in [&["a"][..], &["/srv/ws/a", "b/c"], &["/srv/other/a"]] {
        assert_eq!(
            decide_permission(&policy, &edit_call(paths)),
            PermissionVerdict::Allow,
            "{paths:?}"
        );
    }
}
