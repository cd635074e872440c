//! Whole stories: a real service on loopback with real children.
//!
//! Every test has a service, a folder and a port of its own; every wait has a deadline; agents are
//! held by gates, which are files, so that no story depends on how fast the machine is.
#![expect(clippy::unwrap_used, reason = "a helper that cannot help fails the test")]
#![expect(clippy::panic, reason = "a helper that cannot help fails the test")]
#![expect(clippy::indexing_slicing, reason = "JSON is read by its members")]
#![expect(clippy::print_stdout, reason = "a test that fails shows what the service said")]

mod abuse;
mod access_control;
mod actor_panics;
mod addresses;
mod agent_switches;
mod answers;
mod api_description;
mod auth_required;
mod body_drain;
mod boundary;
mod bubblewrap;
mod callers;
mod cancellation;
mod cards;
mod cgroups;
mod chaos;
mod clock;
mod commands;
mod conformance;
mod control_characters;
mod crash;
mod crash_points;
mod damaged_ledger;
mod deadlines;
mod dialects;
mod doctor;
mod drain;
mod duplicate_sends;
mod envelope;
mod error_pages;
mod errors;
mod event_lines;
mod examples;
mod execution_order;
mod failures;
mod files;
mod first_contact;
mod following;
mod harness;
mod heartbeat;
mod history;
mod history_check;
mod interactive;
mod json_rpc;
mod live_output;
mod logs;
mod malformed;
mod manual;
mod name_lookup;
mod non_utf8_output;
mod observe;
mod output_limits;
mod overrides;
mod paused_time_store;
mod persistent_processes;
mod presets;
mod pressure;
mod queue_positions;
mod quota;
mod raw_answer;
mod raw_connections;
mod read_only;
mod reattach;
mod reference;
mod refusals;
mod reload;
mod remote;
mod repl;
mod resources;
mod schedule_year;
mod schedules;
mod scripts;
mod sealed_inputs;
mod secrets;
mod sessions;
mod status_tree;
mod streams;
mod systemd;
mod team;
mod terminal;
mod tls;
mod tokens;
mod tool_call_limits;
mod truncated;
mod unavailable;
mod unbroken_output;
mod upgrade;
mod usage;
mod workspaces;
