//! Tests of the reasons for which a program cannot be executed: the kernel refuses the same files.

use std::fs::{self, Permissions};
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::ProgramFault;

/// Folder in which a test writes programs.
struct ProgramFolder(tempfile::TempDir);

impl ProgramFolder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn folder(&self) -> String {
        self.0.path().display().to_string()
    }

    fn write(&self, name: &str, contents: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.path().join(name);
        fs::write(&path, contents).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
        path
    }
}

/// Runs a program with this search path. Returns true if the kernel, or `env`, refused to execute it.
fn is_refused(program: &Path, search_path: &str) -> bool {
    loop {
        match Command::new(program).env("PATH", search_path).output() {
            Ok(output) => return matches!(output.status.code(), Some(126 | 127)),
            // A process that another test was about to start holds the file open for writing.
            Err(error) if error.kind() == ErrorKind::ExecutableFileBusy => {}
            Err(_refused) => return true,
        }
    }
}

fn missing_interpreter(interpreter: &str) -> ProgramFault {
    let interpreter = interpreter.into();
    ProgramFault::InterpreterMissing { interpreter, ends_in_carriage_return: false }
}

fn missing_by_carriage_return(interpreter: &str) -> ProgramFault {
    let interpreter = interpreter.into();
    ProgramFault::InterpreterMissing { interpreter, ends_in_carriage_return: true }
}

#[test]
fn the_first_line_of_a_script_is_read_as_by_the_kernel() {
    let programs = ProgramFolder::new();
    let search_path = format!("{}:/usr/bin:/bin", programs.folder());
    programs.write("word", "#!/bin/sh\n");
    let nested = programs.write("nested", "#!/nowhere/inner\n");
    let long = "x".repeat(300);
    for (first_line, expected) in [
        ("#!/bin/sh\n".to_owned(), None),
        ("#! \t/bin/sh -e \n".into(), None),
        ("#!/bin/sh".into(), None),
        ("#!/usr/bin/env sh\n".into(), None),
        ("#!/usr/bin/env word\n".into(), None),
        ("#!/usr/bin/env -S word --flag\n".into(), None),
        ("#!/usr/bin/env -S A=1 B=2 word\n".into(), None),
        ("#!/usr/bin/env -S PATH=/nowhere:${PATH} word\n".into(), None),
        ("#!/usr/bin/env -S \"sh\" -c true\n".into(), None),
        ("#!/usr/bin/env /bin/sh\n".into(), None),
        ("#!/usr/bin/env sh -e\n".into(), Some(missing_interpreter("sh -e"))),
        ("#!/no/such/interpreter\n".into(), Some(missing_interpreter("/no/such/interpreter"))),
        ("#!/no/such/interpreter -u\n".into(), Some(missing_interpreter("/no/such/interpreter"))),
        ("#!  /no/such/interpreter".into(), Some(missing_interpreter("/no/such/interpreter"))),
        ("#!/bin/sh/python\n".into(), Some(missing_interpreter("/bin/sh/python"))),
        ("#!/bin/sh\r\n".into(), Some(missing_by_carriage_return("/bin/sh"))),
        ("#!/usr/bin/env sh\r\n".into(), Some(missing_by_carriage_return("sh"))),
        ("#!/usr/bin/env -S sh\r\n".into(), None),
        ("#!/usr/bin/env no-such-node\n".into(), Some(missing_interpreter("no-such-node"))),
        (
            "#!/usr/bin/env -S no-such-node --flag\n".into(),
            Some(missing_interpreter("no-such-node")),
        ),
        (format!("#!{}\n", nested.display()), Some(missing_interpreter("/nowhere/inner"))),
        (
            "#!/etc/passwd\n".into(),
            Some(ProgramFault::InterpreterNotExecutable { interpreter: "/etc/passwd".into() }),
        ),
        (
            "#!/usr\n".into(),
            Some(ProgramFault::InterpreterNotExecutable { interpreter: "/usr".into() }),
        ),
        ("#!\n".into(), Some(ProgramFault::UnknownFormat)),
        (format!("#!/{long}\n"), Some(ProgramFault::UnknownFormat)),
        ("echo no line\n".into(), Some(ProgramFault::UnknownFormat)),
        (" #!/bin/sh\n".into(), Some(ProgramFault::UnknownFormat)),
        (String::new(), Some(ProgramFault::UnknownFormat)),
    ] {
        let program = programs.write("script", &first_line);
        let found = ProgramFault::find_after_exec_failure(&program, Some(&search_path));
        assert_eq!(found, expected, "{first_line:?}");
        assert_eq!(found.is_some(), is_refused(&program, &search_path), "{first_line:?}");
    }
}

