//! Installation of third-party clients, in one folder for each set of versions.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::package_install::{NPM_OPTIONS, PIP_OPTIONS, run_install_step};

/// An official SDK of one version.
pub(crate) enum ClientPackages {
    Python03,
    Python10,
    JavaScript03,
    JavaScript10,
    /// Frameworks that support A2A 0.3.
    Frameworks03,
    /// Frameworks and tools that support A2A 1.0.
    Frameworks10,
    /// Official MCP servers in Python.
    McpPython,
    /// Official MCP servers in JavaScript.
    McpJavaScript,
    /// The client of Prometheus.
    Prometheus,
    /// Validator and client of OpenAPI documents.
    OpenApi,
    /// Packages of the conformance kit of 0.3.
    Kit03,
    /// Packages of the conformance kit of 1.0.
    Kit10,
}

impl ClientPackages {
    /// Runs a script of the tests with the SDK, and returns the verdict on each scenario.
    ///
    /// # Errors
    ///
    /// The reason why a registry did not deliver the SDK.
    pub(crate) fn run_script(
        &self,
        script: &str,
        arguments: &[&str],
    ) -> Result<BTreeMap<String, String>, String> {
        let folder = self.ensure_installed()?;
        let script = scripts_folder().join(script);
        let mut client = if self.is_python() {
            let mut python = Command::new(folder.join("bin/python"));
            python.args(["-I", "-B"]).arg(script);
            python
        } else {
            let mut node = Command::new("node");
            node.arg(script);
            node
        };
        match self {
            Self::JavaScript03 => client.arg("0.3").arg(folder),
            Self::JavaScript10 => client.arg("1.0").arg(folder),
            Self::Frameworks03 => client.arg("0.3"),
            Self::Frameworks10 => client.arg("1.0"),
            Self::Python03
            | Self::Python10
            | Self::McpPython
            | Self::McpJavaScript
            | Self::Prometheus
            | Self::OpenApi
            | Self::Kit03
            | Self::Kit10 => &mut client,
        };
        let report_json = run_command(client.args(arguments));
        Ok(serde_json::from_str(&report_json).expect("the client prints an object"))
    }

    /// Returns the folder of the SDK. Installs the SDK first if it is missing or of another version.
    ///
    /// # Errors
    ///
    /// The reason why a registry did not deliver the SDK.
    pub(crate) fn ensure_installed(&self) -> Result<PathBuf, String> {
        let (name, requirements) = self.name_and_requirements();
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("clients-{name}"));
        fs::create_dir_all(env!("CARGO_TARGET_TMPDIR")).expect("a folder for what tests make");
        let lock = File::create(folder.with_extension("lock")).expect("a lock file");
        lock.lock().expect("one test at a time makes the folder");
        let marker = folder.join("stamp");
        if fs::read_to_string(&marker).is_ok_and(|installed| installed == requirements) {
            return Ok(folder);
        }
        if self.is_python() {
            run_install_step(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&folder))?;
            let requirements_file = folder.join("wanted.txt");
            fs::write(&requirements_file, requirements).expect("a list");
            let mut pip = Command::new(folder.join("bin/python"));
            run_install_step(
                pip.args(["-m", "pip"]).args(PIP_OPTIONS).arg("-r").arg(requirements_file),
            )?;
        } else {
            _ = fs::remove_dir_all(&folder); // It may not be there.
            fs::create_dir_all(&folder).expect("a folder");
            fs::write(folder.join("package.json"), requirements).expect("a list");
            run_install_step(Command::new("npm").args(NPM_OPTIONS).arg("--prefix").arg(&folder))?;
        }
        fs::write(&marker, requirements).expect("a stamp");
        Ok(folder)
    }

    /// Returns whether the package comes from `PyPI`, and not from npm.
    const fn is_python(&self) -> bool {
        !matches!(self, Self::JavaScript03 | Self::JavaScript10 | Self::McpJavaScript)
    }

    /// A name for its folder, and what is installed, by exact version.
    const fn name_and_requirements(&self) -> (&'static str, &'static str) {
        match self {
            Self::Python03 => ("python03", include_str!("python03.txt")),
            Self::Python10 => ("python10", include_str!("python10.txt")),
            Self::Frameworks03 => ("frameworks03", include_str!("frameworks03.txt")),
            Self::Frameworks10 => ("frameworks10", include_str!("frameworks10.txt")),
            Self::McpPython => ("mcp-python", include_str!("mcp.txt")),
            Self::McpJavaScript => ("mcp-javascript", include_str!("mcp.json")),
            Self::Prometheus => ("prometheus", include_str!("metrics.txt")),
            Self::OpenApi => ("openapi", include_str!("api.txt")),
            Self::Kit03 => ("kit03", include_str!("kits03.txt")),
            Self::Kit10 => ("kit10", include_str!("kits10.txt")),
            Self::JavaScript03 => ("javascript03", include_str!("javascript03.json")),
            Self::JavaScript10 => ("javascript10", include_str!("javascript10.json")),
        }
    }
}

/// Whether JavaScript can be run here.
pub(crate) fn has_node() -> bool {
    let version_output = |program: &str| Command::new(program).arg("--version").output();
    ["node", "npm"]
        .into_iter()
        .all(|program| version_output(program).is_ok_and(|output| output.status.success()))
}

fn scripts_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients")
}

/// Runs a command that must succeed; gives its standard output.
fn run_command(command: &mut Command) -> String {
    let output = command.output();
    let output = output.unwrap_or_else(|error| panic!("{command:?} did not start: {error}"));
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {}\n{stderr}", output.status);
    String::from_utf8(output.stdout).expect("text")
}
