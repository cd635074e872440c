"""Reads the numbers of a service with the parser of Prometheus' own client."""

import json
import sys
import urllib.request

from prometheus_client.openmetrics.parser import text_string_to_metric_families


def ask(url, token, path, body=None):
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    request = urllib.request.Request(url + path, body, headers)
    with urllib.request.urlopen(request, timeout=20) as answer:
        return answer.headers.get("Content-Type"), answer.read().decode()


def main():
    url, token = sys.argv[1:3]
    message = {"kind": "message", "role": "user", "messageId": "m-1"}
    message["parts"] = [{"kind": "text", "text": "hello"}]
    call = {"jsonrpc": "2.0", "id": 1, "method": "message/send", "params": {"message": message}}
    ask(url, token, "/agents/echo/v1", json.dumps(call).encode())
    media, text = ask(url, token, "/metrics")
    families = {family.name: family for family in text_string_to_metric_families(text)}
    executions = {
        (sample.labels["agent"], sample.labels["outcome"]): sample.value
        for sample in families["algonius_executions"].samples
    }
    types = {name: family.type for name, family in families.items()}
    report = {
        "media": media.startswith("application/openmetrics-text; version=1.0.0"),
        "counted": executions.get(("echo", "completed")) == 1.0,
        "counter": types["algonius_requests"] == "counter",
        "histogram": types["algonius_execution_duration_seconds"] == "histogram",
        "gauge": types["algonius_running"] == "gauge",
        "process": "process_resident_memory_bytes" in families,
    }
    print(json.dumps({name: "ok" if good else "failed" for name, good in report.items()}))


main()
