# One recipe per task. `just` lists them.
set shell := ["bash", "-euo", "pipefail", "-c"]

_default:
    @just --list --unsorted

# Decides whether a commit may reach main. An argument selects lanes, such as `tests`.
gate *LANES:
    .ci/run {{LANES}}

# Checks what changed.
quick:
    .ci/quick

# Runs what takes longer or comes from elsewhere, then writes docs/external.md.
external *LANES:
    {{ if LANES == "" { "ALGONIUS_RESULT=docs/external.md" } else { "" } }} .ci/external {{LANES}}

# Runs the tests beside busy loops.
busy LOOPS="6":
    .ci/busy {{LOOPS}}

# Tests the actors crate in virtual time, within seconds.
core:
    cargo test --locked -p algonius-actors

# Tests a real service with real child processes.
it *ARGS:
    cargo test --locked --test it {{ARGS}}

# The agents come from npm and PyPI and need 3 GB; an argument selects some, such as `claude,codex`.
# Tests real agents over A2A, without a network, against the mock model.
agents WHICH="1":
    ALGONIUS_AGENTS={{WHICH}} cargo test --locked --test fake_models --test agents -- --nocapture

# Kills processes in a random order for this many rounds; ALGONIUS_CHAOS_SEED repeats an order.
chaos ROUNDS="1000":
    ALGONIUS_CHAOS_ROUNDS={{ROUNDS}} cargo test --locked --test it -- chaos --nocapture

# For every k, the k-th write, file, spawn or packet fails or is the last.
# Tests every crash point, or those of one word, such as `die`, `tear` or `file`.
crash-points WHICH="all":
    ALGONIUS_CRASH_POINTS={{WHICH}} cargo test --locked --test it -- crash_points --nocapture

# Builds the distribution: an archive with the program, and the Debian package.
dist:
    packaging/dist

# Builds and inspects the Debian package, and tests it if the machine can.
package:
    packaging/deb
    packaging/check target/debian/*.deb
    packaging/try target/debian/*.deb

# `just bench quick` takes a tenth of the time.
# Measures everything with a goal against its yardstick, then writes the table of docs/performance.md.
bench *ARGS:
    benches=(benches/*/main.rs); benches=("${benches[@]#*/}"); benches=("${benches[@]%/main.rs}"); \
        cargo bench --locked "${benches[@]/#/--bench=}" -- {{ if ARGS == "quick" { "--quick" } else { ARGS } }}
    cargo run --locked --release --bin table

# The servers come from PyPI, npm and the registry of crates. The run takes two minutes after the installation;
# `just peers quick` writes nothing.
# Compares the service with servers of the official SDKs, then writes their table in docs/performance.md.
peers *ARGS:
    benches/peers/run {{ if ARGS == "quick" { "--quick" } else { ARGS } }}

# Ten minutes at half of the machine's start rate; `just soak quick` takes a minute.
# Checks that memory, descriptors and processes do not grow under load.
soak *ARGS:
    cargo bench --locked --bench soak -- {{ if ARGS == "quick" { "--quick" } else { ARGS } }}
