//! Conformance tests of texts, lists and tokens.

use algonius_actors::model::access::principal::{NewToken, Right, Scope};
use algonius_actors::model::code::{Category, Code};
use algonius_actors::model::execution::event::{TextChannel, TextChunk, TextRange};
use algonius_actors::model::execution::record::{ExecutionFilter, TriggerFilter};
use algonius_actors::model::execution::{AttemptId, ExecutionState, Fence, Outcome};
use algonius_actors::model::failure::Failure;
use algonius_actors::model::id::{AgentId, ContextId, ExecutionId, PrincipalId};
use algonius_actors::ports::ledger::{AcceptCommand, Settlement};
use uuid::Uuid;

use super::{
    AnyLedger, accept_and_claim, accept_execution, at_second, default_agent_id, input_range,
    new_accept_command, settlement,
};

pub(crate) async fn text_ranges_are_exact_to_the_byte(ledger: AnyLedger) {
    let id = accept_execution(&ledger).await;
    let pieces = ["aé", "", "€\0", "x𝄞", "zß"];
    let full_text: String = pieces.concat();
    let mut offset = 0;
    for (number, text) in (0..).zip(pieces) {
        let text = text.to_owned();
        let length = text.len() as u64;
        let chunk = TextChunk {
            attempt_id: AttemptId::FIRST,
            channel: TextChannel::Stdout,
            number,
            offset,
            text,
        };
        ledger.append_chunk(id, chunk.clone()).await.unwrap();
        ledger.append_chunk(id, chunk).await.unwrap();
        offset += length;
    }
    for from in 0..=full_text.len() {
        for to in from..=full_text.len() + 2 {
            let expected = &full_text.as_bytes()[from..to.min(full_text.len())];
            let expected = String::from_utf8_lossy(expected);
            let (from, to) = (from as u64, to as u64);
            let range =
                TextRange { attempt_id: AttemptId::FIRST, channel: TextChannel::Stdout, from, to };
            assert_eq!(ledger.text(id, range).await.unwrap(), expected, "{from}..{to}");
        }
    }
}

pub(crate) async fn a_chunk_without_its_predecessor_is_not_stored(ledger: AnyLedger) {
    let id = accept_execution(&ledger).await;
    for (number, offset) in [(1, 4), (0, 0), (2, 8), (1, 4)] {
        let (attempt_id, channel, text) =
            (AttemptId::FIRST, TextChannel::Stdout, "text".to_owned());
        ledger
            .append_chunk(id, TextChunk { attempt_id, channel, number, offset, text })
            .await
            .unwrap();
    }
    let range =
        TextRange { attempt_id: AttemptId::FIRST, channel: TextChannel::Stdout, from: 0, to: 100 };
    assert_eq!(ledger.text(id, range).await.unwrap(), "texttext");
}

pub(crate) async fn long_input_is_read_back_in_full_and_in_part(ledger: AnyLedger) {
    let command = new_accept_command(&"€uro ".repeat(30_000));
    ledger.accept(command.clone()).await.unwrap();
    let range = input_range(&command.input_text);
    assert_eq!(ledger.text(command.id, range).await.unwrap(), command.input_text);
    let inner_range = TextRange { from: 65_534, to: 131_075, ..range };
    let expected = String::from_utf8_lossy(&command.input_text.as_bytes()[65_534..131_075]);
    assert_eq!(ledger.text(command.id, inner_range).await.unwrap(), expected);
    let stdout_range = TextRange { channel: TextChannel::Stdout, ..range };
    assert_eq!(ledger.text(command.id, stdout_range).await.unwrap(), "");
    let retry_range = TextRange { attempt_id: AttemptId::FIRST.next_attempt(), ..range };
    assert_eq!(ledger.text(command.id, retry_range).await.unwrap(), "");
}

pub(crate) async fn executions_are_listed_newest_first_in_pages(ledger: AnyLedger) {
    let mut ids = Vec::new();
    for _ in 0..10 {
        ids.push(accept_execution(&ledger).await);
    }
    ids.reverse();
    assert_eq!(list_ids(&ledger, ExecutionFilter::default()).await, ids);
    let page = ExecutionFilter { limit: 4, ..ExecutionFilter::default() };
    assert_eq!(list_ids(&ledger, page.clone()).await, ids[..4]);
    assert_eq!(
        list_ids(&ledger, ExecutionFilter { before_id: Some(ids[3]), ..page }).await,
        ids[4..8]
    );
}

