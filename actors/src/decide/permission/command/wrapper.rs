//! Wrappers: programs and shell words that run whatever their arguments name, or that change later commands.

/// Names of wrappers. An interpreter that runs programs of other languages, such as Python, is none: whoever writes a
/// pattern for it knows that it runs programs.
const WRAPPERS: &[&str] = &[
    // Other users and other confinements.
    "bwrap",
    "capsh",
    "chpst",
    "chroot",
    "doas",
    "fakeroot",
    "firejail",
    "gosu",
    "newgrp",
    "nsenter",
    "pkexec",
    "proot",
    "run0",
    "runuser",
    "setpriv",
    "sg",
    "su",
    "su-exec",
    "sudo",
    "sudoedit",
    "systemd-run",
    "unshare",
    // Other environments, priorities, times, terminals and descriptors.
    "batch",
    "at",
    "caffeinate",
    "choom",
    "chronic",
    "chrt",
    "cpulimit",
    "crontab",
    "daemonize",
    "dbus-run-session",
    "dtach",
    "abduco",
    "entr",
    "env",
    "expect",
    "faketime",
    "flock",
    "i386",
    "ionice",
    "linux32",
    "linux64",
    "ltrace",
    "nice",
    "nohup",
    "numactl",
    "prlimit",
    "proxychains",
    "proxychains4",
    "renice",
    "rlwrap",
    "screen",
    "script",
    "setarch",
    "setsid",
    "softlimit",
    "start-stop-daemon",
    "stdbuf",
    "strace",
    "taskset",
    "time",
    "timeout",
    "tmux",
    "torify",
    "torsocks",
    "unbuffer",
    "watch",
    "watchexec",
    "xvfb-run",
    "zellij",
    // Many programs, and programs elsewhere.
    "mosh",
    "parallel",
    "rsh",
    "run-parts",
    "rush",
    "slogin",
    "ssh",
    "sshpass",
    "xargs",
    // Collections of programs, and loaders.
    "busybox",
    "toybox",
    "ld.so",
    // Shells.
    "ash",
    "bash",
    "csh",
    "dash",
    "elvish",
    "fish",
    "hush",
    "ion",
    "ksh",
    "ksh93",
    "lksh",
    "mksh",
    "nu",
    "oksh",
    "osh",
    "posh",
    "pwsh",
    "rbash",
    "rc",
    "rksh",
    "rzsh",
    "sash",
    "sh",
    "tcsh",
    "xonsh",
    "yash",
    "ysh",
    "zsh",
    // Words of shells that run commands, begin compound commands, or change the meaning of later words.
    ".",
    "-",
    "alias",
    "bind",
    "builtin",
    "case",
    "command",
    "complete",
    "coproc",
    "declare",
    "do",
    "elif",
    "else",
    "enable",
    "eval",
    "exec",
    "export",
    "fc",
    "for",
    "foreach",
    "function",
    "hash",
    "if",
    "local",
    "noglob",
    "nocorrect",
    "readonly",
    "repeat",
    "select",
    "set",
    "setopt",
    "shopt",
    "source",
    "then",
    "trap",
    "typeset",
    "unalias",
    "until",
    "while",
];

/// Returns true if a program is a wrapper, with or without a folder and a version.
pub(super) fn is_wrapper(program: &str) -> bool {
    let name = program.rsplit('/').next().unwrap_or_default();
    // Versions such as `bash-5.2` and `zsh5` are the same program.
    let unversioned =
        name.trim_end_matches(|it: char| it.is_ascii_digit() || it == '.' || it == '-');
    name.is_empty()
        || name.starts_with("ld-linux")
        || [name, unversioned].iter().any(|it| WRAPPERS.contains(it))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrappers_are_found_with_folders_and_versions() {
        for program in [
            "sudo",
            "/usr/bin/sudo",
            "./sudo",
            "bash",
            "bash-5.2",
            "zsh5",
            "ksh93",
            ".",
            "/lib64/ld-linux-x86-64.so.2",
            "bin/",
            "linux64",
            "source",
        ] {
            assert!(is_wrapper(program), "{program}");
        }
        for program in
            ["git", "cargo", "sudoku", "shellcheck", "timeouts", "python3", "./build", "7z"]
        {
            assert!(!is_wrapper(program), "{program}");
        }
    }
}
