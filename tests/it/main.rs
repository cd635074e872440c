//! Whole stories: a real service on loopback with real children.
//!
//! Every test has a service, a folder and a port of its own; every wait has a deadline; agents are
//! held by gates, which are files, so that no story depends on how fast the machine is.
#![expect(clippy::unwrap_used, reason = "a helper that cannot help fails the test")]
#![expect(clippy::panic, reason = "a helper that cannot help fails the test")]
#![expect(clippy::indexing_slicing, reason = "JSON is read by its members")]
#![expect(clippy::print_stdout, reason = "a test that fails shows what the service said")]

mod abuse;
mod answers;
mod bytes;
mod calling_off;
mod cards;
mod chaos;
mod clock;
mod commands;
mod crash;
mod crash_points;
mod deadlines;
mod described;
mod dialects;
mod doctor;
mod drain;
mod entrance;

mod envelope;
mod errors;
mod examples;
mod failures;
mod faults;
mod files;
mod floods;
mod following;
mod groups;
mod harness;
mod heartbeat;
mod held;
mod history;
mod json_rpc;
mod judge;
mod kept;
mod line;
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
mod reload;
mod resources;
mod schedules;
mod scripts;
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
mod twins;
mod unread;
mod upgrade;
mod workspaces;
mod wrapped;
mod year;