pub(crate) async fn executions_are_filtered_by_state_owner_and_agent(ledger: AnyLedger) {
    let ended = accept_execution(&ledger).await;
    assert!(ledger.settle(settlement(ended, Fence(0), Outcome::Cancelled)).await.unwrap());
    let running = accept_and_claim(&ledger).await.0;
    let owner = Some(PrincipalId(Uuid::max()));
    let other_owner =
        AcceptCommand { owner: PrincipalId(Uuid::max()), ..new_accept_command("look at this") };
    let other_agent = AcceptCommand {
        agent: AgentId::new("writer").unwrap(),
        ..new_accept_command("look at this")
    };
    let (other_owner_id, other_agent_id) = (other_owner.id, other_agent.id);
    ledger.accept(other_owner).await.unwrap();
    ledger.accept(other_agent).await.unwrap();

    let of_agent =
        ExecutionFilter { agent: Some(default_agent_id()), ..ExecutionFilter::default() };
    assert_eq!(list_ids(&ledger, of_agent.clone()).await, [other_owner_id, running, ended]);
    let unfinished = ExecutionFilter { unfinished_only: true, ..of_agent };
    assert_eq!(list_ids(&ledger, unfinished.clone()).await, [other_owner_id, running]);
    let of_owner =
        ExecutionFilter { owner, before_id: Some(other_agent_id), limit: 9, ..unfinished };
    assert_eq!(list_ids(&ledger, of_owner).await, [other_owner_id]);
}

/// Each filter alone selects its executions, and two filters select their intersection.
pub(crate) async fn history_is_filtered_by_each_filter(ledger: AnyLedger) {
    let configured_token = NewToken {
        name: "ann".to_owned(),
        hash: [1; 32],
        scope: Scope { rights: vec![Right::Read], agents: None },
        expires_at: None,
    };
    ledger.replace_configured_tokens(vec![configured_token], at_second(0)).await.unwrap();
    let ann = ledger.tokens().await.unwrap()[0].principal;
    let done =
        AcceptCommand { owner: ann, at: at_second(10), ..new_accept_command("look at this") };
    let late = AcceptCommand {
        context: ContextId("other".to_owned()),
        at: at_second(20),
        ..new_accept_command("x")
    };
    let writer = AgentId::new("writer").unwrap();
    let broken =
        AcceptCommand { agent: writer.clone(), at: at_second(30), ..new_accept_command("y") };
    let ids = [done.id, late.id, broken.id];
    for command in [done, late, broken] {
        ledger.accept(command).await.unwrap();
    }
    let failure = Some(Failure::new(Code::Exit, "it exited with code 1"));
    let ends = [(ids[0], Outcome::Completed, None), (ids[2], Outcome::Failed, failure)];
    for (id, outcome, failure) in ends {
        let end = Settlement { failure, ..settlement(id, Fence(0), outcome) };
        assert!(ledger.settle(end).await.unwrap());
    }
    let any = ExecutionFilter::default;
    let kind = |kind: &str| Some(TriggerFilter::Kind(kind.to_owned()));
    let both_agents = Some(vec![default_agent_id(), writer.clone()]);
    let (default_agent, failed) = (Some(default_agent_id()), Some(ExecutionState::Failed));
    for (filter, expected) in [
        (ExecutionFilter { owner_name: Some("ann".to_owned()), ..any() }, vec![0]),
        (ExecutionFilter { owner_name: Some("bob".to_owned()), ..any() }, vec![]),
        (ExecutionFilter { agents: both_agents, ..any() }, vec![2, 1, 0]),
        (ExecutionFilter { agents: Some(vec![writer]), ..any() }, vec![2]),
        (ExecutionFilter { agents: Some(Vec::new()), ..any() }, vec![]),
        (ExecutionFilter { state: Some(ExecutionState::Completed), ..any() }, vec![0]),
        (ExecutionFilter { state: Some(ExecutionState::Idle), ..any() }, vec![1]),
        (ExecutionFilter { outcome: Some(Outcome::Failed), ..any() }, vec![2]),
        (ExecutionFilter { code: Some(Code::Exit), ..any() }, vec![2]),
        (ExecutionFilter { code: Some(Code::Killed), ..any() }, vec![]),
        (ExecutionFilter { category: Some(Category::Agent), ..any() }, vec![2]),
        (ExecutionFilter { category: Some(Category::System), ..any() }, vec![]),
        (ExecutionFilter { trigger: kind("api"), ..any() }, vec![2, 1, 0]),
        (ExecutionFilter { trigger: kind("schedule"), ..any() }, vec![]),
        (ExecutionFilter { schedule: Some("nightly".to_owned()), ..any() }, vec![]),
        (ExecutionFilter { context: Some(ContextId("other".to_owned())), ..any() }, vec![1]),
        (ExecutionFilter { since: Some(at_second(20)), ..any() }, vec![2, 1]),
        (ExecutionFilter { until: Some(at_second(20)), ..any() }, vec![0]),
        (ExecutionFilter { since: Some(at_second(20)), unfinished_only: true, ..any() }, vec![1]),
        (ExecutionFilter { state: failed, agent: default_agent, ..any() }, vec![]),
    ] {
        let expected: Vec<_> = expected.into_iter().map(|index: usize| ids[index]).collect();
        assert_eq!(list_ids(&ledger, filter.clone()).await, expected, "{filter:?}");
    }
}

