//! Agents with users of their own, against what the service does as root in their folders.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use super::write_private_file;
use crate::harness::client::{completed_outcome, task_outcome, task_state};
use crate::harness::{Setup, poll_until};
use crate::read_only::skip_without_requirement;

const AGENT_USER: &str = "daemon";
const AGENT_USER_ID: u32 = 1;
const ROOT_ONLY_TEXT: &str = "only root reads this\n";

/// A setup whose folder other users pass through, with a folder and a file that are root's alone.
fn with_root_only_folder(setup: Setup) -> Setup {
    for path in [setup.test_folder().parent().unwrap(), setup.test_folder()] {
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    for entry in fs::read_dir(setup.test_folder()).unwrap().flatten() {
        if entry.path().is_file() && !entry.path().is_symlink() {
            fs::set_permissions(entry.path(), fs::Permissions::from_mode(0o755)).unwrap();
        }
    }
    let closed_folder = setup.test_folder().join("closed");
    fs::create_dir(&closed_folder).unwrap();
    fs::set_permissions(&closed_folder, fs::Permissions::from_mode(0o700)).unwrap();
    write_private_file(&closed_folder.join("output.txt"), ROOT_ONLY_TEXT);
    setup
}

fn owner_uid(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().uid()
}

/// Root reads no file for an agent that puts links, pipes and folders in the place of its answer.
#[tokio::test]
async fn root_does_not_follow_a_link_to_an_answer() {
    if skip_without_requirement("root") {
        return;
    }
    let attacks = [
        ("folder", "mv $m $m.x; rm -rf $m; ln -s $ROOT $m"),
        ("link", "ln -s $ROOT/output.txt $0"),
        ("hard", "ln $ROOT/output.txt $0"),
        ("pipe", "mkfifo $0"),
        ("device", "ln -s /dev/zero $0"),
        ("place", "mkdir $0; ln -s $ROOT/output.txt $0/output.txt"),
    ];
    for access in ["read-only", "read-write"] {
        let agents = attacks.map(|(id, script)| {
            format!(
                "[agents.{id}]\ncommand = 'sh'\nargs = ['-c', 'm=$(dirname $0); {script}; true', '{{{{ output_file }}}}']\n\
                 output = 'file'\naccess = '{access}'\nuser = '{AGENT_USER}'\nworking_dir = '/'\n\
                 env.ROOT = 'HERE/closed'\n"
            )
        });
        let service = with_root_only_folder(Setup::new(&agents.concat())).start().await;
        for (id, _) in attacks {
            let task = service.send(id, "x").await;
            assert!(!task.to_string().contains(ROOT_ONLY_TEXT.trim()), "{access} {id}: {task}");
            assert!(
                ["completed", "failed"].contains(&task_state(&task).as_str()),
                "{access} {id}: {task}"
            );
        }
    }
}

/// A file that the agent names in an event is read with the rights of the agent's user.
#[tokio::test]
async fn root_delivers_no_file_that_the_agent_cannot_read() {
    if skip_without_requirement("root") {
        return;
    }
    let line = r#"{"type":"artifact","file":{"path":"'$ROOT'/output.txt"}}"#;
    let agent = format!(
        "[agents.names]\ncommand = 'sh'\nargs = ['-c', '''echo '{line}'; echo x''']\n\
         output = 'events'\naccess = 'read-only'\nuser = '{AGENT_USER}'\nworking_dir = '/'\nenv.ROOT = 'HERE/closed'\n"
    );
    let service = with_root_only_folder(Setup::new(&agent)).start().await;
    let task = service.send("names", "x").await;
    let output =
        format!("{task}{}", service.fetch_execution(&crate::harness::client::task_id(&task)).await);
    assert!(!output.contains(ROOT_ONLY_TEXT.trim()), "{output}");
    assert!(!output.contains("b25seSByb290"), "the file was handed over in base64: {output}");
}

/// Replaces the input of every execution of its user, as soon as it appears, by a link to a file of root.
const RACER_SCRIPT: &str = r#"
my ($base, $target) = @ARGV;
my ($end, %seen) = (time + 40);
while (time < $end) {
    # It may not list the folder of the slots, which have numbers.
    for my $slot (map { "$base/scratch/$_" } 0 .. 3) {
        my @names = ("own");
        if (opendir(my $listed, $slot)) { push @names, readdir $listed }
        for my $name (grep { /-1-1$|^own$/ && !$seen{"$slot/$_"} } @names) {
            my $folder = "$slot/$name";
            symlink $target, "$slot/link";
            symlink $target, "$folder/link";
            for (1 .. ($name eq "own" ? 50 : 100000)) {
                next unless -e "$folder/input.txt";
                rename("$slot/link", "$folder/input.txt") || rename("$folder/link", "$folder/input.txt");
                last;
            }
            $seen{$folder} = 1 unless $name eq "own";
        }
    }
    my @facts = stat $target;
    if ($facts[4] == $<) { print "won\n"; exit }
}
print "lost\n";
"#;

/// The agent's user replaces files while root creates them, and owns no file of root afterwards.
#[tokio::test]
async fn root_changes_the_owner_of_its_own_files_only() {
    if skip_without_requirement("root") {
        return;
    }
    let text = format!(
        "[agents.reader]\ncommand = 'true'\nargs = ['{{{{ input_file }}}}']\ninput = 'file'\n\
         access = 'read-only'\nuser = '{AGENT_USER}'\nworking_dir = '/'\n\
         [agents.racer]\ncommand = 'perl'\nargs = ['HERE/racer', 'HERE/run/algonius', 'HERE/closed/output.txt']\n\
         access = 'read-write'\nuser = '{AGENT_USER}'\nworking_dir = '/'\n"
    );
    let setup = with_root_only_folder(Setup::new(&text).with_executable("racer", RACER_SCRIPT));
    // The racer has to see whether it has won.
    fs::set_permissions(setup.test_folder().join("closed"), fs::Permissions::from_mode(0o755))
        .unwrap();
    let service = setup.start().await;
    let target = service.setup.test_folder().join("closed/output.txt");
    assert_eq!(task_state(&service.send("reader", "x").await), "completed");
    let racer = service.start_task("racer", "x").await;
    poll_until("the racer", async || {
        (service.fetch_execution(&racer).await["state"] == "running").then_some(())
    })
    .await;
    let long_input = "A b\n".repeat(220_000);
    for _ in 0..16 {
        _ = service.send("reader", &long_input).await;
        assert_eq!(owner_uid(&target), 0, "a file of root belongs to the user of an agent");
    }
    service.cancel("racer", &racer).await;
    assert_eq!(owner_uid(&target), 0);
}

/// The service creates a missing file of a home again, for the user of the home.
#[tokio::test]
async fn files_of_a_home_belong_to_the_user_of_the_agent() {
    if skip_without_requirement("root") {
        return;
    }
    let text = format!(
        "[agents.one]\ncommand = 'sh'\nargs = ['-s']\naccess = 'read-write'\nuser = '{AGENT_USER}'\n\
         working_dir = '/'\nhome = 'per-agent'\nhome_files = {{ 'a/b.json' = 'text of the file' }}\n"
    );
    let mut service = with_root_only_folder(Setup::new(&text)).start().await;
    let home = service.setup.test_folder().join("state/algonius/homes/one");
    let read_script = "cat $HOME/a/b.json";
    assert_eq!(
        task_outcome(&service.send("one", read_script).await),
        completed_outcome("text of the file")
    );
    // A link to a folder of root, in the place of a folder of the home.
    let replacing_script =
        format!("rm -rf $HOME/a; ln -s {}/closed $HOME/a", service.setup.test_folder().display());
    service.send("one", &replacing_script).await;
    service.kill9().await;
    fs::remove_file(home.join("a")).unwrap();
    service.start_again().await;
    assert_eq!(
        task_outcome(&service.send("one", read_script).await),
        completed_outcome("text of the file")
    );
    assert_eq!(
        (owner_uid(&home.join("a")), owner_uid(&home.join("a/b.json"))),
        (AGENT_USER_ID, AGENT_USER_ID)
    );
    assert!(!service.setup.test_folder().join("closed/b.json").exists());
}
