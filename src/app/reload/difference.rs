//! Differences between two configurations, as keys of the file.

use std::collections::BTreeSet;

use crate::config::{
    ConfigFileSettings, ProgramSettings, PublicSettings, RequestLimits, ServerSettings, Settings,
};
use crate::wire::admin::Changes;

/// Returns the differences between two lists of named things.
pub(super) fn diff_by_name<'i, T: 'i>(
    before: impl IntoIterator<Item = &'i T>,
    after: impl IntoIterator<Item = &'i T>,
    name: impl Fn(&T) -> String,
    is_same: impl Fn(&T, &T) -> bool,
) -> Changes {
    let before: Vec<_> = before.into_iter().collect();
    let after: Vec<_> = after.into_iter().collect();
    let names = |items: &[&T]| items.iter().map(|it| name(it)).collect::<BTreeSet<_>>();
    let (names_before, names_after) = (names(&before), names(&after));
    let is_changed = |item_name: &&String| {
        let items_named = |items: &[&'i T]| -> Vec<&'i T> {
            items.iter().copied().filter(|it| name(it) == **item_name).collect()
        };
        let (items_before, items_after) = (items_named(&before), items_named(&after));
        items_before.len() != items_after.len()
            || !items_before.iter().zip(items_after).all(|(one, other)| is_same(one, other))
    };
    Changes {
        added: names_after.difference(&names_before).cloned().collect(),
        changed: names_before.intersection(&names_after).filter(is_changed).cloned().collect(),
        removed: names_before.difference(&names_after).cloned().collect(),
    }
}

/// Returns the changed keys that are applied at run time.
pub(super) fn changed_live_keys(before: &Settings, after: &Settings) -> Vec<String> {
    let (old, new) = (&before.server, &after.server);
    let (old_access, new_access) = (&old.request_access, &new.request_access);
    let keys = [
        ("server.public_url", old.public.url != new.public.url),
        ("server.public_card", old.public.is_card_public != new.public.is_card_public),
        ("server.default_agent", before.default_agent != after.default_agent),
        (
            "server.max_body_bytes",
            old.request_limits.max_body_bytes != new.request_limits.max_body_bytes,
        ),
        ("server.body_timeout", old.request_limits.body_timeout != new.request_limits.body_timeout),
        (
            "server.watch",
            old.configuration.reloads_on_change != new.configuration.reloads_on_change,
        ),
        ("server.presets", old.configuration.presets_dir != new.configuration.presets_dir),
        ("server.allowed_hosts", old_access.allowed_hosts != new_access.allowed_hosts),
        ("server.allowed_origins", old_access.allowed_origins != new_access.allowed_origins),
        ("server.trusted_proxies", old_access.trusted_proxies != new_access.trusted_proxies),
        ("server.grpc_url_0_3", old_access.grpc_url_0_3 != new_access.grpc_url_0_3),
        ("server.grpc_url_1_0", old_access.grpc_url_1_0 != new_access.grpc_url_1_0),
        ("log.level", before.observability.log.level != after.observability.log.level),
        ("lockout", before.callers.lockout != after.callers.lockout),
        ("redaction", before.secrecy.redaction != after.secrecy.redaction),
        ("metrics", before.observability.serves_metrics != after.observability.serves_metrics),
        ("scheduler.timezone", before.scheduling.timezone != after.scheduling.timezone),
        ("scheduler.seconds", before.scheduling.allows_seconds != after.scheduling.allows_seconds),
    ];
    differing_keys(&keys)
}

/// Returns the changed keys that need a restart of the service.
pub(super) fn changed_restart_keys(startup_settings: &Settings, after: &Settings) -> Vec<String> {
    let (old, new) = (&startup_settings.server, &after.server);
    let keys = [
        ("server.listen", old.listen_address != new.listen_address),
        ("server.tls", old.tls != new.tls),
        ("server.data_dir", old.data_dir != new.data_dir),
        ("server.runtime_dir", old.runtime_dir != new.runtime_dir),
        ("server.token_file", old.token_file != new.token_file),
        (
            "server.max_connections",
            old.request_limits.max_connections != new.request_limits.max_connections,
        ),
        (
            "server.header_timeout",
            old.request_limits.header_timeout != new.request_limits.header_timeout,
        ),
        (
            "server.write_timeout",
            old.request_limits.write_timeout != new.request_limits.write_timeout,
        ),
        ("server.drain_timeout", old.drain_timeout != new.drain_timeout),
        ("server.reattach_grace", old.programs.reattach_grace != new.programs.reattach_grace),
        (
            "server.output_memory",
            old.programs.max_output_memory_bytes != new.programs.max_output_memory_bytes,
        ),
        ("server.durability", old.durability != new.durability),
        ("log.format", startup_settings.observability.log.format != after.observability.log.format),
        ("pressure", startup_settings.pressure != after.pressure),
        ("push", startup_settings.push != after.push),
        ("alerts", startup_settings.observability.alerts != after.observability.alerts),
        ("telemetry", startup_settings.observability.telemetry != after.observability.telemetry),
        ("retention", startup_settings.retention != after.retention),
        ("inputs", startup_settings.secrecy.inputs != after.secrecy.inputs),
        (
            "scheduler.history",
            startup_settings.scheduling.history_retention != after.scheduling.history_retention,
        ),
    ];
    differing_keys(&keys)
}

fn differing_keys(keys: &[(&str, bool)]) -> Vec<String> {
    keys.iter().filter(|(_, differs)| *differs).map(|(key, _)| (*key).to_owned()).collect()
}

/// Check that every server setting is either live or pending: a new setting does not compile until it is listed here.
const _: fn(ServerSettings) = |server| {
    let ServerSettings {
        listen_address: _,
        tls: _,
        public: PublicSettings { url: _, is_card_public: _ },
        data_dir: _,
        runtime_dir: _,
        token_file: _,
        request_limits:
            RequestLimits {
                max_body_bytes: _,
                max_connections: _,
                header_timeout: _,
                body_timeout: _,
                write_timeout: _,
            },
        drain_timeout: _,
        programs:
            ProgramSettings { reattach_grace: _, max_output_memory_bytes: _, agent_uid_range: _ },
        durability: _,
        configuration: ConfigFileSettings { reloads_on_change: _, presets_dir: _ },
        request_access: _,
    } = server;
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_listed_by_name() {
        let (before, after) = ([("a", 1), ("b", 1), ("c", 1)], [("d", 1), ("b", 2), ("a", 1)]);
        let found = diff_by_name(
            &before,
            &after,
            |(name, _)| (*name).to_owned(),
            |one, other| one == other,
        );
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let expected =
            Changes { added: names(&["d"]), changed: names(&["b"]), removed: names(&["c"]) };
        assert_eq!(found, expected);
        let same = diff_by_name(
            &before,
            &before,
            |(name, _)| (*name).to_owned(),
            |one, other| one == other,
        );
        assert!(same.is_empty());
    }
}
