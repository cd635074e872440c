"""Holds the API for programs against its own description: validated, then asked by Schemathesis.

It is asked twice: by the description as it is, where most requests name what is not there, and by one
that is narrowed to what is there, so that requests come through.
"""

import copy
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import urllib.request

from openapi_spec_validator import OpenAPIV31SpecValidator

# Takes the agents from all the others; it is asked by the description as it is.
DISABLE = "/api/v1/agents/{id}/disable"

# Nothing here runs for long enough to be called off.
NOT_REACHED = ("POST /api/v1/executions/{id}/cancel", f"POST {DISABLE}")

AGENTS = ("talk", "write", "fail")

# It asks before it uses a tool, so its executions wait for an answer.
INTERACTIVE = "coder"

SEED = os.environ.get("ALGONIUS_SEED", "1")


def ask(url, token, path, body=None):
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    body = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url + path, body, headers)
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.loads(answer.read())


# What a name of the description stands for in the narrowed one; of what is asked alone.
THERE = {"AgentId": list(AGENTS), "ScheduleId": ["beat"], "MissedPolicy": ["skip", "once"]}
NAMES = (*THERE, "ExecutionId", "InteractionId")
ASKED = ("ScheduleRequest", "PreviewRequest", "ExecutionRequest", "TokenRequest")


def narrowed(description, executions, interactions):
    """The same description, whose requests name agents, schedules, executions and interactions that exist."""
    narrow = copy.deepcopy(description)
    del narrow["paths"][DISABLE]
    schemas = narrow["components"]["schemas"]
    for name, words in (THERE | {"ExecutionId": executions, "InteractionId": interactions}).items():
        schemas[f"{name}There"] = {"type": "string", "enum": words}
    for methods in narrow["paths"].values():
        for operation in methods.values():
            renamed(operation.get("parameters", []))
    for name in ASKED:
        renamed(schemas[name])
    schedule = schemas["ScheduleRequest"]["properties"]
    for properties in (schedule, schemas["PreviewRequest"]["properties"]):
        properties["cron"] = {"type": "string", "enum": ["@daily", "*/5 * * * *", "0 0 29 2 *"]}
        properties["timezone"] = {"type": "string", "enum": ["UTC", "Europe/Zurich"]}
    schedule["input"] = {"type": "string", "enum": ["x", "{{ planned }}"]}
    schedule["params"] = {"type": "object", "maxProperties": 0}
    order = schemas["ExecutionRequest"]["properties"]
    # The agents here permit neither overrides nor parameters.
    order["overrides"] = order["parameters"] = {"type": "object", "maxProperties": 0}
    order["wait"] = {"type": "integer", "enum": [0, 1, 20]}
    for name in ("contextId", "messageId", "idempotencyKey"):
        order[name]["maxLength"] = 60
    texts = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
    order["parts"]["items"] = texts | {"additionalProperties": False}
    # The question is about a tool call. The same answer again is accepted, another one conflicts.
    schemas["AnswerRequest"] = {
        "type": "object",
        "properties": {"verdict": {"type": "string", "enum": ["allow", "deny"]}},
        "required": ["verdict"],
        "additionalProperties": False,
    }
    schemas["TokenRequest"]["properties"]["expires"] = {"enum": ["2999-01-01T00:00:00Z"]}
    return narrow


def renamed(value):
    """Has every reference within lead to what there is."""
    if isinstance(value, dict):
        name = value.get("$ref", "").rpartition("/")[2]
        if name in NAMES:
            value["$ref"] += "There"
        value = list(value.values())
    for inner in value if isinstance(value, list) else []:
        renamed(inner)


def made(url, token):
    """Executions that have ended, of each agent, which may be switched off by now."""
    for agent in AGENTS:
        ask(url, token, f"/api/v1/agents/{agent}/enable", {})
    return [
        ask(url, token, "/api/v1/executions", {"agent": agent, "text": "hello", "wait": 20})["id"]
        for agent in AGENTS
    ]


