//! What shells complete, and what `man` shows.

use std::collections::BTreeSet;
use std::fs;

use algonius_skips::skip_without;

use crate::harness::Setup;

/// The commands below these words, as the help lists them.
async fn subcommands(setup: &Setup, args: &[&str]) -> Vec<String> {
    let help = setup.run_command(&[args, &["--help"]].concat(), "").await.stdout;
    let Some(list) = help.split("Commands:\n").nth(1) else { return Vec::new() };
    let list = list.lines().take_while(|line| !line.is_empty());
    let names = list.filter_map(|line| line.split_whitespace().next().map(str::to_owned));
    names.filter(|name| name != "help").collect()
}

#[tokio::test]
async fn completions_exist_for_each_shell_and_command() {
    let setup = Setup::from_config_text("");
    let names = subcommands(&setup, &[]).await;
    assert!(names.contains(&"service".to_owned()), "{names:?}");
    let marks =
        [("bash", "complete -F"), ("zsh", "#compdef algonius"), ("fish", "complete -c algonius")];
    for (shell, mark) in marks {
        let script = setup.run_command(&["completions", shell], "").await;
        assert_eq!((script.exit_code, script.stderr.as_str()), (Some(0), ""));
        for name in names.iter().map(String::as_str).chain(["uninstall", "no-wait", mark]) {
            assert!(script.stdout.contains(name), "{shell} does not complete {name}");
        }
    }
    assert_eq!(setup.run_command(&["completions", "dos"], "").await.exit_code, Some(4));
}

#[tokio::test]
async fn bash_completes_a_command() {
    let setup = Setup::from_config_text("");
    let script = setup.run_command(&["completions", "bash"], "").await.stdout;
    let file = setup.test_folder().join("completions");
    let invocation = "COMP_WORDS=(algonius serv); COMP_CWORD=1; _algonius algonius serv algonius; \
                echo \"${COMPREPLY[*]}\"";
    fs::write(&file, [&script, invocation].concat()).unwrap();
    let output = tokio::process::Command::new("bash").arg(file).output().await;
    let Ok(output) = output else { return skip_without("bash") };
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "serve service");
}

#[tokio::test]
async fn each_command_has_a_manual_page() {
    let setup = Setup::from_config_text("");
    let main_page = setup.run_command(&["man"], "").await.stdout;
    assert!(
        main_page.contains(".TH algonius 1") && main_page.contains("Exit codes"),
        "{main_page}"
    );
    let folder = setup.test_folder().join("man/man1");
    let output = setup.run_command(&["man", folder.to_str().unwrap()], "").await;
    assert_eq!(output.exit_code, Some(0), "{output:?}");
    let mut expected = BTreeSet::from(["algonius.1".to_owned()]);
    for name in subcommands(&setup, &[]).await {
        for subcommand in subcommands(&setup, &[&name]).await {
            expected.insert(format!("algonius-{name}-{subcommand}.1"));
        }
        expected.insert(format!("algonius-{name}.1"));
    }
    let pages = fs::read_dir(&folder).unwrap().flatten();
    let pages: BTreeSet<_> = pages.map(|page| page.file_name().into_string().unwrap()).collect();
    assert_eq!(pages, expected);
    let man = tokio::process::Command::new("man").arg("--version").output().await;
    let has_man = man.is_ok_and(|output| output.status.success());
    if !has_man {
        return skip_without("man");
    }
    let mut man_command = tokio::process::Command::new("man");
    man_command.args(["--warnings", "-l"]).arg(folder.join("algonius-service-install.1"));
    let man_output = man_command.env("LC_ALL", "C").env("MANPAGER", "cat").output().await.unwrap();
    let text = String::from_utf8_lossy(&man_output.stdout).into_owned();
    assert!(text.contains("dry-run"), "{man_output:?}");
}
