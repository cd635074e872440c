//! What differs between two configurations, in the keys of the file.

use std::collections::BTreeSet;

use crate::config::{Server, Settings};
use crate::wire::admin::Changes;

/// What another configuration says about things with names.
pub(super) fn changes<'i, T: 'i>(
    before: impl IntoIterator<Item = &'i T>,
    after: impl IntoIterator<Item = &'i T>,
    name: impl Fn(&T) -> String,
    is_same: impl Fn(&T, &T) -> bool,
) -> Changes {
    let before: Vec<_> = before.into_iter().collect();
    let after: Vec<_> = after.into_iter().collect();
    let names = |those: &[&T]| those.iter().map(|it| name(it)).collect::<BTreeSet<_>>();
    let (were, are) = (names(&before), names(&after));
    let is_changed = |wanted: &&String| {
        let of = |those: &[&'i T]| -> Vec<&'i T> {
            those.iter().copied().filter(|it| name(it) == **wanted).collect()
        };
        let (were, are) = (of(&before), of(&after));
        were.len() != are.len() || !were.iter().zip(are).all(|(one, other)| is_same(one, other))
    };
    Changes {
        added: are.difference(&were).cloned().collect(),
        changed: were.intersection(&are).filter(is_changed).cloned().collect(),
        removed: were.difference(&are).cloned().collect(),
    }
}

/// Keys that are applied while the service runs, and differ.
pub(super) fn live(before: &Settings, after: &Settings) -> Vec<String> {
    let (old, new) = (&before.server, &after.server);
    let (was, is) = (&old.entry, &new.entry);
    let keys = [
        ("server.public_url", old.public_url != new.public_url),
        ("server.public_card", old.public_card != new.public_card),
        ("server.default_agent", before.default_agent != after.default_agent),
        ("server.max_body_bytes", old.max_body_bytes != new.max_body_bytes),
        ("server.body_timeout", old.body_timeout != new.body_timeout),
        ("server.watch", old.watch != new.watch),
        ("server.presets", old.presets != new.presets),
        ("server.allowed_hosts", was.allowed_hosts != is.allowed_hosts),
        ("server.allowed_origins", was.allowed_origins != is.allowed_origins),
        ("server.trusted_proxies", was.trusted_proxies != is.trusted_proxies),
        ("server.grpc_url_0_3", was.grpc_url_0_3 != is.grpc_url_0_3),
        ("server.grpc_url_1_0", was.grpc_url_1_0 != is.grpc_url_1_0),
        ("log.level", before.log.level != after.log.level),
        ("lockout", before.lockout != after.lockout),
        ("redaction", before.redaction != after.redaction),
        ("metrics", before.metrics != after.metrics),
        ("scheduler.timezone", before.scheduling.timezone != after.scheduling.timezone),
        ("scheduler.seconds", before.scheduling.seconds != after.scheduling.seconds),
    ];
    those(&keys)
}

/// Keys that are as they were when the service was started, and differ from that.
pub(super) fn pending(booted: &Settings, now: &Settings) -> Vec<String> {
    let (old, new) = (&booted.server, &now.server);
    let keys = [
        ("server.listen", old.listen != new.listen),
        ("server.tls", old.tls != new.tls),
        ("server.data_dir", old.data_dir != new.data_dir),
        ("server.runtime_dir", old.runtime_dir != new.runtime_dir),
        ("server.token_file", old.token_file != new.token_file),
        ("server.max_connections", old.max_connections != new.max_connections),
        ("server.header_timeout", old.header_timeout != new.header_timeout),
        ("server.write_timeout", old.write_timeout != new.write_timeout),
        ("server.drain_timeout", old.drain_timeout != new.drain_timeout),
        ("server.reattach_grace", old.reattach_grace != new.reattach_grace),
        ("server.durability", old.durability != new.durability),
        ("log.format", booted.log.format != now.log.format),
        ("pressure", booted.pressure != now.pressure),
        ("push", booted.push != now.push),
        ("alerts", booted.alerts != now.alerts),
        ("telemetry", booted.telemetry != now.telemetry),
        ("retention", booted.retention != now.retention),
        ("scheduler.history", booted.scheduling.history != now.scheduling.history),
    ];
    those(&keys)
}

fn those(keys: &[(&str, bool)]) -> Vec<String> {
    keys.iter().filter(|(_, differs)| *differs).map(|(key, _)| (*key).to_owned()).collect()
}

/// The settings of the server that are neither read again nor waited for: none. A new one does not
/// compile before it is told which it is.
const _: fn(Server) = |server| {
    let Server {
        listen: _,
        tls: _,
        public_url: _,
        public_card: _,
        data_dir: _,
        runtime_dir: _,
        token_file: _,
        max_body_bytes: _,
        max_connections: _,
        header_timeout: _,
        body_timeout: _,
        write_timeout: _,
        drain_timeout: _,
        reattach_grace: _,
        durability: _,
        watch: _,
        presets: _,
        entry: _,
    } = server;
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn things_are_added_changed_and_removed_by_name() {
        let (before, after) = ([("a", 1), ("b", 1), ("c", 1)], [("d", 1), ("b", 2), ("a", 1)]);
        let found =
            changes(&before, &after, |(name, _)| (*name).to_owned(), |one, other| one == other);
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let wanted =
            Changes { added: names(&["d"]), changed: names(&["b"]), removed: names(&["c"]) };
        assert_eq!(found, wanted);
        let same =
            changes(&before, &before, |(name, _)| (*name).to_owned(), |one, other| one == other);
        assert!(same.is_empty());
    }
}
