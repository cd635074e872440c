//! Agents that leave their folder in a slot: towards the folders, answers and leftovers of other executions.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::write_private_file;
use crate::harness::client::{completed_outcome, task_outcome, task_state};
use crate::harness::{ServiceProcess, Setup, poll_until};
use crate::read_only::skip_without_requirement;

const AGENTS: &str = "
[agents.victim]
command = 'sh'
args = ['-c', 'cat $0 > $1; until [ -e HERE/go ]; do sleep 0.05; done', '{{ input_file }}', '{{ output_file }}']
input = 'file'
output = 'file'
[agents.thief]
command = 'sh'
args = ['HERE/thief', '{{ output_file }}']
output = 'file'
[agents.sh]
command = 'sh'
args = ['-s']
";

/// Moves the own folder away and puts a link to the folder of another execution in its place.
const THIEF_SCRIPT: &str = r#"#!/bin/sh
cat > /dev/null
own=$(dirname "$1"); slot=$(dirname "$own")
echo "own answer" > "$1"
for other in $(ls -d "$(dirname "$slot")"/*/* | grep -v "^$slot/"); do
  for place in "$own" "$slot"; do
    mv "$place" "$slot/moved"; mv "$place" "$own/moved"; rmdir "$place"; ln -s "$other" "$place"
  done
  rm -f "$1"; ln -s "$other/output.txt" "$1"
done
test -f "$1" && test ! -L "$1" && exit 0
rm -f "$1"; echo "own answer" > "$1"
"#;

fn setup() -> Setup {
    let setup = Setup::new(AGENTS).with_executable("thief", THIEF_SCRIPT).without_bubblewrap();
    write_private_file(setup.write_config(), &fs::read_to_string(setup.write_config()).unwrap());
    setup
}

fn root_and_user_setups() -> impl Iterator<Item = Setup> {
    let unprivileged_setup = (!skip_without_requirement("root")).then(|| {
        let setup = setup().with_unprivileged_user();
        let thief = setup.test_folder().join("thief");
        std::os::unix::fs::chown(thief, Some(65_532), Some(65_532)).unwrap();
        setup
    });
    std::iter::once(setup()).chain(unprivileged_setup)
}

fn scratch_folder(service: &ServiceProcess) -> PathBuf {
    service.setup.test_folder().join("run/algonius/scratch")
}

/// Entries of a folder and of all folders in it.
fn recursive_entries(folder: &Path) -> Vec<PathBuf> {
    let paths = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    paths.flat_map(|path| [vec![path.clone()], recursive_entries(&path)].concat()).collect()
}

async fn wait_for_victim_output(service: &ServiceProcess, id: &str) {
    poll_until("the victim", async || {
        let files = recursive_entries(&scratch_folder(service));
        let is_not_empty = |path: &PathBuf| fs::metadata(path).is_ok_and(|file| file.len() > 0);
        let has_output =
            files.iter().any(|path| path.ends_with("output.txt") && is_not_empty(path));
        (has_output && service.fetch_execution(id).await["state"] == "running").then_some(())
    })
    .await;
}

#[tokio::test]
async fn an_agent_reads_no_answer_of_another_execution() {
    if skip_without_requirement("Landlock 6") {
        return;
    }
    for setup in root_and_user_setups() {
        let service = setup.start().await;
        let victim = service.start_task("victim", "input of another caller").await;
        wait_for_victim_output(&service, &victim).await;
        let task = service.send("thief", "x").await;
        assert_eq!(task_outcome(&task), completed_outcome("own answer\n"), "{task}");
        service.setup.open_gate("go");
        let task = service.wait_for_task_end("victim", &victim).await;
        assert_eq!(task_outcome(&task), completed_outcome("input of another caller"));
    }
}

/// Plants the answer of every running execution in its own slot, in each layout that it knows of.
fn planting_script(scratch_root: &Path, victim: &str) -> String {
    format!(
        "own=$(dirname \"$TMPDIR\"); slot=$(dirname \"$own\")\n\
         for place in \"$own\" \"$slot\"; do for name in {victim}-1-1 own; do\n\
         mkdir \"$place/$name\"; echo FORGED > \"$place/$name/output.txt\"; done\n\
         echo FORGED > \"$place/output.txt\"; done\n\
         for other in {}/*/* {}/*; do echo FORGED > \"$other/output.txt\"; done\n\
         echo planted >> $0.log; exec sleep 20",
        scratch_root.display(),
        scratch_root.display()
    )
}

/// The service ends, and its successor takes the answer from the folder of the execution itself.
#[tokio::test]
async fn an_agent_forges_no_answer_of_another_execution() {
    if skip_without_requirement("Landlock 6") {
        return;
    }
    for setup in root_and_user_setups() {
        let mut service = setup.start().await;
        let victim = service.start_task("victim", "input of another caller").await;
        wait_for_victim_output(&service, &victim).await;
        let script = planting_script(&scratch_folder(&service), &victim);
        let mut attackers = Vec::new();
        for _ in 0..4 {
            attackers.push(service.start_task("sh", &script).await);
        }
        poll_until("what the others plant", async || {
            let files = recursive_entries(&scratch_folder(&service));
            let is_planted =
                |path: &&PathBuf| fs::read_to_string(path).is_ok_and(|text| text == "FORGED\n");
            let planted_count = files.iter().filter(is_planted).count();
            // Each plants three in its own slot.
            let mut is_ready = planted_count >= 3 * attackers.len();
            for id in &attackers {
                is_ready &= service.fetch_execution(id).await["state"] == "running";
            }
            is_ready.then_some(())
        })
        .await;
        service.kill9().await;
        service.start_again().await;
        service.setup.open_gate("go");
        let task = service.wait_for_task_end("victim", &victim).await;
        assert_eq!(task_outcome(&task), completed_outcome("input of another caller"), "{task}");
        for id in attackers {
            service.cancel("sh", &id).await;
        }
    }
}

/// Files beside the own folder, deep folders, and folders without rights do not reach the next caller.
const LEAVE_FILES_SCRIPT: &str = r#"
own=$(dirname "$TMPDIR"); slot=$(dirname "$own")
for place in "$own" "$slot" "$TMPDIR"; do
  echo "raw input of a caller" > "$place/left"; mkdir "$place/folder"; echo left > "$place/folder/left"
  chmod 000 "$place/folder"; ln -s / "$place/link"; mkfifo "$place/pipe"
done
cd "$own"
perl -e 'for (1 .. 100) { mkdir "d" or last; chdir "d" or last }'
perl -e 'my ($name, $text) = ("user.left", "raw input of a caller"); syscall(188, $ARGV[0], $name, $text, length $text, 0)' "$own"
echo "$own"
"#;

/// Prints the folder of the slot, and what an earlier execution has left in it.
const INSPECTION_SCRIPT: &str = r#"
own=$(dirname "$TMPDIR"); slot=$(dirname "$own")
echo "$own"
find "$own" "$slot" -mindepth 1 -maxdepth 1 ! -name .tmp ! -path "$own"
ls -A "$TMPDIR"
perl -e 'my $room = " " x 4096; my $n = syscall(194, $ARGV[0], $room, 4096); print substr($room, 0, $n), "\n" if $n > 0' "$own"
"#;

/// Executions that have to find the slot of an earlier one, and how many are tried for that.
const MIN_REUSES: usize = 1;
const MAX_EXECUTIONS: usize = 200;

#[tokio::test]
async fn a_scratch_slot_is_empty_for_the_next_caller() {
    if skip_without_requirement("Landlock 6") {
        return;
    }
    for setup in root_and_user_setups() {
        let service = setup.start().await;
        let (mut used_slots, mut reuse_count) = (HashSet::new(), 0);
        // A slot is emptied after its execution has ended, so the next execution may have another one.
        for _ in 0..MAX_EXECUTIONS {
            let (task_state, slot) = task_outcome(&service.send("sh", LEAVE_FILES_SCRIPT).await);
            assert_eq!(task_state, "completed");
            used_slots.insert(slot.trim().to_owned());
            let (task_state, inspection) =
                task_outcome(&service.send("sh", INSPECTION_SCRIPT).await);
            assert_eq!(task_state, "completed");
            let (slot, leftovers) = inspection.split_once('\n').unwrap();
            assert_eq!(leftovers, "", "the slot holds files or attributes");
            reuse_count += usize::from(used_slots.remove(slot));
            if reuse_count == MIN_REUSES {
                break;
            }
        }
        assert_eq!(
            reuse_count,
            MIN_REUSES,
            "too few slots were used again: {}",
            service.stderr_text()
        );
        poll_until("empty slots", async || {
            let remaining = recursive_entries(&scratch_folder(&service));
            remaining.iter().all(|path| path.is_dir()).then_some(())
        })
        .await;
    }
}

/// A file that cannot be removed: its slot is not used again, and the log reports it.
#[tokio::test]
async fn a_slot_that_cannot_be_emptied_is_retired() {
    if skip_without_requirement("Landlock 6") || skip_without_requirement("root") {
        return;
    }
    let service = setup().start().await;
    let id =
        service.start_task("sh", "echo x > \"$TMPDIR/fixed\"; dirname \"$TMPDIR\"; sleep 1").await;
    let file = poll_until("the file", async || {
        recursive_entries(&scratch_folder(&service))
            .into_iter()
            .find(|path| path.ends_with("fixed"))
    })
    .await;
    let set_attribute = |flag: &str| Command::new("chattr").arg(flag).arg(&file).status();
    if !set_attribute("+i").is_ok_and(|status| status.success()) {
        algonius_skips::skip("needs a file system with immutable files");
        return;
    }
    let task = service.wait_for_task_end("sh", &id).await;
    let first_folder = task_outcome(&task).1;
    let second_folder = task_outcome(&service.send("sh", "dirname \"$TMPDIR\"").await).1;
    assert!(set_attribute("-i").unwrap().success());
    assert_eq!(task_state(&task), "completed");
    assert_ne!(first_folder, second_folder);
    assert!(service.stderr_text().contains("failed to empty"), "{}", service.stderr_text());
}
