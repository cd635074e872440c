//! Tells a program: it reads the alert on its standard input, sees next to nothing of the service's
//! environment, and ends in time, with all that it started.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use algonius_actors::model::execution::Stamp;
use algonius_actors::model::id::ExecutionId;
use algonius_actors::model::resources::Resources;
use tokio::time::timeout;

use crate::warden::{Launch, Pipe, Spawned, Stdin, Warden};

/// How long it may take.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Bytes of what it says that are held for it; nobody reads them.
const HELD: u64 = 64 << 10;

/// Where it finds other programs.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// A program that is told.
pub(super) struct Command {
    pub(super) program: PathBuf,
    pub(super) args: Vec<String>,
    pub(super) warden: Arc<dyn Warden>,
}

impl Command {
    /// Tells it once. It was told when it ends with the code 0.
    pub(super) async fn tell(&self, body: &[u8]) -> io::Result<()> {
        let Spawned { stdout, stderr, ending, tree, .. } =
            self.warden.launch(self.launch(body)).await?;
        let run = async { tokio::join!(ending, drain(stdout), drain(stderr)).0 };
        let ended = timeout(TIMEOUT, run).await;
        tree.sweep().await;
        let exit = ended.map_err(|_late| io::Error::other("it did not end in time"))??;
        if exit.code() == Some(0) {
            Ok(())
        } else {
            Err(io::Error::other(format!("it ended with {exit:?}")))
        }
    }

    fn launch(&self, body: &[u8]) -> Launch {
        Launch {
            execution: ExecutionId::fresh(),
            stamp: Stamp::FIRST,
            program: self.program.clone(),
            args: self.args.clone(),
            env: [("PATH".into(), PATH.into())].into(),
            working_dir: PathBuf::from("/"),
            stdin: Stdin::Whole(body.to_vec()),
            cap: HELD,
            dies_alone: true,
            limits: Vec::new(),
            ruleset: None,
            wrapper: None,
            resources: Resources::default(),
        }
    }
}

/// Lets a stream run dry, so that nobody waits at a full pipe.
async fn drain(mut pipe: Pipe) {
    _ = tokio::io::copy(&mut pipe, &mut tokio::io::sink()).await; // It ends in any case.
}