def asked(url, token):
    """The open question of an interactive agent, which may be switched off by now."""
    ask(url, token, f"/api/v1/agents/{INTERACTIVE}/enable", {})
    request = {"agent": INTERACTIVE, "text": '[[tool Bash kind=execute command="make"]] [[say done]]'}
    execution = ask(url, token, "/api/v1/executions", request)["id"]
    for _ in range(300):
        open_ones = ask(url, token, f"/api/v1/interactions?execution={execution}&state=open")
        if open_ones["interactions"]:
            return [one["id"] for one in open_ones["interactions"]]
        time.sleep(0.1)
    raise RuntimeError(f"no question: {ask(url, token, f'/api/v1/executions/{execution}')}")


def driven(url, token, description, folder, options):
    """Has Schemathesis ask; gives its report and what it printed."""
    file, report = folder / "description.json", folder / "report.json"
    file.write_text(json.dumps(description))
    program = pathlib.Path(sys.executable).with_name("schemathesis")
    command = [program, "run", file, "--url", url, "--header", f"Authorization: Bearer {token}"]
    command += ["--report", "json", "--report-json-path", report, "--seed", SEED, "--no-shrink"]
    # With more workers CPython 3.11 may lose count of how deep it parses, and fail.
    command += ["--continue-on-failure", "--request-timeout", "60", "--workers", "1", *options]
    ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=240)
    if not report.is_file():
        raise RuntimeError(ran.stdout[-4000:] + ran.stderr[-2000:])
    return json.loads(report.read_text()), ran.stdout


def verdicts(name, report, said, reached):
    """One verdict on each operation, and on whether all were asked."""
    told = {f"{name}: {operation}": "ok" for operation in report["valid_rates"]}
    for failure in report["failures"]:
        for operation in failure["operations"]:
            told[f"{name}: {operation}"] = f"{failure['title']}\n{excerpt(said, operation)}"
    for error in report["errors"]:
        told[f"{name}: {error}"] = excerpt(said, "ERRORS", 0)
    whole = report["complete"] and report["operations"]["tested"] == report["operations"]["total"]
    told[f"{name}: every operation is asked"] = "ok" if whole else json.dumps(report["operations"])
    if reached:
        missed = sorted(set(reached) - {it for it, rate in report["valid_rates"].items() if came(rate)})
        told[f"{name}: requests come through"] = "ok" if not missed else f"none of {missed}"
    return told


def came(rate):
    return any(phase["accepted"] > 0 for phase in rate.values())


def excerpt(said, headline, rule="___"):
    start = said.find(f" {headline} {rule or '=='}")
    return said[start : start + 1800]


def main():
    url, token = sys.argv[1:3]
    description = ask(url, token, "/api/v1/openapi.json")
    told = {"the description is one": "ok"}
    faults = [str(error.message) for error in OpenAPIV31SpecValidator(description).iter_errors()]
    if faults:
        told["the description is one"] = "; ".join(faults)
    all_operations = [
        f"{method.upper()} {path}"
        for path, methods in description["paths"].items()
        for method in methods
    ]
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        plain = ["--phases", "coverage,fuzzing", "--max-examples", "40"]
        # What a schema cannot say, such as what a cron expression is, is no fault here.
        plain += ["--exclude-checks", "positive_data_acceptance"]
        told |= verdicts("as it is", *driven(url, token, description, folder, plain), [])
        narrow = narrowed(description, made(url, token), asked(url, token))
        deep = ["--phases", "coverage,fuzzing,stateful", "--mode", "positive", "--max-examples", "40"]
        # What became of a schedule's times stays known after the schedule is removed.
        deep += ["--exclude-checks", "use_after_free"]
        report, said = driven(url, token, narrow, folder, deep)
        reached = [it for it in all_operations if it not in NOT_REACHED]
        told |= verdicts("narrowed", report, said, reached)
    print(json.dumps(told))


main()
