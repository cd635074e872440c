"""Runs a conformance kit of A2A against an agent.

    kits.py VERSION KIT BASE TOKEN TABLE

KIT is the folder of the kit, BASE the address of the agent. Prints one JSON object: for each test that passed "ok",
for each unexpected result what it is. Writes the counts of each group into the file TABLE, and what pytest printed into
the file beside it that ends with `.log`.
"""

import collections
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

LIMIT = 900.0

# Tests of the kits that a correct service fails, see docs/conformance.md. GROUP TEST, where GROUP may be a part.
KNOWN = {
    "0.3": [
        # The converter of this client invents a context and sends it.
        ("capabilities, rest", "::test_message_send_continue_with_contextid"),
        # Expects that a send, which waits on each binding, does not wait.
        ("quality", "::test_task_state_transitions"),
    ],
    # The kit is for 1.0.0. Its map of errors changed in 1.0.1.
    "1.0": [("must", "::test_version_not_supported_returns_unimplemented")],
}


def groups03(url):
    """Groups of the kit of 0.3: name, arguments of pytest, whether the caller has a token."""
    common = [f"--sut-url={url}/v1", "--test-scope=all"]
    for binding in ("jsonrpc", "grpc", "rest"):
        mandatory = ["tests/mandatory/protocol", "-m", "mandatory_protocol"]
        if binding == "jsonrpc":
            mandatory = ["tests/mandatory", "-m", "mandatory_jsonrpc or mandatory_protocol"]
        parts = {
            "mandatory": mandatory,
            "capabilities": ["tests/optional/capabilities"],
            "quality": ["tests/optional/quality"],
            "features": ["tests/optional/features"],
        }
        for name, selection in parts.items():
            yield f"{name}, {binding}", [*selection, *common, "--transports", binding], True
    equivalence = ["tests/optional/multi_transport", "-m", "transport_equivalence"]
    yield "equivalence", [*equivalence, *common, "--transports", "jsonrpc,grpc,rest"], True
    yield "authentication", ["tests/mandatory/authentication", *common], False


def groups10(url):
    for level in ("must", "should", "may"):
        yield level, ["tests/compatibility", f"--sut-host={url}", "-m", level], True


def run(kit, name, arguments, token, log):
    """Runs a group of tests in the folder of the kit; returns the result of each test."""
    with tempfile.TemporaryDirectory() as folder:
        results = Path(folder) / "results"
        here = str(Path(__file__).parent)
        environment = {
            "HOME": folder,
            "PATH": os.environ["PATH"],
            "PYTHONPATH": os.pathsep.join([here, str(kit)]),
            "KIT_TOKEN": token,
            "KIT_RESULTS": str(results),
            "TCK_STREAMING_TIMEOUT": "2.0",
        }
        command = [sys.executable, "-B", "-m", "pytest", "-p", "kit_plugin", "-p", "no:cacheprovider", "-q", "--tb=short"]
        ran = subprocess.run(
            [*command, *arguments],
            cwd=kit,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=LIMIT,
            check=False,
        )
        log.write(f"== {name}\n{ran.stdout}\n")
        # 1: a test failed. Everything else that is not 0 means that the tests did not run.
        if ran.returncode not in (0, 1):
            sys.exit(f"pytest ended with {ran.returncode} in group {name}:\n{ran.stdout[-4000:]}")
        return json.loads(results.read_text(encoding="utf-8"))


def group_of(version, name, test):
    """The row of the table that counts a test. The kit of 1.0 names the binding in the test."""
    if version == "0.3":
        return name
    binding = re.search("grpc|jsonrpc|http_json", test)
    return f"{name}, {binding.group() if binding else 'card'}"


def judge(version, group, test, result):
    """Returns what to report of a test, or None if the test is as expected and did not pass."""
    known = any(part in group and test.endswith(end) for part, end in KNOWN[version])
    if result == "passed":
        return "passes, so it is to be removed from the known failures" if known else "ok"
    return "failed" if result == "failed" and not known else None


def main():
    version, kit, url, token, table = sys.argv[1:]
    counts = collections.defaultdict(collections.Counter)
    report = {}
    groups = groups03 if version == "0.3" else groups10
    with Path(table).with_suffix(".log").open("w", encoding="utf-8") as log:
        for name, arguments, authorized in groups(url):
            results = run(Path(kit), name, arguments, token if authorized else "", log)
            for test, result in results.items():
                group = group_of(version, name, test)
                counts[group][result] += 1
                verdict = judge(version, group, test, result)
                if verdict:
                    report[f"{group}: {test}"] = verdict
    lines = [f"{'A2A ' + version:26} passed  failed skipped xfailed"]
    for group, count in counts.items():
        numbers = [f"{count[result]:8}" for result in ("passed", "failed", "skipped", "xfailed")]
        lines.append(f"{group:24}{''.join(numbers)}")
    Path(table).write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(json.dumps(report))


main()
