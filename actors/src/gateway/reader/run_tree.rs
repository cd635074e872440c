//! Execution with the executions of its hops, and of their hops.

use std::pin::Pin;

use super::{ExecutionReader, map_error};
use crate::decide::runs::team::{Hop, TeamRun};
use crate::model::access::principal::Caller;
use crate::model::execution::record::{ExecutionFilter, ExecutionRecord, TriggerFilter};
use crate::model::failure::Failure;
use crate::model::id::{ExecutionId, PrincipalId};
use crate::ports::ledger::LedgerError;
use crate::services::Services;

/// Maximum number of hops that are read for one tree.
const MAX_TREE_HOPS: usize = 1000;

/// Execution with its hops; an execution that is no run has none.
#[derive(Debug, Clone)]
pub struct RunTree {
    /// Record of the execution.
    pub record: ExecutionRecord,
    /// Hops in the order of their numbers.
    pub hops: Vec<TreeHop>,
    /// True if further hops were left out, because the tree is too large.
    pub is_truncated: bool,
}

/// Hop of a run with its execution.
#[derive(Debug, Clone)]
pub struct TreeHop {
    /// Hop as its run has recorded it.
    pub hop: Hop,
    /// Execution of the hop; `None` if the member has not accepted the request, or if the execution was removed.
    pub tree: Option<RunTree>,
}

/// Future of a part of a tree.
type TreeFuture<'r> = Pin<Box<dyn Future<Output = Result<RunTree, Failure>> + Send + 'r>>;

impl ExecutionReader {
    /// Returns an execution with its hops, if the caller may see it. The hops belong to the owner of the run, so they
    /// need no right of their own.
    ///
    /// # Errors
    /// Returns `execution-unknown` if the caller has no such execution; also returns an error if the ledger could not
    /// be read.
    pub async fn run_tree(&self, caller: &Caller, id: ExecutionId) -> Result<RunTree, Failure> {
        let record = self.execution(caller, id).await?;
        let mut remaining = MAX_TREE_HOPS;
        self.build_tree(record, &mut remaining).await
    }

    fn build_tree<'r>(
        &'r self,
        record: ExecutionRecord,
        remaining: &'r mut usize,
    ) -> TreeFuture<'r> {
        Box::pin(async move {
            let events = self.events(&record, 0).await?;
            let run = TeamRun::restore(events.iter().map(|event| &event.data));
            let recorded_hops = run.as_ref().map(TeamRun::hops).unwrap_or_default();
            let mut tree = RunTree { record, hops: Vec::new(), is_truncated: false };
            for hop in recorded_hops {
                let Some(rest) = remaining.checked_sub(1) else {
                    tree.is_truncated = true;
                    break;
                };
                *remaining = rest;
                let execution = self.find_hop_execution(&tree.record, hop).await?;
                let hop_record = match execution {
                    Some(id) => map_error(self.services.ledger.execution(id).await)?,
                    None => None,
                };
                let hop_tree = match hop_record {
                    Some(record) => Some(self.build_tree(record, remaining).await?),
                    None => None,
                };
                tree.is_truncated |= hop_tree.as_ref().is_some_and(|tree| tree.is_truncated);
                tree.hops.push(TreeHop { hop: Hop { execution, ..hop.clone() }, tree: hop_tree });
            }
            Ok(tree)
        })
    }

    /// Returns the execution of a hop. The run records it later than the member does.
    async fn find_hop_execution(
        &self,
        run: &ExecutionRecord,
        hop: &Hop,
    ) -> Result<Option<ExecutionId>, Failure> {
        if hop.execution.is_some() || hop.end.is_some() {
            return Ok(hop.execution);
        }
        map_error(self.find_hop_by_key((run.id, run.owner), hop).await)
    }

    /// Returns the execution with the key of a hop, if the member has accepted the request.
    ///
    /// # Errors
    /// Returns an error if the execution could not be read.
    pub(crate) async fn find_hop_by_key(
        &self,
        (run, owner): (ExecutionId, PrincipalId),
        hop: &Hop,
    ) -> Result<Option<ExecutionId>, LedgerError> {
        let Services { keyed_hasher, ledger, .. } = &self.services;
        let key = keyed_hasher.hop_key(run, hop.number);
        let found = ledger.find_by_key(owner, &hop.agent, key).await?;
        Ok(found.map(|(execution, _)| execution))
    }

    /// Returns the hops of a run and their hops, each run before its hops.
    ///
    /// # Errors
    /// Returns an error if the hops could not be read.
    pub(in crate::gateway) async fn all_hop_ids(
        &self,
        run: ExecutionId,
    ) -> Result<Vec<ExecutionId>, Failure> {
        let (mut runs, mut hops) = (vec![run], Vec::new());
        while let Some(run) = runs.pop() {
            let filter = ExecutionFilter {
                trigger: Some(TriggerFilter::HopsOf(run)),
                ..ExecutionFilter::default()
            };
            let children = map_error(self.services.ledger.executions(filter).await)?;
            let children = children.into_iter().map(|child| child.id);
            let first_new = hops.len();
            hops.extend(children);
            runs.extend(hops.iter().skip(first_new).copied());
        }
        Ok(hops)
    }
}
