//! Puts together who is told about executions, and with which words.

use std::sync::Arc;

use algonius_actors::decide::alert::Sighting;
use algonius_actors::door::Gateway;
use algonius_actors::model::code::Code;
use algonius_actors::model::failure::Failure;
use algonius_actors::ports::clock::Clock;
use algonius_actors::ports::ledger::Ledger;

use crate::config::Settings;
use crate::push::{Desk, Policy, Post, Postman, Render};
use crate::store::Store;
use crate::{StartError, config, serve};

/// Who takes addresses that shall be told, and who tells them; nobody where that is not configured.
pub(super) fn tell(
    settings: &Settings,
    store: &Arc<Store>,
    clock: &Arc<dyn Clock>,
    gateway: &Gateway,
) -> Result<(Option<Desk>, Option<Postman>), StartError> {
    let Some(push) = settings.push.clone() else { return Ok((None, None)) };
    let desk = Desk::new(Arc::clone(store) as _, Arc::clone(clock), policy(push));
    let postman = desk.open(post(store, Arc::clone(clock), gateway));
    let postman = postman.map_err(|error| StartError::Push { cause: error.message })?;
    Ok((Some(desk), Some(postman)))
}

pub(super) fn policy(push: config::Push) -> Policy {
    let config::Push { allow, insecure_http, timeout, max_age } = push;
    Policy { allow, insecure_http, timeout, max_age }
}

/// What the postman works with: the ledger as it is, and the words of the transports.
fn post(store: &Arc<Store>, clock: Arc<dyn Clock>, gateway: &Gateway) -> Post {
    let (ledger, gateway): (Arc<dyn Ledger>, _) = (Arc::clone(store) as _, gateway.clone());
    let (reader, door) = (Arc::clone(&ledger), gateway.clone());
    let render: Render = Arc::new(move |execution, version, event| {
        let (ledger, gateway) = (Arc::clone(&reader), gateway.clone());
        Box::pin(async move {
            match ledger.execution(execution).await {
                Ok(Some(record)) => serve::push::notice(&gateway, &record, version, event).await,
                Ok(None) => Ok(None),
                Err(error) => Err(Failure::new(Code::LedgerUnavailable, error.to_string())),
            }
        })
    });
    let given_up = Arc::new(move |failures| door.see(Sighting::GivenUp(failures)));
    Post { ledger, outbox: Arc::clone(store) as _, clock, render, given_up }
}
