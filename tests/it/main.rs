//! Whole stories: a real service on loopback with real children.
//!
//! Every test has a service, a folder and a port of its own; every wait has a deadline; agents are
//! held by gates, which are files, so that no story depends on how fast the machine is.
#![expect(clippy::unwrap_used, reason = "a helper that cannot help fails the test")]
#![expect(clippy::panic, reason = "a helper that cannot help fails the test")]
#![expect(clippy::indexing_slicing, reason = "JSON is read by its members")]
#![expect(clippy::print_stdout, reason = "a test that fails shows what the service said")]

mod abuse;
mod addresses;
mod answers;
mod auth_required;
mod boundary;
mod bytes;
mod callers;
mod calling_off;
mod cards;
mod chaos;
mod clock;
mod commands;
mod conformance;
mod controls;
mod crash;
mod crash_points;
mod deadlines;
mod described;
mod dialects;
mod doctor;
mod drain;
mod entrance;

mod envelope;
mod error_pages;
mod errors;
mod event_lines;
mod examples;
mod failures;
mod faults;
mod files;
mod finding;
mod first_contact;
mod floods;
mod following;
mod groups;
mod harness;
mod heartbeat;
mod held;
mod history;
mod interactive;
mod json_rpc;
mod judge;
mod kept;
mod limits_of_tools;
mod line;
mod live;
mod logs;
mod looks;
mod malformed;
mod manual;
mod observe;
mod overrides;
mod places;
mod presets;
mod pressure;
mod quota;
mod raw;
mod read_only;
mod reattach;
mod reference;
mod refusals;
mod reload;
mod remote;
mod repl;
mod resources;
mod runs;
mod schedules;
mod scripts;
mod sealed_inputs;
mod secrets;
mod sessions;
mod strange;
mod streams;
mod switching;
mod systemd;
mod terminal;
mod tls;
mod tokens;
mod torn;
mod truncated;
mod twins;
mod unavailable;
mod unread;
mod upgrade;
mod usage;
mod workspaces;
mod wrapped;
mod year;
