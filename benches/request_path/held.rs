//! The program as a warden starts and holds it, without the rest of the service.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use algonius_actors::model::execution::Stamp;
use algonius_actors::model::id::ExecutionId;
use algonius_actors::model::program::Exit;
use algonius_actors::model::resources::Resources;
use algonius_supervisor::warden::wardens::{Origin, Terms, Wardens};
use algonius_supervisor::warden::{Launch, Stdin, Warden as _};
use tempfile::TempDir;
use tokio::io::AsyncReadExt as _;
use tokio::runtime::Runtime;
use tokio::task::JoinSet;
use uuid::Uuid;

use super::WIDE;

/// A warden without a service.
pub(crate) struct Hold {
    _home: TempDir,
    wardens: Arc<Wardens>,
    program: PathBuf,
    text: String,
}

impl Hold {
    pub(crate) async fn start(program: PathBuf, text: String) -> Self {
        let home = tempfile::tempdir().expect("a home");
        let terms = Terms {
            origin: Origin::of(env!("CARGO_BIN_EXE_algonius")),
            runtime_dir: home.path().to_owned(),
            instance: Uuid::new_v4(),
            patience: Duration::from_secs(1),
            groups: None,
        };
        let wardens = Wardens::start(terms).await.expect("a warden");
        Self { _home: home, wardens, program, text }
    }

    /// Starts the program, reads all it writes, waits for its end and sees that nothing is left.
    pub(crate) async fn run(&self) {
        let launch = Launch {
            execution: ExecutionId::fresh(),
            stamp: Stamp::FIRST,
            program: self.program.clone(),
            args: Vec::new(),
            env: BTreeMap::new(),
            working_dir: "/".into(),
            stdin: Stdin::Whole(self.text.clone().into_bytes()),
            cap: 1 << 20,
            dies_alone: false,
            limits: Vec::new(),
            ruleset: None,
            wrapper: None,
            resources: Resources::default(),
        };
        let mut spawned = self.wardens.launch(launch).await.expect("the program");
        let mut said = String::new();
        spawned.stdout.read_to_string(&mut said).await.expect("text");
        let exit = spawned.ending.await.expect("an end");
        spawned.tree.sweep().await;
        assert!(exit == Exit::Code(0) && said == self.text);
    }

    pub(crate) async fn end(&self) {
        self.wardens.end().await;
    }
}

pub(crate) fn held_wide(runtime: &Runtime, hold: &Arc<Hold>, times: u64) {
    runtime.block_on(async {
        let mut all = JoinSet::new();
        for _ in 0..WIDE {
            let hold = Arc::clone(hold);
            all.spawn(async move {
                for _ in 0..times {
                    hold.run().await;
                }
            });
        }
        all.join_all().await;
    });
}
