//! The conformance kits of A2A. They come from a repository, because no package registry has them.

use std::env;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::package_install::run_install_step;
use crate::sdk::ClientPackages;
use crate::service::Service;
use crate::{STRANGER_TOKEN, assert_report_and_stop, skip};

/// Environment variable with the address of the repository of the kits. Without it, the kits do not run.
const REPOSITORY_VARIABLE: &str = "ALGONIUS_KITS";

/// A kit for one version of the protocol.
struct ConformanceKit {
    version: &'static str,
    commit: &'static str,
    /// The packages of Python that it needs.
    packages: ClientPackages,
    /// Setting of the agent that the kit requires of its card.
    card_setting: &'static str,
    /// Smallest number of its tests that must pass.
    min_passed: usize,
}

const KIT_03: ConformanceKit = ConformanceKit {
    version: "0.3",
    commit: "eb1f804c27ea25db8805264d9ed2d7ca077a7776", // Tag 0.3.0.beta4.
    packages: ClientPackages::Kit03,
    card_setting: "extended_card = false", // Its tests of the card assume an agent without tokens.
    min_passed: 284,
};

const KIT_10: ConformanceKit = ConformanceKit {
    version: "1.0",
    commit: "357c4a87afa2818731590647cccbea31c31733a2", // Branch 1.0-dev.
    packages: ClientPackages::Kit10,
    card_setting: "versions = [\"1.0\"]", // It refuses a card with the fields of 0.3.
    min_passed: 249,
};

impl ConformanceKit {
    /// Runs the kit against the scripted agent.
    fn run(&self) {
        let Some(repository) =
            env::var_os(REPOSITORY_VARIABLE).filter(|address| !address.is_empty())
        else {
            skip("the conformance kits come from a repository; `.ci/external kits` runs them");
            return;
        };
        let kit_folder = match self.fetch_source(Path::new(&repository)) {
            Ok(kit_folder) => kit_folder.display().to_string(),
            Err(reason) => return skip(&reason),
        };
        let service = Service::start(&self.configuration(), STRANGER_TOKEN);
        let url = format!("{}/agents/tck", service.url());
        let result_table_file = target_folder().join(format!("kits-{}.txt", self.version));
        let result_table_file = result_table_file.display().to_string();
        let arguments = [self.version, &kit_folder, &url, service.token(), &result_table_file];
        assert_report_and_stop(
            self.packages.run_script("kits.py", &arguments),
            self.min_passed,
            service,
        );
    }

    fn configuration(&self) -> String {
        let test = env::current_exe().expect("the path of the test");
        let fake = algonius_fakes::fake_agent_path(&test).display().to_string();
        let text = include_str!("kits.toml").replace("FAKE", &fake).replace("KIT", self.version);
        format!("{text}{}\n", self.card_setting)
    }

    /// Returns the folder of the kit. Fetches its commit first if it is missing.
    ///
    /// # Errors
    ///
    /// The reason why the repository did not deliver the kit.
    fn fetch_source(&self, repository: &Path) -> Result<PathBuf, String> {
        fs::create_dir_all(target_folder()).expect("a folder for what tests make");
        let kit_folder = target_folder().join(format!("kit-{}", self.version));
        let lock = File::create(kit_folder.with_extension("lock")).expect("a lock file");
        lock.lock().expect("one test at a time makes the folder");
        let marker = kit_folder.join(".commit");
        if fs::read_to_string(&marker).is_ok_and(|commit| commit == self.commit) {
            return Ok(kit_folder);
        }
        _ = fs::remove_dir_all(&kit_folder); // It may not be there.
        run_install_step(Command::new("git").args(["init", "--quiet"]).arg(&kit_folder))?;
        let git = || {
            let mut git = Command::new("git");
            git.arg("-C").arg(&kit_folder);
            git
        };
        run_install_step(
            git().args(["fetch", "--quiet", "--depth=1"]).arg(repository).arg(self.commit),
        )?;
        run_install_step(git().args(["checkout", "--quiet", "FETCH_HEAD"]))?;
        fs::write(&marker, self.commit).expect("a stamp");
        Ok(kit_folder)
    }
}

fn target_folder() -> &'static Path {
    Path::new(env!("CARGO_TARGET_TMPDIR"))
}

#[test]
fn the_kit_of_0_3_passes() {
    KIT_03.run();
}

#[test]
fn the_kit_of_1_0_passes() {
    KIT_10.run();
}
