//! Stories of text, lists and tokens.

use algonius_actors::model::event::{Channel, Chunk, Span};
use algonius_actors::model::execution::{Fence, Outcome, Stamp};
use algonius_actors::model::id::{AgentId, ExecutionId, PrincipalId};
use algonius_actors::model::principal::{Right, Scope, TokenSeed};
use algonius_actors::model::record::Filter;
use algonius_actors::ports::ledger::Accept;
use uuid::Uuid;

use super::{AnyLedger, accepted, agent, claimed, request, said, second, settlement};

pub(in crate::store) async fn every_range_of_a_text_is_cut_to_the_byte(ledger: AnyLedger) {
    let id = accepted(&ledger).await;
    let pieces = ["aé", "", "€\0", "x𝄞", "zß"];
    let whole: String = pieces.concat();
    let mut offset = 0;
    for (number, text) in (0..).zip(pieces) {
        let text = text.to_owned();
        let length = text.len() as u64;
        let chunk = Chunk { stamp: Stamp::FIRST, channel: Channel::Stdout, number, offset, text };
        ledger.append(id, chunk.clone()).await.unwrap();
        ledger.append(id, chunk).await.unwrap();
        offset += length;
    }
    for from in 0..=whole.len() {
        for to in from..=whole.len() + 2 {
            let expected = &whole.as_bytes()[from..to.min(whole.len())];
            let expected = String::from_utf8_lossy(expected);
            let (from, to) = (from as u64, to as u64);
            let span = Span { stamp: Stamp::FIRST, channel: Channel::Stdout, from, to };
            assert_eq!(ledger.text(id, span).await.unwrap(), expected, "{from}..{to}");
        }
    }
}

pub(in crate::store) async fn long_input_is_read_back_whole_and_in_part(ledger: AnyLedger) {
    let given = request(&"€uro ".repeat(30_000));
    ledger.accept(given.clone()).await.unwrap();
    let span = said(&given.input);
    assert_eq!(ledger.text(given.id, span).await.unwrap(), given.input);
    let part = Span { from: 65_534, to: 131_075, ..span };
    let expected = String::from_utf8_lossy(&given.input.as_bytes()[65_534..131_075]);
    assert_eq!(ledger.text(given.id, part).await.unwrap(), expected);
    let other = Span { channel: Channel::Stdout, ..span };
    assert_eq!(ledger.text(given.id, other).await.unwrap(), "");
    let retried = Span { stamp: Stamp::FIRST.retried(), ..span };
    assert_eq!(ledger.text(given.id, retried).await.unwrap(), "");
}

pub(in crate::store) async fn executions_are_listed_newest_first_in_pages(ledger: AnyLedger) {
    let mut ids = Vec::new();
    for _ in 0..10 {
        ids.push(accepted(&ledger).await);
    }
    ids.reverse();
    assert_eq!(list(&ledger, Filter::default()).await, ids);
    let page = Filter { limit: 4, ..Filter::default() };
    assert_eq!(list(&ledger, page.clone()).await, ids[..4]);
    assert_eq!(list(&ledger, Filter { before: Some(ids[3]), ..page }).await, ids[4..8]);
}

pub(in crate::store) async fn executions_are_listed_by_what_they_are(ledger: AnyLedger) {
    let ended = accepted(&ledger).await;
    assert!(ledger.settle(settlement(ended, Fence(0), Outcome::Cancelled)).await.unwrap());
    let running = claimed(&ledger).await.0;
    let owner = Some(PrincipalId(Uuid::max()));
    let theirs = Accept { owner: PrincipalId(Uuid::max()), ..request("look at this") };
    let elsewhere = Accept { agent: AgentId::new("writer").unwrap(), ..request("look at this") };
    let (theirs_id, elsewhere_id) = (theirs.id, elsewhere.id);
    ledger.accept(theirs).await.unwrap();
    ledger.accept(elsewhere).await.unwrap();

    let of_agent = Filter { agent: Some(agent()), ..Filter::default() };
    assert_eq!(list(&ledger, of_agent.clone()).await, [theirs_id, running, ended]);
    let unfinished = Filter { unfinished: true, ..of_agent };
    assert_eq!(list(&ledger, unfinished.clone()).await, [theirs_id, running]);
    let of_owner = Filter { owner, before: Some(elsewhere_id), limit: 9, ..unfinished };
    assert_eq!(list(&ledger, of_owner).await, [theirs_id]);
}

async fn list(ledger: &AnyLedger, filter: Filter) -> Vec<ExecutionId> {
    ledger.executions(filter).await.unwrap().iter().map(|row| row.id).collect()
}

pub(in crate::store) async fn seeded_tokens_are_replaced_and_their_principals_kept(
    ledger: AnyLedger,
) {
    let scope = Scope { rights: vec![Right::Read, Right::Run], agents: Some(vec![agent()]) };
    let seed = |name: &str, hash| TokenSeed {
        name: name.to_owned(),
        hash: [hash; 32],
        scope: scope.clone(),
        expires: (hash == 1).then(|| second(0)),
    };
    ledger.seed(vec![seed("ann", 1), seed("bob", 2)], second(0)).await.unwrap();
    let before = ledger.tokens().await.unwrap();
    let seen: Vec<_> =
        before.iter().map(|token| (token.name.as_str(), token.hash[0], token.expires)).collect();
    assert_eq!(seen, [("ann", 1, Some(second(0))), ("bob", 2, None)]);
    assert_eq!(before[0].scope, scope);

    ledger.seed(vec![seed("ann", 3), seed("ann", 4)], second(5)).await.unwrap();
    let after = ledger.tokens().await.unwrap();
    let hashes: Vec<_> = after.iter().map(|token| (token.principal, token.hash[0])).collect();
    assert_eq!(hashes, [(before[0].principal, 3), (before[0].principal, 4)]);
    ledger.seed(vec![seed("bob", 2)], second(6)).await.unwrap();
    assert_eq!(ledger.tokens().await.unwrap(), before[1..]);
}
