# One word per act. `just` lists them.
set shell := ["bash", "-euo", "pipefail", "-c"]

_default:
    @just --list --unsorted

# Format, lints, documents, house rules, supply chain.
check:
    cargo fmt --all --check
    cargo clippy --workspace --all-targets --locked -- -D warnings
    RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --locked
    cargo test --locked --test tidy
    cargo test --locked -p algonius-proto
    if cargo deny --version >/dev/null 2>&1; then cargo deny --offline check --hide-inclusion-graph licenses bans sources; else echo "SKIPPED: cargo deny is not installed"; fi

# The inside alone, in virtual time: seconds.
core:
    cargo test --locked -p algonius-actors

# A real service with real children.
it *ARGS:
    cargo test --locked --test it {{ARGS}}

# Real agents over A2A, with no way out, against the fake model; or these alone, as `claude,codex`. They come
# from npm and PyPI, 3 GB of them.
agents WHICH="1":
    ALGONIUS_AGENTS={{WHICH}} cargo test --locked --test speaks_every_dialect --test agents -- --nocapture

# Kills in a drawn order for so many rounds; ALGONIUS_CHAOS_SEED draws the same order again.
chaos ROUNDS="1000":
    ALGONIUS_CHAOS_ROUNDS={{ROUNDS}} cargo test --locked --test it -- chaos --nocapture

# Every crash point, or those of one word alone, as `die`, `tear` or `file`: the k-th write, file, spawn
# or packet fails or is the last, for every k.
crash-points WHICH="all":
    ALGONIUS_CRASH_POINTS={{WHICH}} cargo test --locked --test it -- crash_points --nocapture

# The Debian package: built, looked into, and tried where that can be.
package:
    packaging/deb
    packaging/check target/debian/*.deb
    packaging/try target/debian/*.deb

# All that has a goal, against its yardstick of the same run, then the table of docs/performance.md;
# `just bench quick` takes a tenth of the time.
bench *ARGS:
    benches=(benches/*/main.rs); benches=("${benches[@]#*/}"); benches=("${benches[@]%/main.rs}"); \
        cargo bench --locked "${benches[@]/#/--bench=}" -- {{ if ARGS == "quick" { "--quick" } else { ARGS } }}
    cargo run --locked --release --bin table

# The service beside servers of the SDKs of other languages, which come from PyPI, npm and the registry of crates,
# then their table in docs/performance.md: two minutes once they are installed; `just peers quick` writes nothing.
peers *ARGS:
    benches/peers/run {{ if ARGS == "quick" { "--quick" } else { ARGS } }}

# Ten minutes of work at half of what the machine can start: memory, descriptors and processes stay what
# they are; `just soak quick` takes a minute.
soak *ARGS:
    cargo bench --locked --bench soak -- {{ if ARGS == "quick" { "--quick" } else { ARGS } }}