#[test]
fn a_search_path_with_relative_folders_is_not_judged() {
    let programs = ProgramFolder::new();
    let program = programs.write("script", "#!/usr/bin/env no-such-node\n");
    for search_path in ["/usr/bin:node_modules/.bin", "/usr/bin:", ""] {
        assert_eq!(
            ProgramFault::find_after_exec_failure(&program, Some(search_path)),
            None,
            "{search_path}"
        );
    }
    assert_eq!(ProgramFault::find_after_exec_failure(&program, None), None);
}

#[test]
fn a_binary_for_another_system_is_named() {
    let programs = ProgramFolder::new();
    let own_binary = fs::read("/proc/self/exe").unwrap();
    let loader_offset = own_binary.windows(6).position(|bytes| bytes == b"/ld-li");
    let Some(loader_offset) = loader_offset else { return }; // A static test binary needs no loader.
    let binary = programs.write("binary", &own_binary);
    assert_eq!(ProgramFault::find_after_exec_failure(&binary, None), None);
    let mut without_loader = own_binary.clone();
    without_loader[loader_offset + 1] = b'x';
    let binary = programs.write("without-loader", &without_loader);
    let fault = ProgramFault::find_after_exec_failure(&binary, None).unwrap();
    assert!(
        matches!(&fault, ProgramFault::LoaderMissing { loader } if !loader.exists()),
        "{fault:?}"
    );
    assert!(fault.to_string().starts_with("its dynamic loader `xd-li"), "{fault}");
    assert!(Command::new(&binary).output().is_err(), "the kernel refuses it too");
    let mut foreign_binary = own_binary.clone();
    let elf_machine: u16 = if cfg!(target_arch = "riscv64") { 183 } else { 243 };
    if !cfg!(any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64")) {
        return;
    }
    foreign_binary[18..20].copy_from_slice(&elf_machine.to_le_bytes());
    let binary = programs.write("foreign", &foreign_binary);
    let fault = ProgramFault::find_after_exec_failure(&binary, None).unwrap();
    assert!(matches!(fault, ProgramFault::ForeignProcessor { .. }), "{fault:?}");
}

#[test]
fn damaged_binaries_are_examined_without_a_panic() {
    let programs = ProgramFolder::new();
    let own_binary = fs::read("/proc/self/exe").unwrap();
    for length in (0..70).chain([255, 256, 257, 1000]) {
        let binary = programs.write("cut", &own_binary[..length]);
        // A cut table of headers names no loader, and the kernel judges the rest.
        _ = ProgramFault::find_after_exec_failure(&binary, None);
    }
    for at in 4..64 {
        let mut damaged = own_binary[..4096].to_vec();
        damaged[at] = 0xff;
        _ = ProgramFault::find_after_exec_failure(&programs.write("damaged", &damaged), None);
    }
}

#[test]
fn a_missing_file_and_one_without_permission_differ() {
    let programs = ProgramFolder::new();
    let program = programs.write("program", "#!/bin/sh\n");
    fs::set_permissions(&program, Permissions::from_mode(0o644)).unwrap();
    assert_eq!(ProgramFault::find(&program, None), Some(ProgramFault::NotExecutable));
    assert_eq!(ProgramFault::find(programs.0.path(), None), Some(ProgramFault::NotExecutable));
    assert_eq!(ProgramFault::find(&programs.0.path().join("nothing"), None), None);
}

#[test]
fn a_name_from_a_file_controls_no_terminal() {
    let programs = ProgramFolder::new();
    let program = programs.write("script", "#!/bin/\u{1b}[2Jsh\n");
    let fault = ProgramFault::find_after_exec_failure(&program, None).unwrap();
    assert_eq!(fault.to_string(), "its interpreter `\\u{1b}[2Jsh` does not exist");
}