/// While other executions are accepted and end, an iteration over the pages returns each initial execution exactly
/// once.
pub(crate) async fn pages_of_history_lose_and_repeat_no_execution(ledger: AnyLedger) {
    let mut ids = Vec::new();
    for _ in 0..40 {
        ids.push(accept_execution(&ledger).await);
    }
    ids.reverse();
    let (mut seen, mut before) = (Vec::<ExecutionId>::new(), None);
    loop {
        let fresh: Vec<_> = (0..7).map(|_| new_accept_command("look at this")).collect();
        let end = settlement(ids[seen.len().min(39)], Fence(0), Outcome::Completed);
        let (page, _) = tokio::join!(
            list_ids(
                &ledger,
                ExecutionFilter { before_id: before, limit: 6, ..ExecutionFilter::default() }
            ),
            async {
                for command in fresh {
                    ledger.accept(command).await.unwrap();
                }
                ledger.settle(end).await.unwrap();
            }
        );
        before = page.last().copied();
        seen.extend(page.iter().filter(|id| ids.contains(id)));
        if page.is_empty() {
            break;
        }
    }
    assert_eq!(seen, ids);
}

async fn list_ids(ledger: &AnyLedger, filter: ExecutionFilter) -> Vec<ExecutionId> {
    ledger.executions(filter).await.unwrap().iter().map(|row| row.id).collect()
}

pub(crate) async fn seeded_tokens_are_replaced_and_their_principals_kept(ledger: AnyLedger) {
    let scope =
        Scope { rights: vec![Right::Read, Right::Run], agents: Some(vec![default_agent_id()]) };
    let configured_token = |name: &str, hash| NewToken {
        name: name.to_owned(),
        hash: [hash; 32],
        scope: scope.clone(),
        expires_at: (hash == 1).then(|| at_second(0)),
    };
    ledger
        .replace_configured_tokens(
            vec![configured_token("ann", 1), configured_token("bob", 2)],
            at_second(0),
        )
        .await
        .unwrap();
    let before = ledger.tokens().await.unwrap();
    let seen: Vec<_> = before
        .iter()
        .map(|token| (token.principal_name.as_str(), token.hash[0], token.expires_at))
        .collect();
    assert_eq!(seen, [("ann", 1, Some(at_second(0))), ("bob", 2, None)]);
    assert_eq!(before[0].scope, scope);

    ledger
        .replace_configured_tokens(
            vec![configured_token("ann", 3), configured_token("ann", 4)],
            at_second(5),
        )
        .await
        .unwrap();
    let after = ledger.tokens().await.unwrap();
    let hashes: Vec<_> = after.iter().map(|token| (token.principal, token.hash[0])).collect();
    assert_eq!(hashes, [(before[0].principal, 3), (before[0].principal, 4)]);
    ledger.replace_configured_tokens(vec![configured_token("bob", 2)], at_second(6)).await.unwrap();
    assert_eq!(ledger.tokens().await.unwrap(), before[1..]);
}
