"""Calls the tools of official MCP servers through a run, and prints the verdict on each call."""

import json
import sys
import urllib.request

URL, TOKEN = sys.argv[1:3]


def fetch(path, body=None):
    """Requests a path of the service, and returns the answer."""
    data = None if body is None else json.dumps(body).encode()
    headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
    request = urllib.request.Request(URL + path, data, headers)
    with urllib.request.urlopen(request, timeout=120) as answer:
        return json.load(answer)


def call(tool, arguments):
    return {"calls": [{"name": tool, "args": arguments}]}


ENTITY = {"name": "lamp", "entityType": "thing", "observations": ["is red"]}
CALLS = [
    ("time__get_current_time", {"timezone": "Europe/Berlin"}, "observation", "Europe/Berlin"),
    ("time__convert_time",
     {"source_timezone": "nowhere", "time": "12:00", "target_timezone": "UTC"}, "error", "nowhere"),
    ("memory__create_entities", {"entities": [ENTITY]}, "observation", "lamp"),
    ("memory__search_nodes", {"query": "red"}, "observation", "lamp"),
    ("everything__get-sum", {"a": 2, "b": 40}, "observation", "42"),
    ("everything__get-tiny-image", {}, "observation", "[image image/png: not passed on]"),
]

turns = [call(tool, arguments) for tool, arguments, _, _ in CALLS]
turns.append(call("final_answer", {"answer": "done"}))
message = {
    "messageId": "m-1", "role": "user", "kind": "message",
    "parts": [{"kind": "text", "text": f"go [[mock turns={json.dumps(turns)}]]"}],
}
task = fetch("/agents/worker/v1", {
    "jsonrpc": "2.0", "id": 1, "method": "message/send",
    "params": {"message": message, "configuration": {"blocking": True}},
})["result"]
steps = fetch(f"/api/v1/executions/{task['id']}/steps")["steps"]
ends = [step for step in steps if step.get("call")]
verdicts = {}
for (tool, _, expected_type, expected_text), end in zip(CALLS, ends):
    is_right = end["stepType"] == expected_type and expected_text in end["text"]
    verdicts[tool] = "ok" if is_right else f"{end['stepType']}: {end['text']}"
if task["status"]["state"] != "completed":
    verdicts["run"] = json.dumps(task["status"])
print(json.dumps(verdicts))
